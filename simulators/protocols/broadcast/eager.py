"""Broadcasts that send whole publications at once: flood, fan-out and probabilistic gossip."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from vizpub.simulators.engine.network import Copy, Links, Network, Publication
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.broadcast.parameters import (
    BroadcastModel,
    FanoutModel,
    GossipModel,
)


class Broadcast(ABC):
    """How publications spread among the peers of a membership."""

    def __init__(self, net: Network, membership: Membership, held: FirstCopies) -> None:
        self.net, self.membership, self.held = net, membership, held
        self.copies = net.kind("gossip", self.on_copy, failed=self.on_lost, publication=True)

    def join(self, peer: int) -> None:  # noqa: B027
        """The peer is up from now on, with an empty state."""

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        copy = Copy(publication, 0)
        self.held.add(peer, copy)
        self.spread(peer, peer, copy)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Send a new publication on."""
        self.check(peer, sender)
        if self.held.add(peer, copy):
            self.spread(peer, sender, copy)

    def on_lost(self, peer: int, to: int, payload: object) -> None:
        """A neighbour did not acknowledge a message."""
        self.membership.on_failure(peer, to)

    def check(self, peer: int, sender: int) -> None:
        """Tell the membership if a sender is no neighbour."""
        if self.membership.is_symmetric and sender not in self.membership.neighbours(peer):
            self.membership.stranger(peer, sender)

    @abstractmethod
    def spread(self, peer: int, sender: int, copy: Copy) -> None:
        """Send the first copy that a peer got on; `sender` is the peer itself if it published."""

    def links(self, peer: int) -> Iterable[Links]:
        """Links that the broadcast distinguishes."""
        return ()


class Eager(Broadcast):
    """A broadcast without announcements."""

    def __init__(
        self, net: Network, membership: Membership, held: FirstCopies, model: BroadcastModel
    ) -> None:
        super().__init__(net, membership, held)
        self.model = model

    def spread(self, peer: int, sender: int, copy: Copy) -> None:
        """See Broadcast.spread."""
        others = [other for other in self.membership.neighbours(peer) if other != sender]
        self.net.forward(self.copies, peer, self._chosen(others, copy), copy)

    def _chosen(self, others: list[int], copy: Copy) -> Sequence[int]:
        random = self.net.random
        match self.model:
            case FanoutModel(fanout=fanout) if len(others) > fanout:
                return random.sample(others, fanout)
            case GossipModel(probability=probability) if copy.hops:
                return [other for other in others if random.random() < probability]
        return others
