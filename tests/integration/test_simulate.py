"""From a simulation to a run, and several at once."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.words import tells
from vizpub.questions.run import Run
from vizpub.runstore.store import runs
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate

Vizpub = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.spark

TWO_RUNS = "lab simulate {} --peers 20 --intervals 8 --publications every:4 --seed 3 --runs 2"


@pytest.fixture
def flood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guide_code: str) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flood.py").write_text(guide_code, "utf-8")
    return "flood.py:Flood"


@pytest.mark.long
def test_runs_of_own_code_spread_over_tasks_are_those_of_their_seeds(
    flood: str, tmp_path: Path, vizpub_process: Vizpub
) -> None:
    result = vizpub_process(*shlex.split(f"{TWO_RUNS.format(flood)} --out both"))
    assert result.returncode == 0, result.stderr
    check_seeds(flood, tmp_path)


@pytest.mark.long
def test_runs_are_spread_over_tasks_and_ingested(
    flood: str, tmp_path: Path, vizpub_process: Vizpub
) -> None:
    """In two sessions of one process, one after the other."""
    line = f"{TWO_RUNS.format(flood)} --out both --ingest study --no-load"
    result = vizpub_process(*shlex.split(line))
    assert result.returncode == 0, result.stderr
    check_seeds(flood, tmp_path)
    check_study(tmp_path, "flood")


def test_runs_spread_over_tasks_are_those_of_their_seeds_ingested_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vizpub_here: Vizpub
) -> None:
    """Kept from others of their names."""
    monkeypatch.chdir(tmp_path)
    line = f"{TWO_RUNS.format('cyclon')} --out both --ingest study --no-load"
    result = vizpub_here(*shlex.split(line))
    assert result.returncode == 0, result.stderr
    check_seeds("cyclon", tmp_path)
    check_study(tmp_path, "cyclon")

    refused = vizpub_here(*shlex.split(line.replace("both", "others")), "--peers", "21")
    assert refused.returncode == 2
    tells(refused.stderr, "'study-3'", "--ingest NAME", "--replace")
    assert not Path("others").exists(), "what cannot be ingested is not simulated"


def check_seeds(system: str, folder: Path) -> None:
    """Each run is, byte for byte, the one that its seed gives alone."""
    for seed in (3, 4):
        plan = make_plan(system, {"peers": 20, "intervals": 8, "publications": "every:4"}, seed)
        alone = Folder(folder / f"alone-{seed}")
        simulate(plan, alone)
        (own,) = alone.reports.iterdir()
        (spread,) = (folder / "both" / f"seed-{seed}" / "reports").iterdir()
        assert own.read_bytes() == spread.read_bytes()


def check_study(folder: Path, protocol: str) -> None:
    workspace = folder / "vizpub-data"
    assert sorted(run.name for run in runs(workspace)) == ["study-3", "study-4"]
    for seed in (3, 4):
        facts = Run.open(workspace, f"study-{seed}").facts
        assert (facts.protocol, facts.seed) == (protocol, seed)


@pytest.mark.long
def test_missing_workload_file_is_refused_in_parallel_runs(
    flood: str, vizpub_process: Vizpub
) -> None:
    line = f"lab simulate {flood} --peers 5 --intervals 3 --workload file:nowhere.csv --runs 2"
    refused = vizpub_process(*shlex.split(line))
    assert refused.returncode == 2, refused.stderr
    tells(refused.stderr, "nowhere.csv")
