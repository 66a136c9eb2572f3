"""The steps of a load, in order: the nodes and relationships that each table's rows become.

Each step can be done in two ways: its rows go through one statement of
cypher/load (vizpub.graphstore.load.transactions), or, if it creates something, into a file
(vizpub.graphstore.load.bulk).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from neo4j import ManagedTransaction

from vizpub import cypher
from vizpub.graphstore.load.batches import CLOCK, Batch, Rows, RunRows, RunTables
from vizpub.graphstore.load.partitions import Partitions
from vizpub.model.errors import CheckFailed
from vizpub.model.tables import table as table_of

ROWS_PER_BATCH = 10_000
"""Rows of one transaction: more is no faster and costs the server memory."""


@dataclass(frozen=True)
class NodeStep:
    """A table's rows as nodes, or as more properties of existing nodes."""

    table: str
    statement: str
    label: str
    shape: Callable[[RunRows, Batch], Batch]
    """The table's rows as nodes: a column for each property."""
    id: str = "id"
    """The property with the dense index."""
    creates: bool = True

    @property
    def key(self) -> str:
        """The column of the table with the dense index."""
        return "interval" if self.table == CLOCK else table_of(self.table).key[0]

    @property
    def group(self) -> str:
        """The option of the administration tool for files with these rows."""
        return f"nodes={self.label}"

    def rows(self, run: RunRows, batch: Batch) -> Rows:
        """Return the rows of the statement: maps of properties."""
        rows: Rows = self.shape(run, batch).to_pylist()
        return rows


@dataclass(frozen=True)
class RelationshipStep:
    """A table's rows as relationships."""

    table: str
    statement: str
    type: str
    """Their type; empty if each has its own, in a column `type` behind the ends."""
    shape: Callable[[RunRows, Batch], Batch]
    """The table's rows as relationships: `start`, `end`, and a column for each property."""
    ends: tuple[str, ...] = ("start", "end")
    """The ends that are parameters of the statement; the run is one anyway."""
    has_run: bool = True
    """True if the run is a property of the relationship."""
    creates: ClassVar = True

    @property
    def group(self) -> str:
        """The option of the administration tool for files with these rows."""
        return f"relationships={self.type}" if self.type else "relationships"

    def rows(self, run: RunRows, batch: Batch) -> Rows:
        """Return the rows of the statement: lists of the keys at the ends and the properties."""
        shaped = self.shape(run, batch)
        ends = [run.keys_of(shaped[name]) for name in self.ends]
        columns = [column.to_pylist() for column in (*ends, *shaped.columns[2:])]
        return [list(row) for row in zip(*columns, strict=True)]


Step = NodeStep | RelationshipStep

NODE_STEPS = (
    NodeStep("peers", "peers", "Peer", RunRows.peers),
    NodeStep("topics", "topics", "Topic", RunRows.topic_nodes),
    NodeStep(CLOCK, "intervals", "Interval", RunRows.intervals, id="i"),
    NodeStep("metrics/overlay", "interval-metrics", "Interval", RunRows.metrics, creates=False),
    NodeStep("publications", "messages", "Message", RunRows.messages),
    NodeStep("metrics/messages", "message-metrics", "Message", RunRows.metrics, creates=False),
)
"""The steps that create nodes or add to them."""
RELATIONSHIP_STEPS = (
    RelationshipStep("presence", "presence", "PRESENT", RunRows.presence, ends=("start",)),
    RelationshipStep("subscriptions", "subscriptions", "SUBSCRIBES", RunRows.subscriptions),
    RelationshipStep("roles", "roles", "HAS_ROLE", RunRows.roles),
    RelationshipStep(
        "attributes", "attributes", "HAS_ATTRIBUTE", RunRows.attributes, ends=("start",)
    ),
    RelationshipStep("publications", "published", "PUBLISHED", RunRows.publisher_links),
    RelationshipStep(
        "publications", "published-on", "PUBLISHED_ON", RunRows.topic_links, has_run=False
    ),
    RelationshipStep("links", "links", "LINK", RunRows.links),
    RelationshipStep("receptions", "hops", "HOP", RunRows.hops),
    RelationshipStep(
        "receptions", "arrived-from-unknown", "ARRIVED_FROM_UNKNOWN", RunRows.arrived_from_unknown
    ),
    RelationshipStep("missed", "missed", "MISSED", RunRows.missed_deliveries),
)
"""The steps that create relationships, after the nodes at their ends."""
COPY_STEPS = (
    RelationshipStep("links", "link-copies", "", RunRows.link_copies),
    RelationshipStep("subscriptions", "subscription-copies", "", RunRows.subscription_copies),
)
"""The steps that copy relationships into time partitions."""


def steps_by_table(partitions: Partitions) -> dict[str, tuple[Step, ...]]:
    """Return all steps by table, so that each table is read once. Nodes come first."""
    steps: dict[str, tuple[Step, ...]] = {}
    for step in (*NODE_STEPS, *RELATIONSHIP_STEPS, *(COPY_STEPS if partitions.count else ())):
        steps[step.table] = (*steps.get(step.table, ()), step)
    return steps


def row_batches(tables: RunTables, table: str) -> Iterator[tuple[str, Batch]]:
    """Split a table into batches of at most ROWS_PER_BATCH rows, as (label|first row, batch)."""
    for label, batch in tables.row_groups(table):
        for start in range(0, batch.num_rows, ROWS_PER_BATCH):
            yield f"{label}|{start}", batch.slice(start, ROWS_PER_BATCH)


def write_rows(
    transaction: ManagedTransaction, run: str, step: Step, rows: Rows, batch: str
) -> None:
    """Write rows of a step. Raises: CheckFailed if some refer to nodes that do not exist."""
    text = cypher.statement("load", step.statement).text
    count = transaction.run(text, {"run": run, "rows": rows}).single(strict=True)["rows"]
    if missing := len(rows) - count:
        raise CheckFailed(
            f"{step.table}: {missing} of {len(rows)} rows refer to nodes that do not exist",
            [f"in batch {batch}"],
        )
