"""Grow a run's copy: what appends changed is replaced, by difference, while the run is asked.

Rows before the boundary are as they were. From it on, tables and copy are compared; the copy gets
what it lacks and loses what it has too much. So an incremental load that was interrupted is simply
done again.

Each transaction takes a turn, which is counted on the Run node: it waits for the one before it, is
done once even where the answer to a commit is lost, and fails where another load grows the run.

The order keeps all answers about times that the copy had. A period that closes is created closed,
and the open one is deleted when everything else is there; queries read open periods first, and
count once what they find twice. The last transaction moves the end of the run and its generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from neo4j import Driver, ManagedTransaction, Session

from vizpub import cypher
from vizpub.graphstore.load.batches import Rows
from vizpub.graphstore.load.difference import RelationshipDifference
from vizpub.graphstore.load.growing_copy import GROWING, SPANS, GrowingCopy, Work
from vizpub.graphstore.load.partitions import MOST_PARTITIONS
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.steps import ROWS_PER_BATCH, RelationshipStep, Step, write_rows
from vizpub.graphstore.runs import FORMAT, facts_of, node_of, partitions_in
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.kept_checksums import KeptChecksums, checksums_of_grown_tables
from vizpub.graphstore.verify.verify import differing_copy_error
from vizpub.model.errors import RunChanged, UseError
from vizpub.model.progress import Progress
from vizpub.model.run import Boundary, RunFacts

IN_OTHER_HANDS = "is being loaded or removed by another command"

_CHANGING = {"Peer": "grow/set-peers", "Interval": "load/interval-metrics"}
"""The statements that change nodes."""


def busy_run_error(run: str) -> UseError:
    """Return the error for a run that another command loads or removes."""
    return UseError(
        f"run '{run}' {IN_OTHER_HANDS}; when that has ended, load it again: vizpub neo4j load {run}"
    )


def grow(
    driver: Driver,
    database: str,
    facts: RunFacts,
    reading: TableReader,
    properties: Mapping[str, Any],
    progress: Progress,
) -> bool:
    """Grow the copy of a run, whose Run node has these properties.

    Returns False, with nothing done, if the copy has to be recreated: it is incomplete, or the
    changes since are unknown.

    Raises: RunChanged, with nothing done, if another load grew it to later tables, or may have;
    UseError if another load grows it, CheckFailed if it differs in the end; Neo4jUnavailable (the
    same again goes on), Neo4jAnswer.
    """
    if (boundary := _boundary(properties, facts, reading)) is None:
        return False
    if "grower" in properties and not reading.is_current():
        raise RunChanged(facts.name)
    partitions, reading = partitions_in(properties, facts.clock), reading.without_checksums
    census = reading.census(partitions)
    summary = reading.summary(census)
    levels, layers = (
        sorted({*properties.get(name, ()), *summary[name]}) for name in ("levels", "link_layers")
    )
    with sessions.writing(driver, database) as session:
        turns = _Turns(session, facts.name)
        turns.begin(properties, levels, layers)
        copy = GrowingCopy(
            driver, database, facts, reading, boundary, {**properties, "levels": levels}
        )
        _apply(copy, turns, progress)
        if remaining := [name for name, differs in copy.remaining_differences() if differs]:
            remedy = f"recreate it with: vizpub neo4j rebuild {facts.name}"
            raise differing_copy_error(facts.name, [f"in {', '.join(remaining)}", remedy])
        checksums = checksums_of_grown_tables(
            KeptChecksums.of(properties), reading, facts.name, census, copy.peers_by_label
        )
        node = node_of(facts, partitions, summary)
        text = checksums.text if checksums else None
        turns.do("finish", facts={**node, "checksums": text})
    return True


def _boundary(
    properties: Mapping[str, Any], facts: RunFacts, reading: TableReader
) -> Boundary | None:
    """Return the boundary after which the copy lacks rows; None if it cannot grow."""
    if properties.get("state") != "complete" or properties.get("format") != FORMAT:
        return None
    copied, now = facts_of(properties).clock, facts.clock
    if (
        replace(copied, last=now.last) != now
        or partitions_in(properties, now).count > MOST_PARTITIONS
    ):
        return None
    return reading.boundary_since(properties.get("tables", ""))


class _Turns:
    """The transactions of an incremental load."""

    def __init__(self, session: Session, run: str) -> None:
        self._session, self._run = session, run
        self._grower, self._turn = uuid4().hex, 0

    def begin(self, properties: Mapping[str, Any], levels: list[int], layers: list[str]) -> None:
        """Widen levels and layers, and lock out other incremental loads.

        Raises: RunChanged if one has begun or ended since the Run node had these properties.
        """
        text = cypher.statement("grow", "begin").text
        parameters = {
            "run": self._run,
            "tables": properties["tables"],
            "before": properties.get("grower", ""),
            "grower": self._grower,
            "levels": levels,
            "layers": layers,
        }
        if self._session.execute_write(lambda t: t.run(text, parameters).single()) is None:
            raise RunChanged(self._run)

    def do(self, statement: str, **parameters: Any) -> None:
        """Run one statement of cypher/grow, or of a folder that it names, in a transaction."""
        folder, _, name = statement.rpartition("/")
        text = cypher.statement(folder or "grow", name).text
        self.take([lambda t: t.run(text, {"run": self._run, **parameters}).consume()])

    def each(self, statement: str, name: str, rows: Sequence[Any], **constants: Any) -> None:
        """Run a statement for a parameter in batches, each in a transaction."""
        for start in range(0, len(rows), ROWS_PER_BATCH):
            self.do(statement, **{name: rows[start : start + ROWS_PER_BATCH]}, **constants)

    def write(self, step: Step, rows: Rows) -> None:
        """Create the nodes or relationships of rows, in batches."""
        for start in range(0, len(rows), ROWS_PER_BATCH):
            part, batch = rows[start : start + ROWS_PER_BATCH], f"{step.statement}|{start}"
            self.take([partial(write_rows, run=self._run, step=step, rows=part, batch=batch)])

    def take(self, works: Iterable[Work]) -> None:
        """Run transactions.

        Raises: UseError if the run is being removed, or another load grows it.
        """
        for work in works:
            self._session.execute_write(self._take_turn, work)
            self._turn += 1

    def _take_turn(self, transaction: ManagedTransaction, work: Work) -> None:
        text = cypher.statement("grow", "turn").text
        parameters = {"run": self._run, "grower": self._grower, "turn": self._turn}
        turn = transaction.run(text, parameters).single()
        if turn is None or not turn["mine"]:
            raise busy_run_error(self._run)
        if turn["turn"] == self._turn:
            work(transaction)


def _apply(copy: GrowingCopy, turns: _Turns, progress: Progress) -> None:
    steps = ("nodes", *SPANS, "messages", "what ended", "facts")

    def begin(name: str) -> None:
        progress(f"grow {name}", steps.index(name), len(steps))

    begin("nodes")
    for label in GROWING:
        step, missing, _ = copy.nodes(label)
        turns.write(step, missing)
    ended: list[tuple[RelationshipStep, RelationshipDifference]] = []
    for span, differs in copy.spans():
        begin(span.statement)
        turns.take(copy.create(span, differs.missing))
        ended.append((span, differs))
    for copies, differs in copy.new_copies():
        turns.write(copies, differs.missing)
        turns.each("delete", "ids", differs.ids)
    begin("messages")
    turns.take(copy.messages())
    begin("what ended")
    for span, differs in ended:
        turns.take(copy.delete(span, differs.surplus))
    begin("facts")
    for label, statement in _CHANGING.items():
        _, _, changed = copy.nodes(label)
        turns.each(statement, "rows", changed)
    for label, more, fewer in copy.labels():
        turns.each("load/label-peers", "keys", more, label=label)
        turns.each("unlabel-peers", "keys", fewer, label=label)
