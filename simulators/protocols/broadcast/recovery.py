"""Recovery: a peer that comes late to publications asks a neighbour for them.

A peer that comes up asks for those on its topics, and a peer that subscribes for those on that
topic: the first neighbour it has, and another one if that one still waits for its own, but only
some; so peers that all start at once do not wait for each other. Copies that are sent for this are
marked (`Copy.resent`), and go no further. How far back they go is a parameter. Messages and bytes:

| message | bytes |
| --- | --- |
| recover | header, 4 a topic, 8 for each publication that was sent again already |
| resend | a copy |
| recovered | header: all is sent; or ask another peer |
"""

from __future__ import annotations

from vizpub.simulators.engine.network import HEADER_BYTES, Copy, Network
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.broadcast.parameters import RecoveryBound

TOPIC_BYTES = 4
ID_BYTES = 8
_AGAIN_US = 1_000_000
"""Time until a peer asks another neighbour."""
_PATIENCE_US = 5_000_000
"""Time until an answer counts as lost."""
_ATTEMPTS = 3
"""Neighbours that a peer asks which are down or still wait themselves."""


class Recovery:
    """The recovery of all peers."""

    def __init__(
        self, net: Network, membership: Membership, held: FirstCopies, bound: RecoveryBound
    ) -> None:
        self.net, self.membership, self.held, self.bound = net, membership, held, bound
        self._wanted: list[dict[int, None]] = [{} for _ in range(net.size)]
        """Topics for which a peer has not been answered yet."""
        self._got: list[dict[int, None]] = [{} for _ in range(net.size)]
        """Publications that were sent to it again meanwhile."""
        self._left = [0] * net.size
        """How many more neighbours it asks."""
        self._asked = [-1] * net.size
        """The peer that is asked; -1: none."""
        self._asked_us = [0] * net.size
        self.questions = net.kind("recover", self.on_question, failed=self.on_lost)
        self.copies = net.kind("resend", self.on_copy, publication=True)
        self.answers = net.kind("recovered", self.on_answer)
        membership.on_neighbour.append(self.on_neighbour)

    def reset(self, peer: int) -> None:
        """The peer waits for nothing."""
        self._wanted[peer], self._got[peer], self._asked[peer] = {}, {}, -1

    def want(self, peer: int, *topics: int) -> None:
        """Ask for what was published on these topics."""
        self._wanted[peer].update(dict.fromkeys(topics))
        self._left[peer] = _ATTEMPTS
        self._ask(peer)

    def on_neighbour(self, peer: int, other: int) -> None:
        """The first neighbour is asked."""
        self._ask(peer)

    def _ask(self, peer: int) -> None:
        others = self.membership.neighbours(peer)
        if self._wanted[peer] and self._asked[peer] < 0 and others:
            self._asked[peer] = to = others[int(self.net.random.random() * len(others))]
            question = (tuple(self._wanted[peer]), frozenset(self._got[peer]))
            size = HEADER_BYTES + TOPIC_BYTES * len(question[0]) + ID_BYTES * len(question[1])
            self.net.send(self.questions, peer, to, question, size)
            self._asked_us[peer] = self.net.now
            self.net.after(_PATIENCE_US, peer, self.on_overdue, to, self.net.now)

    def on_overdue(self, peer: int, to: int, asked_us: int) -> None:
        """The answer was lost."""
        if self._asked_us[peer] == asked_us:
            self._give_up(peer, to)

    def _ask_again(self, peer: int) -> None:
        self._asked[peer] = -1
        if self._left[peer]:
            self._ask(peer)
        else:
            self.reset(peer)

    def on_question(
        self, peer: int, sender: int, question: tuple[tuple[int, ...], frozenset[int]]
    ) -> None:
        """Send what is held on these topics, but not what was sent already."""
        topics, got = question
        for copy in self.held.on_topics(peer, topics, self.bound):
            if copy.publication.message not in got:
                self.net.forward(self.copies, peer, (sender,), copy._replace(resent=True))
        is_whole = not self._wanted[peer]
        answer = topics if is_whole else ()
        self.net.send(self.answers, peer, sender, answer, HEADER_BYTES)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Hold a copy that goes no further."""
        self.held.add(peer, copy)
        if self._wanted[peer]:
            self._got[peer][copy.publication.message] = None

    def on_answer(self, peer: int, sender: int, topics: tuple[int, ...]) -> None:
        """All is sent for these topics; for none if the other still waits itself."""
        if self._asked[peer] != sender:
            return
        for topic in topics:
            self._wanted[peer].pop(topic, None)
        if not self._wanted[peer]:
            self.reset(peer)
        elif topics:
            self._ask_again(peer)
        else:
            self._left[peer] -= 1
            self.net.after(_AGAIN_US, peer, self._ask_again)

    def on_lost(self, peer: int, to: int, payload: object) -> None:
        """The asked peer is down."""
        self.membership.on_failure(peer, to)
        self._give_up(peer, to)

    def _give_up(self, peer: int, to: int) -> None:
        """Ask another neighbour."""
        if self._asked[peer] == to:
            self._left[peer] -= 1
            self._ask_again(peer)
