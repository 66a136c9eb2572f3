"""Questions in the user's own Cypher: they read the graph, and nothing else is done for them.

A READ session keeps the server from writing. It does not keep it from fetching a page for
LOAD CSV, from ending other people's transactions or from calling what an administrator calls,
so the server's own plan of a statement is looked at before it is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from neo4j import Driver, Query, Record, Result, Session

from graphstore import sessions
from graphstore.queries import Answer, Limits
from graphstore.runs import open_run
from model.errors import Neo4jAnswer, UseError

PROCEDURES = frozenset(
    {
        "db.index.fulltext.queryNodes",
        "db.index.fulltext.queryRelationships",
        "db.index.vector.queryNodes",
        "db.index.vector.queryRelationships",
        "db.info",
        "db.labels",
        "db.ping",
        "db.propertyKeys",
        "db.relationshipTypes",
        "db.schema.nodeTypeProperties",
        "db.schema.relTypeProperties",
        "db.schema.visualization",
        "dbms.components",
    }
)
"""What may be called. All others are refused, as also a procedure that only reads may fetch
pages, write files or keep the server busy: which ones there are is up to its plugins."""

_REFUSED = {
    "LoadCSV": "LOAD CSV makes the server fetch files and pages",
    "ShowSettings": "SHOW SETTINGS tells how the server is set up",
    "ShowTransactions": "SHOW TRANSACTIONS tells what others ask",
    "TerminateTransactions": "TERMINATE TRANSACTIONS ends what others do",
    "TransactionApply": "IN TRANSACTIONS has no limits",
    "TransactionForeach": "IN TRANSACTIONS has no limits",
}
"""Operators of a plan that only reads, and what is wrong with them."""

LIMITS = Limits()
"""What a statement may cost where nothing else is said."""

_EXPLAIN = "EXPLAIN\n"
"""On a line of its own, so that the server quotes the user's lines as they are."""

_PLACE = re.compile(r"\(line (\d+), column (\d+) \(offset: (\d+)\)\)")

_ALLOWED = "only statements that read the graph are allowed here"


@dataclass
class Stream:
    """Rows of plain values as they come from the server; they can be read once."""

    columns: tuple[str, ...]
    rows: Iterator[list[Any]]
    more: bool = False
    """There are more rows than the limit; known when the rows were read."""


def free_text(
    driver: Driver,
    database: str,
    text: str,
    given: Mapping[str, object],
    limits: Limits = LIMITS,
) -> Answer:
    """The whole answer of a statement of the user's own. Raises: as `streaming`."""
    with streaming(driver, database, text, given, limits) as found:
        rows = list(found.rows)
    return Answer(found.columns, rows, found.more)


@contextmanager
def streaming(
    driver: Driver,
    database: str,
    text: str,
    given: Mapping[str, object],
    limits: Limits = LIMITS,
) -> Iterator[Stream]:
    """The answer of a statement of the user's own, row by row, for the length of the block.

    A parameter given as text is read as JSON where it is JSON (`7`, `["a", "b"]`,
    `"7"` for the text 7), else as it is. Nodes come as maps of their properties, paths
    as lists. A text given for `$run` is the name of a run, which must be one to ask.

    Raises: UseError where the statement would do more than read the graph, is not Cypher,
    lacks a parameter or takes too long; UnknownName, RunNotComplete, Neo4jUnavailable,
    Neo4jAnswer.
    """
    values = {name: _from_json(value) for name, value in given.items()}
    if isinstance(run := values.get("run"), str):
        open_run(driver, database, run)
    with _in_words(), sessions.reading(driver, database) as session:
        _check(session, text, values, limits)
        result = session.run(Query(text, timeout=limits.timeout_s), values)
        found = Stream(tuple(result.keys()), iter(()))
        found.rows = _rows(result, found, limits)
        yield found


def _rows(result: Result, found: Stream, limits: Limits) -> Iterator[list[Any]]:
    yield from map(_plain, islice(result, limits.rows))
    found.more = next(iter(result), None) is not None


def _plain(record: Record) -> list[Any]:
    return list(record.data().values())


def _check(session: Session, text: str, values: dict[str, Any], limits: Limits) -> None:
    """Raises: UseError where the server's plan does anything but read the graph."""
    summary = session.run(Query(_EXPLAIN + text, timeout=limits.timeout_s), values).consume()
    if summary.query_type != "r" or not summary.plan:
        raise UseError(_ALLOWED)
    for operator, details in _operators(summary.plan):
        if operator in _REFUSED:
            raise UseError(f"{_ALLOWED}: {_REFUSED[operator]}")
        name = details.partition("(")[0]
        if operator == "ProcedureCall" and name not in PROCEDURES:
            raise UseError(f"{_ALLOWED}: {name} is none of the procedures that may be called")


def _operators(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(operator, details) of a plan, from its end to its beginnings."""
    yield plan["operatorType"].partition("@")[0], str(plan["args"].get("Details", ""))
    for child in plan.get("children", ()):
        yield from _operators(child)


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except Neo4jAnswer as error:
        if "AccessMode" in error.code:
            raise UseError(_ALLOWED) from error
        if "execution mode" in error.message:
            raise UseError("a plan cannot be asked for here; leave out PROFILE") from error
        if error.code.startswith(("Neo.ClientError.Statement.", "Neo.ClientError.Procedure.")):
            raise UseError(f"Neo4j does not understand: {_placed(error.message)}") from error
        raise


def _placed(message: str) -> str:
    """What is wrong, and where in the user's own text."""
    return _PLACE.sub(r"(column \2)", message).replace(_EXPLAIN, "")


def _from_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
