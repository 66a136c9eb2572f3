"""The rows of an export, read from the tables of a run: the same as from Neo4j, without it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.graphstore.gexf.rows import (
    ArrivalRow,
    AttributeRow,
    LinkRow,
    MessageRow,
    PresenceRow,
    SubscriptionRow,
)
from vizpub.model.naming import place_of
from vizpub.model.run import RunFacts

_Row = TypeVar("_Row")


class ReadableTables(Protocol):
    """The tables of a run."""

    @property
    def facts(self) -> RunFacts:
        """The facts of the run."""

    def read(
        self, name: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """Columns and rows of a table, sorted by its key; no rows if the run has no such table."""


@dataclass(frozen=True)
class TableRows:
    """An implementation of `ExportRows` on tables, whose errors it may raise.

    Links are held in Arrow.
    """

    tables: ReadableTables

    @property
    def facts(self) -> RunFacts:
        """The facts of the run."""
        return self.tables.facts

    @cached_property
    def layers(self) -> Sequence[str]:
        """The layers of its links."""
        return sorted(pc.unique(self.tables.read("links", ["layer"])["layer"]).to_pylist())

    @cached_property
    def peers(self) -> Sequence[tuple[int, str]]:
        """(id, name) of every peer."""
        return list(self._rows(_pair, "peers", ["peer", "name"]))

    @cached_property
    def topics(self) -> Sequence[tuple[int, str]]:
        """(id, name) of every topic."""
        return list(self._rows(_pair, "topics", ["topic", "name"]))

    def presence(self, first_tick: int, last_tick: int) -> Iterable[PresenceRow]:
        """The presence of all peers."""
        within = _within(first_tick, last_tick)
        return self._rows(PresenceRow, "presence", PresenceRow._fields, within)

    def subscriptions(self, first_tick: int, last_tick: int) -> Iterable[SubscriptionRow]:
        """The subscriptions of all peers."""
        within = _within(first_tick, last_tick)
        return self._rows(SubscriptionRow, "subscriptions", SubscriptionRow._fields, within)

    def attributes(self, first_tick: int, last_tick: int) -> Iterable[AttributeRow]:
        """The attributes of all peers."""
        within = _within(first_tick, last_tick)
        return self._rows(AttributeRow, "attributes", AttributeRow._fields, within)

    def links(
        self, first_tick: int, last_tick: int, layers: Sequence[str] | None
    ) -> Iterable[LinkRow]:
        """The links of the given layers, null = of any."""
        chosen = _within(first_tick, last_tick)
        if layers is not None:
            chosen &= pc.field("layer").isin(pa.array(layers, pa.string()))
        return self._rows(LinkRow, "links", LinkRow._fields, chosen)

    def roles(self, topic: int | None) -> Iterator[tuple[int, str]]:
        """The roles of peers, for a topic or any."""
        published, unsubscribed = None, ~pc.field("subscribed")
        if topic is not None:
            published = pc.field("topic") == topic
            of_it = self.tables.read("publications", ["message"], published)["message"]
            unsubscribed &= pc.field("message").isin(of_it.combine_chunks())
        publishers = self.tables.read("publications", ["publisher"], published)["publisher"]
        relays = self.tables.read("receptions", ["peer"], unsubscribed)["peer"]
        yield from ((peer, "publisher") for peer in _values(publishers))
        yield from ((peer, "relay") for peer in _values(relays))
        yield from ((peer, "rendezvous") for peer in self._rendezvous(topic))

    def _rendezvous(self, topic: int | None) -> set[int]:
        """Return the reported rendezvous, and roots of trees for a topic or if none is reported.

        A root of a topic's tree has children in the layer `tree`, and never a parent.
        """
        roles = self.tables.read("roles", ["peer", "topic"], pc.field("role") == "rendezvous")
        reported = _values(roles["peer"])
        columns, in_tree = ["topic", "src", "dst"], pc.field("layer") == "tree"
        rows = self.tables.read("links", columns, in_tree).to_pylist()
        roots = {(row["topic"], row["dst"]) for row in rows}
        roots -= {(row["topic"], row["src"]) for row in rows}
        candidates = reported or {peer for _, peer in roots}
        if topic is None:
            return candidates
        of_topic = _values(roles.filter(pc.field("topic") == topic)["peer"])
        return of_topic | {peer for of, peer in roots if of == topic and peer in candidates}

    def message(self, name: str) -> MessageRow:
        """A message by its name or a short form. Raises: UnknownName, AmbiguousName."""
        names = self.tables.read("publications", ["message", "name"])["name"].to_pylist()
        see = f"vizpub metrics {self.facts.name} messages"
        message = place_of("message", name, names, see)
        of_it = pc.field("message") == message
        (row,) = self._rows(MessageRow, "publications", MessageRow._fields, of_it)
        return row

    def arrivals(self, message: int) -> list[ArrivalRow]:
        """The receptions of a message, by hop, time and peer."""
        order = ("hop", "time_us", "peer", "previous_hop")
        receptions = self.tables.read(
            "receptions", ArrivalRow._fields, pc.field("message") == message
        ).sort_by([(column, "ascending") for column in order])
        return [ArrivalRow(**row) for row in receptions.to_pylist()]

    def missed_peers(self, message: int) -> Collection[int]:
        """The peers that a message should have reached and never did."""
        return _values(self.tables.read("missed", ["peer"], pc.field("message") == message)["peer"])

    def _rows(
        self,
        row: Callable[..., _Row],
        table: str,
        columns: Sequence[str],
        where: pc.Expression | None = None,
    ) -> Iterator[_Row]:
        """Convert a table to Python rows, a batch at a time."""
        for batch in self.tables.read(table, columns, where).to_batches(max_chunksize=10_000):
            yield from map(row, *(column.to_pylist() for column in batch.columns))


def _pair(number: int, name: str) -> tuple[int, str]:
    return number, name


def _within(first_tick: int, last_tick: int) -> pc.Expression:
    return (pc.field("valid_from") <= last_tick) & (pc.field("valid_to") > first_tick)


def _values(column: pa.ChunkedArray) -> set[int]:
    return set(column.to_pylist()) - {None}
