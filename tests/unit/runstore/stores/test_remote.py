"""Writing runs in a store, with and without faults: what readers see, and what stays."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.few import few
from tests.support.object_store import (
    Fault,
    Machine,
    Server,
    check_objects,
    in_s3,
    ingest_links,
    object_of,
)
from tests.support.reserved import Reserved
from tests.support.tables import EMPTY, add, links, write
from vizpub.collector.place import CollectionPlace
from vizpub.collector.reservation import check_format, reserve
from vizpub.model.errors import (
    RunCollected,
    RunLocked,
    RunNotComplete,
    ServiceError,
    UnknownName,
    UseError,
)
from vizpub.runstore import leftovers
from vizpub.runstore.integrity import describe_file
from vizpub.runstore.manifest import FILE, Cut
from vizpub.runstore.store import current_manifest, open_run, run_names, runs
from vizpub.runstore.stores import claim, objects
from vizpub.runstore.stores.hdfs import HdfsObjects
from vizpub.runstore.stores.place import RunPlace, store_of, store_of_run
from vizpub.runstore.stores.remote import claiming, collecting
from vizpub.runstore.stores.s3 import S3Objects
from vizpub.runstore.writer import NOT_BEGUN, remove_run, writing

FAULTS: tuple[Fault, ...] = ("503", "slow-down", "cut", "lost", "half")
FIRST, SECOND = links(100, seed=1), links(40, seed=2)


def ingest(workspace: Path, rows: pa.Table = FIRST) -> None:
    ingest_links(workspace, rows)


def stored(workspace: Path) -> pa.Table:
    return open_run(workspace, "monday").read("links")


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    keys = [(name, "ascending") for name in rows.column_names]
    return rows.sort_by(keys).to_pylist()


def names(workspace: Path) -> set[str]:
    """The objects of the run without those that say who wrote it."""
    store = store_of(workspace)
    assert store
    everything = {one.name.removeprefix("runs/monday/") for one in store.walk("runs/monday")}
    return everything - {"claim.json", "log.jsonl"}


def named(workspace: Path) -> set[str]:
    """The objects that run.json names, and itself."""
    manifest = open_run(workspace, "monday").manifest
    parts = [
        f"{part.directory}/{file.name}" for part in manifest.parts for file in part.files or ()
    ]
    return {FILE, *parts}


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def killed_at(count: int, *, after: bool) -> Iterator[list[str]]:
    """Let this process end at a request, before or `after` it took effect, and answer nobody more.
    Yields the requests that were made.
    """
    made: list[str] = []

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            made.append(method.__name__)
            if len(made) > count or (len(made) == count and not after):
                raise Killed
            result = method(*args)
            if len(made) == count:
                raise Killed
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("find", "fetch", "put", "put_if", "delete", "folders"):
            for store in (S3Objects, HdfsObjects):
                patch.setattr(store, name, dying(getattr(store, name)))
        yield made


class TestWriting:
    def test_run_is_read_on_another_machine(self, machine: Machine) -> None:
        ingest(machine("here"))
        elsewhere = machine("elsewhere")
        assert in_order(stored(elsewhere)) == in_order(FIRST)
        assert run_names(elsewhere) == ["monday"]
        assert [run.name for run in runs(elsewhere)] == ["monday"]

    @in_s3
    def test_list_of_runs_reads_each_once(self, workspace: Path, server: Server) -> None:
        for name in ("monday", "tuesday"):
            ingest_links(workspace, FIRST, name)
        with server.counting() as requests:
            assert [run.name for run in runs(workspace)] == ["monday", "tuesday"]
        assert len(requests) == 3

    def test_store_has_what_the_manifest_names(self, workspace: Path) -> None:
        ingest(workspace)
        assert names(workspace) == named(workspace)

    def test_run_that_is_replaced_goes_when_nobody_reads_it(
        self, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leftovers, "KEPT_SECONDS", 600)
        ingest(workspace)
        earlier = open_run(workspace, "monday")
        first = named(workspace)
        ingest(workspace, SECOND)
        assert in_order(earlier.read("links")) == in_order(FIRST)
        assert names(workspace) == first | named(workspace)
        monkeypatch.setattr(leftovers, "KEPT_SECONDS", 0)
        with writing(workspace, "monday"):
            pass
        assert names(workspace) == named(workspace)
        assert in_order(stored(workspace)) == in_order(SECOND)

    def test_uncommitted_run_is_invisible(self, machine: Machine) -> None:
        with writing(machine("here"), "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "versions", "links", FIRST)
            with pytest.raises(UnknownName):
                stored(machine("elsewhere"))

    def test_file_of_a_repeated_task_goes_with_the_commit(self, workspace: Path) -> None:
        """It is in a directory that run.json names, and not named itself."""
        with writing(workspace, "monday") as writer:
            writer.begin(EMPTY)
            assert writer.remote
            writer.place = RunPlace(writer.directory, writer.remote.store)
            new = writer.fresh_directory("links")
            new.mkdir(parents=True)
            (new / "again.parquet").write_bytes(b"x")
            writer.place.share(new / "again.parquet")
            path = new / "rows.parquet"
            pq.write_table(FIRST, path)
            entry = writer.entry_of(new, (describe_file(path),), ())
            writer.commit(replace(EMPTY, tables={"links": entry}, state="complete"))
        assert names(workspace) == named(workspace)

    def test_append_sends_no_file_again_and_fetches_only_those_that_it_cuts(
        self, machine: Machine, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows, more, late = FIRST.sort_by("valid_to"), links(9, seed=4), Cut("valid_to", 40)
        ingest(machine("here"), rows)
        before = open_run(machine("elsewhere"), "monday")
        first = [path.name for path in before.files("links")]
        shutil.rmtree(before.directory)
        monkeypatch.setattr(leftovers, "KEPT_SECONDS", 600)
        with server.counting() as requests, writing(machine("elsewhere"), "monday") as writer:
            assert writer.stored
            writer.begin(replace(EMPTY, extends=writer.stored.identity))
            older = writer.cut("links", writer.stored.tables["links"].parts, late)
            entry = writer.entry(write(writer, "links", more), older)
            assert writer.manifest
            writer.commit(writer.manifest.with_stage("a", {"links": entry}, state="complete"))
        of_files = [object_of(one) for one in requests if one.endswith(".parquet")]
        assert {one for one in of_files if one.split()[1] in first} == {
            f"{verb} {first[-1]}" for verb in ({"GET"} if server.is_s3 else {"OPEN", "READ"})
        }
        wanted = pa.concat_tables([rows.filter(pc.less(rows["valid_to"], 40)), more])
        assert in_order(stored(machine("a third"))) == in_order(wanted)
        assert in_order(before.read("links")) == in_order(rows), "for ten minutes"
        monkeypatch.setattr(leftovers, "KEPT_SECONDS", 0)
        with writing(machine("here"), "monday"):
            pass
        assert names(machine("here")) == named(machine("here"))
        assert in_order(stored(machine("here"))) == in_order(wanted)

    def test_object_of_others_breaks_no_later_write(self, workspace: Path, tmp_path: Path) -> None:
        ingest(workspace)
        store = store_of(workspace)
        assert store
        (tmp_path / "x").write_text("mine")
        store.put("runs/monday/my-notes/x", tmp_path / "x")
        ingest(workspace, SECOND)
        assert in_order(stored(workspace)) == in_order(SECOND)
        assert names(workspace) == {*named(workspace), "my-notes/x"}

    def test_removed_run_leaves_no_object(self, machine: Machine) -> None:
        ingest(machine("here"))
        remove_run(machine("elsewhere"), "monday")
        store = store_of(machine("here"))
        assert store
        assert [*store.walk("runs")] == []
        with pytest.raises(UnknownName):
            remove_run(machine("here"), "monday")
        ingest(machine("here"), SECOND)
        assert in_order(stored(machine("elsewhere"))) == in_order(SECOND)


class TestClaims:
    def test_second_writer_learns_who_the_first_is(self, machine: Machine) -> None:
        with writing(machine("here"), "monday"):
            elsewhere = machine("elsewhere")
            with pytest.raises(RunLocked, match=r"process \d+ on"), writing(elsewhere, "monday"):
                pass
        ingest(elsewhere)
        assert in_order(stored(elsewhere)) == in_order(FIRST)

    def test_writer_whose_claim_was_taken_commits_nothing(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with writing(machine("here"), "monday") as sleeper:
            sleeper.begin(EMPTY)
            monkeypatch.setattr(claim, "LEASE_S", 0)
            ingest(machine("elsewhere"), SECOND)
            with pytest.raises(RunLocked):
                add(sleeper, "versions", "links", FIRST, state="complete")
        assert in_order(stored(machine("a third"))) == in_order(SECOND)

    def test_commit_fails_after_another_even_with_the_claim(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The claim only saves work: run.json decides."""
        ingest(machine("here"))
        monkeypatch.setattr(claim.Claim, "renew", lambda *_, **__: None)
        with writing(machine("here"), "monday") as sleeper:
            sleeper.begin(EMPTY)
            monkeypatch.setattr(claim, "LEASE_S", 0)
            ingest(machine("elsewhere"), SECOND)
            with pytest.raises(RunLocked):
                add(sleeper, "versions", "links", links(9, seed=3), state="complete")
        assert in_order(stored(machine("a third"))) == in_order(SECOND)
        ingest(machine("a third"))
        assert names(machine("a third")) == named(machine("a third"))

    @pytest.mark.parametrize("seed", few(range(200), [0]))
    def test_race_of_two_writers_has_one_winner(self, machine: Machine, seed: int) -> None:
        """Both begin at once, on machines of their own."""
        start, won, lost = threading.Barrier(2), list[str](), list[str]()
        directories = {name: machine(name) / "runs" / "monday" for name in ("here", "elsewhere")}

        def race(name: str) -> None:
            start.wait()
            try:
                with claiming(directories[name]):
                    won.append(name)
                    end.wait()
            except RunLocked:
                lost.append(name)
            finally:
                end.set()

        end = threading.Event()
        # The folder of the second is known by its cache, which a process has one of.
        store = store_of_run(directories["elsewhere"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("vizpub.runstore.stores.remote.store_of_run", lambda _: store)
            threads = [threading.Thread(target=race, args=(name,)) for name in directories]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sorted([*won, *lost]) == ["elsewhere", "here"]
        assert len(won) == 1


class TestCollections:
    def test_other_machines_see_whose_the_run_is(self, machine: Machine) -> None:
        of = Reserved(machine("here"))
        elsewhere = machine("elsewhere")
        for state in ("collecting", "complete"):
            assert current_manifest(elsewhere / "runs" / "lab").state == state
            with pytest.raises(RunCollected):
                ingest_links(elsewhere, SECOND, "lab")
            machine("here")
            of.append()
            machine("elsewhere")
        of.append(ended=True)
        ingest_links(elsewhere, SECOND, "lab")
        assert open_run(elsewhere, "lab").read("links").num_rows == SECOND.num_rows

    @pytest.mark.parametrize("is_begun", few([False, True], [True]))
    def test_collector_goes_on_without_its_copies(self, machine: Machine, is_begun: bool) -> None:
        of = Reserved(machine("here"))
        if is_begun:
            of.append()
        shutil.rmtree(of.workspace / "runs")
        reserve(CollectionPlace(of.workspace, "lab"))
        of.append()
        assert open_run(machine("elsewhere"), "lab").rows("links") == 9

    def test_run_of_a_collector_elsewhere_is_not_removed(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        of = Reserved(machine("here"))
        of.append()
        with collecting(of.workspace / "runs" / "lab"):
            elsewhere = machine("elsewhere")
            with pytest.raises(RunCollected, match=r"collected by process \d+ on"):
                remove_run(elsewhere, "lab")
            with monkeypatch.context() as patch:  # it was killed, and a minute has passed
                patch.setattr(claim, "LEASE_S", 0)
                remove_run(elsewhere, "lab")

    @in_s3
    def test_collector_begins_while_the_store_is_away(
        self, workspace: Path, server: Server
    ) -> None:
        with server.failing(lambda _: "expired"), collecting(workspace / "runs" / "lab"):
            pass

    @pytest.mark.parametrize("is_begun", few([False, True], [True]))
    def test_run_that_another_machine_removed_stays_away(
        self, machine: Machine, is_begun: bool
    ) -> None:
        of = Reserved(machine("here"))
        if is_begun:
            of.append()
        remove_run(machine("elsewhere"), "lab")
        machine("here")
        assert of.of.is_retired
        with pytest.raises(UseError, match=NOT_BEGUN):
            of.append()
        with pytest.raises(UseError, match="--revive"):
            reserve(CollectionPlace(of.workspace, "lab"))
        reserve(CollectionPlace(of.workspace, "lab"), revive=True)
        of.append()

    def test_store_that_is_away_stops_only_a_new_collection(
        self, machine: Machine, server: Server
    ) -> None:
        place = CollectionPlace(Reserved(machine("here")).workspace, "lab")
        with server.failing(lambda _: "expired"):
            check_format(place)
            reserve(place)
            with pytest.raises(ServiceError, match="expired"):
                reserve(CollectionPlace(place.workspace, "other"))


KILLS = [(count, after) for count in range(1, 32) for after in (False, True)]
"""At a request, and before or after it took effect; there are fewer requests."""


class TestKills:
    @pytest.mark.parametrize(("count", "after"), few(KILLS, [(8, True)]))
    def test_kill_leaves_one_run_or_the_other(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, count: int, after: bool
    ) -> None:
        monkeypatch.setattr(claim, "LEASE_S", 0)
        ingest(machine("here"))
        with suppress(Killed), killed_at(count, after=after):
            ingest(machine("elsewhere"), SECOND)
        assert in_order(stored(machine("a third"))) in (in_order(FIRST), in_order(SECOND))
        ingest(machine("here"))
        assert in_order(stored(machine("a third"))) == in_order(FIRST)
        assert names(machine("here")) == named(machine("here"))

    @pytest.mark.parametrize(("count", "after"), few(KILLS, [(6, True)]))
    def test_kill_of_a_first_ingest_or_removal_leaves_nothing_half(
        self, machine: Machine, count: int, after: bool
    ) -> None:
        with suppress(Killed), killed_at(count, after=after):
            ingest(machine("here"))
            remove_run(machine("here"), "monday")
        with suppress(UnknownName, RunNotComplete):
            assert in_order(stored(machine("elsewhere"))) == in_order(FIRST)
        ingest(machine("here"))  # the same machine waits for no lease
        assert in_order(stored(machine("elsewhere"))) == in_order(FIRST)
        remove_run(machine("here"), "monday")
        assert names(machine("here")) == set()


class TestFaults:
    @pytest.mark.parametrize("fault", few(FAULTS, ["lost", "half"]))
    def test_fault_of_each_request_is_survived(
        self, workspace: Path, server: Server, fault: Fault
    ) -> None:
        """Each request of a kind fails once, and is made again."""
        failed: set[str] = set()

        def once(request: str) -> Fault | None:
            kind = re.sub("[0-9a-f]{32}", "", request)
            if kind in failed:
                return None
            failed.add(kind)
            return fault

        with server.failing(once):
            ingest(workspace)
            assert in_order(stored(workspace)) == in_order(FIRST)
        assert names(workspace) == named(workspace)

    @pytest.mark.long
    @pytest.mark.parametrize("seed", range(40))
    def test_random_faults_leave_the_same_tables(
        self, machine: Machine, server: Server, seed: int
    ) -> None:
        """25 faults each: of a writer that may fail, and is then started again."""
        random, faults = Random(seed), [0]

        def sometimes(_: str) -> Fault | None:
            if faults[0] < 25 and random.random() < 0.4:
                faults[0] += 1
                return random.choice(FAULTS)
            return None

        wanted = FIRST
        with server.failing(sometimes):
            while faults[0] < 25:
                wanted = random.choice([FIRST, SECOND])
                with suppress(ServiceError, RunLocked):
                    ingest(machine("here"), wanted)
        ingest(machine("here"), wanted)
        assert in_order(stored(machine("elsewhere"))) == in_order(wanted)
        assert names(machine("here")) == named(machine("here"))

    @pytest.mark.parametrize("first", few(range(1, 24), [9]))
    def test_token_that_expires_is_renewed_and_the_command_repeated(
        self, machine: Machine, server: Server, first: int
    ) -> None:
        """It expires after so many requests of a replacement."""
        ingest(machine("here"))
        left = iter([None] * first)
        # The last requests only tidy up, and nobody hears that they failed.
        with suppress(ServiceError), server.failing(lambda _: next(left, "expired")):
            ingest(machine("here"), SECOND)
        assert in_order(stored(machine("elsewhere"))) in (in_order(FIRST), in_order(SECOND))
        ingest(machine("here"), SECOND)
        assert in_order(stored(machine("elsewhere"))) == in_order(SECOND)
        assert names(machine("here")) == named(machine("here"))

    def test_lasting_fault_is_an_error_that_names_the_store(
        self, workspace: Path, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(objects, "_PAUSES_S", ())
        with server.failing(lambda _: "cut"), pytest.raises(ServiceError, match=server.top()):
            run_names(workspace)


def test_files_of_a_writer_that_ended_behind_its_commit_are_removed_by_the_next(
    machine: Machine, server: Server
) -> None:
    """Although it commits nothing: an append of what the run has, for one."""
    ingest_links(machine("here"), links(100, seed=1))
    run = open_run(machine("here"), "monday")
    store = store_of_run(run.directory)
    assert store
    store.put("runs/monday/data/links/00000000000-dead/a.parquet", Path(__file__))
    with claiming(run.directory):
        pass
    check_objects(run)
    before = store.find(f"runs/monday/{FILE}")
    with server.counting() as requests, claiming(run.directory):
        pass
    assert store.find(f"runs/monday/{FILE}") == before, "nothing was left, so nothing is written"
    assert not any(object_of(request) == f"PUT {FILE}" for request in requests)
    assert open_run(machine("elsewhere"), "monday").read("links").num_rows == 100
