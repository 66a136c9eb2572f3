"""Rows of a run, as exports read them: peers and topics are dense indexes, times are ticks."""

from __future__ import annotations

from typing import NamedTuple


class PeerRow(NamedTuple):
    """A peer; `labels` may hold Publisher, Rendezvous, Hub and a class of degree."""

    peer: int
    name: str
    reports: bool
    labels: list[str]


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
