"""Times until shares of the eligible peers had a message, against plain loops over the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.played import Played, play
from tests.support.spreading import spread
from vizpub.model.clock import Clock
from vizpub.model.errors import UseError
from vizpub.questions.arrivals import PERCENTAGES, coverage_times
from vizpub.questions.run import Run, Where

MESSAGES = [f"m{number}" for number in range(25)]
WITHIN_US = 150_000


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrivals")


@pytest.fixture(scope="module")
def played(stage: Path) -> Played:
    def add(made: Played) -> None:
        spread(made, MESSAGES, 8)
        arrivals = (row for row in made.rows["receptions"] if row["first"] and row["eligible"])
        next(arrivals)["time_us"] = None

    names = [f"p{number}" for number in range(30)]
    return play(stage, "timed", Clock(1_000_000, 1, 0, 9), names, ["t", "u"], 4, add)


@pytest.fixture(scope="module")
def run(played: Played, stage: Path) -> Run:
    return Run.open(stage, played.name)


def delays(played: Played, message: int) -> list[int | None]:
    """Of the first arrivals at eligible peers, in order of time."""
    published = played.rows["publications"][message]["time_us"]
    times = [
        row["time_us"]
        for row in played.rows["receptions"]
        if row["message"] == message and row["first"] and row["eligible"]
    ]
    return sorted(
        (None if time is None else time - published for time in times),
        key=lambda delay: (delay is None, delay),
    )


def expected(played: Played, message: int, eligible: int) -> dict[str, Any]:
    arrived = delays(played, message)
    known = None not in arrived
    times: dict[str, Any] = {}
    for percentage in PERCENTAGES:
        enough = [
            delay
            for place, delay in enumerate(arrived, 1)
            if known and place * 100 >= percentage * eligible
        ]
        times[f"coverage_us_{percentage}"] = enough[0] if enough and eligible else None
    in_time = [delay for delay in arrived if delay is not None and delay <= WITHIN_US]
    times["within"] = len(in_time) / eligible if known and eligible else None
    return times


def test_times_are_those_of_a_plain_loop(played: Played, run: Run) -> None:
    rows = coverage_times(run, Where(), WITHIN_US).to_pylist()
    assert [row["message_name"] for row in rows] == MESSAGES
    for row in rows:
        wanted = expected(played, row["message"], row["eligible"])
        assert {name: row[name] for name in wanted} == pytest.approx(wanted), row["message"]
    reached = [[row[f"coverage_us_{n}"] is not None for row in rows] for n in PERCENTAGES]
    assert any(reached[0])
    assert not all(reached[-1])
    untimed = {row["message"] for row in played.rows["receptions"] if row["time_us"] is None}
    assert [rows[message]["within"] for message in untimed] == [None]


def test_part_has_the_messages_published_in_it(played: Played, run: Run) -> None:
    rows = coverage_times(run, Where(2, 5, None, "t")).to_pylist()
    assert [row["message"] for row in rows] == [
        row["message"]
        for row in played.rows["publications"]
        if 2 <= row["interval"] <= 5 and row["topic"] == 0
    ]
    assert "within" not in rows[0]


def test_run_without_times_is_refused(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(9)]
    untimed = play(
        tmp_path, "untimed", Clock(1, None, 0, 9), names, ["t"], 4,
        more=lambda made: spread(made, MESSAGES, 8, timed=False),
    )  # fmt: skip
    with pytest.raises(UseError):
        coverage_times(Run.open(tmp_path, untimed.name), Where())
