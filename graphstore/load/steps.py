"""The steps of a load, in order: the nodes and relationships that each table's rows become.

Each step can be done in two ways: its rows go through one statement of
cypher/load (vizpub.graphstore.load.transactions), or, if it creates something, into a file
(vizpub.graphstore.load.bulk).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa

from vizpub.graphstore.load.batches import CLOCK, Batch, Rows, RunRows, RunTables

ROWS_PER_BATCH = 10_000
"""Rows of one transaction: more is no faster and costs the server memory."""


@dataclass(frozen=True)
class NodeStep:
    """A table's rows as nodes, or as more properties of existing nodes."""

    table: str
    statement: str
    label: str
    shape: Callable[[Batch], Batch]
    """The table's rows as nodes: a column for each property."""
    id: str = "id"
    """The property with the dense index."""
    creates: bool = True

    @property
    def group(self) -> str:
        """The option of the administration tool for files with these rows."""
        return f"nodes={self.label}"

    def rows(self, batch: Batch) -> Rows:
        """Return the rows of the statement: maps of properties."""
        rows: Rows = self.shape(batch).to_pylist()
        return rows


@dataclass(frozen=True)
class RelationshipStep:
    """A table's rows as relationships."""

    table: str
    statement: str
    type: str
    """Their type; empty if each has its own, in a column `type` behind the ends."""
    shape: Callable[[Batch], Batch]
    """The table's rows as relationships: `start`, `end`, and a column for each property."""
    keys: Callable[[pa.Array], pa.Array]
    """The keys of nodes by their numbers."""
    named: tuple[str, ...] = ("start", "end")
    """The ends that are parameters of the statement; the run is one anyway."""
    has_run: bool = True
    """True if the run is a property of the relationship."""
    creates: ClassVar = True

    @property
    def group(self) -> str:
        """The option of the administration tool for files with these rows."""
        return f"relationships={self.type}" if self.type else "relationships"

    def rows(self, batch: Batch) -> Rows:
        """Return the rows of the statement: lists of the keys at the ends and the properties."""
        shaped = self.shape(batch)
        ends = [self.keys(shaped[name]) for name in self.named]
        columns = [column.to_pylist() for column in (*ends, *shaped.columns[2:])]
        return [list(row) for row in zip(*columns, strict=True)]


Step = NodeStep | RelationshipStep


def node_steps(rows: RunRows) -> tuple[NodeStep, ...]:
    """Return the steps that create nodes or add to them."""
    return (
        NodeStep("peers", "peers", "Peer", rows.peers),
        NodeStep("topics", "topics", "Topic", rows.topic_nodes),
        NodeStep(CLOCK, "intervals", "Interval", rows.intervals, id="i"),
        NodeStep(
            "metrics/overlay", "interval-metrics", "Interval", rows.interval_metrics, creates=False
        ),
        NodeStep("publications", "messages", "Message", rows.messages),
        NodeStep(
            "metrics/messages", "message-metrics", "Message", rows.message_metrics, creates=False
        ),
    )


def _relationship_steps(rows: RunRows) -> tuple[RelationshipStep, ...]:
    """Return the steps that create relationships, after the nodes at their ends."""
    step = partial(RelationshipStep, keys=rows.keys_of)
    copies = (
        step("links", "link-copies", "", rows.link_copies),
        step("subscriptions", "subscription-copies", "", rows.subscription_copies),
    )
    return (
        step("presence", "presence", "PRESENT", rows.presence, named=("start",)),
        step("subscriptions", "subscriptions", "SUBSCRIBES", rows.subscriptions),
        step("roles", "roles", "HAS_ROLE", rows.roles),
        step("publications", "published", "PUBLISHED", rows.publisher_links),
        step("publications", "published-on", "PUBLISHED_ON", rows.topic_links, has_run=False),
        step("links", "links", "LINK", rows.links),
        step("receptions", "hops", "HOP", rows.hops),
        step(
            "receptions", "arrived-from-unknown", "ARRIVED_FROM_UNKNOWN", rows.arrived_from_unknown
        ),
        step("missed", "missed", "MISSED", rows.missed_deliveries),
        *(copies if rows.partitions.count else ()),
    )


def steps_by_table(rows: RunRows) -> dict[str, tuple[Step, ...]]:
    """Return all steps by table, so that each table is read once. Nodes come first."""
    steps: dict[str, tuple[Step, ...]] = {}
    all_steps: tuple[Step, ...] = (*node_steps(rows), *_relationship_steps(rows))
    for step in all_steps:
        steps[step.table] = (*steps.get(step.table, ()), step)
    return steps


def row_batches(tables: RunTables, table: str) -> Iterator[tuple[str, Batch]]:
    """Split a table into batches of at most ROWS_PER_BATCH rows, as (label|first row, batch)."""
    for label, batch in tables.row_groups(table):
        for start in range(0, batch.num_rows, ROWS_PER_BATCH):
            yield f"{label}|{start}", batch.slice(start, ROWS_PER_BATCH)
