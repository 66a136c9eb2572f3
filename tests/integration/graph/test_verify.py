"""Whatever is changed in Neo4j's copy of a run is found, and in the right table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neo4j import Query, Result, Transaction

from tests.integration.graph.conftest import Graph, History, random_history
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.verify.checksums import PRIMES, checksums_of
from vizpub.graphstore.verify.verify import Difference, verify_run

pytestmark = pytest.mark.neo4j

BREAK = {
    "a name": ("peers", "MATCH (n:Peer {run: $run, id: 3}) SET n.name = 'other'"),
    "a missing value": ("peers", "MATCH (n:Peer {run: $run, id: 3}) REMOVE n.is_reporter"),
    "a value too many": (
        "publications",
        "MATCH (n:Message {run: $run}) WHERE n.topic IS NULL WITH n LIMIT 1 SET n.topic = 1",
    ),
    "a metric": (
        "metrics/messages",
        "MATCH (n:Message {run: $run, id: 4}) SET n.hit_ratio = n.hit_ratio + 1e-12",
    ),
    "an interval": ("metrics/overlay", "MATCH (n:Interval {run: $run, i: 3}) SET n.density = 2.0"),
    "a sampling tick": ("clock", "MATCH (n:Interval {run: $run, i: 3}) SET n.t = 0"),
    "a peer too many": ("peers", "CREATE (:Peer {key: $run + '/99', run: $run, id: 99})"),
    "a topic gone": ("topics", "MATCH (n:Topic {run: $run, id: 2}) DETACH DELETE n"),
    "a link gone": ("links", "MATCH ()-[r:LINK {run: $run}]->() WITH r LIMIT 1 DELETE r"),
    "a link's end": (
        "links",
        "MATCH ()-[r:LINK {run: $run, valid_to: 9223372036854775807}]->() "
        "WITH r LIMIT 1 SET r.valid_to = 8",
    ),
    "a link's level": (
        "links", "MATCH ()-[r:LINK {run: $run, length_class: 0}]->() "
        "WITH r LIMIT 1 SET r.length_class = 1",
    ),
    "a link's layer": (
        "links", "MATCH ()-[r:LINK {run: $run, layer: 'mesh'}]->() WITH r LIMIT 1"
        " SET r.layer = 'tree'",
    ),
    "a link's topic": (
        "links", "MATCH ()-[r:LINK {run: $run, layer: 'mesh'}]->() WITH r LIMIT 1 REMOVE r.topic",
    ),
    "two links' ends, exchanged": (
        "links",
        "MATCH ()-[r:LINK {run: $run}]->(), ()-[s:LINK {run: $run}]->() "
        "WHERE r.valid_from <> s.valid_from AND startNode(r) <> startNode(s) WITH r, s LIMIT 1 "
        "WITH r, s, r.valid_from AS x, r.length_class AS l, r.valid_to AS e "
        "SET r.valid_from = s.valid_from, s.valid_from = x",
    ),
    "a link twice": (
        "links",
        "MATCH (a)-[r:LINK {run: $run}]->(b) WITH a, r, b LIMIT 1 "
        "CREATE (a)-[s:LINK]->(b) SET s = properties(r)",
    ),
    "a link turned round": (
        "links",
        "MATCH (a)-[r:LINK {run: $run}]->(b) WITH a, r, b LIMIT 1 "
        "CREATE (b)-[s:LINK]->(a) SET s = properties(r) DELETE r",
    ),
    "a presence period": (
        "presence",
        "MATCH ()-[r:PRESENT {run: $run}]->() WITH r LIMIT 1 SET r.valid_from = r.valid_from+1",
    ),
    "a subscription": (
        "subscriptions",
        "MATCH ()-[r:SUBSCRIBES {run: $run}]->() WITH r LIMIT 1 "
        "SET r.valid_from = r.valid_from + 1",
    ),
    "a role": (
        "roles", "MATCH ()-[r:HAS_ROLE {run: $run}]->() WITH r LIMIT 1 SET r.role = 'rendezvous'",
    ),
    "a role's topic": (
        "roles", "MATCH (p)-[r:HAS_ROLE {run: $run}]->(t:Topic), (o:Run {key: $run}) "
        "WITH p, r, o LIMIT 1 CREATE (p)-[s:HAS_ROLE]->(o) SET s = properties(r) DELETE r",
    ),
    "an attribute": (
        "attributes", "MATCH ()-[r:HAS_ATTRIBUTE {run: $run}]->() WITH r LIMIT 1 SET r.key = 'x'",
    ),
    "a letter of an attribute's value": (
        "attributes",
        "MATCH ()-[r:HAS_ATTRIBUTE {run: $run, value: 'teku'}]->() WITH r LIMIT 1 "
        "SET r.value = 'tekü'",
    ),
    "the number of an attribute's value": (
        "attributes",
        "MATCH ()-[r:HAS_ATTRIBUTE {run: $run, value: '-2.5'}]->() WITH r LIMIT 1 "
        "SET r.number = -2.25",
    ),
    "a publisher": (
        "publications", "MATCH ()-[r:PUBLISHED {run: $run}]->() WITH r LIMIT 1 DELETE r",
    ),
    "a message's topic": (
        "publications",
        "MATCH (m:Message {run: $run})-[r:PUBLISHED_ON]->(t), (o:Topic {run: $run}) WHERE o <> t "
        "WITH m, r, o LIMIT 1 CREATE (m)-[:PUBLISHED_ON]->(o) DELETE r",
    ),
    "a hop": (
        "receptions", "MATCH ()-[r:HOP {run: $run}]->() WITH r LIMIT 1 SET r.hops = r.hops + 1",
    ),
    "a first": (
        "receptions", "MATCH ()-[r:HOP {run: $run}]->() WITH r LIMIT 1 SET r.first = NOT r.first",
    ),
    "an interest": (
        "receptions",
        "MATCH ()-[r:ARRIVED_FROM_UNKNOWN {run: $run, subscribed: true}]->() "
        "WITH r LIMIT 1 REMOVE r.subscribed",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def history(graph: Graph) -> Iterator[History]:
    history = random_history(40, name="tampered")
    del history.rows["metrics/messages"][-1]
    graph.remove("tampered")
    yield graph.load(history)
    graph.remove("tampered")


@dataclass(frozen=True)
class Undone:
    """A driver and session whose questions see a transaction that is rolled back in the end."""

    transaction: Transaction

    @contextmanager
    def session(self, **_: object) -> Iterator[Undone]:
        yield self

    def run(self, query: Query | str, *given: Any, **named: Any) -> Result:
        text = query.text if isinstance(query, Query) else query
        return self.transaction.run(text, *given, **named)


def seen(graph: Graph, history: History, text: str) -> list[Difference]:
    """What a verification tells after a statement, which is undone then."""
    with (
        graph.driver.session(database=graph.database) as session,
        session.begin_transaction() as transaction,
    ):
        driver: Any = Undone(transaction)
        assert transaction.run(text, run=history.facts.name).consume().counters.contains_updates
        found = verify_run(driver, graph.database, history.facts, history.tables)
        transaction.rollback()
    return found


@pytest.mark.parametrize("what", BREAK)
def test_difference_is_found_in_its_table(graph: Graph, history: History, what: str) -> None:
    table, text = BREAK[what]
    found = seen(graph, history, text)
    assert {d.table for d in found} >= {table}
    assert all("should be" in str(d) for d in found)


def test_node_of_no_label_is_told_once(graph: Graph, history: History) -> None:
    found = seen(graph, history, "CREATE ({run: $run})")
    assert found == [Difference("run", "nodes of no label", 0, 1)]


def test_node_that_differs_is_not_told_again_by_numbers(graph: Graph, history: History) -> None:
    found = seen(graph, history, BREAK["a missing value"][1])
    assert found == [Difference("peers", "tampered/3 is_reporter", True, None)]


def test_label_that_is_gone_is_told_of_the_peers(graph: Graph, history: History) -> None:
    publishers = {row["publisher"] for row in history.rows["publications"]} - {None}
    gone = min(publishers)
    text = f"MATCH (n:Publisher {{run: $run, id: {gone}}}) REMOVE n:Publisher"
    node, count = seen(graph, history, text)
    assert (node.table, node.what) == ("peers", f"tampered/{gone} labels")
    there = len(publishers)
    assert count == Difference("peers", "nodes Publisher", there, there - 1)


def test_metric_of_a_message_without_measures_is_told_by_numbers(
    graph: Graph, history: History
) -> None:
    """There is no row that it could be compared with."""
    text = "MATCH (n:Message {run: 'tampered'}) RETURN sum(size(keys(n)))"
    ((there,),) = graph.ask(text)
    last = history.rows["publications"][-1]["message"]
    change = f"MATCH (n:Message {{run: $run, id: {last}}}) SET n.hit_ratio = 0.5"
    assert seen(graph, history, change) == [
        Difference("publications", "properties of nodes Message", there, there + 1)
    ]


def test_missing_link_is_told_by_the_number_of_rows(graph: Graph, history: History) -> None:
    found = seen(graph, history, BREAK["a link gone"][1])
    rows = len(history.rows["links"])
    assert found == [Difference("links", "relationships links", rows, rows - 1)]


def test_link_of_another_life_is_told_by_a_checksum_of_each_prime(
    graph: Graph, history: History
) -> None:
    (found,) = seen(graph, history, BREAK["a link's end"][1])
    assert (found.table, found.what) == ("links", "checksums of relationships links")
    for sums in (found.expected, found.found):
        assert isinstance(sums, list)
        assert len(sums) == len(PRIMES)


def test_run_that_was_imported_is_equal_until_its_load_is_over(
    graph: Graph, history: History
) -> None:
    run = "MATCH (n:Run {key: $run}) SET n.imported = true"
    assert seen(graph, history, run + ", n.state = 'loading'") == []
    left = Difference("run", "tampered imported", None, True)
    assert seen(graph, history, run) == [left]


def test_run_with_partitions_of_one_interval_is_equal(graph: Graph) -> None:
    short = random_history(44, name="short", peers=4, intervals=3)
    graph.remove("short")
    load_run(graph.driver, graph.database, short.facts, short.tables, partition_intervals=1)
    found = verify_run(graph.driver, graph.database, short.facts, short.tables)
    graph.remove("short")
    assert found == []


def test_committed_difference_is_found(graph: Graph, history: History) -> None:
    text = "MATCH (n:Peer {run: 'tampered', id: 3}) SET n.name = n.name + $more RETURN n.name"
    graph.ask(text, more="!")
    found = verify_run(graph.driver, graph.database, history.facts, history.tables)
    assert [d.table for d in found] == ["peers"]
    graph.ask("MATCH (n:Peer {run: 'tampered', id: 3}) SET n.name = $name", name=history.peer(3))
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []


@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3), max_size=20), st.randoms())
def test_checksums_equal_those_of_whole_numbers(
    rows: list[tuple[int, ...]], random_: object
) -> None:
    def remainder(a: int, b: int) -> int:
        return abs(a) % b * (1 if a >= 0 else -1)

    expected = []
    for prime in PRIMES:
        total = 0
        for row in rows:
            h = 5
            for x in row:
                h = remainder(h * h + remainder(x, prime), prime)
            total += h * h % prime
        expected.append(total)
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(3)]
    assert checksums_of([np.full(len(rows), 5), *columns]) == expected
