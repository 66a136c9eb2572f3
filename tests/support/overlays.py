"""Broadcast systems in a simulation, and the graphs of their links."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import networkx as nx

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Publication, System
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters
from vizpub.simulators.protocols.hyparview.system import HyParView

SECOND = 1_000_000
LATENCY_US = 2_000


class Receptions:
    """Observes a simulation: all receptions of each publication as (peer, sender, hops)."""

    def __init__(self) -> None:
        self.of: dict[int, list[tuple[int, int, int]]] = {}

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        """See Observer.sent."""

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        """See Observer.received."""
        self.of.setdefault(copy.publication.message, []).append((peer, sender, copy.hops))


class Overlay:
    """A broadcast system in its simulation, in which peers join one after the other."""

    def __init__(self, net: Simulation, system: System) -> None:
        self.net, self.system = net, system
        self.seen = net.observer = Receptions()
        self.published = 0

    @property
    def up(self) -> list[int]:
        """The peers that are up."""
        return [*self.net.present]

    def join(self, peer: int) -> None:
        """Start a peer."""
        self.net.come_up(peer)
        self.system.join(peer, ())

    def join_all(self, gap_us: int) -> None:
        """Start all peers, one every `gap_us`."""
        for peer in range(self.net.size):
            self.net.at(self.net.now + peer * gap_us, partial(self.join, peer))
        self.wait(self.net.size * gap_us / SECOND)

    def kill(self, peer: int) -> None:
        """A peer crashes."""
        self.net.go_down(peer)
        self.system.go_down(peer)

    def leave(self, peer: int) -> None:
        """A peer leaves with notice."""
        self.system.leave(peer)
        self.kill(peer)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.net.run(self.net.now + int(seconds * SECOND))

    def publish(self, peer: int, seconds: float = 0.5) -> list[tuple[int, int, int]]:
        """Publish, wait, and return all receptions."""
        message, self.published = self.published, self.published + 1
        self.system.publish(peer, Publication(message, 0, peer, 100))
        self.wait(seconds)
        return self.seen.of.get(message, [])

    def reached(self, peer: int, seconds: float = 0.5) -> float:
        """Share of the peers that are up which a publication reaches."""
        receptions = self.publish(peer, seconds)
        return len({peer, *(to for to, _, _ in receptions)}) / len(self.up)

    def links(self, layer: str) -> dict[int, list[int]]:
        """The links of each peer that is up."""
        return {
            peer: [
                other
                for held in self.system.links(peer)
                if held.layer == layer
                for other in held.peers
            ]
            for peer in self.up
        }

    def graph(self, layer: str) -> nx.DiGraph:
        """The links of a layer among the peers that are up, or to others."""
        held = self.links(layer)
        graph = nx.DiGraph()
        graph.add_nodes_from(held)
        graph.add_edges_from((peer, other) for peer in held for other in held[peer])
        return graph


def hyparview(
    peers: int, seed: int = 1, *, gap_us: int = 15_000, cycles: float = 10, **chosen: str
) -> Overlay:
    """HyParView after all peers joined, and some more periods of a second."""
    net = Simulation(peers, seed, lambda sender, to: LATENCY_US)
    made = Overlay(net, HyParView(net, HyParViewParameters(**chosen)))  # type: ignore[arg-type]
    made.join_all(gap_us)
    made.wait(cycles)
    return made
