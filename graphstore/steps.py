"""The steps of a load: which table's rows go through which statement, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from graphstore.batches import Columns, Rows, RunRows, Tables

ROWS_PER_BATCH = 10_000
"""Rows of one transaction: more is no faster and costs the server memory."""

CLOCK = "clock"
"""Not a table: the intervals of the run, counted from its clock."""


@dataclass(frozen=True)
class Step:
    """One table's rows through one statement of cypher/load."""

    table: str
    statement: str
    rows: Callable[[Columns], Rows]


def node_steps(rows: RunRows) -> tuple[Step, ...]:
    """The nodes, and what is added to them."""
    return (
        Step("peers", "peers", rows.peers),
        Step("topics", "topics", rows.topic_nodes),
        Step(CLOCK, "intervals", rows.intervals),
        Step("metrics/overlay", "interval-metrics", rows.interval_metrics),
        Step("publications", "messages", rows.messages),
        Step("metrics/messages", "message-metrics", rows.message_metrics),
    )


def relationship_steps(rows: RunRows) -> tuple[Step, ...]:
    """The relationships, after the nodes at their ends."""
    return (
        Step("presence", "presence", rows.presence),
        Step("subscriptions", "subscriptions", rows.subscriptions),
        Step("roles", "plays", rows.roles),
        Step("publications", "published", rows.published),
        Step("publications", "on", rows.on),
        Step("links", "links", rows.links),
        Step("receptions", "hops", rows.hops),
        Step("receptions", "reached", rows.reached),
    )


def with_clock(tables: Tables, rows: RunRows) -> Tables:
    """The tables, and the run's intervals as one more."""

    def read(name: str) -> Iterable[tuple[str, pa.RecordBatch]]:
        if name != CLOCK:
            return tables(name)
        intervals = range(rows.clock.first, rows.clock.last + 1)
        return [("all", pa.record_batch({"interval": pa.array(intervals, pa.int32())}))]

    return read


def parts(tables: Tables, table: str) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The batches of a table in parts of at most ROWS_PER_BATCH: (label|first row, part)."""
    for label, batch in tables(table):
        for start in range(0, batch.num_rows, ROWS_PER_BATCH):
            yield f"{label}|{start}", batch.slice(start, ROWS_PER_BATCH)
