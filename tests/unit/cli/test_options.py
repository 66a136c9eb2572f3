"""Functions of plain arguments as commands."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from msgspec import Meta
from typer.testing import CliRunner

from tests.support.words import naming, tells
from vizpub.cli.commands.everyday.query import parameter_values
from vizpub.cli.main import app as program
from vizpub.cli.options import Window, comma_list, command
from vizpub.cli.reference import commands
from vizpub.cli.settings import Settings
from vizpub.model.clock import Clock
from vizpub.model.errors import OutOfRange, UseError
from vizpub.simulators.engine.parameters import Duration, Positive, Share

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Size:
    """A group of options."""

    width: Annotated[int, typer.Option(min=1)] = 3
    name: Annotated[str | None, typer.Option("--called")] = None


def test_dataclass_fields_become_options_of_a_command() -> None:
    seen: list[object] = []

    def draw(settings: Settings, what: Annotated[str, typer.Argument()], size: Size) -> None:
        """Draw it."""
        seen.extend([settings, what, size])

    app = typer.Typer()
    app.command()(command(draw))
    app.callback()(context)
    result = CliRunner().invoke(app, ["draw", "box", "--called", "b", "--width", "4"])
    assert result.exit_code == 0, result.output
    assert seen == [Settings(Path("here")), "box", Size(4, "b")]
    assert CliRunner().invoke(app, ["draw", "box", "--width", "0"]).exit_code == 2
    assert "Draw it." in CliRunner().invoke(app, ["draw", "--help"]).output


def test_options_with_durations_and_sizes_name_themselves_when_they_are_wrong() -> None:
    checked = set()
    for words, found in commands():
        # Parameters of systems have checks of their own.
        for option in () if words.startswith("vizpub lab ") else found.params:
            if option.metavar in ("DURATION", "SIZE"):
                with pytest.raises(UseError, match=f"^{option.opts[0]}: 'soon'"):
                    option.process_value(typer.Context(found), "soon")
                checked.add(option.opts[0])
    assert {"--interval", "--keep", "--timeout", "--older-than", "--max-log"} <= checked


@dataclass(frozen=True)
class Walk:
    """Parameters of a system."""

    way: Annotated[Literal["ring", "tree"], Meta(description="Along what.")] = "ring"
    steps: Annotated[Positive | None, Meta(description="How far; none: to the end.")] = 7
    every: Annotated[Duration | None, Meta(description="How often; none: once.")] = "1s"
    share: Annotated[Share, Meta(description="Of the peers.")] = 0.5


def test_parameters_of_a_system_show_what_they_take_and_take_none() -> None:
    seen: list[Walk] = []

    def walk(walk: Walk) -> None:
        """Walk."""
        seen.append(walk)

    app = typer.Typer()
    app.command()(command(walk))
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    for option, takes in (
        *(("--way", "ring|tree"), ("--steps", "N|none")),
        *(("--every", "DURATION|none"), ("--share", "X")),
    ):
        assert re.search(rf"{option} +{re.escape(takes)} ", shown), shown
    for given, taken in (
        ([], Walk()),
        (["--steps", "none", "--every", "none"], Walk(steps=None, every="none")),
        (["--steps", "3", "--way", "tree"], Walk("tree", 3)),
    ):
        assert CliRunner().invoke(app, given).exit_code == 0
        assert seen.pop() == taken
    for wrong in (["--steps", "far"], ["--way", "path"], ["--share", "2"]):
        assert CliRunner().invoke(app, wrong).exit_code == 2


def context(ctx: typer.Context) -> None:
    ctx.obj = Settings(Path("here"))


def test_comma_list_splits_names_and_refuses_empty_ones() -> None:
    assert comma_list(None) is None
    assert comma_list("mesh, overlay") == ("mesh", "overlay")
    with pytest.raises(UseError, match=naming("'mesh,,overlay'", "a,b")):
        comma_list("mesh,,overlay")


def test_query_parameters_are_key_value_pairs_or_refused() -> None:
    assert parameter_values(["at=3", "name=a=b", "empty="]) == {
        "at": "3", "name": "a=b", "empty": "",
    }  # fmt: skip
    for wrong, why in ((["at"], "'at'"), (["=3"], "'=3'"), (["a=1", "a=2"], "parameter a")):
        with pytest.raises(UseError, match=why):
            parameter_values(wrong)


@pytest.mark.parametrize("words", ["sql monday -", "cypher -"])
@pytest.mark.parametrize("given", [b"RETURN '\xff'", b"", None])
def test_standard_input_without_a_query_is_refused(
    workspace: Path, words: str, given: bytes | None
) -> None:
    """Bytes that are no UTF-8, none, or, in a process of its own, a closed stream."""
    command = ["--workspace", str(workspace), *words.split()]
    if given is None:
        line = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "vizpub.cli", *command]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        code, told = done.returncode, done.stderr
    else:
        result = CliRunner().invoke(program, command, given)
        code, told = result.exit_code, result.stderr
    assert code == 2, told
    tells(told, "standard input")


def test_window_becomes_intervals_and_is_refused_outside_the_run() -> None:
    clock = Clock(1_000_000, 1, 0, 9)
    assert Window().intervals(clock) == (None, None)
    assert Window("2", "4.5s").intervals(clock) == (2, 4)
    assert Window("first", "last").intervals(clock) == (0, 9)
    with pytest.raises(UseError, match=naming("4", "2")):
        Window("4", "2").intervals(clock)
    with pytest.raises(OutOfRange):
        Window("10").intervals(clock)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("export gexf monday --message m0 --from 1", "--from"),
        ("export gexf monday --message m0 --to 1", "--to"),
        ("export gexf monday --message m0 --topic news", "--topic"),
        ("export gexf monday --message m0 --layers mesh", "--layers"),
        ("export gexf monday --message m0 --parallel", "--parallel"),
        ("export gexf monday --message m0 --attributes degree", "--attributes"),
        ("query -p at=1", "--param"),
        ("query monday --layers mesh", "--layers"),
        ("query overlay --timeout 1s", "--timeout"),
        ("query overlay -p at=1", "--param"),
        ("tables metrics/peers --columns", "--columns"),
        ("tables --run monday", "--run"),
        ("metrics monday --gamma 0.5", "--gamma"),
        ("metrics monday overlay --peer alice", "peer"),
        ("metrics monday overlay --topic news", "topic"),
        ("metrics monday peers --topic news", "topic"),
        ("metrics monday topics --peer alice", "peer"),
        ("metrics monday messages --totals", "overlay, peers, topics or turnover"),
        ("metrics monday messages --layers mesh", "layers"),
        ("metrics monday messages --layers mesh --correct-clocks", "layers"),
        ("metrics monday gauges --layers mesh", "layers"),
        ("metrics monday gauges --topic news", "topic"),
        ("metrics monday overlay --layers mesh --columns hit_ratio", "hit_ratio"),
    ],
)
def test_option_that_does_not_apply_is_refused_by_name(
    workspace: Path, words: str, option: str
) -> None:
    result = CliRunner().invoke(program, ["--workspace", str(workspace), *words.split()])
    assert result.exit_code == 2, result.output
    tells(result.stderr, option)
