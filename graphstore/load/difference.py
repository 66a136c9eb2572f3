"""Differences between the tables of a run and its copy, from a boundary on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vizpub.graphstore.load.batches import LINK, SUBSCRIBES, Batch, Rows
from vizpub.graphstore.load.partitions import Partitions
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.verify.verify import differences_of
from vizpub.model.tables import table

Nodes = dict[str, dict[str, Any]]
"""Properties of nodes by their keys; None = no such property."""

COPIES = {"links": (LINK, "link-copies"), "subscriptions": (SUBSCRIBES, "subscription-copies")}
"""Tables with copies: the type of the copies without the partition, and their statement."""
_OF_MESSAGES = ("publications", "metrics/messages", "receptions", "missed")


@dataclass(frozen=True)
class RelationshipDifference:
    """Relationships that a copy lacks, and surplus ones."""

    missing: Rows
    surplus: list[tuple[str, list[Any]]]
    """Each with its id in Neo4j."""

    @property
    def ids(self) -> list[str]:
        """The ids of the surplus in Neo4j."""
        return [id for id, _ in self.surplus]

    def __bool__(self) -> bool:
        """Return True if there is any difference."""
        return bool(self.missing or self.surplus)


def difference(expected: Iterable[Any], held: Iterable[Sequence[Any]]) -> RelationshipDifference:
    """Compare rows, as often as they occur, with those of the copy, as (id, row)."""
    wanted = Counter(map(tuple, expected))
    surplus = []
    for id, row in held:
        key = tuple(row)
        if wanted[key] > 0:
            wanted[key] -= 1
        else:
            surplus.append((id, list(row)))
    return RelationshipDifference([list(row) for row in wanted.elements()], surplus)


def add_nodes(nodes: Nodes, rows: Rows) -> None:
    """Add the nodes, or properties of nodes, of rows of a step."""
    for row in rows:
        nodes.setdefault(row["key"], {}).update(row)


def changed_nodes(expected: Nodes, held: Mapping[str, Mapping[str, Any]]) -> Rows:
    """Return the nodes that the copy has with other properties. 1 is neither 1.0 nor true."""
    return [
        node
        for key, node in expected.items()
        if key in held and any(differences_of("", key, node, held[key]))
    ]


def copy_rows(name: str, rows: Iterable[list[Any]], partitions: Partitions, among: range) -> Rows:
    """Return the copies of `rows`, one for each partition of `among` in which they are valid.

    The rows are those of a statement; only links and subscriptions have copies.
    """
    if name not in COPIES or not among:
        return []
    type, _ = COPIES[name]
    copies: Rows = []
    for row in rows:
        *_, valid_from, valid_to, _ = row
        first, last = partitions.at(valid_from), partitions.at(valid_to - 1)
        numbers = range(max(first, among.start), min(last + 1, among.stop))
        copies += [[*row[:2], f"{type}_P{number}", *row[2:]] for number in numbers]
    return copies


class RowsByMessage:
    """All rows of messages from one on, by message."""

    def __init__(self, tables: TableReader, least: int) -> None:
        """Read the rows."""
        self._rows = {}
        for name in _OF_MESSAGES:
            schema = table(name).arrow
            rows = pa.Table.from_batches(tables.rows_from(name, "message", least), schema)
            batches = rows.sort_by("message").combine_chunks().to_batches()
            self._rows[name] = batches[0] if batches else pa.RecordBatch.from_pylist([], schema)

    def of(self, name: str, low: int, high: int) -> Batch:
        """Return the rows of messages `low` to `high` - 1 of a table."""
        rows = self._rows[name]
        first, end = np.searchsorted(rows["message"].to_numpy(), (low, high))
        return rows.slice(first, end - first)

    def chunks(self, low: int, high: int, limit: int) -> Iterator[tuple[int, int]]:
        """Split messages `low` to `high` - 1 into stretches (first, after last).

        Each has at most `limit` rows, or one message.
        """
        sizes = np.ones(max(high - low, 0), np.int64)
        for rows in self._rows.values():
            sizes += np.bincount(rows["message"].to_numpy() - low, minlength=len(sizes))
        ends = np.cumsum(sizes)
        at = 0
        while at < len(sizes):
            rows_before = ends[at] - sizes[at]
            next_at = max(int(np.searchsorted(ends, rows_before + limit, side="right")), at + 1)
            yield low + at, low + next_at
            at = next_at
