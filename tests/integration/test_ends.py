"""How an ingest ends that something ends: real processes, one run that is gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from ingest.journal import read_journal
from ingest.leavings import SCRATCH
from ingest.store import open_run, run_names
from tests.support.ingested import TINY

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class End:
    """How a process ended."""

    code: int
    told: str
    events: list[dict[str, Any]]
    """What the run's log has of it."""


def ended(
    workspace: Path, at: str, end: Callable[[psutil.Process], object], redirected: str = ""
) -> End:
    """`vizpub ingest`, to which something is done once it tells of that step."""
    run = workspace / "runs/tiny"
    before = len(list(read_journal(run)))
    words = ["--workspace", str(workspace), "ingest", str(TINY), "--run", "tiny", "--no-load"]
    command = ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "cli", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        told = ""
        for line in child.stderr:
            told += line
            if at and line.startswith(at):
                end(psutil.Process(child.pid))
    return End(child.returncode, told, list(read_journal(run))[before:])


def below(process: psutil.Process, word: str) -> list[psutil.Process]:
    """Processes that it started and whose command has the word."""
    return [p for p in process.children(recursive=True) if word in " ".join(p.cmdline())]


def kill_java(process: psutil.Process) -> None:
    (java,) = below(process, "SparkSubmit")
    java.kill()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ends")


@pytest.fixture(scope="module")
def terminated(workspace: Path) -> End:
    return ended(workspace, "versions (", lambda process: process.terminate())


def test_terminated_ingest_exits_143_and_says_so(terminated: End) -> None:
    assert (terminated.code, terminated.told.splitlines()[-1]) == (143, "terminated")
    *_, stage, last = terminated.events
    assert (stage["event"], last["event"], last["note"]) == (
        "stage stopped", "ingest stopped", "terminated",
    )  # fmt: skip


def test_terminated_ingest_leaves_no_temporary_file(terminated: End, workspace: Path) -> None:
    assert [*(workspace / SCRATCH).iterdir()] == []


@pytest.fixture(scope="module")
def quit_(terminated: End, workspace: Path) -> End:
    """By the keys of a terminal, which all of its processes get."""
    return ended(workspace, "versions (", lambda p: os.killpg(p.pid, signal.SIGQUIT))


@pytest.mark.long
def test_quit_ingest_exits_131_and_java_prints_nothing(quit_: End) -> None:
    assert (quit_.code, quit_.told.splitlines()[-1]) == (131, "quit")
    assert "Full thread dump" not in quit_.told


@pytest.fixture(scope="module")
def without_java(terminated: End, workspace: Path) -> End:
    return ended(workspace, "versions (", kill_java)


@pytest.mark.long
def test_ingest_whose_java_is_killed_says_so_in_two_lines(without_java: End) -> None:
    assert without_java.code == 3
    assert "error: Spark failed: its Java process has ended" in without_java.told
    assert "Traceback" not in without_java.told
    assert "\tat " not in without_java.told
    assert "Java process has ended" in without_java.events[-1]["note"]


def test_ingest_without_streams_goes_on_to_the_end(terminated: End, workspace: Path) -> None:
    done = ended(workspace, "", id, "<&- >&- 2>&-")
    assert (done.code, done.told) == (0, "")
    assert run_names(workspace) == ["tiny"]
    run = open_run(workspace, "tiny")
    rows = {name: count for event in done.events for name, count in (event["rows"] or {}).items()}
    assert rows.items() >= {name: run.rows(name) for name in run.manifest.tables}.items()
    assert done.events[-1]["event"] == "ingest ended"
