"""Load a run: nodes, relationships, labels, check; each batch exactly once.

Every batch is one transaction that also enters the batch into the ledger, under a uniqueness
constraint. So if the server or this process dies, the same load again enters what is missing, and
nothing twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neo4j import Driver, ManagedTransaction, Record, Session
from neo4j.exceptions import ConstraintError

from vizpub import cypher
from vizpub.graphstore.load.batches import Rows, RunTables
from vizpub.graphstore.load.growth import busy_run_error, grow
from vizpub.graphstore.load.partitions import Partitions, choose_partitions
from vizpub.graphstore.load.reading import Census, TableReader
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.schema import create_constraints, create_indexes
from vizpub.graphstore.load.steps import Step, row_batches, steps_by_table, write_rows
from vizpub.graphstore.runs import has_other_tables, node_of, partitions_in, run_properties
from vizpub.graphstore.server import sessions
from vizpub.graphstore.verify.verify import differing_copy_error, remedy, verify_with_checksums
from vizpub.model.errors import CheckFailed, RunChanged, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.run import RunFacts

OTHER_TABLES = "was loaded from other tables"


@dataclass(frozen=True)
class LoadSummary:
    """What Neo4j has of a run after its load."""

    run: str
    already_complete: bool
    """True if the run was complete and equal to its tables before: nothing was done."""
    peers: int
    topics: int
    messages: int
    links: int
    receptions: int
    replaced: bool = False
    """True if a copy from earlier tables of that name was removed first."""
    grown: bool = False
    """True if a copy of an earlier generation grew by what appends changed."""


def load_run(
    driver: Driver,
    database: str,
    facts: RunFacts,
    tables: RunTables,
    progress: Progress | None = None,
    partition_intervals: int | None = None,
) -> LoadSummary:
    """Load a run from its tables, or go on with an interrupted load.

    The tables are in the schemas of vizpub.model.tables; those that the run lacks are empty. A
    complete and equal copy is left alone. A complete copy of an earlier generation grows, if the
    tables know what changed since. A copy that is half removed, or was made from other tables
    than `facts.tables`, is removed first. `partition_intervals` is the length of time partitions,
    0 = none, None = by the run's size; a load that goes on keeps its own.

    Raises: RunChanged, with nothing done, if Neo4j has other tables, and so has the run by now;
    UseError if the copy has, or can have, only other partitions, or if another command removes
    the run meanwhile; CheckFailed if Neo4j and the tables differ in the end (an unfinished run
    stays unfinished); Neo4jUnavailable if the connection is lost (the same load again goes on);
    Neo4jAnswer.
    """
    progress = progress or silent
    reading = TableReader.of(tables, facts.clock)
    create_constraints(driver, database)
    properties = run_properties(driver, database, facts.name) or {}
    replaced = bool(properties) and has_other_tables(properties, facts)
    chosen = choose_partitions(facts.clock, tables, partition_intervals)
    as_it_is = partition_intervals is None or chosen == partitions_in(properties, facts.clock)
    if replaced and as_it_is and grow(driver, database, facts, reading, properties, progress):
        return LoadSummary(facts.name, False, **reading.counts(), replaced=False, grown=True)
    if replaced and not tables.is_current():
        raise RunChanged(facts.name)  # the copy may be newer
    if replaced or properties.get("state") == "removing":
        remove_run(driver, database, facts.name, progress)
        properties = {}
    complete = properties.get("state") == "complete"
    partitions = _partitions(properties, facts, chosen, partition_intervals)
    census = reading.census(partitions)
    summary = reading.summary(census)
    if not complete:
        with sessions.writing(driver, database) as session:
            _run(session, "run", run=facts.name, facts=node_of(facts, partitions, summary))
            _fill(
                session,
                facts,
                reading,
                census,
                progress,
                imported=bool(properties.get("imported")),
            )
    progress("index", 0, 1)
    create_indexes(driver, database)
    progress("index", 1, 1)
    progress("verify", 0, 1)
    differences, checksums = verify_with_checksums(driver, database, facts, reading)
    if differences and complete and not tables.is_current():
        raise RunChanged(facts.name)  # another load lets it grow
    if differences:
        details = [*map(str, differences), remedy(facts.name, differences)]
        raise differing_copy_error(facts.name, details)
    progress("verify", 1, 1)
    if not complete:
        with sessions.writing(driver, database) as session:
            text = checksums.text if checksums else None
            arguments = {"run": facts.name, "checksums": text, "tables": facts.tables}
            if not _run(session, "complete", **arguments):
                raise busy_run_error(facts.name)
    return LoadSummary(facts.name, complete, **reading.counts(), replaced=replaced, grown=False)


def _partitions(
    properties: Mapping[str, Any], facts: RunFacts, chosen: Partitions, intervals: int | None
) -> Partitions:
    """Return the partitions of the run's copy; those that were chosen if it is new.

    Raises: UseError if it has others than demanded.
    """
    if "partition_intervals" not in properties:
        return chosen
    partitions = partitions_in(properties, facts.clock)
    if intervals is not None and partitions != chosen:
        raise UseError(
            f"the copy of run '{facts.name}' in Neo4j has time partitions of "
            f"{partitions.intervals} intervals (0 = none), not of {intervals}; "
            f"recreate it with: vizpub neo4j rebuild {facts.name} "
            f"--{'partitioned' if intervals else 'no-partitioned'}"
        )
    return partitions


_PEERS_PER_BATCH = 10_000


def _fill(
    session: Session,
    facts: RunFacts,
    reading: TableReader,
    census: Census,
    progress: Progress,
    *,
    imported: bool,
) -> None:
    run = facts.name
    run_rows = reading.run_rows(run, census.partitions)
    for table, all_steps in steps_by_table(census.partitions).items():
        # An import has done the steps that create.
        steps = [step for step in all_steps if not (imported and step.creates)]
        if not steps:
            continue
        done, total = 0, reading.rows(table)
        for label, part in row_batches(reading, table):
            for step in steps:
                if rows := step.rows(run_rows, part):
                    _load_batch(session, facts, step, label, rows)
            done += part.num_rows
            progress(f"load {steps[0].statement}", done, total)
    _run(session, "label-publishers", run=run)
    for label, peers in census.labels.items():
        for start in range(0, len(peers), _PEERS_PER_BATCH):
            keys = [run_rows.key(peer) for peer in peers[start : start + _PEERS_PER_BATCH]]
            _run(session, "label-peers", label=label, keys=keys)


def _load_batch(session: Session, facts: RunFacts, step: Step, label: str, rows: Rows) -> None:
    run = facts.name
    key = f"{run}|{step.statement}|{label}|{digest(rows)}"
    ledger = {"run": run, "key": key, "rows": len(rows), "tables": facts.tables}

    def write(transaction: ManagedTransaction) -> None:
        result = transaction.run(cypher.statement("load", "ledger").text, ledger)
        if result.single() is None:
            raise busy_run_error(run)
        if result.consume().counters.nodes_created:
            write_rows(transaction, run, step, rows, key)

    try:
        sessions.write(session, write)
    except ConstraintError as error:
        raise CheckFailed(
            f"run '{run}' {OTHER_TABLES}",
            [error.message or "", f"recreate it with: vizpub neo4j rebuild {run}"],
        ) from error


def digest(rows: Rows) -> str:
    """Return a short digest of rows; equal rows in equal order have equal digests."""
    text = json.dumps(rows, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _run(session: Session, statement: str, **parameters: Any) -> list[Record]:
    text = cypher.statement("load", statement).text
    return sessions.write(session, lambda t: list(t.run(text, parameters)))
