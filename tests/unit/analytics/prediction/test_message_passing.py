"""Message passing against enumeration, networkx, eigenvalues of numpy, and simulated events."""

from __future__ import annotations

import itertools
import math
from collections import deque

import networkx as nx
import numpy as np
import pytest

from vizpub.analytics.prediction.message_passing import LinkGraph, predict_spread, threshold
from vizpub.model.arrays import Floats


def _overlay(graph: nx.DiGraph) -> LinkGraph:
    links = np.array(sorted(graph.to_directed().edges()), np.int64).reshape(-1, 2)
    return LinkGraph(graph.number_of_nodes(), links[:, 0], links[:, 1])


def _enumerated(overlay: LinkGraph, sigma: Floats, gamma: float) -> Floats:
    """The probability that peer j gets an event of peer i: over all interests and all links that
    may carry it.
    """
    links = list(zip(overlay.src.tolist(), overlay.dst.tolist(), strict=True))
    found = np.zeros((overlay.n, overlay.n))
    for interested in itertools.product((False, True), repeat=overlay.n):
        likely = np.prod(np.where(interested, sigma, 1 - sigma))
        for open_ in itertools.product((False, True), repeat=len(links)):
            carries = [1.0 if interested[j] else gamma for _, j in links]
            weight = likely * math.prod(
                p if is_open else 1 - p for p, is_open in zip(carries, open_, strict=True)
            )
            if weight:
                graph = nx.DiGraph(
                    link for link, is_open in zip(links, open_, strict=True) if is_open
                )
                graph.add_nodes_from(range(overlay.n))
                for peer in range(overlay.n):
                    found[peer, [peer, *nx.descendants(graph, peer)]] += weight
    return found


@pytest.mark.parametrize("directed", [False, True])
def test_prediction_on_a_tree_is_that_of_enumeration(directed: bool) -> None:
    graph = nx.DiGraph([(0, 1), (1, 2), (3, 1), (3, 4)]) if directed else nx.star_graph(3)
    overlay = _overlay(graph)
    sigma = np.array([0.2, 0.9, 0.5, 0.0, 1.0][: overlay.n])
    wanted = _enumerated(overlay, sigma, 0.3)
    found = predict_spread(overlay, sigma, 0.3)
    assert found.receivers == pytest.approx(wanted.sum(1), abs=1e-9)
    assert found.receives == pytest.approx(wanted.mean(0), abs=1e-9)
    assert not found.percolates.any()
    assert math.isinf(threshold(overlay))


def _walks(overlay: LinkGraph) -> Floats:
    """The matrix of walks that do not turn back."""
    links = list(zip(overlay.src.tolist(), overlay.dst.tolist(), strict=True))
    return np.array([[float(a[1] == b[0] and a[0] != b[1]) for b in links] for a in links])


@pytest.mark.parametrize("seed", range(6))
def test_threshold_is_that_of_the_matrix_of_walks(seed: int) -> None:
    print(f"seed {seed}")
    graph = nx.gnp_random_graph(24, 0.12, seed=seed, directed=seed % 2 == 1)
    overlay = _overlay(graph)
    largest = np.abs(np.linalg.eigvals(_walks(overlay))).max()
    assert threshold(overlay) == pytest.approx(1 / largest, rel=1e-6)


def test_threshold_of_a_ring_is_1_and_of_a_regular_network_by_its_degree() -> None:
    assert threshold(_overlay(nx.cycle_graph(9))) == pytest.approx(1)
    assert threshold(_overlay(nx.cycle_graph(5, nx.DiGraph))) == pytest.approx(1)
    assert threshold(_overlay(nx.random_regular_graph(6, 40, seed=1))) == pytest.approx(1 / 5)


def test_event_on_all_links_reaches_all_that_paths_reach() -> None:
    graph = nx.gnp_random_graph(200, 0.012, seed=4)
    overlay = _overlay(graph)
    core = max(nx.connected_components(graph), key=len)
    found = predict_spread(overlay, 1.0, 0.0)
    has_cycle = {
        peer
        for c in nx.connected_components(graph)
        if nx.cycle_basis(graph.subgraph(c))
        for peer in c
    }
    assert set(np.flatnonzero(found.reached > 0.5)) == has_cycle >= core


def _simulated(graph: nx.Graph, sigma: float, gamma: float, events: int, seed: int) -> Floats:
    """Receivers of events published by random peers, all subscriptions drawn anew for each."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    neighbours = [list(graph[peer]) for peer in range(len(graph))]
    found = np.zeros(events)
    for event in range(events):
        interested = rng.random(len(graph)) < sigma
        first = int(rng.integers(len(graph)))
        seen, waiting = {first}, deque([first])
        while waiting:
            for other in neighbours[waiting.popleft()]:
                if other not in seen and (interested[other] or rng.random() < gamma):
                    seen.add(other)
                    waiting.append(other)
        found[event] = len(seen)
    return found


@pytest.mark.parametrize(
    ("sigma", "gamma"), [(0.05, 0.05), (0.1, 0.4), pytest.param(0.1, 0.6, marks=pytest.mark.long)]
)
def test_simulated_events_reach_as_many_as_predicted(sigma: float, gamma: float) -> None:
    graph = nx.fast_gnp_random_graph(2_000, 5 / 2_000, seed=3)
    found = _simulated(graph, sigma, gamma, 200, seed=8)
    wanted = predict_spread(_overlay(graph), sigma, gamma).receivers.mean()
    assert abs(found.mean() - wanted) < 3 * found.std(ddof=1) / math.sqrt(found.size)


def test_overlay_without_links_keeps_events_at_their_publishers() -> None:
    nobody = np.zeros(0, np.int64)
    found = predict_spread(LinkGraph(3, nobody, nobody), 0.5, 0.5)
    assert found.receivers == pytest.approx(1)
    assert found.receives == pytest.approx(1 / 3)
    assert math.isinf(threshold(LinkGraph(3, nobody, nobody)))
