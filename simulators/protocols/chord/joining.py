"""How peers join Chord's ring, and how they find their fingers."""

from __future__ import annotations

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.chord.keeping import RingKeeping
from vizpub.simulators.protocols.chord.lookups import LookupAnswer, Lookups
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.routing import NOBODY


class ChordJoining:
    """Joins through the bootstrap service, first fingers, and their maintenance."""

    def __init__(
        self, net: Network, keeping: RingKeeping, lookups: Lookups, parameters: ChordParameters
    ) -> None:
        self.net, self.keeping, self.lookups = net, keeping, lookups
        self.attempts = parameters.join_attempts
        self.timeout_us = us(parameters.join_timeout)
        self.missing = [0] * net.size
        """First fingers that each peer waits for."""
        net.every(us(parameters.fingers_period), self.on_fingers_tick)
        net.every(us(parameters.merge_period), self.on_merge_tick)

    def enter(self, peer: int, attempt: int = 1) -> None:
        """Look up the peer's own id. A peer that is alone, or gets no answer for too long, forms a
        ring of its own; `on_merge_tick` merges rings.
        """
        node = self.keeping.nodes[peer]
        if node.is_placed:
            return
        contact = self.net.contact(peer)
        if contact is None or attempt > self.attempts:
            self._be_placed(peer)
            return
        self.lookups.start_join(peer, contact, self.on_place)
        self.net.after(self.timeout_us, peer, self.enter, attempt + 1)

    def on_place(self, peer: int, answer: LookupAnswer) -> None:
        """The owner of the peer's id is its successor."""
        node = self.keeping.nodes[peer]
        if answer.owner in (NOBODY, peer):
            return
        if not node.is_placed:
            self._take_place(peer, answer)
            self._be_placed(peer)
        elif node.adopt_successors([answer.owner], self.net.now):
            self.keeping.ask_successor(peer)

    def on_merge_tick(self, peer: int) -> None:
        """Look for the peer's place through the bootstrap service, which merges rings that fell
        apart.
        """
        contact = self.net.contact(peer)
        if self.keeping.nodes[peer].is_placed and contact is not None:
            self.lookups.start_join(peer, contact, self.on_place)

    def on_fingers_tick(self, peer: int) -> None:
        """Look up the next finger whose start is behind the successor; lost ones first."""
        node = self.keeping.nodes[peer]
        needed = node.needed_fingers()
        if not node.is_ready or not needed:
            return
        is_whole = len(node.fingers) == len(needed)  # as there are no others
        lost = () if is_whole else [one for one in needed if one not in node.fingers]
        following = node.next + 1 if node.next + 1 in needed else needed[0]
        node.next = lost[0] if lost else following
        self._look_up_finger(peer, node.next)

    def on_finger(self, peer: int, finger: int, answer: LookupAnswer) -> None:
        """The first peer from the finger's start on."""
        node = self.keeping.nodes[peer]
        if answer.owner != NOBODY and answer.owner not in node.doubted:
            last = node.set_finger(finger, answer.owner)
            if finger == node.next:
                node.next = last

    def _take_place(self, peer: int, answer: LookupAnswer) -> None:
        node, place = self.keeping.nodes[peer], answer.place
        node.adopt_successors([answer.owner, *(place.successors if place else ())], self.net.now)
        if place and place.predecessor not in (NOBODY, peer) and node.predecessor == NOBODY:
            node.set_predecessor(place.predecessor)

    def _be_placed(self, peer: int) -> None:
        node = self.keeping.nodes[peer]
        node.is_placed = True
        self.keeping.ask_successor(peer)
        self.lookups.serve(peer)
        self.missing[peer] = len(node.needed_fingers())
        for finger in node.needed_fingers():
            self._look_up_finger(peer, finger, is_first=True)
        self._settle(peer)
        self.net.after(self.timeout_us, peer, self._settle_at_last)

    def _look_up_finger(self, peer: int, finger: int, *, is_first: bool = False) -> None:
        def on_answer(peer: int, answer: LookupAnswer) -> None:
            self.on_finger(peer, finger, answer)
            if is_first:
                self.missing[peer] = max(0, self.missing[peer] - 1)
                self._settle(peer)

        self.lookups.start(peer, self.keeping.nodes[peer].start(finger), on_answer)

    def _settle_at_last(self, peer: int) -> None:
        """Do without fingers that are not found: others need the peer's answers."""
        if self.keeping.nodes[peer].is_placed:
            self.missing[peer] = 0
            self._settle(peer)

    def _settle(self, peer: int) -> None:
        node = self.keeping.nodes[peer]
        if not self.missing[peer] and not node.is_ready:
            node.is_ready = True
            self.keeping.upcalls.ready(peer)
