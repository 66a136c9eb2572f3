"""Where what an append makes anew begins, against plain Python that looks at one row at a time."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.growth import Growth
from ingest.job import Job
from ingest.plan import Plan
from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.edges import Edges
from ingest.sources.libp2p import Libp2p
from ingest.sources.reports import Reports
from ingest.stages import Periods
from model.clock import OPEN, Clock
from model.errors import UseError
from model.run import Boundary
from model.tables import table as table_of
from runstore.manifest import MOST_BOUNDARIES, Change, Manifest, Part, Since, TableEntry
from runstore.writer import RunWriter
from tests.support.observed import observed_of

pytestmark = pytest.mark.spark

INTERVALS, TICKS, SINCE = 12, 10, 8
SETTLED, CLOCK = Boundary(SINCE, SINCE, 0), Clock(TICKS, 1, 0, INTERVALS - 1)
BEFORE = Clock(TICKS, 1, 0, SINCE - 1)
NAMES = ("publications", "receptions", "rejections")
Row = dict[str, Any]
Rows = dict[str, list[Row]]
TYPES = {name: pa.string() for name in ("message", "name", "peer")}


def frame(spark: SparkSession, rows: Sequence[Row], *columns: str, **types: Any) -> DataFrame:
    kinds = TYPES | types
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in columns])
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema))


def shaped(rows: pa.Table, name: str) -> pa.Table:
    """The columns of a stored table; those that the rows lack are null."""
    schema, nothing = table_of(name).arrow, pa.nulls(len(rows))
    found = [rows[of.name] if of.name in rows.column_names else nothing for of in schema]
    return pa.table([c.cast(of.type) for c, of in zip(found, schema, strict=True)], schema.names)


class Uncut:
    """A writer for whom all rows of a part stay."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def cut(self, name: str, parts: Sequence[Part], cut: object) -> Sequence[Part]:
        return parts


@dataclass(frozen=True)
class Appending:
    """What of a job is looked at: the run before, and what this ingest has made so far."""

    older: dict[str, DataFrame] = field(default_factory=dict)
    """Tables of the run before, and what it carries, by name."""
    rows: dict[str, int] = field(default_factory=dict)
    """Of tables of the run before."""
    boundary: Boundary | None = SETTLED
    clock: Clock = CLOCK
    options: SourceOptions = field(default_factory=SourceOptions)
    source: Any = None
    described: Any = None
    ended: bool = False
    fresh: dict[str, DataFrame] = field(default_factory=dict)
    """What is folded now, and was not before."""

    @property
    def manifest(self) -> Manifest:
        made = Manifest("run", "reports", (), {}, clock=self.clock, boundary=self.boundary)
        return replace(made, ended=self.ended)

    @property
    def base(self) -> Manifest:
        tables = {name: TableEntry(name, self.rows.get(name, 1)) for name in self.older}
        return Manifest("run", "reports", (), {}, clock=BEFORE, tables=tables, carry=tables)

    @property
    def plan(self) -> Plan:
        return Growth(cast(Job, self), self.base, BEFORE)

    @cached_property
    def writer(self) -> Uncut:
        """Has the tables of messages of the run before as files."""
        directory = Path(mkdtemp())
        atexit.register(rmtree, directory, ignore_errors=True)
        for name, rows in self.older.items():
            if name in NAMES:
                (directory / name).mkdir(parents=True)
                pq.write_table(shaped(rows.toArrow(), name), directory / name / "part.parquet")
        return Uncut(directory)

    def rows_of(self, name: str, parts: Sequence[Part], since: Since | None = None) -> DataFrame:
        assert all(part.directory == name for part in parts)
        rows = self.older[name]
        return rows.where(F.col(since.column) >= since.least) if since else rows

    def carried(self, name: str, since: Since | None = None) -> DataFrame | None:
        return self.rows_of(name, [], since) if name in self.older else None

    @property
    def folded(self) -> dict[str, DataFrame]:
        return self.older | self.fresh


ANEW = Plan(cast(Job, Appending()))
"""Of a run that is made from all of its input."""


def told(rows: DataFrame | None, *columns: str) -> list[tuple[Any, ...]]:
    assert rows is not None
    return sorted(tuple(row) for row in rows.select(*columns or rows.columns).collect())


class TestTelling:
    def unlike(self, before: Sequence[str], now: Sequence[str]) -> None:
        base = replace(Appending().base, unknown=tuple(before))
        Growth(cast(Job, Appending()), base, BEFORE).check(now)

    def test_run_and_input_that_tell_the_same_pass(self) -> None:
        self.unlike(["links", "topics"], ["topics", "links"])

    @pytest.mark.parametrize(
        ("before", "now", "said"),
        [("ab", "a", " b,"), ("a", "acb", " b, c,")],
    )
    def test_difference_in_what_is_unknown_is_named(self, before: str, now: str, said: str) -> None:
        ANEW.check(now)
        with pytest.raises(UseError, match=said):
            self.unlike(before, now)


@pytest.fixture(scope="module")
def spans(spark: SparkSession) -> DataFrame:
    rows = [
        {"peer": str(valid_to), "valid_from": 0, "valid_to": valid_to}
        for valid_to in (1, 7, 8, 9, 79, 80, 81, OPEN)
    ]
    return frame(spark, rows, "peer", "valid_from", "valid_to")


class TestSpans:
    def test_bridged_gaps_are_not_settled(self) -> None:
        assert Appending().plan.since == SINCE
        assert Appending(options=SourceOptions(gap_tolerance=3)).plan.since == SINCE - 3
        assert Appending(clock=BEFORE, ended=True).plan.since == BEFORE.last
        assert ANEW.since == CLOCK.first

    def test_input_is_idle_where_all_of_it_came_late(self) -> None:
        late = Appending(clock=BEFORE)
        assert late.plan.is_idle
        assert late.plan.boundary == Boundary(80, 8, 0)
        assert not Appending().plan.is_idle
        assert not replace(late, ended=True).plan.is_idle
        assert not ANEW.is_idle

    def test_boundary_is_where_settling_ends_until_messages_are_numbered(self) -> None:
        gaps = SourceOptions(gap_tolerance=3)
        unnumbered = Appending(boundary=None, options=gaps)
        assert unnumbered.plan.boundary == Boundary(SINCE - 3, SINCE - 3, 0)
        assert replace(unnumbered, boundary=Boundary(5, 4, 2)).plan.boundary == Boundary(5, 4, 2)
        assert ANEW.boundary == Boundary(CLOCK.first, CLOCK.first, 0)

    def test_spans_are_maximal_where_the_source_has_them_so_and_nothing_was_before(self) -> None:
        joined = Appending(source=Edges())
        assert (Edges().settled, Libp2p().settled) == (True, False)
        assert Plan(cast(Job, joined)).are_maximal
        assert not Plan(cast(Job, Appending(source=Libp2p()))).are_maximal
        assert not joined.plan.are_maximal

    def test_spans_that_were_over_before_are_settled(
        self, spark: SparkSession, spans: DataFrame
    ) -> None:
        seen = observed_of(frame(spark, [{"name": "a"}], "name"), presence=spans)
        found = Appending().plan.unsettled(seen)
        assert told(found.presence, "valid_to") == [(8,), (9,), (79,), (80,), (81,), (OPEN,)]
        assert (found.peers, found.links) == (seen.peers, None)
        assert ANEW.unsettled(seen) is seen

    def test_peers_that_reported_before_still_do(self, spark: SparkSession) -> None:
        rows = [{"name": "a", "is_reporter": True}, {"name": "b", "is_reporter": False}]
        before = frame(spark, rows, "name", "is_reporter", is_reporter=pa.bool_())
        now = [{"name": "c", "is_reporter": True, "interval": 9}]
        peers = frame(spark, now, "name", "is_reporter", "interval", is_reporter=pa.bool_())
        found = Appending({"peers": before}).plan.unsettled(observed_of(peers))
        assert told(found.peers) == [("a", True, None), ("c", True, 9)]

    def test_periods_that_go_on_end_where_the_run_was_observed(self, spans: DataFrame) -> None:
        """The run had 8 intervals of 10 ticks: nothing of it was observed after tick 80."""
        found = Appending({"links": spans}).plan.going_on(spans.limit(0), "links", "roles")
        assert told(found, "valid_to") == [(8,), (9,), (79,), (80,), (80,), (80,)]
        assert ANEW.going_on(spans, "links") is spans

    @pytest.mark.parametrize(
        ("interval", "ends"), [(7, [79, 80, 81, OPEN]), (8, [81, OPEN]), (0, [1, 7, 8, 9, 79, 80])]
    )
    def test_older_periods_are_those_that_hold_from_the_boundary_on(
        self, spans: DataFrame, interval: int, ends: list[int]
    ) -> None:
        made = Periods(presence=spans.where("valid_to = 9"))
        before = spans if interval else spans.where("valid_to <= 80")
        plan = Appending({"presence": before}, boundary=Boundary(0, interval, 0)).plan
        found = plan.with_older(made, "presence", "links")
        assert told(found.presence, "valid_to") == sorted([(9,), *((end,) for end in ends)])
        assert (found.links, ANEW.with_older(made, "presence")) == (None, made)
        assert plan.with_older(made, "links") == made


class TestGenerations:
    def test_append_adds_its_boundary_to_those_before(self) -> None:
        job = Appending(boundary=Boundary(6, 5, 4))
        base = replace(job.base, generation=3, boundaries=(Change("old", Boundary(1, 1, 1)),))
        grown = Growth(cast(Job, job), base, BEFORE)
        newest = Change(base.identity, Boundary(6, 5, 4))
        found = grown.next_generation(job.manifest)
        assert (found.generation, found.boundaries) == (4, (*base.boundaries, newest))
        assert ANEW.next_generation(job.manifest) == job.manifest

    def test_boundaries_are_bounded(self) -> None:
        job = Appending(boundary=Boundary(6, 5, 4))
        before = tuple(Change(str(i), Boundary(i, i, i)) for i in range(MOST_BOUNDARIES))
        grown = Growth(cast(Job, job), replace(job.base, boundaries=before), BEFORE)
        changes = grown.next_generation(job.manifest).boundaries
        assert [change.of for change in changes[:-1]] == [change.of for change in before[1:]]


class TestOlderRows:
    """Of each table the rows that stay as they were written."""

    @pytest.mark.parametrize(
        ("name", "rows"),
        [
            *(("links", 6), ("dangling_links", 6), ("roles", 6)),
            *(("publications", 4), ("receptions", 4), ("missed", 4), ("metrics/messages", 4)),
            *(("metrics/peers", 5), ("metrics/overlay", 5), ("traffic", INTERVALS)),
        ],
    )
    def test_rows_before_the_boundary_stay(self, tmp_path: Path, name: str, rows: int) -> None:
        (tmp_path / name).mkdir(parents=True)
        told = pa.table(dict.fromkeys(table_of(name).names, range(INTERVALS)))
        pq.write_table(told, tmp_path / name / "part.parquet")
        assert self.older(tmp_path, name) == [rows]

    @pytest.mark.parametrize("name", ["peers", "topics"])
    def test_table_that_is_made_whole_keeps_no_rows(self, tmp_path: Path, name: str) -> None:
        assert self.older(tmp_path, name) == []

    def test_table_that_was_not_there_has_no_older_rows(self, tmp_path: Path) -> None:
        appending = Appending(boundary=Boundary(6, 5, 4))
        assert (appending.plan.older("links"), ANEW.older("links")) == ((), ())

    def older(self, directory: Path, name: str) -> list[int]:
        there = {name: cast(DataFrame, None)}
        job = Appending(there, {name: INTERVALS}, Boundary(6, 5, 4))
        vars(job)["writer"] = RunWriter(directory, None)
        return [part.rows for part in job.plan.older(name)]


class TestKnownNames:
    def test_names_keep_their_indices_and_the_next_is_told(self, spark: SparkSession) -> None:
        peers = frame(spark, [{"name": "a", "index": 0}], "name", "index")
        known = Appending({"peers": peers}, {"peers": 7}).plan.known("peers", "name", "index")
        assert known is not None
        assert (told(known.names), known.names.columns, known.taken) == (
            [("a", 0)], ["name", "index"], 7,
        )  # fmt: skip

    def test_messages_before_the_boundary_are_not_asked_for(self, spark: SparkSession) -> None:
        rows = [{"name": f"m{m}", "message": m} for m in range(3)]
        published = frame(spark, rows, "name", "message", message=pa.int64())
        appending = Appending(
            {"publications": published}, {"publications": 3}, Boundary(SINCE, SINCE, 1)
        )
        known = appending.plan.known("publications", "name", "message AS index")
        assert known is not None
        assert (told(known.names), known.taken) == ([("m1", 1), ("m2", 2)], 3)

    def test_names_are_unknown_without_a_run_or_table(self) -> None:
        assert ANEW.known("peers", "name") is None
        assert Appending().plan.known("peers", "name") is None


def random_messages(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """(tables of the run before, by index; what new input tells of, by name)."""
    count = int(rng.integers(0, 12))
    at = sorted(int(i) for i in rng.integers(0, INTERVALS, count))
    published = [{"message": m, "name": f"m{m}", "interval": i} for m, i in enumerate(at)]
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
            *(r["message"] for r in published if r["name"] in named or r["interval"] >= SINCE),
            len(published),
        ]
    )
    every = [row for rows in before.values() for row in rows]
    interval = min([*(row["interval"] for row in every if row["message"] >= first), SINCE])
    recent = [row["message"] for row in every if row["interval"] >= interval]
    return Boundary(SINCE, interval, first, min([*recent, first]))


def of_messages(spark: SparkSession, before: Rows, now: Rows) -> tuple[Appending, Observed]:
    older = {
        name: frame(spark, rows, "message", "name", "interval", message=pa.int64())
        for name, rows in before.items()
    }
    counts = {name: len(rows) for name, rows in before.items()}
    found = {name: frame(spark, rows, "message", "tick") for name, rows in now.items()}
    return Appending(older, counts), observed_of(frame(spark, [], "name"), **found)


class TestBoundary:
    @pytest.mark.parametrize("seed", range(6))
    def test_boundary_equals_that_of_plain_python(self, spark: SparkSession, seed: int) -> None:
        print(f"seed {seed}")
        before, now = random_messages(np.random.default_rng(seed))
        appending, observed = of_messages(spark, before, now)
        assert appending.plan.find_boundary(observed) == naive_boundary(before, now)

    @pytest.mark.parametrize(
        ("published_in", "named", "expected"),
        [
            ([2, 5, 7], [], Boundary(SINCE, SINCE, 3, 3)),
            ([2, 5, 8], [], Boundary(SINCE, SINCE, 2, 2)),
            ([2, 5, 7], ["m1"], Boundary(SINCE, 5, 1, 1)),
            ([2, 5, 7], ["m1", "m0"], Boundary(SINCE, 2, 0)),
            ([9, 5, 7], [], Boundary(SINCE, 5, 0)),
        ],
    )
    def test_boundary_is_the_earliest_named_or_unsettled_message(
        self, spark: SparkSession, published_in: list[int], named: list[str], expected: Boundary
    ) -> None:
        rows = [{"message": m, "name": f"m{m}", "interval": i} for m, i in enumerate(published_in)]
        before: Rows = {"publications": rows, "receptions": [], "rejections": []}
        now: Rows = {"publications": [{"message": name, "tick": 100} for name in named]}
        appending, observed = of_messages(spark, before, now)
        assert naive_boundary(before, now) == expected
        assert appending.plan.find_boundary(observed) == expected

    def test_boundary_without_messages_is_where_settling_ends(self, spark: SparkSession) -> None:
        appending, observed = of_messages(spark, *random_messages(np.random.default_rng(1)))
        settled = Boundary(SINCE, SINCE, 0)
        assert ANEW.find_boundary(observed) is None
        assert replace(appending, older={}).plan.find_boundary(observed) == settled


class TestFromBoundary:
    BOUNDARY = Boundary(SINCE, 5, 1)

    def at(self, spark: SparkSession, kind: str, *intervals: int) -> DataFrame:
        rows = [{"message": f"{kind}{i}", "interval": i} for i in intervals]
        return frame(spark, rows, "message", "interval")

    def test_observed_messages_come_from_both_since_the_boundary(self, spark: SparkSession) -> None:
        unreported = frame(spark, [{"peer": "a", "interval": 7}], "peer", "interval")
        older = {"publications": self.at(spark, "old", 4, 5, 6), "unreported": unreported}
        appending = Appending(older, boundary=self.BOUNDARY, source=AsFolded())
        seen = observed_of(
            frame(spark, [], "name"),
            publications=self.at(spark, "new", 4, 5, 9),
            receptions=self.at(spark, "new", 5, 11),
        )
        found = appending.plan.of_messages(seen, None)
        assert found.rejections is None
        both = [("new5",), ("new9",), ("old5",), ("old6",)]
        assert told(found.publications, "message") == both
        assert told(found.receptions, "message") == [("new11",), ("new5",)]
        # Where messages were given indices, those alone are looked at.
        index = frame(spark, [{"name": "old6"}, {"name": "new5"}], "name")
        found = appending.plan.of_messages(seen, index)
        assert told(found.publications, "message") == [("new5",), ("old6",)]
        assert told(found.receptions, "message") == [("new5",)]
        assert told(found.unreported) == [("a", 7)]
        assert ANEW.of_messages(seen, index) is seen

    def test_table_that_was_not_carried_is_empty(self, spark: SparkSession) -> None:
        """What is folded of it now is observed now, and would else be there twice."""
        older = {"publications": self.at(spark, "old", 6)}
        fresh = {"rejections": self.at(spark, "new", 6, 7)}
        appending = Appending(older, fresh=fresh, boundary=self.BOUNDARY, source=AsFolded())
        found = appending.plan.of_messages(observed_of(frame(spark, [], "name"), **fresh), None)
        assert told(found.rejections, "message") == [("new6",), ("new7",)]
        assert told(found.publications, "message") == [("old6",)]

    def test_traffic_is_taken_of_intervals_that_are_new(self, spark: SparkSession) -> None:
        rows = self.at(spark, "m", SINCE - 1, SINCE)
        assert told(Appending().plan.unheard(rows), "interval") == [(SINCE,)]
        assert ANEW.unheard(rows) is rows

    def test_metrics_are_read_where_intervals_from_the_boundary_on_are_settled(
        self, spark: SparkSession
    ) -> None:
        name = "metrics/peers"
        appending = Appending({name: self.at(spark, "m", SINCE)}, boundary=self.BOUNDARY)
        assert [part.directory for part in appending.plan.settled(name)] == [name]
        for interval in (SINCE, SINCE + 1):
            late = replace(appending, boundary=Boundary(SINCE, interval, 1))
            assert late.plan.settled(name) == ()
        assert appending.plan.settled("metrics/topics") == ANEW.settled(name) == ()


class AsFolded(Reports):
    """What it folded is what it observed."""

    tables = MappingProxyType(
        {**Reports.tables, "unreported": pa.schema({"peer": pa.string(), "interval": pa.int64()})}
    )

    def observe(
        self, tables: Mapping[str, DataFrame], run: Description, options: SourceOptions
    ) -> Observed:
        return observed_of(tables["publications"].limit(0).select("message"), **tables)
