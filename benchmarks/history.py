"""The cost of each shipped query in runs of one overlay over histories of different lengths."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean, median
from typing import Any

import psutil
from neo4j import Driver, Query

from benchmarks.histories import LAYER, LENGTHS, LongRun
from benchmarks.parts import WORK, Bench
from benchmarks.watched import Json
from vizpub import cypher
from vizpub.graphstore.ask import queries
from vizpub.graphstore.ask.periods import times_of
from vizpub.graphstore.load.partitions import NONE, PARTITION_INTERVALS, partitions_of
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import LoadedRun, open_run
from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.settings import JARS
from vizpub.machine.jvm.artifacts import jar_set
from vizpub.model.errors import CheckFailed, UseError

COMPARED = 1_000
"""In a run of so many intervals it is measured what time partitions cost."""
PLACES = (0.3, 0.5, 0.7)
"""Where in a run a query is asked, as a share of its intervals."""
STRETCH = 10
"""Intervals from the first to the last time of queries with two times."""
REPEATS = 3
"""Warm runs at each place."""
TIMEOUT_S = 30.0
_PATIENCE_S = 3.0
"""So long a query is repeated at a place."""
DATABASE = "neo4j"
HOME = WORK / "history"
_RELATIONSHIPS = "MATCH (n)-[r]->() WHERE n.key STARTS WITH $run + '/' RETURN count(r)"


def measured_queries() -> list[str]:
    """The shipped queries, `history` once for each of its modes: "history as-of", …"""
    modes = {
        name: [word for p in statement(name).parameters if p.name == "mode" for word in p.words]
        for name in queries.query_names()
    }
    return [f"{name} {mode}".strip() for name in modes for mode in modes[name] or [""]]


def statement(name: str) -> cypher.Statement:
    """The query of one of `measured_queries`."""
    return cypher.statement("queries", name.partition(" ")[0])


def history(bench: Bench) -> Json:
    """dbHits and milliseconds of each query by length, with and without time partitions; and
    what it costs to load the runs, one of them without copies too. The size is not looked at:
    these runs have their own.
    """
    del bench
    server = LocalServer(HOME)
    server.remove()
    try:
        loads = {
            "without": _load(server, LongRun(COMPARED), "plain", 0),
            "with": _load(server, LongRun(COMPARED), LongRun(COMPARED).facts.name),
        }
        for run in (LongRun(length) for length in LENGTHS if length != COMPARED):
            _load(server, run, run.facts.name, _lengths(run))
        with connect(server.start()) as driver:
            costs = {name: _by_length(driver, name) for name in measured_queries()}
    finally:
        server.remove()
    return {
        "versions": {"neo4j": jar_set(JARS).version},
        "lengths": [*LENGTHS],
        "compared": COMPARED,
        "loads": loads,
        "queries": costs,
    }


def _lengths(run: LongRun) -> int:
    """Of its time partitions; 0 where it is too short for any."""
    return partitions_of(run.facts.clock).intervals


def _load(
    server: LocalServer, run: LongRun, name: str, partition_intervals: int = PARTITION_INTERVALS
) -> Json:
    """The time it took, the growth of the store, and the number of relationships."""
    bytes_before, facts = _store_bytes(), replace(run.facts, name=name)
    with connect(server.start()) as driver:
        start, cpu = time.monotonic(), _cpu_seconds(server)
        load_run(driver, DATABASE, facts, run, partition_intervals=partition_intervals)
        seconds, cpu = time.monotonic() - start, _cpu_seconds(server) - cpu
        ((relationships,),) = sessions.rows(driver, DATABASE, _RELATIONSHIPS, {"run": name})
    server.stop()  # which writes everything to the store
    return {
        "seconds": round(seconds, 1),
        "cpu": round(cpu, 1),
        "megabytes": round((_store_bytes() - bytes_before) / 1e6, 1),
        "relationships": relationships,
    }


def _cpu_seconds(server: LocalServer) -> float:
    """Processor seconds of this process and the server so far."""
    times = psutil.Process(server.status().pid).cpu_times()
    return time.process_time() + float(times.user + times.system)


def _store_bytes() -> int:
    files = (HOME / "data" / "databases" / DATABASE).rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file())


def _by_length(driver: Driver, name: str) -> Json:
    """`with` and `without` time partitions: dbHits and ms by length; `with` is empty for a
    query that reads none.
    """
    query = statement(name)
    costs: Json = {"with": {}, "without": {}}
    for of in map(LongRun, LENGTHS):
        run = open_run(driver, DATABASE, of.facts.name)
        ways = {"without": replace(run, partitions=NONE)} | ({"with": run} if query.times else {})
        answers = {way: list(_at_places(name, loaded, of)) for way, loaded in ways.items()}
        _require_same(of.facts.name, name, *answers.values())
        for way, asked in answers.items():
            costs[way][of.intervals] = _summary(asked)
    return costs


@dataclass(frozen=True)
class _Asked:
    """A query asked at one place. Null where it ran out of time."""

    hits: int | None = None
    seconds: tuple[float, ...] = ()
    rows: tuple[str, ...] | None = None


def _at_places(name: str, run: LoadedRun, of: LongRun) -> Iterator[_Asked]:
    for place in PLACES:
        text, values = question(name, run, of, place)
        try:
            yield _ask(run, text, values)
        except UseError:
            yield _Asked()
            return  # it would be so at the others too


def question(name: str, run: LoadedRun, of: LongRun, place: float) -> tuple[str, dict[str, Any]]:
    """The text and the values of one of `measured_queries` at a place of a run, without optional
    parameters.
    """
    query = statement(name)
    if not query.parameters:
        return query.text, {}
    at = round(place * of.intervals)
    mode = name.removeprefix(query.name).strip()
    times = times_of(mode)
    arguments: dict[str, object] = {"mode": mode} if mode else {}
    for p in query.parameters:
        if p.type == "tick" and p.optional and p.name not in times:
            continue
        if p.type == "tick":
            arguments[p.name] = at + STRETCH if p.name in ("to", "after") else at
        elif p.type in ("peer", "topic", "message") and not p.optional:
            arguments[p.name] = of.sample(p.type, 0 if p.name == "to" else place)
        elif p.type == "layers" and p.default:
            arguments[p.name] = LAYER
    return queries.prepare(query, arguments, run)


def _ask(run: LoadedRun, text: str, values: Mapping[str, Any]) -> _Asked:
    with sessions.reading(run.driver, run.database) as session:
        profiled = session.run(Query("PROFILE " + text, timeout=TIMEOUT_S), dict(values))
        rows = tuple(sorted(repr(_fixed_places(record.data())) for record in profiled))
        profile = profiled.consume().profile
        assert profile is not None
        seconds: list[float] = []
        while len(seconds) < REPEATS and sum(seconds) < _PATIENCE_S:
            start = time.perf_counter()
            list(session.run(Query(text, timeout=TIMEOUT_S), dict(values)))
            seconds.append(time.perf_counter() - start)
    return _Asked(db_hits(profile), tuple(seconds), rows)


def _fixed_places(row: Mapping[str, Any]) -> object:
    """The part of a row that is determined: among equally short paths, any may be returned."""
    return row["hops"] if "peers" in row and "hops" in row else row


def db_hits(profile: Mapping[str, Any]) -> int:
    """All operators of a profiled plan together."""
    return int(profile.get("dbHits", 0)) + sum(map(db_hits, profile.get("children", ())))


def _require_same(run: str, name: str, *answers_by_way: list[_Asked]) -> None:
    for ways in zip(*answers_by_way, strict=False):
        answers = {asked.rows for asked in ways if asked.rows is not None}
        if len(answers) > 1:
            raise CheckFailed(f"{name} of {run}: time partitions change the answer")


def _summary(answers: list[_Asked]) -> Json | None:
    """Over all places; null where it ran out of time at one of them."""
    hits = [one.hits for one in answers if one.hits is not None]
    if len(hits) < len(answers):
        return None
    milliseconds = 1e3 * median(chain.from_iterable(one.seconds for one in answers))
    return {"hits": round(fmean(hits)), "ms": round(milliseconds, 2)}
