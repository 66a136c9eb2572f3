"""The checksums that a copy keeps on its Run node: what its tables said when it was loaded or grew.

They are made from the tables alone, part by part. A growth reads the parts that are new; of all
other parts the sums stay. So they need not be made from the whole tables again to compare the copy
with them, and they stand for the generation that the copy holds, whatever was appended since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from vizpub.graphstore.load.batches import CLOCK, Batch, Parted
from vizpub.graphstore.load.partitions import Partitions
from vizpub.graphstore.load.reading import Reading
from vizpub.graphstore.load.steps import NodeStep, node_steps
from vizpub.graphstore.verify.checksums import (
    CHECKED,
    NODES,
    Checksums,
    Sums,
    checksums_of_ids,
    number,
    total,
)
from vizpub.model.tables import table as table_of

_TABLES = tuple(dict.fromkeys((*NODES.values(), *CHECKED.values())))
_COPIED = ("links", "subscriptions")
WHOLE = ("peers", "topics", "roles", CLOCK)
"""Tables that are summed whole each time: they are small, and a peer's node says when it was first
and last there, which no row of the peer does."""


PartSums = dict[str, Sums]
"""Of a part of a table, by statement."""


class Kept(msgspec.Struct, frozen=True):
    """The checksums of a copy."""

    partitions: tuple[int, int]
    """Intervals of a time partition, and how many there are."""
    layers: dict[str, int]
    """Their numbers, which checksums hold."""
    roles: dict[str, int]
    names: dict[str, list[str]]
    """Of the properties that the checksums of nodes are about, by statement."""
    labels: dict[str, Sums]
    """Of the peers of each label but their own."""
    summary: dict[str, Any]
    """Further properties of the Run node."""
    tables: dict[str, dict[str, PartSums]]
    """The parts of each table, by name."""

    @property
    def text(self) -> str:
        """As the Run node has them; equal checksums have equal texts."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Kept | None:
        """Those on a Run node; null where there are none that can be read."""
        try:
            return msgspec.json.decode(properties.get("checksums") or "", type=cls)
        except (msgspec.DecodeError, TypeError):
            return None

    def total(self, statement: str) -> Sums:
        """Of all parts together."""
        parts = self.tables[_table(statement)].values()
        return total(statement, [part[statement] for part in parts])


def _table(statement: str) -> str:
    return CHECKED.get(statement) or NODES[statement]


def add_nodes(checksums: Checksums, step: NodeStep, rows: Batch, part: str = "") -> Batch:
    """Add what a step makes of rows of a part, and return it."""
    key = "interval" if step.table == CLOCK else table_of(step.table).key[0]
    nodes = step.shape(rows)
    checksums.add_nodes(step.statement, rows[key], nodes, part)
    return nodes


def kept(
    reading: Reading,
    checksums: Iterable[Checksums],
    partitions: Partitions,
    labels: Mapping[str, Collection[int]],
    summary: Mapping[str, Any],
) -> Kept | None:
    """What to keep of checksums, each of some tables; null where the parts have no names."""
    if (parted := reading.parted) is None:
        return None
    sums, tables = [*checksums], dict[str, dict[str, PartSums]]()
    for name in _TABLES:
        tables[name] = {
            part: {of: _sum(sums, of, part) for of in _statements(name)}
            for part in ([""] if name in WHOLE else parted.parts(name))
        }
    return Kept(
        (partitions.intervals, partitions.count),
        {layer: number(layer) for layer in summary["link_layers"]},
        {word: of for one in sums for word, of in one.roles.items()},
        {name: names for one in sums for name, names in one.names.items() if one.of(name)[0]},
        {label: checksums_of_ids(ids) for label, ids in labels.items() if ids},
        dict(summary),
        tables,
    )


def _statements(table: str) -> list[str]:
    return [name for name in (*NODES, *CHECKED) if _table(name) == table]


def _sum(checksums: Iterable[Checksums], statement: str, part: str) -> Sums:
    """Of a part, or with no name of all."""
    found = [of.of_part(statement, part) if part else of.of(statement) for of in checksums]
    return total(statement, found)


def grown(before: Kept | None, tables: Reading, run: str, partitions: Partitions) -> Checksums:
    """The checksums of a run's tables, where those `before` were made of some of their parts."""
    found = Checksums(partitions)
    parted = tables.parted
    if parted is None:
        return found
    if before:
        found.names.update(before.names)
    summing = _Summing(tables, parted, found, node_steps(tables.run_rows(run, partitions)))
    same = before and before.partitions == (partitions.intervals, partitions.count)
    for name in _TABLES:
        # What is open has a copy in a new partition, too.
        usable = before and (same or name not in _COPIED)
        summing.add(name, before.tables.get(name, {}) if before and usable else {})
    return found


@dataclass(frozen=True)
class _Summing:
    """Sums of tables are added up."""

    tables: Reading
    parted: Parted
    checksums: Checksums
    steps: Sequence[NodeStep]

    def add(self, table: str, before: Mapping[str, PartSums]) -> None:
        """Those of a table of which some parts were summed before."""
        if table in WHOLE:
            self._rows(table, (rows for _, rows in self.tables.row_groups(table)))
            return
        for part in self.parted.parts(table):
            if part not in before:
                self._rows(table, self.parted.part_rows(table, part), part)
            for statement, sums in before.get(part, {}).items():
                self.checksums.put(statement, part, sums)

    def _rows(self, table: str, batches: Iterable[Batch], part: str = "") -> None:
        for rows in batches:
            self.checksums.add(table, rows, part)
            for step in self.steps:
                if step.table == table:
                    add_nodes(self.checksums, step, rows, part)
