"""A run whose messages spread, with attributes of peers, and arrivals at moments of their own."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.support.grouped import give_attributes
from tests.support.played import Played, play
from tests.support.spreading import spread
from vizpub.model.clock import Clock
from vizpub.questions.run import Run

MESSAGES = [f"m{number}" for number in range(25)]


@pytest.fixture(scope="module")
def workspace_of_arrivals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrivals")


@pytest.fixture(scope="module")
def arrived(workspace_of_arrivals: Path) -> Played:
    def add(made: Played) -> None:
        spread(made, MESSAGES, 8)
        give_attributes(made, Random(3), "client")
        for row in made.rows["receptions"]:
            if row["first"] and row["peer"] % 5 == 2:
                row["time_us"] += 80_000  # it validated the copy
            row["tick"] = row["time_us"] // (made.clock.tick_us or 1)
        for row in made.rows["receptions"][::17]:
            row["time_us"] = None
        for row in made.rows["publications"]:
            row["bytes"] = None if row["message"] % 7 == 3 else 10 ** (row["message"] % 5)
        for row in made.rows["receptions"]:
            if row["message"] == 8:
                row["previous_hop"] = None
            row["after_idontwant"] = (row["message"] + row["peer"]) % 3 == 0
            row["before_idontwant"] = (row["message"] + row["peer"]) % 3 == 1
            known = row["previous_hop"] is not None
            row["by_iwant"] = row["peer"] % 4 == 1 if known else None

    names = [f"p{number}" for number in range(24)]
    clock = Clock(100, 1_000, 0, 9)
    return play(workspace_of_arrivals, "arrived", clock, names, ["t", "u"], 4, add)


@pytest.fixture
def run(workspace_of_arrivals: Path, arrived: Played) -> Run:
    return Run.open(workspace_of_arrivals, arrived.name)
