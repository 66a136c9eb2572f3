from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import Batches
from vizpub.graphstore.load.batches import level
from vizpub.graphstore.load.degrees import DEGREE_CLASSES, hub_peers
from vizpub.graphstore.load.partitions import NONE
from vizpub.graphstore.load.reading import Census, TableReader
from vizpub.model.clock import OPEN, Clock

PEERS = 6
ALWAYS = Clock()
LINK = st.tuples(
    st.integers(0, PEERS - 1),
    st.integers(1, PEERS - 1),
    st.sampled_from(["overlay", "tree"]),
    st.integers(0, 30),
    st.integers(1, 20) | st.just(OPEN),
).map(
    lambda x: {
        "src": x[0], "dst": (x[0] + x[1]) % PEERS, "layer": x[2], "topic": x[0] % 2 or None,
        "valid_from": x[3], "valid_to": OPEN if x[4] == OPEN else x[3] + x[4],
    }
)  # fmt: skip
LINKS = st.lists(LINK, max_size=25)


def census(clock: Clock = ALWAYS, **rows: list[dict[str, Any]]) -> Census:
    """Of tables of plain rows, in batches of a few."""
    return TableReader(Batches(rows, 7), clock).census(NONE)


def peers(count: int) -> list[dict[str, Any]]:
    return [{"peer": p, "name": str(p), "is_reporter": True} for p in range(count)]


@given(LINKS, st.integers(1, 4), st.integers(0, 12))
def test_hubs_and_degree_classes_equal_a_naive_reference(
    links: list[dict[str, Any]], ticks: int, last: int
) -> None:
    clock = Clock(ticks, None, 0, last)
    degrees: dict[int, int] = defaultdict(int)
    for i in range(last + 1):
        t = clock.sampling_tick(i)
        pairs = {
            frozenset((r["src"], r["dst"])) for r in links if r["valid_from"] <= t < r["valid_to"]
        }
        for pair in pairs:
            for peer in pair:
                degrees[peer] += 1
    ranked = sorted(degrees, key=lambda p: (-degrees[p], p))
    assert hub_peers(census(clock, links=links, peers=peers(PEERS)).degrees) == ranked[:1]
    assert hub_peers(census(clock, links=links, peers=peers(300)).degrees) == ranked[:3]
    labels = census(clock, links=links, peers=peers(PEERS)).labels
    expected: dict[str, list[int]] = defaultdict(list)
    for peer in range(PEERS) if degrees else ():
        mean = degrees[peer] / clock.intervals
        expected[f"Degree{max(low for low in DEGREE_CLASSES if low <= mean)}"].append(peer)
    assert {k: v for k, v in labels.items() if k.startswith("Degree")} == expected


@pytest.mark.parametrize(
    ("neighbours", "label"),
    [(0, "Degree0"), (1, "Degree1"), (3, "Degree2"), (4, "Degree4"), (63, "Degree32"),
     (64, "Degree64"), (90, "Degree64")],
)  # fmt: skip
def test_degree_classes_are_powers_of_two(neighbours: int, label: str) -> None:
    links = [
        {"src": 0, "dst": n + 1, "layer": "x", "topic": None, "valid_from": 0, "valid_to": OPEN}
        for n in range(neighbours)
    ]
    other = [
        {"src": 100, "dst": 101, "layer": "x", "topic": None, "valid_from": 0, "valid_to": OPEN}
    ]
    labels = census(Clock(1, None, 0, 6), links=links + other, peers=peers(102)).labels
    assert [name for name in DEGREE_CLASSES.values() if 0 in labels.get(name, [])] == [label]


def test_run_without_links_has_no_degree_class() -> None:
    assert census(Clock(1, None, 0, 6), peers=peers(3)).labels == {}


@given(LINKS)
def test_run_summary_has_every_layer_level_and_count(links: list[dict[str, Any]]) -> None:
    period = {"peer": 0, "valid_from": 0, "valid_to": 2**40}
    tables = Batches({"links": links, "peers": peers(3), "presence": [period]})
    reading = TableReader(tables, Clock())
    summary = reading.summary(reading.census(NONE))
    assert summary["link_layers"] == sorted({r["layer"] for r in links})
    closed = {
        level(r["valid_from"], r["valid_to"]) for r in [*links, period] if r["valid_to"] != OPEN
    }
    assert summary["levels"] == sorted(closed)
    assert (summary["links"], summary["peers"], summary["topics"]) == (len(links), 3, 0)


@pytest.mark.parametrize("exponent", [0, 1, 31, 48, 49, 53, 62])
def test_run_summary_levels_are_exact_around_powers_of_two(exponent: int) -> None:
    for length in {max(1, 2**exponent - 1), 2**exponent, 2**exponent + 1}:
        period = {"peer": 0, "valid_from": 3, "valid_to": 3 + length}
        assert census(presence=[period]).levels == {length.bit_length() - 1}


def test_rendezvous_is_reported_or_root_of_a_topic_tree() -> None:
    links = [
        {"src": a, "dst": b, "layer": layer, "topic": topic, "valid_from": 0, "valid_to": 5}
        for a, b, layer, topic in [
            (1, 0, "tree", 7), (2, 1, "tree", 7), (0, 2, "tree", 8), (3, 4, "mesh", 7),
        ]
    ]  # fmt: skip
    assert census(links=links).rendezvous == [0, 2]
    told = {"peer": 5, "role": "rendezvous", "topic": 7, "valid_from": 0, "valid_to": 1}
    assert census(links=links, roles=[told]).rendezvous == [5]
    assert census(links=links, roles=[{**told, "role": "relay"}]).rendezvous == [0, 2]
