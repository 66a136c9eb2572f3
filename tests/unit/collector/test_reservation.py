"""How a collection takes the name of its run, and what a kill leaves of that, and of a removal."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.support.crashes import Disk, Recorder
from tests.support.reserved import LAB, Reserved
from tests.support.tables import add, everything, links
from tests.support.words import naming
from vizpub.collector.place import CollectionPlace
from vizpub.collector.reservation import NOT_OURS, release, reserve
from vizpub.model.errors import RunLocked, StoreBroken, UnknownName, UseError
from vizpub.runstore.collection import RETIRED, Collected, retired_collections
from vizpub.runstore.leftovers import sweep
from vizpub.runstore.manifest import FILE, read_manifest
from vizpub.runstore.store import runs
from vizpub.runstore.writer import NOT_BEGUN, remove_run, removing, writing

ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(tmp_path: Path) -> CollectionPlace:
    found = CollectionPlace(tmp_path, "lab")
    found.make()
    return found


def ingested(workspace: Path) -> None:
    """A run of the name, by another command."""
    with writing(workspace, "lab") as writer:
        writer.begin(LAB)
        add(writer, "versions", "links", links(9, seed=1), state="complete")


def test_name_is_taken_once_and_given_back(place: CollectionPlace) -> None:
    for _ in range(2):
        reserve(place)
        assert place.owns(read_manifest(place.workspace / "runs/lab"))
    release(place)
    assert runs(place.workspace) == []
    release(place)
    ingested(place.workspace)
    release(place)
    assert [run.name for run in runs(place.workspace)] == ["lab"]


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("is_broken", [False, True])
def test_run_of_another_command_is_not_joined(
    place: CollectionPlace, *, told: bool, is_broken: bool
) -> None:
    """Nor where the name was the collection's once, and is told what can be done."""
    ingested(place.workspace)
    if is_broken:
        (place.workspace / "runs/lab" / FILE).write_text("{")
    if told:
        (place.batches / "1").touch()
    before = everything(place.workspace)
    what = ["vizpub live collect lab --revive"] if told else []
    for revive in (False, True):
        with pytest.raises(UseError, match=naming("lab", NOT_OURS, *what)):
            reserve(place, revive=revive)
    assert everything(place.workspace) == before


def test_run_that_is_being_made_is_not_joined(place: CollectionPlace) -> None:
    with writing(place.workspace, "lab"), pytest.raises(RunLocked):
        reserve(place)


def test_append_of_a_killed_collector_stops_no_start(tmp_path: Path) -> None:
    """It ends by itself."""
    case = Reserved(tmp_path)
    with case.writer(collects=True):
        reserve(CollectionPlace(tmp_path, "lab"))


def test_killed_collector_adds_nothing_to_a_run_that_is_made_again(tmp_path: Path) -> None:
    """What it has may be a later batch than the first."""
    case = Reserved(tmp_path)
    earlier = case.made
    remove_run(tmp_path, "lab")
    reserve(CollectionPlace(tmp_path, "lab"), revive=True)
    with case.writer(collects=True) as writer:
        with pytest.raises(UseError, match=naming("lab", NOT_BEGUN)):
            writer.begin(earlier)
        writer.begin(case.made)


def test_broken_run_of_the_collection_stops_no_start(tmp_path: Path) -> None:
    Reserved(tmp_path).append()
    (tmp_path / "runs/lab" / FILE).write_text("{")
    reserve(CollectionPlace(tmp_path, "lab"))
    with pytest.raises(StoreBroken):
        read_manifest(tmp_path / "runs/lab")


_KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from vizpub.collector.place import CollectionPlace
from vizpub.collector.reservation import reserve
from vizpub.runstore.writer import removing

def remove(place, with_log=False):
    with removing(place.workspace, place.run, with_log=with_log):
        pass

def begin(place):
    place.make()
    reserve(place)

commands = {
    "reserve": begin,
    "revive": lambda place: reserve(place, revive=True),
    "remove": remove,
    "remove with log": lambda place: remove(place, with_log=True),
}

def counting(really, left):
    def call(*given, **options):
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left.pop()
        return really(*given, **options)
    return call

before, folder, command = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
status, number = signal.SIGKILL, 0
while status == signal.SIGKILL:
    workspace = folder / str(number)
    shutil.copytree(before, workspace)
    if not (child := os.fork()):
        left = [None] * number
        for name in ("fsync", "mkdir", "open", "rename", "replace", "rmdir", "unlink"):
            setattr(os, name, counting(getattr(os, name), left))
        commands[command](CollectionPlace(workspace, "lab"))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    number += 1
sys.exit(status)
"""


def after_kills(before: Path, command: str) -> list[Path]:
    """Workspaces in which the command was killed before each of its system calls, and at last one
    in which it was not.
    """
    folder = before.with_name("killed")
    told = [sys.executable, "-c", _KILLED, str(before), str(folder), command]
    subprocess.run(told, cwd=ROOT, check=True, timeout=500)
    found = sorted(folder.iterdir(), key=lambda path: int(path.name))
    assert len(found) > 2
    return found


class TestKilled:
    def test_name_is_taken_by_the_same_command(self, tmp_path: Path) -> None:
        (tmp_path / "before").mkdir()
        for workspace in after_kills(tmp_path / "before", "reserve"):
            sweep(workspace)
            place = CollectionPlace(workspace, "lab")
            place.make()
            reserve(place)
            assert [run.name for run in runs(workspace)] == ["lab"]
            assert place.owns(read_manifest(workspace / "runs/lab"))
            assert retired_collections(workspace) == []

    @pytest.mark.long
    def test_run_is_removed_by_the_same_command_and_revived(self, tmp_path: Path) -> None:
        Reserved(tmp_path / "before").append()
        *halves, removed = after_kills(tmp_path / "before", "remove")
        for workspace in (*halves, removed):
            sweep(workspace)
            with suppress(UnknownName):  # of what another command has swept
                remove_run(workspace, "lab")
            assert runs(workspace) == []
            assert [of.run for of in retired_collections(workspace)] == ["lab"]
            with pytest.raises(UseError, match=naming(RETIRED, "vizpub live collect lab --revive")):
                reserve(CollectionPlace(workspace, "lab"))
        removed.rename(tmp_path / "removed")
        shutil.rmtree(tmp_path / "killed")
        for workspace in after_kills(tmp_path / "removed", "revive"):
            sweep(workspace)
            assert (Collected(workspace, "lab").batches / "1").exists()
            reserve(CollectionPlace(workspace, "lab"), revive=True)
            assert retired_collections(workspace) == []

    @pytest.mark.long
    def test_collection_is_whole_or_gone(self, tmp_path: Path) -> None:
        Reserved(tmp_path / "before").append()
        whole = everything(tmp_path / "before/collected/lab")
        for workspace in after_kills(tmp_path / "before", "remove with log"):
            of = Collected(workspace, "lab")
            assert everything(of.folder) - {".collect.lock"} in (whole, set())
            assert of.folder.is_dir() or runs(workspace) == []
            sweep(workspace)
            with suppress(UnknownName):
                remove_with_log(workspace)
            assert everything(workspace) == set()


def test_power_cut_leaves_the_name_with_all_that_was_told(tmp_path: Path) -> None:
    """And a removal with the log leaves all of it, or nothing that a collector could go on with."""
    workspace = tmp_path / "made"
    workspace.mkdir()
    recorder, ends = Recorder(workspace), list[int]()

    def reserve_and_append() -> None:
        Reserved(workspace).append()

    for command in (reserve_and_append, partial(remove_with_log, workspace)):
        with recorder.recording():
            command()
        ends.append(len(recorder.operations))
    disk, left = Disk(), tmp_path / "left"
    of = Collected(left, "lab")
    for number, operation in enumerate(recorder.operations, start=1):
        disk.do(operation)
        for seed, share in enumerate((0.0, 0.5, 1.0)):
            disk.cut(left, random.Random(seed), share)
            sweep(left)
            is_told = (of.batches / "1").exists()
            there = [run.name for run in runs(left)]
            if number <= ends[0]:  # before the removal
                assert is_told or number < ends[0]
                assert not is_told or of.owns(read_manifest(left / "runs/lab"))
            else:
                assert is_told or not there
                assert is_told or not of.folder.exists()
                with suppress(UnknownName):
                    remove_with_log(left)
                assert everything(left) == set()


def remove_with_log(workspace: Path) -> None:
    with removing(workspace, "lab", with_log=True):
        pass
