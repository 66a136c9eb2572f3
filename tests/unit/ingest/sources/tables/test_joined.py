"""Rows joined by column, against the same rows taken one by one."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.staged import staged
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import InputRow, RowKind
from vizpub.ingest.sources.base import SourceInput, SourceOptions
from vizpub.ingest.sources.edges.source import Edges
from vizpub.ingest.sources.tables.joined import join_intervals
from vizpub.ingest.sources.tables.units import SECOND_US
from vizpub.reports.fields import LAST_INTERVAL

SOURCE = Edges()
_NAMES = ["a", "b", "é", "", "a\x00"]


def _read(path: Path) -> list[InputRow]:
    encoding = SOURCE.recognises(str(path), path.read_bytes())
    assert encoding
    files = [InputFile(str(path), encoding, 0, "")]
    read = SOURCE.reader(SourceInput(files, SourceOptions(), lambda _: []))
    return [row for split in SOURCE.splits(files) for row in read(split)]


def _told(rows: list[InputRow]) -> tuple[dict[tuple[str | None, ...], set[int]], list[int], int]:
    """The intervals of each link; the lines that are refused; how many records there are."""
    links, refused, seen = defaultdict[tuple[str | None, ...], set[int]](set), [], 0
    for row in rows:
        if row.kind == RowKind.TALLY:
            seen += msgspec.json.decode(row.record)
        elif row.kind == RowKind.REFUSED:
            refused.append(row.line)
            seen += 1
        else:
            *link, end = msgspec.json.decode(row.record)
            links[row.peer, *link] |= set(range(row.time // SECOND_US, -(-end // SECOND_US)))
            seen += 1
    return links, sorted(refused), seen


@pytest.mark.parametrize("seed", range(4))
def test_joined_rows_tell_what_single_rows_tell(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    columns = {
        "interval": [rng.choice([None, -1, *range(12), 10**12]) for _ in range(600)],
        "src": rng.choices([*_NAMES, None], k=600),
        "dst": rng.choices(_NAMES, k=600),
        "layer": rng.choices(["mesh", None], k=600),
    }
    numbers = pa.table({**columns, "interval": pa.array(columns["interval"], pa.int64())})
    texts = pa.table({**columns, "interval": numbers["interval"].cast(pa.string())})
    for name, table in (("numbers", numbers), ("texts", texts)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=250)
    by_column, one_by_one = (_read(tmp_path / f"{name}.parquet") for name in ("numbers", "texts"))
    assert _told(by_column) == _told(one_by_one)
    assert _told(by_column)[2] == 600
    assert len(by_column) < len(one_by_one)


def test_column_with_a_dictionary_is_joined_like_its_values(tmp_path: Path) -> None:
    table = pa.table({"interval": [0, 1, 1, 2], "src": ["a", "a", None, "a"], "dst": ["b"] * 4})
    coded = table.set_column(1, "src", table["src"].dictionary_encode())
    told = []
    for number, one in enumerate((table, coded)):
        pq.write_table(one, tmp_path / f"{number}.parquet")
        told.append(_told(_read(tmp_path / f"{number}.parquet")))
    assert told[0] == told[1]


def test_interval_beyond_64_bits_is_refused_alone(tmp_path: Path) -> None:
    numbers = pa.array([0, 1, 2**63, 2], pa.uint64())
    table = pa.table({"interval": numbers, "src": ["a"] * 4, "dst": ["b"] * 4})
    pq.write_table(table, tmp_path / "a.parquet")
    links, refused, _ = _told(_read(tmp_path / "a.parquet"))
    assert ([*links.values()], refused) == ([{0, 1, 2}], [3])


def test_long_link_is_one_record(tmp_path: Path) -> None:
    table = {"interval": [*range(500), *range(600, 900)], "src": [1] * 800, "dst": [2] * 800}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    records = [row for row in _read(tmp_path / "a.parquet") if row.kind == RowKind.RECORD]
    assert [(row.line, row.time, *msgspec.json.decode(row.record)) for row in records] == [
        (1, 0, "2", "overlay", None, 500 * SECOND_US),
        (501, 600 * SECOND_US, "2", "overlay", None, 900 * SECOND_US),
    ]


def test_damaged_group_keeps_the_rows_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    count = 40_000
    table = {"interval": range(count), "src": [7] * count, "dst": [8] * count}
    pq.write_table(
        pa.table({name: list(column) for name, column in table.items()}),
        path,
        compression="snappy",
        use_dictionary=False,
        data_page_size=4096,
    )
    content = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(2)
    middle = chunk.data_page_offset + chunk.total_compressed_size * 3 // 4
    content[middle : middle + 20] = b"\xff" * 20
    path.write_bytes(content)
    links, refused, _ = _told(_read(path))
    (held,) = links.values()
    assert held == set(range(len(held)))
    assert refused == [len(held) + 1]
    assert count // 2 < len(held) < count


def test_changed_value_under_a_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"interval": [1, 2], "src": ["left", "left"], "dst": ["right", "right"]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    before, after = (len(text).to_bytes(4, "little") + text for text in (b"left", b"lost"))
    path.write_bytes(path.read_bytes().replace(before * 2, after * 2))
    assert _told(_read(path)) == ({}, [1], 1)


def test_columns_with_too_many_values_are_read_one_by_one() -> None:
    many = [str(number) for number in range(3_000)]
    names = {f"n{number}": many for number in range(6)}
    batch = pa.record_batch({"interval": list(range(3_000)), **names})
    assert (
        join_intervals(batch, "interval", LAST_INTERVAL, lambda _, values: values.is_valid())
        is None
    )


def test_times_far_apart_are_ordered_as_near_ones() -> None:
    batch = pa.record_batch({"interval": [2**62, 1, 0, 2**62 - 1], "x": ["a", "a", "a", "a"]})
    found = join_intervals(batch, "interval", 2**63 - 1, lambda _, values: values.is_valid())
    assert found
    assert (found.first.tolist(), found.last.tolist()) == ([2, 3], [1, 0])


def test_joined_rows_count_as_the_same_rows_of_text_for_outliers(tmp_path: Path) -> None:
    """A link in 100 intervals outweighs five rows far away, in either form."""
    rows = [(i, "a", "b") for i in range(100)] + [(2 * 10**9 + i, "a", "b") for i in range(5)]
    columns = dict(zip(("interval", "src", "dst"), zip(*rows, strict=True), strict=True))
    pq.write_table(
        pa.table({name: [*values] for name, values in columns.items()}), tmp_path / "a.parquet"
    )
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    found = []
    for path in (tmp_path / "a.parquet", tmp_path / "a.csv"):
        encoding = SOURCE.recognises(str(path), path.read_bytes())
        assert encoding
        file = InputFile(str(path), encoding, path.stat().st_size, "")
        found.append(staged(SOURCE, [file], SourceOptions()))
    joined, text = found
    assert joined.tables["links"].to_pylist() == text.tables["links"].to_pylist()
    assert [line for _, line, _, _ in text.quarantine] == [*range(102, 107)]
    assert len(joined.quarantine) == 1  # joined to one record
