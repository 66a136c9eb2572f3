"""Checks that Neo4j's copy of a run equals its tables: all of it, and nothing more.

Nodes are read back and compared property by property; relationships, of which there may be
millions, by their number and by checksums that both sides compute. Anything beyond the tables shows
in the numbers of nodes by label, of their properties, and of relationships at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, get_args

from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.load.batches import Batch, RunTables, part_of
from vizpub.graphstore.load.partitions import Partitions, name_copy_types
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.schema import index_states, wanted_indexes
from vizpub.graphstore.load.steps import NODE_STEPS, NodeStep, row_batches
from vizpub.graphstore.runs import (
    State,
    facts_of,
    node_of,
    partitions_in,
    properties_of,
    run_properties,
)
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.checksums import CHECKED, Sums
from vizpub.graphstore.verify.kept_checksums import KeptChecksums, checksums_to_keep
from vizpub.model.errors import CheckFailed, Neo4jAnswer
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
        return f"create the missing parts with: vizpub neo4j load {run}"
    return f"recreate it with: vizpub neo4j rebuild {run}"


def differing_copy_error(run: str, details: Sequence[str]) -> CheckFailed:
    """Return the error for a copy that differs from its tables."""
    return CheckFailed(f"the copy of run '{run}' in Neo4j differs from its tables", details)


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
    """Do the same as verify_run; also return the checksums of the tables.

    None if the parts of the tables have no names, or if indexes are missing.
    """
    properties = run_properties(driver, database, facts.name) or {}
    comparison = _FullComparison(
        driver, database, facts, reading, partitions_in(properties, facts.clock)
    )
    differences = [*comparison.differences(properties)]
    return differences, comparison.checksums if reading.parted_tables else None


@dataclass(frozen=True)
class KeptVerification:
    """The numbers of compared nodes and relationships, and the differences."""

    nodes: int
    relationships: int
    differences: list[Difference]


def verify_kept(
    driver: Driver, database: str, facts: RunFacts, tables: RunTables
) -> KeptVerification | None:
    """Compare a copy with the checksums that it keeps; return None if it keeps none.

    Of the tables only the names of topics are read. The copy and its checksums may be of an earlier
    generation of the run. `verify_run` also finds what this misses: other letters in a text of the
    right length, floats of 2^42 or more, differences below 2^-60, and changes to the tables.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    properties = run_properties(driver, database, facts.name) or {}
    if (checksums := KeptChecksums.of(properties)) is None:
        return None
    partitions = Partitions(facts_of(properties).clock, checksums.partitions[0])
    topics = TableReader.of(tables, facts.clock).topic_names
    comparison = _KeptComparison(driver, database, facts, partitions, topics)
    return KeptVerification(
        sum(checksums.total(step.statement)[0] for step in NODE_STEPS if step.creates),
        sum(checksums.total(statement)[0] for statement in CHECKED),
        [*comparison.differences(properties, checksums)],
    )


class _Comparison:
    """Compares a copy of a run with checksums of its tables."""

    def __init__(
        self,
        driver: Driver,
        database: str,
        facts: RunFacts,
        partitions: Partitions,
        topics: Sequence[str],
    ) -> None:
        self._driver, self._database, self._facts = driver, database, facts
        self._partitions, self._topics = partitions, topics

    def _missing_indexes(self) -> list[Difference]:
        """Compare the schema: without indexes the statements would take long, or be refused."""
        states = index_states(self._driver, self._database)
        wanted = {index: states.get(index, "missing") for index in wanted_indexes()}
        return [
            Difference(_SCHEMA, str(index), "ONLINE", state)
            for index, state in wanted.items()
            if state != "ONLINE"
        ]

    def _compare_relationships(
        self, checksums: KeptChecksums, different: Collection[str] = ()
    ) -> Iterator[Difference]:
        """Compare relationships, then the numbers of nodes, of their properties and ends.

        The properties of nodes with labels of `different` are not counted.
        """
        words = {
            **{"layers": checksums.layers, "roles": checksums.roles, "topics": self._topics},
            **{"attributes": checksums.attributes, "letters": checksums.letters},
        }
        counts = {}
        for statement, table in CHECKED.items():
            expected, subject = checksums.total(statement), f"relationships {statement}"
            actual, differences = self._compare_sums(statement, table, subject, expected, **words)
            counts[statement] = actual[0]
            yield from differences
        # Relationships that name the run may also be between nodes of other runs.
        for statement, rows in self._ask("named"):
            if rows != counts[statement]:
                subject = f"relationships {statement} that name the run"
                yield Difference(CHECKED[statement], subject, counts[statement], rows)
        yield from self._compare_counts(checksums, sum(counts.values()), different)

    def _compare_sums(
        self, statement: str, table: str, subject: str, expected: Sums, **parameters: Any
    ) -> tuple[Sums, list[Difference]]:
        """Return the sums of a statement and their differences.

        If the values are no numbers, this is the difference, and the sums are the expected ones.
        """
        try:
            (actual,) = self._ask(statement, **parameters)
        except Neo4jAnswer as error:
            if not error.code.endswith(("TypeError", "ArithmeticError")):
                raise
            return expected, [Difference(table, subject, "whole numbers", error.message)]
        return actual, _differences_of_sums(table, subject, expected, actual)

    def _compare_counts(
        self, checksums: KeptChecksums, relationships: int, different: Collection[str]
    ) -> Iterator[Difference]:
        tables = {step.label: step.table for step in NODE_STEPS if step.creates}
        tables |= dict.fromkeys(checksums.labels, "peers")
        nodes = {label: count for label, (count, *_) in checksums.labels.items()} | {"Run": 1}
        properties = Counter[str]()
        for step in NODE_STEPS:
            node_count, value_count, *_ = checksums.total(step.statement)
            properties[step.label] += value_count
            nodes.setdefault(step.label, node_count)
        counts, values, ends = (Counter[str]() for _ in range(3))
        for labels, count, property_count, begin, end in self._ask("nodes"):
            counts.update(dict.fromkeys(labels or ["of no label"], count))
            values.update(dict.fromkeys(labels, property_count))
            ends.update(begin=begin, end=end)
        for label in sorted({*nodes, *counts}):
            table, count = tables.get(label, _RUN), nodes.get(label, 0)
            if count != counts[label]:
                yield Difference(table, f"nodes {label}", count, counts[label])
            elif label in properties.keys() - different and properties[label] != values[label]:
                subject = f"properties of nodes {label}"
                yield Difference(table, subject, properties[label], values[label])
        for end_name in ("begin", "end"):
            if ends[end_name] != relationships:
                subject = f"relationships that {end_name} at its nodes"
                yield Difference(_RUN, subject, relationships, ends[end_name])

    def _ask(self, statement: str, label: str = "Peer", **parameters: Any) -> list[list[Any]]:
        # Copies in a partition that the run does not have are surplus ends in _compare_counts.
        text = name_copy_types(statement_of_nodes(statement, label), self._partitions)
        parameters["run"] = self._facts.name
        return sessions.rows(self._driver, self._database, text, parameters, _NO_TIMEOUT)


class _KeptComparison(_Comparison):
    """Compares a copy with the checksums that it keeps."""

    def differences(
        self, properties: Mapping[str, Any], checksums: KeptChecksums
    ) -> Iterator[Difference]:
        """Yield the differences, given the properties of the Run node."""
        if missing := self._missing_indexes():
            yield from missing
            return
        run = self._facts.name
        expected = {**checksums.summary, "partition_intervals": checksums.partitions[0]}
        if properties.get("tables") == self._facts.tables:
            expected |= {"key": run, **properties_of(self._facts)}
        yield from differences_of(_RUN, run, expected, {n: properties.get(n) for n in expected})
        for step in NODE_STEPS:
            rows, _, *sums = checksums.total(step.statement)
            names, subject = checksums.names.get(step.statement, []), f"nodes {step.label}"
            _, differences = self._compare_sums(
                "node-sums", step.table, subject, [rows, *sums], names=names, label=step.label
            )
            yield from differences
        actual = {label: sums for label, *sums in self._ask("labels")}
        actual.pop("Peer", None)
        for label in sorted({*checksums.labels, *actual}):
            sums_of = [of.get(label, [0] * 3) for of in (checksums.labels, actual)]
            yield from _differences_of_sums("peers", f"peers with label {label}", *sums_of)
        yield from self._compare_relationships(checksums)


class _FullComparison(_Comparison):
    """Compares a copy with the tables: nodes by their rows, the rest by checksums of the rows."""

    def __init__(
        self,
        driver: Driver,
        database: str,
        facts: RunFacts,
        reading: TableReader,
        partitions: Partitions,
    ) -> None:
        super().__init__(driver, database, facts, partitions, reading.topic_names)
        self._reading, self._census = reading, reading.census(partitions)
        self._rows = reading.run_rows(facts.name, partitions)
        self._sums_of_rows = deepcopy(self._census.checksums)
        self._labels: dict[str, frozenset[int]] = {}
        """The peers of each label, except Peer."""
        self.checksums: KeptChecksums | None = None
        """The checksums of the tables; None before they were read."""

    def differences(self, properties: Mapping[str, Any]) -> Iterator[Difference]:
        """Yield the differences, given the properties of the Run node."""
        if missing := self._missing_indexes():
            yield from missing
            return
        yield from self._compare_run(properties)
        peers, *others = NODE_STEPS
        different = set()
        # The publishers are known when the messages were read.
        for step in (*others, peers):
            differences = self._compare_nodes(step)
            if differences:
                different.add(step.label)
            yield from differences[:_SHOWN]
        checksums = checksums_to_keep(self._reading, self._sums_of_rows, self._census, self._labels)
        self.checksums = checksums
        yield from self._compare_relationships(checksums, different)
        text = properties.get("checksums")
        if text is not None and (not self._reading.parted_tables or text != checksums.text):
            yield Difference(_RUN, "checksums that are kept", "those of the tables", "others")

    def _compare_run(self, properties: Mapping[str, Any]) -> Iterator[Difference]:
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

    def _compare_nodes(self, step: NodeStep) -> list[Difference]:
        """Compare the nodes of a step, and sum them and the relationships of its rows.

        Stops to compare, but not to sum, when there are enough differences.
        """
        added_names = {
            name
            for adding in NODE_STEPS
            if step.creates and not adding.creates and adding.label == step.label
            for name in with_own(table_of(adding.table), self._facts.own).names[1:]
        }
        publishers: set[int] = set()
        differences: list[Difference] = []
        for label, rows in row_batches(self._reading, step.table):
            nodes = step.shape(self._rows, rows)
            self._sums_of_rows.add(step.table, rows, part_of(label))
            self._sums_of_rows.add_nodes(step, rows, nodes, part_of(label))
            if step.statement == "messages":
                publishers.update(rows["publisher"].drop_null().to_pylist())
            if len(differences) < _SHOWN:
                differences += self._node_differences(step, nodes, added_names)
        if step.statement == "messages":
            labels = {**self._census.labels, "Publisher": publishers}
            self._labels = {label: frozenset(ids) for label, ids in labels.items()}
        return differences

    def _node_differences(
        self, step: NodeStep, nodes: Batch, added_names: Collection[str]
    ) -> Iterator[Difference]:
        keys = nodes["key"].to_pylist()
        rows = self._ask("node-properties", keys=keys, label=step.label)
        copied = {key: values for key, *values in rows}
        for row in nodes.to_pylist():
            key = row["key"]
            if key not in copied:
                yield Difference(step.table, key, "a row", "no node")
                continue
            labels, actual = copied[key]
            if step.creates:
                expected = {step.label}
                if step.label == "Peer":
                    expected |= {label for label, ids in self._labels.items() if row["id"] in ids}
                if expected != {*labels}:
                    yield Difference(step.table, f"{key} labels", sorted(expected), sorted(labels))
                actual = {name: actual[name] for name in actual if name not in added_names}
            else:
                actual = {name: actual.get(name) for name in row}
            yield from differences_of(step.table, key, row, actual)


def statement_of_nodes(name: str, label: str) -> str:
    """Return the text of a statement of cypher/verify about nodes with a label."""
    return cypher.statement("verify", name).text.replace(":Peer", f":{label}")


def differences_of(
    table: str, key: str, expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare properties; None = no such property. 1 is neither 1.0 nor true."""
    for name in dict.fromkeys([*expected, *actual]):
        if repr(expected.get(name)) != repr(actual.get(name)):
            yield Difference(table, f"{key} {name}", expected.get(name), actual.get(name))


def _differences_of_sums(
    table: str, subject: str, expected: Sums, actual: Sums
) -> list[Difference]:
    """Compare sums; 1 is not 1.0."""
    if actual[0] != expected[0]:
        return [Difference(table, subject, expected[0], actual[0])]
    if repr(actual) != repr(expected):
        return [Difference(table, f"checksums of {subject}", expected[1:], actual[1:])]
    return []
