"""Bulk reads of a loaded run, chunk by chunk, for exports.

Peers and topics are dense indexes, times are ticks. A validity period is read when it holds
somewhere from `first_tick` to `last_tick`, both inclusive; it is not cut to them. Rows
come by ascending peer (links: by source, then destination).

All of them raise Neo4jUnavailable and Neo4jAnswer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vizpub.graphstore.rows import ArrivalRow, LinkRow, PeerRow, PresenceRow, SubscriptionRow
from vizpub.graphstore.runs import LoadedRun

_PEERS_PER_CHUNK = 100
"""Peers whose data one row of an answer holds. 20,000 links take five times as long as 20,000 rows
as in one row, and a whole run in one row is more than a transaction may use."""


def peers(run: LoadedRun) -> Iterator[PeerRow]:
    """Read all peers of the run."""
    return (PeerRow(*row) for row in _chunks(run, "peers"))


def topics(run: LoadedRun) -> Iterator[tuple[int, str]]:
    """Read all topics of the run, as (topic, name)."""
    return ((topic, name) for topic, name in run.rows("read", "topics"))


def presence(run: LoadedRun, first_tick: int, last_tick: int) -> Iterator[PresenceRow]:
    """Read the presence periods of all peers."""
    window = {"first_tick": first_tick, "last_tick": last_tick}
    return (PresenceRow(*row) for row in _chunks(run, "presence", **window))


def subscriptions(run: LoadedRun, first_tick: int, last_tick: int) -> Iterator[SubscriptionRow]:
    """Read the subscriptions of all peers."""
    window = {"first_tick": first_tick, "last_tick": last_tick}
    return (SubscriptionRow(*row) for row in _chunks(run, "subscriptions", **window))


def links(
    run: LoadedRun,
    first_tick: int,
    last_tick: int,
    *,
    layers: Sequence[str] | None = None,
    topic: int | None = None,
) -> Iterator[LinkRow]:
    """Read the links of all peers in some layers and of a topic (None = any)."""
    parameters = {
        "first_tick": first_tick,
        "last_tick": last_tick,
        "layers": None if layers is None else list(layers),
        "topic": topic,
    }
    return (LinkRow(*row) for row in _chunks(run, "links", **parameters))


def relays(run: LoadedRun) -> frozenset[int]:
    """Return the peers that received a message of a topic without subscribing to it."""
    return frozenset(row[0] for row in run.rows("read", "relays"))


def topic_roles(run: LoadedRun, topic: int, roots: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Read the publishers, relays and rendezvous of a topic, as (peer, role).

    A peer may have several roles.

    `roots` are the keys of peers that are rendezvous of some topic.
    """
    rows = run.rows("read", "topic-roles", topic=topic, roots=list(roots))
    return ((peer, role) for peer, role in rows)


def dissemination(run: LoadedRun, message: int) -> Iterator[ArrivalRow]:
    """Read the receptions of a message (its dense index), ordered by hop, time and peer."""
    return (ArrivalRow(*row) for row in run.rows("read", "dissemination", message=message))


def missed_peers(run: LoadedRun, message: int) -> set[int]:
    """Return the eligible peers that a message (its dense index) never reached."""
    return {peer for (peer,) in run.rows("read", "missed", message=message)}


def _chunks(run: LoadedRun, statement: str, **parameters: Any) -> Iterator[list[Any]]:
    for low in range(0, run.peers, _PEERS_PER_CHUNK):
        high = min(low + _PEERS_PER_CHUNK, run.peers) - 1
        for (chunk,) in run.rows("read", statement, low=low, high=high, **parameters):
            yield from chunk
