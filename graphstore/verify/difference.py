"""What the tables of a run and its copy differ in, from a boundary on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vizpub.graphstore.load.batches import CLOCK, Batch, Rows
from vizpub.graphstore.load.reading import Reading
from vizpub.graphstore.load.steps import NodeStep
from vizpub.model.tables import table

Nodes = dict[str, dict[str, Any]]
"""Properties of nodes by their keys; null = it has none of that name."""

_OF_MESSAGES = ("publications", "metrics/messages", "receptions", "missed")


@dataclass(frozen=True)
class Difference:
    """Relationships that a copy lacks, and that it has too much."""

    missing: Rows
    surplus: list[tuple[str, list[Any]]]
    """Each with its id in Neo4j."""

    @property
    def ids(self) -> list[str]:
        """Those of the surplus."""
        return [id for id, _ in self.surplus]

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.missing or self.surplus)


def difference(expected: Iterable[Any], held: Iterable[Sequence[Any]]) -> Difference:
    """Between rows, as often as they come, and what is there: (id, row)."""
    wanted = Counter(map(tuple, expected))
    surplus = []
    for id, row in held:
        key = tuple(row)
        if wanted[key] > 0:
            wanted[key] -= 1
        else:
            surplus.append((id, list(row)))
    return Difference([list(row) for row in wanted.elements()], surplus)


def expected_nodes(steps: Sequence[NodeStep], tables: Reading, least: int = 0) -> Nodes:
    """What the steps of one label make of the rows of `least` or a later one."""
    found: Nodes = {}
    for step in steps:
        column = "interval" if step.table == CLOCK else table(step.table).key[0]
        for rows in tables.rows_from(step.table, column, least):
            add_nodes(found, step, rows)
    return found


def add_nodes(nodes: Nodes, step: NodeStep, rows: Batch) -> None:
    """What a step makes of rows; of a step that creates nothing it goes to nodes that are there."""
    for row in step.rows(rows):
        nodes.setdefault(row["key"], {}).update(row)


def changed_nodes(expected: Nodes, held: Mapping[str, Mapping[str, Any]]) -> Rows:
    """Those that are there with other properties. 1 is neither 1.0 nor true."""
    there = expected.keys() & held.keys()
    return [
        expected[key]
        for key in expected
        if key in there and _told(expected[key]) != _told(held[key])
    ]


def _told(properties: Mapping[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in properties.items() if value is not None))


class Messages:
    """All rows of messages from one on, by message."""

    def __init__(self, tables: Reading, least: int) -> None:
        """Reads them."""
        self._rows = {name: _by_message(tables, name, least) for name in _OF_MESSAGES}

    def of(self, name: str, low: int, high: int) -> Batch:
        """The rows of messages `low` to `high` - 1 of a table."""
        rows = self._rows[name]
        first, end = np.searchsorted(rows["message"].to_numpy(), (low, high))
        return rows.slice(first, end - first)

    def chunks(self, low: int, high: int, limit: int) -> Iterator[tuple[int, int]]:
        """Messages `low` to `high` - 1 in stretches (first, after last) of at most `limit` rows, or
        one message.
        """
        sizes = np.ones(max(high - low, 0), np.int64)
        for rows in self._rows.values():
            sizes += np.bincount(rows["message"].to_numpy() - low, minlength=len(sizes))
        ends = np.cumsum(sizes)
        at = 0
        while at < len(sizes):
            before = ends[at] - sizes[at]
            after = max(int(np.searchsorted(ends, before + limit, side="right")), at + 1)
            yield low + at, low + after
            at = after


def _by_message(tables: Reading, name: str, least: int) -> Batch:
    schema = table(name).arrow
    rows = pa.Table.from_batches(tables.rows_from(name, "message", least), schema)
    batches = rows.sort_by("message").combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
