"""The eight readings of time against a loop over the tables, at every tick of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import pytest

from graphstore.ask.parameters import KINDS
from graphstore.ask.queries import ask
from model.clock import OPEN
from model.errors import OutOfRange, UnknownName, UseError
from tests.integration.graph.conftest import Graph, History, Row, random_history

pytestmark = pytest.mark.neo4j

HISTORIES = [
    random_history(44, name="ticks", peers=6, intervals=3, ticks=3),
    pytest.param(random_history(44, peers=5, intervals=8), marks=pytest.mark.long),
]
"""Of even seeds: a tick is a millisecond, so that any tick can be asked for."""

Reading = Callable[[int, int, int, int], bool]
"""Of (valid_from, valid_to, from, to)."""
READINGS: dict[str, Reading] = {
    "lives-from-to": lambda valid_from, valid_to, low, high: valid_from < high and valid_to > low,
    "lives-between": lambda valid_from, valid_to, low, high: valid_from <= high and valid_to > low,
    "lives-contained-in": lambda valid_from, valid_to, low, high: (
        valid_from >= low and valid_to <= high
    ),
    "lives-valid-during": lambda valid_from, valid_to, low, high: (
        valid_from <= low and valid_to >= high
    ),
    "lives-created-in": lambda valid_from, valid_to, low, high: low <= valid_from <= high,
    "lives-deleted-in": lambda valid_from, valid_to, low, high: low <= valid_to <= high,
}


@pytest.fixture(scope="module", params=HISTORIES, ids=lambda h: h.facts.name)
def history(graph: Graph, request: pytest.FixtureRequest) -> Iterator[History]:
    history: History = request.param
    graph.remove(history.facts.name)
    graph.load(history)
    yield history
    graph.remove(history.facts.name)


@pytest.fixture
def answer(graph: Graph, history: History) -> Callable[..., list[list[Any]]]:
    def answer(name: str, **given: object) -> list[list[Any]]:
        return ask(graph.driver, graph.database, name, given, run=history.facts.name).rows

    return answer


def every_tick(history: History) -> range:
    clock = history.facts.clock
    return range((clock.last + 1) * clock.ticks_per_interval)


def as_time(tick: int) -> str:
    return f"{tick}ms"


def lives(
    history: History,
    holds: Callable[[int, int], bool],
    kinds: Sequence[str] = KINDS,
    layers: Sequence[str] | None = None,
) -> list[list[Any]]:
    """What an answer should be, in any order."""
    return [
        [
            kind,
            *_told(history, row),
            row["valid_from"],
            None if row["valid_to"] == OPEN else row["valid_to"],
        ]
        for kind in kinds
        for row in history.rows[kind]
        if holds(row["valid_from"], row["valid_to"])
        and (kind != "links" or layers is None or row["layer"] in layers)
    ]


def as_of(at: int) -> Callable[[int, int], bool]:
    return lambda valid_from, valid_to: valid_from <= at < valid_to


def over(holds: Reading, low: int, high: int) -> Callable[[int, int], bool]:
    return lambda valid_from, valid_to: holds(valid_from, valid_to, low, high)


def _told(history: History, row: Row) -> list[Any]:
    """peer, other, layer, topic."""
    topic = None if row.get("topic") is None else history.topic(row["topic"])
    if "dst" in row:
        return [history.peer(row["src"]), history.peer(row["dst"]), row["layer"], topic]
    return [history.peer(row["peer"]), topic, None, None]


def assert_same(found: list[list[Any]], expected: list[list[Any]], *asked: object) -> None:
    assert sorted(map(repr, found)) == sorted(map(repr, expected)), asked


def test_ticks_cover_the_boundaries_of_each_kind(history: History) -> None:
    """So that each kind begins and ends before, at and after some tick that is asked for."""
    ticks = set(every_tick(history))
    for kind in KINDS:
        spans = [(row["valid_from"], row["valid_to"]) for row in history.rows[kind]]
        assert any(valid_to == OPEN for _, valid_to in spans)
        assert any(
            {valid_from - 1, valid_from, valid_to - 1, valid_to} <= ticks
            for valid_from, valid_to in spans
        )


def test_lives_as_of_each_tick_equal_the_tables(history: History, answer: Any) -> None:
    for at in every_tick(history):
        assert_same(answer("lives-as-of", at=as_time(at)), lives(history, as_of(at)), at)


@pytest.mark.parametrize("name", READINGS)
def test_lives_of_each_stretch_equal_the_tables(history: History, answer: Any, name: str) -> None:
    holds = READINGS[name]
    for low, high in combinations_with_replacement(every_tick(history), 2):
        found = answer(name, **{"from": as_time(low), "to": as_time(high)})
        assert_same(found, lives(history, over(holds, low, high)), low, high)
        assert [row[5] for row in found] == sorted(row[5] for row in found)


def test_lives_all_equals_the_tables(history: History, answer: Any) -> None:
    assert_same(answer("lives-all"), lives(history, lambda valid_from, valid_to: True))


@pytest.mark.parametrize("kinds", [["links"], ["presence", "subscriptions"], [*KINDS]], ids=str)
@pytest.mark.parametrize("layers", [None, ["mesh"]], ids=str)
def test_lives_are_limited_to_kinds_and_layers(
    history: History, answer: Any, kinds: list[str], layers: list[str] | None
) -> None:
    low, high = every_tick(history)[1], every_tick(history)[-2]
    given: dict[str, object] = {"kinds": ",".join(kinds)} | ({"layers": layers} if layers else {})
    stretch = {"from": as_time(low), "to": as_time(high)}
    for name, holds in READINGS.items():
        expected = lives(history, over(holds, low, high), kinds, layers)
        assert_same(answer(name, **given, **stretch), expected, name)
    at_low = lives(history, as_of(low), kinds, layers)
    assert_same(answer("lives-as-of", **given, at=as_time(low)), at_low)
    assert_same(
        answer("lives-all", **given),
        lives(history, lambda valid_from, valid_to: True, kinds, layers),
    )


@pytest.mark.parametrize("name", [*READINGS, "links-between"])
def test_stretch_that_ends_before_it_begins_is_refused(
    history: History, answer: Any, name: str
) -> None:
    with pytest.raises(UseError, match=r"from and to: interval 0 .* is before interval 2"):
        answer(name, **{"from": 2, "to": 0})


def test_wrong_kind_or_time_is_refused(history: History, answer: Any) -> None:
    with pytest.raises(UnknownName, match="no kind 'link'; did you mean links"):
        answer("lives-all", kinds="link")
    with pytest.raises(OutOfRange, match="outside the run"):
        answer("lives-as-of", at="10s")


def test_kind_unknown_to_the_run_is_refused_when_requested(graph: Graph, loaded: Any) -> None:
    history = random_history(46, name="untold", peers=4, intervals=4)
    history.rows["subscriptions"] = []
    known = tuple(sorted(set(history.rows) - {"subscriptions"}))
    loaded(replace(history, facts=replace(history.facts, known=known)))

    def asked(**given: object) -> list[list[Any]]:
        return ask(graph.driver, graph.database, "lives-all", given, run="untold").rows

    assert {row[0] for row in asked()} == {"links", "presence"}
    with pytest.raises(UseError, match="run 'untold' has no data on subscriptions"):
        asked(kinds="links,subscriptions")
