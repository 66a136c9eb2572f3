"""Load a run: nodes, relationships, labels, check; each batch exactly once.

Every batch is one transaction that also enters the batch into the ledger, under a
uniqueness constraint. Whatever happens to the server or to this process in between,
the same load again enters what is missing and nothing twice: a batch that the ledger
has is done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neo4j import Driver, ManagedTransaction, Session
from neo4j.exceptions import ConstraintError

from vizpub import cypher
from vizpub.graphstore.load.batches import Rows, RunRows, Tables
from vizpub.graphstore.load.growth import grow, in_other_hands
from vizpub.graphstore.load.partitions import Partitions, chosen_partitions
from vizpub.graphstore.load.reading import Census, Reading
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.schema import create_constraints, create_indexes
from vizpub.graphstore.load.steps import Step, parts, passes
from vizpub.graphstore.load.writing import write_rows
from vizpub.graphstore.runs import is_of_other_tables, node_of, partitions_in, run_properties
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.kept_checksums import Kept
from vizpub.graphstore.verify.verify import remedy, verified
from vizpub.model.errors import CheckFailed, RunChanged, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.run import RunFacts

OTHER_TABLES = "was loaded from other tables"


@dataclass(frozen=True)
class LoadSummary:
    """What Neo4j has of a run after its load."""

    run: str
    already_complete: bool
    """The run was there before, whole and equal to its tables: nothing was done."""
    peers: int
    topics: int
    messages: int
    links: int
    receptions: int
    replaced: bool = False
    """A copy made from earlier tables of that name was removed first."""
    grown: bool = False
    """A copy of an earlier generation was there, and got what appends changed."""


def load_run(
    driver: Driver,
    database: str,
    facts: RunFacts,
    tables: Tables,
    progress: Progress | None = None,
    partition_intervals: int | None = None,
) -> LoadSummary:
    """Load a run from its tables, or go on with a load that was interrupted.

    The tables are in the schemas of vizpub.model.tables; those that the run lacks are empty. A run
    that is whole and equal is left alone; a whole copy of an earlier generation grows, where the
    tables know what changed since; one that is half removed, or was made from other tables than
    `facts.tables`, is removed first. `partition_intervals` is the length of its time partitions,
    0 = none, null = by its size; a load that goes on keeps those that it began with.

    Raises: RunChanged, and nothing done, where Neo4j has other tables and so has the run by now;
    UseError where it has, or can have, only other partitions, and where another command removes the
    run meanwhile; CheckFailed where Neo4j and
    the tables differ in the end (an unfinished run stays unfinished); Neo4jUnavailable where the
    connection is lost (the same load again goes on); Neo4jAnswer.
    """
    progress = progress or silent
    reading = Reading.of(tables, facts.clock)
    create_constraints(driver, database)
    there = run_properties(driver, database, facts.name) or {}
    replaced = bool(there) and is_of_other_tables(there, facts)
    as_it_is = partition_intervals in (None, there.get("partition_intervals"))
    if replaced and as_it_is and grow(driver, database, facts, reading, there, progress):
        return _summary(facts.name, reading, grown=True)
    if replaced and not tables.is_current():
        raise RunChanged(facts.name)  # what is there may be newer
    if replaced or there.get("state") == "removing":
        remove_run(driver, database, facts.name, progress)
        there = {}
    complete = there.get("state") == "complete"
    partitions = _partitions(there, facts, tables, partition_intervals)
    census = reading.census(partitions)
    summary = reading.summary(census)
    if not complete:
        with sessions.writing(driver, database) as session:
            _run(session, "run", run=facts.name, facts=node_of(facts, partitions, summary))
            _fill(
                session, facts.name, reading, census, progress, imported=bool(there.get("imported"))
            )
    progress("index", 0, 1)
    create_indexes(driver, database)
    progress("index", 1, 1)
    progress("verify", 0, 1)
    try:
        checksums = _check(driver, database, facts, reading)
    except CheckFailed:
        if complete and not tables.is_current():
            raise RunChanged(facts.name) from None  # another load lets it grow
        raise
    progress("verify", 1, 1)
    if not complete:
        with sessions.writing(driver, database) as session:
            text = checksums.text if checksums else None
            _run(session, "complete", run=facts.name, checksums=text)
    return _summary(facts.name, reading, already_complete=complete, replaced=replaced)


def _summary(
    run: str,
    reading: Reading,
    *,
    already_complete: bool = False,
    replaced: bool = False,
    grown: bool = False,
) -> LoadSummary:
    return LoadSummary(run, already_complete, **reading.counts(), replaced=replaced, grown=grown)


def _partitions(
    there: Mapping[str, Any], facts: RunFacts, tables: Tables, intervals: int | None
) -> Partitions:
    """Those that the run's copy has, or will have. Raises: UseError where others are asked for."""
    if "partition_intervals" not in there:
        return chosen_partitions(facts.clock, tables, intervals)
    found = partitions_in(there, facts.clock)
    if intervals is not None and found != chosen_partitions(facts.clock, tables, intervals):
        raise UseError(
            f"the copy of run '{facts.name}' in Neo4j has time partitions of {found.intervals} "
            f"intervals (0 = none), not of {intervals}; "
            f"recreate it with: vizpub rebuild {facts.name} "
            f"--{'partitioned' if intervals else 'no-partitioned'}"
        )
    return found


_PEERS_PER_BATCH = 10_000


def _fill(
    session: Session,
    run: str,
    reading: Reading,
    census: Census,
    progress: Progress,
    *,
    imported: bool,
) -> None:
    rows = reading.run_rows(run, census.partitions)
    for table, steps in passes(rows).items():
        # What is created vizpub.graphstore.load.bulk did, if it did.
        if mine := [step for step in steps if not (imported and step.creates)]:
            _load_table(session, run, table, mine, reading, progress)
    _label(session, rows, census)


def _load_table(
    session: Session,
    run: str,
    table: str,
    steps: Sequence[Step],
    reading: Reading,
    progress: Progress,
) -> None:
    done, total = 0, reading.rows(table)
    for label, part in parts(reading, table):
        for step in steps:
            if rows := step.rows(part):
                _load_batch(session, run, step, label, rows)
        done += part.num_rows
        progress(f"load {steps[0].statement}", done, total)


def _load_batch(session: Session, run: str, step: Step, label: str, rows: Rows) -> None:
    key = f"{run}|{step.statement}|{label}|{digest(rows)}"
    ledger = {"run": run, "key": key, "rows": len(rows)}
    try:
        sessions.write(session, _write_batch, ledger, run, step, rows)
    except ConstraintError as error:
        raise CheckFailed(
            f"run '{run}' {OTHER_TABLES}",
            [error.message or "", f"recreate it with: vizpub rebuild {run}"],
        ) from error


def _write_batch(
    transaction: ManagedTransaction,
    ledger: dict[str, Any],
    run: str,
    step: Step,
    rows: Rows,
) -> None:
    entry = cypher.statement("load", "ledger").text
    found = transaction.run(entry, ledger)
    if found.single() is None:
        raise in_other_hands(run)
    if found.consume().counters.nodes_created:
        write_rows(transaction, run, step, rows, ledger["key"])


def digest(rows: Rows) -> str:
    """A short digest of a batch's rows; equal rows in equal order have equal digests."""
    text = json.dumps(rows, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _label(session: Session, rows: RunRows, census: Census) -> None:
    _run(session, "label-publishers", run=rows.run)
    for label, peers in census.labels.items():
        for start in range(0, len(peers), _PEERS_PER_BATCH):
            keys = [rows.key(peer) for peer in peers[start : start + _PEERS_PER_BATCH]]
            _run(session, "label-peers", label=label, keys=keys)


def _check(driver: Driver, database: str, facts: RunFacts, reading: Reading) -> Kept | None:
    """The checksums to keep of the tables. Raises: CheckFailed."""
    differences, checksums = verified(driver, database, facts, reading)
    if differences:
        what = f"the copy of run '{facts.name}' in Neo4j differs from its tables"
        raise CheckFailed(what, [*map(str, differences), remedy(facts.name, differences)])
    return checksums


def _run(session: Session, statement: str, **parameters: Any) -> None:
    text = cypher.statement("load", statement).text
    sessions.write(session, lambda t: t.run(text, parameters).consume())
