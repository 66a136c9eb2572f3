"""Damage to stored files: what is read is what was written, or there is an error."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.tables import EMPTY, links
from tests.support.words import naming
from vizpub.model.errors import StoreBroken
from vizpub.model.tables import LINKS
from vizpub.runstore import integrity
from vizpub.runstore.integrity import (
    OTHER_BYTES,
    OUTSIDE,
    damages,
    describe_file,
    files_of,
    is_intact,
)
from vizpub.runstore.manifest import Part
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import writing

FLIPS = 60
WHY = {
    "empty": "it has 0 bytes, and run.json says",
    "torn": "it has 1,000 bytes, and run.json says",
    "zeros": OTHER_BYTES,
    "gone": "a file of table links is missing",
    "link": "a file of table links is a link",
    "other": "bytes, and run.json says",
}
SORTED = [(name, "ascending") for name in LINKS.names]


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    """A table in two files with dictionaries, statistics, pages of their own and page checksums."""
    rows = links(3000, seed=5)
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
        directory = writer.fresh_directory("links")
        directory.mkdir(parents=True)
        for place, part in enumerate((rows.slice(0, 2000), rows.slice(2000))):
            path = directory / f"part-{place}.parquet"
            pq.write_table(
                part, path, row_group_size=500, data_page_size=512, write_page_checksum=True,
                write_page_index=True,
            )  # fmt: skip
        assert writer.manifest is not None
        made = writer.manifest.with_stage("all", {"links": writer.entry(directory)})
        writer.commit(replace(made, state="complete"))
    return open_run(tmp_path, "monday")


def damaged(run: StoredRun) -> list[str]:
    return [found.file for found in damages(run.directory, run.manifest) if found]


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """As what the files are treated; set before they are written."""
    if request.param == "large":
        monkeypatch.setattr(integrity, "SMALL_FILE", 0)
    return str(request.param)


def flips(run: StoredRun, rng: random.Random, count: int) -> Iterator[Path]:
    """The run with a bit flipped somewhere, one after another: in this file."""
    files = run.files("links")
    for _ in range(count):
        path = rng.choice(files)
        whole = path.read_bytes()
        bit = rng.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        yield path
        path.write_bytes(whole)


def test_flipped_bit_changes_no_row_or_is_an_error(size: str, run: StoredRun) -> None:
    seed = 11
    print("seed", seed)
    late = pc.field("valid_from") > 30
    whole, some, unharmed = run.read("links"), run.read("links", ["src"], late), 0
    for path in flips(run, random.Random(seed), FLIPS):
        assert damaged(run) == [str(path.relative_to(run.directory))]
        with suppress(StoreBroken):
            assert run.read("links") == whole
            unharmed += 1
        with suppress(StoreBroken):
            assert run.read("links", ["src"], late) == some
        with suppress(StoreBroken):
            groups = pa.Table.from_batches(batch for _, batch in run.row_groups("links"))
            assert groups.sort_by(SORTED) == whole.sort_by(SORTED)
    print("harmless", unharmed)
    assert unharmed <= (0 if size == "small" else FLIPS // 4)
    assert damaged(run) == []
    assert run.read("links") == whole


def test_flip_behind_the_pages_is_found_at_open(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the columns lie and what may be skipped stands there; no page has a checksum of it."""
    monkeypatch.setattr(integrity, "SMALL_FILE", 0)
    (path, *_), (part,) = run.files("links"), run.manifest.tables["links"].parts
    told = describe_file(path)
    assert told.pages_end is not None
    assert 0 < told.pages_end < told.size
    meta, whole = pq.read_metadata(path), path.read_bytes()
    assert whole.rindex(b"PAR1") == told.size - 4
    last = meta.row_group(meta.num_row_groups - 1).column(meta.num_columns - 1)
    assert told.pages_end == last.dictionary_page_offset + last.total_compressed_size
    part = replace(part, files=(told,))
    for byte in (told.pages_end, told.size - 1):
        path.write_bytes(whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1 :])
        with pytest.raises(StoreBroken, match=OTHER_BYTES):
            files_of(run.directory, part, "links")
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert files_of(run.directory, part, "links") == [path]


@pytest.mark.parametrize("way", WHY)
def test_damaged_file_is_named_with_what_to_do(run: StoredRun, tmp_path: Path, way: str) -> None:
    path, (part,) = run.files("links")[1], run.manifest.tables["links"].parts
    assert is_intact(run.directory, part)
    whole = path.read_bytes()
    path.unlink()
    if way in ("empty", "torn", "zeros"):
        path.write_bytes({"empty": b"", "torn": whole[:1000], "zeros": bytes(len(whole))}[way])
    elif way == "link":
        (tmp_path / "elsewhere").write_bytes(whole)
        path.symlink_to(tmp_path / "elsewhere")
    elif way == "other":
        shutil.copy(run.directory / part.directory / "part-0.parquet", path)
    assert not is_intact(run.directory, part)
    with pytest.raises(StoreBroken, match=path.name) as told:
        run.read("links")
    assert WHY[way] in told.value.why
    assert "vizpub runs check" in str(told.value)
    assert damaged(run) == [f"{part.directory}/{path.name}"]


def test_directory_that_leads_out_is_not_read(run: StoredRun, tmp_path: Path) -> None:
    (part,) = run.manifest.tables["links"].parts
    (run.directory / part.directory).rename(tmp_path / "elsewhere")
    (run.directory / part.directory).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreBroken, match=naming("links", OUTSIDE)):
        run.read("links")
    assert len(damaged(run)) == 2


def test_run_behind_a_link_is_read(run: StoredRun, tmp_path: Path) -> None:
    """A workspace may be on another disk; what a run names is below the run all the same."""
    run.directory.rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", run.directory)
    assert open_run(tmp_path, "monday").read("links").num_rows == 3000
    assert damaged(run) == []


def test_other_count_of_rows_is_an_error(run: StoredRun) -> None:
    entry = run.manifest.tables["links"]
    told = replace(run.manifest, tables={"links": replace(entry, rows=2999)})
    with pytest.raises(StoreBroken, match=naming("3,000", "2,999")):
        replace(run, manifest=told).read("links")
    assert entry.files is not None
    fewer = replace(entry.files[0], rows=1999)
    told = replace(told, tables={"links": replace(entry, files=(fewer,))})
    (damage,) = filter(None, damages(run.directory, told))
    assert damage.why == "it has 2,000 rows, and run.json says 1,999"


def test_files_that_no_manifest_lists_are_checked_as_far_as_they_tell(run: StoredRun) -> None:
    (path, other), entry = run.files("links"), run.manifest.tables["links"]
    older = replace(run.manifest, tables={"links": replace(entry, files=None)})
    assert list(damages(run.directory, older)) == [None, None]
    path.write_bytes(b"")
    found = [damage for damage in damages(run.directory, older) if damage]
    assert [damage.file for damage in found] == [str(path.relative_to(run.directory))]
    shutil.rmtree(other.parent)
    (gone,) = damages(run.directory, older)
    assert gone is not None
    assert "are missing" in gone.why
    assert not is_intact(run.directory, Part(entry.directory, 1))
