"""How peers join Pastry, and how routing tables are filled and maintained (sections 2.4, 2.5)."""

from __future__ import annotations

from typing import NamedTuple

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.pastry.leaf_keeping import LeafKeeping
from vizpub.simulators.protocols.pastry.leaves import LeafView
from vizpub.simulators.protocols.pastry.node import PastryNode
from vizpub.simulators.protocols.pastry.parameters import PastryParameters, bytes_of


class _Join(NamedTuple):
    """Routed to the joiner's id; each hop adds the rows of its table that the joiner can use."""

    joiner: int
    is_new: bool
    """Otherwise the joiner only checks whether its place is still the same."""
    rows: tuple[int, ...] = ()
    """Peers of the rows so far, and of the route; none if the joiner is not new."""
    shared: int = 0
    """Number of rows so far."""


class _Place(NamedTuple):
    """The answer of the peer closest to the joiner."""

    rows: tuple[int, ...]
    view: LeafView
    retries: int


class PastryJoining:
    """Joins through the bootstrap service, and maintains routing tables."""

    def __init__(self, net: Network, keeping: LeafKeeping, parameters: PastryParameters) -> None:
        self.net, self.keeping, self.ring = net, keeping, keeping.ring
        self.attempts = parameters.join_attempts
        self.timeout_us = us(parameters.join_timeout)
        self.join = net.kind("join", self.on_join, failed=self.on_join_lost)
        self.place = net.kind("place", self.on_place, failed=self.on_place_lost)
        self.hello = net.kind("hello", self.on_hello)
        self.ask_row = net.kind("ask for row", self.on_ask_row, failed=keeping.on_silence)
        self.row = net.kind("row", self.on_row)
        net.every(us(parameters.table_period), self.on_tick)

    def enter(self, peer: int, attempt: int = 1) -> None:
        """Look for the peer's place. A peer that is alone, or gets no answer for too long, starts a
        ring of its own; `on_tick` merges rings.
        """
        node = self.keeping.nodes[peer]
        if node.is_placed:
            return
        contact = self.net.contact(peer)
        if contact is None or attempt > self.attempts:
            node.is_placed = True
            self.keeping.settle(peer)
            return
        self._send(peer, contact, _Join(peer, is_new=True))
        self.net.after(self.timeout_us, peer, self.enter, attempt + 1)

    def serve(self, peer: int) -> None:
        """The peer is ready: notify the peers it knows, and process waiting joins."""
        node = self.keeping.nodes[peer]
        for other in dict.fromkeys(node.table.values()):
            self.net.send(self.hello, peer, other, None, bytes_of())
        waiting, node.waiting = node.waiting, []
        for join in waiting:
            self._pass_on(peer, join)

    def on_join(self, peer: int, sender: int, join: _Join) -> None:
        """Forward a join. A peer that is not ready keeps it, as its routes may be wrong."""
        node = self.keeping.nodes[peer]
        if node.is_ready:
            self._pass_on(peer, join)
        else:
            node.waiting.append(join)

    def on_join_lost(self, peer: int, to: int, join: _Join) -> None:
        """Use another route or contact."""
        if self.keeping.nodes[peer].is_ready:
            self.keeping.doubt(peer, to)
            self._pass_on(peer, join)
        elif (contact := self.net.contact(peer)) is not None:
            self._send(peer, contact, join)

    def on_place(self, peer: int, sender: int, place: _Place) -> None:
        """Probe all possible leaves. The first place also fills the routing table."""
        node, keeping = self.keeping.nodes[peer], self.keeping
        if not node.is_placed:
            for other in place.rows:
                if other not in node.failed:
                    node.add(other)
        node.is_placed = True
        for other in (sender, *place.view.members):
            is_known = node.is_ready and other in node.leaves
            if other != peer and not is_known and node.leaves.fits(other):
                keeping.ask(peer, other)
        keeping.settle(peer)

    def on_place_lost(self, peer: int, to: int, place: _Place) -> None:
        """Send it again, unless the joiner seems to be gone."""
        if place.retries:
            self._answer(peer, to, place._replace(retries=place.retries - 1))

    def on_hello(self, peer: int, sender: int, payload: None) -> None:
        """Another peer has joined."""
        self.keeping.heard(peer, sender)

    def on_tick(self, peer: int) -> None:
        """Maintain the state: compare a row of the routing table with a peer of that row, exchange
        leaf sets with a leaf, and look for the own place again through the bootstrap service, which
        merges rings that fell apart.
        """
        node = self.keeping.nodes[peer]
        if not node.is_ready:
            return
        if node.table:
            slot, target = self.net.random.choice(list(node.table.items()))
            shared = slot >> self.ring.b
            self.net.send(self.ask_row, peer, target, shared, bytes_of(ids=1))
        if leaves := node.leaves.view.members:
            self.keeping.ask(peer, self.net.random.choice(leaves))
        if (contact := self.net.contact(peer)) is not None:
            self._send(peer, contact, _Join(peer, is_new=False))

    def on_ask_row(self, peer: int, sender: int, shared: int) -> None:
        """Send a row of the routing table, and the nearest of the neighbourhood set."""
        node = self.keeping.nodes[peer]
        self.keeping.heard(peer, sender)
        row = (*node.row(shared), *node.near)
        self.net.send(self.row, peer, sender, row, bytes_of(peers=len(row)))

    def on_row(self, peer: int, sender: int, row: tuple[int, ...]) -> None:
        """Probe peers that fill a gap, and one of the others, which may be nearer."""
        node = self.keeping.nodes[peer]
        known_peers = {peer, *node.known_peers()}
        others = [other for other in row if other not in known_peers]
        gaps = {node.slot(self.ring.ids[other]): other for other in reversed(others)}
        wanted = [other for slot, other in gaps.items() if slot not in node.table]
        for other in [*wanted, *others[:1]]:
            self.keeping.ask(peer, other)

    def _pass_on(self, peer: int, join: _Join) -> None:
        node, joiner = self.keeping.nodes[peer], join.joiner
        key = self.ring.ids[joiner]
        to = node.next_hop(key, avoid=joiner)
        if join.is_new:
            join = self._with_rows(node, join)
        if to != peer:
            self._send(peer, to, join)
        elif joiner != peer:
            self._answer(peer, joiner, _Place(join.rows, node.leaves.view, self.keeping.retries))

    def _answer(self, peer: int, joiner: int, place: _Place) -> None:
        peer_count = len(place.rows) + len(place.view.right) + len(place.view.left)
        self.net.send(self.place, peer, joiner, place, bytes_of(peers=peer_count))

    def _with_rows(self, node: PastryNode, join: _Join) -> _Join:
        shared = self.ring.shared_digits(self.ring.ids[node.peer], self.ring.ids[join.joiner]) + 1
        rows = [node.row(row) for row in range(join.shared, shared)]
        peers = [peer for row in rows for peer in row if peer != join.joiner]
        rows_so_far = (*join.rows, *peers, node.peer)
        return join._replace(rows=rows_so_far, shared=max(shared, join.shared))

    def _send(self, peer: int, to: int, join: _Join) -> None:
        self.net.send(self.join, peer, to, join, bytes_of(peers=1 + len(join.rows)))
