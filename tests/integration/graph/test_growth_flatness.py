"""What the growth of a copy reads of the copy does not grow with the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import cypher
from benchmarks.growing import Until
from benchmarks.histories import LongRun
from benchmarks.history import db_hits
from benchmarks.sizes import Size
from graphstore.load.compared import SPANS
from graphstore.load.transactions import load_run
from tests.integration.graph.conftest import Graph

pytestmark = pytest.mark.neo4j

SIZE = Size("small", peers=40, intervals=0, links=4, topics=4)
TEXTS = {cypher.statement("grow", name).text: name for name in cypher.names("grow")}


def read_by_growth(graph: Graph, intervals: int) -> Mapping[str, int]:
    """The dbHits of each statement of a growth by the last interval that only reads."""
    run, hits = LongRun(intervals, SIZE), Counter[str]()
    before, after = Until(run, intervals - 1), Until(run, intervals)

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
            patch.setattr("graphstore.load.compared.sessions.rows", profiled)
            assert load_run(graph.driver, graph.database, after.facts, after).grown
    finally:
        graph.remove(run.facts.name)
    return hits


@pytest.mark.parametrize(
    ("short", "long"), [(100, 500), pytest.param(100, 5_000, marks=pytest.mark.long)]
)
def test_open_periods_are_found_by_as_many_reads_in_a_long_history(
    graph: Graph, short: int, long: int
) -> None:
    few, many = read_by_growth(graph, short), read_by_growth(graph, long)
    print(few, many)
    assert {*SPANS} <= few.keys()
    for name in SPANS:
        assert many[name] == pytest.approx(few[name], rel=0.2), name
