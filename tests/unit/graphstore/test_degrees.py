from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphstore.batches import level
from graphstore.degrees import (
    DEGREE_CLASSES,
    hub_peers,
    peer_labels,
    rendezvous_peers,
    run_summary,
    summed_degrees,
)
from model.clock import OPEN, Clock
from model.tables import table

PEERS = 6
LINK = st.tuples(
    st.integers(0, PEERS - 1),
    st.integers(1, PEERS - 1),
    st.sampled_from(["overlay", "tree"]),
    st.integers(0, 30),
    st.integers(1, 20) | st.just(OPEN),
).map(
    lambda x: {
        "src": x[0], "dst": (x[0] + x[1]) % PEERS, "layer": x[2], "topic": x[0] % 2 or None,
        "vf": x[3], "vt": OPEN if x[4] == OPEN else x[3] + x[4],
    }
)  # fmt: skip
LINKS = st.lists(LINK, max_size=25)


class Tables:
    """Tables of plain rows, two batches each."""

    def __init__(self, **rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __call__(self, name: str) -> Iterable[tuple[str, pa.RecordBatch]]:
        rows = self.rows.get(name, [])
        half = len(rows) // 2
        for part in (rows[:half], rows[half:]):
            full = [{f: row.get(f) for f in table(name).names} for row in part]
            yield "x", pa.RecordBatch.from_pylist(full, table(name).arrow)


def peers(count: int) -> list[dict[str, Any]]:
    return [{"peer": p, "key": str(p), "reports": True} for p in range(count)]


@given(LINKS, st.integers(1, 4), st.integers(0, 12))
def test_hubs_and_degree_classes_equal_a_naive_reference(
    links: list[dict[str, Any]], ticks: int, last: int
) -> None:
    clock = Clock(ticks, None, 0, last)
    degrees: dict[int, int] = defaultdict(int)
    for i in range(last + 1):
        t = clock.sampling_tick(i)
        pairs = {frozenset((r["src"], r["dst"])) for r in links if r["vf"] <= t < r["vt"]}
        for pair in pairs:
            for peer in pair:
                degrees[peer] += 1
    ranked = sorted(degrees, key=lambda p: (-degrees[p], p))
    assert hub_peers(summed_degrees(Tables(links=links, peers=peers(PEERS)), clock)) == ranked[:1]
    assert hub_peers(summed_degrees(Tables(links=links, peers=peers(300)), clock)) == ranked[:3]
    labels = peer_labels(Tables(links=links, peers=peers(PEERS)), clock)
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
        {"src": 0, "dst": n + 1, "layer": "x", "topic": None, "vf": 0, "vt": OPEN}
        for n in range(neighbours)
    ]
    other = [{"src": 100, "dst": 101, "layer": "x", "topic": None, "vf": 0, "vt": OPEN}]
    labels = peer_labels(Tables(links=links + other, peers=peers(102)), Clock(1, None, 0, 6))
    assert [name for name in DEGREE_CLASSES.values() if 0 in labels.get(name, [])] == [label]


def test_run_without_links_has_no_degree_class() -> None:
    assert peer_labels(Tables(peers=peers(3)), Clock(1, None, 0, 6)) == {}


@given(LINKS)
def test_run_summary_has_every_layer_level_and_count(links: list[dict[str, Any]]) -> None:
    stay = {"peer": 0, "vf": 0, "vt": 2**40}
    summary = run_summary(Tables(links=links, peers=peers(3), presence=[stay]))
    assert summary["link_layers"] == sorted({r["layer"] for r in links})
    closed = {level(r["vf"], r["vt"]) for r in [*links, stay] if r["vt"] != OPEN}
    assert summary["levels"] == sorted(closed)
    assert (summary["links"], summary["peers"], summary["topics"]) == (len(links), 3, 0)


@pytest.mark.parametrize("exponent", [0, 1, 31, 48, 49, 53, 62])
def test_run_summary_levels_are_exact_around_powers_of_two(exponent: int) -> None:
    for length in {max(1, 2**exponent - 1), 2**exponent, 2**exponent + 1}:
        stay = {"peer": 0, "vf": 3, "vt": 3 + length}
        assert run_summary(Tables(presence=[stay]))["levels"] == [length.bit_length() - 1]


def test_rendezvous_is_reported_or_root_of_a_topic_tree() -> None:
    links = [
        {"src": a, "dst": b, "layer": layer, "topic": topic, "vf": 0, "vt": 5}
        for a, b, layer, topic in [
            (1, 0, "tree", 7), (2, 1, "tree", 7), (0, 2, "tree", 8), (3, 4, "mesh", 7),
        ]
    ]  # fmt: skip
    assert rendezvous_peers(Tables(links=links)) == [0, 2]
    told = {"peer": 5, "role": "rendezvous", "topic": 7, "vf": 0, "vt": 1}
    assert rendezvous_peers(Tables(links=links, roles=[told])) == [5]
    assert rendezvous_peers(Tables(links=links, roles=[{**told, "role": "relay"}])) == [0, 2]
