"""The rows that an export reads, from Neo4j or from a run's tables.

Peers, topics and messages are dense indexes, times are ticks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from vizpub.model.run import RunFacts


class PresenceRow(NamedTuple):
    """A presence period of a peer."""

    peer: int
    valid_from: int
    valid_to: int


class SubscriptionRow(NamedTuple):
    """A validity period of a subscription."""

    peer: int
    topic: int
    valid_from: int
    valid_to: int


class AttributeRow(NamedTuple):
    """A validity period of the value of a peer's attribute."""

    peer: int
    key: str
    value: str
    valid_from: int
    valid_to: int


class LinkRow(NamedTuple):
    """A validity period of a link."""

    src: int
    dst: int
    layer: str
    topic: int | None
    valid_from: int
    valid_to: int


class ArrivalRow(NamedTuple):
    """A reception of a message; null is unknown."""

    previous_hop: int | None
    peer: int
    hop: int | None
    time_us: int | None
    first: bool
    subscribed: bool | None


class MessageRow(NamedTuple):
    """A message by its dense index; null is unknown."""

    message: int
    name: str
    publisher: int | None
    time_us: int | None
    tick: int
    """Of its publication, or of its first reception."""


class ExportRows(Protocol):
    """The rows of a run, by ascending peer (links: by source, then destination).

    A validity period is among them if it holds somewhere from `first_tick` to `last_tick`, both
    inclusive; it is not cut to them.
    """

    @property
    def facts(self) -> RunFacts:
        """The facts of the run."""

    @property
    def layers(self) -> Sequence[str]:
        """The layers of its links."""

    @property
    def peers(self) -> Sequence[tuple[int, str]]:
        """(id, name) of every peer."""

    @property
    def topics(self) -> Sequence[tuple[int, str]]:
        """(id, name) of every topic."""

    def presence(self, first_tick: int, last_tick: int) -> Iterable[PresenceRow]:
        """The presence of all peers."""

    def subscriptions(self, first_tick: int, last_tick: int) -> Iterable[SubscriptionRow]:
        """The subscriptions of all peers."""

    def attributes(self, first_tick: int, last_tick: int) -> Iterable[AttributeRow]:
        """The attributes of all peers."""

    def links(
        self, first_tick: int, last_tick: int, layers: Sequence[str] | None
    ) -> Iterable[LinkRow]:
        """The links of the given layers, null = of any."""

    def roles(self, topic: int | None) -> Iterable[tuple[int, str]]:
        """(peer, role): publishers, relays and rendezvous of a topic, null = of any."""

    def message(self, name: str) -> MessageRow:
        """A message by its name or a short form. Raises: UnknownName, AmbiguousName."""

    def arrivals(self, message: int) -> list[ArrivalRow]:
        """The receptions of a message, by hop, time and peer."""

    def missed_peers(self, message: int) -> Collection[int]:
        """The peers that a message should have reached and never did."""
