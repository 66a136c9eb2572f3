"""An ingest that is killed, interrupted or out of disk, and goes on until it is done.

One run is stopped again and again, in ever later stages; in the end it must be the run that
nobody disturbed. At every commit it is stopped in the process of the tests; some
real processes are stopped too, each in another way. This file is also the program that those
run: see `main`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.faults import LARGE, stopping
from tests.support.ingested import TRACES, Store, ingested
from tests.support.words import tells
from vizpub.cli.commands.everyday.ingest import ALREADY
from vizpub.ingest.pipeline import IngestOutcome, ingest
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.spark import scale
from vizpub.machine.locks import lock_of
from vizpub.runstore import writer
from vizpub.runstore.journal import FILE as LOG
from vizpub.runstore.leftovers import SCRATCH, sweep
from vizpub.runstore.manifest import FILE, Manifest, read_manifest, write_manifest
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import writing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
RUN = "stopped"
INPUT = "gossipsub-4"
PATHS = tuple(map(str, TRACES[INPUT]))


@dataclass(frozen=True)
class Stop:
    """Where an ingest stops, and what stops it."""

    stage: str
    moment: str
    """'writing' a first file of the stage, 'written' all but committed nothing, 'committed',
    or 'begun' and the disk full."""
    how: str
    """'kill' everything, 'kill python' alone, 'interrupt' as Ctrl-C does, 'fill' the disk."""


KILL = Stop("periods", "written", "kill")
INTERRUPT = Stop("messages", "writing", "interrupt")
FILL = Stop("metrics", "begun", "fill")
OTHERS = (
    Stop("read", "writing", "kill"),
    Stop("names", "committed", "kill python"),
    INTERRUPT,
    FILL,
    Stop("finish", "committed", "kill"),
)
STAGES = ("read", "names", "periods", "messages", "metrics", "finish")


# What is stopped in the process of the tests.


@dataclass(frozen=True)
class Point:
    """What was there after a stop."""

    manifest: Manifest
    unnamed: set[str]
    """Files of tables that run.json does not name."""
    locked: bool


def point(directory: Path) -> Point:
    manifest = read_manifest(directory)
    return Point(manifest, unnamed(directory, manifest), lock_of(directory).exists())


@dataclass(frozen=True)
class Series:
    """An ingest that was stopped after every commit, and then went on."""

    folder: Path
    before: dict[str, Point]
    """By the stage whose commit was about to be made."""
    after: dict[str, Point]
    """By the stage that was committed last."""
    last: IngestOutcome

    def half(self, stage: str) -> Path:
        """The workspace as it would be, had a kill come just before the stage's commit."""
        return self.folder / "half" / stage


@pytest.fixture(scope="module")
def series(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Series:
    folder, before, after = tmp_path_factory.mktemp("series"), {}, {}
    request = IngestRequest(PATHS, RUN, folder)
    for stage in STAGES:
        copy = folder / "half" / stage / "runs" / RUN
        keep = partial(shutil.copytree, dst=copy)
        with stopping(stage, committed=True, look=keep):
            ingested(spark, request)
        before[stage] = point(copy)
        after[stage] = point(folder / "runs" / RUN)
    return Series(folder, before, after, ingested(spark, request))


@pytest.mark.parametrize("stage", STAGES)
def test_manifest_after_a_commit_names_its_stage(series: Series, stage: str) -> None:
    after = series.after[stage]
    assert after.manifest.stages == STAGES[: STAGES.index(stage) + 1]
    assert after.manifest.complete == (stage == "finish")
    assert not after.locked
    # The last stage lets go what was only staged, and is stopped before that.
    assert all(name.startswith("data/staged/") for name in after.unnamed)
    assert (after.unnamed == set()) == (stage != "finish")


@pytest.mark.parametrize("stage", STAGES)
def test_manifest_before_a_commit_is_that_of_the_previous(series: Series, stage: str) -> None:
    """But for what run.json does not name, which whoever writes next removes."""
    workspace, place = series.half(stage), STAGES.index(stage)
    directory, half = workspace / "runs" / RUN, series.before[stage]
    assert half.manifest.stages == STAGES[:place]
    if place:
        assert half.manifest == series.after[STAGES[place - 1]].manifest
    with writing(workspace, RUN):
        pass
    assert point(directory) == Point(half.manifest, set(), locked=False)
    assert {name for name in half.manifest.directories if (directory / name).is_dir()} == (
        half.manifest.directories
    )


@pytest.mark.parametrize(
    ("stage", "written"),
    [("read", "quarantine"), ("periods", "links"), ("metrics", "metrics/overlay")],
)
def test_tables_are_named_by_their_commit_alone(series: Series, stage: str, written: str) -> None:
    before, after, named = series.before[stage], series.after[stage], f"data/{written}/"
    assert written not in before.manifest.tables
    assert any(name.startswith(named) for name in before.unnamed)
    assert written in after.manifest.tables
    assert not any(name.startswith(named) for name in after.unnamed)
    assert any(name.startswith(named) for name in after.manifest.directories)


def test_ingest_stopped_at_each_commit_equals_the_undisturbed_run(
    series: Series, undisturbed: StoredRun
) -> None:
    assert series.last.already_complete
    check_undisturbed(series.last.run, undisturbed)


@pytest.fixture(scope="module")
def undisturbed(stored: Store) -> StoredRun:
    return stored(INPUT)


def check_undisturbed(run: StoredRun, other: StoredRun) -> None:
    """It says the same as the other, and nothing is left of what it was stopped in."""
    assert unnamed(run.directory, run.manifest) == set()
    assert sorted(path.name for path in run.directory.iterdir() if path.is_file()) == [LOG, FILE]
    assert not [name for name in run.manifest.tables if name.startswith("staged/")]
    assert set(run.manifest.tables) == set(other.manifest.tables)
    for name in other.manifest.tables:
        assert contents(run, name) == contents(other, name), name
    for fact in ("source", "clock", "epoch", "unknown", "notes", "engines", "stages"):
        assert getattr(run.manifest, fact) == getattr(other.manifest, fact)


def contents(run: StoredRun, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.read(name).to_pylist()
    return sorted(found, key=repr)


def unnamed(directory: Path, manifest: Manifest) -> set[str]:
    named = manifest.directories | {"."}
    files = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    shown = manifest.view or "none"
    files = [path for path in files if not path.is_relative_to(shown)]
    return {str(path) for path in files if str(path.parent) not in named}


# The program that is stopped: `python test_kill.py WORKSPACE RUN STOP PATH...`


def main(workspace: str, run: str, stop: str, *paths: str) -> None:
    vars(scale)["SMALL_INPUT"] = LARGE
    stopper = Stopper(Path(workspace), Stop(**json.loads(stop))) if stop else None
    if stopper:
        vars(writer)["write_manifest"] = stopper.write_manifest  # what a commit calls
    request = IngestRequest(paths, run, Path(workspace))
    outcome = ingest(request, stopper.progress if stopper else lambda *_: None)
    print(f"run '{run}' {ALREADY if outcome.already_complete else 'is complete'}")


class Stopper:
    """Stops this process at its place."""

    def __init__(self, workspace: Path, stop: Stop) -> None:
        self.workspace, self.stop, self.watching = workspace, stop, False
        self.really_write = write_manifest

    def progress(self, step: str, done: int, total: int) -> None:
        begun = step.startswith(f"{self.stop.stage} (") and not self.watching
        if begun and self.stop.moment in ("writing", "begun"):
            self.watching = True
            if self.stop.how == "fill":
                fill(self.workspace)
            else:
                Thread(target=self.await_file, args=(self.files(),), daemon=True).start()

    def files(self) -> set[Path]:
        return set((self.workspace / "runs").rglob("*.parquet"))

    def await_file(self, before: set[Path]) -> None:
        while not self.files() - before:
            time.sleep(0.005)
        self.now()

    def write_manifest(self, directory: Path, manifest: Manifest, file: str = FILE) -> None:
        here = manifest.stages[-1:] == (self.stop.stage,)
        if here and self.stop.moment == "written":
            self.now()
        self.really_write(directory, manifest, file)
        if here and self.stop.moment == "committed":
            self.now()

    def now(self) -> None:
        if self.stop.how == "kill python":
            os.kill(os.getpid(), signal.SIGKILL)
        os.killpg(0, signal.SIGINT if self.stop.how == "interrupt" else signal.SIGKILL)


def fill(folder: Path) -> None:
    """Leave nothing of the disk."""
    with (folder / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 10, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


# What looks on.


@dataclass(frozen=True)
class After:
    """What was there after a process was stopped, and what it told."""

    point: Point
    code: int
    text: str


Stopped = dict[Stop, After]


def start(workspace: Path, run: str, stop: Stop | None) -> subprocess.CompletedProcess[str]:
    told = json.dumps(asdict(stop)) if stop else ""
    command = [sys.executable, __file__, str(workspace), run, told, *PATHS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # A group of its own, as a terminal gives it: what stops it stops the JVM too.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as child:
        text, _ = child.communicate(timeout=600)
    return subprocess.CompletedProcess(command, child.returncode, text, "")


def stopped(workspace: Path, stops: Iterable[Stop]) -> Stopped:
    """The run after each stop."""
    found = {}
    for stop in stops:
        if stop.how == "fill" and not os.path.ismount(workspace):
            continue
        done = start(workspace, RUN, stop)
        (workspace / "filler").unlink(missing_ok=True)
        found[stop] = After(point(workspace / "runs" / RUN), done.returncode, done.stdout)
    return found


def of(stopped: Stopped, stop: Stop) -> After:
    if stop not in stopped:
        pytest.skip("a small disk can be mounted by root only")
    return stopped[stop]


def check_reached(after: After, stop: Stop) -> None:
    """The ingest got as far as it was let, and was stopped as meant."""
    reached = STAGES.index(stop.stage) + (stop.moment == "committed")
    assert after.point.manifest.stages == STAGES[:reached], after.text
    assert after.point.manifest.complete == (stop.stage == "finish")
    if stop.how.startswith("kill"):
        assert after.code == -signal.SIGKILL, after.text
    else:
        assert after.code not in (0, -signal.SIGKILL), after.text


@pytest.fixture(scope="module")
def killed_in(series: Series, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the stages before that of the kill."""
    workspace = tmp_path_factory.mktemp("killed")
    shutil.copytree(series.half(KILL.stage), workspace, dirs_exist_ok=True)
    return workspace


@pytest.fixture(scope="module")
def killed(killed_in: Path) -> After:
    return stopped(killed_in, [KILL])[KILL]


@pytest.mark.long
def test_killed_process_leaves_the_committed_stages(killed: After) -> None:
    check_reached(killed, KILL)


@pytest.mark.long
def test_uncommitted_files_of_a_killed_process_stay_unnamed(killed: After) -> None:
    assert any(name.startswith("data/links/") for name in killed.point.unnamed)
    assert "links" not in killed.point.manifest.tables


@pytest.mark.long
def test_temporary_files_of_a_killed_process_are_swept(killed: After, killed_in: Path) -> None:
    assert [*(killed_in / SCRATCH).rglob("blockmgr-*")], killed.text
    sweep(killed_in)
    assert [*(killed_in / SCRATCH).iterdir()] == []


@pytest.mark.long
def test_killed_ingest_resumes_to_the_undisturbed_run(
    killed: After, killed_in: Path, spark: SparkSession, undisturbed: StoredRun
) -> None:
    """The lock of a dead process is in nobody's way."""
    assert killed.point.locked
    outcome = ingested(spark, IngestRequest(PATHS, RUN, killed_in))
    assert not outcome.already_complete
    check_undisturbed(outcome.run, undisturbed)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """On a small disk of its own where one may be mounted."""
    folder = tmp_path_factory.mktemp("kill")
    mounted = ["mount", "-t", "tmpfs", "-o", "size=96m", "vizpub-test", str(folder)]
    is_mounted = os.geteuid() == 0 and not subprocess.run(mounted, check=False).returncode
    yield folder
    if is_mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def others(workspace: Path) -> Stopped:
    return stopped(workspace, OTHERS)


@pytest.mark.long
class TestOthers:
    """Ways to stop a process that rarely tell more."""

    @pytest.mark.parametrize("stop", OTHERS, ids=lambda stop: f"{stop.how}, {stop.stage}")
    def test_ingest_gets_as_far_as_its_stop(self, others: Stopped, stop: Stop) -> None:
        check_reached(of(others, stop), stop)

    def test_interrupted_ingest_says_so_and_frees_the_lock(self, others: Stopped) -> None:
        after = others[INTERRUPT]
        assert "KeyboardInterrupt" in after.text
        assert not after.point.locked

    def test_full_disk_error_names_the_disk(self, others: Stopped) -> None:
        assert "DiskFull: " in of(others, FILL).text

    def test_ingest_after_the_stops_is_already_complete(
        self, others: Stopped, workspace: Path, undisturbed: StoredRun
    ) -> None:
        last = start(workspace, RUN, None)
        assert last.returncode == 0, last.stdout
        tells(last.stdout, f"'{RUN}' {ALREADY}")
        check_undisturbed(open_run(workspace, RUN), undisturbed)


if __name__ == "__main__":
    main(*sys.argv[1:])
