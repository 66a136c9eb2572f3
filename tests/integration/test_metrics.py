"""Metrics of whole runs through Spark, against networkx and plain sums for each interval.

A random run is drawn tick by tick; its versions are what is under test, its ticks what the
expected figures come from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isclose
from random import Random
from statistics import fmean
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.messages import message_tables
from tests.support.metrics import MADE, metrics_of
from vizpub.ingest.tasks.staged import UNREPORTED
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import TRAFFIC_COLUMNS
from vizpub.model.metrics import METRICS_MESSAGES, METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from vizpub.model.tables import RECEPTIONS, table

Row = dict[str, Any]
Link = tuple[int, int, str, int | None]
PEERS, TOPICS = 12, 3
SILENT = {PEERS - 1}
"""Peers that do not report: others name them."""
STRUCTURE_ONLY = ("presence", "links", "dangling_links")


@dataclass(frozen=True)
class State:
    """One tick. `links` are those with both ends present, `dangling` the others."""

    present: frozenset[int] = frozenset()
    links: frozenset[Link] = frozenset()
    dangling: frozenset[Link] = frozenset()
    taken: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class World:
    """A run: its ticks, and its tables as rows."""

    clock: Clock
    states: Mapping[int, State]
    tables: Mapping[str, list[Row]]

    @property
    def intervals(self) -> range:
        return range(self.clock.first, self.clock.last + 1)

    def at_the_end_of(self, interval: int) -> State:
        return self.states[(interval + 1) * self.clock.ticks_per_interval - 1]

    def rows(self, name: str, interval: int) -> list[Row]:
        return [row for row in self.tables.get(name, ()) if row["interval"] == interval]


def random_links(rng: np.random.Generator) -> set[Link]:
    """One way, both ways, doubled in another layer, to nobody or in a few places only."""
    found: set[Link] = set()
    reach = int(rng.choice([2, PEERS]))  # neighbours nearby give several components
    for _ in range(int(rng.choice([0, 2, 8, 25, 60]))):
        src = int(rng.integers(0, PEERS))
        dst = (src + int(rng.integers(1, reach))) % PEERS
        layer = str(rng.choice(["overlay", "mesh"]))
        found.add((src, dst, layer, int(rng.integers(0, 2)) if layer == "mesh" else None))
        if rng.random() < 0.2:
            found.add((dst, src, "overlay", None))
    return found


def random_states(rng: np.random.Generator, ticks: range) -> dict[int, State]:
    """Phases of some ticks, between which all changes; inside one, now and then a thing."""
    states, left = {}, 0
    for tick in ticks:
        if left == 0:
            left = int(rng.integers(3, 9))
            share = rng.choice([0, 0.1, 0.2, 0.3, 0.6, 1.0])
            present = {peer for peer in range(PEERS) if rng.random() < share}
            links = random_links(rng)
            taken = {(p, t) for p in range(PEERS) for t in range(TOPICS) if rng.random() < 0.3}
        left -= 1
        if links and rng.random() < 0.3:
            links = set(sorted(links, key=str)[1:])
        if rng.random() < 0.2:
            present = present ^ {int(rng.integers(0, PEERS))}
        kept = {link for link in links if {link[0], link[1]} <= present}
        told = {(p, t) for p, t in taken if p in present - SILENT}
        states[tick] = State(
            frozenset(present), frozenset(kept), frozenset(links - kept), frozenset(told)
        )
    return states


def spans_of(states: Mapping[int, State], what: str) -> list[tuple[Any, int, int]]:
    """(thing, valid_from, valid_to): maximal versions of the members of one set of every tick."""
    found: list[tuple[Any, int, int]] = []
    since: dict[Any, int] = {}
    for tick in sorted(states):
        here = getattr(states[tick], what)
        found += [(thing, since.pop(thing), tick) for thing in since.keys() - here]
        since = dict.fromkeys(here, tick) | since
    return found + [(thing, valid_from, OPEN) for thing, valid_from in since.items()]


def span_tables(states: Mapping[int, State]) -> dict[str, list[Row]]:
    def rows(what: str, *names: str) -> list[Row]:
        return [
            dict(zip(names, thing if len(names) > 1 else (thing,), strict=True))
            | {"valid_from": valid_from, "valid_to": valid_to}
            for thing, valid_from, valid_to in spans_of(states, what)
        ]

    link = ("src", "dst", "layer", "topic")
    return {
        "presence": rows("present", "peer"),
        "links": rows("links", *link),
        "dangling_links": rows("dangling", *link),
        "subscriptions": rows("taken", "peer", "topic"),
    }


def random_traffic(rng: np.random.Generator, peer: int, interval: int) -> Row:
    """All told, bytes unknown, or nothing known."""
    known = int(rng.choice([0, 1, 2]))
    row: Row = dict.fromkeys(table("traffic").names) | {"peer": peer, "interval": interval}
    for name in TRAFFIC_COLUMNS:
        told = known == 2 or (known == 1 and "bytes" not in name)
        row[name] = int(rng.integers(0, 5000)) if told else None
    if rng.random() < 0.3:
        row["duplicates"] = int(rng.integers(0, 9))
    return row


def random_message(
    rng: np.random.Generator, message: int, clock: Clock
) -> tuple[Row, list[Row], list[Row]]:
    """A publication, its receptions and its rejections."""
    k = clock.ticks_per_interval
    tick = int(rng.integers(clock.first * k, clock.last * k))
    topic = int(rng.integers(0, TOPICS)) if rng.random() < 0.9 else None
    publisher = int(rng.integers(0, PEERS))
    published = {"message": message, "name": str(message), "topic": topic, "publisher": publisher}
    published |= {"interval": tick // k, "tick": tick, "time_us": tick, "publication_known": True}
    receptions, rejections = [], []
    for peer in rng.permutation(PEERS - 1)[: rng.integers(0, PEERS)]:
        for copy in range(int(rng.integers(1, 4))):
            arrived = min(tick + int(rng.integers(0, 2 * k)), (clock.last + 1) * k - 1)
            row = {"message": message, "peer": int(peer), "previous_hop": publisher, "hop": 1}
            row |= {"time_us": arrived, "tick": arrived, "interval": arrived // k}
            if rng.random() < 0.03:
                rejections.append({**row, "reason": "refused"})
            else:
                drawn = rng.random()
                is_known = topic is not None and drawn < 0.98
                subscribed = bool(drawn < 0.6) if is_known else None
                receptions.append({**row, "first": copy == 0, "subscribed": subscribed})
    return published, receptions, rejections


def random_world(seed: int, clock: Clock) -> World:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    k = clock.ticks_per_interval
    states = random_states(rng, range(clock.first * k, (clock.last + 1) * k))
    told = [random_message(rng, message, clock) for message in range(2 * clock.intervals)]
    traffic = [
        random_traffic(rng, peer, interval)
        for interval in range(clock.first, clock.last + 1)
        for peer in range(PEERS - 1)
        if rng.random() < 0.6 and states[(interval + 1) * k - 1].present
    ]
    partly = np.random.default_rng(seed)
    unreported = [
        {"interval": row["interval"], "peer": row["peer"], "receptions": True}
        for row in traffic
        if partly.random() < 0.04
    ]
    return World(
        clock,
        states,
        {
            **span_tables(states),
            "unreported": unreported,
            "peers": [
                {"peer": p, "name": str(p), "is_reporter": p not in SILENT} for p in range(PEERS)
            ],
            "traffic": traffic,
            "publications": [published for published, _, _ in told],
            "receptions": [row for _, rows, _ in told for row in rows],
            "rejections": [row for _, _, rows in told for row in rows],
        },
    )


# What is expected, of one interval at a time.


def graph_of(state: State, layers: tuple[str, ...] | None = None) -> Any:
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(state.present)
    graph.add_edges_from(link[:2] for link in state.links if layers is None or link[2] in layers)
    return graph


def distances(graph: Any) -> dict[int, list[float]]:
    """peer → hops to each other peer that it reaches."""
    every = nx.shortest_path_length(graph)
    return {v: [d for u, d in reached.items() if u != v] for v, reached in every}


def share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


ERRORS = {
    *("betweenness_error", "mean_distance_error"),
    *("average_path_length_error", "topic_average_path_length_error"),
}
"""0 wherever nothing is sampled."""


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def graph_of_peers(graph: Any) -> dict[int, Row]:
    """The graph columns of metrics/peers by networkx."""
    n, undirected, hops = len(graph), graph.to_undirected(), distances(graph)
    weak = {v: min(part) for part in nx.weakly_connected_components(graph) for v in part}
    strong = {v: min(part) for part in nx.strongly_connected_components(graph) for v in part}
    betweenness = nx.betweenness_centrality(graph, normalized=False)
    normalized = nx.betweenness_centrality(graph, normalized=True)
    closeness = nx.closeness_centrality(graph.reverse(), wf_improved=True)
    clustering: Any = nx.clustering(undirected)
    ranks = nx.pagerank(graph, tol=1e-13, max_iter=1000)
    return {
        v: {
            "present": True,
            "in_degree": graph.in_degree(v),
            "out_degree": graph.out_degree(v),
            "degree": undirected.degree(v),
            "clustering": clustering[v],
            "betweenness": betweenness[v],
            "betweenness_normalized": normalized[v] if n >= 3 else None,
            "betweenness_error": 0,
            "mean_distance": mean(hops[v]),
            "mean_distance_error": 0 if hops[v] else None,
            "closeness": closeness[v],
            "eccentricity": largest(hops[v]),
            "reachable_peers": len(hops[v]),
            "component": weak[v],
            "strong_component": strong[v],
            "pagerank": ranks[v],
        }
        for v in graph
    }


def expected_peers(world: World, interval: int, graph: Any) -> list[Row]:
    """Rows of metrics/peers; a table that the world lacks is unknown."""
    state = world.at_the_end_of(interval)
    traffic = {row["peer"]: row for row in world.rows("traffic", interval)}
    arrived = world.rows("receptions", interval)
    of_graph = graph_of_peers(graph) if "presence" in world.tables else {}
    absent = {"present": False if "presence" in world.tables else None}
    mute = SILENT | open_in(world, interval)
    found = []
    for peer in sorted({*of_graph, *traffic, *(row["peer"] for row in arrived)}):
        row = dict.fromkeys(METRICS_PEERS.names) | {"interval": interval, "peer": peer}
        row |= of_graph.get(peer, absent)
        counters = traffic.get(peer, {})
        row |= {name: counters.get(name) for name in TRAFFIC_COLUMNS}
        row["duplicates"] = counters.get("duplicates")
        if peer not in SILENT and "subscriptions" in world.tables:
            row["subscriptions"] = sum(who == peer for who, _ in state.taken)
        if peer not in mute and "receptions" in world.tables:
            mine = [arrival for arrival in arrived if arrival["peer"] == peer]
            row["receptions"] = len(mine)
            if row["duplicates"] is None:
                row["duplicates"] = sum(not arrival["first"] for arrival in mine)
        found.append(row)
    return found


def open_in(world: World, interval: int) -> set[int]:
    """The peers that leave open what they received."""
    return {row["peer"] for row in world.rows("unreported", interval)}


OF_PUBLISHED = (
    *("publications", "hit_ratio", "hit_ratio_mean", "hops_mean", "hops_max"),
    *("duplicates_per_delivery", "relay_share"),
)


def hits(messages: list[Row]) -> Row:
    """What is told of the messages published in an interval."""
    counted = [row for row in messages if not row["rejections"]]

    def total(name: str) -> int | None:
        return sum(known) if (known := [r[name] for r in counted if r[name] is not None]) else None

    def pooled(rows: list[Row], above: str, below: str) -> float | None:
        both = [row for row in rows if None not in (row[above], row[below])]
        return share(sum(row[above] for row in both), sum(row[below] for row in both))

    hops = [hop for row in messages for hop in row["hops"]]
    return {
        "hops_mean": mean(hops),
        "hops_max": max(hops, default=None),
        "duplicates_per_delivery": pooled(counted, "duplicates", "delivered"),
        "relay_share": pooled(messages, "relay_receptions", "receptions")
        if None not in [row["relay_receptions"] for row in messages]
        else None,
        "publications": len(messages),
        "hit_ratio": share(total("delivered"), total("eligible")),
        "hit_ratio_mean": mean(row["hit_ratio"] for row in counted),
        "rejected_publications": len(messages) - len(counted),
        "hit_ratio_in_interval": share(total("delivered_in_interval"), total("eligible")),
    }


def of_interval(world: World, interval: int, messages: Mapping[int, Row]) -> list[Row]:
    """Messages published in the interval, with their topic."""
    return [
        {**messages[row["message"]], "topic": row["topic"]}
        for row in world.rows("publications", interval)
    ]


def expected_topics(
    world: World, interval: int, graph: Any, messages: Mapping[int, Row]
) -> list[Row]:
    """Rows of metrics/topics."""
    taken: dict[int, set[int]] = defaultdict(set)
    if "subscriptions" in world.tables and "presence" in world.tables:
        for peer, topic in world.at_the_end_of(interval).taken:
            taken[topic].add(peer)
    published = of_interval(world, interval, messages)
    topic_of = {row["message"]: row["topic"] for row in world.tables.get("publications", ())}
    arrived = [
        {**row, "topic": topic_of[row["message"]]} for row in world.rows("receptions", interval)
    ]
    topics = {*taken, *(row["topic"] for row in [*published, *arrived])} - {None}
    found = []
    for topic in sorted(topics):
        row: Row = dict.fromkeys(METRICS_TOPICS.names) | {"interval": interval, "topic": topic}
        if "subscriptions" in world.tables:
            row |= graph_of_topic(graph.subgraph(taken[topic]))
        if "publications" in world.tables:
            told = hits([message for message in published if message["topic"] == topic])
            row |= {name: told[name] for name in OF_PUBLISHED}
            here = [arrival for arrival in arrived if arrival["topic"] == topic]
            if open_in(world, interval):
                found.append(row)
                continue
            row["duplicates"] = sum(not arrival["first"] for arrival in here)
            if "subscriptions" in world.tables:
                wanted = [arrival["subscribed"] for arrival in here]
                row["relay_receptions"] = None if None in wanted else wanted.count(False)
        found.append(row)
    return found


def graph_of_topic(graph: Any) -> Row:
    undirected = graph.to_undirected()
    hops = [d for of_one in distances(undirected).values() for d in of_one]
    return {
        "subscribers": len(graph),
        "topic_links": graph.number_of_edges(),
        "components": nx.number_connected_components(undirected),
        "topic_diameter": largest(hops),
        "topic_average_path_length": mean(hops),
        "topic_average_path_length_error": 0 if hops else None,
    }


def expected_overlay(world: World, interval: int, graph: Any, messages: Mapping[int, Row]) -> Row:
    """The row of metrics/overlay."""
    row: Row = dict.fromkeys(METRICS_OVERLAY.names) | {"interval": interval}
    peers = expected_peers(world, interval, graph)
    topics = expected_topics(world, interval, graph, messages)
    structure_known = "presence" in world.tables
    if structure_known:
        row |= graph_of_overlay(graph)
        dangling = world.at_the_end_of(interval).dangling
        row["dangling_links"] = len({link[:2] for link in dangling})
        row["topic_diameter_mean"] = mean(topic["topic_diameter"] for topic in topics)
    here = [peer for peer in peers if peer["present"] or not structure_known]
    for way in ("sent", "received"):
        row[f"control_messages_{way}_mean"] = mean(p[f"control_messages_{way}"] for p in here)
        size = mean(p[f"control_bytes_{way}"] for p in here)
        row[f"control_kilobytes_{way}_mean"] = None if size is None else size / 1000
    if structure_known:
        silent = (all(p[name] is None for name in TRAFFIC_COLUMNS) for p in here)
        row["unknown_reports"] = sum(silent)
    if "publications" in world.tables:
        row |= hits(of_interval(world, interval, messages))
        mute = open_in(world, interval)
        row["receptions"] = None if mute else len(world.rows("receptions", interval))
        unclear = any(peer["peer"] in mute and peer["duplicates"] is None for peer in peers)
        row["duplicates"] = None if unclear else sum(peer["duplicates"] or 0 for peer in peers)
    return row


def graph_of_overlay(graph: Any) -> Row:
    n, m = len(graph), graph.number_of_edges()
    peers = list(graph_of_peers(graph).values())
    hops = [d for of_one in distances(graph).values() for d in of_one]
    parts = [len(part) for part in nx.weakly_connected_components(graph)]
    means = ["in_degree", "out_degree", "degree", "clustering", "betweenness"]
    means += ["mean_distance", "closeness", "eccentricity"]
    return {
        "network_size": n,
        "links": m,
        "density": nx.density(graph) if n > 1 else None,
        **{f"{name}_mean": mean(peer[name] for peer in peers) for name in means},
        **{
            f"{name}_max": largest(peer[name] for peer in peers)
            for name in ("in_degree", "out_degree", "degree", "betweenness")
        },
        "diameter": largest(hops),
        "average_path_length": mean(hops),
        "average_path_length_error": 0 if hops else None,
        "reachable_pairs_share": share(len(hops), n * (n - 1)) if n > 1 else None,
        "weak_components": len(parts),
        "strong_components": nx.number_strongly_connected_components(graph),
        "largest_weak_component_share": share(max(parts, default=0), n),
    }


# What is under test.


@dataclass(frozen=True)
class Measured:
    """The metrics tables of a world."""

    peers: list[Row]
    topics: list[Row]
    overlay: list[Row]
    messages: dict[int, Row]
    """Those that hits are made of, with `hops`: the known ones of their first receptions."""


def measured(world: World, layers: tuple[str, ...] | None = None) -> Measured:
    rng, hops = Random(1), defaultdict[int, list[int]](list)
    tables = {
        name: pa.Table.from_pylist(
            rng.sample(rows, len(rows)), (UNREPORTED if name == "unreported" else table(name)).arrow
        )
        for name, rows in world.tables.items()
    }
    if "publications" in tables:
        folded = message_tables(tables)
        tables["metrics/messages"] = folded["metrics/messages"]
        for row in folded["receptions"].to_pylist():
            if row["first"] and row["hop"] is not None:
                hops[row["message"]].append(row["hop"])
    found, apart = (
        metrics_of(world.clock, tables, "duplicates", tasks=tasks, layers=layers)
        for tasks in (1, 7)
    )
    assert found == apart
    half = (world.clock.first + world.clock.last) // 2
    settled = {
        name.replace("metrics/", "settled_"): rows.filter(pc.field("interval") < half)
        for name, rows in found.items()
    }
    if "presence" in tables:
        grown = metrics_of(world.clock, tables | settled, "duplicates", layers=layers, since=half)
        assert found == grown
    messages = tables.get("metrics/messages", METRICS_MESSAGES.arrow.empty_table()).to_pylist()
    messages = [{**row, "hops": hops[row["message"]]} for row in messages]
    return Measured(
        *(found[name].to_pylist() for name in MADE), {row["message"]: row for row in messages}
    )


def alike(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)


def check(found: list[Row], expected: list[Row], keys: tuple[str, ...]) -> None:
    assert [[row[k] for k in keys] for row in found] == [[row[k] for k in keys] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert set(row) == set(wanted)
        unlike = {
            name: (row[name], wanted[name]) for name in row if not alike(row[name], wanted[name])
        }
        assert not unlike, {key: row[key] for key in keys}


def check_world(found: Measured, world: World, layers: tuple[str, ...] | None = None) -> None:
    graphs = {i: graph_of(world.at_the_end_of(i), layers) for i in world.intervals}
    peers = [row for i in graphs for row in expected_peers(world, i, graphs[i])]
    check(found.peers, peers, ("interval", "peer"))
    topics = [row for i in graphs for row in expected_topics(world, i, graphs[i], found.messages)]
    check(found.topics, topics, ("interval", "topic"))
    overlay = [expected_overlay(world, i, graphs[i], found.messages) for i in graphs]
    check(found.overlay, overlay, ("interval",))
    for row in found.overlay:
        if row["network_size"]:
            assert row["out_degree_mean"] == row["in_degree_mean"]
            assert alike(row["out_degree_mean"], row["links"] / row["network_size"])


def only(world: World, *names: str) -> World:
    """The world in which nothing but those tables is known, and who there is."""
    return World(world.clock, world.states, {n: world.tables[n] for n in ("peers", *names)})


@pytest.fixture(scope="module")
def reported() -> World:
    """A source of reports: a tick is an interval; the run does not begin at 0."""
    return random_world(41, Clock(1, None, first=3, last=62))


@pytest.fixture(scope="module")
def traced() -> World:
    """A source of events: ten ticks per interval."""
    return random_world(42, Clock(10, 1, first=0, last=29))


def test_random_runs_hold_the_shapes_under_test(reported: World, traced: World) -> None:
    for world in (reported, traced):
        graphs = [graph_of(world.at_the_end_of(i)) for i in world.intervals]
        sizes = {len(graph) for graph in graphs}
        assert {0, 1, 2, 3} & sizes
        assert any(nx.number_of_isolates(graph) for graph in graphs)
        assert any(
            sum(len(part) > 1 for part in nx.weakly_connected_components(graph)) > 1
            for graph in graphs
        )
        assert any(nx.overall_reciprocity(graph) < 1 for graph in graphs if graph.edges)
        assert any(state.dangling for state in world.states.values())
    assert {len(graph_of(reported.at_the_end_of(i))) for i in reported.intervals} >= {0, 1, 2, 3}


@pytest.mark.parametrize("which", ["reported", "traced"])
def test_metrics_of_each_interval_equal_networkx(
    which: str, request: pytest.FixtureRequest
) -> None:
    world: World = request.getfixturevalue(which)
    found = measured(world)
    check_world(found, world)
    for rows, meant in (
        (found.peers, METRICS_PEERS),
        (found.topics, METRICS_TOPICS),
        (found.overlay, METRICS_OVERLAY),
    ):  # no column is right because it is empty
        for name in set(meant.names) - ERRORS:
            assert len({row[name] for row in rows}) > 1, name


def test_peer_metrics_of_chosen_layers_equal_networkx(reported: World) -> None:
    structure = only(reported, "presence", "links", "subscriptions")
    world = World(structure.clock, structure.states, {**structure.tables, "dangling_links": []})
    found = measured(world, ("mesh",))
    graphs = {i: graph_of(world.at_the_end_of(i), ("mesh",)) for i in world.intervals}
    check(
        found.peers,
        [row for i in graphs for row in expected_peers(world, i, graphs[i])],
        ("interval", "peer"),
    )


def test_metrics_from_structure_alone_equal_networkx(reported: World) -> None:
    world = only(reported, *STRUCTURE_ONLY)
    found = measured(world)
    check_world(found, world)
    assert found.topics == []


def test_metrics_from_messages_alone_equal_plain_sums(traced: World) -> None:
    world = only(traced, "publications", "receptions", "rejections")
    blind = [{**row, "subscribed": None} for row in world.tables["receptions"]]
    world = replace(world, tables={**world.tables, "receptions": blind})
    found = measured(world)
    check_world(found, world)
    assert {row["network_size"] for row in found.overlay} == {None}


@pytest.mark.parametrize("receptions_known", [True, False])
def test_sum_beyond_64_bits_is_unknown(receptions_known: bool) -> None:
    most = 2**63 - 1
    counts = [(0, [most, 1]), (1, [most - 1, 1, None]), (2, [None, None])]
    peers = [
        {"interval": interval, "peer": peer, "present": True, "receptions": 1, "duplicates": count}
        for interval, each in counts
        for peer, count in enumerate(each)
    ]
    tables = {"metrics/peers": pa.Table.from_pylist(peers, METRICS_PEERS.arrow)}
    if receptions_known:
        tables["receptions"] = RECEPTIONS.arrow.empty_table()
    overlay = metrics_of(Clock(1, None, 0, 3), tables)["metrics/overlay"]
    found = {row["interval"]: row for row in overlay.to_pylist()}
    nothing = 0 if receptions_known else None
    assert [found[i]["duplicates"] for i in range(4)] == [None, most, nothing, nothing]
    assert [found[i]["receptions"] for i in range(4)] == [2, 3, 2, nothing]
