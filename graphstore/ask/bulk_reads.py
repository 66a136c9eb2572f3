"""Bulk reads of a loaded run, chunk by chunk: what an export is made of.

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
"""One row of the answer holds what belongs to so many peers: 20,000 links as rows take
five times as long as in one row, and a whole run in one row is more than a transaction may use."""


def peers(run: LoadedRun) -> Iterator[PeerRow]:
    """Every peer of the run."""
    return (PeerRow(*row) for row in _chunks(run, "peers"))


def topics(run: LoadedRun) -> Iterator[tuple[int, str]]:
    """Every topic of the run: (topic, name)."""
    return ((topic, name) for topic, name in run.rows("read", "topics"))


def presence(run: LoadedRun, first_tick: int, last_tick: int) -> Iterator[PresenceRow]:
    """The presence periods of all peers."""
    window = {"first_tick": first_tick, "last_tick": last_tick}
    return (PresenceRow(*row) for row in _chunks(run, "presence", **window))


def subscriptions(run: LoadedRun, first_tick: int, last_tick: int) -> Iterator[SubscriptionRow]:
    """The subscriptions of all peers."""
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
    """The links of all peers, of the given layers and topic (null = of any)."""
    chosen = {
        "first_tick": first_tick,
        "last_tick": last_tick,
        "layers": None if layers is None else list(layers),
        "topic": topic,
    }
    return (LinkRow(*row) for row in _chunks(run, "links", **chosen))


def relays(run: LoadedRun) -> frozenset[int]:
    """The peers that received a message of a topic they did not subscribe to then."""
    return frozenset(row[0] for row in run.rows("read", "relays"))


def topic_roles(run: LoadedRun, topic: int, roots: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(peer, role): publishers, relays and rendezvous of a topic; a peer may have several.

    `roots` are the keys of peers that are rendezvous of some topic.
    """
    found = run.rows("read", "topic-roles", topic=topic, roots=list(roots))
    return ((peer, role) for peer, role in found)


def dissemination(run: LoadedRun, message: int) -> Iterator[ArrivalRow]:
    """The receptions of a message (its dense index), by hop, time and peer."""
    return (ArrivalRow(*row) for row in run.rows("read", "dissemination", message=message))


def missed(run: LoadedRun, message: int) -> set[int]:
    """The peers that a message (its dense index) should have reached and never did."""
    return {peer for (peer,) in run.rows("read", "missed", message=message)}


def _chunks(run: LoadedRun, statement: str, **parameters: Any) -> Iterator[list[Any]]:
    for low in range(0, run.peers, _PEERS_PER_CHUNK):
        high = min(low + _PEERS_PER_CHUNK, run.peers) - 1
        for (chunk,) in run.rows("read", statement, low=low, high=high, **parameters):
            yield from chunk
