"""Run a shipped query on a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from neo4j import Driver, Session

from vizpub import cypher
from vizpub.graphstore.ask import parameters
from vizpub.graphstore.ask.deadline import TimedSession
from vizpub.graphstore.load.partitions import narrow_to_partitions
from vizpub.graphstore.runs import LoadedRun, open_run
from vizpub.model.errors import UnknownName, UseError

_TRIES = 20
"""Attempts at a query while a copy grows; an incremental load has few transactions."""


@dataclass(frozen=True)
class Limits:
    """Limits of a query's time and answer."""

    timeout_s: float = 30.0
    rows: int | None = None
    """Rows of the answer at most; null = all."""
    size: int = 64 * 2**20
    """Bytes of the rows at most, about as JSON."""


@dataclass(frozen=True)
class Answer:
    """Rows of plain values."""

    columns: tuple[str, ...]
    rows: list[list[Any]]
    more: bool = False
    """True if there were more rows than the limit."""
    provisional: str = ""
    """A note if appends may still change the answer; empty if not."""


def query_names() -> list[str]:
    """Return the names of the shipped queries."""
    return cypher.names("queries")


def shipped_query(name: str) -> cypher.Statement:
    """Return a shipped query with its header. Raises: UnknownName."""
    try:
        return cypher.statement("queries", name)
    except KeyError:
        raise UnknownName("query", name, query_names(), "vizpub query") from None


def ask(
    driver: Driver,
    database: str,
    name: str,
    arguments: Mapping[str, object],
    *,
    run: str | None = None,
    limits: Limits = Limits(),
) -> Answer:
    """Run a shipped query. `arguments` holds its parameters, as text or as values.

    Name peers, topics and messages; give times as an interval number or a time from the
    epoch; leave out `levels` and `run` (vizpub.graphstore.ask.parameters).

    Raises: UnknownName, RunNotComplete, OutOfRange, UseError if anything else is wrong with
    the question, it takes too long, or the run's source does not report what the query
    needs; Neo4jUnavailable, Neo4jAnswer.
    """
    query = shipped_query(name)
    parameters.check_names(query, arguments)
    if not query.parameters:
        return _answer(driver, database, query.text, {}, limits)
    if run is None:
        raise UseError(f"query {name} needs a run: name one")
    return _ask_stable(driver, database, query, arguments, run, limits)


def _ask_stable(
    driver: Driver,
    database: str,
    query: cypher.Statement,
    arguments: Mapping[str, object],
    run: str,
    limits: Limits,
) -> Answer:
    """Run a query on one state of a copy: repeat it if the copy has grown meanwhile."""
    # A read sees what is committed while it runs. It could miss a period that an incremental load
    # closes: the open one may be gone when it gets there, and the closed one be of a new class.
    loaded = open_run(driver, database, run)
    for _ in range(_TRIES):
        text, values = prepare(query, arguments, loaded)
        answer = _answer(driver, database, text, values, limits)
        answer = replace(answer, provisional=_provisional(query, values, loaded))
        previous, loaded = loaded, open_run(driver, database, run)
        if loaded.state == previous.state:
            break
    return answer


def _provisional(query: cypher.Statement, values: Mapping[str, Any], run: LoadedRun) -> str:
    """Return the note on an answer that an append may change, or nothing."""
    if query.messages is None or not run.facts.provisional():
        return ""
    if not query.messages:
        return run.facts.provisional()
    return run.facts.provisional(
        run.facts.clock.interval_of(_tick(query, query.messages, values, run))
    )


def prepare(
    query: cypher.Statement, arguments: Mapping[str, object], run: LoadedRun
) -> tuple[str, dict[str, Any]]:
    """Return the text and the values for Neo4j. Raises: as `ask`."""
    run.facts.check_known(*query.needs)
    values = parameters.values(query, arguments, run)
    if not run.partitions.count:
        return query.text, values
    ticks = {name: _tick(query, name, values, run) for name in chain.from_iterable(query.times)}
    stretches = [(ticks[first], ticks[last]) for first, last in query.times]
    return narrow_to_partitions(query.text, run.partitions, stretches), values


def _tick(query: cypher.Statement, name: str, values: Mapping[str, Any], run: LoadedRun) -> int:
    """Return a parameter's time: the tick itself, or that of the message's publication."""
    value = values[name]
    if next(p.type for p in query.parameters if p.name == name) == "message":
        ((*_, value),) = run.rows("read", "message", message=value)
    return int(value)


def _answer(
    driver: Driver, database: str, text: str, values: dict[str, Any], limits: Limits
) -> Answer:
    def read(neo4j: Session) -> Answer:
        result = neo4j.run(session.query(text), values)
        columns = tuple(result.keys())
        last = None if limits.rows is None else limits.rows + 1
        rows = [list(record.data().values()) for record in islice(result, last)]
        return Answer(columns, rows[: limits.rows], last is not None and len(rows) == last)

    with closing(TimedSession(driver, database, limits.timeout_s)) as session:
        return session.do(read)
