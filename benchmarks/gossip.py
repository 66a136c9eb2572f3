"""Gossip on large networks: `python -m benchmarks.gossip [--peers N] [--links M]`.

Prints a Markdown table with processor times and ratios. One event at gamma 0.6 on a Poisson graph
of mean degree 5, compiled and by a plain search over networkx' graph of the same links; and
percolation on a smaller one: message passing against 20 random subgraphs and their components in
networkx. Each is the best of three; networkx is measured once.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable
from random import Random

import networkx as nx
import numpy as np

from vizpub.analytics.prediction.message_passing import LinkGraph, predict_spread, threshold
from vizpub.model.arrays import Int64s
from vizpub.simulators.protocols.broadcast.topologies import Poisson, join_ends
from vizpub.simulators.protocols.gossip.events import (
    Adjacency,
    Bools,
    Spreading,
    adjacency,
    disseminate,
)

GAMMA, SIGMA, MEAN = 0.6, 0.1, 5.0
SAMPLES = 20


def seconds(function: Callable[[], object], times: int = 3) -> float:
    """Processor time, the best of some."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        function()
        found.append(time.process_time() - begun)
    return min(found)


def network_of(peers: int) -> Adjacency:
    """A Poisson graph."""
    numbers = np.random.default_rng(1)
    return adjacency(join_ends(Poisson(MEAN).degrees(peers, numbers), numbers), peers)


def pairs(network: Adjacency) -> Int64s:
    """Its links, each once: shape (links, 2)."""
    src = np.repeat(np.arange(network.peers), network.degrees)
    both = np.column_stack([src, network.others.astype(np.int64)])
    return both[both[:, 0] < both[:, 1]]


def by_search(graph: nx.Graph[int], wants: Bools, publisher: int) -> int:
    """Receivers of an event, by Algorithm 1 in Python."""
    random, seen, queue = Random(1), {publisher}, deque([(publisher, -1)])
    while queue:
        peer, sender = queue.popleft()
        for other in graph[peer]:
            if other != sender and (wants[other] or random.random() < GAMMA) and other not in seen:
                seen.add(other)
                queue.append((other, peer))
    return len(seen)


def by_sampling(graph: nx.Graph[int]) -> float:
    """The mean size of a peer's component, if each link is kept with probability GAMMA."""
    random, sizes = Random(1), 0
    for _ in range(SAMPLES):
        kept: nx.Graph[int] = nx.Graph()
        kept.add_nodes_from(graph)
        kept.add_edges_from(edge for edge in graph.edges if random.random() < GAMMA)
        sizes += sum(len(one) ** 2 for one in nx.connected_components(kept))
    return sizes / SAMPLES / graph.number_of_nodes()


def row(what: str, ours: float, theirs: float) -> str:
    """A line of the table."""
    return f"| {what} | {ours:.3f} s | {theirs:.2f} s | {theirs / ours:,.0f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=100_000)
    given = parser.parse_args()
    network = network_of(given.peers)
    wants = np.random.default_rng(2).random(given.peers) < SIGMA
    how, publisher = Spreading(GAMMA, 1_000, 1), np.array([int(network.degrees.argmax())])
    graph: nx.Graph[int] = nx.Graph(pairs(network).tolist())
    reached = int(disseminate(network, wants, how, publisher)["receivers"][0])
    ours = seconds(lambda: disseminate(network, wants, how, publisher))
    theirs = seconds(lambda: by_search(graph, wants, int(publisher[0])), 1)
    print("| | ours | networkx | ratio |\n| --- | --- | --- | --- |")
    print(row(f"one event, {given.peers:,} peers, {reached:,} receivers", ours, theirs))
    del graph
    peers = int(2 * given.links / MEAN)
    small = network_of(peers)
    links = pairs(small)
    both = np.concatenate([links, links[:, ::-1]])
    graph = nx.Graph(links.tolist())
    graph.add_nodes_from(range(peers))
    overlay = LinkGraph(peers, both[:, 0], both[:, 1])
    ours = seconds(lambda: predict_spread(LinkGraph(peers, both[:, 0], both[:, 1]), 0.0, GAMMA))
    theirs = seconds(lambda: by_sampling(graph), 1)
    told = float(predict_spread(overlay, 0.0, GAMMA).receivers.mean())
    words = f"percolation, {len(links):,} links: {told:,.0f} receivers by message passing, "
    print(row(f"{words}{by_sampling(graph):,.0f} by {SAMPLES} samples", ours, theirs))
    spent = seconds(lambda: threshold(overlay))
    print(f"\nThreshold of the same overlay: {threshold(overlay):.4f} in {spent:.2f} s.")


if __name__ == "__main__":
    main()
