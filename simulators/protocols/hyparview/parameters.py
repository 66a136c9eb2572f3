"""HyParView's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive
from vizpub.simulators.protocols.broadcast.parameters import BroadcastParameters


@dataclass(frozen=True)
class HyParViewParameters(BroadcastParameters):
    """Parameters of HyParView, and of the broadcast on it; defaults as in its paper's evaluation
    with 10,000 peers.
    """

    active: Annotated[
        Positive, Meta(description="Neighbours of a peer: the fanout and one more.")
    ] = 5
    passive: Annotated[Positive, Meta(description="Peers kept for repairs.")] = 30
    join_walk: Annotated[
        Count, Meta(description="ARWL: steps of a joining peer's random walks.")
    ] = 6
    passive_walk: Annotated[
        Count, Meta(description="PRWL: steps left when a passive view takes the joining peer.")
    ] = 3
    shuffle_walk: Annotated[Count, Meta(description="Steps of a shuffle's random walk.")] = 6
    shuffle_active: Annotated[
        Count, Meta(description="ka: peers of the active view in a shuffle.")
    ] = 3
    shuffle_passive: Annotated[
        Count, Meta(description="kp: peers of the passive view in a shuffle.")
    ] = 4
    period: Annotated[
        Duration, Meta(description="A peer shuffles, and looks for neighbours, once per period.")
    ] = "1s"
    failures: Annotated[
        Literal["at-once", "on-send"],
        Meta(
            description="When a failed neighbour is noticed: one latency later, as a broken "
            "connection, or when something sent to it is not acknowledged."
        ),
    ] = "at-once"
    contact: Annotated[
        Literal["one", "random"],
        Meta(description="Peers join through the same peer while it is up, or each through any."),
    ] = "one"
