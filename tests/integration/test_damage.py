"""Bits that flip in the files of a run that Spark wrote: no row that is read changes unnoticed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.ingested import Store, copied
from vizpub.model.errors import StoreBroken
from vizpub.runstore import integrity
from vizpub.runstore.integrity import damages, describe_file
from vizpub.runstore.manifest import TableEntry, write_manifest
from vizpub.runstore.store import StoredRun, open_run

pytestmark = pytest.mark.spark

FLIPS = 60


@pytest.fixture(params=["small", "large"])
def run(
    request: pytest.FixtureRequest,
    stored: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StoredRun:
    """Of large files only the end is looked at when they are opened."""
    run = copied(stored("gossipsub-4"), tmp_path)
    if request.param == "large":
        monkeypatch.setattr(integrity, "SMALL_FILE", 0)
        tables = {name: again(run, entry) for name, entry in run.manifest.tables.items()}
        write_manifest(run.directory, replace(run.manifest, tables=tables))
    return open_run(tmp_path, run.name)


def again(run: StoredRun, entry: TableEntry) -> TableEntry:
    """What run.json says of the files, as they are."""
    paths = sorted((run.directory / entry.directory).iterdir())
    return replace(entry, files=tuple(map(describe_file, paths)))


def flips(run: StoredRun, rng: random.Random) -> Iterator[str]:
    """The run with a bit flipped in a file of this table, one after another."""
    places = [(name, path) for name in run.manifest.tables for path in run.files(name)]
    sizes = [path.stat().st_size for _, path in places]
    for name, path in rng.choices(places, sizes, k=FLIPS):
        whole, bit = path.read_bytes(), rng.randrange(8 * path.stat().st_size)
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        yield name
        path.write_bytes(whole)


def test_flipped_bits_are_found_by_check_and_change_no_row_that_is_read(run: StoredRun) -> None:
    seed = 4
    print("seed", seed)
    whole = {name: run.read(name) for name in run.manifest.tables}
    assert [damage for damage in damages(run.directory, run.manifest) if damage] == []
    harmless = 0
    for name in flips(run, random.Random(seed)):
        assert [d.table for d in damages(run.directory, run.manifest) if d] == [name]
        with suppress(StoreBroken):
            assert run.read(name) == whole[name]
            harmless += 1
        with suppress(StoreBroken):
            groups = pa.Table.from_batches(
                (batch for _, batch in run.row_groups(name)), whole[name].schema
            )
            assert same(groups, whole[name])
    assert harmless < FLIPS / 10


def same(rows: pa.Table, others: pa.Table) -> bool:
    return sorted(map(repr, rows.to_pylist())) == sorted(map(repr, others.to_pylist()))
