"""Side files of attributes → the table `attributes`, against values looked up tick by tick."""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from tests.support.words import naming, tells
from vizpub.analytics.steps import TaskContext, compute_tables
from vizpub.ingest.inputs.attributes import (
    COLUMNS_WANTED,
    SIDE,
    StatedValue,
    read_again,
    read_attribute_files,
    side_table,
)
from vizpub.ingest.inputs.files import ResolvedPath
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.tasks.staged import ingest_step, macro_text
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import InputError
from vizpub.model.tables import ATTRIBUTES, PEERS

EVENTS = Clock(1_000_000, 1, 0, 9)
REPORTS = Clock(1, None, 2, 9)


def written(folder: Path, text: str | bytes, name: str = "peers.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows_of(
    *paths: Path, clock: Clock = REPORTS, epoch: str | None = None
) -> list[tuple[Any, ...]]:
    """peer, key, value, valid_from, valid_to."""
    table = side_table(read_attribute_files(map(str, paths)), clock, epoch)
    return [tuple(row.values()) for row in table.to_pylist()]


def refusal(path: Path, clock: Clock = REPORTS) -> str:
    with pytest.raises(InputError) as caught:
        rows_of(path, clock=clock)
    return str(caught.value)


class TestColumns:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_row_per_value_is_read(self, tmp_path: Path, delimiter: str) -> None:
        lines = ["peer,key,value", "a,client,prysm", 'b,client,"x ""y"""', "", "a,latency,12.5"]
        path = written(tmp_path, "\ufeff" + "\r\n".join(lines).replace(",", delimiter))
        assert rows_of(path) == [
            ("a", "client", "prysm", 2, OPEN),
            ("b", "client", 'x "y"', 2, OPEN),
            ("a", "latency", "12.5", 2, OPEN),
        ]

    def test_row_per_peer_has_a_column_for_each_key_and_leaves_out_empty_cells(
        self, tmp_path: Path
    ) -> None:
        path = written(tmp_path, "client,peer,value of it\nprysm,a,1\n,b,2\n")
        assert rows_of(path) == [
            ("a", "client", "prysm", 2, OPEN),
            ("a", "value of it", "1", 2, OPEN),
            ("b", "value of it", "2", 2, OPEN),
        ]

    def test_parquet_gives_the_same_as_text(self, tmp_path: Path) -> None:
        columns = {
            "peer": [17, 3], "slow": [True, None], "mbps": [20.0, 2.5], "from": [3, None],
        }  # fmt: skip
        pq.write_table(pa.table(columns), tmp_path / "peers.parquet")
        text = "peer,slow,mbps,from\n17,true,20,3\n3,,2.5,\n"
        expected = rows_of(written(tmp_path, text))
        assert rows_of(tmp_path / "peers.parquet") == expected
        zipped = written(tmp_path, gzip.compress(text.encode()), "peers.csv.gz")
        assert rows_of(zipped) == expected

    def test_compressed_file_in_a_store_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uri = "s3://bucket/peers.csv.zstd?region=here"
        path = written(tmp_path, pa.compress(b"peer,x\na,1\n", codec="zstd", asbytes=True))
        place = fs.LocalFileSystem(), str(path)
        module = "vizpub.ingest.inputs.attributes"
        monkeypatch.setattr(f"{module}.find_files", lambda _: {uri: ResolvedPath({uri: None})})  # type: ignore[dict-item]
        monkeypatch.setattr(f"{module}.locate", lambda _: place)
        assert read_attribute_files([uri])[0].values == [StatedValue(2, "a", "x", "1", None, None)]

    def test_bytes_in_parquet_are_texts_and_nan_is_unknown(self, tmp_path: Path) -> None:
        columns = {"peer": [b"17", b"3"], "client": [b"prysm", None], "mbps": [math.nan, 2.5]}
        pq.write_table(pa.table(columns), tmp_path / "peers.parquet")
        text = "peer,client,mbps\n17,prysm,\n3,,2.5\n"
        assert rows_of(tmp_path / "peers.parquet") == rows_of(written(tmp_path, text))
        pq.write_table(pa.table({**columns, "client": [b"\xff", None]}), tmp_path / "bad.parquet")
        assert "bad.parquet" in refusal(tmp_path / "bad.parquet")

    @pytest.mark.parametrize(
        "header",
        ["", "name,client", "peer", "peer,key", "peer,value", "peer,key,value,client", "peer,a,a"],
    )
    def test_other_columns_are_refused_with_those_that_are_expected(
        self, tmp_path: Path, header: str
    ) -> None:
        assert COLUMNS_WANTED in refusal(written(tmp_path, f"{header}\na,b,c,d\n"))

    def test_file_that_is_no_text_is_refused(self, tmp_path: Path) -> None:
        assert "peers.csv" in refusal(written(tmp_path, b"peer,client\n\xff\xfe,a\n"))
        assert "x.parquet" in refusal(written(tmp_path, b"PAR1 cut off", "x.parquet"))

    def test_file_in_another_form_is_refused_with_what_to_do(self, tmp_path: Path) -> None:
        text = "peer,client\na,b\n"
        tells(refusal(written(tmp_path, text.encode("utf-16"))), "UTF-8")
        tells(refusal(written(tmp_path, gzip.compress(text.encode()))), "gzip", ".gz", "rename")


class TestLines:
    @pytest.mark.parametrize(
        ("line", "fact"),
        [
            ("a,client", "2 fields"),
            (",client,x", "'peer' is empty"),
            ("a,,x", "'key' is empty"),
            ("a,client,", "'value' is empty"),
            ("a,client,x\x07", "'value' has a control character"),
            ("a,client,first", "'client' of peer 'a' has a value at this time in line 2"),
        ],
    )
    def test_bad_line_is_refused_with_its_number(
        self, tmp_path: Path, line: str, fact: str
    ) -> None:
        text = refusal(written(tmp_path, f"peer,key,value\na,client,x\n{line}\n"))
        assert f"line 3: {fact}" in text

    @pytest.mark.parametrize(
        ("times", "fact"),
        [
            ("soon,", "'soon' is not a time"),
            ("5,5", "it ends before it begins"),
            ("3,4", "line 2"),
            ("1s,", "the length of this run's intervals is unknown"),
            ("2026-01-01T00:00,", "when it began"),
        ],
    )
    def test_bad_time_is_refused_with_its_line(self, tmp_path: Path, times: str, fact: str) -> None:
        text = f"peer,key,value,from,to\na,client,x,2,9\na,client,y,{times}\n"
        message = refusal(written(tmp_path, text))
        assert "line 3: " in message
        assert fact in message

    def test_many_bad_lines_are_counted(self, tmp_path: Path) -> None:
        assert "and 7 more" in refusal(written(tmp_path, "peer,key,value\n" + "a,,x\n" * 12))


def test_times_are_intervals_or_times_since_the_start_or_of_the_wall_clock(tmp_path: Path) -> None:
    text = "peer,key,value,from,to\na,c,1,1,2.5s\na,c,2,2.5s,\na,c,3,2026-01-01T00:00:04Z,5\n"
    assert rows_of(written(tmp_path, text), clock=EVENTS, epoch="2026-01-01T00:00:00Z") == [
        ("a", "c", "1", 1_000_000, 2_500_000),
        ("a", "c", "2", 2_500_000, 4_000_000),
        ("a", "c", "3", 4_000_000, 5_000_000),
    ]


def test_period_is_clipped_to_the_start_of_the_run(tmp_path: Path) -> None:
    text = "peer,key,value,from,to\na,c,1,0,1\na,c,2,1,5\n"
    assert rows_of(written(tmp_path, text)) == [("a", "c", "2", 2, 5)]


def test_value_holds_until_the_next_one_of_its_peer_and_key(tmp_path: Path) -> None:
    text = "peer,key,value,from\na,c,z,0\na,c,y,1\na,c,x,4\na,d,w,\n"
    assert rows_of(written(tmp_path, text)) == [
        ("a", "c", "y", 2, 4), ("a", "c", "x", 4, OPEN), ("a", "d", "w", 2, OPEN),
    ]  # fmt: skip


def test_later_file_replaces_a_key_of_a_peer(tmp_path: Path) -> None:
    first = written(tmp_path, "peer,x,y\na,1,1\nb,1,1\n")
    second = written(tmp_path, "peer,x\na,2\n", "more.csv")
    assert {row[:3] for row in rows_of(first, second)} == {
        ("a", "x", "2"), ("a", "y", "1"), ("b", "x", "1"), ("b", "y", "1"),
    }  # fmt: skip


def test_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "peer,x\na,1\n")
    [entry] = [file.manifest_entry for file in read_attribute_files([str(path)])]
    assert read_again([entry])[0].values
    path.write_text("peer,x\na,2\n")
    with pytest.raises(InputError, match=naming("peers.csv", "--replace")):
        read_again([entry])


def attributes(tables: Mapping[str, pa.Table], close_at: int = OPEN) -> list[dict[str, Any]]:
    """The rows that the step makes."""
    empty = {
        "observed/attributes": OBSERVED["attributes"].empty_table(),
        "side/attributes": SIDE.empty_table(),
        "before/attributes": ATTRIBUTES.arrow.empty_table(),
    }
    context = TaskContext(
        0, 9, 1, frozenset(), 0, 0, variables={"close_at": close_at}, macros=macro_text()
    )
    inputs = {name: [rows] for name, rows in (empty | tables).items()}
    batches = compute_tables([ingest_step("attributes")], inputs, [ATTRIBUTES], context)
    return [row for name, rows in batches if name == "attributes" for row in rows.to_pylist()]


def peers(count: int) -> pa.Table:
    rows = [{"peer": n, "name": f"p{n}", "is_reporter": True} for n in range(count)]
    return pa.Table.from_pylist(rows, PEERS.arrow)


def value_at(rows: list[dict[str, Any]], peer: object, key: str, tick: int) -> str | None:
    """The value of the only period that holds."""
    holding = [
        row["value"]
        for row in rows
        if (row["peer"], row["key"]) == (peer, key) and row["valid_from"] <= tick < row["valid_to"]
    ]
    assert len(holding) <= 1
    return holding[0] if holding else None


@pytest.mark.parametrize("seed", range(5))
def test_value_at_each_tick_is_the_last_one_stated(seed: int) -> None:
    draw = random.Random(seed)
    said: dict[tuple[str, str, int], str | None] = {
        (f"p{draw.randrange(4)}", draw.choice("xy"), draw.randrange(10)): draw.choice(
            ["1", "2", None]
        )
        for _ in range(30)
    }
    side: dict[tuple[str, str, int], tuple[str, int]] = {}
    for peer, key in {(f"p{draw.randrange(6)}", draw.choice("xy")) for _ in range(3)}:
        ends = sorted(draw.sample(range(12), 4))
        side[peer, key, ends[0]] = ("a", ends[1])
        side[peer, key, ends[2]] = ("b", draw.choice([ends[3], OPEN]))
    observed = [[*of, value] for of, value in said.items()]
    names = ("peer", "key", "valid_from", "value")
    stated = [dict(zip(names, row, strict=True)) for row in observed]
    in_files = [
        {"peer": p, "key": k, "value": value, "valid_from": begin, "valid_to": end}
        for (p, k, begin), (value, end) in side.items()
    ]
    rows = attributes(
        {
            "observed/attributes": pa.Table.from_pylist(stated, OBSERVED["attributes"]),
            "side/attributes": pa.Table.from_pylist(in_files, SIDE),
            "peers": peers(4),
        },
        close_at := draw.choice([OPEN, 10]),
    )
    replaced = {(peer, key) for peer, key, _ in side}
    for number in range(4):
        for key in "xy":
            for tick in range(10):
                pair, expected = (f"p{number}", key), None
                for begin in range(tick + 1):
                    if pair in replaced:
                        value, end = side.get((*pair, begin), (None, 0))
                        expected = value if tick < end else expected if not value else None
                    elif (*pair, begin) in said:
                        expected = said[*pair, begin]
                assert value_at(rows, number, key, tick) == expected
    assert all(row["valid_to"] <= close_at for row in rows)
    for row in rows:  # maximal: no two of equal value touch
        assert value_at(rows, row["peer"], row["key"], row["valid_to"]) != row["value"]


def test_append_continues_values_and_replaces_what_files_stated() -> None:
    before = [
        {"peer": 0, "key": "x", "value": "1", "number": 1.0, "valid_from": 0, "valid_to": OPEN},
        {"peer": 1, "key": "x", "value": "1", "number": 1.0, "valid_from": 0, "valid_to": OPEN},
    ]
    later = [{"peer": "p0", "key": "x", "value": "2", "valid_from": 6}]
    side = [{"peer": "p1", "key": "x", "value": "z", "valid_from": 3, "valid_to": OPEN}]
    rows = attributes(
        {
            "before/attributes": pa.Table.from_pylist(before, ATTRIBUTES.arrow),
            "observed/attributes": pa.Table.from_pylist(later, OBSERVED["attributes"]),
            "side/attributes": pa.Table.from_pylist(side, SIDE),
            "peers": peers(2),
        }
    )
    assert [tuple(row.values())[0::1] for row in rows] == [
        (0, "x", "1", 1.0, 0, 6), (0, "x", "2", 2.0, 6, OPEN), (1, "x", "z", None, 3, OPEN),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12.0), ("-1.5e3", -1500.0), (".5", 0.5), ("5.", 5.0), ("1_000", None), ("nan", None),
        ("inf", None), ("1e999", None), ("0x10", None), (" 1", None), ("true", None), ("١", None),
    ],
)  # fmt: skip
def test_number_is_null_where_the_value_is_no_finite_number(
    text: str, number: float | None
) -> None:
    side = [{"peer": "p0", "key": "x", "value": text, "valid_from": 0, "valid_to": OPEN}]
    tables = {"side/attributes": pa.Table.from_pylist(side, SIDE), "peers": peers(1)}
    assert [row["number"] for row in attributes(tables)] == [number]
