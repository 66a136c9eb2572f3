"""Copies of links and subscriptions by epoch: they change what a question costs, and no answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

import cypher
from graphstore.ask import queries
from graphstore.load.partitions import Epochs, copies
from graphstore.load.remove import remove_run
from graphstore.load.transactions import load_run
from graphstore.load.verify import verify_run
from graphstore.runs import open_run
from model.errors import UseError
from tests.integration.graph.conftest import Graph, History, random_history
from tests.integration.graph.test_queries import few_or

pytestmark = pytest.mark.neo4j

LENGTH = 2
"""Intervals of an epoch."""
HISTORY = random_history(52, intervals=6, ticks=3)
AT_ONE_TIME = [n for n in cypher.names("queries") if cypher.statement("queries", n).times]
"""The queries that read epochs."""


def load(graph: Graph, history: History, epoch_intervals: int = LENGTH) -> None:
    load_run(
        graph.driver,
        graph.database,
        history.facts,
        history.tables,
        epoch_intervals=epoch_intervals,
    )


@pytest.fixture(scope="module")
def twins(graph: Graph) -> Iterator[tuple[History, History]]:
    """A history with epochs, and the same without."""
    with_epochs, without = HISTORY.named("epochs"), HISTORY.named("no-epochs")
    for twin in (with_epochs, without):
        graph.remove(twin.facts.name)
    load(graph, with_epochs)
    load(graph, without, epoch_intervals=100)
    yield with_epochs, without
    for twin in (with_epochs, without):
        graph.remove(twin.facts.name)


@pytest.fixture
def history(graph: Graph) -> Iterator[History]:
    history = random_history(53, name="copied", intervals=8, peers=6)
    graph.remove("copied")
    load(graph, history)
    yield history
    graph.remove("copied")


def count_of_copies(graph: Graph, run: str) -> int:
    ((count,),) = graph.ask(
        "MATCH ()-[r]->() WHERE r.run = $run AND type(r) =~ '.*_E[0-9]+' RETURN count(r)", run=run
    )
    return int(count)


def expected_copies(history: History, epochs: Epochs) -> int:
    tables = ("links", "subscriptions")
    return sum(copies(b, epochs).num_rows for t in tables for _, b in history.tables(t))


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
        yield {p.name: v for p, v in zip(asked, values, strict=True) if v is not None}


def answered(graph: Graph, run: str, name: str, given: dict[str, object]) -> Any:
    try:
        rows = queries.ask(graph.driver, graph.database, name, given, run=run).rows
    except UseError as error:
        return str(error)
    # Of equally short paths any one is an answer.
    return [row[0] for row in rows] if name in ("shortest-path", "k-shortest-paths") else rows


@pytest.mark.parametrize("most", few_or(50, 12))
@pytest.mark.parametrize("name", AT_ONE_TIME)
def test_query_answers_are_equal_with_and_without_epochs(
    graph: Graph, twins: tuple[History, History], name: str, most: int
) -> None:
    with_epochs, _ = twins
    asked = list(questions(with_epochs, name))
    found = 0
    for given in asked[:: 1 + len(asked) // most]:
        answer = answered(graph, "epochs", name, given)
        assert answer == answered(graph, "no-epochs", name, given), given
        found += isinstance(answer, list) and bool(answer)
    assert found


@pytest.mark.parametrize("name", AT_ONE_TIME)
def test_query_at_one_time_reads_only_its_epoch(
    graph: Graph, twins: tuple[History, History], name: str
) -> None:
    run = open_run(graph.driver, graph.database, "epochs")
    given = next(
        given
        for given in questions(twins[0], name)
        if isinstance(answered(graph, "epochs", name, given), list)
    )
    text, values = queries.prepared(cypher.statement("queries", name), given, run)
    with graph.driver.session(database=graph.database) as session:
        plan = str(session.run("EXPLAIN " + text, values).consume().plan)
    hinted = set(re.findall(r"USING INDEX \w+:(\w+)", text))
    copied = {"LINK", "SUBSCRIBES"} - hinted
    assert re.search(r":(LINK|SUBSCRIBES)_E\d+\b", plan)
    assert not re.search(rf"[:|]({'|'.join(copied)})[\]*) ]", plan)


def test_relationships_are_copied_for_each_of_their_epochs(graph: Graph, history: History) -> None:
    epochs = open_run(graph.driver, graph.database, "copied").epochs
    assert (epochs.intervals, epochs.count) == (LENGTH, 4)
    assert count_of_copies(graph, "copied") == expected_copies(history, epochs) > 0


def test_resumed_load_keeps_its_epochs_and_copies(graph: Graph, history: History) -> None:
    """A load that goes on keeps the epochs that it began with, whatever it is told."""
    before = count_of_copies(graph, "copied")
    graph.ask("MATCH (r:Run {key: 'copied'}) SET r.state = 'loading'")
    load(graph, history, epoch_intervals=1)
    assert count_of_copies(graph, "copied") == before
    assert open_run(graph.driver, graph.database, "copied").epochs.intervals == LENGTH


def test_removed_run_leaves_no_copies(graph: Graph, history: History) -> None:
    remove_run(graph.driver, graph.database, "copied")
    assert count_of_copies(graph, "copied") == 0


def missing(graph: Graph) -> None:
    graph.ask("MATCH (:Peer {run: 'copied'})-[r:LINK_E1]->() WITH r LIMIT 1 DELETE r")


def twice(graph: Graph) -> None:
    graph.ask(
        "MATCH (a:Peer {run: 'copied'})-[r:LINK_E1]->(b) WITH a, r, b LIMIT 1 "
        "CREATE (a)-[c:LINK_E1]->(b) SET c = properties(r)"
    )


def in_another_epoch(graph: Graph) -> None:
    graph.ask(
        "MATCH (a:Peer {run: 'copied'})-[r:SUBSCRIBES_E1]->(b) WITH a, r, b LIMIT 1 "
        "CREATE (a)-[c:SUBSCRIBES_E3]->(b) SET c = properties(r) DELETE r"
    )


def of_another_life(graph: Graph) -> None:
    graph.ask(
        "MATCH (:Peer {run: 'copied'})-[r:LINK_E2]->() WITH r LIMIT 1 "
        "SET r.valid_from = r.valid_from + 1"
    )


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (missing, "links: relationships link-copies"),
        (twice, "links: relationships link-copies"),
        (in_another_epoch, "subscriptions: checksums of relationships subscription-copies"),
        (of_another_life, "links: checksums of relationships link-copies"),
    ],
)
def test_corrupt_copy_is_found_by_verify(
    graph: Graph, history: History, harm: Callable[[Graph], None], words: str
) -> None:
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []
    harm(graph)
    (found,) = verify_run(graph.driver, graph.database, history.facts, history.tables)
    assert str(found).startswith(words)


@pytest.mark.parametrize("type", ["LINK_E4711", "SUBSCRIBES_E4711", "LINK_E"])
def test_copy_of_an_epoch_that_the_run_has_not_is_found_by_verify(
    graph: Graph, history: History, type: str
) -> None:
    like = type.partition("_")[0]
    graph.ask(
        f"MATCH (a:Peer {{run: 'copied'}})-[r:{like}_E1]->(b) WITH a, r, b LIMIT 1 "
        f"CREATE (a)-[c:{type}]->(b) SET c = properties(r)"
    )
    found = verify_run(graph.driver, graph.database, history.facts, history.tables)
    assert [str(difference.what) for difference in found] == [
        "relationships that begin at its nodes",
        "relationships that end at its nodes",
    ]


def test_run_loaded_without_epochs_still_answers_queries(graph: Graph, history: History) -> None:
    before = answered(graph, "copied", "neighbours", {"at": 3, "peer": history.peer(0)})
    graph.ask(
        "MATCH ()-[r]->() WHERE r.run = 'copied' AND type(r) =~ '.*_E[0-9]+' DELETE r "
        "WITH count(*) AS all MATCH (run:Run {key: 'copied'}) REMOVE run.epoch_intervals"
    )
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []
    after = answered(graph, "copied", "neighbours", {"at": 3, "peer": history.peer(0)})
    assert after == before
