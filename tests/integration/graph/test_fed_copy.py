"""A copy that grows by many generations, and is asked all the while."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from tests.integration.graph.conftest import Graph, History, Row, random_history
from tests.integration.graph.everything import everything
from tests.integration.graph.test_growth import (
    RUN,
    Growing,
    Question,
    answer,
    in_order,
    load,
    questions,
    removed,
    same,
    some,
)
from tests.support.tables import Batches
from vizpub.graphstore.runs import run_properties
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.clock import OPEN
from vizpub.model.run import Boundary

pytestmark = [pytest.mark.long, pytest.mark.neo4j, pytest.mark.usefixtures("removed")]

__all__ = ["removed"]

FIRST, TICKS, LATEST = 5, 2, 2
"""The last interval of the first generation; ticks of an interval; how many intervals after its
publication a message arrives at the latest."""


@dataclass(frozen=True)
class Fed(History):
    """What is known of a history at the end of an interval, and where appends changed it."""

    boundaries: dict[str, Boundary] = field(default_factory=dict)

    @property
    def tables(self) -> Batches:
        """With the boundaries since all earlier generations."""
        return replace(super().tables, boundaries=self.boundaries)


def known(whole: History, last: int, gap: int) -> Fed:
    """What ends in one of the last `gap` + 1 intervals, or later, is told otherwise: it is open, or
    ended at another time. Copies of messages come some intervals after they were sent.
    """
    rng, end = random.Random(last), (last + 1) * TICKS
    unsure = (last + 1 - gap) * TICKS
    rows: dict[str, list[Row]] = {name: [] for name in whole.rows}
    for name, told in whole.rows.items():
        for row in told:
            if "valid_to" in row and row["valid_from"] < end:
                later = row["valid_to"] >= unsure and row["valid_to"] != OPEN
                rows[name].append(
                    {**row, "valid_to": _told(row, unsure, end, rng)} if later else row
                )
            elif "valid_to" not in row and row.get("interval", 0) + _delay(name, row) <= last:
                rows[name].append(row)
    rows["metrics/overlay"] = [
        row if row["interval"] <= last - gap else {**row, "density": 1 / (last + 1)}
        for row in rows["metrics/overlay"]
    ]
    there = {row["message"] for row in rows["publications"]}
    arrived = {(row["message"], row["peer"]) for row in rows["receptions"]}
    ever = {(row["message"], row["peer"]) for row in whole.rows["receptions"]}
    late = [{"message": message, "peer": peer} for message, peer in sorted(ever - arrived)]
    rows["missed"] = [r for r in [*rows["missed"], *late] if r["message"] in there]
    rows["metrics/messages"] = [
        {**row, "receptions": sum(message == row["message"] for message, _ in arrived)}
        for row in rows["metrics/messages"]
        if row["message"] in there
    ]
    clock = replace(whole.facts.clock, last=last)
    facts = replace(whole.facts, clock=clock, tables=f"until {last}", generation=last - FIRST)
    since = {f"until {n}": boundary(whole, n, gap) for n in range(FIRST, last)}
    return Fed(facts, rows, whole.batch, since)


def _told(row: Row, unsure: int, end: int, rng: random.Random) -> int:
    """When a period ends that may still change."""
    least = max(unsure, row["valid_from"] + 1)
    return OPEN if least > end else rng.choice([OPEN, rng.randint(least, end)])


def _delay(name: str, row: Row) -> int:
    return (row["message"] + row["peer"]) % (LATEST + 1) if name == "receptions" else 0


def boundary(whole: History, last: int, gap: int) -> Boundary:
    """Where what comes after an interval begins to change."""
    final = sum(row["interval"] + LATEST <= last for row in whole.rows["publications"])
    return Boundary((last + 1 - gap) * TICKS, last + 1 - gap, final)


@dataclass
class Readers:
    """Ask what was asked once again and again."""

    graph: Graph
    asked: list[tuple[Growing, Question, object]] = field(default_factory=list)
    other: list[tuple[Question, object, object]] = field(default_factory=list)
    rounds: int = 0

    @contextmanager
    def reading(self, threads: int) -> Iterator[None]:
        """While the block goes on."""
        ended = threading.Event()

        def read(number: int) -> None:
            rng = random.Random(number)
            while not ended.is_set():
                self._ask(rng.choice(self.asked))

        started = [threading.Thread(target=read, args=(n,)) for n in range(threads)]
        for thread in started:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in started:
                thread.join()

    def _ask(self, asked: tuple[Growing, Question, object]) -> None:
        run, question, rows = asked
        try:
            now = answer(self.graph, run, *question)
        except Exception as error:  # in a thread nobody would see it
            now = repr(error)
        self.rounds += 1
        if now != rows:
            self.other.append((question, rows, now))


@pytest.mark.parametrize(
    ("seed", "gap", "partition", "loads"),
    [
        (21, 1, 2, 3),
        pytest.param(22, 0, 0, 100, marks=pytest.mark.long),
        pytest.param(23, 2, 3, 100, marks=pytest.mark.long),
    ],
)
def test_answers_up_to_the_end_stay_through_many_growths(
    graph: Graph, seed: int, gap: int, partition: int, loads: int
) -> None:
    """Each question is asked first of a copy loaded from nothing. Loads skip generations."""
    print("seed", seed)
    rng, lasts = random.Random(seed), [FIRST]
    while len(lasts) <= loads:
        lasts.append(lasts[-1] + rng.choice([1, 1, 1, 2]))
    shape = {"peers": 14, "intervals": lasts[-1] + 1, "ticks": TICKS, "messages": 20 + loads}
    whole = in_order(random_history(seed, name=RUN, **shape))
    fed = [known(whole, last, gap) for last in lasts]
    end = replace(fed[-1], boundaries={})
    load(graph, end, partition)
    asked = {}
    for run in fed[:: max(1, loads // 5)]:
        last = run.facts.clock.last
        growing = Growing(run, end, boundary(whole, last, gap))
        asked[last] = [(growing, q, answer(graph, growing, *q)) for q in some(questions(growing))]
    wanted = everything(graph)
    graph.remove(RUN)
    load(graph, fed[0], partition)
    readers = Readers(graph, asked[lasts[0]])
    with readers.reading(threads=2):
        for run in fed[1:]:
            before = readers.rounds
            assert load(graph, run, partition).grown
            while readers.rounds < before + 4 and not readers.other:
                time.sleep(0.01)
            assert readers.other == []
            readers.asked = readers.asked + asked.get(run.facts.clock.last, [])
    print(readers.rounds, "answers")
    assert readers.other == []
    held = run_properties(graph.driver, graph.database, RUN)
    assert held
    assert held["tables"] == f"until {lasts[-1]}"
    assert verify_run(graph.driver, graph.database, end.facts, end.tables) == []
    same(everything(graph), wanted)
