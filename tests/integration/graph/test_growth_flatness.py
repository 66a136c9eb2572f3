"""What the growth of a copy reads does not grow with the history: of the copy, and of the tables
but for what labels are made from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.growing import Until
from benchmarks.histories import LongRun
from benchmarks.history import db_hits
from benchmarks.sizes import Size
from tests.integration.graph.conftest import Graph
from vizpub import cypher
from vizpub.graphstore.load.growing_copy import SPANS
from vizpub.graphstore.load.reading import rows_since
from vizpub.graphstore.load.transactions import load_run

pytestmark = [pytest.mark.long, pytest.mark.neo4j]

SIZE = Size("small", peers=40, intervals=0, links=4, topics=4)
TEXTS = {cypher.statement("grow", name).text: name for name in cypher.names("grow")}


WHOLE = {*SPANS, "peers", "topics", "publications"}
"""Tables that are read whole: labels say who has many links, publishes, or ever had a role, and
peers when they were there first.
"""


@dataclass(frozen=True)
class Counting(Until):
    """Counts the rows that are read from a boundary on; notes the tables that are read whole."""

    rows_read: Counter[str] = field(default_factory=Counter, compare=False)
    whole: set[str] = field(default_factory=set, compare=False)

    def row_groups(self, name: str) -> Iterable[tuple[str, pa.RecordBatch]]:
        """As Until."""
        self.whole.add(name)
        return super().row_groups(name)

    def rows_from(self, name: str, column: str, least: int) -> Iterator[pa.RecordBatch]:
        """As Until."""
        for rows in rows_since(super().row_groups(name), column, least):
            self.rows_read[name] += len(rows)
            yield rows

    def rows(self, name: str) -> int:
        """As Until, which reads a table to count."""
        return Until(self.run, self.interval).rows(name)


def read_by_growth(graph: Graph, intervals: int) -> tuple[Mapping[str, int], Counting]:
    """The dbHits of each statement of a growth by the last interval that only reads, and what it
    reads of the tables.
    """
    run, hits = LongRun(intervals, SIZE), Counter[str]()
    before, after = Until(run, intervals - 1), Counting(run, intervals)

    def profiled(driver: Any, database: str, text: str, given: Any, *_: float) -> list[list[Any]]:
        with driver.session(database=database) as session:
            result = session.run("PROFILE " + text, given)
            rows = [list(record.values()) for record in result]
            profile = result.consume().profile
        assert profile
        hits[TEXTS.get(text, "nodes read back")] += db_hits(profile)
        return rows

    graph.remove(run.facts.name)
    try:
        load_run(graph.driver, graph.database, before.facts, before, partition_intervals=0)
        graph.plan_anew()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("vizpub.graphstore.load.growing_copy.sessions.rows", profiled)
            assert load_run(graph.driver, graph.database, after.facts, after).grown
    finally:
        graph.remove(run.facts.name)
    return hits, after


@pytest.mark.parametrize(
    ("short", "long"), [(100, 500), pytest.param(100, 5_000, marks=pytest.mark.long)]
)
def test_growth_reads_as_much_in_a_long_history(graph: Graph, short: int, long: int) -> None:
    (few, early), (many, late) = (read_by_growth(graph, n) for n in (short, long))
    print(few, many, early.rows_read, late.rows_read)
    assert {*SPANS} <= few.keys()
    for name in SPANS:
        # Where there are hardly any, a plan may take a few more.
        assert many[name] == pytest.approx(few[name], rel=0.2, abs=8), name
    assert early.whole <= WHOLE
    assert late.whole <= WHOLE
    assert early.rows_read["links"] > 0
    for name in {*early.rows_read, *late.rows_read} - {"publications", "receptions", "missed"}:
        assert late.rows_read[name] == pytest.approx(early.rows_read[name], rel=0.2), name
