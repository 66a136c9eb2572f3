"""A growing copy, compared with the run's tables from a boundary on.

In partitions that there were before, a copy comes and goes with its link or subscription, in one
transaction. A new partition gets the copies of all that is valid in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeAlias

import pyarrow.compute as pc
from neo4j import Driver, ManagedTransaction

from vizpub import cypher
from vizpub.graphstore.ask.periods import ALWAYS, class_ranges
from vizpub.graphstore.load.batches import Rows
from vizpub.graphstore.load.difference import (
    COPIES,
    Nodes,
    RelationshipDifference,
    RowsByMessage,
    add_nodes,
    changed_nodes,
    copy_rows,
    difference,
)
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.steps import (
    COPY_STEPS,
    NODE_STEPS,
    RELATIONSHIP_STEPS,
    ROWS_PER_BATCH,
    NodeStep,
    RelationshipStep,
    Step,
    write_rows,
)
from vizpub.graphstore.runs import facts_of, partitions_in
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.verify import statement_of_nodes
from vizpub.model.clock import OPEN
from vizpub.model.run import Boundary, RunFacts

Work: TypeAlias = Callable[[ManagedTransaction], object]
"""A function that runs in a transaction."""
SPANS = ("presence", "subscriptions", "roles", "attributes", "links")
"""The statements of periods."""
GROWING = ("Topic", "Peer", "Interval")
"""The labels of nodes except messages."""
_OF_MESSAGES = ("published", "published-on", "hops", "arrived-from-unknown", "missed")
_STEPS = {step.statement: step for step in (*RELATIONSHIP_STEPS, *COPY_STEPS)}
_MESSAGES, _MESSAGE_METRICS = (step for step in NODE_STEPS if step.label == "Message")
_NO_TIMEOUT = 0.0


class GrowingCopy:
    """A copy, compared with the tables from the boundary on."""

    def __init__(
        self,
        driver: Driver,
        database: str,
        facts: RunFacts,
        reading: TableReader,
        boundary: Boundary,
        properties: Mapping[str, Any],
    ) -> None:
        self._driver, self._database, self.run = driver, database, facts.name
        self.reading, self._boundary = reading, boundary
        self._levels = tuple(properties["levels"])
        self.partitions = partitions = partitions_in(properties, facts.clock)
        count = partitions_in(properties, facts_of(properties).clock).count
        self._earlier, self._new = range(count), range(count, partitions.count)
        """The earlier partitions, and the new ones."""
        self._census = reading.census(partitions)
        self._rows = reading.run_rows(facts.name, partitions)
        self._messages = RowsByMessage(reading, boundary.message)
        self._end = max(properties["messages"], reading.rows("publications"))

    def spans(self) -> Iterator[tuple[RelationshipStep, RelationshipDifference]]:
        """Compare relationships with a validity period; roles in full."""
        for name in SPANS:
            least = 0 if name == "roles" else self._boundary.period
            ranges = class_ranges(self._levels, ALWAYS, (least, OPEN))
            held = self._ask(name, run=self.run, ranges=ranges)
            yield _STEPS[name], difference(self._expected_rows(name, least), held)

    def _expected_rows(self, name: str, least: int) -> Iterator[list[Any]]:
        step = _STEPS[name]
        for rows in self.reading.rows_from(step.table, "valid_to", least):
            yield from step.rows(self._rows, rows)

    def new_copies(self) -> Iterator[tuple[RelationshipStep, RelationshipDifference]]:
        """Compare the copies in new partitions."""
        for name, (type, copies) in COPIES.items() if self._new else ():
            rows = self._expected_rows(name, self._boundary.period)
            text = cypher.statement("grow", copies).text
            held = [
                row
                for number in self._new
                for row in self._rows_of(in_partition(text, f"{type}_P{number}"), run=self.run)
            ]
            expected = copy_rows(name, rows, self.partitions, self._new)
            yield _STEPS[copies], difference(expected, held)

    def nodes(self, label: str) -> tuple[NodeStep, Rows, Rows]:
        """Return the step that creates nodes of a label, the missing and the different nodes."""
        steps = [step for step in NODE_STEPS if step.label == label]
        least = self._boundary.interval if label == "Interval" else 0
        expected: Nodes = {}
        for step in steps:
            for rows in self.reading.rows_from(step.table, step.key, least):
                add_nodes(expected, step.rows(self._rows, rows))
        return steps[0], *self._compare_nodes(steps[0], expected)

    def _compare_nodes(self, step: NodeStep, expected: Nodes) -> tuple[Rows, Rows]:
        """Return the nodes that are missing, and those with other properties."""
        held = {key: node for key, _, node in self._read_back(step.label, [*expected])}
        missing = [expected[key] for key in expected if key not in held]
        return missing, changed_nodes(expected, held)

    def messages(self) -> Iterator[Work]:
        """Compare messages from the boundary on; yield a transaction for some at a time.

        None for messages that are equal.
        """
        for low, high in self._messages.chunks(self._boundary.message, self._end, ROWS_PER_BATCH):
            expected: Nodes = {}
            for step in (_MESSAGES, _MESSAGE_METRICS):
                rows = self._messages.of(step.table, low, high)
                add_nodes(expected, step.rows(self._rows, rows))
            at = {"run": self.run, "low": low, "high": high, "keys": [*expected]}
            missing, changed = self._compare_nodes(_MESSAGES, expected)
            ids: list[str] = []
            changes: list[tuple[Step, Rows]] = [(_MESSAGES, missing), (_MESSAGE_METRICS, changed)]
            for relationship in map(_STEPS.__getitem__, _OF_MESSAGES):
                rows = self._messages.of(relationship.table, low, high)
                held = self._ask(relationship.statement, **at)
                differs = difference(relationship.rows(self._rows, rows), held)
                ids += differs.ids
                changes.append((relationship, differs.missing))
            if ids or any(part for _, part in changes):
                yield partial(_write, run=self.run, ids=ids, rows=changes)

    @cached_property
    def peers_by_label(self) -> dict[str, Collection[int]]:
        """The peers that should have each label, except Peer."""
        published = [batch["publisher"] for _, batch in self.reading.row_groups("publications")]
        publishers = {id for ids in published for id in pc.unique(ids).to_pylist()} - {None}
        return {**self._census.labels, "Publisher": publishers}

    def labels(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield each label with the keys of peers that lack it, and of those that must lose it."""
        wanted = {
            label: {self._rows.key(id) for id in ids} for label, ids in self.peers_by_label.items()
        }
        peers = map(self._rows.key, range(self.reading.rows("peers")))
        held: dict[str, set[str]] = {}
        for key, labels, _ in self._read_back("Peer", [*peers]):
            for label in labels:
                held.setdefault(label, set()).add(key)
        for label in sorted({*wanted, *held} - {"Peer"}):
            expected, actual = wanted.get(label, set()), held.get(label, set())
            yield label, sorted(expected - actual), sorted(actual - expected)

    def remaining_differences(self) -> Iterator[tuple[str, bool]]:
        """Yield each kind of rows, and True if anything still differs."""
        spans = chain(self.spans(), self.new_copies())
        yield from ((step.table, bool(differs)) for step, differs in spans)
        for label in GROWING:
            step, missing, changed = self.nodes(label)
            yield step.table, bool(missing or changed)
        yield "messages", any(self.messages())
        yield "labels", any(add or remove for _, add, remove in self.labels())

    def _read_back(self, label: str, keys: list[str]) -> Iterator[list[Any]]:
        for start in range(0, len(keys), ROWS_PER_BATCH):
            part = keys[start : start + ROWS_PER_BATCH]
            yield from self._rows_of(statement_of_nodes("node-properties", label), keys=part)

    def _ask(self, statement: str, **parameters: Any) -> list[list[Any]]:
        query = cypher.statement("grow", statement)
        needed = {p.name: parameters[p.name] for p in query.parameters}
        return self._rows_of(query.text, **needed)

    def _rows_of(self, text: str, **parameters: Any) -> list[list[Any]]:
        return sessions.rows(self._driver, self._database, text, parameters, _NO_TIMEOUT)

    def create(self, step: RelationshipStep, rows: Rows) -> Iterator[Work]:
        """Yield transactions that create periods with their copies in earlier partitions."""
        for part in self._batches(rows):
            more = copy_rows(step.statement, part, self.partitions, self._earlier)
            steps = [(step, part)]
            if more:
                steps.append((_STEPS[COPIES[step.statement][1]], more))
            yield partial(_write, run=self.run, ids=[], rows=steps)

    def delete(
        self, step: RelationshipStep, surplus: list[tuple[str, list[Any]]]
    ) -> Iterator[Work]:
        """Yield transactions that delete periods with their copies in earlier partitions."""
        for part in self._batches(surplus):
            more = copy_rows(step.statement, [r for _, r in part], self.partitions, self._earlier)
            ids = [id for id, _ in part]
            yield partial(_delete, ids=ids, name=step.statement, copies=more)

    def _batches(self, rows: list[Any]) -> Iterator[list[Any]]:
        size = max(1, ROWS_PER_BATCH // (1 + len(self._earlier)))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def _write(
    transaction: ManagedTransaction, run: str, ids: Sequence[str], rows: Sequence[tuple[Step, Rows]]
) -> None:
    """Delete relationships with these ids, and write rows of steps."""
    if ids:
        transaction.run(cypher.statement("grow", "delete").text, {"ids": ids}).consume()
    for step, step_rows in rows:
        if step_rows:
            write_rows(transaction, run, step, step_rows, step.statement)


def _delete(transaction: ManagedTransaction, ids: list[str], name: str, copies: Rows) -> None:
    transaction.run(cypher.statement("grow", "delete").text, {"ids": ids}).consume()
    copies_by_type: dict[str, Rows] = {}
    for copy in copies:
        copies_by_type.setdefault(copy[2], []).append(copy)
    for type, rows in copies_by_type.items():
        text = cypher.statement("grow", f"delete-{COPIES[name][1]}").text
        transaction.run(in_partition(text, type), {"rows": rows}).consume()


def in_partition(text: str, type: str) -> str:
    """Return a statement changed to the partition whose copies have this type."""
    return text.replace(f":{type.partition('_')[0]}_P0]", f":{type}]")
