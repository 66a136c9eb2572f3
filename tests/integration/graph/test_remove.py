"""A removed run is gone, alone, and a half removed one answers nothing."""

from __future__ import annotations

from typing import Any

import pytest

from graphstore.load import load_run
from graphstore.queries import ask
from graphstore.remove import remove_run
from graphstore.runs import run_names
from graphstore.verify import verify_run
from model.errors import RunNotComplete, UnknownName
from tests.integration.graph.conftest import Graph, random_history

pytestmark = pytest.mark.neo4j


class Interrupted(Exception):
    """What the test stops a removal with."""


def test_nothing_of_it_is_left_and_all_of_the_others(graph: Graph, loaded: Any) -> None:
    kept = [loaded(random_history(50, name=name)) for name in ("a", "a-b", "a.b")]
    loaded(random_history(51, name="a-b-"))
    remove_run(graph.driver, graph.database, "a-b-")
    assert "a-b-" not in run_names(graph.driver, graph.database)
    of_it = graph.ask(
        "MATCH (n) WHERE n.run = $run OR n.key = $run OR n.key STARTS WITH $run + '/' "
        "OR n.key STARTS WITH $run + '|' RETURN count(n)",
        run="a-b-",
    )
    relationships = graph.ask("MATCH ()-[r]->() WHERE r.run = $run RETURN count(r)", run="a-b-")
    assert of_it == relationships == [[0]]
    for history in kept:
        assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []


def test_an_unknown_run(graph: Graph, loaded: Any) -> None:
    loaded(random_history(52, name="there"))
    with pytest.raises(UnknownName, match="did you mean there"):
        remove_run(graph.driver, graph.database, "their")


@pytest.mark.parametrize("stop_at", [1, 4, 9, 12])
def test_a_half_removed_run(graph: Graph, loaded: Any, stop_at: int) -> None:
    history = loaded(random_history(53, name="half"))
    calls = 0

    def interrupt(step: str, done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        assert done <= total
        if calls == stop_at:
            raise Interrupted

    with pytest.raises(Interrupted):
        remove_run(graph.driver, graph.database, "half", interrupt)
    with pytest.raises(RunNotComplete, match="removing, not complete; go on with: vizpub runs rem"):
        ask(graph.driver, graph.database, "overlay-at", {"at": 1}, run="half")
    if stop_at % 2:
        remove_run(graph.driver, graph.database, "half")
        assert "half" not in run_names(graph.driver, graph.database)
    load_run(graph.driver, graph.database, history.facts, history.tables)
    assert verify_run(graph.driver, graph.database, history.facts, history.tables) == []
