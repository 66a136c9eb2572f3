"""Scribe on Chord in its network, judged by the ids and subscriptions of all peers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import networkx as nx

from tests.support.rings import INTERVAL, Truth
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Handler, Publication
from vizpub.simulators.protocols.chord.placing import place
from vizpub.simulators.protocols.scribe.on_chord import ScribeChord
from vizpub.simulators.protocols.scribe.parameters import ScribeChordParameters
from vizpub.simulators.world.latency import Delay

TOPICS = 6


class World:
    """A third of the peers subscribes to each topic."""

    def system(self, **chosen: Any) -> ScribeChord:
        """The system, with those parameters."""
        return ScribeChord(self.net, ScribeChordParameters(**chosen), TOPICS)

    def __init__(
        self, size: int = 60, seed: int = 1, delay: Delay | None = None, **chosen: Any
    ) -> None:
        print(f"seed {seed}")
        self.net = Simulation(size, seed, delay or (lambda sender, to: 10_000))
        self.scribe = self.system(**chosen)
        self.overlay, self.trees = self.scribe.routing, self.scribe.trees
        self.random = random.Random(seed)
        self.subscribers = [set(self.random.sample(range(size), size // 3)) for _ in range(TOPICS)]
        self.got: dict[int, list[tuple[int, int]]] = {}
        self.made: list[Publication] = []
        self.came_down: dict[int, Counter[int]] = {}
        """By message: how many copies came by the tree to each peer."""
        down = self.scribe.down
        down.handler = partial(self.on_down, down.handler)
        self.net.observer = self

    def on_down(self, handle: Handler, peer: int, sender: int, copy: Copy) -> None:
        """See Multicast.on_down."""
        self.came_down[copy.publication.message][peer] += 1
        handle(peer, sender, copy)

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        """See Observer."""

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        """See Observer."""
        self.got.setdefault(copy.publication.message, []).append((peer, copy.hops))

    def placed(self) -> World:
        """The ring is made; trees grow by the protocol."""
        for peer in range(self.net.size):
            self.net.come_up(peer)
        place(self.overlay, self.net.present)
        for topic, peers in enumerate(self.subscribers):
            for peer in sorted(peers):
                self.scribe.subscribe(peer, topic)
        self.run(7)
        return self

    def join(self, peer: int) -> None:
        self.net.come_up(peer)
        self.scribe.join(peer, [t for t, peers in enumerate(self.subscribers) if peer in peers])

    def run(self, seconds: float) -> None:
        self.net.run(self.net.now + int(seconds * INTERVAL))

    def publish(self, topic: int, publisher: int, seconds: float = 2) -> Publication:
        self.made.append(Publication(len(self.made), topic, publisher, 100))
        self.came_down[self.made[-1].message] = Counter()
        self.scribe.publish(publisher, self.made[-1])
        self.run(seconds)
        return self.made[-1]

    def copies(self, made: Publication) -> Counter[int]:
        return Counter(peer for peer, _ in self.got.get(made.message, []))

    def check_deliveries(self, *, strangers: bool = True) -> None:
        """Every subscriber that is up gets what subscribers and others publish: one copy comes by
        the tree, and before it one to each peer on the way there.
        """
        for topic, peers in enumerate(self.subscribers):
            up = {*self.net.present}
            for able in (peers & up, up - peers) if strangers else (peers & up,):
                publisher = self.random.choice(sorted(able))
                way = self.way(topic, publisher)
                made = self.publish(topic, publisher)
                copies, came_down = self.copies(made), self.came_down[made.message]
                assert {*copies} >= (peers & up) - {publisher}
                assert {*came_down.values()} <= {1}
                assert copies == came_down + Counter(way[1:])

    def way(self, topic: int, publisher: int) -> list[int]:
        """The peers to the root; both ways, to the first one of the tree."""
        route = self.overlay.route(publisher, self.overlay.keys[topic])
        in_tree = [topic in self.trees.members[peer].groups for peer in route]
        return route[: in_tree.index(True) + 1] if self.scribe.both_ways else route

    def tree(self, topic: int) -> nx.DiGraph:
        """From child to parent, by the reported links."""
        graph = nx.DiGraph()
        for peer in self.net.present:
            if topic in self.trees.members[peer].groups:
                graph.add_node(peer)
            for held in self.scribe.links(peer):
                if held.layer == "tree" and held.topic == topic:
                    graph.add_edge(peer, *held.peers)
        return graph

    def check_trees(self) -> None:
        """A tree for each topic, with all subscribers, and the key's owner as its root."""
        truth = Truth(self.overlay, self.net.present)
        for topic, peers in enumerate(self.subscribers):
            tree, up = self.tree(topic), peers & {*self.net.present}
            owner = truth.owner(self.overlay.ring.key(f"topic/{topic}"))
            assert {*tree} >= up
            assert tree.number_of_edges() == len(tree) - 1
            assert nx.is_directed_acyclic_graph(tree)
            assert [peer for peer in tree if not tree.out_degree(peer)] == [owner]
            assert ("rendezvous", topic) in self.scribe.roles(owner)
