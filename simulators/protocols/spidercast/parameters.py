"""SpiderCast's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from vizpub.simulators.engine.parameters import Count, Duration, Positive
from vizpub.simulators.protocols.spidercast.views import Expiry, View, ViewParameters


@dataclass(frozen=True)
class SpiderCastParameters(ViewParameters):
    """Parameters of SpiderCast, and of the membership service below it."""

    greedy: Annotated[
        Count, Meta(description="Neighbours for each topic, chosen to cover as many as they can.")
    ] = 3
    random: Annotated[Count, Meta(description="Neighbours for each topic, chosen at random.")] = 1
    view: View = 50
    expiry: Expiry = "20s"
    period: Annotated[
        Duration, Meta(description="Once a period a peer gossips, and changes its links.")
    ] = "1s"
    memory: Annotated[Duration, Meta(description="How long a message is remembered.")] = "1m"
    entries: Annotated[
        Positive, Meta(description="Subscribers to which a peer publishes without subscribing.")
    ] = 2
