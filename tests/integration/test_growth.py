"""Where what an append makes anew begins, against plain Python that looks at one row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from analytics.structure import STRUCTURE_SCHEMA
from ingest import growth
from ingest.job import Job
from ingest.manifest import Boundary, Manifest, TableEntry
from model.clock import OPEN, Clock
from model.errors import UseError
from model.metrics import METRICS

pytestmark = pytest.mark.spark

INTERVALS, TICKS, SINCE = 12, 10, 8
SETTLED, CLOCK = Boundary(SINCE, SINCE, 0), Clock(TICKS, 1, 0, INTERVALS - 1)
NAMES = ("publications", "receptions", "rejections")
Row = dict[str, Any]
Rows = dict[str, list[Row]]
TYPES = {"key": pa.string(), "message": pa.string(), "name": pa.string(), "peer": pa.string()}


def frame(spark: SparkSession, rows: Sequence[Row], *columns: str, **types: Any) -> DataFrame:
    kinds = TYPES | types
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in columns])
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema))


@dataclass(frozen=True)
class Appending:
    """What of a job is looked at: the run before, and what this ingest has made so far."""

    older: dict[str, DataFrame] = field(default_factory=dict)
    newer: dict[str, DataFrame] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    """Of tables of the run before."""
    boundary: Boundary = SETTLED
    appends: bool = True
    since: int = SINCE
    clock: Clock = CLOCK

    @property
    def base(self) -> Manifest | None:
        tables = {name: TableEntry(name, rows) for name, rows in self.rows.items()}
        made = Manifest("run", "edges", (), {}, clock=self.clock, tables=tables)
        return made if self.appends else None

    @property
    def job(self) -> Job:
        return cast(Job, self)

    def before(self, name: str) -> DataFrame | None:
        return self.older.get(name) if self.appends else None

    def table(self, name: str) -> DataFrame | None:
        return self.newer.get(name)

    def staged(self, prefix: str) -> dict[str, DataFrame]:
        start = f"staged/{prefix}."
        return {n.removeprefix(start): f for n, f in self.newer.items() if n.startswith(start)}


def told(rows: DataFrame | None, *columns: str) -> list[tuple[Any, ...]]:
    assert rows is not None
    return sorted(tuple(row) for row in rows.select(*columns or rows.columns).collect())


class TestTelling:
    def test_run_and_input_that_tell_the_same_pass(self) -> None:
        growth.check_telling(["links", "topics"], ["topics", "links"])

    @pytest.mark.parametrize(
        ("before", "now", "said"),
        [("ab", "a", "tells of b,"), ("a", "acb", "hides b, c,")],
    )
    def test_difference_in_what_is_unknown_is_named(self, before: str, now: str, said: str) -> None:
        with pytest.raises(UseError, match=said):
            growth.check_telling(before, now)


@pytest.fixture(scope="module")
def spans(spark: SparkSession) -> DataFrame:
    rows = [{"peer": str(vt), "vf": 0, "vt": vt} for vt in (1, 7, 8, 9, 119, 121, OPEN)]
    return frame(spark, rows, "peer", "vf", "vt")


class TestSpans:
    def test_spans_that_were_over_before_are_settled(self, spans: DataFrame) -> None:
        found = told(growth.unsettled(Appending().job, spans), "vt")
        assert found == [(8,), (9,), (119,), (121,), (OPEN,)]

    def test_spans_without_a_run_or_ends_are_unsettled(self, spans: DataFrame) -> None:
        alone = Appending(appends=False).job
        assert growth.unsettled(alone, spans).count() == spans.count()
        assert growth.unsettled(Appending().job, spans.drop("vt")).count() == spans.count()

    def test_carried_spans_end_where_the_run_was_observed(self, spans: DataFrame) -> None:
        """The run has 12 intervals of 10 ticks: nothing of it was observed after tick 120."""
        carried = growth.carried_in(Appending({"links": spans}).job, "links")
        assert told(carried, "vt") == [(8,), (9,), (119,), (120,), (120,)]

    def test_spans_alive_at_or_after_the_boundary_are_kept(self, spans: DataFrame) -> None:
        appending = Appending(newer={"links": spans}, boundary=Boundary(0, 11, 0))
        assert told(growth.alive(appending.job, "links"), "vt") == [(119,), (121,), (OPEN,)]
        at_end = replace(appending, newer={"links": spans.where("vt <= 119")})
        assert told(growth.alive(replace(at_end, boundary=Boundary(0, 12, 0)).job, "links")) == []
        edge = spans.selectExpr("peer", "vf", "IF(vt = 119, 110, vt) AS vt").where("vt = 110")
        assert told(growth.alive(replace(appending, newer={"links": edge}).job, "links")) == []
        alone = replace(appending, appends=False)
        assert growth.alive(alone.job, "links") is spans
        assert growth.alive(appending.job, "nothing") is None


class TestKnownNames:
    def test_names_keep_their_indices_and_the_next_is_told(self, spark: SparkSession) -> None:
        peers = frame(spark, [{"key": "a", "index": 0}], "key", "index")
        appending = Appending({"peers": peers}, rows={"peers": 7})
        known = growth.known_names(appending.job, "peers", "key AS name", "index")
        assert known is not None
        assert (told(known.names), known.names.columns, known.taken) == (
            [("a", 0)], ["name", "index"], 7,
        )  # fmt: skip

    def test_names_are_unknown_without_a_run_or_table(self, spark: SparkSession) -> None:
        peers = frame(spark, [{"key": "a", "index": 0}], "key", "index")
        alone = Appending({"peers": peers}, rows={"peers": 7}, appends=False)
        assert growth.known_names(alone.job, "peers", "key") is None
        assert growth.known_names(Appending().job, "peers", "key") is None


def random_messages(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """(tables of the run before, by index; what new input tells of, by name)."""
    count = int(rng.integers(0, 12))
    at = sorted(int(i) for i in rng.integers(0, INTERVALS, count))
    published = [{"message": m, "key": f"m{m}", "interval": i} for m, i in enumerate(at)]
    before: Rows = {"publications": published, "receptions": [], "rejections": []}
    for row in published:
        for name in NAMES[1:]:
            later = range(int(rng.integers(0, 3)))
            before[name] += [
                {"message": row["message"], "interval": row["interval"] + step} for step in later
            ]
    named = [f"m{m}" for m in range(count + 3) if rng.random() < 0.12]
    now: Rows = {name: [] for name in NAMES}
    for name in named:
        now[str(rng.choice(NAMES))].append({"message": name, "tick": 100})
    return before, now


def naive_boundary(before: Rows, now: Rows) -> Boundary:
    named = {row["message"] for rows in now.values() for row in rows}
    published = before["publications"]
    first = min(
        [
            *(r["message"] for r in published if r["key"] in named or r["interval"] >= SINCE),
            len(published),
        ]
    )
    after = [r["interval"] for rows in before.values() for r in rows if r["message"] >= first]
    return Boundary(SINCE, min([*after, SINCE]), first)


def of_messages(spark: SparkSession, before: Rows, now: Rows) -> tuple[Appending, Any]:
    older = {
        name: frame(spark, rows, "message", "key", "interval", message=pa.int64())
        for name, rows in before.items()
    }
    counts = {name: len(rows) for name, rows in before.items()}
    observed = {name: frame(spark, rows, "message", "tick") for name, rows in now.items()}
    return Appending(older, rows=counts), observed


class TestBoundary:
    @pytest.mark.parametrize("seed", range(6))
    def test_boundary_equals_that_of_plain_python(self, spark: SparkSession, seed: int) -> None:
        print(f"seed {seed}")
        before, now = random_messages(np.random.default_rng(seed))
        appending, observed = of_messages(spark, before, now)
        assert growth.find_boundary(appending.job, observed) == naive_boundary(before, now)

    @pytest.mark.parametrize(
        ("published_in", "named", "expected"),
        [
            ([2, 5, 7], [], Boundary(SINCE, SINCE, 3)),
            ([2, 5, 8], [], Boundary(SINCE, SINCE, 2)),
            ([2, 5, 7], ["m1"], Boundary(SINCE, 5, 1)),
            ([2, 5, 7], ["m1", "m0"], Boundary(SINCE, 2, 0)),
            ([9, 5, 7], [], Boundary(SINCE, 5, 0)),
        ],
    )
    def test_boundary_is_the_earliest_named_or_unsettled_message(
        self, spark: SparkSession, published_in: list[int], named: list[str], expected: Boundary
    ) -> None:
        rows = [{"message": m, "key": f"m{m}", "interval": i} for m, i in enumerate(published_in)]
        before: Rows = {"publications": rows, "receptions": [], "rejections": []}
        now: Rows = {"publications": [{"message": name, "tick": 100} for name in named]}
        appending, observed = of_messages(spark, before, now)
        assert naive_boundary(before, now) == expected
        assert growth.find_boundary(appending.job, observed) == expected

    def test_boundary_without_messages_is_where_settling_ends(self, spark: SparkSession) -> None:
        appending, observed = of_messages(spark, *random_messages(np.random.default_rng(1)))
        settled = Boundary(SINCE, SINCE, 0)
        assert growth.find_boundary(replace(appending, appends=False).job, observed) == settled
        silent = replace(appending, older={})
        assert growth.find_boundary(silent.job, observed) == settled


class TestFromBoundary:
    BOUNDARY = Boundary(SINCE, 5, 1)

    def at(self, spark: SparkSession, kind: str, *intervals: int) -> DataFrame:
        rows = [{"message": f"{kind}{i}", "interval": i} for i in intervals]
        return frame(spark, rows, "message", "interval")

    def test_observed_messages_come_from_both_since_the_boundary(self, spark: SparkSession) -> None:
        appending = Appending(
            {
                "observed.publications": self.at(spark, "old", 4, 5, 6),
                "observed.untold": frame(spark, [{"peer": "a", "interval": 7}], "peer", "interval"),
            },
            {
                "staged/observed.publications": self.at(spark, "new", 4, 5, 9),
                "staged/observed.receptions": self.at(spark, "new", 5, 11),
            },
            boundary=self.BOUNDARY,
        )
        found = growth.observed_of_messages(appending.job)
        assert set(found) == {"publications", "receptions", "untold"}
        both = [("new5",), ("new9",), ("old5",), ("old6",)]
        assert told(found["publications"], "message") == both
        assert told(found["receptions"], "message") == [("new11",), ("new5",)]
        # Where messages were given indices, those alone are looked at.
        index = frame(spark, [{"name": "old6"}, {"name": "new5"}], "name")
        indexed = replace(appending, newer={**appending.newer, "staged/index.messages": index})
        found = growth.observed_of_messages(indexed.job)
        assert told(found["publications"], "message") == [("new5",), ("old6",)]
        assert told(found["receptions"], "message") == [("new5",)]
        assert told(found["untold"]) == [("a", 7)]

    def test_observed_messages_without_a_run_are_all(self, spark: SparkSession) -> None:
        new = {"staged/observed.publications": self.at(spark, "new", 1, 9)}
        alone = Appending(newer=new, appends=False, boundary=self.BOUNDARY)
        assert growth.observed_of_messages(alone.job) == {
            "publications": new["staged/observed.publications"]
        }

    def test_recent_rows_are_those_from_the_boundary_on(self, spark: SparkSession) -> None:
        rows = self.at(spark, "m", 4, 5, 6)
        appending = Appending(boundary=self.BOUNDARY)
        assert told(growth.recent(appending.job, rows), "interval") == [(5,), (6,)]
        assert growth.recent(replace(appending, appends=False).job, rows) is rows
        assert growth.recent(appending.job, None) is None

    def test_structure_joins_measured_and_settled_rows(self, spark: SparkSession) -> None:
        older = {}
        for table in METRICS[:3]:
            row = {"present": True, "peer": 0, "topic": 0, "subscribers": 1}
            rows = [{name: (row | {"interval": i}).get(name) for name in table.names}
                    for i in range(SINCE + 2)]  # fmt: skip
            older[table.name] = spark.createDataFrame(pa.Table.from_pylist(rows, table.arrow))
        measured = spark.createDataFrame(
            pa.Table.from_pylist(
                [{"interval": i, "peer": 1} for i in (SINCE, SINCE + 1)], STRUCTURE_SCHEMA
            )
        )
        appending = Appending(older, {"staged/structure": measured}, boundary=self.BOUNDARY)
        found = growth.structure_from_boundary(appending.job)
        settled = [(5, 0), (6, 0), (7, 0)]
        assert told(found, "interval", "peer") == [*settled, (SINCE, 1), (SINCE + 1, 1)]
        assert found is not None
        assert all(row.topics and row.overlay for row in found.where("peer = 0").collect())
        for interval in (SINCE, SINCE + 1):
            late = replace(appending, boundary=Boundary(SINCE, interval, 1))
            assert growth.structure_from_boundary(late.job) is measured
        assert growth.structure_from_boundary(replace(appending, newer={}).job) is None
