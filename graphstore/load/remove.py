"""Remove a run, in batches; a half removed run answers nothing and can be removed again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
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
"""Nodes of one batch whose outgoing relationships are removed."""

_NODES = ("peer", "topic", "message", "interval", "ledger")
"""The order of removal. Their relationships are removed first, so a batch of nodes is a small
transaction. The ledger comes last but the run: as long as any rows are there, it lists them."""


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
        for rows in chain([0], _remove_batches(session, run, peers, messages)):
            done += rows
            text = f"{done:,} of {total:,} nodes and relationships"
            progress("remove", done, total, text)
        _run(session, "run", run=run)


def _remove_batches(session: Session, run: str, peers: int, messages: int) -> Iterator[int]:
    """Remove batch by batch; yield the number of relationships or nodes of each."""
    for statement, nodes in (("from-peers", peers), ("from-messages", messages)):
        for low in range(0, nodes, NODES_PER_CHUNK):
            high = min(low + NODES_PER_CHUNK, nodes) - 1
            yield from _repeat(session, statement, run=run, low=low, high=high)
    for statement in _NODES:
        yield from _repeat(session, statement, run=run)


def _repeat(session: Session, statement: str, **parameters: Any) -> Iterator[int]:
    """Repeat a statement until it finds less than a full batch; yield the size of each."""
    rows = ROWS_PER_BATCH
    while rows == ROWS_PER_BATCH:
        ((rows,),) = _run(session, statement, limit=ROWS_PER_BATCH, **parameters)
        yield rows


def _run(session: Session, statement: str, **parameters: Any) -> list[list[Any]]:
    text = cypher.statement("remove", statement).text

    def work(transaction: ManagedTransaction) -> list[list[Any]]:
        return [record.values() for record in transaction.run(text, parameters)]

    return sessions.write(session, work)
