"""Queries in the user's own Cypher, which can only read the graph.

A READ session keeps the server from writing. It does not keep it from fetching a page for
LOAD CSV, from ending other people's transactions or from calling what an administrator calls,
so a statement's words, and the server's own plan of it, are looked at before it is run
(vizpub.graphstore.ask.judge). What is judged is what is sent: escapes are resolved first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from neo4j import Driver, Result, ResultSummary, Session

from vizpub.graphstore.ask.deadline import Asked, asking
from vizpub.graphstore.ask.judge import ALLOWED, check_plan, check_words
from vizpub.graphstore.ask.queries import Answer, Limits
from vizpub.graphstore.ask.size import check_length, check_size, size_of
from vizpub.graphstore.ask.tokens import plain, tokens
from vizpub.graphstore.runs import open_run
from vizpub.model.errors import Neo4jAnswer, UseError
from vizpub.model.sizes import format_size

NO_CYPHER = "Neo4j cannot parse this"
NO_PROFILE = "PROFILE is not supported here"
TOO_LARGE = "the answer is larger"

_LIMITS = Limits()
"""What a statement may cost where nothing else is said."""

_EXPLAIN = "EXPLAIN\n"
"""On a line of its own, so that the server quotes the user's lines as they are."""

_BATCH = 1000
"""Rows that are handed from the thread that asks at a time."""

_PLACE = re.compile(r"\(line (\d+), column (\d+) \(offset: (\d+)\)\)")


@dataclass
class Stream:
    """Rows of plain values as they come from the server; they can be read once."""

    columns: tuple[str, ...]
    rows: Iterator[list[Any]]
    warnings: tuple[str, ...] = ()
    """What the server says of the statement, such as of a label that no node has."""
    more: bool = False
    """There are more rows than the limit; known when the rows were read."""


def free_text(
    driver: Driver,
    database: str,
    text: str,
    given: Mapping[str, object],
    limits: Limits = _LIMITS,
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
    limits: Limits = _LIMITS,
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
    with judged(driver, database, text, values, limits) as found:
        yield found


@contextmanager
def judged(
    driver: Driver, database: str, text: str, values: dict[str, Any], limits: Limits
) -> Iterator[Stream]:
    """As `streaming`, with values as Neo4j gets them. Raises: likewise."""
    check_length(text)
    text = plain(text)
    words = list(tokens(text))
    check_words(words)
    check_size(words)
    with _in_words(), asking(driver, database, limits.timeout_s, warnings=True) as asked:
        explain = asked.query(_EXPLAIN + text)
        summary = asked.do(lambda session: session.run(explain, values).consume())
        check_plan(summary.plan, summary.query_type)
        result = asked.do(lambda session: session.run(asked.query(text), values))
        found = Stream(tuple(result.keys()), iter(()), _warnings(summary))
        found.rows = _rows(asked, result, found, limits)
        yield found


def _rows(asked: Asked, result: Result, found: Stream, limits: Limits) -> Iterator[list[Any]]:
    """As they come: first one by one, then more at a time. Raises: UseError for large ones."""
    count, left, most = 1, limits.size, limits.rows
    while most is None or most > 0:
        count = count if most is None else min(count, most)
        batch, size = asked.do(partial(_next, result, count, left, limits.size))
        left = left - size if limits.rows else limits.size  # all rows: what is held is bounded
        yield from batch
        if len(batch) < count:
            return
        most = None if most is None else most - count
        count = min(2 * count, _BATCH)
    found.more = bool(asked.do(lambda _: result.peek()))


def _warnings(summary: ResultSummary) -> tuple[str, ...]:
    """One line each."""
    return tuple(
        " ".join(status.status_description.removeprefix("warn: ").split())
        for status in summary.gql_status_objects
        if status.is_notification
    )


def _next(
    result: Result, count: int, left: int, most: int, _: Session
) -> tuple[list[list[Any]], int]:
    """So many rows, and their size. Raises: UseError where less is left of the most bytes."""
    found: list[list[Any]] = []
    size = 0
    for record in islice(result, count):
        found.append(list(record.data().values()))
        size += size_of(found[-1], left - size)
        if size > left:
            raise UseError(f"{TOO_LARGE} than {format_size(most)}: return less of each row")
    return found, size


@contextmanager
def _in_words() -> Iterator[None]:
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
            raise UseError(f"{NO_CYPHER}: {_placed(error.message)}") from error
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
