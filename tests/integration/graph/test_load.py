"""A load is whole, exactly once, and goes on where it was interrupted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.graph.conftest import Graph, History, Row, random_history
from tests.support.few import few
from tests.support.words import naming, unfinished
from vizpub.graphstore.ask.queries import ask
from vizpub.graphstore.gexf.graph_rows import GraphRows
from vizpub.graphstore.gexf.rows import LinkRow
from vizpub.graphstore.load import steps
from vizpub.graphstore.load.degrees import DEGREE_CLASSES
from vizpub.graphstore.load.transactions import OTHER_TABLES, LoadSummary, load_run
from vizpub.graphstore.runs import open_run
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import CheckFailed, RunChanged, RunNotComplete, UnknownName, UseError
from vizpub.model.metrics import METRICS_MESSAGES, METRICS_OVERLAY
from vizpub.model.run import RunFacts

pytestmark = pytest.mark.neo4j
LONG = pytest.mark.long

Load = Callable[[History], History]

RELATIONSHIPS = {
    "links": "MATCH ()-[r:LINK {run: $run}]->() RETURN count(r)",
    "presence": "MATCH ()-[r:PRESENT {run: $run}]->() RETURN count(r)",
    "subscriptions": "MATCH ()-[r:SUBSCRIBES {run: $run}]->() RETURN count(r)",
    "roles": "MATCH ()-[r:HAS_ROLE {run: $run}]->() RETURN count(r)",
    "attributes": "MATCH ()-[r:HAS_ATTRIBUTE {run: $run}]->() RETURN count(r)",
    "published": "MATCH ()-[r:PUBLISHED {run: $run}]->() RETURN count(r)",
    "published-on": "MATCH (m:Message {run: $run})-[r:PUBLISHED_ON]->() RETURN count(r)",
    "hops": "MATCH ()-[r:HOP {run: $run}]->() RETURN count(r)",
    "arrived-from-unknown": "MATCH ()-[r:ARRIVED_FROM_UNKNOWN {run: $run}]->() RETURN count(r)",
    "missed": "MATCH ()-[r:MISSED {run: $run}]->() RETURN count(r)",
}


class Interrupted(Exception):
    """What the tests stop a load with."""


def relationships(graph: Graph, run: str) -> dict[str, int]:
    return {name: graph.ask(text, run=run)[0][0] for name, text in RELATIONSHIPS.items()}


def ledger(graph: Graph, run: str) -> dict[str, int]:
    """Rows of the ledger by statement."""
    rows: dict[str, int] = defaultdict(int)
    for key, count in graph.ask("MATCH (b:LoadBatch) RETURN b.key, b.rows"):
        if key.startswith(f"{run}|"):
            rows[key.split("|")[1]] += count
    return rows


def batched_history(seed: int, name: str) -> History:
    """A history whose tables have several batches each."""
    return replace(random_history(seed, name=name), batch=37)


def given(history: History, table: str, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(name) for name in names) for row in history.rows[table]]


WHOLE = {"int32": 7, "int64": 2**40, "double": 0.1, "string": "told", "bool": True}


def test_overlay_and_message_metrics_are_on_their_nodes(graph: Graph, loaded: Load) -> None:
    """The values of the whole graph that Gephi has no place for (thesis, 6.2.9)."""
    history = random_history(3, name="measured")
    for table in (METRICS_OVERLAY, METRICS_MESSAGES):
        keys = [{k: row[k] for k in table.key} for row in history.rows[table.name]]
        values = {c.name: WHOLE[c.type] for c in table if c.name not in table.key}
        history.rows[table.name] = [values | key for key in keys]
    # Nothing is known of the last interval but that there is one.
    last = history.rows["metrics/overlay"][-1]["interval"]
    history.rows["metrics/overlay"][-1] = {"interval": last}
    loaded(history)
    for label, id, table in (
        ("Interval", "i", METRICS_OVERLAY),
        ("Message", "id", METRICS_MESSAGES),
    ):
        names = [name for name in table.names if name not in table.key]
        text = f"MATCH (n:{label} {{run: 'measured'}}) RETURN n.{id}, properties(n)"
        nodes = dict(graph.ask(text))
        assert len(nodes) == len(history.rows[table.name])
        for row in history.rows[table.name]:
            found = nodes[row[table.key[0]]]
            assert {name: found.get(name) for name in names} == {n: row.get(n) for n in names}


@pytest.mark.parametrize("seed", [pytest.param(1, marks=LONG), 2])
def test_loaded_run_is_read_back_unchanged(graph: Graph, loaded: Load, seed: int) -> None:
    history = random_history(seed, name="whole", ticks=seed, peers=130, messages=4)
    loaded(history)
    run = GraphRows(open_run(graph.driver, graph.database, "whole"))
    end = history.facts.clock.sampling_tick(history.facts.clock.last)
    assert run.facts == history.facts
    assert run.peers == given(history, "peers", "peer", "name")
    reporters = graph.ask("MATCH (n:Peer {run: 'whole'}) RETURN n.id, n.is_reporter ORDER BY n.id")
    assert [tuple(row) for row in reporters] == given(history, "peers", "peer", "is_reporter")
    assert run.topics == given(history, "topics", "topic", "name")
    assert list(run.presence(0, end)) == sorted(
        given(history, "presence", "peer", "valid_from", "valid_to")
    )
    expected = given(history, "subscriptions", "peer", "topic", "valid_from", "valid_to")
    assert list(run.subscriptions(0, end)) == sorted(expected)
    found = list(run.links(0, end, None))
    columns = ("src", "dst", "layer", "topic", "valid_from", "valid_to")
    assert sorted(map(repr, found)) == sorted(
        repr(LinkRow(*row)) for row in given(history, "links", *columns)
    )
    assert [row[:2] for row in found] == sorted(row[:2] for row in found)


@pytest.fixture(scope="module")
def only_read(graph: Graph) -> Iterator[History]:
    """A loaded history that no test changes: in units of time, and with several batches."""
    history = replace(random_history(4, name="read", ticks=3), batch=37)
    graph.remove("read")
    yield graph.load(history)
    graph.remove("read")


def test_window_reads_the_links_that_touch_it(graph: Graph, only_read: History) -> None:
    history, run = only_read, GraphRows(open_run(graph.driver, graph.database, "read"))
    for first, last in ((0, 0), (3, 5), (8, 8)):
        touching = [
            r for r in history.rows["links"] if r["valid_from"] <= last and r["valid_to"] > first
        ]
        assert len(list(run.links(first, last, None))) == len(touching)
        some = [r for r in touching if r["layer"] == "mesh"]
        found = list(run.links(first, last, ["mesh"]))
        assert sorted((r.src, r.dst, r.valid_from) for r in found) == sorted(
            (r["src"], r["dst"], r["valid_from"]) for r in some
        )


def test_node_and_link_properties_equal_the_tables(graph: Graph, only_read: History) -> None:
    history, clock = only_read, only_read.facts.clock
    for key, first, last in graph.ask("MATCH (p:Peer {run: 'read'}) RETURN p.id, p.first, p.last"):
        sampled = [
            i for i in range(clock.last + 1)
            for r in history.alive("presence", clock.sampling_tick(i)) if r["peer"] == key
        ]  # fmt: skip
        assert (first, last) == ((min(sampled), max(sampled)) if sampled else (None, None))
    for valid_from, valid_to, length_class in graph.ask(
        "MATCH ()-[r:LINK {run: 'read'}]->() RETURN r.valid_from, r.valid_to, r.length_class"
    ):
        assert length_class == (63 if valid_to == OPEN else len(bin(valid_to - valid_from)) - 3)
    intervals = graph.ask(
        "MATCH (i:Interval {run: 'read'}) RETURN i.i, i.t, i.network_size, i.density ORDER BY i.i"
    )
    assert intervals == [[i, i * 3 + 2, i, i / 3] for i in range(clock.intervals)]
    hit_ratios = graph.ask("MATCH (m:Message {run: 'read'}) RETURN m.id, m.hit_ratio, m.tick")
    ticks = dict(given(history, "publications", "message", "tick"))
    for id, hit_ratio, tick in hit_ratios:
        assert hit_ratio == (id / 7 if id % 3 else None)
        assert tick == ticks[id]


def test_ledger_counts_equal_the_relationships(graph: Graph, only_read: History) -> None:
    entered = ledger(graph, "read")
    assert {name: entered[name] for name in RELATIONSHIPS} == relationships(graph, "read")


def test_complete_run_is_not_loaded_again(graph: Graph, only_read: History) -> None:
    history, before = only_read, relationships(graph, "read")
    summary = load_run(graph.driver, graph.database, history.facts, history.tables)
    sizes = [
        len(history.rows[t]) for t in ("peers", "topics", "publications", "links", "receptions")
    ]
    assert summary == LoadSummary("read", True, *sizes)
    assert relationships(graph, "read") == before


def test_complete_run_from_other_tables_is_not_overwritten(graph: Graph, loaded: Load) -> None:
    history = loaded(random_history(7, name="other"))
    history.rows["links"].pop()
    with pytest.raises(CheckFailed, match="vizpub neo4j rebuild other"):
        load_run(graph.driver, graph.database, history.facts, history.tables)


def made_of(history: History, tables: str) -> History:
    return replace(history, facts=replace(history.facts, tables=tables))


@pytest.mark.parametrize(
    ("before", "state"),
    [
        ("", "complete"),
        pytest.param("those", "loading", marks=LONG),
        ("those", "removing"),
        pytest.param("those", "complete", marks=LONG),
        pytest.param("", "loading", marks=LONG),
        pytest.param("", "removing", marks=LONG),
    ],
)
def test_run_made_of_other_tables_is_replaced(
    graph: Graph, loaded: Load, before: str, state: str
) -> None:
    loaded(made_of(random_history(16, name="replaced"), before))
    graph.ask("MATCH (r:Run {key: 'replaced'}) SET r.state = $state", state=state)
    new = made_of(random_history(17, name="replaced"), "these")
    first, second = (
        load_run(graph.driver, graph.database, new.facts, new.tables) for _ in range(2)
    )
    assert (first.replaced, first.already_complete) == (True, False)
    assert (second.replaced, second.already_complete) == (False, True)
    assert first.links == len(new.rows["links"])
    assert verify_run(graph.driver, graph.database, new.facts, new.tables) == []
    assert open_run(graph.driver, graph.database, "replaced").facts == new.facts


def test_tables_that_the_run_no_longer_has_replace_no_copy(graph: Graph, loaded: Load) -> None:
    """Another command appended and loaded that, while this one waited."""
    loaded(made_of(random_history(16, name="newer"), "newer"))
    old = random_history(17, name="newer")
    before = graph.ask("MATCH (n) RETURN count(n) AS nodes, sum(size(keys(n))) AS properties")
    tables = replace(old.tables, current=False)
    with pytest.raises(RunChanged, match="'newer'"):
        load_run(graph.driver, graph.database, made_of(old, "older").facts, tables)
    after = graph.ask("MATCH (n) RETURN count(n) AS nodes, sum(size(keys(n))) AS properties")
    assert after == before


@pytest.mark.parametrize("stop_at", few([1, 5, 9, 14, 20, 24], [9]))
def test_interrupted_load_resumes_to_a_complete_run(
    graph: Graph, loaded: Load, stop_at: int
) -> None:
    history = batched_history(8, "stopped")
    calls = 0

    def interrupt(step: str, done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise Interrupted(step)

    graph.remove("stopped")
    with pytest.raises(Interrupted):
        load_run(graph.driver, graph.database, history.facts, history.tables, interrupt)
    with pytest.raises(
        RunNotComplete, match=naming(unfinished("stopped", "loading"), "vizpub neo4j load")
    ):
        ask(graph.driver, graph.database, "overlay", {"at": 1}, run="stopped")
    found = relationships(graph, "stopped")
    entered = ledger(graph, "stopped")
    assert {name: entered.get(name, 0) for name in found} == found
    loaded_again = load_run(graph.driver, graph.database, history.facts, history.tables)
    assert not loaded_again.already_complete
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []
    graph.remove("stopped")


def test_copy_of_another_version_is_refused_with_what_to_do(graph: Graph, loaded: Any) -> None:
    """Its relationships and properties may have other names: no answer would be right."""
    loaded(random_history(4, name="older"))
    for value in ("1", "null"):
        graph.ask(f"MATCH (r:Run {{key: 'older'}}) SET r.format = {value}")
        with pytest.raises(UseError, match=naming("'older'", "vizpub neo4j rebuild older")):
            ask(graph.driver, graph.database, "overlay", {"at": 1}, run="older")


def test_replayed_batches_change_nothing(graph: Graph, loaded: Load) -> None:
    """As after a crash between the last batch and the state."""
    history = loaded(batched_history(9, "replay"))
    before = relationships(graph, "replay")
    graph.ask("MATCH (r:Run {key: 'replay'}) SET r.state = 'loading'")
    load_run(graph.driver, graph.database, history.facts, history.tables)
    assert relationships(graph, "replay") == before
    assert open_run(graph.driver, graph.database, "replay").facts == history.facts


def test_concurrent_loads_of_a_run_both_end_complete(graph: Graph) -> None:
    history = batched_history(15, "twice")
    graph.remove("twice")
    with ThreadPoolExecutor(2) as pool:
        loads = [
            pool.submit(load_run, graph.driver, graph.database, history.facts, history.tables)
            for _ in range(2)
        ]
    assert [load.result().links for load in loads] == [len(history.rows["links"])] * 2
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []
    graph.remove("twice")


@pytest.mark.parametrize("most", [100, pytest.param(steps.ROWS_PER_BATCH, marks=LONG)])
def test_batch_larger_than_a_transaction_is_cut(
    graph: Graph, loaded: Load, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(steps, "ROWS_PER_BATCH", most)
    facts = RunFacts("cut", "synthetic", Clock(last=5 * most))
    spans = [{"peer": 0, "valid_from": 2 * i, "valid_to": 2 * i + 1} for i in range(most + 45)]
    rows: dict[str, list[Row]] = {"peers": [{"peer": 0, "name": "a", "is_reporter": True}]}
    rows["presence"] = spans
    loaded(History(facts, rows, batch=5 * most))
    sizes = graph.ask(
        "MATCH (b:LoadBatch) WHERE b.key STARTS WITH 'cut|presence|' RETURN b.rows ORDER BY b.key"
    )
    assert sorted(sizes) == [[45], [most]]


def test_row_naming_an_unknown_peer_stops_the_load(graph: Graph, loaded: Load) -> None:
    history = random_history(10, name="broken")
    history.rows["subscriptions"][-1] = {"peer": 99, "topic": 0, "valid_from": 0, "valid_to": 1}
    with pytest.raises(CheckFailed, match="subscriptions: 1 of "):
        loaded(history)
    found = relationships(graph, "broken")
    assert found["subscriptions"] == ledger(graph, "broken").get("subscriptions", 0)
    with pytest.raises(RunNotComplete):
        open_run(graph.driver, graph.database, "broken")


def test_load_begun_from_other_tables_is_refused(graph: Graph, loaded: Load) -> None:
    history = random_history(11, name="begun")
    loaded(history)
    graph.ask("MATCH (r:Run {key: 'begun'}) SET r.state = 'loading'")
    history.rows["peers"][0]["name"] = "somebody else"
    with pytest.raises(CheckFailed, match=OTHER_TABLES):
        load_run(graph.driver, graph.database, history.facts, history.tables)


def test_empty_run_loads_and_answers_with_no_rows(graph: Graph, loaded: Load) -> None:
    facts = RunFacts("empty", "synthetic", Clock(last=2))
    loaded(History(facts))
    assert ask(graph.driver, graph.database, "overlay", {"at": "last"}, run="empty").rows == []


def test_peer_labels_equal_those_computed_from_the_tables(graph: Graph, loaded: Load) -> None:
    history = loaded(random_history(12, name="labels", peers=210, messages=4))

    def labelled(label: str) -> set[int]:
        text = f"MATCH (p:Peer) WHERE p.run = 'labels' AND p:{label} RETURN p.id"
        return {id for (id,) in graph.ask(text)}

    assert labelled("Publisher") == {
        m["publisher"] for m in history.rows["publications"] if m["publisher"] is not None
    }
    degree: dict[int, int] = defaultdict(int)
    clock = history.facts.clock
    for i in range(clock.intervals):
        alive = history.alive("links", clock.sampling_tick(i))
        for a, b in {tuple(sorted((r["src"], r["dst"]))) for r in alive}:
            degree[a] += 1
            degree[b] += 1
    assert labelled("Hub") == set(sorted(degree, key=lambda p: (-degree[p], p))[:2])
    classes = {low: set[int]() for low in DEGREE_CLASSES}
    for peer in range(210):
        mean = degree[peer] / clock.intervals
        classes[max(low for low in classes if low <= mean)].add(peer)
    assert {low: labelled(name) for low, name in DEGREE_CLASSES.items()} == classes
    tree = [r for r in history.rows["links"] if r["layer"] == "tree"]
    assert labelled("Rendezvous") == {r["dst"] for r in tree} - {r["src"] for r in tree}


def test_rendezvous_label_follows_the_reported_roles(graph: Graph, loaded: Load) -> None:
    history = random_history(13, name="roles")
    history.rows["roles"] = [
        {"peer": 3, "role": "rendezvous", "topic": 1, "valid_from": 0, "valid_to": 2},
        {"peer": 4, "role": "relay", "topic": 1, "valid_from": 0, "valid_to": 2},
    ]
    loaded(history)
    found = graph.ask("MATCH (p:Rendezvous {run: 'roles'}) RETURN p.id")
    assert found == [[3]]


HOSTILE = [
    "it's", 'a "quote"', "`back`tick`", "}) DETACH DELETE n //", "$run", "\\u0041\\", "a\nb\tc\r",
    " lead and trail ", "", "ключ \u202e 🜚 é", "x" * 10_000, "🜚" * 10_000, "null", "7",
]  # fmt: skip


@pytest.mark.long  # tests/integration/test_hostile_names.py: ingested, loaded and asked
def test_hostile_names_are_loaded_and_queried_unchanged(graph: Graph, loaded: Load) -> None:
    history = random_history(14, name="Hostile.run_-1", peers=len(HOSTILE))
    for row, name in zip(history.rows["peers"], HOSTILE, strict=True):
        row["name"] = name
    for table in ("topics", "publications"):
        for row, name in zip(history.rows[table], [*HOSTILE, *HOSTILE], strict=False):
            row["name"] = name if row.get("message", 0) < len(HOSTILE) else f"m{row['message']}"
    for row in history.rows["links"]:
        row["layer"] = HOSTILE[len(row["layer"]) - 3]
    facts = replace(history.facts, protocol=HOSTILE[3], parameters={HOSTILE[1]: HOSTILE[6]})
    history = loaded(replace(history, facts=facts))
    run = open_run(graph.driver, graph.database, facts.name)
    assert run.facts == facts
    assert [name for _, name in GraphRows(run).peers] == HOSTILE

    def rows(name: str, **given: object) -> list[list[Any]]:
        return ask(graph.driver, graph.database, name, given, run=facts.name).rows

    for id, name in enumerate(HOSTILE):
        periods = [r for r in history.rows["presence"] if r["peer"] == id]
        told = [row for row in rows("peer-history", peer=name) if row[2] == "present"]
        assert len(told) == len(periods)
        received = [r for r in history.rows["receptions"] if r["message"] == id]
        assert len(rows("dissemination-tree", message=name)) == len(received)
    with pytest.raises(UnknownName):
        rows("peer-history", peer="y" * 9_999)
