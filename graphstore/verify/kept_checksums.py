"""The checksums that a copy keeps on its Run node, of its tables when it was loaded or grew.

They are computed from the tables alone, part by part. A growth reads the new parts only; the sums
of all others stay. So a comparison with the copy need not read all tables again, and the checksums
belong to the generation that the copy holds, whatever was appended since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from vizpub.graphstore.load.batches import CLOCK, Batch, PartedTables
from vizpub.graphstore.load.partitions import Partitions
from vizpub.graphstore.load.reading import TableReader
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
"""Tables that are always summed in full: they are small, and a peer's node has its first and last
interval, which its row has not."""


PartSums = dict[str, Sums]
"""The sums of a part of a table, by statement."""


class KeptChecksums(msgspec.Struct, frozen=True):
    """The checksums of a copy."""

    partitions: tuple[int, int]
    """Intervals of a time partition, and the number of partitions."""
    layers: dict[str, int]
    """The numbers of layers in the checksums."""
    roles: dict[str, int]
    names: dict[str, list[str]]
    """The properties in the checksums of nodes, by statement."""
    labels: dict[str, Sums]
    """The sums of the peers of each label, except Peer."""
    summary: dict[str, Any]
    """Further properties of the Run node."""
    tables: dict[str, dict[str, PartSums]]
    """The parts of each table, by name."""

    @property
    def text(self) -> str:
        """The text on the Run node; equal checksums have equal texts."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> KeptChecksums | None:
        """Read the checksums of a Run node; None if there are none to read."""
        try:
            return msgspec.json.decode(properties.get("checksums") or "", type=cls)
        except (msgspec.DecodeError, TypeError):
            return None

    def total(self, statement: str) -> Sums:
        """Return the sums of all parts together."""
        parts = self.tables[_table(statement)].values()
        return total(statement, [part[statement] for part in parts])


def _table(statement: str) -> str:
    return CHECKED.get(statement) or NODES[statement]


def add_nodes(checksums: Checksums, step: NodeStep, rows: Batch, part: str = "") -> Batch:
    """Add the nodes that a step makes of rows of a part, and return them."""
    key = "interval" if step.table == CLOCK else table_of(step.table).key[0]
    nodes = step.shape(rows)
    checksums.add_nodes(step.statement, rows[key], nodes, part)
    return nodes


def checksums_to_keep(
    reading: TableReader,
    checksums: Iterable[Checksums],
    partitions: Partitions,
    labels: Mapping[str, Collection[int]],
    summary: Mapping[str, Any],
) -> KeptChecksums | None:
    """Return the checksums to keep, from those of some tables each; None if parts have no names."""
    if (parted := reading.parted_tables) is None:
        return None
    sums, tables = [*checksums], dict[str, dict[str, PartSums]]()
    for name in _TABLES:
        tables[name] = {
            part: {of: _part_sums(sums, of, part) for of in _statements(name)}
            for part in ([""] if name in WHOLE else parted.parts(name))
        }
    return KeptChecksums(
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


def _part_sums(checksums: Iterable[Checksums], statement: str, part: str) -> Sums:
    """Return the sums of a part, or of all parts without a name."""
    sums = [of.of_part(statement, part) if part else of.of(statement) for of in checksums]
    return total(statement, sums)


def sum_grown_tables(
    earlier: KeptChecksums | None, tables: TableReader, run: str, partitions: Partitions
) -> Checksums:
    """Return the checksums of a run's tables; those of `earlier` parts are not computed again."""
    checksums = Checksums(partitions)
    parted = tables.parted_tables
    if parted is None:
        return checksums
    if earlier:
        checksums.names.update(earlier.names)
    summing = _Summing(tables, parted, checksums, node_steps(tables.run_rows(run, partitions)))
    same = earlier and earlier.partitions == (partitions.intervals, partitions.count)
    for name in _TABLES:
        # Open periods have a copy in a new partition, too: links must be summed again.
        usable = earlier and (same or name not in _COPIED)
        summing.add(name, earlier.tables.get(name, {}) if earlier and usable else {})
    return checksums


@dataclass(frozen=True)
class _Summing:
    """Adds up the sums of tables."""

    tables: TableReader
    parted: PartedTables
    checksums: Checksums
    steps: Sequence[NodeStep]

    def add(self, table: str, earlier: Mapping[str, PartSums]) -> None:
        """Add the sums of a table; those of earlier parts are reused."""
        if table in WHOLE:
            self._rows(table, (rows for _, rows in self.tables.row_groups(table)))
            return
        for part in self.parted.parts(table):
            if part not in earlier:
                self._rows(table, self.parted.part_rows(table, part), part)
            for statement, sums in earlier.get(part, {}).items():
                self.checksums.put(statement, part, sums)

    def _rows(self, table: str, batches: Iterable[Batch], part: str = "") -> None:
        for rows in batches:
            self.checksums.add(table, rows, part)
            for step in self.steps:
                if step.table == table:
                    add_nodes(self.checksums, step, rows, part)
