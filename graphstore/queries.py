"""Ask a run one of the shipped queries, or a database a question of one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from neo4j import Driver, Query

import cypher
from graphstore import parameters, sessions
from graphstore.runs import open_run
from model.errors import Neo4jAnswer, UnknownName, UseError


@dataclass(frozen=True)
class Limits:
    """What a question may cost."""

    timeout_s: float = 30.0
    rows: int | None = None
    """Rows of the answer at most; null = all."""


@dataclass(frozen=True)
class Answer:
    """Rows of plain values."""

    columns: tuple[str, ...]
    rows: list[list[Any]]
    more: bool = False
    """There were more rows than the limit."""


def query_names() -> list[str]:
    """The shipped queries."""
    return cypher.names("queries")


def shipped(name: str) -> cypher.Statement:
    """A shipped query with its header. Raises: UnknownName."""
    try:
        return cypher.statement("queries", name)
    except KeyError:
        raise UnknownName("query", name, query_names(), "vizpub query --help") from None


def ask(
    driver: Driver,
    database: str,
    name: str,
    given: Mapping[str, object],
    *,
    run: str | None = None,
    limits: Limits = Limits(),
) -> Answer:
    """The answer of a shipped query. `given` holds its parameters, as text or as values.

    Peers, topics and messages are given by name, times as an interval number or a time
    from the epoch, `levels` and `run` not at all (graphstore.parameters).

    Raises: UnknownName, RunNotComplete, OutOfRange, UseError for anything else that is
    wrong with the question or takes too long, and where the run's source does not tell
    what the query needs; Neo4jUnavailable, Neo4jAnswer.
    """
    query = shipped(name)
    parameters.check_names(query, given)
    values: dict[str, Any] = {}
    if query.parameters:
        if run is None:
            raise UseError(f"query {name} asks a run: say which")
        loaded = open_run(driver, database, run)
        loaded.facts.check_known(*query.needs)
        values = parameters.values(query, given, loaded)
    return _answer(driver, database, query.text, values, limits)


def runs(driver: Driver, database: str) -> Answer:
    """The runs, also those that cannot be asked yet."""
    return ask(driver, database, "runs", {})


def free_text(
    driver: Driver,
    database: str,
    text: str,
    given: Mapping[str, object],
    limits: Limits = Limits(),
) -> Answer:
    """The answer of a reading statement of the user's own.

    A parameter given as text is read as JSON where it is JSON (`7`, `["a", "b"]`,
    `"7"` for the text 7), else as it is. Nodes come as maps of their properties, paths
    as lists.

    Raises: UseError where the statement would write, is not Cypher, lacks a parameter or
    takes too long; Neo4jUnavailable, Neo4jAnswer.
    """
    values = {name: _from_json(value) for name, value in given.items()}
    try:
        return _answer(driver, database, text, values, limits)
    except Neo4jAnswer as error:
        if "AccessMode" in error.code:
            raise UseError("only statements that read are allowed here") from error
        if error.code.startswith("Neo.ClientError.Statement."):
            raise UseError(f"Neo4j does not understand: {error.message}") from error
        raise


def _from_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _answer(
    driver: Driver, database: str, text: str, values: dict[str, Any], limits: Limits
) -> Answer:
    with sessions.reading(driver, database) as session:
        result = session.run(Query(text, timeout=limits.timeout_s), values)
        columns = tuple(result.keys())
        last = None if limits.rows is None else limits.rows + 1
        rows = [list(record.data().values()) for record in islice(result, last)]
    return Answer(columns, rows[: limits.rows], last is not None and len(rows) == last)
