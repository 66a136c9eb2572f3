"""A copy that grows equals one that is loaded from nothing, and answers as before meanwhile."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.integration.graph.conftest import Calls, Graph, History, Row, random_history
from tests.integration.graph.everything import everything, stored
from tests.support.tables import Batches
from tests.support.words import naming, tells
from vizpub import cypher
from vizpub.cli.commands.neo4j.load import COPY_GROWN
from vizpub.graphstore.ask import queries
from vizpub.graphstore.load.growth import IN_OTHER_HANDS
from vizpub.graphstore.load.transactions import LoadSummary, load_run
from vizpub.graphstore.runs import run_properties
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.clock import OPEN
from vizpub.model.errors import RunChanged, UseError
from vizpub.model.run import Boundary
from vizpub.runstore.manifest import Change, write_manifest
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.neo4j

RUN = "grows"
STEPS = ("nodes", "presence", "links", "messages", "what ended", "facts")
OF_MESSAGES = ("publications", "receptions", "missed", "metrics/messages")


Question = tuple[str, dict[str, object]]


class Interrupted(Exception):
    """What the tests stop a growth with."""


@dataclass(frozen=True)
class Growing:
    """A run at two generations, of which the earlier one is the start of the later one."""

    before: History
    after: History
    boundary: Boundary

    @property
    def tables(self) -> Batches:
        """Those of the later generation."""
        return replace(self.after.tables, boundaries={"before": self.boundary})


def growing(seed: int, gap: int = 0, batch: int = 1_000, **shape: int) -> Growing:
    """A random history, and what was known of it some intervals before its end.

    What ends at the boundary or later was told otherwise then: it was open, or not there, or
    ended at another time; so were the messages from the boundary on.
    """
    print("seed", seed)
    rng = random.Random(seed)
    whole = replace(in_order(random_history(seed, name=RUN, **shape)), batch=batch)
    clock = whole.facts.clock
    k, last = clock.ticks_per_interval, clock.last - 1 - rng.randrange(clock.intervals // 3)
    messages = sum(row["interval"] <= last for row in whole.rows["publications"])
    end, least = (last + 1) * k, max(0, messages - rng.randrange(1, 5))
    boundary = Boundary(end - gap * k, last + 1 - gap, least)
    peers = len(whole.rows["peers"]) - rng.randrange(3)
    rows = {
        name: [row for row in told if _known(row, peers) or not _begins(row, end, boundary)]
        for name, told in whole.rows.items()
    }
    facts = replace(whole.facts, tables="after", generation=1)
    earlier = {name: [*_earlier(told, boundary, end, rng)] for name, told in rows.items()}
    for name, told in earlier.items():
        known = [row for row in told if _known(row, peers)]
        known = [row for row in known if row.get("message", 0) < messages]
        earlier[name] = [row for row in known if row.get("interval", 0) <= last]
    for name in ("receptions", "missed"):
        earlier[name] = [
            row for row in earlier[name] if row["message"] < least or rng.random() < 0.6
        ]
    for name in ("metrics/messages", "metrics/overlay"):
        earlier[name] = [
            row if _is_old(row, boundary) else {**row, "receptions": 99, "density": 0.25}
            for row in earlier[name]
        ]
    then = replace(facts, clock=replace(clock, last=last), tables="before", generation=0)
    return Growing(History(then, earlier, whole.batch), History(facts, rows, whole.batch), boundary)


def in_order(history: History) -> History:
    """The same with messages numbered in the order of their publication, as an ingest does; who
    published them only peers know that are there from the beginning.
    """
    published = sorted(history.rows["publications"], key=lambda row: row["tick"])
    number = {row["message"]: n for n, row in enumerate(published)}
    rows = {
        name: [{**row, "message": number[row["message"]]} for row in history.rows[name]]
        for name in OF_MESSAGES
    }
    for row in rows["publications"]:
        row["publisher"] = row["publisher"] and row["publisher"] % 9
    rows["publications"].sort(key=lambda row: row["message"])
    return replace(history, rows={**history.rows, **rows})


def _known(row: Row, peers: int) -> bool:
    """Whether it names only the first peers."""
    names = ("peer", "src", "dst", "publisher", "previous_hop")
    return all((row.get(name) or 0) < peers for name in names)


def _begins(row: Row, end: int, boundary: Boundary) -> bool:
    """Whether it begins before the tick `end`."""
    return bool(row["valid_from"] < end) if "valid_from" in row else _is_old(row, boundary)


def _is_old(row: Row, boundary: Boundary) -> bool:
    """Whether it lies before the boundary."""
    if "valid_to" in row:
        return bool(row["valid_to"] < boundary.period)
    if "message" in row:
        return bool(row["message"] < boundary.message)
    return "interval" in row and bool(row["interval"] < boundary.interval)


def _earlier(rows: list[Row], boundary: Boundary, end: int, rng: random.Random) -> Iterator[Row]:
    """What was known of rows before the tick `end`; of periods from the boundary on some were
    told to end at other times, or not at all.
    """
    for row in rows:
        if "valid_to" not in row or row["valid_to"] < boundary.period:
            yield row
        elif row["valid_from"] < end:
            least = max(boundary.period, row["valid_from"] + 1)
            other = rng.choice([OPEN, row["valid_to"], rng.randint(least, max(least, end))])
            ended = row["valid_to"] < end
            yield {**row, "valid_to": other if ended or boundary.period < end else OPEN}


def load(graph: Graph, history: History, partition_intervals: int = 0) -> LoadSummary:
    return load_run(
        graph.driver,
        graph.database,
        history.facts,
        history.tables,
        partition_intervals=partition_intervals,
    )


def grow(graph: Graph, run: Growing, stop: str = "") -> LoadSummary:
    """Load the later generation; stop at the beginning of a step."""

    def progress(step: str, done: int, total: int, note: str = "") -> None:
        if step == f"grow {stop}":
            raise Interrupted

    return load_run(graph.driver, graph.database, run.after.facts, run.tables, progress)


@pytest.fixture
def removed(graph: Graph) -> Iterator[None]:
    graph.remove(RUN)
    yield
    graph.remove(RUN)


SEEDS = [
    (5, 3, 2, 2),
    pytest.param(2, 5, 0, 0, marks=pytest.mark.long),
    *(
        pytest.param(*drawn, marks=pytest.mark.long)
        for drawn in product(range(60, 72), (1, 3), (0, 2), (0, 2))
    ),
]
"""Seeds of histories, ticks of an interval, bridged intervals, intervals of a time partition."""


@pytest.mark.usefixtures("removed")
@pytest.mark.parametrize(("seed", "ticks", "gap", "partition"), SEEDS)
def test_grown_copy_equals_one_that_is_loaded_from_nothing(
    graph: Graph, seed: int, ticks: int, gap: int, partition: int
) -> None:
    run = growing(seed, gap, batch=37, ticks=ticks)
    load(graph, run.before, partition)
    ids = kept(graph)
    summary = grow(graph, run)
    assert summary.grown
    assert not summary.replaced
    assert ids & kept(graph)
    assert verify_run(graph.driver, graph.database, run.after.facts, run.tables) == []
    grown = everything(graph)
    assert graph.ask("MATCH (b:LoadBatch) WHERE b.key STARTS WITH $run RETURN b", run=RUN) == []
    graph.remove(RUN)
    load(graph, run.after, partition)
    same(grown, everything(graph))


def kept(graph: Graph) -> set[str]:
    """The relationships that are there."""
    found = graph.ask("MATCH (:Peer {run: $run})-[r]->() RETURN elementId(r)", run=RUN)
    return {id for (id,) in found}


def same(found: Counter[str], wanted: Counter[str]) -> None:
    assert [*(found - wanted)] == [*(wanted - found)] == []


def questions(run: Growing) -> Iterator[Question]:
    """Some of every query, at times and of messages before the boundary."""
    history, boundary = run.before, run.boundary
    k = history.facts.clock.ticks_per_interval
    last = boundary.period // k - 1
    chosen: dict[str, list[object]] = {
        "tick": [0, last // 2, last],
        "peer": [history.peer(p) for p in (0, 3, 7)],
        "topic": [history.topic(t) for t in (1, 2)],
        "message": [row["name"] for row in history.rows["publications"][: boundary.message][:3]],
        "layers": [None, ["mesh"]],
    }
    for name in cypher.names("queries"):
        asked = [p for p in cypher.statement("queries", name).parameters if p.type in chosen]
        for values in product(*(chosen[p.type] for p in asked)):
            given = {p.name: v for p, v in zip(asked, values, strict=True) if v is not None}
            yield from _modes(name, given, last)


WHOLE = {"runs", "missed-messages", "peer-history", "peer-topics", "relays", "duplicates-of-topic",
         "duplicates-by-topic", "tree-depth"}  # fmt: skip
"""Queries of the whole run."""


def _modes(name: str, given: dict[str, object], last: int) -> Iterator[Question]:
    if name in WHOLE or name == "top-relays":
        return
    if name != "history":
        yield name, given
        return
    layers = {n: v for n, v in given.items() if n == "layers"}
    yield name, {"mode": "as-of", "at": last, **layers}
    for mode in ("from-to", "between", "contained-in", "deleted-in", "created-in"):
        yield name, {"mode": mode, "from": last // 2, "to": last, **layers}


def some(asked: Iterable[Question]) -> list[Question]:
    """One of every query, and of every mode of the history."""
    found: dict[tuple[str, object], list[Question]] = defaultdict(list)
    for name, given in asked:
        found[name, given.get("mode")].append((name, given))
    return [of[len(of) * 2 // 3] for of in found.values()]


def answer(graph: Graph, run: Growing, name: str, given: dict[str, object]) -> object:
    """The rows; that a period ends after the boundary is a fact of later."""
    try:
        rows = queries.ask(graph.driver, graph.database, name, given, run=RUN).rows
    except UseError:  # its text also names later times
        return "refused"
    if name in {"shortest-path", "k-shortest-paths"}:  # of equally short ones any is an answer
        return [hops for hops, _ in rows]
    if name in {"history", "links-between"}:
        ended = ((row, row[-1] or OPEN) for row in rows)
        return [[*row[:-1], to if to < run.boundary.period else OPEN] for row, to in ended]
    return rows


@pytest.mark.usefixtures("removed")
def test_second_growth_of_a_run_stops_the_first(graph: Graph) -> None:
    run = growing(6)
    load(graph, run.before)

    def progress(step: str, done: int, total: int, note: str = "") -> None:
        if step == "grow links":
            assert grow(graph, run).grown

    with pytest.raises(UseError, match=naming(f"'{RUN}'", IN_OTHER_HANDS)):
        load_run(graph.driver, graph.database, run.after.facts, run.tables, progress)
    assert verify_run(graph.driver, graph.database, run.after.facts, run.tables) == []


@pytest.mark.usefixtures("removed")
@pytest.mark.parametrize("ended", [True, False])
def test_load_of_earlier_tables_leaves_a_growth_alone(graph: Graph, ended: bool) -> None:
    """While it looks at the run, or has looked, another load lets the copy grow further."""
    run = growing(12)
    load(graph, run.before)
    facts = replace(run.before.facts, tables="between")
    earlier = replace(run.before.tables, boundaries={"before": run.boundary}, current=False)

    def load_earlier(tables: Batches) -> None:
        with pytest.raises(RunChanged):
            load_run(graph.driver, graph.database, facts, tables)

    def progress(step: str, done: int, total: int, note: str = "") -> None:
        if step == "grow links":
            load_earlier(earlier)

    if ended:
        load_earlier(Overtaken(**vars(earlier), overtake=lambda: grow(graph, run)))
    else:
        load_run(graph.driver, graph.database, run.after.facts, run.tables, progress)
    assert verify_run(graph.driver, graph.database, run.after.facts, run.tables) == []


@dataclass(frozen=True)
class Overtaken(Batches):
    """Tables, of which another load has later ones as soon as they are asked for a boundary."""

    overtake: Callable[[], object] = print

    def boundary_since(self, tables: str) -> Boundary | None:
        self.overtake()
        return super().boundary_since(tables)


@pytest.mark.usefixtures("removed")
def test_copy_grows_by_an_append_that_changed_no_table(graph: Graph) -> None:
    run = growing(13).before
    load(graph, run, 2)
    clock, messages = run.facts.clock, len(run.rows["publications"])
    end = Boundary((clock.last + 1) * clock.ticks_per_interval, clock.last + 1, messages)
    facts = replace(run.facts, tables="after", generation=1, protocol="told later")
    tables = replace(run.tables, boundaries={"before": end})
    assert load_run(graph.driver, graph.database, facts, tables).grown
    assert verify_run(graph.driver, graph.database, facts, tables) == []


@pytest.mark.usefixtures("removed")
def test_commands_name_the_generation_that_a_copy_holds(
    neo4j_server: Connection, tmp_path: Path
) -> None:
    run = growing(7)
    before = stored(run.before, tmp_path / "before")
    after = stored(run.after, tmp_path / "after")
    appended(after, before, run)
    assert Calls(tmp_path / "before", neo4j_server)("neo4j", "load", RUN).exit_code == 0
    vizpub = Calls(tmp_path / "after", neo4j_server)
    assert [row["neo4j"] for row in vizpub.json("runs", "list")] == ["behind"]
    assert vizpub("neo4j", "verify", RUN, "--full").exit_code == 1
    behind = vizpub("neo4j", "verify", RUN)
    assert behind.exit_code == 0
    tells(behind.stderr, "generation 0", "1", f"vizpub neo4j load {RUN}")
    loaded = vizpub("neo4j", "load", RUN)
    tells(loaded.stderr, f"'{RUN}'", COPY_GROWN)
    assert vizpub("neo4j", "verify", RUN).exit_code == 0
    assert [row["neo4j"] for row in vizpub.json("runs", "list")] == ["complete"]


@pytest.mark.usefixtures("removed")
def test_load_that_follows_goes_on_after_a_failure_and_lets_the_copy_grow(
    neo4j_server: Connection, tmp_path: Path
) -> None:
    run, runs = growing(8), tmp_path / "followed/runs"
    before = stored(run.before, tmp_path / "before")
    after = stored(run.after, tmp_path / "after")
    appended(after, before, run)
    vizpub = Calls(tmp_path / "followed", neo4j_server)
    command = [
        sys.executable,
        "-m",
        "vizpub.cli",
        "--log-format",
        "json",
        "neo4j",
        "load",
        RUN,
        "--follow",
    ]
    runs.parent.mkdir()
    with subprocess.Popen(
        command, env={**os.environ, **vizpub.environment}, stdin=PIPE, stderr=PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stderr

        def outcome() -> dict[str, object]:
            process.stdin.write("\n")
            process.stdin.flush()
            told = map(json.loads, process.stderr)
            return next(one for one in told if "loaded" in one or one["level"] == "error")

        assert outcome()["error"] == "UnknownName"
        for workspace in ("before", "after"):
            runs.unlink(missing_ok=True)
            runs.symlink_to(tmp_path / workspace / "runs")
            assert outcome()["loaded"] == RUN
            assert vizpub("neo4j", "verify", RUN).exit_code == 0
        process.stdin.close()
        assert process.wait(60) == 0


def appended(after: StoredRun, before: StoredRun, run: Growing, window: int = 64) -> None:
    """Write down that the run was appended to."""
    change = Change(before.manifest.identity, run.boundary)
    options = {"message_window": window}
    made = replace(after.manifest, generation=1, boundaries=(change,), options=options)
    write_manifest(after.directory, made)


@pytest.mark.usefixtures("removed")
def test_answers_about_messages_that_appends_change_are_provisional(
    graph: Graph, neo4j_server: Connection, tmp_path: Path
) -> None:
    """By the tables and by the copy; nothing is said of a run before its first append."""
    run = growing(11)
    before = stored(run.before, tmp_path / "before")
    after = stored(run.after, tmp_path / "after")
    arrived = {row["message"] for row in run.after.rows["receptions"]}
    early, *_, late = (p for p in run.after.rows["publications"] if p["message"] in arrived)
    last, settled = run.after.facts.clock.last, early["interval"]
    assert settled < late["interval"]
    vizpub = Calls(tmp_path / "before", neo4j_server)
    assert vizpub("neo4j", "load", RUN).exit_code == 0
    asked = [("message", RUN), ("query", RUN, "dissemination-tree")]
    for words in asked:
        assert vizpub.json(*words, early["name"])
        assert "provisional" not in vizpub(*words, early["name"]).output
    appended(after, before, run, window=last - settled)
    vizpub = Calls(tmp_path / "after", neo4j_server)
    assert vizpub("neo4j", "load", RUN).exit_code == 0
    held, (shown,) = (
        run_properties(graph.driver, graph.database, RUN),
        vizpub.json("runs", "show", RUN),
    )
    assert held
    assert {(of["final"], of["settled"]) for of in (held, shown)} == {(last, settled)}
    for words in asked:
        assert "provisional" not in vizpub(*words, early["name"]).output
        said = f"after interval {settled} are provisional"
        assert said in vizpub(*words, late["name"]).stderr
        rows = vizpub.json(*words, late["name"])
        assert rows
        assert all(row["provisional"] is True for row in rows)
    for words in (
        ["metrics", RUN, "messages"],
        ["runs", "summary", RUN],
        ["export", "csv", RUN, "receptions"],
    ):
        assert said in vizpub(*words).stderr
    assert "provisional" not in vizpub("metrics", RUN, "--columns", "links").stderr


@pytest.mark.long
@pytest.mark.usefixtures("removed")
def test_copy_whose_generation_is_unknown_is_made_anew(graph: Graph) -> None:
    run = growing(9, peers=6, intervals=6)
    load(graph, run.before)
    summary = load(graph, run.after)
    assert (summary.replaced, summary.grown) == (True, False)
    assert verify_run(graph.driver, graph.database, run.after.facts, run.tables) == []
