"""Where what an append makes anew begins, against plain Python that looks at one row at a time."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.few import few
from tests.support.texts import given, made, made_tables
from vizpub.analytics.steps import Step
from vizpub.ingest.growth import AppendPlan
from vizpub.ingest.job import Job
from vizpub.ingest.plan import IngestPlan
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.edges.source import Edges
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.reports.source import Reports
from vizpub.ingest.tasks.fold import NAMES as NAMES_SCHEMA
from vizpub.ingest.tasks.staged import ingest_step
from vizpub.ingest.tasks.steps import StepInput
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import Table
from vizpub.model.errors import UseError
from vizpub.model.run import Boundary
from vizpub.model.tables import table as table_of
from vizpub.runstore.manifest import (
    LATE_MESSAGES,
    MOST_BOUNDARIES,
    Change,
    Manifest,
    Part,
    Since,
    TableEntry,
)
from vizpub.runstore.stores.place import RunPlace
from vizpub.runstore.writer import RunWriter

INTERVALS, TICKS, SINCE = 12, 10, 8
SETTLED, CLOCK = Boundary(SINCE, SINCE, 0), Clock(TICKS, 1, 0, INTERVALS - 1)
BEFORE = Clock(TICKS, 1, 0, SINCE - 1)
NAMES = ("publications", "receptions", "rejections")
Row = dict[str, Any]
Rows = dict[str, list[Row]]


def shaped(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """The columns of a stored table; those that the rows lack are null."""
    nullable = pa.schema([of.with_nullable(True) for of in schema])
    return pa.Table.from_pylist(
        [{of.name: row.get(of.name) for of in schema} for row in rows], nullable
    )


class Uncut:
    """A writer for whom all rows of a part stay."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.place = directory, RunPlace(directory, None)

    def cut(self, name: str, parts: Sequence[Part], cut: object) -> Sequence[Part]:
        return parts


@dataclass(frozen=True)
class Appending:
    """What of a job is looked at: the run before, and what this ingest has made so far."""

    older: Rows = field(default_factory=dict)
    """Tables of the run before, by name."""
    rows: dict[str, int] = field(default_factory=dict)
    """Of tables of the run before."""
    boundary: Boundary | None = SETTLED
    clock: Clock = CLOCK
    options: SourceOptions = field(default_factory=SourceOptions)
    source: Any = field(default_factory=Reports)
    ended: bool = False
    kept: Rows = field(default_factory=dict)
    """What earlier ingests kept of folded tables."""
    named: tuple[str, ...] = ()
    """The messages that new input names."""
    window: int | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    """Of the run before."""
    made: dict[str, TableEntry] = field(default_factory=dict)
    held: list[tuple[Sequence[Step], Sequence[Table]]] = field(default_factory=list)
    """What is made at the next flush."""

    @property
    def manifest(self) -> Manifest:
        made = Manifest("run", "reports", (), {}, clock=self.clock, boundary=self.boundary)
        return replace(made, ended=self.ended, tables=self.made)

    @property
    def base(self) -> Manifest:
        tables = {
            name: TableEntry(name, self.rows.get(name, len(rows)))
            for name, rows in self.older.items()
        }
        carry = {name: TableEntry(f"carry/{name}", len(rows)) for name, rows in self.kept.items()}
        before = Manifest("run", "reports", (), {"message_window": self.window}, clock=BEFORE)
        return replace(before, tables=tables, carry=carry, notes=self.notes)

    rows_of_parts = Job.rows_of_parts

    @property
    def plan(self) -> IngestPlan:
        return AppendPlan(cast(Job, self), self.base, BEFORE)

    @cached_property
    def writer(self) -> Uncut:
        """Has the tables of the run before as files."""
        directory = Path(mkdtemp())
        atexit.register(rmtree, directory, ignore_errors=True)
        tables = [(name, rows, table_of(name).arrow) for name, rows in self.older.items()]
        folded = self.source.tables
        tables += [(f"carry/{name}", rows, folded[name]) for name, rows in self.kept.items()]
        for name, rows, schema in tables:
            put(directory / name, shaped(rows, schema))
        return Uncut(directory)

    def make_from_whole_input(self, chosen: Sequence[Step], makes: Sequence[Table]) -> None:
        self.held.append((chosen, makes))

    def flush(self) -> None:
        for chosen, makes in self.held:
            self._make(chosen, makes)
        self.held.clear()

    def _make(self, chosen: Sequence[Step], makes: Sequence[Table]) -> None:
        names = [{"table": "receptions", "kind": "message", "name": name} for name in self.named]
        taken = [one.selected_rows for one in self.plan.earlier_rows("publications")]
        tables = {
            "folded/names": pa.Table.from_pylist(names, NAMES_SCHEMA),
            "before/publications": taken[0].to_table(),
        }
        for name, rows in made_tables(chosen, tables, makes, given()).items():
            put(self.writer.directory / name, rows)
            self.made[name] = TableEntry(name, len(rows))
        for table in makes:
            if table.name not in self.made:
                put(self.writer.directory / table.name, table.arrow.empty_table())
                self.made[table.name] = TableEntry(table.name, 0)


def put(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / "part.parquet")


ANEW = IngestPlan(cast(Job, Appending()))
"""Of a run that is made from all of its input."""


def told(taken: Sequence[StepInput], column: str) -> list[Any]:
    """A column of the rows that are taken."""
    return sorted(
        value for one in taken for value in one.selected_rows.to_table()[column].to_pylist()
    )


class TestTelling:
    def unlike(self, before: Sequence[str], now: Sequence[str]) -> None:
        base = replace(Appending().base, unknown=tuple(before))
        AppendPlan(cast(Job, Appending()), base, BEFORE).check_facts(now)

    def test_run_and_input_that_tell_the_same_pass(self) -> None:
        self.unlike(["links", "topics"], ["topics", "links"])

    @pytest.mark.parametrize(
        ("before", "now", "said"),
        [("ab", "a", " b,"), ("a", "acb", " b, c,")],
    )
    def test_difference_in_what_is_unknown_is_named(self, before: str, now: str, said: str) -> None:
        ANEW.check_facts(now)
        with pytest.raises(UseError, match=said):
            self.unlike(before, now)


ENDS = (1, 7, 8, 9, 79, 80, 81, OPEN)
SPANS = [{"peer": n, "valid_from": 0, "valid_to": end} for n, end in enumerate(ENDS)]
PEERS = pa.table({"peer": [*range(8)], "name": [*"abcdefgh"]})


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
        assert IngestPlan(cast(Job, joined)).are_maximal
        assert not IngestPlan(cast(Job, Appending(source=Libp2p()))).are_maximal
        assert not joined.plan.are_maximal

    def test_spans_that_were_over_before_are_settled(self) -> None:
        observed = pa.table(
            {"peer": [*"abcdefgh"], "valid_from": [0] * 8, "valid_to": pa.array(ENDS, pa.int64())}
        )
        tables = {"observed/presence": observed, "peers": PEERS}
        for plan, ends in ((Appending().plan, ENDS[2:]), (ANEW, ENDS)):
            found = made("presence", [ingest_step("presence")], tables, given(**plan.variables))
            assert sorted(found["valid_to"].to_pylist()) == [*ends]

    def test_periods_that_go_on_end_where_the_run_was_observed(self) -> None:
        """The run had 8 intervals of 10 ticks: nothing of it was observed after tick 80."""
        plan = Appending({"presence": SPANS}).plan
        (taken,) = plan.earlier_rows("presence")
        tables = {"before/presence": taken.selected_rows.to_table(), "peers": PEERS}
        found = made("presence", [ingest_step("presence")], tables, given(**plan.variables))
        assert sorted(found["valid_to"].to_pylist()) == [8, 9, 79, 80, 80, 80]
        assert ANEW.earlier_rows("presence") == []

    def test_links_that_dangled_may_go_on(self) -> None:
        links = [{"src": n, "dst": 9, "layer": "l", **span} for n, span in enumerate(SPANS)]
        plan = Appending({"links": links[:4], "dangling_links": links[4:]}).plan
        assert told(plan.earlier_rows("links"), "valid_to") == [*ENDS[2:]]
        assert plan.earlier_rows("roles") == []

    @pytest.mark.parametrize(
        ("interval", "ends"), [(7, [79, 80, 81, OPEN]), (8, [81, OPEN]), (0, [1, 7, 8, 9, 79, 80])]
    )
    def test_older_periods_are_those_that_hold_from_the_boundary_on(
        self, interval: int, ends: list[int]
    ) -> None:
        before = SPANS if interval else SPANS[:6]
        plan = Appending({"presence": before}, boundary=Boundary(0, interval, 0)).plan
        parts, since = plan.needed_parts("presence")
        assert [part.directory for part in parts] == ["presence"]
        assert since is not None
        rows = pa.Table.from_pylist(before)
        kept = rows.filter(pc.greater_equal(rows[since.column], since.least))
        assert kept["valid_to"].to_pylist() == ends
        assert plan.needed_parts("links") == ((), None)


class TestGenerations:
    def test_append_adds_its_boundary_to_those_before(self) -> None:
        job = Appending(boundary=Boundary(6, 5, 4))
        base = replace(job.base, generation=3, boundaries=(Change("old", Boundary(1, 1, 1)),))
        grown = AppendPlan(cast(Job, job), base, BEFORE)
        newest = Change(base.identity, Boundary(6, 5, 4))
        found = grown.next_generation(job.manifest)
        assert (found.generation, found.boundaries) == (4, (*base.boundaries, newest))
        assert ANEW.next_generation(job.manifest) == job.manifest

    def test_boundaries_are_bounded(self) -> None:
        job = Appending(boundary=Boundary(6, 5, 4))
        before = tuple(Change(str(i), Boundary(i, i, i)) for i in range(MOST_BOUNDARIES))
        grown = AppendPlan(cast(Job, job), replace(job.base, boundaries=before), BEFORE)
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
        assert (appending.plan.older_parts("links"), ANEW.older_parts("links")) == ((), ())

    def older(self, directory: Path, name: str) -> list[int]:
        job = Appending({name: []}, {name: INTERVALS}, Boundary(6, 5, 4))
        vars(job)["writer"] = RunWriter(directory, None)
        return [part.rows for part in job.plan.older_parts(name)]


class TestNamesBefore:
    def test_names_keep_their_indices_and_reporters_stay(self) -> None:
        before = [
            {"peer": 0, "name": "z", "is_reporter": True},
            {"peer": 1, "name": "y", "is_reporter": False},
        ]
        (taken,) = Appending({"peers": before}).plan.earlier_rows("peers")
        names = [{"table": "peers", "kind": "peer", "name": name, "interval": 9} for name in "azy"]
        tables = {
            "before/peers": taken.selected_rows.to_table(),
            "observed/names": pa.Table.from_pylist(names, NAMES_SCHEMA),
            "observed/peers": pa.table({"name": ["a"]}),
        }
        found = made("peers", [ingest_step("peers")], tables, given(known=["peers"]))
        rows = sorted(tuple(row.values()) for row in found.to_pylist())
        assert rows == [(0, "z", True), (1, "y", False), (2, "a", True)]

    def test_messages_before_the_boundary_are_not_asked_for(self) -> None:
        rows = [{"name": f"m{m}", "message": m} for m in range(3)]
        plan = Appending({"publications": rows}, boundary=Boundary(SINCE, SINCE, 1)).plan
        assert told(plan.earlier_rows("publications"), "name") == ["m1", "m2"]
        assert plan.variables["messages_before"] == 3

    def test_whole_ingest_takes_every_row_and_numbers_from_0(self) -> None:
        first = min(ANEW.variables[name] for name in ("unsettled", "last_before", "boundary"))
        last = max(ANEW.variables[name] for name in ("unsettled", "last_before", "boundary"))
        assert first == last == -OPEN
        assert (ANEW.variables["first_open"], ANEW.variables["messages_before"]) == (0, 0)
        assert ANEW.late_messages() == 0

    @pytest.mark.parametrize(("earlier", "total"), [(3, 7), (None, 4)])
    def test_counts_add_to_those_of_a_run_that_has_them(self, earlier: Any, total: int) -> None:
        source = SimpleNamespace(combine_tallies=sum, find_reversal=lambda *_: None, tables={})
        job = Appending(source=source)
        plan = AppendPlan(cast(Job, job), replace(job.base, totals=earlier), BEFORE)
        assert plan.combine_counts(cast(Any, 4)) == total

    def test_older_rows_are_needed_from_the_first_message_or_interval_on(self) -> None:
        rows: Rows = {"publications": [{"message": 0}], "receptions": [{"message": 0}]}
        plan = Appending(rows, boundary=Boundary(SINCE, 5, 3, 2)).plan
        assert plan.needed_parts("publications")[1] == Since("message", 2)
        assert plan.needed_parts("receptions")[1] == Since("interval", 5)

    def test_run_without_publications_has_no_late_messages(self) -> None:
        assert Appending().plan.late_messages() == 0

    def test_names_are_unknown_without_a_run_or_table(self) -> None:
        assert ANEW.earlier_rows("peers") == Appending().plan.earlier_rows("peers") == []


def random_messages(rng: np.random.Generator) -> tuple[Rows, list[str]]:
    """(tables of the run before; the messages that new input names)."""
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
    return before, [f"m{m}" for m in range(count + 3) if rng.random() < 0.12]


def naive_boundary(before: Rows, named: Sequence[str]) -> Boundary:
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


class TestBoundary:
    @pytest.mark.parametrize("seed", few(range(12), range(4)))
    def test_boundary_equals_that_of_plain_python(self, seed: int) -> None:
        print(f"seed {seed}")
        before, named = random_messages(np.random.default_rng(seed))
        appending = Appending(before, boundary=None, named=tuple(named))
        assert appending.plan.find_boundary() == naive_boundary(before, named)

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
        self, published_in: list[int], named: list[str], expected: Boundary
    ) -> None:
        rows = [{"message": m, "name": f"m{m}", "interval": i} for m, i in enumerate(published_in)]
        before: Rows = {"publications": rows, "receptions": [], "rejections": []}
        appending = Appending(before, boundary=None, named=tuple(named))
        assert naive_boundary(before, named) == expected
        assert appending.plan.find_boundary() == expected

    @pytest.mark.parametrize(
        ("named", "first", "late"),
        [(["m0"], 3, 1), (["m0", "m1", "m2"], 2, 2), (["m2"], 2, 0), ([], 3, 0)],
    )
    def test_final_messages_that_are_named_are_counted_and_stay(
        self, named: list[str], first: int, late: int
    ) -> None:
        """A window of 2 after interval 7: messages up to interval 5 are final."""
        rows = [{"message": m, "name": f"m{m}", "interval": i} for m, i in enumerate([2, 5, 7])]
        before: Rows = {"publications": rows, "receptions": [], "rejections": []}
        appending = Appending(
            before, boundary=None, named=tuple(named), window=2, notes={LATE_MESSAGES: 4}
        )
        plan = appending.plan
        boundary = plan.find_boundary()
        assert boundary is not None
        assert boundary.message == first
        assert plan.late_messages() == 4 + late

    def test_boundary_without_messages_is_where_settling_ends(self) -> None:
        assert ANEW.find_boundary() is None
        assert Appending(boundary=None).plan.find_boundary() == Boundary(SINCE, SINCE, 0)


class TestFromBoundary:
    BOUNDARY = Boundary(SINCE, 5, 1)

    def test_messages_of_earlier_ingests_come_from_the_boundary_on(self) -> None:
        kept: Rows = {
            "publications": [{"message": f"old{i}", "interval": i} for i in (4, 5, 6)],
            "unreported": [
                {"peer": peer, "what": "receptions", "valid_from": 1, "valid_to": end}
                for peer, end in (("a", 5), ("b", 6))
            ],
            "records": [{"peer": "a", "interval": 9}],
        }
        plan = Appending(kept=kept, boundary=self.BOUNDARY).plan
        assert told(plan.carried_rows("publications"), "message") == ["old5", "old6"]
        assert told(plan.carried_rows("unreported"), "peer") == ["b"]
        for name in ("receptions", "links", "records"):
            assert plan.carried_rows(name) == []
        assert ANEW.carried_rows("publications") == []

    def test_observed_messages_are_those_numbered_from_the_boundary_on(self) -> None:
        rows = [("numbered", 4), ("numbered", 5), ("final", 6)]
        observed = [{"message": name, "interval": i, "tick": i} for name, i in rows]
        tables = {
            "observed/publications": pa.Table.from_pylist(observed, OBSERVED["publications"]),
            "staged/messages": pa.table({"message": [7], "name": ["numbered"]}),
        }
        found = made("staged/claims", [ingest_step("claims")], tables, given(boundary=5))
        assert [(row["message"], row["interval"]) for row in found.to_pylist()] == [(7, 5)]

    def test_traffic_is_taken_of_intervals_that_are_new(self) -> None:
        rows = pa.table({"peer": ["a", "a"], "interval": [SINCE - 1, SINCE]})
        tables = {"observed/traffic": rows, "peers": PEERS}
        for plan, intervals in ((Appending().plan, [SINCE]), (ANEW, [SINCE - 1, SINCE])):
            found = made("traffic", [ingest_step("traffic")], tables, given(**plan.variables))
            assert sorted(found["interval"].to_pylist()) == intervals

    def test_metrics_are_read_where_intervals_from_the_boundary_on_are_settled(self) -> None:
        name = "metrics/peers"
        appending = Appending({name: [{"interval": SINCE, "peer": 0}]}, boundary=self.BOUNDARY)
        assert [part.directory for part in appending.plan.settled_parts(name)] == [name]
        for interval in (SINCE, SINCE + 1):
            late = replace(appending, boundary=Boundary(SINCE, interval, 1))
            assert late.plan.settled_parts(name) == ()
        assert appending.plan.settled_parts("metrics/topics") == ANEW.settled_parts(name) == ()


class TestParts:
    """The peers of a part of the input, and those of no part, are all peers, each once."""

    def test_peer_is_of_one_part_or_of_the_rest(self) -> None:
        of_parts = (["a", "b"], ["c"], [])
        parts = [
            [{"kind": "peer", "column": "src", "name": name} for name in names]
            + [{"kind": "peer", "column": "dst", "name": "h"}]
            for names in of_parts
        ]
        every = [row for rows in parts for row in rows]
        found = [self.mine(rows, "some") for rows in parts] + [self.mine(every, "rest")]
        assert found == [[0, 1], [2], [], [3, 4, 5, 6, 7]]
        assert self.mine(every, "all") == [*range(8)]

    def mine(self, names: Sequence[Row], part: str) -> list[int]:
        tables = {"folded/names": pa.Table.from_pylist(list(names), NAMES_SCHEMA), "peers": PEERS}
        found = made("mine", [ingest_step("mine")], tables, given(part=part))
        return sorted(found["peer"].to_pylist())
