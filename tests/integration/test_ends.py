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

from tests.support.ingested import TINY, Store
from tests.support.words import tells
from vizpub.ingest.spark.session import JAVA_GONE
from vizpub.model.errors import SparkFailed
from vizpub.runstore.journal import read_journal
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.store import StoredRun, open_run, run_names

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
TRAP = """
import os, signal, sys

def spring(event, args):
    if event == "open" and "/staged/" in str(args[0]) and "pyspark.worker" in sys.modules:
        try:
            path = os.environ["SPRUNG"].format(pid=os.getpid())
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(spring)
"""
"""What every Python imports as it starts: the first of Spark's workers that has written a file, and
opens it to see it on disk, is killed.
"""


@dataclass(frozen=True)
class End:
    """How a process ended."""

    code: int
    told: str
    events: list[dict[str, Any]]
    """What the run's log has of it."""
    left: list[Path]
    """Temporary files and folders."""


def ended(
    workspace: Path,
    at: str,
    end: Callable[[psutil.Process], object],
    redirected: str = "",
    **variables: str,
) -> End:
    """`vizpub ingest`, to which something is done once it tells of that step."""
    run = workspace / "runs/tiny"
    before = len(list(read_journal(run)))
    words = ["--workspace", str(workspace), "ingest", str(TINY), "--run", "tiny", "--no-load"]
    command = [
        "sh",
        "-c",
        f'exec "$@" {redirected}',
        "sh",
        sys.executable,
        "-m",
        "vizpub.cli",
        *words,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, start_new_session=True, preexec_fn=_hear,  # noqa: PLW1509
    ) as child:  # fmt: skip
        assert child.stderr is not None
        told = ""
        for line in child.stderr:
            told += line
            if at and line.startswith(at):
                end(psutil.Process(child.pid))
    left = [*(workspace / SCRATCH).rglob("*")]
    return End(child.returncode, told, list(read_journal(run))[before:], left)


def _hear() -> None:
    """A shell has what it runs in the background, as maybe these tests, ignore some signals."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


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
    return ended(workspace, "periods (", lambda process: process.terminate())


def test_terminated_ingest_exits_143_and_says_so(terminated: End) -> None:
    assert (terminated.code, terminated.told.splitlines()[-1]) == (143, "terminated")
    *_, stage, last = terminated.events
    assert (stage["event"], last["event"], last["note"]) == (
        "stage stopped", "ingest stopped", "terminated",
    )  # fmt: skip


def test_terminated_ingest_leaves_no_temporary_file(terminated: End) -> None:
    assert terminated.left == []


@pytest.fixture(scope="module")
def quit_(terminated: End, workspace: Path) -> End:
    """By the keys of a terminal, which all of its processes get."""
    return ended(workspace, "periods (", lambda p: os.killpg(p.pid, signal.SIGQUIT))


def test_quit_ingest_exits_131_and_java_prints_nothing(quit_: End) -> None:
    assert (quit_.code, quit_.told.splitlines()[-1]) == (131, "quit")
    assert "Full thread dump" not in quit_.told


@pytest.fixture(scope="module")
def without_java(terminated: End, workspace: Path) -> End:
    return ended(workspace, "periods (", kill_java)


def test_ingest_whose_java_is_killed_says_so_in_two_lines(without_java: End) -> None:
    assert without_java.code == 3
    tells(without_java.told, f"error: {SparkFailed(JAVA_GONE)}".splitlines()[0])
    assert "Traceback" not in without_java.told
    assert "\tat " not in without_java.told
    tells(without_java.events[-1]["note"], JAVA_GONE)


def test_ingest_without_streams_goes_on_to_the_end(terminated: End, workspace: Path) -> None:
    done = ended(workspace, "", id, "<&- >&- 2>&-")
    assert (done.code, done.told) == (0, "")
    assert run_names(workspace) == ["tiny"]
    run = open_run(workspace, "tiny")
    rows = {name: count for event in done.events for name, count in (event["rows"] or {}).items()}
    assert rows.items() >= {name: run.rows(name) for name in run.manifest.tables}.items()
    assert done.events[-1]["event"] == "ingest ended"
    assert [path for path in done.left if path.is_file()] == []


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> tuple[End, Path]:
    """An ingest of which one Python worker is killed, and its workspace."""
    folder = tmp_path_factory.mktemp("trap")
    (folder / "sitecustomize.py").write_text(TRAP)
    paths, sprung = os.pathsep.join(map(str, (folder, ROOT))), folder / "sprung"
    end = ended(folder / "there", "", id, PYTHONPATH=paths, SPRUNG=str(sprung))
    assert sprung.exists()
    return end, folder / "there"


class TestKilledWorker:
    """It takes the whole of an ingest in a process."""

    def test_killed_worker_is_told_of_in_a_line_and_in_the_log(
        self, trapped: tuple[End, Path]
    ) -> None:
        end, _ = trapped
        line = "1 Spark task failed and was restarted: a Python worker has ended, "
        (told,) = (text for text in end.told.splitlines() if "worker" in text)
        assert told == f"{line}for example because memory ran out"
        assert "Traceback" not in end.told
        (note,) = (event for event in end.events if event["event"] == "note")
        assert (note["stage"], note["note"]) == ("read", told)

    def test_run_whose_worker_was_killed_equals_the_undisturbed(
        self, trapped: tuple[End, Path], stored: Store
    ) -> None:
        end, workspace = trapped
        assert end.code == 0, end.told
        assert contents(open_run(workspace, "tiny")) == contents(stored("tiny"))

    def test_killed_worker_leaves_no_temporary_file(self, trapped: tuple[End, Path]) -> None:
        end, workspace = trapped
        assert end.left == []
        assert not (workspace / "runs/tiny/staged").exists()


def contents(run: StoredRun) -> dict[str, list[str]]:
    """The rows of every table, in an order of their own."""
    assert run.manifest.complete
    return {name: sorted(map(repr, run.read(name).to_pylist())) for name in run.manifest.tables}
