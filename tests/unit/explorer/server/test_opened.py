"""Runs that a page looks at, and that grow meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.explored import Explorer, exploring
from tests.support.played import play
from tests.unit.explorer.test_changes import merge
from vizpub.explorer.server import opened
from vizpub.explorer.server.opened import OpenRuns
from vizpub.model.clock import Clock
from vizpub.model.errors import UnknownName


def grow(workspace: Path, intervals: int, peers: int = 6) -> None:
    """Write the run `lab`, in the place of a shorter one."""
    shutil.rmtree(workspace / "runs/lab", ignore_errors=True)
    names = [f"peer-{number}" for number in range(peers)]
    play(workspace, "lab", Clock(1, 1_000_000, 0, intervals - 1), names, ["news", "sport"], seed=4)


@pytest.fixture
def explorer(tmp_path: Path) -> Iterator[Explorer]:
    grow(tmp_path, 12)
    with exploring(tmp_path) as server:
        yield server


@pytest.mark.parametrize("query", [{}, {"topic": [0, 1], "how": "all"}, {"layer": ["ring"]}])
def test_page_of_a_grown_run_gets_the_changes(
    explorer: Explorer, tmp_path: Path, query: dict[str, list[str]]
) -> None:
    facts = explorer.ask("/api/runs/lab").json()
    since = facts["identity"]
    before = explorer.ask("/api/runs/lab/overlay", query={**query, "of": since}).arrays()
    grow(tmp_path, 18, 8)
    stale = explorer.ask("/api/runs/lab/overlay", query={**query, "of": since})
    assert stale.status == 409
    now = explorer.ask("/api/runs/lab", query={"since": since}).json()
    assert (now["known"], now["peers"]) == ([6, 2], ["peer-6", "peer-7"])
    asked = {**query, "of": now["identity"]}
    whole = explorer.ask("/api/runs/lab/overlay", query=asked).arrays()
    changes = explorer.ask("/api/runs/lab/overlay", query={**asked, "since": since}).arrays()
    merged = merge(before, changes)
    for name, values in whole.items():
        np.testing.assert_array_equal(merged[name], values, name)


def test_run_that_is_not_in_memory_any_more_is_sent_whole(explorer: Explorer) -> None:
    query = {"since": "another"}
    assert explorer.ask("/api/runs/lab", query=query).json()["known"] == [0, 0]
    asked = [explorer.ask("/api/runs/lab/overlay", query=q).content for q in (query, {})]
    assert asked[0] == asked[1]


def test_run_is_opened_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, open_run = [], opened.open_run

    def count(workspace: Path, name: str) -> object:
        calls.append(name)
        return open_run(workspace, name)

    monkeypatch.setattr(opened, "open_run", count)
    grow(tmp_path, 12)
    runs = OpenRuns(tmp_path)
    first = [runs.stored("lab") for _ in range(3)]
    assert len(calls) == 1
    grow(tmp_path, 18)
    assert runs.stored("lab").facts.tables != first[0].facts.tables
    assert len(calls) == 2
    shutil.rmtree(tmp_path / "runs/lab")
    with pytest.raises(UnknownName):
        runs.stored("lab")
