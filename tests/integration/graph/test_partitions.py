"""Time partitions change what a query costs, and no answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.integration.graph.conftest import Graph, History, layers_of_channels, random_history
from tests.integration.graph.test_queries import few_or
from tests.integration.graph.test_verify import seen
from tests.support.few import few
from tests.support.words import naming
from vizpub import cypher
from vizpub.graphstore.ask import queries
from vizpub.graphstore.load.partitions import Partitions, copies
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import open_run
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import UseError

pytestmark = pytest.mark.neo4j

LENGTH = 2
"""Intervals of a partition."""
HISTORY = random_history(52, intervals=6, ticks=3)
AT_ONE_TIME = [n for n in cypher.names("queries") if cypher.statement("queries", n).times]
"""The queries that read partitions."""
REST = [name for name in AT_ONE_TIME if name not in AT_ONE_TIME[::4]]


def load(graph: Graph, history: History, partition_intervals: int | None = LENGTH) -> None:
    load_run(
        graph.driver,
        graph.database,
        history.facts,
        history.tables,
        partition_intervals=partition_intervals,
    )


@pytest.fixture(scope="module")
def twins(graph: Graph) -> Iterator[tuple[History, History]]:
    """A history with partitions, and the same without."""
    with_partitions, without = HISTORY.named("partitions"), HISTORY.named("no-partitions")
    for twin in (with_partitions, without):
        graph.remove(twin.facts.name)
    load(graph, with_partitions)
    load(graph, without, partition_intervals=0)
    yield with_partitions, without
    for twin in (with_partitions, without):
        graph.remove(twin.facts.name)


@pytest.fixture(scope="module")
def history(graph: Graph) -> Iterator[History]:
    """One that each test leaves as it was."""
    history = random_history(53, name="copied", intervals=8, peers=6)
    graph.remove("copied")
    load(graph, history)
    yield history
    graph.remove("copied")


def count_of_copies(graph: Graph, run: str) -> int:
    ((count,),) = graph.ask(
        "MATCH ()-[r]->() WHERE r.run = $run AND type(r) =~ '.*_P[0-9]+' RETURN count(r)", run=run
    )
    return int(count)


def expected_copies(history: History, partitions: Partitions) -> int:
    tables = ("links", "subscriptions")
    return sum(copies(b, partitions).num_rows for t in tables for _, b in history.tables(t))


def questions(history: History, name: str) -> Iterator[dict[str, object]]:
    """Values for the parameters of a query: every time, some of everything else."""
    peers = [history.peer(p) for p in range(5)]
    samples: dict[str, list[object]] = {
        "tick": [*range(history.facts.clock.first, history.facts.clock.last + 1)],
        "peer": [*peers],
        "topic": [history.topic(t) for t in range(4)],
        "message": [m["name"] for m in history.rows["publications"]],
        "layers": [None, "mesh"],
    }
    asked = [p for p in cypher.statement("queries", name).parameters if p.type in samples]
    for values in product(*(samples[p.type] for p in asked)):
        given = {p.name: v for p, v in zip(asked, values, strict=True) if v is not None}
        yield layers_of_channels(name) | given


def answered(graph: Graph, run: str, name: str, given: dict[str, object]) -> Any:
    try:
        rows = queries.ask(graph.driver, graph.database, name, given, run=run).rows
    except UseError as error:
        return str(error)
    # Of equally short paths any one is an answer.
    return [row[0] for row in rows] if name in ("shortest-path", "k-shortest-paths") else rows


@pytest.mark.parametrize("most", few_or(50, 5))
@pytest.mark.parametrize(
    "name", [*AT_ONE_TIME[::4], *(pytest.param(n, marks=pytest.mark.long) for n in REST)]
)
def test_query_answers_are_equal_with_and_without_partitions(
    graph: Graph, twins: tuple[History, History], name: str, most: int
) -> None:
    with_partitions, _ = twins
    asked = list(questions(with_partitions, name))
    found = 0
    for given in asked[:: 1 + len(asked) // most]:
        answer = answered(graph, "partitions", name, given)
        assert answer == answered(graph, "no-partitions", name, given), given
        found += isinstance(answer, list) and bool(answer)
    assert found


@pytest.mark.parametrize("name", AT_ONE_TIME)
def test_query_at_one_time_reads_only_its_partition(
    graph: Graph, twins: tuple[History, History], name: str
) -> None:
    run = open_run(graph.driver, graph.database, "partitions")
    given = next(
        given
        for given in questions(twins[0], name)
        if isinstance(answered(graph, "partitions", name, given), list)
    )
    text, values = queries.prepare(cypher.statement("queries", name), given, run)
    with graph.driver.session(database=graph.database) as session:
        plan = str(session.run("EXPLAIN " + text, values).consume().plan)
    hinted = set(re.findall(r"USING INDEX \w+:(\w+)", text))
    copied = {"LINK", "SUBSCRIBES"} - hinted
    assert re.search(r":(LINK|SUBSCRIBES)_P\d+\b", plan)
    assert not re.search(rf"[:|]({'|'.join(copied)})[\]*) ]", plan)


def test_relationships_are_copied_for_each_of_their_partitions(
    graph: Graph, history: History
) -> None:
    partitions = open_run(graph.driver, graph.database, "copied").partitions
    assert (partitions.intervals, partitions.count) == (LENGTH, 4)
    assert count_of_copies(graph, "copied") == expected_copies(history, partitions) > 0


def test_resumed_load_keeps_its_partitions_and_copies(graph: Graph, history: History) -> None:
    before = count_of_copies(graph, "copied")
    graph.ask("MATCH (r:Run {key: 'copied'}) SET r.state = 'loading'")
    load(graph, history, partition_intervals=None)
    assert count_of_copies(graph, "copied") == before
    assert open_run(graph.driver, graph.database, "copied").partitions.intervals == LENGTH


@pytest.mark.parametrize("state", ["loading", "complete"])
@pytest.mark.parametrize("intervals", few([0, 1], [1]))
def test_load_with_other_partitions_than_the_copy_has_is_refused(
    graph: Graph, history: History, state: str, intervals: int
) -> None:
    graph.ask("MATCH (r:Run {key: 'copied'}) SET r.state = $state", state=state)
    with pytest.raises(
        UseError, match=naming(2, f"not of {intervals}", "vizpub neo4j rebuild copied")
    ):
        load(graph, history, partition_intervals=intervals)
    graph.ask("MATCH (r:Run {key: 'copied'}) SET r.state = 'complete'")
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []


@pytest.mark.long
def test_small_run_is_not_partitioned_by_itself(graph: Graph, loaded: Any) -> None:
    loaded(random_history(54, name="long", intervals=300, peers=3))
    assert count_of_copies(graph, "long") == 0
    assert open_run(graph.driver, graph.database, "long").partitions.count == 0


def test_removed_run_leaves_no_copies(graph: Graph, history: History) -> None:
    load(graph, history.named("uncopied"))
    assert count_of_copies(graph, "uncopied") > 0
    remove_run(graph.driver, graph.database, "uncopied")
    assert count_of_copies(graph, "uncopied") == 0


HARM = {
    "missing": (
        "links: relationships link-copies",
        "MATCH (:Peer {run: $run})-[r:LINK_P1]->() WITH r LIMIT 1 DELETE r",
    ),
    "twice": (
        "links: relationships link-copies",
        "MATCH (a:Peer {run: $run})-[r:LINK_P1]->(b) WITH a, r, b LIMIT 1 "
        "CREATE (a)-[c:LINK_P1]->(b) SET c = properties(r)",
    ),
    "in another partition": (
        "subscriptions: checksums of relationships subscription-copies",
        "MATCH (a:Peer {run: $run})-[r:SUBSCRIBES_P1]->(b) WITH a, r, b LIMIT 1 "
        "CREATE (a)-[c:SUBSCRIBES_P3]->(b) SET c = properties(r) DELETE r",
    ),
    "of another period": (
        "links: checksums of relationships link-copies",
        "MATCH (:Peer {run: $run})-[r:LINK_P2]->() WITH r LIMIT 1 "
        "SET r.valid_from = r.valid_from + 1",
    ),
}


@pytest.mark.parametrize("harm", HARM)
def test_corrupt_copy_is_found_by_verify(graph: Graph, history: History, harm: str) -> None:
    words, text = HARM[harm]
    (found,) = seen(graph, history, text)
    assert str(found).startswith(words)


@pytest.mark.parametrize("type", few(["LINK_P4711", "SUBSCRIBES_P4711", "LINK_P"], ["LINK_P4711"]))
def test_copy_of_a_partition_that_the_run_has_not_is_found_by_verify(
    graph: Graph, history: History, type: str
) -> None:
    like = type.partition("_")[0]
    text = (
        f"MATCH (a:Peer {{run: $run}})-[r:{like}_P1]->(b) WITH a, r, b LIMIT 1 "
        f"CREATE (a)-[c:{type}]->(b) SET c = properties(r)"
    )
    found = seen(graph, history, text)
    assert [str(difference.what) for difference in found] == [
        "relationships that begin at its nodes",
        "relationships that end at its nodes",
    ]


def test_run_without_partitions_equals_its_tables(graph: Graph, history: History) -> None:
    text = (
        "MATCH ()-[r]->() WHERE r.run = $run AND type(r) =~ '.*_P[0-9]+' DELETE r "
        "WITH count(*) AS all MATCH (run:Run {key: $run}) SET run.partition_intervals = 0"
    )
    assert seen(graph, history, text) == []
