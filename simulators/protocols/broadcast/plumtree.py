"""Plumtree (Leitão, Pereira, Rodrigues, Epidemic Broadcast Trees, SRDS 2007).

A peer sends publications to its *eager* neighbours and announces them to its *lazy* ones. All are
eager at first; a link along which a duplicate came is made lazy at both ends, so that the
eager ones become a tree. A peer that was announced what it does not get in time asks the announcer
for it, and both make their link eager.

Without `optimise` links change only then. With it, a peer that got a publication after many more
hops than an announcer makes that one its parent (section 3.8 of the paper).
"""

from __future__ import annotations

from collections.abc import Iterable

from vizpub.simulators.engine.network import HEADER_BYTES, Copy, Links, Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.eager import Broadcast
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.broadcast.parameters import PlumtreeModel as Parameters

ID_BYTES = 8
"""Bytes of the number of a publication in GRAFT."""
ANNOUNCED_BYTES = 10
"""Bytes of an announced publication: its number (8), and hops (2)."""

_Announced = tuple[int, int]
"""A publication, and hops of the announcer's copy."""


class Plumtree(Broadcast):
    """Trees and announcements."""

    def __init__(
        self, net: Network, membership: Membership, held: FirstCopies, parameters: Parameters
    ) -> None:
        super().__init__(net, membership, held)
        self.timeout_us, self.again_us = us(parameters.timeout), us(parameters.again)
        self.batch_us = us(parameters.batch) if parameters.batch else 0
        self.optimise = parameters.optimise
        self.lazy: list[set[int]] = [set() for _ in range(net.size)]
        """Neighbours that are not eager; perhaps also former ones."""
        self._announcers: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(net.size)]
        """Of each publication that is awaited: (peer, hops of its copy) in order of arrival."""
        self._batches: list[dict[int, list[_Announced]]] = [{} for _ in range(net.size)]
        """Announcements to send, by neighbour."""
        self.announcements = net.kind("ihave", self.on_announced, failed=self.on_lost)
        self.grafts = net.kind("graft", self.on_graft, failed=self.on_lost)
        self.prunes = net.kind("prune", self.on_prune)
        membership.on_neighbour.append(self.on_neighbour)

    def join(self, peer: int) -> None:
        """See Broadcast.join."""
        self.lazy[peer] = set()
        self._announcers[peer], self._batches[peer] = {}, {}

    def on_neighbour(self, peer: int, other: int) -> None:
        """New neighbours are eager."""
        self.lazy[peer].discard(other)

    # Publications.

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Send a new publication on; make the link lazy otherwise."""
        self.check(peer, sender)
        if self.held.add(peer, copy):
            announcers = self._announcers[peer].pop(copy.publication.message, ())
            self.lazy[peer].discard(sender)
            self.spread(peer, sender, copy)
            if self.optimise and announcers:
                nearest, hops = min(announcers, key=lambda one: one[1])
                if nearest != sender and copy.hops - (hops + 1) >= self.optimise:
                    self._graft(peer, nearest, None)
                    self._demote(peer, sender)
        else:
            self._demote(peer, sender)

    def spread(self, peer: int, sender: int, copy: Copy) -> None:
        """See Broadcast.spread."""
        lazy, neighbours = self.lazy[peer], self.membership.neighbours(peer)
        lazy.intersection_update(neighbours)
        eager = [
            neighbour for neighbour in neighbours if neighbour != sender and neighbour not in lazy
        ]
        self.net.forward(self.copies, peer, eager, copy)
        announced = (copy.publication.message, copy.hops)
        for neighbour in neighbours:
            if neighbour in lazy and neighbour != sender:
                self._announce(peer, neighbour, announced)

    def _demote(self, peer: int, sender: int) -> None:
        self.lazy[peer].add(sender)
        self.net.send(self.prunes, peer, sender, None, HEADER_BYTES)

    def on_prune(self, peer: int, sender: int, payload: None) -> None:
        """The other end of a link made it lazy."""
        self.lazy[peer].add(sender)

    # Announcements.

    def _announce(self, peer: int, to: int, announced: _Announced) -> None:
        if not self.batch_us:
            self._send_batch(peer, to, [announced])
            return
        batches = self._batches[peer]
        if not batches:
            self.net.after(self.batch_us, peer, self._send_batches)
        batches.setdefault(to, []).append(announced)

    def _send_batches(self, peer: int) -> None:
        batches, self._batches[peer] = self._batches[peer], {}
        for to, batch in batches.items():
            self._send_batch(peer, to, batch)

    def _send_batch(self, peer: int, to: int, batch: list[_Announced]) -> None:
        size = HEADER_BYTES + ANNOUNCED_BYTES * len(batch)
        self.net.send(self.announcements, peer, to, batch, size)

    def on_announced(self, peer: int, sender: int, batch: list[_Announced]) -> None:
        """Wait for what the peer does not have."""
        self.check(peer, sender)
        awaited = self._announcers[peer]
        for message, hops in batch:
            if not self.held.has(peer, message):
                if message not in awaited:
                    awaited[message] = []
                    self.net.after(self.timeout_us, peer, self.on_overdue, message)
                awaited[message].append((sender, hops))

    def on_overdue(self, peer: int, message: int) -> None:
        """Ask an announcer, if possible one that is still a neighbour."""
        announcers = self._announcers[peer].get(message)
        if announcers is None:
            return
        if not announcers or self.held.has(peer, message):
            del self._announcers[peer][message]
            return
        neighbours = self.membership.neighbours(peer)
        announcer = next((one for one in announcers if one[0] in neighbours), announcers[0])
        announcers.remove(announcer)
        self._graft(peer, announcer[0], message)
        self.net.after(self.again_us, peer, self.on_overdue, message)

    def _graft(self, peer: int, to: int, message: int | None) -> None:
        self.lazy[peer].discard(to)
        size = HEADER_BYTES + (0 if message is None else ID_BYTES)
        self.net.send(self.grafts, peer, to, message, size)

    def on_graft(self, peer: int, sender: int, message: int | None) -> None:
        """Make the link eager, and send what is asked for."""
        self.lazy[peer].discard(sender)
        if message is not None and (copy := self.held.copy(peer, message)):
            self.net.forward(self.copies, peer, (sender,), copy)

    def links(self, peer: int) -> Iterable[Links]:
        """The layers eager and lazy."""
        neighbours, lazy = self.membership.neighbours(peer), self.lazy[peer]
        yield Links("eager", None, [other for other in neighbours if other not in lazy])
        yield Links("lazy", None, [other for other in neighbours if other in lazy])
