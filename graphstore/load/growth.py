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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from neo4j import Driver, ManagedTransaction, Session

from vizpub import cypher
from vizpub.graphstore.load.batches import Rows
from vizpub.graphstore.load.partitions import MOST_PARTITIONS
from vizpub.graphstore.load.reading import Reading
from vizpub.graphstore.load.steps import ROWS_PER_BATCH, RelationshipStep, Step
from vizpub.graphstore.load.writing import Work, write_rows
from vizpub.graphstore.runs import FORMAT, facts_of, node_of, partitions_in
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.comparison import GROWING, SPANS, Copy
from vizpub.graphstore.verify.difference import Difference
from vizpub.graphstore.verify.kept_checksums import Kept, grown, kept
from vizpub.model.errors import CheckFailed, RunChanged, UseError
from vizpub.model.progress import Progress
from vizpub.model.run import Boundary, RunFacts

IN_OTHER_HANDS = "is loaded or removed by another command"

_SETTING = {"Peer": "grow/set-peers", "Interval": "load/interval-metrics"}
"""The statements that change nodes."""


def in_other_hands(run: str) -> UseError:
    """What is raised where another command loads or removes the run."""
    return UseError(
        f"run '{run}' {IN_OTHER_HANDS}; when that has ended, load it again: vizpub load {run}"
    )


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

    Raises: RunChanged, and nothing done, where another load did or may have of later tables;
    UseError where another load grows it, CheckFailed where it differs in the end;
    Neo4jUnavailable (the same again goes on), Neo4jAnswer.
    """
    if (boundary := _boundary(there, facts, reading)) is None:
        return False
    if "grower" in there and not reading.is_current():
        raise RunChanged(facts.name)
    partitions, reading = partitions_in(there, facts.clock), reading.unchecked
    summary = reading.summary(reading.census(partitions))
    levels, layers = (
        sorted({*there.get(name, ()), *summary[name]}) for name in ("levels", "link_layers")
    )
    with sessions.writing(driver, database) as session:
        turns = _Turns(session, facts.name)
        turns.begin(there, levels, layers)
        copy = Copy(driver, database, facts, reading, boundary, {**there, "levels": levels})
        _apply(copy, turns, progress)
        if left := [name for name, differs in copy.left() if differs]:
            raise CheckFailed(
                f"the copy of run '{facts.name}' in Neo4j differs from its tables",
                [f"in {', '.join(left)}", f"recreate it with: vizpub rebuild {facts.name}"],
            )
        node = node_of(facts, partitions, summary)
        turns.do("finish", facts={**node, "checksums": _checksums(copy, there)})
    return True


def _checksums(copy: Copy, there: Mapping[str, Any]) -> str | None:
    """What the copy keeps of the tables from now on."""
    sums = grown(Kept.of(there), copy.reading, copy.run, copy.partitions)
    summary = copy.reading.summary(copy.reading.census(copy.partitions))
    keeps = kept(copy.reading, [sums], copy.partitions, copy.peers_by_label, summary)
    return keeps.text if keeps else None


def _boundary(there: Mapping[str, Any], facts: RunFacts, reading: Reading) -> Boundary | None:
    """Where what a copy lacks begins; null where it is not grown."""
    if there.get("state") != "complete" or there.get("format") != FORMAT:
        return None
    held, now = facts_of(there).clock, facts.clock
    if replace(held, last=now.last) != now or partitions_in(there, now).count > MOST_PARTITIONS:
        return None
    return reading.boundary_since(there.get("tables", ""))


class _Turns:
    """The transactions of a growth."""

    def __init__(self, session: Session, run: str) -> None:
        self._session, self._run = session, run
        self._grower, self._turn = uuid4().hex, 0

    def begin(self, there: Mapping[str, Any], levels: list[int], layers: list[str]) -> None:
        """Widen levels and layers, and keep other growths away. Raises: RunChanged where one has
        begun, or ended, since the Run node had the properties `there`.
        """
        text = cypher.statement("grow", "begin").text
        parameters = {
            "run": self._run,
            "tables": there["tables"],
            "before": there.get("grower", ""),
            "grower": self._grower,
            "levels": levels,
            "layers": layers,
        }
        if self._session.execute_write(lambda t: t.run(text, parameters).single()) is None:
            raise RunChanged(self._run)

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

    def take(self, *works: Work) -> None:
        """Transactions. Raises: UseError where the run is removed, or another load grows it."""
        for work in works:
            self._session.execute_write(self._once, work)
            self._turn += 1

    def _once(self, transaction: ManagedTransaction, work: Work) -> None:
        text = cypher.statement("grow", "turn").text
        parameters = {"run": self._run, "grower": self._grower, "turn": self._turn}
        found = transaction.run(text, parameters).single()
        if found is None or not found["mine"]:
            raise in_other_hands(self._run)
        if found["turn"] == self._turn:
            work(transaction)


def _apply(copy: Copy, turns: _Turns, progress: Progress) -> None:
    steps = ("nodes", *SPANS, "messages", "what ended", "facts")

    def begin(name: str) -> None:
        progress(f"grow {name}", steps.index(name), len(steps))

    begin("nodes")
    for label in GROWING:
        step, missing, _ = copy.nodes(label)
        turns.write(step, missing)
    ended: list[tuple[RelationshipStep, Difference]] = []
    for span, differs in copy.spans():
        begin(span.statement)
        turns.take(*copy.create(span, differs.missing))
        ended.append((span, differs))
    for copies, differs in copy.new_copies():
        turns.write(copies, differs.missing)
        turns.each("delete", "ids", differs.ids)
    begin("messages")
    for change in filter(None, copy.messages()):
        turns.take(partial(change, run=copy.run))
    begin("what ended")
    for span, differs in ended:
        turns.take(*copy.delete(span, differs.surplus))
    begin("facts")
    _change_facts(copy, turns)


def _change_facts(copy: Copy, turns: _Turns) -> None:
    for label, statement in _SETTING.items():
        _, _, changed = copy.nodes(label)
        turns.each(statement, "rows", changed)
    for label, more, fewer in copy.labels():
        turns.each("load/label-peers", "keys", more, label=label)
        turns.each("unlabel-peers", "keys", fewer, label=label)
