"""What goes wrong becomes a line on stderr and an exit code."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import model.errors
from cli.errors import CommandGroup, report
from cli.main import app
from model.errors import CheckFailed, InputError, Neo4jUnavailable, VizpubError

ROOT = Path(__file__).parents[3]
VIZPUB = [sys.executable, "-c", "from cli.main import app; app(prog_name='vizpub')"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CheckFailed("it differs", ["here"]), 1, "error: it differs\n  here\n"),
        (InputError("no such path: x"), 2, "error: no such path: x\n"),
        (Neo4jUnavailable("bolt://x", "gone", "start it"), 3,
         "error: Neo4j at bolt://x: gone\n  start it\n"),
        (ValueError("odd\nand more"), 1,
         "unexpected ValueError: odd (vizpub --debug shows more)\n"),
        (KeyError(), 1, "unexpected KeyError: no message (vizpub --debug shows more)\n"),
        (InputError("no peer '\x1b[2J'"), 2, "error: no peer '\\x1b[2J'\n"),
    ],
)  # fmt: skip
def test_error_is_reported_in_one_line_and_exit_code(
    error: Exception, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == code
    assert capsys.readouterr() == ("", line)


def test_exit_codes_of_vizpub_errors_are_1_to_3() -> None:
    tree = [c for c in vars(model.errors).values() if inspect.isclass(c)]
    codes = {c.exit_code for c in tree if issubclass(c, VizpubError)}
    assert codes == {1, 2, 3}


def test_debug_option_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as raised:
        raise InputError("no such path")
    assert report(raised.value, debug=True) == 2
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.endswith("error: no such path\n")


def raising(error: BaseException) -> typer.Typer:
    failing = typer.Typer(cls=CommandGroup)

    @failing.command()
    def fail() -> None:
        raise error

    failing.callback()(lambda: None)
    return failing


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (CheckFailed("x"), 1),
        (InputError("x"), 2),
        (RuntimeError("x"), 1),
        (typer.Exit(7), 7),
        (typer.Abort(), 1),
    ],
)
def test_command_group_exits_with_the_code_of_the_error(error: BaseException, code: int) -> None:
    result = CliRunner().invoke(raising(error), ["fail"])
    assert result.exit_code == code
    assert "Traceback" not in result.output


def test_closed_stdout_is_no_error() -> None:
    command = [*VIZPUB, "tables", "--columns", "--format", "csv"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (0, b"")


def test_interrupt_during_write_exits_130_and_leaves_no_file(tmp_path: Path) -> None:
    """The signal comes when the command begins to write, at whatever time that is."""
    interrupted = (
        "import signal, sys; sys.addaudithook(lambda event, args: event == 'open' "
        "and '.part' in str(args[0]) and signal.raise_signal(signal.SIGINT))"
    )
    program = [sys.executable, "-c", f"{interrupted}; {VIZPUB[-1]}"]
    done = subprocess.run(
        [*program, "tables", "-o", str(tmp_path / "tables.csv")],
        cwd=ROOT, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", ["tables", "tables --columns --format csv"])
def test_full_disk_behind_stdout_is_reported_as_an_error(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*VIZPUB, *words.split()], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False
        )
    told = b"error: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("metrics monday --quiet", "vizpub --quiet metrics"),
        ("metrics monday -q", "vizpub -q metrics"),
        ("runs list --workspace x", "vizpub --workspace DIR runs"),
    ],
)
def test_global_option_after_the_command_is_refused_with_hint(words: str, hint: str) -> None:
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 2
    assert f"Global options stand before the command: {hint} …" in result.stderr


def test_unknown_option_gets_no_hint_on_global_options() -> None:
    result = CliRunner().invoke(app, ["metrics", "monday", "--nosuch"])
    assert result.exit_code == 2
    assert "Global options" not in result.stderr
