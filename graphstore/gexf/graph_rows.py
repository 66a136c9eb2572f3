"""The rows of an export, read from Neo4j."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vizpub import cypher
from vizpub.graphstore.ask import parameters
from vizpub.graphstore.gexf.rows import (
    ArrivalRow,
    AttributeRow,
    LinkRow,
    MessageRow,
    PresenceRow,
    SubscriptionRow,
)
from vizpub.graphstore.runs import LoadedRun
from vizpub.model.run import RunFacts

_PEERS_PER_CHUNK = 100
"""Peers whose data one row of an answer holds. 20,000 links take five times as long as 20,000 rows
as in one row, and a whole run in one row is more than a transaction may use."""


@dataclass(frozen=True)
class GraphRows:
    """Rows for an export, from Neo4j. All may also raise Neo4jUnavailable and Neo4jAnswer."""

    run: LoadedRun

    @property
    def facts(self) -> RunFacts:
        """The facts of the run."""
        return self.run.facts

    @property
    def layers(self) -> Sequence[str]:
        """The layers of its links."""
        return self.run.layers

    @property
    def peers(self) -> Sequence[tuple[int, str]]:
        """(id, name) of every peer."""
        return [(peer, name) for peer, name, _ in self._peers]

    @cached_property
    def topics(self) -> Sequence[tuple[int, str]]:
        """(id, name) of every topic."""
        return [(topic, name) for topic, name in self.run.rows("read", "topics")]

    @cached_property
    def _peers(self) -> Sequence[tuple[int, str, list[str]]]:
        """(id, name, labels) of every peer."""
        return [(peer, name, labels) for peer, name, labels in self._chunks("peers")]

    def presence(self, first_tick: int, last_tick: int) -> Iterable[PresenceRow]:
        """The presence of all peers."""
        rows = self._chunks("presence", first_tick=first_tick, last_tick=last_tick)
        return (PresenceRow(*row) for row in rows)

    def subscriptions(self, first_tick: int, last_tick: int) -> Iterable[SubscriptionRow]:
        """The subscriptions of all peers."""
        rows = self._chunks("subscriptions", first_tick=first_tick, last_tick=last_tick)
        return (SubscriptionRow(*row) for row in rows)

    def attributes(self, first_tick: int, last_tick: int) -> Iterable[AttributeRow]:
        """The attributes of all peers."""
        rows = self._chunks("attributes", first_tick=first_tick, last_tick=last_tick)
        return (AttributeRow(*row) for row in rows)

    def links(
        self, first_tick: int, last_tick: int, layers: Sequence[str] | None
    ) -> Iterable[LinkRow]:
        """The links, streamed."""
        chosen = None if layers is None else list(layers)
        rows = self._chunks("links", first_tick=first_tick, last_tick=last_tick, layers=chosen)
        return (LinkRow(*row) for row in rows)

    def roles(self, topic: int | None) -> Iterator[tuple[int, str]]:
        """The roles of peers, for a topic or any."""
        peers = {
            label: [peer for peer, _, labels in self._peers if label in labels]
            for label in ("Publisher", "Rendezvous")
        }
        if topic is not None:
            roots = [f"{self.facts.name}/{peer}" for peer in peers["Rendezvous"]]
            rows = self.run.rows("read", "topic-roles", topic=topic, roots=roots)
            yield from ((peer, role) for peer, role in rows)
            return
        yield from ((peer, "publisher") for peer in peers["Publisher"])
        yield from ((peer, "relay") for (peer,) in self.run.rows("read", "relays"))
        yield from ((peer, "rendezvous") for peer in peers["Rendezvous"])

    def message(self, name: str) -> MessageRow:
        """A message by its name or a short form. Raises: UnknownName, AmbiguousName."""
        key = parameters.values(cypher.statement("read", "message"), {"message": name}, self.run)
        ((message, full, _topic, publisher, time_us, tick),) = self.run.rows(
            "read", "message", **key
        )
        return MessageRow(message, full, publisher, time_us, tick)

    def arrivals(self, message: int) -> list[ArrivalRow]:
        """The receptions of a message."""
        rows = self.run.rows("read", "dissemination", message=message)
        return [ArrivalRow(*row) for row in rows]

    def missed_peers(self, message: int) -> Collection[int]:
        """The peers that a message should have reached and never did."""
        return {peer for (peer,) in self.run.rows("read", "missed", message=message)}

    def _chunks(self, statement: str, **parameters: Any) -> Iterator[list[Any]]:
        for low in range(0, self.run.peers, _PEERS_PER_CHUNK):
            high = min(low + _PEERS_PER_CHUNK, self.run.peers) - 1
            for (chunk,) in self.run.rows("read", statement, low=low, high=high, **parameters):
                yield from chunk
