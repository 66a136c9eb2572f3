"""Traffic of reports: their counters, and publication traffic derived from their events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingest.reports.fields import INT64

Counts = list[int | None]
"""Values of facts.COUNTERS; null = not reported."""


def counters(report: Any) -> Counts:
    """The values of COUNTERS."""
    more = report.duplicates, report.rpcs_sent, report.rpcs_received
    return [*_ways(report.control), *_ways(report.publication), *more]


def _ways(counters: Any) -> tuple[int | None, int | None, int | None, int | None]:
    if counters is None:
        return None, None, None, None
    sent, received = counters.sent or _NOTHING, counters.received or _NOTHING
    return sent.messages, received.messages, sent.bytes, received.bytes


class _NOTHING:
    """Counters without reported values."""

    messages = bytes = None


def of_events(report: Any) -> Counts:
    """Publication traffic from the events of a report; null where an event lacks a value."""
    messages = size = arrived = arrived_size = None
    if report.sent is not None:
        messages = _sum([None if c.to is None else len(c.to) for c in report.sent])
        size = _sum([None if None in (c.to, c.bytes) else c.bytes * len(c.to) for c in report.sent])
    if report.received is not None:
        arrived, arrived_size = len(report.received), _sum([c.bytes for c in report.received])
    return [messages, arrived, size, arrived_size]


def _sum(values: Sequence[int | None]) -> int | None:
    """Sums beyond 64 bits are unknown."""
    if not values:
        return 0
    if None in values:
        return None
    total = sum(values)  # type: ignore[arg-type]
    return total if total <= INT64 else None


_PUBLICATION = slice(4, 8)
"""The counters that can also be derived from events."""
_ARRIVED, _REPEATED = 5, 8
"""The counters of received publications and of duplicates."""
ARRIVALS, REPEATED = "arrivals", "repeated arrivals"
"""What a list may lack that is counted."""


def either(counted: Counts, events: Counts) -> Counts:
    """The counters, with missing ones derived from events: where these are complete. A list whose
    messages or bytes differ from those that are counted tells nothing of the other.
    """
    publication = counted[_PUBLICATION]
    if publication == [None] * 4:
        return [*counted[:4], *events, *counted[8:]]
    pairs = tuple(zip(publication, events, strict=True))
    agree = [None in pair or pair[0] == pair[1] for pair in pairs]
    # Messages and bytes of one way are two apart.
    known = [e if c is None and agree[n - 2] else c for n, (c, e) in enumerate(pairs)]
    return [*counted[:4], *known, *counted[8:]]


def unlisted(report: Any, counted: Counts) -> str | None:
    """What the list of a report's arrivals lacks by its counters: ARRIVALS, or REPEATED ones alone,
    as far as they tell; null where it lacks none.
    """
    listed, arrived, repeated = len(report.received), counted[_ARRIVED], counted[_REPEATED]
    if arrived is None or arrived == listed:
        return REPEATED if (repeated or 0) > listed else None
    is_told = arrived > listed if repeated is None else arrived == listed + repeated
    return REPEATED if is_told else ARRIVALS


def differ(counted: Counts, events: Counts) -> bool:
    """Whether the publication counters of a report differ from its events."""
    publication = counted[_PUBLICATION]
    if publication == [None] * 4:
        return False
    return any(
        None not in pair and pair[0] != pair[1] for pair in zip(publication, events, strict=True)
    )
