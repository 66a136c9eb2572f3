"""A copy that grows equals one that is loaded from nothing, and answers as before meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import pytest

import cypher
from graphstore.ask import queries
from graphstore.load.transactions import LoadSummary, load_run
from graphstore.load.verify import verify_run
from graphstore.runs import run_properties
from model.clock import OPEN
from model.errors import UseError
from model.run import Boundary
from tests.integration.graph.conftest import Graph, History, Row, random_history
from tests.integration.graph.everything import everything
from tests.support.tables import Batches

pytestmark = pytest.mark.neo4j

RUN = "grows"
STEPS = ("nodes", "presence", "links", "messages", "what ended", "facts")
OF_MESSAGES = ("publications", "receptions", "missed", "metrics/messages")


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


def growing(seed: int, gap: int = 0, **shape: int) -> Growing:
    """A random history, and what was known of it some intervals before its end.

    What ends at the boundary or later was told otherwise then: it was open, or not there, or
    ended at another time; so were the messages from the boundary on.
    """
    print("seed", seed)
    rng = random.Random(seed)
    whole = random_history(seed, name=RUN, **shape)
    clock = whole.facts.clock
    k, last = clock.ticks_per_interval, clock.last - 1 - rng.randrange(clock.intervals // 3)
    end, first_new, named = (last + 1) * k, rng.randrange(8, 16), rng.randrange(2, 6)
    boundary = Boundary(end - gap * k, last + 1 - gap, max(0, first_new - named))
    of = len(whole.rows["peers"])
    peers = of - rng.randrange(3)
    rows = {
        name: [
            row for row in told if _is_before(row, boundary, peers) or not _is_old(row, boundary)
        ]
        for name, told in whole.rows.items()
    }
    whole = replace(whole, rows=rows, facts=replace(whole.facts, tables="after", generation=1))
    earlier = {name: [*_earlier(name, told, end, rng)] for name, told in rows.items()}
    earlier = {
        name: [
            row
            for row in told
            if _known(row, peers) and row.get("message", 0) < first_new
            and row.get("interval", 0) <= last and row.get("peer", 0) < peers
        ]
        for name, told in earlier.items()
    }  # fmt: skip
    for name in OF_MESSAGES[1:3]:
        earlier[name] = [
            row for row in earlier[name] if row["message"] < boundary.message or rng.random() < 0.6
        ]
    for name in ("metrics/messages", "metrics/overlay"):
        earlier[name] = [
            row if _is_old(row, boundary) else {**row, "receptions": 99, "density": 0.25}
            for row in earlier[name]
        ]
    facts = replace(whole.facts, clock=replace(clock, last=last), tables="before", generation=0)
    return Growing(History(facts, earlier, whole.batch), whole, boundary)


def _known(row: Row, peers: int) -> bool:
    names = ("peer", "src", "dst", "publisher", "previous_hop")
    return all((row.get(name) or 0) < peers for name in names)


def _is_old(row: Row, boundary: Boundary) -> bool:
    """Whether it lies before the boundary."""
    if "valid_to" in row:
        return bool(row["valid_to"] < boundary.period)
    if "message" in row:
        return bool(row["message"] < boundary.message)
    return "interval" not in row or bool(row["interval"] < boundary.interval)


def _is_before(row: Row, boundary: Boundary, peers: int) -> bool:
    """Whether it names nobody who came later."""
    table_of_peers = "name" in row and "peer" in row
    return table_of_peers or _known(row, peers)


def _earlier(name: str, rows: list[Row], end: int, rng: random.Random) -> Iterator[Row]:
    """What was known of rows before the tick `end`."""
    for row in rows:
        if "valid_to" not in row or row["valid_to"] < end:
            yield row
        elif row["valid_from"] < end:
            yield {**row, "valid_to": OPEN}


def load(graph: Graph, history: History) -> LoadSummary:
    return load_run(graph.driver, graph.database, history.facts, history.tables)


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
    (2, 5, 0),
    *(pytest.param(*p, marks=pytest.mark.long) for p in product(range(60, 80), (1, 3), (0, 2))),
]


@pytest.mark.usefixtures("removed")
@pytest.mark.parametrize(("seed", "ticks", "gap"), SEEDS)
def test_grown_copy_equals_one_that_is_loaded_from_nothing(
    graph: Graph, seed: int, ticks: int, gap: int
) -> None:
    run = growing(seed, gap, ticks=ticks)
    load(graph, run.before)
    ids = kept(graph)
    summary = grow(graph, run)
    assert summary.grown
    assert not summary.replaced
    assert ids & kept(graph)
    assert verify_run(graph.driver, graph.database, run.after.facts, run.tables) == []
    grown = everything(graph)
    assert graph.ask("MATCH (b:LoadBatch) WHERE b.key STARTS WITH $run RETURN b", run=RUN) == []
    graph.remove(RUN)
    load(graph, run.after)
    same(grown, everything(graph))


def kept(graph: Graph) -> set[str]:
    """The relationships that are there."""
    found = graph.ask("MATCH (:Peer {run: $run})-[r]->() RETURN elementId(r)", run=RUN)
    return {id for (id,) in found}


def same(found: Counter[str], wanted: Counter[str]) -> None:
    assert [*(found - wanted)] == [*(wanted - found)] == []


def questions(run: Growing) -> Iterator[tuple[str, dict[str, object]]]:
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


WHOLE = {"runs", "peer-history", "peer-topics", "relays", "duplicates-of-topic",
         "duplicates-by-topic", "tree-depth"}  # fmt: skip
"""Queries of the whole run."""


def _modes(
    name: str, given: dict[str, object], last: int
) -> Iterator[tuple[str, dict[str, object]]]:
    if name in WHOLE or name == "top-relays":
        return
    if name != "history":
        yield name, given
        return
    layers = {n: v for n, v in given.items() if n == "layers"}
    yield name, {"mode": "as-of", "at": last, **layers}
    for mode in ("from-to", "between", "contained-in", "deleted-in", "created-in"):
        yield name, {"mode": mode, "from": last // 2, "to": last, **layers}


def answer(graph: Graph, name: str, given: dict[str, object]) -> object:
    try:
        return queries.ask(graph.driver, graph.database, name, given, run=RUN).rows
    except UseError as error:
        return str(error)


@pytest.mark.usefixtures("removed")
@pytest.mark.parametrize(
    "steps", [("what ended",), pytest.param(STEPS, marks=pytest.mark.long)], ids=["one", "all"]
)
def test_answers_before_the_boundary_stay_while_a_copy_grows(
    graph: Graph, steps: tuple[str, ...]
) -> None:
    run = growing(3, peers=16)
    load(graph, run.before)
    asked = [*questions(run)]
    asked = asked[:: max(1, len(asked) // (150 * len(steps)))]
    before = [answer(graph, *question) for question in asked]
    assert {name for name, _ in asked} > {"history", "topics", "overlay", "degree-change"}
    for step in steps:
        with pytest.raises(Interrupted):
            grow(graph, run, step)
        for question, rows in zip(asked, before, strict=True):
            assert answer(graph, *question) == rows, (step, question)
        held = run_properties(graph.driver, graph.database, RUN)
        assert held
        assert held["tables"] == "before"
    assert grow(graph, run).grown
    for question, rows in zip(asked, before, strict=True):
        if question[0] != "links-between" and question[0] != "history":
            assert answer(graph, *question) == rows, question


@pytest.mark.usefixtures("removed")
def test_growth_stopped_at_each_step_goes_on(graph: Graph) -> None:
    run = growing(4)
    load(graph, run.before)
    for step in STEPS:
        with pytest.raises(Interrupted):
            grow(graph, run, step)
    assert grow(graph, run).grown
    grown = everything(graph)
    graph.remove(RUN)
    load(graph, run.after)
    same(grown, everything(graph))
