"""How Chord's peers keep the ring, and detect failures (Stoica et al. 2003, sections IV.E, IV.F).

Successor lists come from the successor's replies. Where the paper leaves a peer to find out at its
next stabilization, it is told at once, by the same messages: the successor of a joiner takes it as
predecessor, and sends the former one the reply to a question it has not asked yet. Peers that join
together would otherwise find their order one by one, one in a period.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.chord.node import ChordNode
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.chord.ring import ChordRing
from vizpub.simulators.protocols.routing import NOBODY, Sizes, Upcalls

_DISBELIEF = 10
"""Stabilization periods in which a peer that did not answer is not taken up if others name it."""


class RingNeighbours(NamedTuple):
    """A peer's predecessor and successor list, and its fingers if they are carried."""

    predecessor: int
    successors: tuple[int, ...]
    fingers: tuple[int, ...] = ()
    is_asked_for: bool = False
    """Whether the receiver asked for it; the message's kind has room for that."""

    @property
    def peer_count(self) -> int:
        """Number of peers in it."""
        return len(self.successors) + len(self.fingers) + (self.predecessor != NOBODY)


class RingKeeping:
    """Maintains predecessors and successor lists, and is the overlay's failure detector."""

    def __init__(
        self, net: Network, ring: ChordRing, parameters: ChordParameters, upcalls: Upcalls
    ) -> None:
        self.net, self.ring, self.upcalls = net, ring, upcalls
        self.sizes = Sizes(-(-ring.bits // 8))
        self.room, self.retries = parameters.successors, parameters.retries
        self.carry_fingers = parameters.carry_fingers
        self.nodes = [ChordNode(ring, peer, self.room) for peer in range(net.size)]
        self.disbelief_us = _DISBELIEF * us(parameters.stabilize_period)
        self.stabilize = net.kind("stabilize", self.on_stabilize, failed=self.on_silence)
        self.reply = net.kind("predecessor", self.on_reply)
        self.notify = net.kind("notify", self.on_notify, failed=self.on_silence)
        self.check = net.kind("check", self.on_check, failed=self.on_check_lost)
        self.alive = net.kind("alive", self.on_alive)
        self.bye = net.kind("bye", self.on_bye)
        net.every(us(parameters.stabilize_period), self.on_stabilize_tick)
        net.every(us(parameters.predecessor_period), self.on_check_tick)

    def reset(self, peer: int) -> ChordNode:
        """Give the peer an empty state."""
        self.nodes[peer] = ChordNode(self.ring, peer, self.room)
        return self.nodes[peer]

    # The ring.

    def neighbours(self, peer: int) -> RingNeighbours:
        """The peer's predecessor and successor list."""
        node = self.nodes[peer]
        return RingNeighbours(node.predecessor, tuple(node.successors))

    def on_stabilize_tick(self, peer: int) -> None:
        """Ask the successor for its predecessor; forget old failures to answer."""
        node = self.nodes[peer]
        if node.is_placed:
            self.ask_successor(peer)
        if node.failed:
            now = self.net.now
            node.failed = {other: until for other, until in node.failed.items() if until > now}

    def ask_successor(self, peer: int) -> None:
        """Ask the first successor that is not doubted."""
        node = self.nodes[peer]
        to = self._live_successor(node)
        if to != peer:
            size = self.sizes.of(peers=node.predecessor != NOBODY)
            self.net.send(self.stabilize, peer, to, node.predecessor, size)

    def on_stabilize(self, peer: int, sender: int, predecessor: int) -> None:
        """Answer with the predecessor. A peer that is not placed answers when it is."""
        node = self.nodes[peer]
        node.trust(sender)
        if sender == node.predecessor:
            node.set_second(predecessor)
        if node.is_placed:
            self._tell(peer, sender, is_asked_for=True)
        else:
            node.waiting.append(partial(self.on_stabilize, peer, sender, predecessor))

    def on_reply(self, peer: int, sender: int, reply: RingNeighbours) -> None:
        """Take up the successor's predecessor if it is nearer; otherwise notify the successor, if
        its predecessor is another one. A peer notifies once for each question: the successor may
        reply to that, and where this one believes its predecessor dead, there would be no end.
        """
        node, nearer = self.nodes[peer], reply.predecessor
        node.trust(sender)
        if not node.is_placed or node.offset(sender) > node.offset(self._live_successor(node)):
            return
        node.follow(sender, reply.successors, self.net.now)
        if nearer not in (NOBODY, peer) and nearer not in node.doubted:
            node.adopt_successors([nearer], self.net.now)
        for other in reply.fingers:
            self._fill(node, other)
        if node.successor != sender:
            self.ask_successor(peer)
        elif reply.is_asked_for and nearer != peer and nearer not in node.doubted:
            self.net.send(self.notify, peer, sender, None, self.sizes.header)

    def on_notify(self, peer: int, sender: int, payload: None) -> None:
        """Take the sender as predecessor if it is nearer, and tell the former one. A farther one
        may know that the predecessor is gone: check that.
        """
        node, predecessor = self.nodes[peer], self.nodes[peer].predecessor
        node.trust(sender)
        if predecessor == sender:
            return
        if predecessor != NOBODY and not self._is_between(sender, predecessor, peer):
            node.claimant = sender
            self._check(peer, predecessor, self.retries)
            self._tell(peer, sender)
            return
        self._set_predecessor(peer, sender, predecessor)
        if predecessor != NOBODY:
            self._tell(peer, predecessor)
        if node.is_placed and not node.successors:
            node.adopt_successors([sender], self.net.now)
            self.ask_successor(peer)

    def on_check_tick(self, peer: int) -> None:
        """Check the predecessor."""
        node = self.nodes[peer]
        if node.predecessor != NOBODY and node.predecessor not in node.doubted:
            self._check(peer, node.predecessor, self.retries)

    def take_leave(self, peer: int, others: Sequence[int]) -> None:
        """Notify predecessor, successor and `others` that the peer leaves."""
        node, bye = self.nodes[peer], self.neighbours(peer)
        for other in dict.fromkeys([node.predecessor, node.successor, *others]):
            if other not in (NOBODY, peer):
                self.net.send(self.bye, peer, other, bye, self.sizes.of(peers=bye.peer_count))

    def on_bye(self, peer: int, sender: int, bye: RingNeighbours) -> None:
        """Another peer left: its neighbours become each other's."""
        node = self.nodes[peer]
        was_predecessor = node.predecessor == sender
        was_successor = node.successor == sender
        self.lose(peer, sender)
        if was_successor and node.is_placed:
            node.adopt_successors(
                [other for other in bye.successors if other != sender], self.net.now
            )
            self.ask_successor(peer)
        other = bye.predecessor
        if was_predecessor and other not in (NOBODY, peer) and node.predecessor == NOBODY:
            self._set_predecessor(peer, other)

    def _set_predecessor(self, peer: int, other: int, second: int = NOBODY) -> None:
        self.nodes[peer].set_predecessor(other, second)
        self.upcalls.responsibility_changed(peer)

    def _is_between(self, other: int, low: int, high: int) -> bool:
        ids, mask = self.ring.ids, self.ring.size - 1
        return 0 < (ids[other] - ids[low]) & mask < (ids[high] - ids[low]) & mask

    def _live_successor(self, node: ChordNode) -> int:
        if not node.doubted:
            return node.successor
        able = (other for other in node.successors if other not in node.doubted)
        return next(able, node.successor)

    def _tell(self, peer: int, to: int, *, is_asked_for: bool = False) -> None:
        node = self.nodes[peer]
        fingers = tuple(node.distinct_fingers()) if self.carry_fingers else ()
        reply = RingNeighbours(node.predecessor, tuple(node.successors), fingers, is_asked_for)
        self.net.send(self.reply, peer, to, reply, self.sizes.of(peers=reply.peer_count))

    def _fill(self, node: ChordNode, other: int) -> None:
        """Use another peer's finger for a missing one, until it is looked up."""
        if other == node.peer or other in node.failed:
            return
        finger = node.offset(other).bit_length() - 1
        if finger in node.needed_fingers() and finger not in node.fingers:
            node.set_finger(finger, other)

    # Failures.

    def doubt(self, peer: int, other: int) -> None:
        """A message to that peer was not acknowledged: route around it, and check it."""
        node = self.nodes[peer]
        if other not in node.doubted and other != peer:
            node.doubt(other)
            self._check(peer, other, self.retries)

    def on_silence(self, peer: int, to: int, payload: None) -> None:
        """A message without further consequences was not acknowledged."""
        self.doubt(peer, to)

    def on_check(self, peer: int, sender: int, retries: int) -> None:
        """Answer."""
        self.nodes[peer].trust(sender)
        self.net.send(self.alive, peer, sender, None, self.sizes.header)

    def on_alive(self, peer: int, sender: int, payload: None) -> None:
        """The checked peer is up."""
        self.nodes[peer].trust(sender)

    def on_check_lost(self, peer: int, to: int, retries: int) -> None:
        """Try again, and after some retries consider the peer dead."""
        if retries:
            self.nodes[peer].doubt(to)
            self._check(peer, to, retries - 1)
        else:
            self.lose(peer, to)

    def lose(self, peer: int, other: int) -> None:
        """Consider the other peer dead; a lost successor is replaced by the next one."""
        node = self.nodes[peer]
        node.failed[other] = self.net.now + self.disbelief_us
        was_successor, claimant = node.successor == other, node.claimant
        was_predecessor = node.predecessor == other
        node.remove(other)
        is_open = was_predecessor and node.predecessor == NOBODY
        if is_open and claimant not in (NOBODY, other):
            self._set_predecessor(peer, claimant)
        if was_successor and node.is_placed:
            self.ask_successor(peer)
        self.upcalls.lost(peer, other)

    def _check(self, peer: int, other: int, retries: int) -> None:
        self.net.send(self.check, peer, other, retries, self.sizes.header)
