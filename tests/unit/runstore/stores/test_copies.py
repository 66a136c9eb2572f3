"""Copies of the files of runs in a store: what is fetched, checked, kept and removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from tests.support.object_store import Machine, Server, ingest_links, object_of
from tests.support.tables import links
from vizpub.model.errors import RunChanged, StoreBroken
from vizpub.runstore import leftovers
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.stores.copies import LIMIT
from vizpub.runstore.stores.place import store_of
from vizpub.runstore.writer import remove_run

FIRST = links(100, seed=1)


@pytest.fixture
def run(machine: Machine) -> StoredRun:
    """A run that another machine made."""
    ingest_links(machine("here"), FIRST)
    return open_run(machine("elsewhere"), "monday")


def copies(run: StoredRun) -> list[Path]:
    return sorted(run.directory.rglob("*.parquet"))


def test_files_are_fetched_once_and_by_their_names(run: StoredRun, server: Server) -> None:
    with server.counting() as requests:
        assert run.read("links").num_rows == 100
    read = [request for request in requests if request.startswith(("GET", "READ"))]
    assert {object_of(request)[-8:] for request in requests} == {".parquet"}
    assert len(read) == len(copies(run)) == 3
    with server.counting() as requests:
        assert run.read("links").num_rows == 100
    assert requests == []


@pytest.mark.parametrize(
    ("where", "files"),
    [
        (pc.field("valid_to") < 20, 1),
        ((pc.field("valid_to") >= 50) & (pc.field("src") > 3), 1),
        (pc.field("valid_to") > 1000, 0),
        (pc.field("src") > 3, 3),
    ],
)
def test_only_files_that_may_have_the_rows_are_fetched(
    machine: Machine, server: Server, where: pc.Expression, files: int
) -> None:
    rows = FIRST.sort_by("valid_to")
    ingest_links(machine("here"), rows)
    run = open_run(machine("elsewhere"), "monday")
    with server.counting() as requests:
        read = run.read("links", where=where)
    assert len({object_of(request).split()[1] for request in requests}) == files
    wanted = ds.dataset(rows).to_table(filter=where)
    keys = [(name, "ascending") for name in rows.column_names]
    assert read.sort_by(keys).equals(wanted.sort_by(keys))


def test_damaged_or_lost_copy_is_fetched_again(run: StoredRun) -> None:
    run.read("links")
    lost, damaged, _ = copies(run)
    lost.unlink()
    damaged.write_bytes(bytes(damaged.stat().st_size))
    assert run.read("links").num_rows == 100


def test_file_with_other_bytes_in_the_store_is_refused(run: StoredRun, tmp_path: Path) -> None:
    store = store_of(run.directory.parents[1])
    assert store
    name = next(one.name for one in store.walk("runs/monday/data"))
    size = next(one.size for one in store.walk("runs/monday/data"))
    (tmp_path / "other").write_bytes(bytes(size))
    store.put(name, tmp_path / "other")
    with pytest.raises(StoreBroken, match=name):
        run.read("links")
    assert len(copies(run)) < 3


def test_missing_file_is_damage_until_the_run_has_changed(run: StoredRun, machine: Machine) -> None:
    store = store_of(run.directory.parents[1])
    assert store
    store.delete([one.name for one in store.walk("runs/monday/data")])
    with pytest.raises(StoreBroken, match="missing"):
        run.read("links")
    remove_run(machine("here"), "monday")
    with pytest.raises(RunChanged):
        run.read("links")


def test_copies_beyond_the_limit_go_unless_they_were_used_lately(
    run: StoredRun, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "KEPT_SECONDS", 600)
    monkeypatch.setenv(LIMIT, "0")
    run.read("links")
    earlier, late, other = copies(run)
    os.utime(earlier, (time.time() - 700,) * 2)
    other.unlink()
    run.read("links", where=None)
    assert {*copies(run)} == {earlier, late, other}  # reading is use
    os.utime(earlier, (time.time() - 700,) * 2)
    ingest_links(machine("here"), FIRST, "tuesday")
    open_run(machine("elsewhere"), "tuesday").read("links")
    assert {*copies(run)} == {late, other}


def test_files_that_are_not_in_the_store_yet_never_go(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vizpub.runstore.writer import writing

    monkeypatch.setattr(leftovers, "KEPT_SECONDS", 600)
    monkeypatch.setenv(LIMIT, "0")
    ingest_links(machine("here"), FIRST)
    with writing(machine("elsewhere"), "lab") as writer:
        new = writer.fresh_directory("links")
        new.mkdir(parents=True)
        (new / "a.parquet").write_bytes(b"x")
        os.utime(new / "a.parquet", (1, 1))
        open_run(machine("elsewhere"), "monday").read("links")
        assert (new / "a.parquet").exists()
