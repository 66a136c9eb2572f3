"""Reader of a run's tables for a load and its verification: each column is read twice at most.

The first pass, the census, collects facts about all rows together. The second reads rows to write
or compare them. Topics stay in memory, because all links need their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.graphstore.load.batches import (
    CLOCK,
    Batch,
    PartedTables,
    RunRows,
    RunTables,
    closed_levels,
    part_of,
    sampled_spans,
)
from vizpub.graphstore.load.degrees import Ints, degree_classes, hub_peers, summed_degrees
from vizpub.graphstore.load.partitions import Partitions
from vizpub.graphstore.verify.checksums import Checksums
from vizpub.model.clock import Clock
from vizpub.model.run import Boundary

_COUNTED = {
    "peers": "peers",
    "topics": "topics",
    "messages": "publications",
    "links": "links",
    "receptions": "receptions",
}
_SPANS = ("presence", "subscriptions", "links", "attributes")
_UNCHECKED = (*_SPANS, "roles")
"""The tables that a census reads if it does not check the copy."""
_CHECKED = (*_UNCHECKED, "receptions", "missed")


def rows_since(batches: Iterable[tuple[str, Batch]], column: str, least: int) -> Iterator[Batch]:
    """Yield the rows of these batches whose `column` is `least` or more."""
    for _, batch in batches:
        rows = batch.filter(pc.greater_equal(batch[column], least))
        if len(rows):
            yield rows


class Census:
    """Facts about all rows of a run together, from one pass over its tables."""

    def __init__(
        self, tables: RunTables, clock: Clock, partitions: Partitions, *, checked: bool = True
    ) -> None:
        """Read the tables; if not `checked`, fewer, and without checksums.

        Raises: what reading them raises.
        """
        self.clock, self.partitions = clock, partitions
        self.checksums = Checksums(partitions)
        """Checksums of all tables but publications, whose rows are compared one by one."""
        self.sampled: dict[int, tuple[int, int]] = {}
        """First and last sampled interval of each peer that was ever sampled."""
        self.levels: set[int] = set()
        """The values of `length_class` of closed periods."""
        self.layers: set[str] = set()
        """The layers of links."""
        self.roles: set[str] = set()
        self.attributes: set[str] = set()
        """The names of attributes."""
        self.letters: set[str] = set()
        """The letters of their values."""
        self._rendezvous: set[int] = set()
        self._children: set[tuple[int | None, int]] = set()
        self._parents: set[tuple[int | None, int]] = set()
        self._links: list[Batch] = []
        self._peers = tables.rows("peers")
        for table in _CHECKED if checked else _UNCHECKED:
            for label, rows in tables.row_groups(table):
                if checked:
                    self.checksums.add(table, rows, part_of(label))
                if table in _SPANS:
                    self.levels.update(closed_levels(rows))
                if table == "presence":
                    self._add_presence(rows)
                elif table == "roles":
                    self.roles.update(pc.unique(rows["role"]).to_pylist())
                    players = rows["peer"].filter(pc.equal(rows["role"], "rendezvous"))
                    self._rendezvous.update(players.to_pylist())
                elif table == "attributes":
                    self.attributes.update(pc.unique(rows["key"]).to_pylist())
                    self.letters.update(*pc.unique(rows["value"]).to_pylist())
                elif table == "links":
                    self._add_links(rows)

    @cached_property
    def degrees(self) -> Ints:
        """The degree of each peer, by its dense index, summed over the run's intervals."""
        return summed_degrees(self._links, self._peers, self.clock)

    @property
    def rendezvous(self) -> list[int]:
        """The peers in the role of a rendezvous, else the roots of the topics' trees.

        A root is linked to by its children in the layer `tree` and never links to a parent there.
        """
        return sorted(self._rendezvous or {peer for _, peer in self._parents - self._children})

    @property
    def labels(self) -> dict[str, list[int]]:
        """The peers of each label that no relationship implies; one without peers is left out."""
        labels = {
            "Rendezvous": self.rendezvous,
            "Hub": hub_peers(self.degrees),
            **degree_classes(self.degrees, self.clock.intervals),
        }
        return {label: peers for label, peers in labels.items() if peers}

    def _add_presence(self, rows: Batch) -> None:
        spans = sampled_spans(
            rows["valid_from"].to_numpy(), rows["valid_to"].to_numpy(), self.clock
        )
        first_and_last = (ints.tolist() for ints in spans)
        for peer, first, last in zip(rows["peer"].to_pylist(), *first_and_last, strict=True):
            if first <= last:
                low, high = self.sampled.get(peer, (first, last))
                self.sampled[peer] = (min(low, first), max(high, last))

    def _add_links(self, rows: Batch) -> None:
        self.layers.update(pc.unique(rows["layer"]).to_pylist())
        self._links.append(rows.select(["src", "dst", "valid_from", "valid_to"]))
        tree = rows.filter(pc.equal(rows["layer"], "tree"))
        topics = tree["topic"].to_pylist()
        self._children.update(zip(topics, tree["src"].to_pylist(), strict=True))
        self._parents.update(zip(topics, tree["dst"].to_pylist(), strict=True))


class TableReader:
    """The tables of a run, and the census of them; its intervals are one more table, CLOCK."""

    def __init__(self, tables: RunTables, clock: Clock, *, checked: bool = True) -> None:
        """Prepare to read; the census has checksums if `checked`."""
        self._tables, self.clock, self._checked = tables, clock, checked
        self._census: Census | None = None

    @classmethod
    def of(cls, tables: RunTables, clock: Clock) -> TableReader:
        """Return a reader of the tables; a reader stays itself, with its census."""
        return tables if isinstance(tables, TableReader) else cls(tables, clock)

    @property
    def without_checksums(self) -> TableReader:
        """A reader of the same tables, without checksums."""
        return TableReader(self._tables, self.clock, checked=False)

    @property
    def parted_tables(self) -> PartedTables | None:
        """The tables, if their parts have names."""
        return self._tables if isinstance(self._tables, PartedTables) else None

    def row_groups(self, name: str) -> Iterable[tuple[str, Batch]]:
        """See RunTables.row_groups."""
        if name == CLOCK:
            intervals = range(self.clock.first, self.clock.last + 1)
            return [("all", pa.record_batch({"interval": pa.array(intervals, pa.int32())}))]
        return self._topics if name == "topics" else self._tables.row_groups(name)

    def rows_from(self, name: str, column: str, least: int) -> Iterable[Batch]:
        """See RunTables.rows_from."""
        if name in (CLOCK, "topics"):
            return rows_since(self.row_groups(name), column, least)
        return self._tables.rows_from(name, column, least)

    def rows(self, name: str) -> int:
        """See RunTables.rows."""
        return self.clock.intervals if name == CLOCK else self._tables.rows(name)

    def census(self, partitions: Partitions) -> Census:
        """Return the census; it is taken once for the same partitions."""
        if self._census is None or self._census.partitions != partitions:
            self._census = Census(self._tables, self.clock, partitions, checked=self._checked)
        return self._census

    def run_rows(self, run: str, partitions: Partitions) -> RunRows:
        """Return the converter of the run's rows."""
        return RunRows(
            run, self.clock, self.topic_names, self.census(partitions).sampled, partitions
        )

    @cached_property
    def topic_names(self) -> tuple[str, ...]:
        """The names of topics, by dense index."""
        names: dict[int, str] = {}
        for _, batch in self._topics:
            names.update(zip(batch["topic"].to_pylist(), batch["name"].to_pylist(), strict=True))
        return tuple(names[id] for id in range(len(names)))

    def boundary_since(self, tables: str) -> Boundary | None:
        """See RunTables.boundary_since."""
        return self._tables.boundary_since(tables)

    def is_current(self) -> bool:
        """See RunTables.is_current."""
        return self._tables.is_current()

    def counts(self) -> dict[str, int]:
        """Count peers, topics, messages, links and receptions."""
        return {name: self.rows(table) for name, table in _COUNTED.items()}

    def summary(self, census: Census) -> dict[str, Any]:
        """Return counts, the layers of links, and the levels of closed periods."""
        return {
            **self.counts(),
            "link_layers": sorted(census.layers),
            "levels": sorted(census.levels),
        }

    @cached_property
    def _topics(self) -> list[tuple[str, Batch]]:
        return list(self._tables.row_groups("topics"))
