"""Lookups: who owns a key (Stoica et al. 2003, section IV.C and IV.D).

*Recursive*: each peer passes the question on, and the owner answers. *Iterative*: who looks up asks
every hop itself. Either way a question reaches the owner, which sees whether its predecessor is
nearer to the key; so hops are links up to the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import NamedTuple

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.chord.keeping import RingKeeping, RingNeighbours
from vizpub.simulators.protocols.chord.node import NextHop
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.routing import NOBODY, TOO_FAR

_COUNTS_BYTES = 12
"""The number of a lookup (8), and its hops and time-outs (2 each)."""


class LookupAnswer(NamedTuple):
    """The answer to a lookup."""

    owner: int
    """NOBODY if it failed."""
    hops: int
    """Links up to the owner; 0 if the peer that asked is the owner."""
    timeouts: int
    """Messages to peers that did not acknowledge them."""
    place: RingNeighbours | None = None
    """The owner's neighbours before it took a joiner as predecessor."""


AnswerHandler = Callable[[int, LookupAnswer], None]
"""(peer that asked, answer)."""


class _Find(NamedTuple):
    """A question on its way, or one question of an iterative lookup."""

    key: int
    origin: int
    number: int
    avoid: tuple[int, ...] = ()
    """Peers that are not to be named: the origin while it joins, and those that were silent."""
    is_final: bool = False
    """Whether the sender takes the receiver for the owner."""
    is_back: bool = False
    """Whether the sender was taken for the owner itself, and names its predecessor."""
    is_join: bool = False
    """Whether the key is the origin's id, which looks for its successor."""
    hops: int = 0
    timeouts: int = 0


@dataclass(slots=True)
class _Pending:
    """A lookup without an answer yet."""

    find: _Find
    done: AnswerHandler
    trail: list[NextHop] = field(default_factory=list)
    """Peers that have been asked, of an iterative lookup, and whether as owners."""

    def is_asking(self, peer: int) -> bool:
        """Return True if an iterative lookup waits for that peer."""
        return bool(self.trail) and self.trail[-1].to == peer


class Lookups:
    """The lookups of all peers."""

    def __init__(self, net: Network, keeping: RingKeeping, parameters: ChordParameters) -> None:
        self.net, self.keeping, self.sizes = net, keeping, keeping.sizes
        self.is_iterative = parameters.lookup == "iterative"
        self.timeout_us = us(parameters.lookup_timeout)
        self.find_bytes = self.sizes.of(peers=1, ids=1) + _COUNTS_BYTES
        """Bytes of a question without peers to avoid."""
        self.find = net.kind("find", self.on_find, failed=self.on_find_lost)
        self.found = net.kind("found", self.on_found)
        self.ask = net.kind("ask hop", self.on_ask, failed=self.on_ask_lost)
        self.told = net.kind("next hop", self.on_told)
        self.pending: list[dict[int, _Pending]] = [{} for _ in range(net.size)]
        self._next = count().__next__

    def start(self, peer: int, key: int, done: AnswerHandler) -> None:
        """Look up the owner of a key."""
        self._go_on(peer, self._begin(peer, _Find(key, peer, self._next()), done))

    def start_join(self, peer: int, contact: int, done: AnswerHandler) -> None:
        """Look up the peer's successor, who takes the peer as its predecessor at once."""
        own_id = self.keeping.ring.ids[peer]
        find = _Find(own_id, peer, self._next(), avoid=(peer,), is_join=True)
        self._send(peer, NextHop(contact, False), self._begin(peer, find, done))

    def reset(self, peer: int) -> None:
        """Forget the peer's lookups."""
        self.pending[peer] = {}

    def serve(self, peer: int) -> None:
        """The peer is placed: process waiting questions."""
        node = self.keeping.nodes[peer]
        waiting, node.waiting = node.waiting, []
        for question in waiting:
            question()

    # Recursive.

    def on_find(self, peer: int, sender: int, find: _Find) -> None:
        """Answer or pass on. A peer that is not placed keeps it, as it knows nobody."""
        node = self.keeping.nodes[peer]
        if not node.is_placed:
            node.waiting.append(partial(self.on_find, peer, sender, find))
        else:
            self._pass_on(peer, find)

    def on_find_lost(self, peer: int, to: int, find: _Find) -> None:
        """Use another hop."""
        self.keeping.doubt(peer, to)
        if self.keeping.nodes[peer].is_placed:
            again = find._replace(
                hops=find.hops - 1, timeouts=find.timeouts + 1, is_final=find.is_back
            )
            self._pass_on(peer, again)

    def on_found(self, peer: int, sender: int, numbered_answer: tuple[int, LookupAnswer]) -> None:
        """The owner's answer."""
        self._finish(peer, *numbered_answer)

    def _pass_on(self, peer: int, find: _Find) -> None:
        step = self._step(peer, find)
        if step.to != peer:
            self._send(peer, step, find)
            return
        place = self._admit_joiner(peer, find)
        answer = LookupAnswer(peer, find.hops, find.timeouts, place)
        if find.origin == peer:
            self._finish(peer, find.number, answer)
        else:
            size = self.sizes.of(peers=place.peer_count if place else 0) + _COUNTS_BYTES
            self.net.send(self.found, peer, find.origin, (find.number, answer), size)

    # Iterative.

    def on_ask(self, peer: int, sender: int, find: _Find) -> None:
        """Name the next hop."""
        node = self.keeping.nodes[peer]
        if not node.is_placed:
            node.waiting.append(partial(self.on_ask, peer, sender, find))
            return
        step = self._step(peer, find)
        place = self._admit_joiner(peer, find) if step.to == peer else None
        size = self.sizes.of(peers=1 + (place.peer_count if place else 0)) + _COUNTS_BYTES
        self.net.send(self.told, peer, sender, (find.number, step, place), size)

    def on_told(
        self, peer: int, sender: int, named_hop: tuple[int, NextHop, RingNeighbours | None]
    ) -> None:
        """Ask the next hop, up to the owner."""
        number, step, place = named_hop
        pending = self.pending[peer].get(number)
        if pending is None or not pending.is_asking(sender):
            return
        if step.to == sender or (step.to == peer and step.is_owner):
            hops, timeouts = pending.find.hops, pending.find.timeouts
            self._finish(peer, number, LookupAnswer(step.to, hops, timeouts, place))
        else:
            self._send(peer, step, pending.find)

    def on_ask_lost(self, peer: int, to: int, find: _Find) -> None:
        """Ask the hop before for another one."""
        self.keeping.doubt(peer, to)
        pending = self.pending[peer].get(find.number)
        if pending is None or not pending.is_asking(to):
            return
        pending.trail.pop()
        find = pending.find
        pending.find = find = find._replace(
            hops=find.hops - 1, timeouts=find.timeouts + 1, avoid=(*find.avoid, to)
        )
        if pending.trail:
            # The same question once more: no link farther.
            pending.find = find._replace(hops=find.hops - 1)
            self._send(peer, pending.trail.pop(), pending.find)
        elif self.keeping.nodes[peer].is_placed:
            self._go_on(peer, find._replace(is_final=False))

    # Both.

    def _begin(self, peer: int, find: _Find, done: AnswerHandler) -> _Find:
        self.pending[peer][find.number] = _Pending(find, done)
        self.net.after(self.timeout_us, peer, self._expire, find.number)
        return find

    def _admit_joiner(self, peer: int, find: _Find) -> RingNeighbours | None:
        """Take a joiner as predecessor; returns the neighbours until then."""
        if not find.is_join or find.origin == peer:
            return None
        place = self.keeping.neighbours(peer)
        self.keeping.on_notify(peer, find.origin, None)
        return place

    def _go_on(self, peer: int, find: _Find) -> None:
        step = self._step(peer, find)
        if step.to == peer:
            self._finish(peer, find.number, LookupAnswer(peer, find.hops, find.timeouts))
        else:
            self._send(peer, step, find)

    def _step(self, peer: int, find: _Find) -> NextHop:
        node = self.keeping.nodes[peer]
        if not find.is_final:
            return node.next_hop(find.key, find.avoid)
        nearer = node.nearer_predecessor(find.key, find.avoid)
        return NextHop(peer if nearer == NOBODY else nearer, True)

    def _send(self, peer: int, step: NextHop, find: _Find) -> None:
        """Send the question one link farther. In a loop it ends, and the lookup fails; from owner
        to owner it only comes nearer.
        """
        key, origin, number, avoid, is_final, _, is_join, hops, timeouts = find
        # Not _replace, which takes as long as all the rest.
        find = _Find(
            key, origin, number, avoid, step.is_owner, is_final, is_join, hops + 1, timeouts
        )
        if find.hops > TOO_FAR and not find.is_final:
            return
        kind = self.find
        if self.is_iterative:
            kind, pending = self.ask, self.pending[peer][find.number]
            pending.find = find
            pending.trail.append(step)
        size = self.find_bytes + self.sizes.peer * len(avoid)
        self.net.send(kind, peer, step.to, find, size)

    def _finish(self, peer: int, number: int, answer: LookupAnswer) -> None:
        if pending := self.pending[peer].pop(number, None):
            pending.done(peer, answer)

    def _expire(self, peer: int, number: int) -> None:
        if pending := self.pending[peer].get(number):
            timeouts = pending.find.timeouts
            self._finish(peer, number, LookupAnswer(NOBODY, pending.find.hops, timeouts))
