"""Differences between the tables of a run and its copy, from a boundary on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vizpub.graphstore.load.batches import CLOCK, Batch, Rows
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.steps import NodeStep
from vizpub.model.tables import table

Nodes = dict[str, dict[str, Any]]
"""Properties of nodes by their keys; None = no such property."""

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


def expected_nodes(steps: Sequence[NodeStep], tables: TableReader, least: int = 0) -> Nodes:
    """Return the nodes that the steps of one label make of rows from `least` on."""
    nodes: Nodes = {}
    for step in steps:
        column = "interval" if step.table == CLOCK else table(step.table).key[0]
        for rows in tables.rows_from(step.table, column, least):
            add_nodes(nodes, step, rows)
    return nodes


def add_nodes(nodes: Nodes, step: NodeStep, rows: Batch) -> None:
    """Add the nodes, or properties of nodes, that a step makes of rows."""
    for row in step.rows(rows):
        nodes.setdefault(row["key"], {}).update(row)


def changed_nodes(expected: Nodes, held: Mapping[str, Mapping[str, Any]]) -> Rows:
    """Return the nodes that the copy has with other properties. 1 is neither 1.0 nor true."""
    common = expected.keys() & held.keys()
    return [
        expected[key]
        for key in expected
        if key in common and _comparable(expected[key]) != _comparable(held[key])
    ]


def _comparable(properties: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in properties.items() if value is not None))


class RowsByMessage:
    """All rows of messages from one on, by message."""

    def __init__(self, tables: TableReader, least: int) -> None:
        """Read the rows."""
        self._rows = {name: _by_message(tables, name, least) for name in _OF_MESSAGES}

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


def _by_message(tables: TableReader, name: str, least: int) -> Batch:
    schema = table(name).arrow
    rows = pa.Table.from_batches(tables.rows_from(name, "message", least), schema)
    batches = rows.sort_by("message").combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
