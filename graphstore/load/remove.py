"""Remove a run, in batches; a half removed run answers nothing and can be removed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neo4j import Driver, ManagedTransaction, Session

from vizpub import cypher
from vizpub.graphstore.runs import run_names
from vizpub.graphstore.server import sessions
from vizpub.model.errors import UnknownName
from vizpub.model.progress import Progress, silent

ROWS_PER_BATCH = 10_000
"""Relationships or nodes of one transaction at most."""

NODES_PER_CHUNK = 1_000
"""Number of nodes per batch whose outgoing relationships are looked for."""

_NODES = ("peer", "topic", "message", "interval", "ledger")
"""Their relationships are gone before them, so that a batch of nodes is a small transaction.
The ledger is last but the run: it says what was loaded as long as any of it is there."""


def remove_run(driver: Driver, database: str, run: str, progress: Progress | None = None) -> None:
    """Remove a run in any state from Neo4j; its run store is left alone.

    `progress` counts relationships and nodes. Every batch is a transaction of its own:
    whatever dies, the same again removes what is left.

    Raises: UnknownName, Neo4jUnavailable (the same again goes on), Neo4jAnswer.
    """
    progress = progress or silent
    with sessions.writing(driver, database) as session:
        if not _run(session, "begin", run=run):
            raise UnknownName("run", run, run_names(driver, database), "vizpub query runs")
        ((peers, messages, total),) = _run(session, "rows", run=run)
        done = 0
        progress("remove", done, total, _told(done, total))
        for rows in _batches(session, run, peers, messages):
            done += rows
            progress("remove", done, total, _told(done, total))
        _run(session, "run", run=run)


def _told(done: int, total: int) -> str:
    return f"{done:,} of {total:,} nodes and relationships"


def _batches(session: Session, run: str, peers: int, messages: int) -> Iterator[int]:
    """Removes batch by batch: how many relationships or nodes each was."""
    for statement, nodes in (("from-peers", peers), ("from-messages", messages)):
        for low in range(0, nodes, NODES_PER_CHUNK):
            high = min(low + NODES_PER_CHUNK, nodes) - 1
            yield from _all(session, statement, run=run, low=low, high=high)
    for statement in _NODES:
        yield from _all(session, statement, run=run)


def _all(session: Session, statement: str, **parameters: Any) -> Iterator[int]:
    """A statement again and again, until less than a batch was left to it."""
    rows = ROWS_PER_BATCH
    while rows == ROWS_PER_BATCH:
        ((rows,),) = _run(session, statement, limit=ROWS_PER_BATCH, **parameters)
        yield rows


def _run(session: Session, statement: str, **parameters: Any) -> list[list[Any]]:
    text = cypher.statement("remove", statement).text

    def work(transaction: ManagedTransaction) -> list[list[Any]]:
        return [record.values() for record in transaction.run(text, parameters)]

    return sessions.write(session, work)
