"""A program run for a stopped server: what it prints, how it fails, what it leaves open."""

from __future__ import annotations

import gc
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from vizpub.graphstore.server.offline import DISK_FULL, SCRATCH, Command, Tool, failure, gist
from vizpub.model.errors import Neo4jUnavailable


def python(text: str) -> Command:
    return Command([sys.executable, "-c", text], "a server")


def test_command_returns_its_output_and_passes_on_each_line() -> None:
    lines: list[str] = []
    assert python("print('one'); print('two')").run(lines.append) == "one\ntwo\n"
    assert lines == ["one\n", "two\n"]


def test_command_streams_go_through_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"to be copied")
    copy = python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())")
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        assert copy.run(stdin=stdin, stdout=stdout) == ""
    assert (tmp_path / "out").read_bytes() == b"to be copied"


def test_failed_command_error_quotes_both_streams() -> None:
    text = (
        "import sys; print('Error: of one'); print('Error: of two', file=sys.stderr); sys.exit(3)"
    )
    with pytest.raises(Neo4jUnavailable) as raised:
        python(text).run()
    assert "Error: of one" in str(raised.value)
    assert "Error: of two" in str(raised.value)


def test_full_disk_error_names_the_disk() -> None:
    assert failure("a server", "java.io: No space left on device").why == DISK_FULL


def test_command_ends_when_its_listener_is_interrupted() -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt

    forever = python("import time; print('one', flush=True); time.sleep(600)")
    with pytest.raises(KeyboardInterrupt):
        forever.run(stop)
    gc.collect()  # a pipe that was left open would warn here


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("", "it said nothing"),
        ("started\nstopped", "started\n  stopped"),
        ("Error: no\n\tat x.y(Z.java:1)\nbye", "Error: no"),
        ("2026 ERROR one\nCaused by: two\nmore", "2026 ERROR one\n  Caused by: two"),
    ],
)
def test_gist_quotes_the_errors_of_a_log(log: str, told: str) -> None:
    assert gist(log) == told


def test_database_that_is_replaced_has_the_name_of_its_files() -> None:
    """Neo4j writes the files of a database Mine in a folder mine."""
    tool = Remembering()
    with tool.replacement("Mine") as new:
        assert new == SCRATCH
    assert tool.finished == ["mine"]


class Remembering(Tool):
    def __init__(self) -> None:
        self.finished: list[str] = []

    def command(self, *words: str) -> AbstractContextManager[Command]:
        raise NotImplementedError

    def share(self, folder: Path) -> str:
        raise NotImplementedError

    def finish_replacement(self, database: str) -> None:
        self.finished.append(database)
