"""Help fits 80 columns, and nothing in it is cut."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from vizpub.cli.options import command
from vizpub.cli.reference import commands
from vizpub.cli.terminal.help import RARE, HelpfulCommand

ROOT = Path(__file__).parents[4]
COMMANDS = dict(commands())
WIDTH = 80


def shown(name: str) -> str:
    called: Any = COMMANDS[name]
    context = typer.Context(called, info_name=name, terminal_width=WIDTH)
    return str(called.get_help(context))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option_and_text_whole_in_80_columns(name: str) -> None:
    text = shown(name)
    lines = text.splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    assert "<bool>" not in text
    words = " ".join(text.split())
    for parameter in COMMANDS[name].params:
        if parameter.hidden:
            continue
        assert " ".join((parameter.help or "").split()) in words
        if parameter.param_type_name == "option":
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert any(option in line.split() or f"{option}," in line.split() for line in lines)
        if parameter.metavar:
            assert any(parameter.metavar.strip("[]") in line for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_usage_summary_and_examples(name: str) -> None:
    text = shown(name)
    assert text.startswith(f"Usage: {name} [OPTIONS]")
    summary = " ".join(COMMANDS[name].help.splitlines()[0].split())
    begin, _, end = " ".join(text.split()).partition(summary)
    assert end, begin
    if "Examples:" in text:
        assert end.startswith((" Examples:", " "))
        assert text.index("Examples:") < text.index("\nOptions:")
    if RARE in text:
        assert text.index("\nOptions:") < text.index(f"\n{RARE}:")


def test_help_of_the_program_fits_a_screen() -> None:
    assert len(shown("vizpub").splitlines()) < 56


def test_example_that_is_too_long_goes_on_in_the_next_line_as_a_shell_takes_it() -> None:
    line = "vizpub " + " ".join(f"--option-{n} 'a value {n}'" for n in range(8))

    def show() -> None:
        pass

    show.__doc__ = f"Show.\n\nExamples:\n\n```\n{line}\n```\n"
    app = typer.Typer()
    app.command(cls=HelpfulCommand)(command(show))
    called: Any = typer.main.get_command(app)
    text = called.get_help(typer.Context(called, info_name="vizpub", terminal_width=WIDTH))
    example = text.partition("Examples:\n")[2].partition("\n\n")[0]
    assert max(map(len, example.splitlines())) <= WIDTH
    assert example.count("\\\n") >= 2
    echoed = subprocess.run(
        ["sh", "-c", example.replace("vizpub", "printf '%s\\n'")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = [part for n in range(8) for part in (f"--option-{n}", f"a value {n}")]
    assert echoed.stdout.splitlines() == expected


def test_help_and_wrong_use_have_no_colour() -> None:
    code = (
        "from typer.testing import CliRunner; from vizpub.cli.main import app; "
        "print([chr(27) in CliRunner().invoke(app, words.split()).output for words in "
        "('metrcs', '--help', 'metrics --nosuch')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "FORCE_COLOR": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[False, False, False]\n"
