"""Whatever is changed in a copy is found by the checksums that it keeps, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.integration.graph.conftest import Graph, random_history
from tests.integration.graph.everything import awkward_history, stored
from tests.integration.graph.test_verify import BREAK, Undone
from tests.support.few import few
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import run_properties
from vizpub.graphstore.verify.kept_checksums import KeptChecksums
from vizpub.graphstore.verify.verify import Difference, verify_kept, verify_run
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.neo4j

RUN = "tampered"
MORE = {
    "a peer's label": ("peers", "MATCH (n:Hub {run: $run}) WITH n LIMIT 1 REMOVE n:Hub"),
    "the label of another peer": (
        "peers",
        "MATCH (n:Hub {run: $run}), (m:Peer {run: $run}) WHERE NOT m:Hub WITH n, m LIMIT 1 "
        "REMOVE n:Hub SET m:Hub",
    ),
    "a node twice": (
        "peers",
        "MATCH (n:Peer {run: $run, id: 3}) WITH n{.*, key: n.key + ' '} AS p "
        "CREATE (m:Peer) SET m = p",
    ),
    "a whole number as a float": (
        "peers", "MATCH (n:Peer {run: $run, id: 3}) SET n.first = toFloat(n.first)",
    ),
    "a metric below 0": (
        "metrics/overlay", "MATCH (n:Interval {run: $run, i: 5}) SET n.density = -n.density",
    ),
    "a metric that is no number": (
        "metrics/overlay", "MATCH (n:Interval {run: $run, i: 5}) SET n.density = 'x'",
    ),
    "a metric that is a list": (
        "metrics/overlay", "MATCH (n:Interval {run: $run, i: 5}) SET n.density = [1.0]",
    ),
    "how many there are": ("run", "MATCH (n:Run {key: $run}) SET n.links = n.links + 1"),
    "the clock": ("run", "MATCH (n:Run {key: $run}) SET n.last = n.last + 1"),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredRun]:
    """As that of test_verify, in files."""
    history = random_history(40, name=RUN)
    del history.rows["metrics/messages"][-1]
    graph.remove(RUN)
    run = stored(history, tmp_path_factory.mktemp(RUN))
    load_run(graph.driver, graph.database, run.facts, run)
    yield run
    graph.remove(RUN)


def differences(driver: Any, graph: Graph, run: StoredRun) -> list[Difference]:
    found = verify_kept(driver, graph.database, run.facts, run)
    assert found is not None
    assert found.nodes
    assert found.relationships
    return found.differences


@pytest.mark.parametrize("what", few([*BREAK, *MORE], [*[*BREAK][::5], *MORE]))
def test_difference_is_found_by_the_checksums_in_its_table(
    graph: Graph, run: StoredRun, what: str
) -> None:
    table, text = {**BREAK, **MORE}[what]
    with (
        graph.driver.session(database=graph.database) as session,
        session.begin_transaction() as transaction,
    ):
        driver: Any = Undone(transaction)
        assert transaction.run(text, run=RUN).consume().counters.contains_updates
        found = differences(driver, graph, run)
        transaction.rollback()
    assert {d.table for d in found} >= {table}


def test_numbers_are_those_of_the_copy(graph: Graph, run: StoredRun) -> None:
    compared = verify_kept(graph.driver, graph.database, run.facts, run)
    assert compared is not None
    ((nodes,),) = graph.ask("MATCH (n {run: $run}) RETURN count(n)", run=RUN)
    text = "MATCH ({run: $run})-[r]->() RETURN count(r)"
    ((relationships,),) = graph.ask(text, run=RUN)
    assert (compared.nodes, compared.relationships) == (nodes, relationships)


def test_label_that_no_peer_has_in_the_tables_is_told(graph: Graph, run: StoredRun) -> None:
    graph.ask("MATCH (n:Peer {run: $run, id: 3}) SET n:Stranger", run=RUN)
    told = differences(graph.driver, graph, run)
    graph.ask("MATCH (n:Stranger) REMOVE n:Stranger")
    assert Difference("peers", "peers with label Stranger", 0, 1) in told


def test_name_of_the_same_length_is_found_by_a_full_verification_alone(
    graph: Graph, run: StoredRun
) -> None:
    text = "MATCH (n:Peer {run: $run, id: 3}) SET n.name = $name"
    graph.ask(text, run=RUN, name="repe 3")
    assert differences(graph.driver, graph, run) == []
    assert verify_run(graph.driver, graph.database, run.facts, run) != []
    graph.ask(text, run=RUN, name="peer 3")
    assert verify_run(graph.driver, graph.database, run.facts, run) == []


def test_checksums_that_are_not_of_the_tables_are_found(graph: Graph, run: StoredRun) -> None:
    kept = KeptChecksums.of(run_properties(graph.driver, graph.database, RUN) or {})
    assert kept is not None
    hubs, *sums = kept.labels["Hub"]
    other = KeptChecksums.of({"checksums": kept.text})
    assert other is not None
    other.labels["Hub"] = [hubs + 1, *sums]
    text = "MATCH (n:Run {key: $run}) SET n.checksums = $sums"
    graph.ask(text, run=RUN, sums=other.text)
    (full,) = verify_run(graph.driver, graph.database, run.facts, run)
    quick, count = differences(graph.driver, graph, run)
    assert (full.table, full.what) == ("run", "checksums that are kept")
    assert (quick.table, quick.expected, quick.found) == ("peers", hubs + 1, hubs)
    assert count == Difference("peers", "nodes Hub", hubs + 1, hubs)
    graph.ask(text, run=RUN, sums="not checksums")
    assert verify_kept(graph.driver, graph.database, run.facts, run) is None
    graph.ask(text, run=RUN, sums=kept.text)
    assert differences(graph.driver, graph, run) == []


@pytest.mark.parametrize("partitioned", few([0, 4], [4]))
def test_copy_with_hostile_names_and_partitions_equals_its_checksums(
    graph: Graph, tmp_path: Path, partitioned: int
) -> None:
    """Names with emoji, quotes and line ends; metrics of any size, some of them unknown."""
    seed = 4_518
    print("seed", seed)
    history = awkward_history(seed, "hostile", intervals=32)
    sizes = [0.0, -0.0, 1 / 3, -2 / 7, 2.0**-70, 1e-300, 2.0**42, 1e17, -1e300, 123456.789, None]
    for row, size in zip(history.rows["metrics/overlay"], cycle(sizes), strict=False):
        row["density"] = size
    run = stored(replace(history, facts=replace(history.facts, tables="")), tmp_path)
    load_run(graph.driver, graph.database, run.facts, run, partition_intervals=partitioned)
    assert differences(graph.driver, graph, run) == []
    assert verify_run(graph.driver, graph.database, run.facts, run) == []
    graph.remove("hostile")
