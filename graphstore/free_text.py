"""Questions in the user's own Cypher: they read the graph, and nothing else is done for them.

A READ session keeps the server from writing. It does not keep it from fetching a page for
LOAD CSV, from ending other people's transactions or from calling what an administrator calls,
so a statement's words, and the server's own plan of it, are looked at before it is run
(graphstore.judge). What is judged is what is sent: escapes are resolved first.
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
from graphstore.judge import ALLOWED, check_plan, check_words
from graphstore.queries import Answer, Limits
from graphstore.runs import open_run
from graphstore.tokens import plain, tokens
from model.errors import Neo4jAnswer, UseError

LIMITS = Limits()
"""What a statement may cost where nothing else is said."""

_EXPLAIN = "EXPLAIN\n"
"""On a line of its own, so that the server quotes the user's lines as they are."""

_PLACE = re.compile(r"\(line (\d+), column (\d+) \(offset: (\d+)\)\)")


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
    text = plain(text)
    check_words(list(tokens(text)))
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
    check_plan(summary.plan, summary.query_type)


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except Neo4jAnswer as error:
        if "AccessMode" in error.code:
            raise UseError(ALLOWED) from error
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
