"""What simulations take from a stored run that is known by heart (conftest.py)."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.rewriting import rewrite
from tests.support.words import naming, unknown
from vizpub.cli.main import app
from vizpub.model.errors import UseError
from vizpub.questions.run import Run
from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate

Call = Callable[[str], Result]


@pytest.fixture
def static(workspace: Path) -> Call:
    """A call of broadcast-static on a topology."""
    line = f"--workspace {workspace} simulate broadcast-static --intervals 2 --out {workspace}/out"
    return lambda given: CliRunner().invoke(app, shlex.split(f"{line} --topology {given}"))


def linked(folder: Path) -> dict[str, set[str]]:
    """The reported neighbours of each peer."""
    lines = (line.record for path in sorted(folder.iterdir()) for line in ReportReader(path))
    reports = (one for one in lines if isinstance(one, Report) and one.interval == 0)
    return {one.peer: {link.peer for link in one.neighbors or ()} for one in reports}


@pytest.mark.parametrize(
    ("topology", "edges"),
    [
        ("run:monday,at=1", {"0": {"1", "3"}, "1": {"0", "2"}, "2": {"1", "3"}, "3": {"0", "2"}}),
        ("run:monday", {"0": {"1"}, "1": {"0"}, "2": set()}),
        ("run:monday,at=2", {"0": {"1"}, "1": {"0", "2"}, "2": {"1"}}),
        ("run:monday,at=2,layer=mesh", {"0": {"1"}, "1": {"0"}, "2": set()}),
    ],
)
def test_overlay_of_a_run_is_a_topology(
    static: Call, workspace: Path, topology: str, edges: dict[str, set[str]]
) -> None:
    """Of the peers that are there at that time, numbered from 0, linked both ways."""
    result = static(topology)
    assert result.exit_code == 0, result.output
    assert linked(workspace / "out/reports") == edges
    (names,) = (workspace / "simulations").glob("peers-of-monday-*.csv")
    with names.open(encoding="utf-8", newline="") as file:
        found = [row["name"] for row in csv.DictReader(file)]
    assert found == ["alice", "bob", "carol", "dave"][: len(edges)]


@pytest.mark.parametrize(
    ("topology", "told"),
    [
        ("run:tuesday", unknown("run", "tuesday")),
        ("run:monday,layer=mush", unknown("layer", "mush", "mesh")),
        ("run:monday,at=77", "77"),
        ("run:monday,when=2", "'when'"),
        ("run:half", "half"),
    ],
)
def test_overlay_that_there_is_not_is_refused(static: Call, topology: str, told: str) -> None:
    refused = static(topology)
    assert refused.exit_code == 2 or topology == "run:half"
    assert refused.exit_code != 0
    assert told in refused.stderr


def test_subscriptions_of_a_run_are_a_workload(workspace: Path) -> None:
    line = f"--workspace {workspace} construct gm --run monday --at 1 --out {workspace}/out"
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.output
    paths = sorted((workspace / "out/reports").iterdir())
    lines = (line.record for path in paths for line in ReportReader(path))
    found = {one.peer: {*(one.topics or ())} for one in lines if isinstance(one, Report)}
    assert found == {"0": set(), "1": {"news"}, "2": {"news"}, "3": {"sport/日本"}}


def test_run_of_other_tables_is_simulated_anew(workspace: Path) -> None:
    line = f"--workspace {workspace} construct gm --run monday --at 1"
    first = CliRunner().invoke(app, shlex.split(line))
    assert first.exit_code == 0, first.output
    again = CliRunner().invoke(app, shlex.split(line))
    assert "simulated before" in again.output
    rows = Run.open(workspace, "monday").table("subscriptions")
    rewrite(workspace, "monday", "subscriptions", rows.slice(0, rows.num_rows - 1))
    other = CliRunner().invoke(app, shlex.split(line))
    assert other.exit_code == 0, other.output
    assert "simulated before" not in other.output


def test_simulation_without_the_command_line_reads_no_runs(tmp_path: Path) -> None:
    plan = make_plan("broadcast-static", {"topology": "run:monday", "intervals": 1})
    with pytest.raises(UseError, match=naming("run:monday", "`vizpub lab simulate`")):
        simulate(plan, Folder(tmp_path / "out"))
