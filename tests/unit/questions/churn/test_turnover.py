"""How neighbourhoods change, against Python's sets."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.support.grouped import KEY, value_at
from tests.support.played import LAYERS, Played, play
from tests.support.words import naming
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import UnknownName
from vizpub.questions.churn.turnover import DEGREES, TURNOVER_COLUMNS
from vizpub.questions.run import Run, Where
from vizpub.runstore.manifest import read_manifest, write_manifest


def neighbourhoods(made: Played, interval: int) -> dict[tuple[str, int | None, int], set[int]]:
    """The neighbours by layer, topic and peer, at the end of an interval."""
    tick = made.clock.sampling_tick(interval)
    found: dict[tuple[str, int | None, int], set[int]] = {}
    links = made.holding("links", tick)
    for layer in LAYERS:
        topics = {row["topic"] for row in made.rows["links"] if row["layer"] == layer}
        for topic in topics:
            there = made.present(tick) if topic is None else made.subscribers(topic, tick)
            for peer in there:
                found[layer, topic, peer] = {
                    row["dst"] for row in links
                    if (row["layer"], row["topic"], row["src"]) == (layer, topic, peer)
                }  # fmt: skip
    return found


def expected(made: Played, by: str | None, degrees: tuple[int, int]) -> dict[Any, dict[str, Any]]:
    """The rows by interval, layer and key."""
    ticks, rows = made.clock.ticks_per_interval, defaultdict[Any, dict[str, Any]](dict)

    def key_of(peer: int, topic: int | None, tick: int) -> tuple[Any, ...]:
        return {None: (), "topic": (topic,)}.get(by, (value_at(made, peer, tick),))

    sizes, indices = defaultdict[Any, list[int]](list), defaultdict[Any, list[float]](list)
    for interval in range(made.clock.first, made.clock.last + 1):
        tick = made.clock.sampling_tick(interval)
        before = {} if interval == made.clock.first else neighbourhoods(made, interval - 1)
        for (layer, topic, peer), now in neighbourhoods(made, interval).items():
            key = (interval, layer, *key_of(peer, topic, tick))
            sizes[key].append(len(now))
            then = before.get((layer, topic, peer))
            if then is not None and then | now:
                indices[key].append(len(then & now) / len(then | now))
    moves = defaultdict[Any, list[int]](lambda: [0, 0])
    for row in made.rows["links"]:
        end = min(row["valid_to"], made.last + 1)
        for place, tick, then in ((0, row["valid_from"], row["valid_from"]), (1, end, end - 1)):
            if tick <= made.last:
                key = (tick // ticks, row["layer"], *key_of(row["src"], row["topic"], then))
                moves[key][place] += 1
    for key in {*sizes, *moves}:
        of, index = sizes[key], indices[key]
        rows[key] = {
            "made": moves[key][0], "ended": moves[key][1],
            "neighbourhoods": len(of), "neighbours_mean": fmean(of) if of else None,
            "below_d_low": sum(n < degrees[0] for n in of),
            "above_d_high": sum(n > degrees[1] for n in of),
            "compared": len(index), "jaccard_mean": fmean(index) if index else None,
        }  # fmt: skip
    return rows


@pytest.mark.parametrize("by", [None, "topic", KEY])
def test_turnover_equals_that_of_sets(played: Played, run: Run, by: str | None) -> None:
    wanted = expected(played, by, (2, 3))
    rows = run.turnover(by, degrees=(2, 3)).to_pylist()
    column = {None: [], "topic": ["topic"]}.get(by, ["group"])
    assert len(rows) == len(wanted)
    for row in rows:
        of = wanted[row["interval"], row["layer"], *(row[name] for name in column)]
        for name in TURNOVER_COLUMNS:
            assert row[name] == pytest.approx(of[name]), name


def test_window_layers_peer_and_topic_choose_rows(played: Played, run: Run) -> None:
    every = run.turnover().to_pylist()
    first = played.clock.first + 1
    assert run.turnover(where=Where(first, first + 2), layers=["mesh"]).to_pylist() == [
        row for row in every
        if row["layer"] == "mesh" and first <= row["interval"] <= first + 2
    ]  # fmt: skip
    by_topic = run.turnover("topic").to_pylist()
    assert run.turnover("topic", Where(topic="u")).to_pylist() == [
        row for row in by_topic if row["topic_name"] == "u"
    ]
    total = defaultdict[tuple[int, str], int](int)
    for peer in played.peers:
        for row in run.turnover(where=Where(peer=peer)).to_pylist():
            total[row["interval"], row["layer"]] += row["neighbourhoods"]
    assert {key: count for key, count in total.items() if count} == {
        (row["interval"], row["layer"]): row["neighbourhoods"]
        for row in every
        if row["neighbourhoods"]
    }
    with pytest.raises(UnknownName, match=naming("meshes", "mesh")):
        run.turnover(layers=["meshes"])


def test_peers_that_tell_nothing_have_no_neighbourhood(tmp_path: Path) -> None:
    """Peer 2 is only named by others: that it lists no neighbour says nothing about it. A link
    between the ends of intervals is made and ended, and no neighbour at any.
    """

    def replace_rows(made: Played) -> None:
        made.rows["peers"][2]["is_reporter"] = False
        made.rows["presence"] = [
            {"peer": peer, "valid_from": 0, "valid_to": OPEN} for peer in range(3)
        ]
        of = {"layer": "mesh", "topic": None}
        made.rows["links"] = [
            {"src": 0, "dst": 1, **of, "valid_from": 5, "valid_to": OPEN},
            {"src": 0, "dst": 2, **of, "valid_from": 12, "valid_to": 18},
            {"src": 0, "dst": 2, **of, "valid_from": 25, "valid_to": 33},
            {"src": 0, "dst": 2, **of, "valid_from": 35, "valid_to": 40},
        ]

    play(tmp_path, "few", Clock(10, 1, 0, 3), ["a", "b", "c"], ["t"], 0, replace_rows)
    rows = Run.open(tmp_path, "few").turnover().to_pylist()
    assert [row["neighbourhoods"] for row in rows] == [2, 2, 2, 2]
    assert [(row["made"], row["ended"]) for row in rows] == [(1, 0), (1, 1), (1, 0), (1, 1)]
    assert [row["neighbours_mean"] for row in rows] == [0.5, 0.5, 1.0, 1.0]
    assert [row["jaccard_mean"] for row in rows] == [None, 1.0, 0.5, 1.0]
    assert DEGREES == (4, 12)


def test_neighbourhoods_of_topics_are_unknown_without_subscriptions(tmp_path: Path) -> None:
    made = play(tmp_path, "silent", Clock(1000, 1, 0, 5), ["a", "b", "c", "d"], ["t"])
    manifest = read_manifest(tmp_path / "runs" / "silent")
    tables = {name: of for name, of in manifest.tables.items() if name != "subscriptions"}
    write_manifest(tmp_path / "runs" / "silent", replace(manifest, tables=tables))
    run = Run.open(tmp_path, "silent")
    for row in run.turnover(layers=["ring"]).to_pylist():
        assert row["made"] + row["ended"] > 0
        assert row["neighbourhoods"] is row["below_d_low"] is row["jaccard_mean"] is None
    assert sum(row["neighbourhoods"] for row in run.turnover(layers=["mesh"]).to_pylist()) == sum(
        len(made.present(made.clock.sampling_tick(i))) for i in range(6)
    )
    assert {row["of"] for row in run.lifetimes().to_pylist()} == {"links", "presence"}
