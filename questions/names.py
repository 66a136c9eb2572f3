"""A stored run with the names of its peers, topics and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.clock import Clock
from vizpub.model.errors import UnknownName
from vizpub.model.naming import place_of
from vizpub.model.run import RunFacts
from vizpub.runstore.store import StoredRun

NAMED = {
    "peer": "peers",
    "src": "peers",
    "dst": "peers",
    "publisher": "peers",
    "previous_hop": "peers",
    "topic": "topics",
    "message": "publications",
}
"""Columns that hold a dense index, and the table with the names."""


@dataclass(frozen=True)
class Where:
    """A filter on rows of a metrics table: intervals `first` to `last`, one peer or topic."""

    first: int | None = None
    last: int | None = None
    peer: str | None = None
    topic: str | None = None


@dataclass(frozen=True, repr=False)
class NamedRun:
    """A stored run that maps dense indexes to names and back."""

    stored: StoredRun

    @property
    def facts(self) -> RunFacts:
        """The facts of the run."""
        return self.stored.facts

    @property
    def clock(self) -> Clock:
        """The clock of the run."""
        return self.facts.clock

    @property
    def peers(self) -> list[str]:
        """The names of the peers; the place in the list is the dense index."""
        return self._names("peers")

    @property
    def topics(self) -> list[str]:
        """The names of the topics, as `peers`."""
        return self._names("topics")

    def _names(self, name: str) -> list[str]:
        names: list[str] = self.stored.read(name)["name"].to_pylist()
        return names

    def peer_index(self, name: str) -> int:
        """The dense index of a peer, by its name or a short form (vizpub.model.naming).

        Raises: UnknownName, AmbiguousName.
        """
        return self._index("peer", name, self.peers)

    def topic_index(self, name: str) -> int:
        """The dense index of a topic, as `peer_index`."""
        return self._index("topic", name, self.topics)

    def message_index(self, name: str) -> int:
        """The dense index of a message, as `peer_index`."""
        return self._index("message", name, self._names("publications"))

    def _index(self, kind: str, name: str, names: Sequence[str]) -> int:
        return place_of(kind, name, names, f"vizpub sql {self.facts.name} 'FROM {NAMED[kind]}'")

    def checked_layers(self, layers: Sequence[str] | None) -> list[str] | None:
        """Return the layers (null = all), after a check that the run has links in each.

        Raises: UnknownName.
        """
        if layers is None:
            return None
        run_layers = sorted(pc.unique(self.stored.read("links", ["layer"])["layer"]).to_pylist())
        for layer in layers:
            if layer not in run_layers:
                raise UnknownName("layer", layer, run_layers)
        return list(layers)

    def counted_layers(self, layers: Sequence[str] | None) -> list[str] | None:
        """The layers, or those that the metrics count (null = all). Raises: as checked_layers."""
        if layers is None and self.facts.layers:
            return list(self.facts.layers)
        return self.checked_layers(layers)

    def tick_at(self, at: int | str) -> int:
        """The tick of an interval number or a time. Raises: OutOfRange, UseError."""
        return self.clock.parse_at(str(at), self.facts.epoch)

    def publication(self, message: int) -> dict[str, Any]:
        """The row of a message in `publications`, by its dense index."""
        rows = self.stored.read("publications", where=pc.field("message") == message)
        (row,) = rows.to_pylist()
        return dict(row)

    def with_names(self, rows: pa.Table) -> pa.Table:
        """Add `<column>_name` after each column that holds a dense index."""
        for column in rows.column_names:
            if column in NAMED:
                names = pa.array(self._names(NAMED[column]), pa.string())
                place = rows.column_names.index(column) + 1
                rows = rows.add_column(place, f"{column}_name", names.take(rows[column]))
        return rows


def window_of(run: NamedRun, where: Where) -> dict[str, int]:
    """The values of $first and $last."""
    first, last = where.first, where.last
    return {
        "first": run.clock.first if first is None else first,
        "last": run.clock.last if last is None else last,
    }


def part_of(run: NamedRun, where: Where) -> dict[str, int | None]:
    """The values of $peer and $topic, null = all. Raises: UnknownName, AmbiguousName."""
    return {
        "peer": None if where.peer is None else run.peer_index(where.peer),
        "topic": None if where.topic is None else run.topic_index(where.topic),
    }


def values_of(run: NamedRun, where: Where) -> dict[str, int | None]:
    """The values of $first, $last, $peer and $topic. Raises: as `part_of`."""
    return {**window_of(run, where), **part_of(run, where)}
