"""The rows of an export, read from Neo4j."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from vizpub import cypher
from vizpub.graphstore.ask import bulk_reads, parameters
from vizpub.graphstore.gexf.rows import MessageRow
from vizpub.graphstore.rows import ArrivalRow, LinkRow, PeerRow, PresenceRow, SubscriptionRow
from vizpub.graphstore.runs import LoadedRun
from vizpub.model.run import RunFacts


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
        return [(row.peer, row.name) for row in self._peers]

    @cached_property
    def topics(self) -> Sequence[tuple[int, str]]:
        """(id, name) of every topic."""
        return list(bulk_reads.topics(self.run))

    @cached_property
    def _peers(self) -> Sequence[PeerRow]:
        return list(bulk_reads.peers(self.run))

    def presence(self, first_tick: int, last_tick: int) -> Iterable[PresenceRow]:
        """The presence of all peers."""
        return bulk_reads.presence(self.run, first_tick, last_tick)

    def subscriptions(self, first_tick: int, last_tick: int) -> Iterable[SubscriptionRow]:
        """The subscriptions of all peers."""
        return bulk_reads.subscriptions(self.run, first_tick, last_tick)

    def links(
        self, first_tick: int, last_tick: int, layers: Sequence[str] | None
    ) -> Iterable[LinkRow]:
        """The links, streamed."""
        return bulk_reads.links(self.run, first_tick, last_tick, layers=layers)

    def roles(self, topic: int | None) -> Iterator[tuple[int, str]]:
        """The roles of peers, for a topic or any."""
        rendezvous = [row.peer for row in self._peers if "Rendezvous" in row.labels]
        if topic is not None:
            roots = [f"{self.facts.name}/{peer}" for peer in rendezvous]
            yield from bulk_reads.topic_roles(self.run, topic, roots)
            return
        yield from ((row.peer, "publisher") for row in self._peers if "Publisher" in row.labels)
        yield from ((peer, "relay") for peer in bulk_reads.relays(self.run))
        yield from ((peer, "rendezvous") for peer in rendezvous)

    def message(self, name: str) -> MessageRow:
        """A message by its name or a short form. Raises: UnknownName, AmbiguousName."""
        key = parameters.values(cypher.statement("read", "message"), {"message": name}, self.run)
        ((message, full, _topic, publisher, time_us, tick),) = self.run.rows(
            "read", "message", **key
        )
        return MessageRow(message, full, publisher, time_us, tick)

    def arrivals(self, message: int) -> list[ArrivalRow]:
        """The receptions of a message."""
        return list(bulk_reads.dissemination(self.run, message))

    def missed_peers(self, message: int) -> Collection[int]:
        """The peers that a message should have reached and never did."""
        return bulk_reads.missed_peers(self.run, message)
