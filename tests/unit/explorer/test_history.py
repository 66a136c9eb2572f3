"""When peers relay topics, against the rows of the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.played import Played, play
from tests.support.spreading import spread
from vizpub.explorer.history import History
from vizpub.model.clock import Clock
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import open_run

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
