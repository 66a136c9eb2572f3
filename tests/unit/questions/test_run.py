"""The Python surface of a run, on a run that is known by heart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.words import naming, unknown
from vizpub.model.errors import RunNotComplete, UnknownName, UseError
from vizpub.model.own import OwnMetric
from vizpub.questions import frequent
from vizpub.questions.run import HAS_NO_COLUMN, Run, Where


@pytest.fixture
def run(workspace: Path) -> Run:
    return Run.open(workspace, "monday")


def test_run_knows_its_names_and_its_clock(run: Run) -> None:
    assert run.peers == ["alice", "bob", "carol", "dave"]
    assert run.topics == ["news", "sport/日本"]
    assert run.clock.intervals == 4
    assert run.facts.protocol == "toy"
    assert (run.peer_index("carol"), run.topic_index("news")) == (2, 0)


def test_unknown_or_incomplete_run_is_refused(workspace: Path) -> None:
    with pytest.raises(UnknownName, match=unknown("run", "mondy", "monday")):
        Run.open(workspace, "mondy")
    with pytest.raises(RunNotComplete, match="half"):
        Run.open(str(workspace), "half")


def test_metrics_are_sorted_by_key_with_names_beside_it(run: Run) -> None:
    topics = run.metrics("topics")
    assert topics.columns[:3] == ["interval", "topic", "topic_name"]
    assert topics["topic_name"].to_pylist() == ["news"] * 4
    peers = run.metrics("peers", ["degree"])
    assert peers.columns == ["interval", "peer", "peer_name", "degree"]
    keys = list(zip(peers["interval"].to_pylist(), peers["peer"].to_pylist(), strict=True))
    assert keys == sorted(keys)
    assert len(keys) == 14


def test_message_metrics_carry_interval_topic_and_publisher(run: Run) -> None:
    found = run.metrics("messages", ["hit_ratio"]).to_pylist()
    assert found[1] == {
        "message": 1,
        "message_name": "m1",
        "interval": 2,
        "topic": 0,
        "topic_name": "news",
        "publisher": 0,
        "publisher_name": "alice",
        "hit_ratio": 0.0,
    }


@pytest.mark.parametrize(
    ("name", "where", "rows"),
    [
        ("overlay", Where(first=1, last=2), [1, 2]),
        ("overlay", Where(first=3), [3]),
        ("peers", Where(peer="dave"), [0, 1]),
        ("topics", Where(topic="news", last=0), [0]),
        ("topics", Where(topic="sport/日本"), []),
        ("messages", Where(peer="alice", first=1), [2]),
        ("messages", Where(topic="news"), [0, 2]),
    ],
)
def test_metric_rows_are_chosen_by_interval_peer_and_topic(
    run: Run, name: str, where: Where, rows: list[int]
) -> None:
    assert run.metrics(name, where=where)["interval"].to_pylist() == rows


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda run: run.overlay(1, []), []),
        (lambda run: run.topic("news", 1, []), []),
        (lambda run: run.turnover(layers=[]), []),
        (lambda run: run.lifetimes(layers=[]), []),
        (lambda run: column(run.reachability(layers=[]), "reachable"), [0, 0]),
        (lambda run: column(run.missed("m1", layers=[]), "neighbours"), [0, 0]),
        (lambda run: column(frequent.topics(run, 1, []), "links"), [0, 0]),
        (lambda run: column(frequent.topic(run, "news", 1, []), "dst"), [None, None]),
        (lambda run: frequent.paths(run, ("alice", "bob"), 1, []), []),
    ],
)
def test_answer_for_no_layers_has_no_links(
    run: Run, ask: Callable[[Run], Any], expected: list[Any]
) -> None:
    """Where null is all layers."""
    found = ask(run)
    assert (found if isinstance(found, list) else found.to_pylist()) == expected


def column(rows: Any, name: str) -> list[Any]:
    return [row[name] for row in rows.to_pylist()]


def test_unknown_table_column_peer_or_topic_is_refused(run: Run) -> None:
    with pytest.raises(UnknownName, match=unknown("table", "metrics/overly", "metrics/overlay")):
        run.metrics("overly")
    with pytest.raises(UnknownName, match=unknown("metrics/overlay column", "diametr", "diameter")):
        run.metrics("overlay", ["diametr"])
    with pytest.raises(UseError, match=rf"{HAS_NO_COLUMN} 'degree'; it is in metrics/peers"):
        run.metrics("overlay", ["degree"])
    with pytest.raises(UnknownName, match="alice"):
        run.metrics("peers", where=Where(peer="alixe"))
    with pytest.raises(UseError, match=naming("topic", "vizpub runs tables")):
        run.metrics("peers", where=Where(topic="news"))
    with pytest.raises(UnknownName):
        run.table("nosuch")


def test_column_of_another_table_is_refused_with_it_also_for_own_metrics(run: Run) -> None:
    own = OwnMetric("triangles", "peer", "triangles of a peer")
    manifest = replace(run.stored.manifest, own=(own,))
    with_own = Run(replace(run.stored, manifest=manifest))
    with pytest.raises(UseError, match=rf"{HAS_NO_COLUMN} 'triangles'; it is in metrics/peers"):
        with_own.metrics("overlay", ["triangles"])
    with pytest.raises(UnknownName, match=unknown("metrics/overlay column", "triangles")):
        run.metrics("overlay", ["triangles"])


def test_tables_are_returned_as_stored(run: Run) -> None:
    assert run.table("links").num_rows == 5
    assert run.table("links", ["src", "dst"]).column_names == ["src", "dst"]
    assert run.table("traffic").num_rows == 0
    with pytest.raises(UnknownName):
        run.table("links", ["source"])
    named = run.with_names(run.table("receptions", ["message", "peer", "previous_hop", "tick"]))
    assert named["previous_hop_name"].to_pylist() == ["alice", "carol", "dave", "alice"]


def test_run_repr_and_html_name_peers_intervals_and_damage(run: Run) -> None:
    assert repr(run) == "<run monday of toy: 4 peers, intervals 0 to 3 (1 s each)>"
    page = run._repr_html_()
    assert "<caption>run monday of toy: 4 peers, intervals 0 to 3 (1 s each)</caption>" in page
    assert "<tr><td>rows of links</td><td>5</td></tr>" in page
    assert "<tr><td>damaged</td><td>a.json: cut short</td></tr>" in page


def test_metrics_repr_names_run_table_and_columns(run: Run) -> None:
    assert repr(run.metrics("overlay", ["links"])) == (
        "<monday, metrics/overlay: 4 rows of interval, links>"
    )
