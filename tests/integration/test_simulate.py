"""From a simulation to a run, and several at once."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ingest.run import Run
from ingest.store import runs
from simulators.folder import Folder
from simulators.plan import planned
from simulators.run import simulate

Vizpub = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.spark


@pytest.fixture
def flood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guide_code: str) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flood.py").write_text(guide_code, "utf-8")
    return "flood.py:Flood"


@pytest.fixture(params=["here", pytest.param("process", marks=pytest.mark.long)])
def vizpub(request: pytest.FixtureRequest) -> Vizpub:
    found: Vizpub = request.getfixturevalue(f"vizpub_{request.param}")
    return found


def test_simulated_runs_equal_those_of_their_seed_alone(
    flood: str, tmp_path: Path, vizpub: Vizpub
) -> None:
    """Each run is, byte for byte, the one that its seed gives alone."""
    line = (
        f"simulate {flood} --peers 20 --intervals 8 --publications every:4 --seed 3 --runs 2 "
        "--out both --ingest study --no-load"
    )
    result = vizpub(*shlex.split(line))
    assert result.returncode == 0, result.stderr
    for seed in (3, 4):
        plan = planned(flood, {"peers": 20, "intervals": 8, "publications": "every:4"}, seed)
        alone = Folder(tmp_path / f"alone-{seed}")
        simulate(plan, alone)
        (own,) = alone.reports.iterdir()
        (spread,) = (tmp_path / "both" / f"seed-{seed}" / "reports").iterdir()
        assert own.read_bytes() == spread.read_bytes()
    workspace = tmp_path / "vizpub-data"
    assert sorted(run.name for run in runs(workspace)) == ["study-3", "study-4"]
    facts = Run.open(workspace, "study-3").facts
    assert (facts.protocol, facts.seed) == ("flood", 3)

    line = f"simulate {flood} --peers 21 --seed 3 --runs 2 --out others --ingest study --no-load"
    refused = vizpub(*shlex.split(line))
    assert refused.returncode == 2
    assert "run 'study-3' exists and was made from something else" in refused.stderr
    assert not Path("others").exists(), "what cannot be ingested is not simulated"


@pytest.mark.long
def test_missing_workload_file_is_refused_in_parallel_runs(
    flood: str, vizpub_process: Vizpub
) -> None:
    line = f"simulate {flood} --peers 5 --intervals 3 --workload file:nowhere.csv --runs 2"
    refused = vizpub_process(*shlex.split(line))
    assert refused.returncode == 2, refused.stderr
    assert "error: no file nowhere.csv" in refused.stderr
