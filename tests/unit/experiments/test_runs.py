from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from experiments.definition import Content, Experiment
from experiments.runs import Place, Planned, planned_runs
from simulators.engine.folder import Folder
from simulators.engine.simulation import simulate

CONTENT = {
    "title": "T",
    "about": "A",
    "source": "S",
    "world": {"peers": 8, "intervals": 4},
    "systems": [{"name": name, "system": "cyclon"} for name in ("one", "two")],
    "settings": [{"name": "calm"}, {"name": "rough", "parameters": {"loss": 0.1}}],
    "seeds": [5, 7],
    "metrics": ["links"],
}


@pytest.fixture
def experiment() -> Experiment:
    return Experiment("e", "full", msgspec.convert(CONTENT, Content))


@pytest.mark.parametrize(
    ("runs", "only", "names"),
    [
        (1, (), ["one-calm-5", "two-calm-5", "one-rough-5", "two-rough-5"]),
        (None, ("two, rough",), ["two-rough-5", "two-rough-7"]),
        (3, ("one", "two, calm"), ["one-calm", "two-calm", "one-rough"]),
        (1, ("rough",), ["one-rough-5", "two-rough-5"]),
    ],
)
def test_planned_runs_are_the_chosen_groups_with_their_seeds(
    experiment: Experiment,
    tmp_path: Path,
    runs: int | None,
    only: tuple[str, ...],
    names: list[str],
) -> None:
    found = planned_runs(experiment, Place(tmp_path), runs, only)
    expected = [f"{n}-{s}" for s in (5, 7, 8) for n in names] if runs == 3 else names
    assert [one.name for one in found] == expected
    assert {one.plan.world.loss for one in found if "rough" in one.name} <= {0.1}


def test_reports_exist_from_simulation_until_they_are_let_go(
    experiment: Experiment, tmp_path: Path
) -> None:
    one: Planned = planned_runs(experiment, Place(tmp_path), 1, ("one, calm",))[0]
    assert one.run() is one.result() is one.costs() is one.replica() is None
    assert not one.has_reports()
    simulate(one.plan, Folder(one.folder.path))
    assert one.has_reports()
    one.remove_reports()
    assert not one.has_reports()
    assert one.result()
    one.forget()
    assert one.result() is None
