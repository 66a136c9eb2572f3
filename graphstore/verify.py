"""Is what Neo4j has of a run what its tables have?

Nodes are compared property by property; relationships, of which there may be millions,
by their number and a checksum that both sides compute over their integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from neo4j import Driver

import cypher
from graphstore import sessions
from graphstore.batches import Tables
from graphstore.checksums import CHECKED, Checksums
from graphstore.epochs import Epochs
from graphstore.reading import Reading
from graphstore.runs import epochs_in, run_properties
from graphstore.steps import NodeStep, node_steps, parts
from model.run import RunFacts

NO_TIMEOUT = 0.0
_SHOWN = 5


@dataclass(frozen=True)
class Difference:
    """One thing that is not as the table has it."""

    table: str
    what: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"{self.table}: {self.what}: {self.expected} in the table, {self.found} in Neo4j"


def verify_run(driver: Driver, database: str, facts: RunFacts, tables: Tables) -> list[Difference]:
    """The differences between Neo4j's copy of a run and its tables; none where they are equal.

    Every node with all its properties, every relationship's integers; at most five
    differing nodes of a table are named. A run in any state can be verified.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    epochs = epochs_in(run_properties(driver, database, facts.name) or {}, facts.clock)
    reading = Reading.of(tables, facts.clock)
    return list(_Verification(driver, database, facts.name, reading, epochs).differences())


@dataclass(frozen=True)
class _Verification:
    driver: Driver
    database: str
    run: str
    reading: Reading
    epochs: Epochs

    def differences(self) -> Iterator[Difference]:
        steps = node_steps(self.reading.run_rows(self.run, self.epochs))
        of_messages = Checksums(self.epochs)
        for step in steps:
            yield from self._nodes(step, of_messages)
        yield from self._counts()
        of_others = self.reading.census(self.epochs).checksums
        for statement, table in CHECKED.items():
            checksums = of_messages if table == "publications" else of_others
            yield from self._relationships(table, statement, checksums)

    def _nodes(self, step: NodeStep, checksums: Checksums) -> list[Difference]:
        """Of the nodes of a step; what else its rows become goes to the checksums."""
        statement = _READ_BACK[step.statement]
        differences: list[Difference] = []
        for _, part in parts(self.reading, step.table):
            checksums.add(step.table, part)
            if len(differences) < _SHOWN:
                expected = step.rows(part)
                found = dict(self._ask(statement, keys=[row["key"] for row in expected]))
                differences += _node_differences(step.table, expected, found)
        return differences[:_SHOWN]

    def _counts(self) -> Iterator[Difference]:
        found = dict(self._ask("counts", run=self.run))
        for label, table in _NODE_TABLES.items():
            expected = self.reading.rows(table)
            if expected != found.get(label, 0):
                yield Difference(table, f"nodes {label}", expected, found.get(label, 0))

    def _relationships(
        self, table: str, statement: str, checksums: Checksums
    ) -> Iterator[Difference]:
        words = {"layers": checksums.layers, "roles": checksums.roles}
        ((rows, checksum),) = self._ask(statement, run=self.run, **words)
        expected_rows, expected_sum = checksums.of(statement)
        if rows != expected_rows:
            yield Difference(table, f"relationships {statement}", expected_rows, rows)
        elif checksum != expected_sum:
            what = f"checksum of relationships {statement}"
            yield Difference(table, what, expected_sum, checksum)

    def _ask(self, statement: str, **parameters: Any) -> list[list[Any]]:
        text = cypher.statement("verify", statement).text
        return sessions.rows(self.driver, self.database, text, parameters, NO_TIMEOUT)


_READ_BACK = {
    "peers": "peers",
    "topics": "topics",
    "intervals": "intervals",
    "interval-metrics": "intervals",
    "messages": "messages",
    "message-metrics": "messages",
}
_NODE_TABLES = {"Peer": "peers", "Topic": "topics", "Message": "publications", "Interval": "clock"}


def _node_differences(
    table: str, expected: Sequence[dict[str, Any]], found: dict[str, dict[str, Any]]
) -> Iterator[Difference]:
    for row in expected:
        properties = found.get(row["key"])
        if properties is None:
            yield Difference(table, row["key"], "a row", "no node")
            continue
        for name, value in row.items():
            if properties.get(name) != value:
                yield Difference(table, f"{row['key']} {name}", value, properties.get(name))
