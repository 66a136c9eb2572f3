"""The steps of a load: which table's rows become what in the graph, in which order.

A step is described once, here, and taken in two ways: its rows go through one statement of
cypher/load (vizpub.graphstore.load.transactions), or, if it creates something, into a file
(vizpub.graphstore.load.bulk).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa

from vizpub.graphstore.load.batches import CLOCK, Batch, Rows, RunRows, Tables

ROWS_PER_BATCH = 10_000
"""Rows of one transaction: more is no faster and costs the server memory."""


@dataclass(frozen=True)
class NodeStep:
    """One table's rows as nodes, or as more properties of nodes that are there."""

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
        """What the administration tool calls files of them."""
        return f"nodes={self.label}"

    def rows(self, batch: Batch) -> Rows:
        """The rows of the statement: maps of properties."""
        rows: Rows = self.shape(batch).to_pylist()
        return rows


@dataclass(frozen=True)
class RelationshipStep:
    """One table's rows as relationships."""

    table: str
    statement: str
    type: str
    """Of all of them; empty where each has its own, in a column `type` behind their ends."""
    shape: Callable[[Batch], Batch]
    """The table's rows as relationships: `start`, `end`, and a column for each property."""
    keys: Callable[[pa.Array], pa.Array]
    """The keys of nodes by their numbers."""
    named: tuple[str, ...] = ("start", "end")
    """The ends that the statement is given; the run it knows."""
    has_run: bool = True
    """Whether the run is a property of the relationship."""
    creates: ClassVar = True

    @property
    def group(self) -> str:
        """What the administration tool calls files of them."""
        return f"relationships={self.type}" if self.type else "relationships"

    def rows(self, batch: Batch) -> Rows:
        """The rows of the statement: lists of the keys at the ends and of the properties."""
        shaped = self.shape(batch)
        ends = [self.keys(shaped[name]) for name in self.named]
        columns = [column.to_pylist() for column in (*ends, *shaped.columns[2:])]
        return [list(row) for row in zip(*columns, strict=True)]


Step = NodeStep | RelationshipStep


def node_steps(rows: RunRows) -> tuple[NodeStep, ...]:
    """The nodes, and what is added to them."""
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
    """The relationships, after the nodes at their ends."""
    step = partial(RelationshipStep, keys=rows.keys_of)
    return (
        step("presence", "presence", "PRESENT", rows.presence, named=("start",)),
        step("subscriptions", "subscriptions", "SUBSCRIBES", rows.subscriptions),
        step("roles", "roles", "HAS_ROLE", rows.roles),
        step("publications", "published", "PUBLISHED", rows.published),
        step("publications", "published-on", "PUBLISHED_ON", rows.published_on, has_run=False),
        step("links", "links", "LINK", rows.links),
        step("receptions", "hops", "HOP", rows.hops),
        step(
            "receptions", "arrived-from-unknown", "ARRIVED_FROM_UNKNOWN", rows.arrived_from_unknown
        ),
        step("missed", "missed", "MISSED", rows.missed),
        *(_copy_steps(rows) if rows.partitions.count else ()),
    )


def _copy_steps(rows: RunRows) -> tuple[RelationshipStep, ...]:
    """The copies of what questions at one time read."""
    step = partial(RelationshipStep, keys=rows.keys_of, type="")
    return (
        step("links", "link-copies", shape=rows.link_copies),
        step("subscriptions", "subscription-copies", shape=rows.subscription_copies),
    )


def passes(rows: RunRows) -> dict[str, tuple[Step, ...]]:
    """All of it by table, in order: what a table's rows become is made in one reading of them.

    Nodes come before what ends at them.
    """
    found: dict[str, tuple[Step, ...]] = {}
    every: tuple[Step, ...] = (*node_steps(rows), *_relationship_steps(rows))
    for step in every:
        found[step.table] = (*found.get(step.table, ()), step)
    return found


def parts(tables: Tables, table: str) -> Iterator[tuple[str, Batch]]:
    """The batches of a table in parts of at most ROWS_PER_BATCH: (label|first row, part)."""
    for label, batch in tables.row_groups(table):
        for start in range(0, batch.num_rows, ROWS_PER_BATCH):
            yield f"{label}|{start}", batch.slice(start, ROWS_PER_BATCH)
