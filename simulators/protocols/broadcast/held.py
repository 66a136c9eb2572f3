"""The publications that peers have seen lately."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from vizpub.simulators.engine.network import Copy, Network, Publication
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.parameters import (
    LastPublications,
    RecentPublications,
    RecoveryBound,
)


class _Held(NamedTuple):
    publication: Publication
    since_us: int
    hops: array[int]
    """Hops of each peer's first copy; -1: it has none."""


class FirstCopies:
    """The first copies of all peers, by publication. Peers forget a publication together, a stated
    time after it was made.
    """

    def __init__(self, net: Network, memory_us: int) -> None:
        self._net, self._memory_us = net, memory_us
        self._held: dict[int, _Held] = {}
        self._first = 0
        """Earlier publications are forgotten."""
        self._none = array("h", [-1]) * net.size

    def add(self, peer: int, copy: Copy) -> bool:
        """Hold a copy; returns whether the peer had none. A forgotten publication is not new."""
        message = copy.publication.message
        held = self._held.get(message)
        if held is None:
            if message < self._first:
                return False
            held = self._begin(copy.publication)
        if held.hops[peer] >= 0:
            return False
        held.hops[peer] = min(copy.hops, 32767)
        return True

    def has(self, peer: int, message: int) -> bool:
        """Return True if the peer has, or may have forgotten, a publication."""
        held = self._held.get(message)
        return message < self._first if held is None else held.hops[peer] >= 0

    def copy(self, peer: int, message: int) -> Copy | None:
        """The copy that a peer holds of a publication, if it does."""
        held = self._held.get(message)
        if held is None or held.hops[peer] < 0:
            return None
        return Copy(held.publication, held.hops[peer])

    def on_topics(self, peer: int, topics: Sequence[int], bound: RecoveryBound) -> list[Copy]:
        """The peer's copies on these topics within a bound, in order of publication."""
        oldest_us = self._net.now - us(bound.age) if isinstance(bound, RecentPublications) else 0
        most = bound.publications if isinstance(bound, LastPublications) else len(self._held)
        remaining, copies = dict.fromkeys(topics, most), list[Copy]()
        for held in reversed(self._held.values()):
            topic = held.publication.topic
            if held.since_us >= oldest_us and held.hops[peer] >= 0 and remaining.get(topic, 0):
                remaining[topic] -= 1
                copies.append(Copy(held.publication, held.hops[peer]))
        return copies[::-1]

    def clear(self, peer: int) -> None:
        """The peer holds nothing."""
        for held in self._held.values():
            held.hops[peer] = -1

    def _begin(self, publication: Publication) -> _Held:
        """Start to hold a new publication, and forget old ones."""
        now = self._net.now
        for message, held in list(self._held.items()):
            if held.since_us >= now - self._memory_us:
                break
            del self._held[message]
            self._first = message + 1
        first_copies = self._held[publication.message] = _Held(publication, now, self._none[:])
        return first_copies
