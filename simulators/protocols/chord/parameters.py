"""Chord's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive

LookupMode = Literal["iterative", "recursive"]


@dataclass(frozen=True)
class ChordParameters:
    """Parameters of Chord. An interval of 1 s stands for the 30 s of Chord's own evaluation."""

    bits: Annotated[
        int, Meta(ge=3, le=256, description="Bits of an id: of SHA-1 up to 160, else of SHA-256.")
    ] = 160
    successors: Annotated[Positive, Meta(description="Peers in a successor list.")] = 8
    stabilize_period: Annotated[
        Duration, Meta(description="A peer asks its successor for its predecessor once per period.")
    ] = "1s"
    fingers_period: Annotated[
        Duration, Meta(description="A peer looks up one of its fingers once per period.")
    ] = "1s"
    predecessor_period: Annotated[
        Duration, Meta(description="A peer checks its predecessor once per period.")
    ] = "1s"
    merge_period: Annotated[
        Duration, Meta(description="A peer looks for its place again once per period.")
    ] = "30s"
    retries: Annotated[
        Count, Meta(description="Unanswered checks after the first until a peer counts as dead.")
    ] = 1
    carry_fingers: Annotated[
        bool, Meta(description="Predecessor replies carry fingers, which fill missing ones.")
    ] = False
    lookup: Annotated[
        LookupMode,
        Meta(description="Who asks the next hop: the one who looks up, or the hop before."),
    ] = "recursive"
    lookup_period: Annotated[
        Duration | None, Meta(description="A peer looks up a random key once per period.")
    ] = None
    keys: Annotated[Count, Meta(description="Random keys; each peer reports how many it owns.")] = 0
    lookup_timeout: Annotated[
        Duration, Meta(description="Time after which a lookup without an answer has failed.")
    ] = "5s"
    join_timeout: Annotated[
        Duration, Meta(description="Time after which an unanswered join is repeated.")
    ] = "1s"
    join_attempts: Annotated[
        Positive, Meta(description="Unanswered joins until a peer starts a ring of its own.")
    ] = 15
