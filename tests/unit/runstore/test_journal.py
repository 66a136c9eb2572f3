"""The log of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.words import tells
from vizpub.runstore.journal import COLUMNS, FILE, Journal, read_journal

ROOT = Path(__file__).parents[3]


def told(directory: Path, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(event[name] for name in columns) for event in read_journal(directory)]


def test_events_are_told_in_order_with_rows_and_notes(tmp_path: Path) -> None:
    journal, rows = Journal(tmp_path), dict[str, int]()
    with journal.ingest("of two files"):
        with journal.stage("read", lambda: rows):
            journal.note("a task failed")
            rows["quarantine"] = 3
        with journal.stage("names", dict):
            pass
    assert told(tmp_path, "event", "stage", "rows", "note") == [
        ("ingest begun", None, None, "of two files"),
        ("stage begun", "read", None, None),
        ("note", "read", None, "a task failed"),
        ("stage ended", "read", {"quarantine": 3}, None),
        ("stage begun", "names", None, None),
        ("stage ended", "names", {}, None),
        ("ingest ended", None, None, None),
    ]
    events = list(read_journal(tmp_path))
    assert all(tuple(event) == COLUMNS for event in events)
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    ends = [event["event"].endswith(" ended") for event in events]
    assert [event["seconds"] is not None for event in events] == ends


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("it is\nbad"), "it is"),
        (ValueError("half \ud800"), "half \ud800"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_stop_is_told_with_its_reason(tmp_path: Path, error: BaseException, why: str) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(type(error)), journal.ingest("x"), journal.stage("read", dict):
        raise error
    assert told(tmp_path, "event", "note")[-2:] == [("stage stopped", why), ("ingest stopped", why)]


_KILLED = """
import os, signal, sys
from pathlib import Path
from vizpub.runstore.journal import Journal
with Journal(Path(sys.argv[1])).ingest("x"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_log_of_a_killed_process_is_gone_on_with(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    with Journal(tmp_path).ingest("again"):
        pass
    assert told(tmp_path, "event", "note") == [
        ("ingest begun", "x"),
        ("ingest begun", "again"),
        ("ingest ended", None),
    ]


@pytest.mark.parametrize("torn", [b'{"at": "2026', bytes(30), b"[]", b"{}", b"\xff" * 9])
def test_torn_line_is_told_and_spoils_no_other(tmp_path: Path, torn: bytes) -> None:
    Journal(tmp_path).note("before")
    with (tmp_path / FILE).open("ab") as file:
        file.write(torn)
    Journal(tmp_path).note("after")
    found = told(tmp_path, "event", "note")
    assert [event for event, _ in found] == ["note", "unreadable", "note"]
    assert [found[0][1], found[2][1]] == ["before", "after"]


def test_run_without_a_log_has_no_events(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path)) == []


def test_run_that_gave_way_gets_no_log(tmp_path: Path) -> None:
    Journal(tmp_path / "gone").note("x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_log_that_cannot_be_written_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o500)
    Journal(tmp_path).note("x")
    tells(caplog.text, "Permission denied")
