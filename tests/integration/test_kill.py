"""An ingest that is killed, interrupted or out of disk, and goes on until it is done.

One run is stopped again and again, in ever later stages, each time in another way; in the
end it must be the run that nobody disturbed. This file is also the program that is stopped:
see `main`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ingest import store
from ingest.manifest import FILE, Manifest, read_manifest, write_manifest
from ingest.store import StoredRun, open_run

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
RUN = "stopped"
FILES = 4
LOCK = ".lock"


@dataclass(frozen=True)
class Stop:
    """Where an ingest stops, and what stops it."""

    stage: str
    moment: str
    """'writing' a first file of the stage, 'written' all but committed nothing, 'committed',
    or 'begun' and the disk full."""
    how: str
    """'kill' everything, 'kill python' alone, 'interrupt' as Ctrl-C does, 'fill' the disk."""


STOPS = (
    Stop("parse", "writing", "kill"),
    Stop("observe", "committed", "kill python"),
    Stop("versions", "written", "kill"),
    Stop("receptions", "writing", "interrupt"),
    Stop("structure", "begun", "fill"),
    Stop("finish", "committed", "kill"),
)
STAGES = (
    *("parse", "describe", "observe", "index", "presence", "versions", "messages"),
    *("receptions", "structure", "message metrics", "peer and topic metrics"),
    *("overlay metrics", "finish"),
)


# The program that is stopped: `python test_kill.py WORKSPACE RUN STOP PATH...`


def main(workspace: str, run: str, stop: str, *paths: str) -> None:
    from ingest.pipeline import IngestRequest, ingest

    stopper = Stopper(Path(workspace), Stop(**json.loads(stop))) if stop else None
    if stopper:
        vars(store)["write_manifest"] = stopper.write_manifest  # what a commit calls
    request = IngestRequest(paths, run, Path(workspace))
    outcome = ingest(request, stopper.progress if stopper else lambda *_: None)
    print("already complete" if outcome.already_complete else "complete")


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
    """What was there after a stop."""

    code: int
    text: str
    manifest: Manifest
    unnamed: set[str]
    """Files that run.json does not name."""


def start(workspace: Path, run: str, stop: Stop | None) -> subprocess.CompletedProcess[str]:
    paths = sorted((ROOT / "examples/gossipsub").glob("*.ndjson.gz"))[:FILES]
    told = json.dumps(asdict(stop)) if stop else ""
    command = [sys.executable, __file__, str(workspace), run, told, *map(str, paths)]
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


def unnamed(directory: Path, manifest: Manifest) -> set[str]:
    named = manifest.directories | {"."}
    files = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    return {str(path) for path in files if str(path.parent) not in named}


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
def stopped(workspace: Path) -> dict[Stop, After]:
    """The run after each stop; in the end it is complete."""
    found = {}
    for stop in STOPS:
        if stop.how == "fill" and not os.path.ismount(workspace):
            continue
        done = start(workspace, RUN, stop)
        (workspace / "filler").unlink(missing_ok=True)
        directory = workspace / "runs" / RUN
        manifest = read_manifest(directory)
        found[stop] = After(done.returncode, done.stdout, manifest, unnamed(directory, manifest))
    return found


@pytest.fixture(scope="module")
def last(workspace: Path, stopped: dict[Stop, After]) -> subprocess.CompletedProcess[str]:
    """The start that nobody stopped."""
    return start(workspace, RUN, None)


def of(stopped: dict[Stop, After], stop: Stop) -> After:
    if stop not in stopped:
        pytest.skip("a small disk can be mounted by root only")
    return stopped[stop]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: f"{stop.how}, {stop.stage}")
def test_each_start_gets_as_far_as_it_was_let(stopped: dict[Stop, After], stop: Stop) -> None:
    after = of(stopped, stop)
    reached = STAGES.index(stop.stage) + (stop.moment == "committed")
    assert after.manifest.stages == STAGES[:reached], after.text
    assert after.manifest.complete == (stop.stage == "finish")


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: f"{stop.how}, {stop.stage}")
def test_it_was_stopped_as_meant(stopped: dict[Stop, After], stop: Stop) -> None:
    after = of(stopped, stop)
    if stop.how.startswith("kill"):
        assert after.code == -signal.SIGKILL, after.text
    else:
        assert after.code not in (0, -signal.SIGKILL), after.text


def test_what_was_half_written_is_named_nowhere(stopped: dict[Stop, After]) -> None:
    written = stopped[STOPS[2]]
    assert any(name.startswith("links/") for name in written.unnamed)
    assert "links" not in written.manifest.tables


def test_ctrl_c_is_told_and_lets_the_run_go(stopped: dict[Stop, After]) -> None:
    after = stopped[STOPS[3]]
    assert "KeyboardInterrupt" in after.text
    assert LOCK not in after.unnamed


def test_a_full_disk_is_told(stopped: dict[Stop, After]) -> None:
    assert "DiskFull: " in of(stopped, STOPS[4]).text


def test_the_last_start_finds_all_done(last: subprocess.CompletedProcess[str]) -> None:
    assert last.returncode == 0, last.stdout
    assert "already complete" in last.stdout


def test_nothing_is_left_that_run_json_does_not_name(
    last: subprocess.CompletedProcess[str], workspace: Path
) -> None:
    run = open_run(workspace, RUN)
    assert unnamed(run.directory, run.manifest) == set()
    assert sorted(path.name for path in run.directory.iterdir() if path.is_file()) == [FILE]


def test_what_was_only_staged_is_let_go(
    last: subprocess.CompletedProcess[str], workspace: Path
) -> None:
    tables = open_run(workspace, RUN).manifest.tables
    assert not [name for name in tables if name.startswith("staged/")]


def test_it_is_the_run_that_nobody_disturbed(
    last: subprocess.CompletedProcess[str], workspace: Path, tmp_path: Path
) -> None:
    undisturbed = start(tmp_path, RUN, None)
    assert undisturbed.returncode == 0, undisturbed.stdout
    run, other = open_run(workspace, RUN), open_run(tmp_path, RUN)
    assert set(run.manifest.tables) >= set(other.manifest.tables)
    for name in other.manifest.tables:
        assert contents(run, name) == contents(other, name), name
    for fact in ("source", "clock", "epoch", "unknown", "notes", "engines", "stages"):
        assert getattr(run.manifest, fact) == getattr(other.manifest, fact)


def contents(run: StoredRun, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run.read(name).to_pylist()
    return sorted(found, key=repr)


if __name__ == "__main__":
    main(*sys.argv[1:])
