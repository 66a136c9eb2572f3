"""Chord: lookups on a ring of ids (Stoica et al., SIGCOMM 2001; Transactions on Networking 2003).

Each peer knows its successors on the ring, and fingers at distances of powers of two; a message
for a key goes to the key's successor in about ½ log₂ N hops.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.chord.lookups import LookupAnswer
from vizpub.simulators.protocols.chord.overlay import LAYERS, ChordOverlay
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.chord.ring import count_between
from vizpub.simulators.protocols.routing import NOBODY, Routed


class Chord(Routed):
    """The overlay on its own, with lookups. A publication is routed to its topic's owner."""

    layers: ClassVar[Sequence[str]] = LAYERS
    routing: ChordOverlay

    def __init__(self, net: Network, parameters: ChordParameters, topics: int) -> None:
        self._joined: list[tuple[int, int]] = []
        """(id, peer) of all that have joined: only to judge lookups."""
        super().__init__(net, lambda upcalls: ChordOverlay(net, parameters, topics, upcalls))
        self._keys = self.routing.ring.draw_keys(parameters.keys)
        if parameters.lookup_period is not None:
            net.every(us(parameters.lookup_period), self.on_lookup_tick)

    def header_facts(self) -> Mapping[str, Any]:
        """See System.header_facts."""
        return self.routing.describe_ids()

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        super().go_down(peer)
        entry = self.routing.ring.ids[peer], peer
        place = bisect_left(self._joined, entry)
        if self._joined[place : place + 1] == [entry]:
            del self._joined[place]

    def gauges(self, peer: int) -> Iterable[tuple[str, float]]:
        """The keys that the peer takes for its own: those after its predecessor, up to itself."""
        predecessor = self.routing.nodes[peer].predecessor
        if self._keys and predecessor != NOBODY:
            ids = self.routing.ring.ids
            yield "keys", count_between(self._keys, ids[predecessor], ids[peer])

    def ready(self, peer: int) -> None:
        """See Upcalls.ready."""
        entry = self.routing.ring.ids[peer], peer
        place = bisect_left(self._joined, entry)
        if self._joined[place : place + 1] != [entry]:
            self._joined.insert(place, entry)

    def owner(self, key: int) -> int:
        """The key's owner: the first peer from it on, of all that have joined."""
        if not self._joined:
            return NOBODY
        return self._joined[bisect_left(self._joined, (key,)) % len(self._joined)][1]

    def on_lookup_tick(self, peer: int) -> None:
        """Look up a random key."""
        if self.routing.is_ready(peer):
            self.look_up(peer, self.net.random.getrandbits(self.routing.ring.bits))

    def look_up(self, peer: int, key: int) -> None:
        """Look up a key, and count what becomes of it. A lookup that fails has no hops; the true
        owner is the first peer from the key on of all that have joined.
        """

        def on_answer(peer: int, answer: LookupAnswer) -> None:
            gauge, is_answered = self.net.gauge, answer.owner != NOBODY
            is_true = is_answered and answer.owner == self.owner(key)
            gauge(peer, "lookups", 1)
            gauge(peer, "lookups_answered", int(is_answered))
            gauge(peer, "lookup_timeouts", answer.timeouts)
            gauge(peer, "true_owners", int(is_true))
            gauge(peer, "wrong_owners", int(is_answered and not is_true))
            if is_answered:
                gauge(peer, "lookup_hops", answer.hops)

        self.routing.lookups.start(peer, key, on_answer)
