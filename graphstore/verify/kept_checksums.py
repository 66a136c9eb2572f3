"""The checksums that a copy keeps on its Run node, of its tables when it was loaded or grew.

They are computed from the tables alone, part by part. An incremental load reads the new parts only;
the sums of all others stay. So a comparison with the copy need not read all tables again, and the
checksums belong to the generation that the copy holds, whatever was appended since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from vizpub.graphstore.load.batches import Batch, RunRows
from vizpub.graphstore.load.reading import Census, TableReader
from vizpub.graphstore.load.steps import NODE_STEPS
from vizpub.graphstore.verify.checksums import (
    CHECKED,
    NODES,
    TABLES,
    WHOLE,
    Checksums,
    PartSums,
    Sums,
    add_up,
    checksums_of_ids,
    number,
)

_COPIED = ("links", "subscriptions")


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
    attributes: dict[str, int]
    """The numbers of the names of attributes."""
    letters: dict[str, int]
    """The codes of the letters of their values."""

    @property
    def text(self) -> str:
        """The text on the Run node; equal checksums have equal texts."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> KeptChecksums | None:
        """Read the checksums of a Run node; None if there are none to read."""
        try:
            return _DECODER.decode(properties.get("checksums") or "")
        except (msgspec.DecodeError, TypeError):
            return None

    def total(self, statement: str) -> Sums:
        """Return the sums of all parts together."""
        parts = self.tables[CHECKED.get(statement) or NODES[statement]].values()
        return add_up(statement, [part[statement] for part in parts])


_DECODER = msgspec.json.Decoder(KeptChecksums)


def checksums_to_keep(
    reading: TableReader,
    checksums: Checksums,
    census: Census,
    labels: Mapping[str, Collection[int]],
) -> KeptChecksums:
    """Return the checksums of a run's tables as its copy keeps them.

    `labels` has the peers of each label.
    """
    parted, tables = reading.parted_tables, dict[str, dict[str, PartSums]]()
    for name, parts in checksums.tables.items():
        part_names = [""] if name in WHOLE else parted.parts(name) if parted else [*parts]
        tables[name] = {part: checksums.part(name, part) for part in part_names}
    return KeptChecksums(
        (census.partitions.intervals, census.partitions.count),
        {layer: number(layer) for layer in census.layers},
        {role: number(role) for role in census.roles},
        {
            statement: names
            for statement, names in checksums.names.items()
            if any(part[statement][0] for part in tables[NODES[statement]].values())
        },
        {label: checksums_of_ids(ids) for label, ids in labels.items() if ids},
        reading.summary(census),
        tables,
        {name: number(name) for name in census.attributes},
        {letter: ord(letter) for letter in census.letters},
    )


def checksums_of_grown_tables(
    earlier: KeptChecksums | None,
    reading: TableReader,
    run: str,
    census: Census,
    labels: Mapping[str, Collection[int]],
) -> KeptChecksums | None:
    """Return the checksums of a run's tables; those of `earlier` parts are not computed again.

    None if the parts of the tables have no names.
    """
    if (parted := reading.parted_tables) is None:
        return None
    checksums, rows = Checksums(census.partitions), reading.run_rows(run, census.partitions)
    partitions = (census.partitions.intervals, census.partitions.count)
    for name in TABLES:
        if name in WHOLE:
            batches = (batch for _, batch in reading.row_groups(name))
            _add_rows(checksums, rows, name, batches, "")
            continue
        reused: Mapping[str, PartSums] = {}
        # Open periods have a copy in a new partition, too: links must be summed again.
        if earlier and (name not in _COPIED or earlier.partitions == partitions):
            reused = earlier.tables.get(name, {})
        for part in parted.parts(name):
            if part in reused:
                checksums.tables[name][part] = reused[part]
            else:
                _add_rows(checksums, rows, name, parted.part_rows(name, part), part)
    if earlier:
        checksums.names = {**earlier.names, **checksums.names}
    return checksums_to_keep(reading, checksums, census, labels)


def _add_rows(
    checksums: Checksums, rows: RunRows, table: str, batches: Iterable[Batch], part: str
) -> None:
    for batch in batches:
        checksums.add(table, batch, part)
        for step in NODE_STEPS:
            if step.table == table:
                checksums.add_nodes(step, batch, step.shape(rows, batch), part)
