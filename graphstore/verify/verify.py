"""Checks that Neo4j's copy of a run equals its tables: all of it, and nothing more.

Nodes are read back and compared property by property; relationships, of which there may be
millions, by their number and by checksums that both sides compute. Anything beyond the tables shows
in the numbers of nodes by label, of their properties, and of relationships at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.load.batches import Batch, RunTables, part_of
from vizpub.graphstore.load.partitions import Partitions, name_copy_types
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.schema import index_states, wanted_indexes
from vizpub.graphstore.load.steps import NodeStep, node_steps, row_batches
from vizpub.graphstore.runs import State, node_of, run_properties
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.checksums import CHECKED, Checksums, Sums
from vizpub.graphstore.verify.kept_checksums import (
    WHOLE,
    KeptChecksums,
    add_nodes,
    checksums_to_keep,
)
from vizpub.model.clock import Clock
from vizpub.model.errors import Neo4jAnswer
from vizpub.model.own import with_own
from vizpub.model.run import RunFacts
from vizpub.model.tables import table as table_of

_NO_TIMEOUT = 0.0
_SHOWN = 5
_RUN, _SCHEMA = "run", "schema"
"""Names for what is in no table: the Run node with its relationships, and the indexes."""


@dataclass(frozen=True)
class Difference:
    """One difference between the copy and the run."""

    table: str
    """`run` = the run as a whole, `schema` = indexes and constraints."""
    what: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"{self.table}: {self.what}: should be {self.expected}, is {self.found} in Neo4j"


def remedy(run: str, differences: Sequence[Difference]) -> str:
    """Return the advice for differences."""
    if all(difference.table == _SCHEMA for difference in differences):
        return f"create the missing parts with: vizpub load {run}"
    return f"recreate it with: vizpub rebuild {run}"


def verify_run(
    driver: Driver, database: str, facts: RunFacts, tables: RunTables
) -> list[Difference]:
    """Compare Neo4j's copy of a run with its tables; return the differences.

    A node belongs to the run if its key or its property `run` names the run. All its labels and
    properties are compared, and at most five differing nodes of a table are named. A
    relationship belongs to the run if it begins or ends at such a node, or is found by an index
    that begins with the run. If an index or a constraint is missing or does not answer, only
    that is reported. The ledger of loads and the run's state are not compared.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    return verify_with_checksums(driver, database, facts, TableReader.of(tables, facts.clock))[0]


def verify_with_checksums(
    driver: Driver, database: str, facts: RunFacts, reading: TableReader
) -> tuple[list[Difference], KeptChecksums | None]:
    """Do the same as verify_run; also return the checksums of the tables."""
    properties = run_properties(driver, database, facts.name) or {}
    verification = _Verification(
        driver, database, facts, reading, recorded_partitions(properties, facts.clock)
    )
    differences = list(verification.differences(properties))
    return differences, verification.kept


class Comparison:
    """Compares a copy of a run with what is expected."""

    def __init__(self, driver: Driver, database: str, run: str, partitions: Partitions) -> None:
        """Prepare the comparison of a run's copy."""
        self._driver, self._database = driver, database
        self._name, self._partitions = run, partitions
        self._counted: dict[str, int] = {}
        """The number of relationships that each statement of CHECKED found."""

    def _schema(self) -> Iterator[Difference]:
        states = index_states(self._driver, self._database)
        for index in wanted_indexes():
            if (state := states.get(index, "missing")) != "ONLINE":
                yield Difference(_SCHEMA, str(index), "ONLINE", state)

    def _relationships(
        self, statement: str, expected: Sums, words: Mapping[str, object]
    ) -> Iterator[Difference]:
        """Compare the relationships of a statement; `words` are its layers, roles and topics."""
        self._counted[statement] = expected[0]
        comparison = SumComparison(CHECKED[statement], f"relationships {statement}")
        for result in self._sums_of(statement, comparison, **words):
            if isinstance(result, Difference):
                yield result
            else:
                self._counted[statement] = result[0]
                yield from comparison.differences(expected, result)

    def _sums_of(
        self, statement: str, comparison: SumComparison, **parameters: object
    ) -> Iterator[Sums | Difference]:
        """Yield the sums of a statement, or a difference if the values are no numbers."""
        try:
            yield from self._ask(statement, run=self._name, **parameters)
        except Neo4jAnswer as error:
            if not error.code.endswith(("TypeError", "ArithmeticError")):
                raise
            yield Difference(comparison.table, comparison.subject, "whole numbers", error.message)

    def _foreign_relationships(self) -> Iterator[Difference]:
        """Find relationships that name the run and are between nodes of other runs."""
        for statement, rows in self._ask("named", run=self._name):
            if rows != self._counted[statement]:
                subject = f"relationships {statement} that name the run"
                yield Difference(CHECKED[statement], subject, self._counted[statement], rows)

    def _counts(
        self, nodes: Mapping[str, int], properties: Mapping[str, int], tables: Mapping[str, str]
    ) -> Iterator[Difference]:
        """Compare the numbers of nodes by label, of their properties and relationships.

        A label that is not among `properties` is not compared by these.
        """
        counted, values, linked = (Counter[str]() for _ in range(3))
        for labels, count, property_count, begin, end in self._ask("nodes", run=self._name):
            counted.update(dict.fromkeys(labels or ["of no label"], count))
            values.update(dict.fromkeys(labels, property_count))
            linked.update(begin=begin, end=end)
        for label in sorted({*nodes, *counted}):
            table, count = tables.get(label, _RUN), nodes.get(label, 0)
            if count != counted[label]:
                yield Difference(table, f"nodes {label}", count, counted[label])
            elif properties.get(label) not in (None, values[label]):
                subject = f"properties of nodes {label}"
                yield Difference(table, subject, properties[label], values[label])
        expected = sum(self._counted.values())
        for end_name in ("begin", "end"):
            if linked[end_name] != expected:
                yield Difference(
                    _RUN, f"relationships that {end_name} at its nodes", expected, linked[end_name]
                )

    def _ask(self, statement: str, **parameters: Any) -> list[list[Any]]:
        # Copies in a partition that the run does not have show as surplus relationships in _counts.
        text = name_copy_types(cypher.statement("verify", statement).text, self._partitions)
        return sessions.rows(self._driver, self._database, text, parameters, _NO_TIMEOUT)


@dataclass(frozen=True)
class SumComparison:
    """The comparison of the sums of one kind of nodes or relationships."""

    table: str
    subject: str

    def differences(self, expected: Sums, actual: Sums) -> Iterator[Difference]:
        """Compare sums; 1 is not 1.0."""
        if actual[0] != expected[0]:
            yield Difference(self.table, self.subject, expected[0], actual[0])
        elif repr(actual) != repr(expected):
            subject = f"checksums of {self.subject}"
            yield Difference(self.table, subject, expected[1:], actual[1:])


def recorded_partitions(properties: Mapping[str, Any], clock: Clock) -> Partitions:
    """Return the partitions of a Run node's copy; an invalid value will be a difference."""
    length = properties.get("partition_intervals")
    return Partitions(clock, length if type(length) is int else 0)


class _Verification(Comparison):
    """A full comparison with the tables, which counts the expected totals as it reads rows."""

    def __init__(
        self,
        driver: Driver,
        database: str,
        facts: RunFacts,
        reading: TableReader,
        partitions: Partitions,
    ) -> None:
        super().__init__(driver, database, facts.name, partitions)
        self._facts, self._reading = facts, reading
        self._rows = reading.run_rows(facts.name, partitions)
        self._steps = node_steps(self._rows)
        self._census = reading.census(partitions)
        self._of_messages = Checksums(partitions)
        self._properties: Counter[str] = Counter()
        """The number of properties of the nodes of each label."""
        self._different: set[str] = set()
        """Labels whose nodes differ, reported one by one."""
        self._labels: dict[str, frozenset[int]] = {}
        """The peers of each label, except Peer."""
        self.kept: KeptChecksums | None = None
        """The checksums of the tables; None before they were read."""

    def differences(self, properties: Mapping[str, Any]) -> Iterator[Difference]:
        """Yield the differences, given the properties of the Run node."""
        if missing := list(self._schema()):
            # Without indexes the statements would take long, or be refused.
            yield from missing
            return
        yield from self._run(properties)
        peers, *others = self._steps
        for step in others:
            yield from self._nodes(step)
        # The publishers are known now that the messages were read.
        labels = {**self._census.labels, "Publisher": self._of_messages.publishers}
        self._labels = {label: frozenset(ids) for label, ids in labels.items()}
        yield from self._nodes(peers)
        for statement, table in CHECKED.items():
            sums = self._sums(table)
            words = {"layers": sums.layers, "roles": sums.roles, "topics": self._rows.topics}
            yield from self._relationships(statement, sums.of(statement), words)
        yield from self._foreign_relationships()
        yield from self._count()
        yield from self._keep(properties)

    def _keep(self, properties: Mapping[str, Any]) -> Iterator[Difference]:
        sums = (self._census.checksums, self._of_messages)
        summary = self._reading.summary(self._census)
        self.kept = checksums_to_keep(self._reading, sums, self._partitions, self._labels, summary)
        held = properties.get("checksums")
        if held is not None and (self.kept is None or held != self.kept.text):
            yield Difference(_RUN, "checksums that are kept", "those of the tables", "others")

    def _count(self) -> Iterator[Difference]:
        tables = {step.label: step.table for step in self._steps if step.creates}
        expected = {label: self._reading.rows(table) for label, table in tables.items()}
        expected |= {label: len(ids) for label, ids in self._labels.items()} | {"Run": 1}
        tables |= dict.fromkeys(self._labels, "peers")
        properties = {
            label: n for label, n in self._properties.items() if label not in self._different
        }
        yield from self._counts(expected, properties, tables)

    def _sums(self, table: str) -> Checksums:
        return self._of_messages if table == "publications" else self._census.checksums

    def _run(self, properties: Mapping[str, Any]) -> Iterator[Difference]:
        if not properties:
            yield Difference(_RUN, self._facts.name, "a node", "no node")
            return
        expected = node_of(self._facts, self._partitions, self._reading.summary(self._census))
        state = properties.get("state")
        expected["state"] = state if state in get_args(State) else "complete"
        if state == "loading" and properties.get("imported"):
            expected["imported"] = True
        expected["checksums"] = properties.get("checksums")  # compared when the tables were read
        yield from differences_of(_RUN, self._facts.name, expected, properties)

    def _nodes(self, step: NodeStep) -> list[Difference]:
        """Compare the nodes of a step, and add the relationships of its rows to the checksums."""
        others = self._others(step)
        differences: list[Difference] = []
        for label, part in row_batches(self._reading, step.table):
            name = "" if step.table in WHOLE else part_of(label)
            self._of_messages.add(step.table, part, name)
            nodes = add_nodes(self._of_messages, step, part, name)
            values = sum(len(column) - column.null_count for column in nodes.columns)
            # A step that adds to nodes repeats their key.
            self._properties[step.label] += values - (0 if step.creates else len(nodes))
            if len(differences) < _SHOWN:
                differences += self._node_differences(step, nodes, others)
        if differences:
            self._different.add(step.label)
        return differences[:_SHOWN]

    def _others(self, step: NodeStep) -> set[str]:
        """Return the properties that other steps add to the nodes of a step."""
        if not step.creates:
            return set()
        tables = [s.table for s in self._steps if not s.creates and s.label == step.label]
        own_metrics = self._facts.own
        return {
            name for table in tables for name in with_own(table_of(table), own_metrics).names[1:]
        }

    def _node_differences(
        self, step: NodeStep, nodes: Batch, other_names: set[str]
    ) -> Iterator[Difference]:
        keys = nodes["key"].to_pylist()
        copied = {key: values for key, *values in self._ask(_READ_BACK[step.statement], keys=keys)}
        for row in nodes.to_pylist():
            key = row["key"]
            if key not in copied:
                yield Difference(step.table, key, "a row", "no node")
                continue
            labels, actual = copied[key]
            if step.creates:
                if (expected := self._labels_of(step, row)) != (labels := sorted(labels)):
                    yield Difference(step.table, f"{key} labels", expected, labels)
                actual = {name: actual[name] for name in actual if name not in other_names}
            else:
                actual = {name: actual.get(name) for name in row}
            yield from differences_of(step.table, key, row, actual)

    def _labels_of(self, step: NodeStep, row: Mapping[str, Any]) -> list[str]:
        if step.label != "Peer":
            return [step.label]
        return sorted(["Peer", *(label for label, ids in self._labels.items() if row["id"] in ids)])


_READ_BACK = {
    "peers": "peers",
    "topics": "topics",
    "intervals": "intervals",
    "interval-metrics": "intervals",
    "messages": "messages",
    "message-metrics": "messages",
}


def differences_of(
    table: str, key: str, expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare properties; None = no such property. 1 is neither 1.0 nor true."""
    for name in dict.fromkeys([*expected, *actual]):
        if repr(expected.get(name)) != repr(actual.get(name)):
            yield Difference(table, f"{key} {name}", expected.get(name), actual.get(name))
