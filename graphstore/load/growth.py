"""Grow a run's copy: what appends changed is replaced, by difference, while the run is asked.

Rows before the boundary are as they were. From it on, tables and copy are compared; the copy gets
what it lacks and loses what it has too much. So a growth that was interrupted is simply done again.

Each transaction takes a turn, which is counted on the Run node: it waits for the one before it, is
done once even where the answer to a commit is lost, and fails where another load grows the run.

The order keeps all answers about times that the copy had. A period that closes is created closed,
and the open one is deleted when everything else is there; queries read open periods first, and
count once what they find twice. The last transaction moves the end of the run and its generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow.compute as pc
from neo4j import Driver, ManagedTransaction, Session

import cypher
from graphstore.ask.periods import ALWAYS, class_ranges
from graphstore.load.batches import Rows
from graphstore.load.difference import (
    Difference,
    Messages,
    Nodes,
    add_nodes,
    changed_nodes,
    difference,
    expected_nodes,
    rows_from,
)
from graphstore.load.reading import Reading
from graphstore.load.steps import ROWS_PER_BATCH, NodeStep, RelationshipStep, Step, passes
from graphstore.load.writing import write_rows
from graphstore.runs import FORMAT, facts_of, node_of, partitions_in
from graphstore.server import sessions
from model.clock import OPEN
from model.errors import CheckFailed, UseError
from model.progress import Progress
from model.run import Boundary, RunFacts

SPANS = ("presence", "subscriptions", "roles", "links")
_OF_MESSAGES = ("published", "published-on", "hops", "arrived-from-unknown", "missed")
_GROWING = ("Topic", "Peer", "Interval")
"""The labels of nodes but messages."""
_SETTING = {"Peer": "grow/set-peers", "Interval": "load/interval-metrics"}
"""The statements that change nodes."""


def grow(
    driver: Driver,
    database: str,
    facts: RunFacts,
    reading: Reading,
    there: Mapping[str, Any],
    progress: Progress,
) -> bool:
    """Grow the copy whose Run node has the properties `there`. False, and nothing done, where it
    has to be made anew: it is not whole, or nobody knows what changed since.

    Raises: UseError where another load grows it, CheckFailed where it differs in the end;
    Neo4jUnavailable (the same again goes on), Neo4jAnswer.
    """
    if (boundary := _boundary(there, facts, reading)) is None:
        return False
    partitions = partitions_in(there, facts.clock)
    summary = reading.summary(reading.census(partitions))
    levels, layers = (
        sorted({*there.get(name, ()), *summary[name]}) for name in ("levels", "link_layers")
    )
    with sessions.writing(driver, database) as session:
        turns = _Turns(session, facts.name)
        turns.begin(levels, layers)
        copy = _Copy(driver, database, facts, reading, boundary, {**there, "levels": levels})
        _apply(copy, turns, progress)
        if left := [name for name, differs in copy.left() if differs]:
            raise CheckFailed(
                f"the copy of run '{facts.name}' in Neo4j differs from its tables",
                [f"in {', '.join(left)}", f"recreate it with: vizpub rebuild {facts.name}"],
            )
        turns.do("finish", facts=node_of(facts, partitions, summary))
    return True


def _boundary(there: Mapping[str, Any], facts: RunFacts, reading: Reading) -> Boundary | None:
    """Where what a copy lacks begins; null where it is not grown."""
    if there.get("state") != "complete" or there.get("format") != FORMAT:
        return None
    held, now = facts_of(there).clock, facts.clock
    if replace(held, last=now.last) != now or partitions_in(there, now).count:
        return None
    return reading.boundary_since(there.get("tables", ""))


class _Turns:
    """The transactions of a growth."""

    def __init__(self, session: Session, run: str) -> None:
        self._session, self._run = session, run
        self._grower, self._turn = uuid4().hex, 0

    def begin(self, levels: list[int], layers: list[str]) -> None:
        """Widen levels and layers, and keep other growths away."""
        text = cypher.statement("grow", "begin").text
        parameters = {
            "run": self._run,
            "grower": self._grower,
            "levels": levels,
            "layers": layers,
        }
        self._session.execute_write(lambda t: t.run(text, parameters).consume())

    def do(self, statement: str, **parameters: Any) -> None:
        """One statement of cypher/grow, or of a folder that it names."""
        folder, _, name = statement.rpartition("/")
        text = cypher.statement(folder or "grow", name).text
        self.take(lambda t: t.run(text, {"run": self._run, **parameters}).consume())

    def each(self, statement: str, name: str, rows: Sequence[Any], **others: Any) -> None:
        """As `do`, batch by batch of a parameter."""
        for start in range(0, len(rows), ROWS_PER_BATCH):
            self.do(statement, **{name: rows[start : start + ROWS_PER_BATCH]}, **others)

    def write(self, step: Step, rows: Rows) -> None:
        """Create what a step makes of rows, batch by batch."""
        for start in range(0, len(rows), ROWS_PER_BATCH):
            part, batch = rows[start : start + ROWS_PER_BATCH], f"{step.statement}|{start}"
            self.take(partial(write_rows, run=self._run, step=step, rows=part, batch=batch))

    def take(self, work: Callable[[ManagedTransaction], object]) -> None:
        """A transaction. Raises: UseError where the run is removed, or another load grows it."""
        self._session.execute_write(self._once, work)
        self._turn += 1

    def _once(
        self, transaction: ManagedTransaction, work: Callable[[ManagedTransaction], object]
    ) -> None:
        text = cypher.statement("grow", "turn").text
        parameters = {"run": self._run, "grower": self._grower, "turn": self._turn}
        found = transaction.run(text, parameters).single()
        if found is None or not found["mine"]:
            raise UseError(
                f"run '{self._run}' is loaded or removed by another command; "
                f"when that has ended, load it again: vizpub load {self._run}"
            )
        if found["turn"] == self._turn:
            work(transaction)


@dataclass(frozen=True)
class _MessageChange:
    """What is to change of some messages."""

    create: NodeStep
    change: NodeStep
    missing: Rows = field(default_factory=list)
    changed: Rows = field(default_factory=list)
    relationships: list[tuple[RelationshipStep, Difference]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or any(d for _, d in self.relationships))

    def __call__(self, transaction: ManagedTransaction, run: str) -> None:
        """Change them, in one transaction."""
        ids = [id for _, differs in self.relationships for id in differs.surplus]
        if ids:
            transaction.run(cypher.statement("grow", "delete").text, {"ids": ids}).consume()
        nodes: list[tuple[Step, Rows]]
        nodes = [(self.create, self.missing), (self.change, self.changed)]
        others = [(step, differs.missing) for step, differs in self.relationships]
        for step, rows in [*nodes, *others]:
            if rows:
                write_rows(transaction, run, step, rows, step.statement)


class _Copy:
    """The copy, compared with the tables from the boundary on."""

    def __init__(
        self,
        driver: Driver,
        database: str,
        facts: RunFacts,
        reading: Reading,
        boundary: Boundary,
        there: Mapping[str, Any],
    ) -> None:
        self._driver, self._database, self.run = driver, database, facts.name
        self._reading, self._boundary = reading, boundary
        self._levels = tuple(there["levels"])
        partitions = partitions_in({}, facts.clock)
        self._census = reading.census(partitions)
        self._rows = reading.run_rows(facts.name, partitions)
        steps = [step for of in passes(self._rows).values() for step in of]
        self._nodes = [step for step in steps if isinstance(step, NodeStep)]
        self._steps = {s.statement: s for s in steps if isinstance(s, RelationshipStep)}
        self._messages = Messages(reading, boundary.message)
        self._end = max(there["messages"], reading.rows("publications"))

    def spans(self) -> Iterator[tuple[RelationshipStep, Difference]]:
        """What differs in relationships with a validity period; of roles in all of them."""
        for name in SPANS:
            least = 0 if name == "roles" else self._boundary.period
            ranges = class_ranges(self._levels, ALWAYS, (least, OPEN))
            step = self._steps[name]
            expected = [
                row
                for rows in rows_from(self._reading, step.table, "valid_to", least)
                for row in step.rows(rows)
            ]
            held = self._ask(name, run=self.run, ranges=ranges)
            yield step, difference(expected, held)

    def nodes(self, label: str) -> tuple[NodeStep, Rows, Rows]:
        """The step that creates nodes of a label, those that lack, and those that differ."""
        steps = [step for step in self._nodes if step.label == label]
        least = self._boundary.interval if label == "Interval" else 0
        expected = expected_nodes(steps, self._reading, least)
        held = self._held(steps[0], [*expected])
        missing = [expected[key] for key in expected if key not in held]
        return steps[0], missing, changed_nodes(expected, held)

    def messages(self) -> Iterator[_MessageChange]:
        """What differs in messages from the boundary on: some messages at a time."""
        create, change = (step for step in self._nodes if step.label == "Message")
        for low, high in self._messages.chunks(self._boundary.message, self._end, ROWS_PER_BATCH):
            expected: Nodes = {}
            for step in (create, change):
                add_nodes(expected, step, self._messages.of(step.table, low, high))
            held = self._held(create, [*expected])
            missing = [expected[key] for key in expected if key not in held]
            at = {"run": self.run, "low": low, "high": high, "keys": [*expected]}
            differing = []
            for name in _OF_MESSAGES:
                step_ = self._steps[name]
                rows = step_.rows(self._messages.of(step_.table, low, high))
                differing.append((step_, difference(rows, self._ask(name, **at))))
            changed = changed_nodes(expected, held)
            yield _MessageChange(create, change, missing, changed, differing)

    def labels(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """Of each label the peers that lack it, and those that have it too much, by key."""
        published = [batch["publisher"] for _, batch in self._reading.row_groups("publications")]
        publishers = {id for ids in published for id in pc.unique(ids).to_pylist()} - {None}
        expected = {**self._census.labels, "Publisher": publishers}
        wanted = {label: {self._rows.key(id) for id in ids} for label, ids in expected.items()}
        peers = map(self._rows.key, range(self._reading.rows("peers")))
        held: dict[str, set[str]] = {}
        for key, labels, _ in self._read_back("peers", [*peers]):
            for label in labels:
                held.setdefault(label, set()).add(key)
        for label in sorted({*wanted, *held} - {"Peer"}):
            now, before = wanted.get(label, set()), held.get(label, set())
            yield label, sorted(now - before), sorted(before - now)

    def left(self) -> Iterator[tuple[str, bool]]:
        """Of each kind whether anything differs."""
        yield from ((step.table, bool(differs)) for step, differs in self.spans())
        for label in _GROWING:
            step, missing, changed = self.nodes(label)
            yield step.table, bool(missing or changed)
        yield "messages", any(self.messages())
        yield "labels", any(add or remove for _, add, remove in self.labels())

    def _held(self, step: NodeStep, keys: list[str]) -> Nodes:
        return {key: found for key, _, found in self._read_back(step.statement, keys)}

    def _read_back(self, statement: str, keys: list[str]) -> Iterator[list[Any]]:
        for start in range(0, len(keys), ROWS_PER_BATCH):
            part = keys[start : start + ROWS_PER_BATCH]
            yield from self._ask(f"verify/{statement}", keys=part)

    def _ask(self, statement: str, **parameters: Any) -> list[list[Any]]:
        folder, _, name = statement.rpartition("/")
        meant = cypher.statement(folder or "grow", name)
        needed = {p.name: parameters[p.name] for p in meant.parameters}
        return sessions.rows(self._driver, self._database, meant.text, needed, 0.0)


def _apply(copy: _Copy, turns: _Turns, progress: Progress) -> None:
    steps = ("nodes", *SPANS, "messages", "what ended", "facts")

    def begin(name: str) -> None:
        progress(f"grow {name}", steps.index(name), len(steps))

    begin("nodes")
    for label in _GROWING:
        step, missing, _ = copy.nodes(label)
        turns.write(step, missing)
    surplus: list[str] = []
    for span, differs in copy.spans():
        begin(span.statement)
        turns.write(span, differs.missing)
        surplus += differs.surplus
    begin("messages")
    for change in filter(None, copy.messages()):
        turns.take(partial(change, run=copy.run))
    begin("what ended")
    turns.each("delete", "ids", surplus)
    begin("facts")
    for label, statement in _SETTING.items():
        _, _, changed = copy.nodes(label)
        turns.each(statement, "rows", changed)
    for label, more, fewer in copy.labels():
        turns.each("load/label-peers", "keys", more, label=label)
        turns.each("unlabel-peers", "keys", fewer, label=label)
