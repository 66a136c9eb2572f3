from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tests.support.words import naming
from vizpub.experiments.definition import Experiment, ExperimentContent
from vizpub.experiments.runs import ExperimentFolder, PlannedRun, _RunProgress, planned_runs
from vizpub.model.errors import RunCollected
from vizpub.runstore.collection import Collected
from vizpub.runstore.writer import writing
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.simulation import simulate

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
    return Experiment("e", "full", msgspec.convert(CONTENT, ExperimentContent))


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
    found = planned_runs(experiment, ExperimentFolder(tmp_path), runs, only)
    expected = [f"{n}-{s}" for s in (5, 7, 8) for n in names] if runs == 3 else names
    assert [one.name for one in found] == expected
    assert {one.plan.world.loss for one in found if "rough" in one.name} <= {0.1}


def test_reports_exist_from_simulation_until_they_are_let_go(
    experiment: Experiment, tmp_path: Path
) -> None:
    one: PlannedRun = planned_runs(experiment, ExperimentFolder(tmp_path), 1, ("one, calm",))[0]
    assert one.run() is one.result() is one.costs() is one.replica() is None
    assert not one.has_reports()
    simulate(one.plan, Folder(one.folder.path))
    assert one.has_reports()
    one.remove_reports()
    assert not one.has_reports()
    assert one.result()
    one.forget()
    assert one.result() is None


def test_run_whose_name_a_collection_has_is_refused_before_it_is_simulated(
    experiment: Experiment, tmp_path: Path
) -> None:
    one: PlannedRun = planned_runs(experiment, ExperimentFolder(tmp_path), 1, ("one, calm",))[0]
    one.check()
    of = Collected(one.place.workspace, one.name)
    of.log.mkdir(parents=True)
    with writing(of.workspace, of.run, collects=True) as writer:
        writer.reserve(of.identify())
    with pytest.raises(RunCollected, match=naming(one.name)):
        one.check()


def test_progress_says_which_run_of_how_many_and_when_all_end() -> None:
    shown: list[tuple[int, int, str]] = []
    now = [1000.0]

    def progress(step: str, done: int, total: int, note: str = "") -> None:
        shown.append((done, total, note))

    course = _RunProgress(progress, 2, 4, lambda: now[0])
    course.begin("simulate a and b", 0, 0, 2)
    assert shown[-1] == (0, 800, "run 3 of 6, simulate a and b")
    assert course.seconds_left() is None
    now[0] += 20
    course.begin("ingest a", 0, 2, 1)
    assert course.seconds_left() == 60  # 2 of 8 halves in 20 s
    now[0] += 10
    course.of_ingest("structure (3/4)", 1, 2)
    assert shown[-1][:2] == (262, 800)  # 2.625 halves
    assert shown[-1][2].startswith("run 3 of 6, ingest a: structure; ends at about ")
    course.finish()
    assert (course.place, course.seconds_left()) == ("run 3 of 6", 50)  # 3 of 8 halves in 30 s
    assert re.fullmatch(r"ends at about [-\d: ]+, in 50 s", course.end())
    now[0] += 100_000
    assert re.search(r" \d{4}-\d\d-\d\d \d\d:\d\d, in 46.3 h$", course.end())
    course.begin("ingest d", 3, 7, 1)
    course.finish()
    assert (course.place, course.end()) == ("run 6 of 6", "")
