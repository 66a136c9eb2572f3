"""What goes wrong becomes a line on stderr and an exit code."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
from collections.abc import Iterator
from errno import ENOENT
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import vizpub.model.errors
from tests.support.words import tells
from vizpub.cli.errors import CommandGroup, report
from vizpub.cli.main import app
from vizpub.cli.terminal.streams import CLOSED
from vizpub.model.errors import CheckFailed, InputError, Neo4jUnavailable, VizpubError

ROOT = Path(__file__).parents[3]
END_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
VIZPUB = [sys.executable, "-c", "from vizpub.cli.main import app; app(prog_name='vizpub')"]


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
    tree = [c for c in vars(vizpub.model.errors).values() if inspect.isclass(c)]
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


@pytest.mark.parametrize(
    "words",
    [
        "runs tables --columns --format csv",
        "runs tables --help",
        pytest.param("lab experiment run --help", marks=pytest.mark.long),
    ],
)
def test_closed_stdout_is_no_error(words: str) -> None:
    command = [*VIZPUB, *words.split()]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (0, b"")


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, b"interrupted\n"),
        pytest.param(signal.SIGQUIT, 131, b"quit\n", marks=pytest.mark.long),
        (signal.SIGTERM, 143, b"terminated\n"),
    ],
)
def test_signal_during_write_ends_with_its_code_and_leaves_no_file(
    tmp_path: Path, number: signal.Signals, code: int, word: bytes
) -> None:
    """The signal comes when the command begins to write, at whatever time that is."""
    usual = "default_int_handler" if number == signal.SIGINT else "SIG_DFL"
    signalled = (
        # A shell has what it runs in the background ignore some signals.
        f"import signal, sys; signal.signal({int(number)}, signal.{usual}); "
        "sys.addaudithook(lambda event, args: event == 'open' "
        f"and '.part' in str(args[0]) and signal.raise_signal({int(number)}))"
    )
    program = [sys.executable, "-c", f"{signalled}; {VIZPUB[-1]}"]
    done = subprocess.run(
        [*program, "runs", "tables", "-o", str(tmp_path / "tables.csv")],
        cwd=ROOT, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, word)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def plain_signals() -> Iterator[None]:
    """As in a process without Spark, whose handler of SIGINT may be left from another test."""
    handlers = {number: signal.getsignal(number) for number in END_WORDS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("plain_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_that_a_library_wraps_in_its_error_stays_a_signal(number: signal.Signals) -> None:
    """DuckDB does so while it reads a table of Python's."""
    failing = typer.Typer(cls=CommandGroup)

    @failing.command()
    def wrap() -> None:
        try:
            signal.raise_signal(number)
        except BaseException as received:
            raise ValueError(f"cannot read: {received!r}") from received

    failing.callback()(lambda: None)
    result = CliRunner().invoke(failing, ["wrap"])
    assert (result.exit_code, result.stderr) == (128 + number, END_WORDS[number] + "\n")


def raise_signal(number: int) -> None:
    signal.raise_signal(number)


@pytest.mark.usefixtures("plain_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_while_options_are_read_is_named(number: signal.Signals) -> None:
    failing = typer.Typer(cls=CommandGroup)

    @failing.command()
    def never(number: Annotated[int, typer.Option(callback=raise_signal)]) -> None:
        pytest.fail(f"the command ran after signal {number}")

    failing.callback()(lambda: None)
    result = CliRunner().invoke(failing, ["never", "--number", str(int(number))])
    assert (result.exit_code, result.stderr) == (128 + number, END_WORDS[number] + "\n")


def find_no_file(number: int) -> None:
    raise FileNotFoundError(ENOENT, "No such file or directory", f"file-{number}")


def test_file_that_fails_while_options_are_read_is_named() -> None:
    failing = typer.Typer(cls=CommandGroup)
    failing.command()(lambda: None)

    @failing.callback()
    def options(number: Annotated[int, typer.Option(callback=find_no_file)] = 7) -> None:
        pytest.fail(f"the options were read: {number}")

    result = CliRunner().invoke(failing, ["never"])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    tells(result.stderr, "file-7")


def test_interrupt_while_modules_are_imported_prints_nothing() -> None:
    signalled = (
        "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "sys.addaudithook(lambda event, args: event == 'import' "
        "and args[0] == 'vizpub.cli.commands' and signal.raise_signal(signal.SIGINT)); "
        "runpy.run_module('vizpub.cli', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", signalled], cwd=ROOT, stderr=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def closing(streams: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """`vizpub` as a shell starts it with these redirections."""
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", *VIZPUB, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False)


@pytest.mark.parametrize(
    "words", [pytest.param("runs tables", marks=pytest.mark.long), "runs tables --format csv"]
)
def test_closed_stdout_is_told_where_there_is_data_for_it(words: str) -> None:
    done = closing(">&-", *words.split())
    assert done.returncode == 1
    assert done.stderr == b"error: standard output is closed; -o FILE writes elsewhere\n"


@pytest.mark.parametrize("words", ["--help", pytest.param("--version", marks=pytest.mark.long)])
def test_closed_stdout_is_told_of_what_no_command_prints(words: str) -> None:
    done = closing(">&-", words)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert done.stderr.startswith(b"error: ")


@pytest.mark.parametrize(
    "words",
    ["explore --no-open", *(pytest.param(w, marks=pytest.mark.long) for w in ("demo", "runs -h"))],
)
def test_closed_stdout_is_told_of_lines_that_a_command_prints(tmp_path: Path, words: str) -> None:
    done = closing(">&-", "--workspace", str(tmp_path), *words.split())
    assert (done.returncode, done.stderr) == (1, f"error: {CLOSED}\n".encode())


def test_command_without_streams_writes_its_file(tmp_path: Path) -> None:
    """As under some schedulers. The file must not be taken for one of the streams."""
    done = closing("<&- >&- 2>&-", "runs", "tables", "-o", str(tmp_path / "tables.csv"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    shown = CliRunner().invoke(app, ["runs", "tables", "-f", "csv"])
    assert (tmp_path / "tables.csv").read_bytes() == shown.stdout_bytes


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("streams", "words", "code"),
    [
        ("2>/dev/full", "runs list", 0),
        ("2>/dev/full", "runs tables nosuch", 2),
        ("2>&-", "runs show nobody", 2),
        ("2>&-", "runs list --nosuch", 2),
        pytest.param("2>/dev/full", "runs show nobody", 2, marks=pytest.mark.long),
        pytest.param("2>/dev/full", "runs list --nosuch", 2, marks=pytest.mark.long),
        pytest.param("2>&-", "runs list", 0, marks=pytest.mark.long),
        pytest.param("2>&-", "runs tables nosuch", 2, marks=pytest.mark.long),
    ],
)
def test_exit_code_is_the_same_where_stderr_takes_nothing(
    tmp_path: Path, streams: str, words: str, code: int
) -> None:
    assert closing(streams, "--workspace", str(tmp_path), *words.split()).returncode == code


@pytest.mark.parametrize("streams", ["<&-", pytest.param("</dev/null", marks=pytest.mark.long)])
def test_confirmation_that_nobody_can_give_is_refused(workspace: Path, streams: str) -> None:
    done = closing(streams, "--workspace", str(workspace), "runs", "remove", "monday")
    assert done.returncode == 2
    told = b"error: no answer: standard input has ended; --yes skips the question\n"
    assert done.stderr.endswith(told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "words",
    [pytest.param("runs tables", marks=pytest.mark.long), "runs tables --columns --format csv"],
)
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
    assert f"Global options come before the command: {hint} …" in result.stderr


def test_unknown_option_gets_no_hint_on_global_options() -> None:
    result = CliRunner().invoke(app, ["metrics", "monday", "--nosuch"])
    assert result.exit_code == 2
    assert "Global options" not in result.stderr
