"""A run's tables as a load and its verification read them: each column twice at most.

What the rows of a table mean together (the census) is read first, and once; then rows are read
to be written, or compared. Topics are kept, as all links need their names.
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
    Parted,
    RunRows,
    Tables,
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
_TAKEN = ("presence", "subscriptions", "roles", "links", "receptions", "missed")
_SPANS = ("presence", "subscriptions", "links")
_UNCHECKED = (*_SPANS, "roles")
"""The tables that a census reads only to check the copy are left out."""


def rows_since(batches: Iterable[tuple[str, Batch]], column: str, least: int) -> Iterator[Batch]:
    """The rows among these batches whose `column` is `least` or more."""
    for _, batch in batches:
        rows = batch.filter(pc.greater_equal(batch[column], least))
        if len(rows):
            yield rows


class Census:
    """What the rows of a run say together."""

    def __init__(
        self, tables: Tables, clock: Clock, partitions: Partitions, *, checked: bool = True
    ) -> None:
        """Reads the tables; if not `checked`, fewer, and without checksums.

        Raises: what reading them raises.
        """
        self.clock, self.partitions = clock, partitions
        self.checksums = Checksums(partitions)
        """Those of all tables but publications, whose rows are compared one by one."""
        self.sampled: dict[int, tuple[int, int]] = {}
        """First and last sampled interval of a peer; absent where it was never sampled."""
        self.levels: set[int] = set()
        """Of closed periods."""
        self.layers: set[str] = set()
        """Of links."""
        self._told: set[int] = set()
        self._children: set[tuple[int | None, int]] = set()
        self._parents: set[tuple[int | None, int]] = set()
        self._links: list[Batch] = []
        self._peers = tables.rows("peers")
        for table in _TAKEN if checked else _UNCHECKED:
            for label, rows in tables.row_groups(table):
                if checked:
                    self.checksums.add(table, rows, part_of(label))
                if table in _SPANS:
                    self.levels.update(closed_levels(rows))
                if table == "presence":
                    self._live(rows)
                elif table == "roles":
                    self._play(rows)
                elif table == "links":
                    self._link(rows)

    @cached_property
    def degrees(self) -> Ints:
        """Of each peer by its dense index, summed over the run's intervals."""
        return summed_degrees(self._links, self._peers, self.clock)

    @property
    def rendezvous(self) -> list[int]:
        """The peers in the role of a rendezvous, else the roots of the topics' trees.

        A root is linked to by its children in the layer `tree` and never links to a parent there.
        """
        return sorted(self._told or {peer for _, peer in self._parents - self._children})

    @property
    def labels(self) -> dict[str, list[int]]:
        """The peers of each label that no relationship implies; one without peers is left out."""
        labels = {
            "Rendezvous": self.rendezvous,
            "Hub": hub_peers(self.degrees),
            **degree_classes(self.degrees, self.clock.intervals),
        }
        return {label: peers for label, peers in labels.items() if peers}

    def _live(self, rows: Batch) -> None:
        spans = sampled_spans(
            rows["valid_from"].to_numpy(), rows["valid_to"].to_numpy(), self.clock
        )
        first_and_last = (ints.tolist() for ints in spans)
        for peer, first, last in zip(rows["peer"].to_pylist(), *first_and_last, strict=True):
            if first <= last:
                low, high = self.sampled.get(peer, (first, last))
                self.sampled[peer] = (min(low, first), max(high, last))

    def _play(self, rows: Batch) -> None:
        players = rows["peer"].filter(pc.equal(rows["role"], "rendezvous"))
        self._told.update(players.to_pylist())

    def _link(self, rows: Batch) -> None:
        self.layers.update(pc.unique(rows["layer"]).to_pylist())
        self._links.append(rows.select(["src", "dst", "valid_from", "valid_to"]))
        tree = rows.filter(pc.equal(rows["layer"], "tree"))
        topics = tree["topic"].to_pylist()
        self._children.update(zip(topics, tree["src"].to_pylist(), strict=True))
        self._parents.update(zip(topics, tree["dst"].to_pylist(), strict=True))


class Reading:
    """The tables of a run, and the census of them; its intervals are one more table, CLOCK."""

    def __init__(self, tables: Tables, clock: Clock, *, checked: bool = True) -> None:
        """Reads nothing yet; the census has checksums if `checked`."""
        self._tables, self.clock, self._checked = tables, clock, checked
        self._census: Census | None = None

    @classmethod
    def of(cls, tables: Tables, clock: Clock) -> Reading:
        """The same again of what is a Reading, with what was read already."""
        return tables if isinstance(tables, Reading) else cls(tables, clock)

    @property
    def unchecked(self) -> Reading:
        """Of the same tables, without checksums."""
        return Reading(self._tables, self.clock, checked=False)

    @property
    def parted(self) -> Parted | None:
        """The tables, if their parts have names."""
        return self._tables if isinstance(self._tables, Parted) else None

    def row_groups(self, name: str) -> Iterable[tuple[str, Batch]]:
        """As Tables."""
        if name == CLOCK:
            intervals = range(self.clock.first, self.clock.last + 1)
            return [("all", pa.record_batch({"interval": pa.array(intervals, pa.int32())}))]
        return self._topics if name == "topics" else self._tables.row_groups(name)

    def rows_from(self, name: str, column: str, least: int) -> Iterable[Batch]:
        """As Tables."""
        if name in (CLOCK, "topics"):
            return rows_since(self.row_groups(name), column, least)
        return self._tables.rows_from(name, column, least)

    def rows(self, name: str) -> int:
        """As Tables."""
        return self.clock.intervals if name == CLOCK else self._tables.rows(name)

    def census(self, partitions: Partitions) -> Census:
        """Taken once for the same partitions."""
        if self._census is None or self._census.partitions != partitions:
            self._census = Census(self._tables, self.clock, partitions, checked=self._checked)
        return self._census

    def run_rows(self, run: str, partitions: Partitions) -> RunRows:
        """What the rows of the run need."""
        return RunRows(
            run, self.clock, self.topic_names, self.census(partitions).sampled, partitions
        )

    @cached_property
    def topic_names(self) -> tuple[str, ...]:
        """Names of topics by their dense index."""
        names: dict[int, str] = {}
        for _, batch in self._topics:
            names.update(zip(batch["topic"].to_pylist(), batch["name"].to_pylist(), strict=True))
        return tuple(names[id] for id in range(len(names)))

    def boundary_since(self, tables: str) -> Boundary | None:
        """As Tables."""
        return self._tables.boundary_since(tables)

    def is_current(self) -> bool:
        """As Tables."""
        return self._tables.is_current()

    def counts(self) -> dict[str, int]:
        """Numbers of peers, topics, messages, links and receptions."""
        return {name: self.rows(table) for name, table in _COUNTED.items()}

    def summary(self, census: Census) -> dict[str, Any]:
        """Counts of the run, the layers of its links, and the levels of its closed periods."""
        return {
            **self.counts(),
            "link_layers": sorted(census.layers),
            "levels": sorted(census.levels),
        }

    @cached_property
    def _topics(self) -> list[tuple[str, Batch]]:
        return list(self._tables.row_groups("topics"))
