"""Queries in the user's own Cypher, which can only read the graph.

A READ session keeps the server from writing. It does not keep it from fetching a page for
LOAD CSV, from ending other people's transactions or from calling what an administrator calls,
so a statement's words, and the server's own plan of it, are looked at before it is run
(vizpub.graphstore.ask.judge). What is judged is what is sent: escapes are resolved first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from neo4j import Driver, Result, Session

from vizpub.graphstore.ask.deadline import TimedSession
from vizpub.graphstore.ask.judge import ALLOWED, check_plan, check_words
from vizpub.graphstore.ask.queries import Limits
from vizpub.graphstore.ask.size import check_length, check_size, size_of
from vizpub.graphstore.ask.tokens import resolve_escapes, tokens
from vizpub.graphstore.runs import open_run
from vizpub.model.errors import Neo4jAnswer, UseError
from vizpub.model.sizes import format_size
from vizpub.reports.files import strict_json

NO_CYPHER = "Neo4j cannot parse this"
NO_PROFILE = "PROFILE is not supported here"
TOO_LARGE = "the answer is larger"

_LIMITS = Limits()
"""The default limits of a statement."""

_EXPLAIN = "EXPLAIN\n"
"""On a line of its own, so that the server quotes the user's lines as they are."""

_BATCH = 1000
"""Rows that the session's thread hands over at a time."""

_PLACE = re.compile(r"\(line (\d+), column (\d+) \(offset: (\d+)\)\)")


@dataclass
class Stream:
    """Rows of plain values as they come from the server; they can be read once."""

    columns: tuple[str, ...]
    rows: Iterator[list[Any]]
    warnings: tuple[str, ...] = ()
    """The server's warnings, for example of a label that no node has."""
    more: bool = False
    """True if there are more rows than the limit; known after the rows were read."""


@contextmanager
def open_stream(
    driver: Driver,
    database: str,
    text: str,
    arguments: Mapping[str, object],
    limits: Limits = _LIMITS,
) -> Iterator[Stream]:
    """Run a user's own statement and yield its answer, row by row.

    Text arguments are parsed as JSON if they are JSON (`7`, `["a", "b"]`, `"7"` for the
    text 7), except for `$run`. Nodes come as maps of their properties, paths as lists. A text for
    `$run` must name a run that can be queried.

    Raises: UseError if the statement would do more than read the graph, is not Cypher,
    lacks a parameter or takes too long; UnknownName, RunNotComplete, Neo4jUnavailable,
    Neo4jAnswer.
    """
    values = {name: _from_json(value) for name, value in arguments.items()}
    if isinstance(run := arguments.get("run"), str) and not isinstance(values["run"], str | list):
        values["run"] = run  # its name may look like a number
    if isinstance(run := values.get("run"), str):
        open_run(driver, database, run)
    with open_checked_stream(driver, database, text, values, limits) as stream:
        yield stream


@contextmanager
def open_checked_stream(
    driver: Driver, database: str, text: str, values: dict[str, Any], limits: Limits
) -> Iterator[Stream]:
    """Check a statement, run it with Neo4j's values and yield its answer.

    Raises: as `open_stream`.
    """
    check_length(text)
    text = resolve_escapes(text)
    words = list(tokens(text))
    check_words(words)
    check_size(words)
    with (
        _translate_errors(),
        closing(TimedSession(driver, database, limits.timeout_s, warnings=True)) as session,
    ):
        explain = session.query(_EXPLAIN + text)
        summary = session.do(lambda neo4j: neo4j.run(explain, values).consume())
        check_plan(summary.plan, summary.query_type)
        query = session.query(text)
        result = session.do(lambda neo4j: neo4j.run(query, values))
        warnings = tuple(
            " ".join(status.status_description.removeprefix("warn: ").split())
            for status in summary.gql_status_objects
            if status.is_notification
        )
        stream = Stream(tuple(result.keys()), iter(()), warnings)
        stream.rows = _read_rows(session, result, stream, limits)
        yield stream


def _read_rows(
    session: TimedSession, result: Result, stream: Stream, limits: Limits
) -> Iterator[list[Any]]:
    """Read rows in growing batches, so that the first ones come soon.

    Raises: UseError if they are too large.
    """
    count, size_left, rows_left = 1, limits.size, limits.rows
    while rows_left is None or rows_left > 0:
        count = count if rows_left is None else min(count, rows_left)
        batch, size = session.do(partial(_read_batch, result, count, size_left, limits.size))
        size_left = (
            size_left - size if limits.rows else limits.size
        )  # for all rows, limit each batch
        yield from batch
        if len(batch) < count:
            return
        rows_left = None if rows_left is None else rows_left - count
        count = min(2 * count, _BATCH)
    stream.more = bool(session.do(lambda _: result.peek()))


def _read_batch(
    result: Result, count: int, size_left: int, limit: int, _: Session
) -> tuple[list[list[Any]], int]:
    """Read up to `count` rows; return them and their bytes.

    Raises: UseError if they take more than `size_left` of the `limit` bytes.
    """
    rows: list[list[Any]] = []
    size = 0
    for record in islice(result, count):
        rows.append(list(record.data().values()))
        size += size_of(rows[-1], size_left - size)
        if size > size_left:
            raise UseError(f"{TOO_LARGE} than {format_size(limit)}: return less of each row")
    return rows, size


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except Neo4jAnswer as error:
        if "AccessMode" in error.code:
            raise UseError(ALLOWED) from error
        if "execution mode" in error.message:
            raise UseError(f"{NO_PROFILE}; leave it out") from error
        if error.code.endswith(".ParameterMissing"):
            missing = error.message.partition(": ")[2]
            raise UseError(f"no value for ${missing}; give it with -p {missing}=VALUE") from error
        if error.code.startswith(("Neo.ClientError.Statement.", "Neo.ClientError.Procedure.")):
            # Point to the place in the user's own text, which has no EXPLAIN.
            place = _PLACE.sub(r"(column \2)", error.message).replace(_EXPLAIN, "")
            raise UseError(f"{NO_CYPHER}: {place}") from error
        raise


def _from_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return strict_json(value)
    except (ValueError, RecursionError):
        return value
