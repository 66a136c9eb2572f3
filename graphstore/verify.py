"""Is what Neo4j has of a run what its tables have?

Nodes are compared property by property; relationships, of which there may be millions,
by their number and a checksum that both sides compute over their integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from neo4j import Driver

import cypher
from graphstore import sessions
from graphstore.batches import Tables, levels, run_rows
from graphstore.degrees import Ints
from graphstore.epochs import Epochs, copies
from graphstore.runs import epochs_in, run_properties
from graphstore.steps import NodeStep, node_steps, parts, with_clock
from model.run import RunFacts

PRIME = 2**31 - 1
"""So that a square of a remainder, and a sum of 2^32 remainders, fit 63 bits."""
NO_TIMEOUT = 0.0
_SHOWN = 5

Numbers = dict[str, int]
"""A number for each word of a column, which a checksum can hold."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as the table has it."""

    table: str
    what: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"{self.table}: {self.what}: {self.expected} in the table, {self.found} in Neo4j"


@dataclass(frozen=True)
class Check:
    """Relationships of one statement of cypher/verify, and the table's integers for them."""

    table: str
    statement: str
    integers: Callable[[pa.RecordBatch], list[Ints]]


def verify_run(driver: Driver, database: str, facts: RunFacts, tables: Tables) -> list[Difference]:
    """The differences between Neo4j's copy of a run and its tables; none where they are equal.

    Every node with all its properties, every relationship's integers; at most five
    differing nodes of a table are named. A run in any state can be verified.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    epochs = epochs_in(run_properties(driver, database, facts.name) or {}, facts.clock)
    return _Verification(driver, database, facts, tables, epochs).differences()


@dataclass(frozen=True)
class _Verification:
    driver: Driver
    database: str
    facts: RunFacts
    tables: Tables
    epochs: Epochs

    def differences(self) -> list[Difference]:
        rows = run_rows(self.facts.name, self.facts.clock, self.tables)
        tables = with_clock(self.tables, rows)
        found = [d for step in node_steps(rows) for d in self._nodes(step, tables)]
        found += self._counts(tables)
        words = {
            "layers": self._numbered("links", "layer"),
            "roles": self._numbered("roles", "role"),
        }
        for check in _checks(self.epochs, **words):
            found += self._relationships(check, words)
        return found

    def _nodes(self, step: NodeStep, tables: Tables) -> list[Difference]:
        statement = _READ_BACK[step.statement]
        differences: list[Difference] = []
        for _, part in parts(tables, step.table):
            expected = step.rows(part)
            found = dict(self._ask(statement, keys=[row["key"] for row in expected]))
            differences += _node_differences(step.table, expected, found)
            if len(differences) >= _SHOWN:
                break
        return differences[:_SHOWN]

    def _counts(self, tables: Tables) -> Iterator[Difference]:
        found = dict(self._ask("counts", run=self.facts.name))
        for label, table in _NODE_TABLES.items():
            expected = sum(batch.num_rows for _, batch in tables(table))
            if expected != found.get(label, 0):
                yield Difference(table, f"nodes {label}", expected, found.get(label, 0))

    def _relationships(self, check: Check, words: dict[str, Numbers]) -> Iterator[Difference]:
        ((rows, checksum),) = self._ask(check.statement, run=self.facts.name, **words)
        expected = [check.integers(batch) for _, batch in self.tables(check.table)]
        expected_rows = sum(len(columns[0]) for columns in expected)
        if rows != expected_rows:
            yield Difference(check.table, f"relationships {check.statement}", expected_rows, rows)
            return
        expected_sum = sum(checksum_of(columns) for columns in expected)
        if checksum != expected_sum:
            what = f"checksum of relationships {check.statement}"
            yield Difference(check.table, what, expected_sum, checksum)

    def _numbered(self, table: str, column: str) -> Numbers:
        batches = self.tables(table)
        words = {word for _, batch in batches for word in pc.unique(batch[column]).to_pylist()}
        return {word: number for number, word in enumerate(sorted(words))}

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


def _checks(epochs: Epochs, layers: Numbers, roles: Numbers) -> tuple[Check, ...]:
    def links(batch: pa.RecordBatch) -> list[Ints]:
        spans = [*_integers(batch, "src", "dst", "topic", "vf", "vt"), levels(batch)]
        return [*spans, _numbers(batch["layer"], layers)]

    def link_copies(batch: pa.RecordBatch) -> list[Ints]:
        copied = copies(batch, epochs)
        return [*_integers(copied, "epoch"), *links(copied)]

    def subscription_copies(batch: pa.RecordBatch) -> list[Ints]:
        copied = copies(batch, epochs)
        return [*_integers(copied, "epoch"), *subscriptions(copied)]

    def plays(batch: pa.RecordBatch) -> list[Ints]:
        return [*_integers(batch, "peer", "topic", "vf", "vt"), _numbers(batch["role"], roles)]

    def subscriptions(batch: pa.RecordBatch) -> list[Ints]:
        return [*_integers(batch, "peer", "topic", "vf", "vt"), levels(batch)]

    return (
        Check("links", "links", links),
        Check("presence", "presence", lambda b: [*_integers(b, "peer", "vf", "vt"), levels(b)]),
        Check("subscriptions", "subscriptions", subscriptions),
        Check("roles", "plays", plays),
        Check(
            "publications", "published", lambda b: _where(b, "publisher", "message", "publisher")
        ),
        Check("publications", "on", lambda b: _where(b, "topic", "message", "topic")),
        Check("receptions", "hops", lambda b: _where(b, "previous_hop", *_HOP)),
        Check("receptions", "reached", _reached),
        Check("links", "link-copies", link_copies),
        Check("subscriptions", "subscription-copies", subscription_copies),
    )


_ARRIVAL = ("message", "hop", "time_us", "first", "interested")
_HOP = ("previous_hop", "peer", *_ARRIVAL)


def _where(batch: pa.RecordBatch, known: str, *names: str) -> list[Ints]:
    return _integers(batch.filter(pc.is_valid(batch[known])), *names)


def _reached(batch: pa.RecordBatch) -> list[Ints]:
    unknown = batch.filter(pc.is_null(batch["previous_hop"]))
    return _integers(unknown, "message", "peer", *_ARRIVAL)


def _integers(batch: pa.RecordBatch, *names: str) -> list[Ints]:
    return [pc.fill_null(batch[name].cast(pa.int64()), -1).to_numpy() for name in names]


def _numbers(words: pa.Array, numbers: Numbers) -> Ints:
    return np.array([numbers[word] for word in words.to_pylist()], np.int64)


def checksum_of(columns: Sequence[Ints]) -> int:
    """Sum over the rows of h, where h = 1 and, column by column, h = (h² + x mod P) mod P.

    Remainders have the sign of the dividend, as in Cypher; -1 stands for null. The square
    makes a row's h depend on which values stand together, the sum on no order of rows.
    """
    h = np.ones(len(columns[0]), np.int64)
    for column in columns:
        h = np.fmod(h * h + np.fmod(column, PRIME), PRIME)
    return int(h.sum(dtype=np.int64))
