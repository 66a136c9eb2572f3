"""The modes of `history` against a loop over the tables, at every tick of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import pytest

from tests.integration.graph.conftest import Graph, History, Row, random_history
from tests.support.few import few
from tests.support.words import naming, unknown
from vizpub.graphstore.ask.parameters import KINDS, MISSING
from vizpub.graphstore.ask.queries import ask
from vizpub.model.clock import OPEN
from vizpub.model.errors import OutOfRange, UnknownName, UseError
from vizpub.model.run import NO_DATA

pytestmark = pytest.mark.neo4j

HISTORIES = [
    random_history(44, name="ticks", peers=6, intervals=3, ticks=3),
    pytest.param(random_history(44, peers=5, intervals=8), marks=pytest.mark.long),
]
"""Of even seeds: a tick is a millisecond, so that any tick can be asked for."""

Window = Callable[[int, int, int, int], bool]
"""Whether a mode selects (valid_from, valid_to) in the window (from, to)."""
WINDOWS: dict[str, Window] = {
    "from-to": lambda valid_from, valid_to, low, high: valid_from < high and valid_to > low,
    "between": lambda valid_from, valid_to, low, high: valid_from <= high and valid_to > low,
    "contained-in": lambda valid_from, valid_to, low, high: valid_from >= low and valid_to <= high,
    "valid-during": lambda valid_from, valid_to, low, high: valid_from <= low and valid_to >= high,
    "created-in": lambda valid_from, valid_to, low, high: low <= valid_from <= high,
    "deleted-in": lambda valid_from, valid_to, low, high: low <= valid_to <= high,
}


@pytest.fixture(params=HISTORIES, ids=lambda h: h.facts.name)
def history(once: Callable[[History], History], request: pytest.FixtureRequest) -> History:
    return once(request.param)


@pytest.fixture
def answer(graph: Graph, history: History) -> Callable[..., list[list[Any]]]:
    def answer(mode: str, **given: object) -> list[list[Any]]:
        given["mode"] = mode
        return ask(graph.driver, graph.database, "history", given, run=history.facts.name).rows

    return answer


def every_tick(history: History) -> range:
    clock = history.facts.clock
    return range((clock.last + 1) * clock.ticks_per_interval)


def as_time(tick: int) -> str:
    return f"{tick}ms"


def periods(
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


def over(holds: Window, low: int, high: int) -> Callable[[int, int], bool]:
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


def test_history_as_of_each_tick_equals_the_tables(history: History, answer: Any) -> None:
    for at in every_tick(history):
        assert_same(answer("as-of", at=as_time(at)), periods(history, as_of(at)), at)


@pytest.mark.parametrize("mode", WINDOWS)
def test_history_of_each_window_equals_the_tables(history: History, answer: Any, mode: str) -> None:
    holds = WINDOWS[mode]
    for low, high in combinations_with_replacement(every_tick(history), 2):
        found = answer(mode, **{"from": as_time(low), "to": as_time(high)})
        assert_same(found, periods(history, over(holds, low, high)), low, high)
        assert [row[5] for row in found] == sorted(row[5] for row in found)


def test_history_of_all_equals_the_tables(history: History, answer: Any) -> None:
    assert_same(answer("all"), periods(history, lambda valid_from, valid_to: True))


@pytest.mark.parametrize("kinds", [["links"], ["presence", "subscriptions"], [*KINDS]], ids=str)
@pytest.mark.parametrize("layers", few([None, ["mesh"]], [["mesh"]]), ids=str)
def test_history_is_limited_to_kinds_and_layers(
    history: History, answer: Any, kinds: list[str], layers: list[str] | None
) -> None:
    low, high = every_tick(history)[1], every_tick(history)[-2]
    given: dict[str, object] = {"kinds": ",".join(kinds)} | ({"layers": layers} if layers else {})
    stretch = {"from": as_time(low), "to": as_time(high)}
    for mode, holds in WINDOWS.items():
        expected = periods(history, over(holds, low, high), kinds, layers)
        assert_same(answer(mode, **given, **stretch), expected, mode)
    at_low = periods(history, as_of(low), kinds, layers)
    assert_same(answer("as-of", **given, at=as_time(low)), at_low)
    assert_same(
        answer("all", **given),
        periods(history, lambda valid_from, valid_to: True, kinds, layers),
    )


@pytest.mark.parametrize("name", ["history", "links-between"])
def test_window_that_ends_before_it_begins_is_refused(
    graph: Graph, history: History, name: str
) -> None:
    given = {"from": 2, "to": 0} | ({"mode": "between"} if name == "history" else {})
    with pytest.raises(UseError, match=naming("from and to", "interval 0", "interval 2")):
        ask(graph.driver, graph.database, name, given, run=history.facts.name)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, naming(f"mode {MISSING}", "as-of|from-to", "at")),
        ({"mode": "during"}, naming("parameter mode: 'during'", "as-of, from-to", "all")),
        ({"mode": "as-of"}, "mode as-of .*: at "),
        ({"mode": "as-of", "at": 1, "from": 0}, "mode as-of .*: from "),
        ({"mode": "between", "to": 2}, "mode between .*: from "),
        ({"mode": "all", "at": 2}, "mode all .*: at "),
    ],
)
def test_mode_with_the_wrong_times_is_refused(
    graph: Graph, history: History, given: dict[str, object], words: str
) -> None:
    with pytest.raises(UseError, match=words):
        ask(graph.driver, graph.database, "history", given, run=history.facts.name)


def test_wrong_kind_or_time_is_refused(history: History, answer: Any) -> None:
    with pytest.raises(UnknownName, match=unknown("kind", "link", "links")):
        answer("all", kinds="link")
    with pytest.raises(OutOfRange, match="10"):
        answer("as-of", at="10s")


def test_kind_unknown_to_the_run_is_refused_when_requested(graph: Graph, loaded: Any) -> None:
    history = random_history(46, name="unreported", peers=4, intervals=4)
    history.rows["subscriptions"] = []
    known = tuple(sorted(set(history.rows) - {"subscriptions"}))
    loaded(replace(history, facts=replace(history.facts, known=known)))

    def asked(**given: object) -> list[list[Any]]:
        return ask(
            graph.driver, graph.database, "history", {"mode": "all", **given}, run="unreported"
        ).rows

    assert {row[0] for row in asked()} == {"links", "presence"}
    with pytest.raises(UseError, match=f"'unreported' {NO_DATA} subscriptions"):
        asked(kinds="links,subscriptions")
