"""The commands that `vizpub --help` lists, and what it imports for that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer
from typer.testing import CliRunner

from vizpub.cli.commands.listing import COMMANDS
from vizpub.cli.main import app

ROOT = Path(__file__).parents[4]
IMPORTED = """
import sys
from typer.testing import CliRunner
from vizpub.cli.main import app

done = CliRunner().invoke(app, sys.argv[1:])
print(done.exit_code, *(name for name in sys.modules if name.startswith("vizpub.cli.commands.")))
"""


def imported(*words: str) -> list[str]:
    """The exit code of a call, and the modules of commands that it imports."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_listed_summaries_are_the_first_lines_of_the_docstrings() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    listed = {name: summary for rows in COMMANDS.values() for name, (_, summary) in rows.items()}
    assert {name: c.help.splitlines()[0] for name, c in commands.items()} == listed
    assert {name: c.name for name, c in commands.items()} == {name: name for name in listed}


def test_help_imports_no_command() -> None:
    assert imported("--help") == ["0", "vizpub.cli.commands.listing"]


def test_command_imports_no_other_group() -> None:
    code, *modules = imported("sql", "--help")
    assert code == "0"
    assert {name.split(".")[3] for name in modules} == {"listing", "everyday"}


def test_completion_of_a_name_offers_all_that_begin_so() -> None:
    shell = {"_VIZPUB_COMPLETE": "complete_bash", "COMP_WORDS": "vizpub do", "COMP_CWORD": "1"}
    completed = CliRunner().invoke(app, [], prog_name="vizpub", env=shell)
    assert completed.stdout.split() == ["docs", "doctor"]
