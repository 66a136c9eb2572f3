"""Checks that Neo4j's copy of a run equals its tables: all of it, and nothing more.

Nodes are read back and compared property by property; relationships, of which there may be
millions, by their number and checksums that both sides compute over what they say. What no table
knows of shows in the numbers of nodes by label, of their properties, and of what is linked to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.load.batches import Batch, Tables, part_of
from vizpub.graphstore.load.partitions import Partitions, of_copies
from vizpub.graphstore.load.reading import Reading
from vizpub.graphstore.load.schema import index_states, wanted_indexes
from vizpub.graphstore.load.steps import NodeStep, node_steps, parts
from vizpub.graphstore.runs import State, node_of, run_properties
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.checksums import CHECKED, Checksums, Sums
from vizpub.graphstore.verify.kept_checksums import WHOLE, Kept, add_nodes, kept
from vizpub.model.clock import Clock
from vizpub.model.errors import Neo4jAnswer
from vizpub.model.own import with_own
from vizpub.model.run import RunFacts
from vizpub.model.tables import table as table_of

_NO_TIMEOUT = 0.0
_SHOWN = 5
_RUN, _SCHEMA = "run", "schema"
"""What is no table: the node of the run with all that hangs on it, and the indexes."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as the run has it."""

    table: str
    """`run` = the run as a whole, `schema` = indexes and constraints."""
    what: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"{self.table}: {self.what}: should be {self.expected}, is {self.found} in Neo4j"


def remedy(run: str, differences: Sequence[Difference]) -> str:
    """What to do about them."""
    if all(difference.table == _SCHEMA for difference in differences):
        return f"create the missing parts with: vizpub load {run}"
    return f"recreate it with: vizpub rebuild {run}"


def verify_run(driver: Driver, database: str, facts: RunFacts, tables: Tables) -> list[Difference]:
    """The differences between Neo4j's copy of a run and its tables; none where they are equal.

    A node is the run's if its key or its property `run` names the run. Of each all labels and
    properties are compared, and at most five differing nodes of a table are named. A
    relationship is the run's if it begins or ends at such a node, or is found by an index that
    begins with the run; all that it says is compared. Where an index or a constraint is missing
    or does not answer, only that is reported. The ledger of loads is left out, and the run's
    state, in any of which it can be verified.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    return verified(driver, database, facts, Reading.of(tables, facts.clock))[0]


def verified(
    driver: Driver, database: str, facts: RunFacts, reading: Reading
) -> tuple[list[Difference], Kept | None]:
    """As verify_run, and the checksums that it made of the tables."""
    there = run_properties(driver, database, facts.name) or {}
    verification = _Verification(
        driver, database, facts, reading, partitions_told(there, facts.clock)
    )
    differences = list(verification.differences(there))
    return differences, verification.kept


class Comparison:
    """Asks a copy what it has of a run, and says where that is not what is expected."""

    def __init__(self, driver: Driver, database: str, run: str, partitions: Partitions) -> None:
        """Asks nothing yet."""
        self._driver, self._database = driver, database
        self._name, self._partitions = run, partitions
        self._there: dict[str, int] = {}
        """How many relationships each statement of CHECKED found."""

    def _schema(self) -> Iterator[Difference]:
        states = index_states(self._driver, self._database)
        for index in wanted_indexes():
            if (state := states.get(index, "missing")) != "ONLINE":
                yield Difference(_SCHEMA, str(index), "ONLINE", state)

    def _relationships(
        self, statement: str, expected: Sums, words: Mapping[str, object]
    ) -> Iterator[Difference]:
        """Of those that a statement checks; layers, roles and topics are `words` to it."""
        self._there[statement] = expected[0]
        told = Told(CHECKED[statement], f"relationships {statement}")
        for found in self._sums_of(statement, told, **words):
            if isinstance(found, Difference):
                yield found
            else:
                self._there[statement] = found[0]
                yield from told.differences(expected, found)

    def _sums_of(
        self, statement: str, told: Told, **parameters: object
    ) -> Iterator[Sums | Difference]:
        """What a statement finds, or that it cannot compute with it."""
        try:
            yield from self._ask(statement, run=self._name, **parameters)
        except Neo4jAnswer as error:
            if not error.code.endswith(("TypeError", "ArithmeticError")):
                raise
            yield Difference(told.table, told.what, "whole numbers", error.message)

    def _named(self) -> Iterator[Difference]:
        """Relationships that name the run and are between nodes of others."""
        for statement, rows in self._ask("named", run=self._name):
            if rows != self._there[statement]:
                what = f"relationships {statement} that name the run"
                yield Difference(CHECKED[statement], what, self._there[statement], rows)

    def _counts(
        self, nodes: Mapping[str, int], properties: Mapping[str, int], tables: Mapping[str, str]
    ) -> Iterator[Difference]:
        """Of nodes by label, of what they have and of what is linked to them; a label that is
        not among `properties` is not judged by these.
        """
        there, values, linked = (Counter[str]() for _ in range(3))
        for labels, count, had, begin, end in self._ask("nodes", run=self._name):
            there.update(dict.fromkeys(labels or ["of no label"], count))
            values.update(dict.fromkeys(labels, had))
            linked.update(begin=begin, end=end)
        for label in sorted({*nodes, *there}):
            table, count = tables.get(label, _RUN), nodes.get(label, 0)
            if count != there[label]:
                yield Difference(table, f"nodes {label}", count, there[label])
            elif properties.get(label) not in (None, values[label]):
                what = f"properties of nodes {label}"
                yield Difference(table, what, properties[label], values[label])
        known = sum(self._there.values())
        for way in ("begin", "end"):
            if linked[way] != known:
                yield Difference(_RUN, f"relationships that {way} at its nodes", known, linked[way])

    def _ask(self, statement: str, **parameters: Any) -> list[list[Any]]:
        # A copy in a partition that the run does not have is one relationship too many: _counts.
        text = of_copies(cypher.statement("verify", statement).text, self._partitions)
        return sessions.rows(self._driver, self._database, text, parameters, _NO_TIMEOUT)


@dataclass(frozen=True)
class Told:
    """What sums are about."""

    table: str
    what: str

    def differences(self, expected: Sums, found: Sums) -> Iterator[Difference]:
        """Between sums; 1 is not 1.0."""
        if found[0] != expected[0]:
            yield Difference(self.table, self.what, expected[0], found[0])
        elif repr(found) != repr(expected):
            what = f"checksums of {self.what}"
            yield Difference(self.table, what, expected[1:], found[1:])


def partitions_told(there: Mapping[str, Any], clock: Clock) -> Partitions:
    """The partitions that a Run node tells of; any other value is reported as a difference."""
    length = there.get("partition_intervals")
    return Partitions(clock, length if type(length) is int else 0)


class _Verification(Comparison):
    """One comparison. What is expected in total is counted as rows are read."""

    def __init__(
        self,
        driver: Driver,
        database: str,
        facts: RunFacts,
        reading: Reading,
        partitions: Partitions,
    ) -> None:
        super().__init__(driver, database, facts.name, partitions)
        self._facts, self._reading = facts, reading
        self._rows = reading.run_rows(facts.name, partitions)
        self._steps = node_steps(self._rows)
        self._census = reading.census(partitions)
        self._of_messages = Checksums(partitions)
        self._properties: Counter[str] = Counter()
        """How many the nodes of a label have."""
        self._told: set[str] = set()
        """Labels whose nodes differ, reported one by one."""
        self._labels: dict[str, frozenset[int]] = {}
        """The peers of each label but their own."""
        self.kept: Kept | None = None
        """What the tables say in sum; null before they were read."""

    def differences(self, there: Mapping[str, Any]) -> Iterator[Difference]:
        """Takes the properties of the Run node."""
        if missing := list(self._schema()):
            # Nothing is asked without them: it would take long, or be refused.
            yield from missing
            return
        yield from self._run(there)
        peers, *others = self._steps
        for step in others:
            yield from self._nodes(step)
        # Now that the messages were read it is known who published.
        labels = {**self._census.labels, "Publisher": self._of_messages.publishers}
        self._labels = {label: frozenset(ids) for label, ids in labels.items()}
        yield from self._nodes(peers)
        for statement, table in CHECKED.items():
            sums = self._sums(table)
            words = {"layers": sums.layers, "roles": sums.roles, "topics": self._rows.topics}
            yield from self._relationships(statement, sums.of(statement), words)
        yield from self._named()
        yield from self._count()
        yield from self._keep(there)

    def _keep(self, there: Mapping[str, Any]) -> Iterator[Difference]:
        sums = (self._census.checksums, self._of_messages)
        summary = self._reading.summary(self._census)
        self.kept = kept(self._reading, sums, self._partitions, self._labels, summary)
        held = there.get("checksums")
        if held is not None and (self.kept is None or held != self.kept.text):
            yield Difference(_RUN, "checksums that are kept", "those of the tables", "others")

    def _count(self) -> Iterator[Difference]:
        tables = {step.label: step.table for step in self._steps if step.creates}
        expected = {label: self._reading.rows(table) for label, table in tables.items()}
        expected |= {label: len(ids) for label, ids in self._labels.items()} | {"Run": 1}
        tables |= dict.fromkeys(self._labels, "peers")
        properties = {label: n for label, n in self._properties.items() if label not in self._told}
        yield from self._counts(expected, properties, tables)

    def _sums(self, table: str) -> Checksums:
        return self._of_messages if table == "publications" else self._census.checksums

    def _run(self, there: Mapping[str, Any]) -> Iterator[Difference]:
        if not there:
            yield Difference(_RUN, self._facts.name, "a node", "no node")
            return
        expected = node_of(self._facts, self._partitions, self._reading.summary(self._census))
        state = there.get("state")
        expected["state"] = state if state in get_args(State) else "complete"
        if state == "loading" and there.get("imported"):
            expected["imported"] = True
        expected["checksums"] = there.get("checksums")  # compared when the tables were read
        yield from differences_of(_RUN, self._facts.name, expected, there)

    def _nodes(self, step: NodeStep) -> list[Difference]:
        """Of the nodes of a step; what else its rows become goes to the checksums."""
        others = self._others(step)
        found: list[Difference] = []
        for label, part in parts(self._reading, step.table):
            name = "" if step.table in WHOLE else part_of(label)
            self._of_messages.add(step.table, part, name)
            nodes = add_nodes(self._of_messages, step, part, name)
            values = sum(len(column) - column.null_count for column in nodes.columns)
            # A step that adds to nodes repeats their key.
            self._properties[step.label] += values - (0 if step.creates else len(nodes))
            if len(found) < _SHOWN:
                found += self._node_differences(step, nodes, others)
        if found:
            self._told.add(step.label)
        return found[:_SHOWN]

    def _others(self, step: NodeStep) -> set[str]:
        """What other steps say of the nodes of a step; all else on the nodes is of the first."""
        if not step.creates:
            return set()
        added = [s.table for s in self._steps if not s.creates and s.label == step.label]
        own = self._facts.own
        return {name for table in added for name in with_own(table_of(table), own).names[1:]}

    def _node_differences(
        self, step: NodeStep, nodes: Batch, others: set[str]
    ) -> Iterator[Difference]:
        keys = nodes["key"].to_pylist()
        there = {key: values for key, *values in self._ask(_READ_BACK[step.statement], keys=keys)}
        for row in nodes.to_pylist():
            key = row["key"]
            if key not in there:
                yield Difference(step.table, key, "a row", "no node")
                continue
            labels, found = there[key]
            if step.creates:
                if (expected := self._labels_of(step, row)) != (labels := sorted(labels)):
                    yield Difference(step.table, f"{key} labels", expected, labels)
                found = {name: found[name] for name in found if name not in others}
            else:
                found = {name: found.get(name) for name in row}
            yield from differences_of(step.table, key, row, found)

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
    table: str, key: str, expected: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[Difference]:
    """Between properties; null = there is none. 1 is neither 1.0 nor true."""
    for name in dict.fromkeys([*expected, *found]):
        if repr(expected.get(name)) != repr(found.get(name)):
            yield Difference(table, f"{key} {name}", expected.get(name), found.get(name))
