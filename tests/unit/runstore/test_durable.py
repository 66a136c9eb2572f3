"""Power cuts at every operation of an ingest, an append, a replacement and a removal.

After "All File Systems Are Not Created Equal" (Pillai et al., 2014): what was done to files is
recorded, and what a cut may leave of it is built and looked at. A run that was told to be complete
is there, whole; one that is complete is what it says; and the same command goes on.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.crashes import Disk, Operation, Recorder
from tests.support.scripted import FIRST, RUN, SECOND, THIRD, ingest, wanted
from tests.support.tables import everything
from vizpub.ingest.inputs.files import InputFile
from vizpub.model.tables import LINKS
from vizpub.runstore import durable
from vizpub.runstore.integrity import damages
from vizpub.runstore.manifest import FILE
from vizpub.runstore.store import StoredRun, runs
from vizpub.runstore.writer import remove_run

"""A lock of a process that there cannot be."""
OTHER = "tuesday"

State = tuple[InputFile, ...] | None
"""The files that the complete run was made from; null where there is none."""


@dataclass(frozen=True)
class Command:
    """What was called, from which operation on, and when it returned."""

    name: str
    call: Callable[[Path], object]
    before: State
    after: State
    first: int = 0
    last: int = 0


def remove(workspace: Path) -> None:
    if (workspace / "runs" / RUN).is_dir():
        remove_run(workspace, RUN)


BOTH = (FIRST, SECOND)
COMMANDS = (
    Command("ingest", lambda ws: ingest(ws, wanted(FIRST)), None, (FIRST,)),
    Command("append", lambda ws: ingest(ws, wanted(*BOTH, append=True)), (FIRST,), BOTH),
    Command("replace", lambda ws: ingest(ws, wanted(THIRD, replace=True)), BOTH, (THIRD,)),
    Command(
        "replace at once",
        lambda ws: ingest(ws, wanted(FIRST, replace=True), small=True),
        (THIRD,),
        (FIRST,),
    ),
    Command("remove", remove, (FIRST,), None),
)


@dataclass(frozen=True)
class History:
    """All that was done, by which command, and the tables of each state."""

    operations: list[Operation]
    commands: list[Command]
    tables: dict[State, dict[str, pa.Table]]
    anew: dict[State, dict[str, pa.Table]]
    """The same made by one ingest: of two files these are not what an append makes."""
    other: dict[Path, bytes]
    """The tables of another run, as they are stored."""

    def at(self, place: int) -> tuple[Command, bool]:
        """The command under way when so many operations were done, and whether it has returned."""
        command = [c for c in self.commands if c.first <= place][-1]
        return command, place >= command.last


def tables(run: StoredRun) -> dict[str, pa.Table]:
    by = [(column, "ascending") for column in LINKS.names]
    return {name: run.read(name).sort_by(by) for name in run.manifest.tables}


def stored(run: object) -> dict[Path, bytes]:
    """The files of its tables."""
    assert isinstance(run, StoredRun)
    paths = [path for name in run.manifest.tables for path in run.files(name)]
    return {path.relative_to(run.directory): path.read_bytes() for path in paths}


def made_from(run: StoredRun) -> State:
    by_name = {file.sha256: file for file in (FIRST, SECOND, THIRD)}
    return tuple(by_name[told["sha256"]] for told in run.manifest.inputs)


@pytest.fixture(scope="module", autouse=True)
def merging() -> Iterator[None]:
    """An append writes the older part of a table again, as it does with each fourth."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vizpub.runstore.rewriting._OF_A_SIZE", 1)
        yield


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("recorded")
    recorder, commands, found = Recorder(folder), [], {}
    workspace = folder / "ws"
    with recorder.recording():
        ingest(workspace, wanted(FIRST, run=OTHER))
    for command in COMMANDS:
        first = len(recorder.operations)
        with recorder.recording():
            command.call(workspace)
        last = len(recorder.operations)
        commands.append(replace(command, first=first, last=last))
        for run in runs(workspace):
            assert isinstance(run, StoredRun)
            if run.name == RUN:
                assert made_from(run) == command.after
                found[command.after] = tables(run)
    anew = {}
    for files in filter(None, found):
        ingest(folder / "anew", wanted(*files, replace=True))
        (run,) = runs(folder / "anew")
        assert isinstance(run, StoredRun)
        anew[files] = tables(run)
    (other,) = (run for run in runs(workspace) if run.name == OTHER)
    return History(recorder.operations, commands, found, anew, stored(other))


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the cut has time; it is looked at by processes only."""
    for name in ("sync_file", "sync_directory"):
        monkeypatch.setattr(durable, name, lambda path: None)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory, where there is a place for it: a disk takes long to remove folders."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK):
        with TemporaryDirectory(prefix="vizpub-cuts-", dir=memory) as there:
            yield Path(there)
    else:
        yield tmp_path


def check(folder: Path, history: History, place: int, *, anew: bool) -> None:
    """That nothing is lost or wrong after a cut, and that the same command goes on."""
    workspace, (command, is_over) = folder / "ws", history.at(place)
    found = {run.name: run for run in runs(workspace)}
    for run in found.values():
        assert isinstance(run, StoredRun), run
        if run.manifest.complete:
            assert [damage for damage in damages(run.directory, run.manifest) if damage] == []
    assert stored(found[OTHER]) == history.other
    allowed = {command.after} if is_over else {command.before, command.after}
    check_state(found.get(RUN), history.tables, allowed)
    check_seen(workspace, history, allowed)
    if is_over and command.after is None:
        assert not (workspace / "runs" / RUN).exists()
    if anew := anew and command.after is not None:
        ingest(workspace, wanted(*command.after or (), replace=True))
    else:
        command.call(workspace)
    after = {run.name: run for run in runs(workspace)}
    check_state(after.get(RUN), history.anew if anew else history.tables, {command.after})
    if not anew:
        check_seen(workspace, history, {command.after})
    if command.after:
        check_nothing_left(workspace / "runs" / RUN, after[RUN])
    else:
        assert not (workspace / "runs" / RUN).exists()


def check_state(run: object, known: dict[State, dict[str, pa.Table]], allowed: set[State]) -> None:
    state = made_from(run) if isinstance(run, StoredRun) and run.manifest.complete else None
    assert state in allowed
    if state and isinstance(run, StoredRun):
        assert tables(run) == known[state]


def check_seen(workspace: Path, history: History, allowed: set[State]) -> None:
    """That who reads a table's folder finds one of the states, or no folder."""
    folder = workspace / "runs" / RUN / LINKS.name
    if folder.exists():
        by = [(column, "ascending") for column in LINKS.names]
        rows = pq.read_table(folder).cast(LINKS.arrow).sort_by(by)
        assert rows in [history.tables[state][LINKS.name] for state in allowed if state]
    else:
        assert None in allowed or not (folder.parent / "view").exists()


def check_nothing_left(directory: Path, run: object) -> None:
    assert isinstance(run, StoredRun)
    paths = [path for name in run.manifest.tables for path in run.files(name)]
    files = {str(path.relative_to(directory)) for path in paths}
    carried = {f for f in everything(directory) if f.startswith("data/staged/")}
    assert {str(Path(f).parent) for f in carried} <= run.manifest.directories
    assert everything(directory) == files | carried | {FILE}
    assert [*directory.glob("views/*")] == [directory / run.manifest.view]


def places(history: History) -> range:
    return range(history.commands[0].first, len(history.operations) + 1)


def disks(history: History) -> Iterator[tuple[int, Disk]]:
    """The disk after every operation."""
    disk = Disk()
    for place, operation in enumerate(history.operations, start=1):
        disk.do(operation)
        if place in places(history):
            yield place, disk


@pytest.fixture(
    params=[pytest.param(8, id="some"), pytest.param(1, id="any", marks=pytest.mark.long)]
)
def step(request: pytest.FixtureRequest) -> int:
    """Of so many operations one is looked at, and that at which a command returns."""
    return int(request.param)


@pytest.mark.usefixtures("unsynced")
class TestCuts:
    def test_process_killed_at_an_operation_loses_nothing(
        self, history: History, folder: Path, step: int
    ) -> None:
        ends = {command.last for command in history.commands}
        changes = 0
        for place, disk in disks(history):
            if place not in ends:
                if history.operations[place - 1].what == "sync":
                    continue  # all see what they saw before
                changes += 1
                if changes % step:
                    continue
            disk.leave(folder / "left")
            check(folder / "left", history, place, anew=False)

    def test_power_cut_at_an_operation_loses_nothing_that_was_synced(
        self, history: History, folder: Path, step: int
    ) -> None:
        """Of all that was not, nothing is left: what is left changes with what is synced."""
        ends = {command.last for command in history.commands}
        syncs = 0
        for place, disk in disks(history):
            if place not in ends:
                if history.operations[place - 1].what != "sync":
                    continue
                syncs += 1
                if syncs % step:
                    continue
            disk.cut(folder / "left", random.Random(place), share=0)
            check(folder / "left", history, place, anew=place % 2 == 0)

    @pytest.mark.parametrize(
        ("seed", "cuts", "every"), [(14, 1, 9), pytest.param(15, 4, 1, marks=pytest.mark.long)]
    )
    def test_power_cut_with_operations_in_any_order_loses_nothing(
        self, history: History, folder: Path, seed: int, cuts: int, every: int
    ) -> None:
        """So many at one of so many operations; in all some 35, and 1,200."""
        rng = random.Random(seed)
        for place, disk in disks(history):
            for _ in range(0 if place % every else cuts):
                disk.cut(folder / "left", rng, share=rng.choice([0.1, 0.5, 0.9]))
                check(folder / "left", history, place, anew=rng.random() < 0.3)
