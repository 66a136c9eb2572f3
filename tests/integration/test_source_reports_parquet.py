"""Reports in Parquet say what the same reports say as lines."""

from __future__ import annotations

import json
import random
import re
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.staged import Staged, staged
from tests.support.words import naming
from vizpub.ingest.inputs.files import InputFile, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import RunDescription, SourceOptions
from vizpub.ingest.sources.folded import CARRIED
from vizpub.ingest.sources.reports.fold import TABLES
from vizpub.ingest.sources.reports.source import Reports
from vizpub.model.clock import Clock
from vizpub.model.errors import InputError

Record = dict[str, Any]
Rows = list[tuple[Any, ...]]
SEED = 31
PAGE = Path(__file__).parents[2] / "docs" / "sources.md"
HEADER = {"format": "vizpub.run/1", "run": "x", "protocol": "ring", "interval_us": 5}
END = {"format": "vizpub.end/1", "last_interval": 12}


def table(records: list[Record], **told: Record) -> pa.Table:
    """The records as a table; `run` and `end` go to its metadata."""
    metadata = {f"vizpub.{name}": json.dumps(value) for name, value in told.items()}
    nothing = dict.fromkeys(name for record in records for name in record)
    rows = [{**nothing, **record} for record in records]
    return pa.Table.from_pylist(rows).replace_schema_metadata(metadata)


Content = pa.Table | list[Record]


def written(folder: Path, number: int, content: Content) -> InputFile:
    if isinstance(content, pa.Table):
        path, encoding = folder / f"{number}.parquet", "parquet"
        pq.write_table(content, path, row_group_size=50)
    else:
        path, encoding = folder / f"{number}.ndjson", "ndjson"
        path.write_text("".join(json.dumps(record) + "\n" for record in content))
    return InputFile(str(path), encoding, path.stat().st_size, "")


def in_lines(records: list[Record]) -> list[Record]:
    return [{"format": "vizpub.report/1", **record} for record in records]


def in_order(rows: pa.Table) -> Rows:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


def stage(folder: Path, *contents: Content) -> Staged:
    folder.mkdir(exist_ok=True)
    files = [written(folder, number, content) for number, content in enumerate(contents)]
    return staged(Reports(), files, SourceOptions())


def described(found: Staged) -> RunDescription:
    return Reports().describe(found.counted, SourceOptions())


def random_record(rng: random.Random, peer: int, interval: int) -> Record:
    """A report with any of the fields; nulls where there are none."""

    def name() -> str:
        return rng.choice("abcdü")

    def counters() -> Record:
        return {
            way: {"messages": rng.randrange(9), "bytes": rng.randrange(9**9)}
            for way in ("sent", "received")
        }

    def copy() -> Record:
        return {"message": name(), "topic": name(), "hops": rng.randrange(3), "bytes": 512}

    fields: Record = {
        "neighbors": [
            {"peer": name(), "layer": rng.choice([None, "overlay", "rings"]), "topic": t}
            for t in rng.choices([None, "s", "t"], k=rng.randrange(4))
        ],
        "topics": [name() for _ in range(rng.randrange(3))],
        "roles": [{"role": name(), "topic": rng.choice([None, "t"])}],
        "control": counters(),
        "publication": counters(),
        "duplicates": rng.randrange(9),
        "rpcs_sent": rng.randrange(9),
        "sent": [{**copy(), "to": [name(), name()]}],
        "received": [{**copy(), "from": name(), "time_us": rng.randrange(10**12)}],
        "left": True,
        "seq": rng.randrange(3),
    }
    told = {field: value for field, value in fields.items() if rng.random() < 0.6}
    return {"peer": str(peer), "interval": interval, **told}


def randomly() -> list[Record]:
    rng = random.Random(SEED)
    return [random_record(rng, peer, n) for n in range(12) for peer in range(10)]


PLAIN: list[Record] = [
    {"peer": 1, "interval": 0, "neighbors": [2, 3]},
    {"peer": 2, "interval": 0},
]
PLAIN_LINES: list[Record] = [
    {"peer": "1", "interval": 0, "neighbors": ["2", "3"]},
    {"peer": "2", "interval": 0},
]


def bad() -> list[Record]:
    rows: list[Record] = [{"peer": "a", "interval": n, "topics": ["t"]} for n in range(120)]
    rows[0] |= {"peer": None}
    rows[60] |= {"interval": -1, "topics": ["t", None]}
    rows[119] |= {"interval": 7, "topics": ["u"]}
    return [{**row, "colour": 1} for row in rows]


BAD_HEADER = {"format": "vizpub.run/1", "counters": "sum"}


def damage(path: Path) -> None:
    """The second row group is no longer readable."""
    content = bytearray(path.read_bytes())
    second = pq.read_metadata(path).row_group(1).column(0)
    start = second.dictionary_page_offset
    content[start : start + second.total_compressed_size] = b"\xff" * second.total_compressed_size
    path.write_bytes(content)


def example(folder: Path) -> pa.Table:
    """What the code of the page writes."""
    (code,) = re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(code, {})
    return pq.read_table(folder / "ring.parquet")


TOLD = [name for name in TABLES if name not in ("quarantine", CARRIED)]


def test_reports_in_parquet_equal_those_in_lines(tmp_path: Path) -> None:
    print("seed", SEED)
    records = randomly()
    columns = stage(tmp_path / "columns", table(records, run=HEADER, end=END))
    lines = stage(tmp_path / "lines", [HEADER, *in_lines(records), END])
    for name in TOLD:
        assert in_order(columns.tables[name]) == in_order(lines.tables[name]), name
    assert len(columns.records) == 120
    assert described(columns) == described(lines)
    assert (described(columns).protocol, described(columns).ended) == ("ring", True)


def test_plain_neighbours_and_numeric_names_equal_those_in_lines(tmp_path: Path) -> None:
    found = stage(tmp_path / "columns", table(PLAIN))
    meant = stage(tmp_path / "lines", in_lines(PLAIN_LINES))
    mixed = stage(tmp_path / "mixed", table(PLAIN[:1]), in_lines(PLAIN_LINES[1:]))
    for name in TOLD:
        assert in_order(found.tables[name]) == in_order(meant.tables[name]), name
        assert in_order(mixed.tables[name]) == in_order(meant.tables[name]), name
    assert len(meant.records) == 2
    told = described(found)
    assert "topics" in told.unknown
    assert "neighbors" not in told.unknown


@pytest.mark.parametrize("as_map", [True, False])
def test_gauge_of_a_large_whole_number_is_a_double_as_in_json(tmp_path: Path, as_map: bool) -> None:
    gauges = [{"bytes": 2**60 + 1}, {"bytes": 3}]
    rows = [{"peer": f"p{n}", "interval": n} for n in range(2)]
    lines = in_lines([{**row, "gauges": of} for row, of in zip(rows, gauges, strict=True)])
    kind = pa.map_(pa.string(), pa.int64()) if as_map else pa.struct([("bytes", pa.int64())])
    cells = [[*of.items()] for of in gauges] if as_map else gauges
    columns = pa.Table.from_pylist(rows).append_column("gauges", pa.array(cells, kind))
    found, meant = stage(tmp_path / "columns", columns), stage(tmp_path / "lines", lines)
    assert in_order(found.tables["gauges"]) == in_order(meant.tables["gauges"])
    assert len(found.tables["gauges"]) == 2


def test_row_whose_name_is_not_utf8_is_refused_alone(tmp_path: Path) -> None:
    names = [f"p{n}".encode() for n in range(40)]
    names[17] = b"\xff\xfe"
    peers = pa.Array.from_buffers(pa.string(), 40, pa.array(names, pa.binary()).buffers())
    found = stage(tmp_path / "columns", pa.table({"peer": peers, "interval": [0] * 40}))
    assert [row[1] for row in found.quarantine] == [18]
    assert len(found.records) == 39


@pytest.mark.parametrize("as_map", [True, False])
def test_gauges_are_a_map_or_a_struct_of_numbers(tmp_path: Path, as_map: bool) -> None:
    gauges = [{"hops": 3.5, "lookups": 2.0}, {"hops": 1.0, "lookups": None}, None, {"hops": inf}]
    rows = [{"peer": f"p{n}", "interval": n} for n in range(4)]
    kind = pa.map_(pa.string(), pa.float64()) if as_map else None
    pairs = [of and list(of.items()) for of in gauges] if as_map else gauges
    content = table(rows).append_column("gauges", pa.array(pairs, kind))
    found = stage(tmp_path, content)
    assert in_order(found.tables["gauges"]) == [
        ("p0", 0, "hops", 3.5),
        ("p0", 0, "lookups", 2.0),
        ("p1", 1, "hops", 1.0),
    ]
    assert [row[:3] for row in found.quarantine] == [
        ("0.parquet", 4, "'gauges.hops' is not finite")
    ]
    told = described(found)
    assert not told.notes
    text = table(rows).append_column("gauges", pa.array([{"hops": "3"}] * 4))
    with pytest.raises(
        InputError, match=naming("column 'gauges'", "struct", "map<string, number>")
    ):
        Reports().splits([written(tmp_path, 1, text)])


def test_bad_rows_are_quarantined_and_the_rest_is_ingested(tmp_path: Path) -> None:
    found = stage(tmp_path, table(bad(), run=BAD_HEADER))
    (header, *_, conflict) = found.quarantine
    assert [row[:3] for row in found.quarantine] == [
        ("0.parquet", 1, "'counters' is not delta or total"),
        ("0.parquet", 1, "no 'peer'"),
        ("0.parquet", 61, "'interval' is negative; 'topics[]' is not a string"),
        ("0.parquet", 120, "conflicting report"),
    ]
    assert json.loads(header[3]) == BAD_HEADER
    told = json.loads(conflict[3])
    assert told == {**told, "peer": "a", "interval": 7, "topics": ["u"]}
    assert len(found.tables["traffic"]) == 117
    assert described(found).notes["unknown field colour"] == 118


def test_damaged_row_group_is_quarantined_alone(tmp_path: Path) -> None:
    rows = [{"peer": f"peer-{n}", "interval": 0, "topics": ["a"]} for n in range(100)]
    rows[1] |= {"peer": "peer-0", "topics": ["b"]}  # it says otherwise than the first one
    file = written(tmp_path, 0, table(rows))
    damage(Path(file.path))
    found = staged(Reports(), [file], SourceOptions())
    assert len(found.tables["traffic"]) == 49
    refused = {line: (reason, text) for _, line, reason, text in found.quarantine}
    assert refused.keys() == {2, 51}
    assert '"b"' in refused[2][1]
    assert refused[51][0].startswith("cannot be read from here on: ")


def test_column_of_a_wrong_type_is_refused_by_name(tmp_path: Path) -> None:
    wrong = written(tmp_path, 0, table([{"peer": "a", "interval": 1.5}]))
    with pytest.raises(InputError, match=naming("column 'interval'", "double", "integer")):
        Reports().splits([wrong])


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    once = table([{"peer": "a", "interval": 1}])
    twice = written(tmp_path, 0, once.append_column("peer", pa.array(["b"])))
    with pytest.raises(InputError, match="2 columns are called 'peer'"):
        Reports().splits([twice])


def test_example_of_the_page_writes_valid_reports(tmp_path: Path) -> None:
    found = stage(tmp_path, example(tmp_path))
    told = described(found)
    assert told.clock == Clock(1, 1_000_000, 0, 2)
    assert (told.protocol, told.ended) == ("ring", True)
    assert found.quarantine == []
    assert {(record["peer"], *map(neighbor, record["neighbors"])) for record in found.records} == {
        (str(peer), str((peer + 1) % 4)) for peer in range(4)
    }


def neighbor(entry: str | Record) -> str:
    return entry if isinstance(entry, str) else str(entry["peer"])


def test_report_parquet_is_told_apart_from_edge_lists(tmp_path: Path) -> None:
    reports, edges = tmp_path / "reports.parquet", tmp_path / "edges.parquet"
    pq.write_table(table([{"peer": "a", "interval": 0}]), reports)
    pq.write_table(table([{"interval": 0, "src": "a", "dst": "b"}]), edges)
    found = take_inventory(None, find_files([str(reports)]), SOURCES)
    assert (found.source, found.files[0].encoding) == ("reports", "parquet")
    assert take_inventory(None, find_files([str(edges)]), SOURCES).source == "edges"
