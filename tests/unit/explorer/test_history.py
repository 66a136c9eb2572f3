"""When peers relay topics, against the rows of the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.played import Played, play, write_play
from tests.support.spreading import spread
from vizpub.explorer.history import History, OverlayPart, clip_run
from vizpub.model.clock import OPEN, Clock
from vizpub.model.run import Boundary
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import StoredRun, open_run

TOPICS = ["news", "sport", "alerts"]
PEERS = [f"peer-{number}" for number in range(20)]


MESSAGES = [f"message {number}" for number in range(30)]
TICKS = Clock(1, 1_000_000, 5, 44)


def played(
    folder: Path, clock: Clock, more: Callable[[Played], None] | None
) -> tuple[Played, History]:
    """A run, and its history."""
    run = play(folder, "run", clock, PEERS, TOPICS, 7, more)
    return run, History(NamedRun(open_run(folder, "run")))


@pytest.mark.parametrize("clock", [TICKS, Clock(600_000_000, 1, 0, 11)], ids=["ticks", "us"])
def test_relays_are_those_of_the_tables_at_any_time(tmp_path: Path, clock: Clock) -> None:
    run, history = played(tmp_path, clock, lambda run: spread(run, MESSAGES, 4))
    relays, size = history.relays, len(PEERS)
    assert history.knows_relays
    rng = np.random.default_rng(1)
    arrivals = rng.choice([row["tick"] for row in run.rows["receptions"]], 20).tolist()
    counted = 0
    for tick in [*arrivals, *rng.integers(run.first, run.last + 1, 30).tolist()]:
        rank = int(np.searchsorted(history.times, tick, side="right")) - 1
        holding = relays.key[(relays.begin <= rank) & (relays.end > rank)].tolist()
        for topic in range(len(TOPICS)):
            expected = run.relays(topic, tick)
            assert sorted(key % size for key in holding if key // size == topic) == sorted(expected)
            counted += len(expected)
    assert counted


def test_window_has_what_holds_in_it(tmp_path: Path) -> None:
    run, history = played(tmp_path, TICKS, None)
    part = History(clip_run(history.run, (20, 24)))
    for tick in range(20, 25):
        rank = int(np.searchsorted(part.times, tick, side="right")) - 1
        src, dst, begin, end = part.pairs(OverlayPart())
        holds = (begin <= rank) & (rank < end)
        assert set(zip(src[holds].tolist(), dst[holds].tolist(), strict=True)) == run.pairs(tick)
    assert part.times.size < history.times.size
    assert part.layers == history.layers


def test_too_many_pairs_are_left_out_with_the_intervals_that_leave_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = played(tmp_path, TICKS, None)
    periods = whole.pairs(OverlayPart()).src.size
    monkeypatch.setattr("vizpub.explorer.history.MOST_PAIRS", periods * 2 // 3)
    arrays = whole.overlay(OverlayPart())
    assert "src" not in arrays
    count, most, length = arrays["left_out"].tolist()
    assert (count, most) == (periods, periods * 2 // 3)
    assert 0 < length < run.clock.intervals
    for first in range(run.clock.first, run.clock.last + 2 - length):
        part = History(clip_run(whole.run, (first, first + length - 1)))
        assert part.pairs(OverlayPart()).src.size <= most
        assert "left_out" not in part.overlay(OverlayPart())
    monkeypatch.setattr("vizpub.explorer.history.MOST_PAIRS", 1)
    assert History(whole.run).overlay(OverlayPart())["left_out"][2] == 0


@pytest.mark.parametrize("cut", [9, 20, 33])
def test_grown_run_takes_over_what_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    run, _ = played(tmp_path / "whole", TICKS, None)
    part = replace(run, clock=replace(run.clock, last=cut - 1), rows={**run.rows})
    for name in ("presence", "links", "subscriptions"):
        part.rows[name] = [
            row | {"valid_to": OPEN if row["valid_to"] >= cut else row["valid_to"]}
            for row in run.rows[name]
            if row["valid_from"] < cut
        ]
    peers = max(row["peer"] for row in part.rows["presence"]) + 1
    part.rows["peers"] = run.rows["peers"][:peers]
    older = write_run(tmp_path / "part", part)
    parts = OverlayPart(), OverlayPart(topics=(0,)), OverlayPart(("mesh",), (0, 1), relays=True)
    for chosen in parts:
        older.overlay(chosen)
        monkeypatch.setattr(StoredRun, "boundary_since", lambda *_: Boundary(cut, cut, 0))
        whole = NamedRun(open_run(tmp_path / "whole", "run"))
        grown, fresh = History(whole), History(whole)
        grown.grow_from(older)
        assert "times" in vars(grown)
        for asked in parts:
            expected, arrays = fresh.overlay(asked), grown.overlay(asked)
            assert arrays.keys() == expected.keys()
            for name, values in expected.items():
                np.testing.assert_array_equal(arrays[name], values)
    monkeypatch.setattr(StoredRun, "boundary_since", lambda *_: None)
    (replaced := History(whole)).grow_from(older)
    assert "times" not in vars(replaced)


def write_run(folder: Path, run: Played) -> History:
    write_play(folder, run)
    return History(NamedRun(open_run(folder, run.name)))


def test_receivers_of_unknown_interest_are_no_relays(tmp_path: Path) -> None:
    def spread_without_interest(run: Played) -> None:
        spread(run, MESSAGES, 4)
        for row in run.rows["receptions"]:
            row |= {"subscribed": None, "previous_hop": None}

    unknown, silent = (
        played(tmp_path / name, TICKS, more)[1].relays
        for name, more in (("unknown", spread_without_interest), ("silent", None))
    )
    assert len(silent)
    for name in ("key", "begin", "end"):
        np.testing.assert_array_equal(getattr(unknown, name), getattr(silent, name))
