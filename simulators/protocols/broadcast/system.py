"""A broadcast to all peers on a membership, as a system.

Publications of all topics go to all peers; those that do not subscribe to a topic only send them
on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vizpub.simulators.engine.network import Links, Network, Publication, System
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.eager import Broadcast, Eager
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.broadcast.membership import Membership
from vizpub.simulators.protocols.broadcast.parameters import BroadcastParameters, NoRecovery
from vizpub.simulators.protocols.broadcast.parameters import PlumtreeModel as PlumtreeParameters
from vizpub.simulators.protocols.broadcast.plumtree import Plumtree
from vizpub.simulators.protocols.broadcast.recovery import Recovery

TREE_LAYERS = ("eager", "lazy")
"""Layers of Plumtree, beside those of the membership."""


class BroadcastSystem(System):
    """A membership and a broadcast on it."""

    def __init__(
        self, net: Network, membership: Membership, parameters: BroadcastParameters
    ) -> None:
        self.net, self.membership = net, membership
        self.held = FirstCopies(net, us(parameters.memory))
        model = parameters.get_broadcast()
        self.broadcast: Broadcast
        if isinstance(model, PlumtreeParameters):
            self.broadcast = Plumtree(net, membership, self.held, model)
        else:
            self.broadcast = Eager(net, membership, self.held, model)
        bound = parameters.get_recovery()
        self.recovery = (
            None if isinstance(bound, NoRecovery) else Recovery(net, membership, self.held, bound)
        )

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self.held.clear(peer)
        self.broadcast.join(peer)
        if self.recovery:
            self.recovery.reset(peer)
        self.membership.join(peer)
        if self.recovery:
            self.recovery.want(peer, *topics)

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        if self.recovery:
            self.recovery.want(peer, topic)

    def leave(self, peer: int) -> None:
        """See System.leave."""
        self.membership.leave(peer)

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self.membership.go_down(peer)

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        self.broadcast.publish(peer, publication)

    def links(self, peer: int) -> Iterable[Links]:
        """The membership's views, and those links that the broadcast distinguishes."""
        yield from self.membership.links(peer)
        yield from self.broadcast.links(peer)
