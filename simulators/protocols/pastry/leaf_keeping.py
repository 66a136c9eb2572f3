"""How Pastry's peers maintain leaf sets and detect failures.

After MSPastry (Castro, Costa and Rowstron, Performance and dependability of structured
peer-to-peer overlays, 2004): each peer sends its leaf set to its left neighbour once a period, so
that every peer is monitored by one other. Two differences: missing acknowledgements, not silence,
show that a peer is down; and a peer that is missing in a received leaf set, though it belongs
there, is probed, which spreads news of failed and of new peers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.pastry.leaves import LeafExchange, LeafView, PastryRing
from vizpub.simulators.protocols.pastry.node import PastryNode
from vizpub.simulators.protocols.pastry.parameters import PastryParameters, bytes_of
from vizpub.simulators.protocols.routing import Upcalls

_DISBELIEF = 10
"""Leaf periods in which a peer that did not answer is not probed when others name it."""
_PATIENCE = 2
"""Leaf periods after which an answer to an acknowledged probe is overdue."""


class _Probe(NamedTuple):
    """Asks for the leaf set of a peer, to see whether it is up."""

    view: LeafView
    """The leaf set of the asking peer."""
    retries: int
    sent_us: int


class LeafKeeping:
    """Maintains leaf sets, and is the overlay's failure detector."""

    def __init__(
        self, net: Network, ring: PastryRing, parameters: PastryParameters, upcalls: Upcalls
    ) -> None:
        self.net, self.ring, self.upcalls = net, ring, upcalls
        self.retries = parameters.retries
        self.shape = parameters.leaf_set, parameters.neighbourhood
        self.nodes = [PastryNode(ring, peer, *self.shape) for peer in range(net.size)]
        self.leaf_period_us = us(parameters.leaf_period)
        self.disbelief_us = _DISBELIEF * self.leaf_period_us
        self.heartbeat = net.kind("leaf heartbeat", self.on_heartbeat, failed=self.on_silence)
        self.probe = net.kind("leaf probe", self.on_probe, failed=self.on_no_answer)
        self.answer = net.kind("leaf answer", self.on_answer)
        self.news = net.kind("leaf set", self.on_news)
        self.bye = net.kind("bye", self.on_bye)
        net.every(self.leaf_period_us, self.on_tick)

    def reset(self, peer: int) -> PastryNode:
        """Give the peer an empty state."""
        self.nodes[peer] = PastryNode(self.ring, peer, *self.shape)
        return self.nodes[peer]

    def on_tick(self, peer: int) -> None:
        """Send the leaf set to the left neighbour, as a heartbeat."""
        node = self.nodes[peer]
        if node.leaves.left:
            view = node.leaves.view
            self.net.send(self.heartbeat, peer, node.leaves.left[0], view, _bytes_of(view))
        self.settle(peer, is_patient=False)
        if node.asked or node.failed:
            self._look_after(peer, node)

    def _look_after(self, peer: int, node: PastryNode) -> None:
        """Probe again where answers are overdue, and forget old failures to answer."""
        overdue_us = self.net.now - _PATIENCE * self.leaf_period_us
        for other in [other for other, since_us in node.asked.items() if since_us < overdue_us]:
            self._probe(peer, other, self.retries)
        believed = [other for other, until_us in node.failed.items() if until_us < self.net.now]
        for other in believed:
            del node.failed[other]
        if believed:
            # Received leaf sets are compared again.
            node.exchanges.clear()

    def on_heartbeat(self, peer: int, sender: int, view: LeafView) -> None:
        """Send the sender the peers that are missing in its leaf set."""
        if self.learn(peer, sender, view):
            ours = self.nodes[peer].leaves.view
            self.net.send(self.news, peer, sender, ours, _bytes_of(ours))

    def on_news(self, peer: int, sender: int, view: LeafView) -> None:
        """A leaf set, in answer to the peer's."""
        self.learn(peer, sender, view)

    def learn(self, peer: int, sender: int, view: LeafView) -> list[int]:
        """Compare the sender's leaf set with the peer's, and probe the peers that differ.

        Usually neither has changed since the last time.

        Returns: the peers that are missing in the sender's.
        """
        node = self.nodes[peer]
        last = node.exchanges.get(sender)
        if last is not None and last.theirs is view and last.ours is node.leaves.view:
            return []
        now = self.net.now
        self.heard(peer, sender)
        for other in view.members:
            if other != peer and node.leaves.fits(other) and other not in node.leaves:
                self.ask(peer, other)
        missing = node.leaves.missing_in(view, sender)
        for other in missing:
            last = node.exchanges.get(other)
            if last is None or last.time_us + self.leaf_period_us < now:
                self.ask(peer, other)
        if sender in node.leaves:
            node.exchanges[sender] = LeafExchange(view, node.leaves.view, now)
        return missing

    def heard(self, peer: int, other: int) -> None:
        """A message shows that another peer is up."""
        node = self.nodes[peer]
        node.failed.pop(other, None)
        node.doubted.discard(other)
        if node.add(other):
            self.upcalls.responsibility_changed(peer)

    def ask(self, peer: int, other: int) -> None:
        """Probe a peer that was named, unless a probe is pending or failed recently."""
        node = self.nodes[peer]
        if other not in node.asked and node.failed.get(other, 0) <= self.net.now:
            self._probe(peer, other, self.retries)

    def doubt(self, peer: int, other: int) -> None:
        """A message to that peer was not acknowledged: route around it, and probe it."""
        node = self.nodes[peer]
        if other not in node.doubted:
            node.doubted.add(other)
            self.ask(peer, other)

    def on_silence(self, peer: int, to: int, view: LeafView) -> None:
        """A message without further consequences was not acknowledged."""
        self.doubt(peer, to)

    def on_probe(self, peer: int, sender: int, probe: _Probe) -> None:
        """Answer with the peer's leaf set."""
        self.learn(peer, sender, probe.view)
        view = self.nodes[peer].leaves.view
        self.net.send(self.answer, peer, sender, (view, probe.sent_us), _bytes_of(view))

    def on_answer(self, peer: int, sender: int, answer: tuple[LeafView, int]) -> None:
        """The probed peer is up."""
        node = self.nodes[peer]
        view, sent_us = answer
        node.asked.pop(sender, None)
        self.heard(peer, sender)
        self.learn(peer, sender, view)
        node.measure(sender, self.net.now - sent_us)
        self.settle(peer)

    def on_no_answer(self, peer: int, to: int, probe: _Probe) -> None:
        """Try again, and after some retries consider the peer dead."""
        node = self.nodes[peer]
        if to not in node.asked:
            return
        if not probe.retries:
            self.lose(peer, to)
            return
        if node.knows(to):
            node.doubted.add(to)
        self._probe(peer, to, probe.retries - 1)

    def lose(self, peer: int, other: int) -> None:
        """Consider the other peer dead, and repair the leaf set (Pastry, section 2.5)."""
        node = self.nodes[peer]
        node.failed[other] = self.net.now + self.disbelief_us
        was_left_neighbour = node.leaves.left[:1] == [other]
        for farthest in node.remove(other):
            self.ask(peer, farthest)
        if was_left_neighbour:
            # Only this peer monitors it: notify all that may know it. Others may be down too.
            for leaf in node.leaves.view.members:
                self.ask(peer, leaf)
        self.upcalls.lost(peer, other)
        self.settle(peer)

    def take_leave(self, peer: int, others: Sequence[int]) -> None:
        """Notify all known peers, and `others`, that the peer leaves."""
        for other in dict.fromkeys([*self.nodes[peer].known_peers(), *others]):
            self.net.send(self.bye, peer, other, None, bytes_of())

    def on_bye(self, peer: int, sender: int, payload: None) -> None:
        """Another peer left."""
        self.lose(peer, sender)

    def settle(self, peer: int, *, is_patient: bool = True) -> None:
        """A peer that knows its place is ready when no answer is pending, or at its next tick."""
        node = self.nodes[peer]
        if node.is_placed and not node.is_ready and not (is_patient and node.asked):
            node.is_ready = True
            self.upcalls.ready(peer)

    def _probe(self, peer: int, other: int, retries: int) -> None:
        node = self.nodes[peer]
        node.asked[other] = self.net.now
        view = node.leaves.view
        probe = _Probe(view, retries, self.net.now)
        self.net.send(self.probe, peer, other, probe, _bytes_of(view))


def _bytes_of(view: LeafView) -> int:
    return bytes_of(peers=len(view.right) + len(view.left))
