"""Reports in Parquet say what the same reports say as lines."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ingest.inventory import inventory
from ingest.sources import SOURCES
from ingest.sources.base import InputFile, SourceOptions
from ingest.sources.reports import Reports
from model.clock import Clock
from model.errors import InputError
from model.tables import QUARANTINE

pytestmark = pytest.mark.spark

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


class Desk:
    """Takes reports through the source, by way of staged Parquet as the pipeline does."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.runs = spark, folder, 0

    def stage(self, *inputs: pa.Table | list[Record]) -> dict[str, DataFrame]:
        self.runs += 1
        here = self.folder / str(self.runs)
        here.mkdir()
        files = [self.write(here, n, content) for n, content in enumerate(inputs)]
        staged = Reports().parse(self.spark, files, SourceOptions())
        for name, frame in staged.items():
            frame.write.parquet(str(here / "staged" / name))
        self.spark.catalog.clearCache()
        return {name: self.spark.read.parquet(str(here / "staged" / name)) for name in staged}

    @staticmethod
    def write(folder: Path, number: int, content: pa.Table | list[Record]) -> InputFile:
        if isinstance(content, pa.Table):
            path, encoding = folder / f"{number}.parquet", "parquet"
            pq.write_table(content, path, row_group_size=50)
        else:
            path, encoding = folder / f"{number}.ndjson", "ndjson"
            path.write_text("".join(json.dumps(record) + "\n" for record in content))
        return InputFile(str(path), encoding, path.stat().st_size, "")


@pytest.fixture
def desk(spark: SparkSession, tmp_path: Path) -> Desk:
    return Desk(spark, tmp_path)


def in_order(frame: DataFrame) -> Rows:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def quarantine(staged: dict[str, DataFrame]) -> Rows:
    rows = staged["quarantine"].select(*QUARANTINE.names).collect()
    return sorted((Path(row.file).name, row.line, row.reason, row.text) for row in rows)


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
        "sent": [{**copy(), "to": [name(), name()]}],
        "received": [{**copy(), "from": name(), "time_us": rng.randrange(10**12)}],
        "left": True,
        "seq": rng.randrange(3),
    }
    told = {field: value for field, value in fields.items() if rng.random() < 0.6}
    return {"run": "x", "peer": str(peer), "interval": interval, **told}


def test_the_same_reports_in_lines_and_in_columns(desk: Desk) -> None:
    print("seed", SEED)
    rng = random.Random(SEED)
    records = [random_record(rng, peer, n) for n in range(12) for peer in range(10)]
    lines = [HEADER, *({"format": "vizpub.report/1", **record} for record in records), END]
    in_lines, in_columns = desk.stage(lines), desk.stage(table(records, run=HEADER, end=END))
    for name in ("reports", "headers", "counts", "quarantine"):
        assert in_columns[name].schema == in_lines[name].schema
        assert in_order(in_columns[name]) == in_order(in_lines[name]), name
    assert in_columns["reports"].count() == 120
    one, other = (Reports().describe(staged, SourceOptions()) for staged in (in_lines, in_columns))
    assert one == other
    assert (other.protocol, other.ended) == ("ring", True)


def test_plain_neighbours_numbers_for_names_and_what_is_not_there(desk: Desk) -> None:
    rows: list[Record] = [
        {"peer": 1, "interval": 0, "neighbors": [2, 3]},
        {"peer": 2, "interval": 0},
    ]
    lines = [
        {"format": "vizpub.report/1", "peer": "1", "interval": 0, "neighbors": ["2", "3"]},
        {"format": "vizpub.report/1", "peer": "2", "interval": 0},
    ]
    found, meant = desk.stage(table(rows)), desk.stage(lines)
    assert in_order(found["reports"]) == in_order(meant["reports"])
    mixed = desk.stage(table(rows[:1]), lines[1:])
    assert in_order(mixed["reports"]) == in_order(meant["reports"])
    told = Reports().describe(found, SourceOptions())
    assert "topics" in told.unknown
    assert "neighbors" not in told.unknown


def test_bad_rows_are_quarantined_and_the_rest_is_ingested(desk: Desk) -> None:
    rows: list[Record] = [{"peer": "a", "interval": n, "topics": ["t"]} for n in range(120)]
    rows[0] |= {"peer": None}
    rows[60] |= {"interval": -1, "topics": ["t", None]}
    rows[119] |= {"interval": 7, "topics": ["u"]}
    bad_header = {"format": "vizpub.run/1", "counters": "sum"}
    staged = desk.stage(table([{**row, "colour": 1} for row in rows], run=bad_header))
    (header, *_, conflict) = found = quarantine(staged)
    assert [row[:3] for row in found] == [
        ("0.parquet", 1, "'counters' is not delta or total"),
        ("0.parquet", 1, "no 'peer'"),
        ("0.parquet", 61, "'interval' is negative; 'topics[]' is not a string"),
        ("0.parquet", 120, "conflicting report"),
    ]
    assert json.loads(header[3]) == bad_header
    assert json.loads(conflict[3]) == {"peer": "a", "interval": 7, "topics": ["u"], "colour": 1}
    assert staged["reports"].count() == 117
    counted = {(row.what, row.name): row.records for row in staged["counts"].collect()}
    assert counted["unknown field", "colour"] == 118


def test_a_damaged_row_group_is_refused_alone(desk: Desk, tmp_path: Path) -> None:
    rows = [{"peer": f"peer-{n}", "interval": 0} for n in range(100)]
    file = Desk.write(tmp_path, 0, table(rows))
    content = bytearray(Path(file.path).read_bytes())
    second = pq.read_metadata(file.path).row_group(1).column(0)
    start = second.dictionary_page_offset
    content[start : start + second.total_compressed_size] = b"\xff" * second.total_compressed_size
    Path(file.path).write_bytes(content)
    staged = Reports().parse(desk.spark, [file], SourceOptions())
    assert staged["reports"].count() == 50
    ((line, reason),) = {(row.line, row.reason) for row in staged["quarantine"].collect()}
    assert line == 51
    assert reason.startswith("cannot be read from here on: ")


def test_a_column_of_a_wrong_type_is_named(desk: Desk) -> None:
    wrong = table([{"peer": "a", "interval": 1.5}])
    with pytest.raises(InputError, match=r"column 'interval' is double\n.*integer"):
        desk.stage(wrong)


def test_the_pages_example_writes_reports(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    exec(example, {})
    staged = desk.stage(pq.read_table("ring.parquet"))
    told = Reports().describe(staged, SourceOptions())
    assert told.clock == Clock(1, 1_000_000, 0, 2)
    assert (told.protocol, told.ended) == ("ring", True)
    assert quarantine(staged) == []
    assert {(row.run, row.peer, *row.neighbors) for row in staged["reports"].collect()} == {
        ("ring", str(peer), str((peer + 1) % 4)) for peer in range(4)
    }


def test_they_are_recognised_and_edge_lists_are_not(spark: SparkSession, tmp_path: Path) -> None:
    reports, edges = tmp_path / "reports.parquet", tmp_path / "edges.parquet"
    pq.write_table(table([{"peer": "a", "interval": 0}]), reports)
    pq.write_table(table([{"interval": 0, "src": "a", "dst": "b"}]), edges)
    found = inventory(spark, [str(reports)], SOURCES)
    assert (found.source, found.files[0].encoding) == ("reports", "parquet")
    assert inventory(spark, [str(edges)], SOURCES).source == "edges"
