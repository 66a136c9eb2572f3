"""Run a shipped query on a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from neo4j import Driver, Session

from vizpub import cypher
from vizpub.graphstore.ask import parameters
from vizpub.graphstore.ask.deadline import asking
from vizpub.graphstore.load.partitions import narrowed
from vizpub.graphstore.runs import LoadedRun, open_run
from vizpub.model.errors import UnknownName, UseError

_TRIES = 20
"""How often a query is asked while a copy grows. Each growth has few transactions."""


@dataclass(frozen=True)
class Limits:
    """What a query may cost."""

    timeout_s: float = 30.0
    rows: int | None = None
    """Rows of the answer at most; null = all."""
    size: int = 64 * 2**20
    """Bytes of the rows at most, about as JSON; of as many as there may be."""


@dataclass(frozen=True)
class Answer:
    """Rows of plain values."""

    columns: tuple[str, ...]
    rows: list[list[Any]]
    more: bool = False
    """There were more rows than the limit."""
    provisional: str = ""
    """What to say where appends may still change it; empty = nothing."""


def query_names() -> list[str]:
    """The shipped queries."""
    return cypher.names("queries")


def shipped(name: str) -> cypher.Statement:
    """A shipped query with its header. Raises: UnknownName."""
    try:
        return cypher.statement("queries", name)
    except KeyError:
        raise UnknownName("query", name, query_names(), "vizpub query") from None


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
    from the epoch, `levels` and `run` not at all (vizpub.graphstore.ask.parameters).

    Raises: UnknownName, RunNotComplete, OutOfRange, UseError for anything else that is
    wrong with the question or takes too long, and where the run's source does not report
    what the query needs; Neo4jUnavailable, Neo4jAnswer.
    """
    query = shipped(name)
    parameters.check_names(query, given)
    if not query.parameters:
        return _answer(driver, database, query.text, {}, limits)
    if run is None:
        raise UseError(f"query {name} needs a run: name one")
    return _settled(driver, database, query, given, run, limits)


def _settled(
    driver: Driver,
    database: str,
    query: cypher.Statement,
    given: Mapping[str, object],
    run: str,
    limits: Limits,
) -> Answer:
    """The answer from one state of a copy: where the copy has grown meanwhile, ask again.

    A read sees what is committed while it goes on. A period could be missed that closes behind it
    as an open one, and was created before it as a closed one of a class that it did not know of.
    """
    loaded = open_run(driver, database, run)
    for _ in range(_TRIES):
        text, values = prepared(query, given, loaded)
        answer = _answer(driver, database, text, values, limits)
        answer = replace(answer, provisional=_provisional(query, values, loaded))
        before, loaded = loaded, open_run(driver, database, run)
        if loaded.state == before.state:
            break
    return answer


def _provisional(query: cypher.Statement, values: Mapping[str, Any], run: LoadedRun) -> str:
    """Of an answer about messages that an append may add to."""
    if query.messages is None or not run.facts.provisional():
        return ""
    if not query.messages:
        return run.facts.provisional()
    return run.facts.provisional(
        run.facts.clock.interval_of(_tick(query, query.messages, values, run))
    )


def prepared(
    query: cypher.Statement, given: Mapping[str, object], run: LoadedRun
) -> tuple[str, dict[str, Any]]:
    """The text and the values that Neo4j gets.

    Raises: as `ask`.
    """
    run.facts.check_known(*query.needs)
    values = parameters.values(query, given, run)
    if not run.partitions.count:
        return query.text, values
    ticks = {name: _tick(query, name, values, run) for name in chain.from_iterable(query.times)}
    stretches = [(ticks[first], ticks[last]) for first, last in query.times]
    return narrowed(query.text, run.partitions, stretches), values


def _tick(query: cypher.Statement, name: str, values: Mapping[str, Any], run: LoadedRun) -> int:
    """The time that a parameter stands for: itself, or when the message was published."""
    value = values[name]
    if next(p.type for p in query.parameters if p.name == name) == "message":
        ((*_, value),) = run.rows("read", "message", message=value)
    return int(value)


def runs(driver: Driver, database: str) -> Answer:
    """The runs, also those that cannot be asked yet."""
    return ask(driver, database, "runs", {})


def _answer(
    driver: Driver, database: str, text: str, values: dict[str, Any], limits: Limits
) -> Answer:
    def answer(session: Session) -> Answer:
        result = session.run(asked.query(text), values)
        columns = tuple(result.keys())
        last = None if limits.rows is None else limits.rows + 1
        rows = [list(record.data().values()) for record in islice(result, last)]
        return Answer(columns, rows[: limits.rows], last is not None and len(rows) == last)

    with asking(driver, database, limits.timeout_s) as asked:
        return asked.do(answer)
