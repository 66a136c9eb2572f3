"""What a question reads does not grow with the history, in a run and one eight times as long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean

import pytest

from benchmarks.histories import LongRun
from benchmarks.history import PLACES, db_hits, measured_queries, question, statement
from benchmarks.sizes import Size
from tests.integration.graph.conftest import Graph
from vizpub.graphstore.load.partitions import NONE
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import LoadedRun, open_run

pytestmark = [pytest.mark.long, pytest.mark.neo4j]

SIZE = Size("small", peers=14, intervals=0, links=4, topics=4, churn=0.2)
SHORT, LONG = (LongRun(intervals, SIZE) for intervals in (48, 384))
PARTITION = 16
"""Intervals of a partition: both runs have some."""
WHOLE, ANCHORED = 2.0, 3.0
"""What reads the whole overlay at a time may read so many times more in the longer run, and so
many what starts at a peer or a topic."""
GROWING = {"history all", "peer-history"}
"""They are about the whole history."""
FLAT = [name for name in measured_queries() if name not in GROWING | {"runs"}]
AT_A_TIME = [name for name in FLAT if statement(name).times]
FEW = {
    "overlay", "overlay-diff", "history as-of", "history deleted-in", "neighbours",
    "topic-subgraph", "shortest-path", "dissemination-tree",
}  # fmt: skip
"""Of every kind one; the others rarely tell more."""
assert FEW.issubset(FLAT)


@pytest.fixture(scope="module")
def runs(graph: Graph) -> Iterator[Mapping[LongRun, LoadedRun]]:
    for run in (SHORT, LONG):
        graph.remove(run.facts.name)
        load_run(graph.driver, graph.database, run.facts, run, partition_intervals=PARTITION)
    graph.plan_anew()
    yield {run: open_run(graph.driver, graph.database, run.facts.name) for run in (SHORT, LONG)}
    for run in (SHORT, LONG):
        graph.remove(run.facts.name)


def hits(graph: Graph, name: str, loaded: LoadedRun, run: LongRun) -> float:
    """dbHits, on average over some places of the run."""

    def at(place: float) -> int:
        text, values = question(name, loaded, run, place)
        with graph.driver.session(database=graph.database) as session:
            result = session.run("PROFILE " + text, values)
            list(result)  # what nobody takes is not read
            profile = result.consume().profile
        assert profile
        return db_hits(profile)

    return fmean(map(at, PLACES))


def growth(graph: Graph, name: str, runs: Mapping[LongRun, LoadedRun]) -> float:
    return hits(graph, name, runs[LONG], LONG) / hits(graph, name, runs[SHORT], SHORT)


@pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.long) for n in FLAT]
)
def test_query_cost_does_not_grow_with_the_history(
    graph: Graph, runs: Mapping[LongRun, LoadedRun], name: str
) -> None:
    assert growth(graph, name, runs) < (ANCHORED if name in AT_A_TIME else WHOLE)


@pytest.mark.parametrize(
    "name",
    [
        "neighbours",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("k-hop", "topic-subgraph")),
    ],
)
def test_query_cost_without_partitions_grows_with_the_history(
    graph: Graph, runs: Mapping[LongRun, LoadedRun], name: str
) -> None:
    without = {run: replace(loaded, partitions=NONE) for run, loaded in runs.items()}
    assert growth(graph, name, without) > ANCHORED
