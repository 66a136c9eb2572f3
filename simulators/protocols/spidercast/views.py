"""What each peer knows of the interests of others.

SpiderCast takes a membership service for given that provides partial views of interests. This is
NEWSCAST's rule (Jelasity, Kowalczyk, van Steen 2003): once a period, a peer and another one of its
view send each other some of the peers that they know and themselves; both keep the descriptions
that were made last. Descriptions expire, so that peers that are down do not come back by gossip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from msgspec import Meta

from vizpub.simulators.engine.network import HEADER_BYTES, MessageKind, Network
from vizpub.simulators.engine.parameters import Duration, Positive, us
from vizpub.simulators.protocols.broadcast.membership import PEER_BYTES


class Description(NamedTuple):
    """What a peer said of itself: id, address and port (14 bytes), age (4), topics (4 each)."""

    peer: int
    topics: frozenset[int]
    made_us: int

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return PEER_BYTES + 4 + 4 * len(self.topics)


View = Annotated[Positive, Meta(description="Peers whose interests a peer knows.")]
Expiry = Annotated[Duration, Meta(description="Age from which on descriptions count no more.")]


@dataclass(frozen=True)
class ViewParameters:
    """Parameters of the views."""

    view: View = 20
    gossip: Annotated[Positive, Meta(description="Peers that a message of gossip describes.")] = 10
    expiry: Expiry = "5s"


class InterestViews:
    """The views of all peers."""

    def __init__(self, net: Network, parameters: ViewParameters) -> None:
        self.net, self.capacity = net, parameters.view
        self.gossip, self.expiry_us = parameters.gossip, us(parameters.expiry)
        self.topics: list[frozenset[int]] = [frozenset()] * net.size
        """What each peer subscribes to."""
        self.of: list[dict[int, Description]] = [{} for _ in range(net.size)]
        self.request = net.kind("view request", self.on_request, failed=self.on_lost)
        self.reply = net.kind("view reply", self.on_reply)

    def describe(self, peer: int) -> Description:
        """The peer's description of itself."""
        return Description(peer, self.topics[peer], self.net.now)

    def exchange(self, peer: int) -> None:
        """Forget old descriptions, and send a random peer of the view, or of the bootstrap service,
        some of the others.
        """
        oldest = self.net.now - self.expiry_us
        view = {one.peer: one for one in self.of[peer].values() if one.made_us >= oldest}
        self.of[peer] = view
        to = self.net.random.choice([*view]) if view else self.net.contact(peer)
        if to is not None:
            self._send(self.request, peer, to)

    def _send(self, kind: MessageKind, peer: int, to: int) -> None:
        known = [one for one in self.of[peer].values() if one.peer != to]
        chosen = self.net.random.sample(known, min(self.gossip - 1, len(known)))
        message = (self.describe(peer), *chosen)
        self.net.send(kind, peer, to, message, HEADER_BYTES + sum(one.size for one in message))

    def on_request(self, peer: int, sender: int, message: tuple[Description, ...]) -> None:
        """Answer alike."""
        self._send(self.reply, peer, sender)
        self.merge(peer, message)

    def on_reply(self, peer: int, sender: int, message: tuple[Description, ...]) -> None:
        """Learn from it."""
        self.merge(peer, message)

    def on_lost(self, peer: int, to: int, message: object) -> None:
        """Forget a peer that does not answer."""
        self.of[peer].pop(to, None)

    def merge(self, peer: int, message: tuple[Description, ...]) -> None:
        """Keep the latest descriptions, of as many peers as the view has room for."""
        view = self.of[peer]
        for one in message:
            if one.peer != peer and (one.peer not in view or view[one.peer].made_us < one.made_us):
                view[one.peer] = one
        if (surplus := len(view) - self.capacity) > 0:
            for one in sorted(view.values(), key=lambda one: one.made_us)[:surplus]:
                del view[one.peer]
