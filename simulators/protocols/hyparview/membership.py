"""HyParView's views (Leitão, Pereira, Rodrigues, HyParView, DSN 2007).

The *active* view is small and symmetric; broadcasts go along it. The *passive* view is larger; a
neighbour that failed is replaced from it. Corrections, where the paper says nothing or its rules
leave the views asymmetric:

- A link is made by a question and an answer (NEIGHBOR and its reply), also at the end of a joining
  peer's walk; a peer adds another when it accepts it, or is accepted.
- A peer that is told something by a peer which is not in its active view answers DISCONNECT. So
  links of which one end knows nothing, after lost messages, end with the next shuffle along them.
- A peer with room in its active view asks peers of its passive one in every period, not only after
  a failure; each at most once a period.
- A peer that knows nobody joins again.
- A peer that leaves with notice says so in DISCONNECT, and is not kept for repairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vizpub.simulators.engine.network import HEADER_BYTES, Links, Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.membership import PEER_BYTES, Membership
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters


class _Question(NamedTuple):
    """An unanswered NEIGHBOR or JOIN."""

    is_urgent: bool
    """Whether it has the priority 'high': it is always accepted."""
    since_us: int


class _Shuffle(NamedTuple):
    origin: int
    entries: list[int]
    steps: int
    """Steps left to go, with the one that it is on."""


class PartialViews(Membership):
    """The active and passive views of all peers."""

    layers = ("active", "passive")

    def __init__(self, net: Network, parameters: HyParViewParameters) -> None:
        super().__init__(net)
        self.parameters = parameters
        self.active: list[list[int]] = [[] for _ in range(net.size)]
        self.passive: list[list[int]] = [[] for _ in range(net.size)]
        self._asked: list[dict[int, _Question]] = [{} for _ in range(net.size)]
        self._refused: list[set[int]] = [set() for _ in range(net.size)]
        """Peers that had no room when they were asked in this period."""
        self._is_told = parameters.failures == "at-once"
        self._entrance: int | None = None
        """The contact of all that join."""
        self._period_us = us(parameters.period)
        kind = net.kind
        self.joins = kind("join", self.on_join, failed=self.on_unanswered)
        self.forwards = kind("forward join", self.on_forward, failed=self.on_lost)
        self.questions = kind("neighbor", self.on_question, failed=self.on_unanswered)
        self.answers = kind("neighbor reply", self.on_answer, failed=self.on_lost)
        self.goodbyes = kind("disconnect", self.on_goodbye)
        self.shuffles = kind("shuffle", self.on_shuffle, failed=self.on_lost)
        self.replies = kind("shuffle reply", self.on_reply)
        net.every(self._period_us, self.on_tick)

    # Membership.

    def join(self, peer: int) -> None:
        """Ask the contact to be a neighbour and to make the peer known."""
        self.active[peer], self.passive[peer] = [], []
        self._asked[peer], self._refused[peer] = {}, set()
        self._enter(peer)

    def leave(self, peer: int) -> None:
        """Say goodbye to all neighbours."""
        for neighbour in self.active[peer]:
            self.net.send(self.goodbyes, peer, neighbour, False, HEADER_BYTES)

    def go_down(self, peer: int) -> None:
        """The next one to join finds another contact."""
        if peer == self._entrance:
            self._entrance = None

    def neighbours(self, peer: int) -> Sequence[int]:
        """The active view."""
        return self.active[peer]

    def on_failure(self, peer: int, other: int) -> None:
        """Replace the neighbour."""
        _discard(self.passive[peer], other)
        if other in self.active[peer]:
            self._remove(peer, other)
            self._fill(peer)

    def stranger(self, peer: int, sender: int) -> None:
        """Tell a peer that it is no neighbour, unless it is about to become one."""
        if sender not in self._asked[peer]:
            self.net.send(self.goodbyes, peer, sender, True, HEADER_BYTES)

    def links(self, peer: int) -> Iterable[Links]:
        """Both views."""
        yield Links("active", None, self.active[peer])
        yield Links("passive", None, self.passive[peer])

    # Joining.

    def _enter(self, peer: int) -> None:
        contact = self._entrance
        if contact is None or contact == peer or self.parameters.contact == "random":
            contact = self.net.contact(peer)
        if self._entrance is None:
            self._entrance = peer if contact is None else contact
        if contact is not None:
            self._ask(peer, contact, is_urgent=True, is_joining=True)

    def on_join(self, peer: int, sender: int, payload: None) -> None:
        """Make room for the new peer, and send it on walks from all other neighbours."""
        self._accept_neighbour(peer, sender)
        walk = (sender, self.parameters.join_walk)
        for neighbour in self.active[peer]:
            if neighbour != sender:
                self.net.send(self.forwards, peer, neighbour, walk, HEADER_BYTES + PEER_BYTES)

    def on_forward(self, peer: int, sender: int, walk: tuple[int, int]) -> None:
        """Become a neighbour of the new peer at the end of its walk; otherwise send it on."""
        new, steps = walk
        active = self.active[peer]
        onward = self._one_of(active, sender, new) if steps and len(active) > 1 else -1
        if onward >= 0:
            if steps == self.parameters.passive_walk:
                self._keep(peer, new)
            size = HEADER_BYTES + PEER_BYTES
            self.net.send(self.forwards, peer, onward, (new, steps - 1), size)
        elif new != peer and new not in active and new not in self._asked[peer]:
            self._ask(peer, new, is_urgent=True)

    # The active view.

    def _ask(self, peer: int, candidate: int, *, is_urgent: bool, is_joining: bool = False) -> None:
        self._asked[peer][candidate] = _Question(is_urgent, self.net.now)
        if is_joining:
            self.net.send(self.joins, peer, candidate, None, HEADER_BYTES)
        else:
            self.net.send(self.questions, peer, candidate, is_urgent, HEADER_BYTES)
        if self._is_told:
            self.net.watch(peer, candidate, self.on_unreachable)

    def on_question(self, peer: int, sender: int, is_urgent: bool) -> None:
        """Accept another peer if it has no other neighbour, or if there is room."""
        active = self.active[peer]
        if is_urgent or sender in active or len(active) < self.parameters.active:
            self._accept_neighbour(peer, sender)
        else:
            self.net.send(self.answers, peer, sender, False, HEADER_BYTES)

    def _accept_neighbour(self, peer: int, neighbour: int) -> None:
        self._add(peer, neighbour)
        self.net.send(self.answers, peer, neighbour, True, HEADER_BYTES)

    def on_answer(self, peer: int, sender: int, is_accepted: bool) -> None:
        """Add a peer that accepts, or ask another one."""
        question = self._asked[peer].pop(sender, None)
        active = self.active[peer]
        if not is_accepted:
            self._refused[peer].add(sender)
            if sender not in active:
                self.net.unwatch(peer, sender)
        elif sender not in active:
            if question and (question.is_urgent or len(active) < self.parameters.active):
                self._add(peer, sender)
            else:
                self.net.unwatch(peer, sender)
                self.net.send(self.goodbyes, peer, sender, True, HEADER_BYTES)
        self._fill(peer)

    def _add(self, peer: int, neighbour: int) -> None:
        """Add a neighbour, in the place of a random one if there is no room."""
        self._asked[peer].pop(neighbour, None)
        active = self.active[peer]
        if neighbour in active:
            return
        if len(active) >= self.parameters.active:
            dropped = self._one_of(active)
            self._remove(peer, dropped)
            self._keep(peer, dropped)
            self.net.send(self.goodbyes, peer, dropped, True, HEADER_BYTES)
        _discard(self.passive[peer], neighbour)
        active.append(neighbour)
        if self._is_told:
            self.net.watch(peer, neighbour, self.on_unreachable)
        for notify in self.on_neighbour:
            notify(peer, neighbour)

    def _remove(self, peer: int, neighbour: int) -> None:
        self.active[peer].remove(neighbour)
        if self._is_told:
            self.net.unwatch(peer, neighbour)

    def _fill(self, peer: int) -> None:
        """Ask a random peer of the passive view, if there is room and no answer is awaited."""
        active = self.active[peer]
        if len(active) >= self.parameters.active or self._asked[peer]:
            return
        refused = self._refused[peer]
        if able := [candidate for candidate in self.passive[peer] if candidate not in refused]:
            self._ask(peer, self._one_of(able), is_urgent=not active)

    def on_goodbye(self, peer: int, sender: int, stays_up: bool) -> None:
        """A neighbour has removed the peer, to make room or because it leaves."""
        if not stays_up:
            self.on_failure(peer, sender)
        elif sender in self.active[peer]:
            self._remove(peer, sender)
            self._keep(peer, sender)
            if not self.active[peer]:
                self._fill(peer)

    def on_unanswered(self, peer: int, to: int, payload: bool | None) -> None:
        """A peer that was asked cannot be reached."""
        if self._asked[peer].pop(to, None):
            self.on_failure(peer, to)
            self._fill(peer)

    def on_unreachable(self, peer: int, other: int) -> None:
        """A connection is broken or was refused."""
        self._asked[peer].pop(other, None)
        self.on_failure(peer, other)
        self._fill(peer)

    def on_lost(self, peer: int, to: int, payload: object) -> None:
        """A neighbour did not acknowledge a message."""
        self.on_failure(peer, to)

    # The passive view.

    def on_tick(self, peer: int) -> None:
        """Open a shuffle, and look for neighbours if there is room."""
        overdue = self.net.now - self._period_us
        pending = self._asked[peer]
        for other in [other for other, (_, since_us) in pending.items() if since_us < overdue]:
            del pending[other]
        self._refused[peer].clear()
        active, passive = self.active[peer], self.passive[peer]
        if not active and not passive:
            if not pending:
                self._enter(peer)
            return
        self._fill(peer)
        if active:
            target = self._one_of(active)
            others = [other for other in active if other != target]
            entries = [
                peer,
                *self._sample(others, self.parameters.shuffle_active),
                *self._sample(passive, self.parameters.shuffle_passive),
            ]
            self._pass_on(peer, target, _Shuffle(peer, entries, self.parameters.shuffle_walk))

    def _pass_on(self, peer: int, to: int, shuffle: _Shuffle) -> None:
        size = HEADER_BYTES + PEER_BYTES * len(shuffle.entries)
        self.net.send(self.shuffles, peer, to, shuffle, size)

    def on_shuffle(self, peer: int, sender: int, shuffle: _Shuffle) -> None:
        """Send the shuffle on, or answer it where its walk ends."""
        active = self.active[peer]
        if sender not in active:
            self.stranger(peer, sender)
        origin, entries, steps = shuffle
        steps -= 1  # on arrival, unlike the steps of a joining peer's walk
        onward = self._one_of(active, sender, origin) if steps > 0 and len(active) > 1 else -1
        if onward >= 0:
            self._pass_on(peer, onward, _Shuffle(origin, entries, steps))
        elif origin != peer:
            passive = self.passive[peer]
            answer = self._sample(passive, len(entries))
            size = HEADER_BYTES + PEER_BYTES * len(answer)
            self.net.send(self.replies, peer, origin, (answer, entries), size)
            self._integrate(peer, entries, answer)

    def on_reply(self, peer: int, sender: int, payload: tuple[list[int], list[int]]) -> None:
        """Close a shuffle. The opener's entries are passed back only to save their storage."""
        received, sent = payload
        self._integrate(peer, received, sent)

    def _integrate(self, peer: int, received: Iterable[int], sent: Iterable[int]) -> None:
        """Keep what is received, in the place of what was sent if there is no room."""
        passive, sent_first = self.passive[peer], iter(sent)
        for entry in received:
            if entry == peer or entry in passive or entry in self.active[peer]:
                continue
            if len(passive) >= self.parameters.passive:
                replaced = next((one for one in sent_first if one in passive), -1)
                passive.remove(self._one_of(passive) if replaced < 0 else replaced)
            passive.append(entry)

    def _keep(self, peer: int, dropped: int) -> None:
        self._integrate(peer, (dropped,), ())

    # Draws.

    def _one_of(self, peers: Sequence[int], one: int = -1, other: int = -1) -> int:
        """A random one of the peers, but neither of those two; -1 if there is none."""
        if one >= 0:
            peers = [peer for peer in peers if peer not in (one, other)]
        return peers[int(self.net.random.random() * len(peers))] if peers else -1

    def _sample(self, peers: list[int], most: int) -> list[int]:
        """Move at most that many random ones to the front of the list; returns them."""
        draw, size = self.net.random.random, len(peers)
        for place in range(min(most, size)):
            chosen = place + int(draw() * (size - place))
            peers[place], peers[chosen] = peers[chosen], peers[place]
        return peers[:most]


def _discard(peers: list[int], peer: int) -> None:
    if peer in peers:
        peers.remove(peer)
