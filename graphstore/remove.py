"""Remove a run, in batches; a half removed run answers nothing and can be removed again."""

from __future__ import annotations

from neo4j import Driver, Query

import cypher
from graphstore import sessions
from graphstore.runs import run_names
from model.errors import UnknownName
from model.progress import Progress, silent

_ORDER = (
    *("link", "hop", "reached", "present", "subscribes", "plays", "published", "on"),
    # The relationships are gone, so that a batch of nodes is a small transaction.
    *("peer", "topic", "message", "interval"),
    # The ledger last but the run: it says what was loaded as long as any of it is there.
    *("ledger", "run"),
)


def remove_run(driver: Driver, database: str, run: str, progress: Progress | None = None) -> None:
    """Remove a run in any state from Neo4j; its run store is left alone.

    Raises: UnknownName, Neo4jUnavailable (the same again goes on), Neo4jAnswer.
    """
    progress = progress or silent
    with sessions.writing(driver, database) as session:
        if not session.run(_query("begin"), run=run).values():
            raise UnknownName("run", run, run_names(driver, database), "vizpub query runs")
        for done, name in enumerate(_ORDER):
            progress("remove", done, len(_ORDER))
            session.run(_query(name), run=run).consume()
    progress("remove", len(_ORDER), len(_ORDER))


def _query(name: str) -> Query:
    # Batches commit one by one inside one transaction, which lasts as long as they all do.
    return Query(cypher.statement("remove", name).text, timeout=0)
