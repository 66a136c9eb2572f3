"""The question before commands of `vizpub lab` that take long or much memory."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.words import tells
from vizpub.cli.main import app

MUCH = [
    "lab keys --peers 1000000 --virtual 1000",
    "lab channels mapping --peers 10000000",
    "lab channels measure --updates 1000000000 --peers 100000",
    "lab channels utal --seeds 10000",
    "lab channels gdfr --mappings all --updates 100000000",
    "lab construct cd-max --peers 10000000 --parquet",
    "lab experiment run cd-max --scale full --runs 10000",
    "lab experiment run channels --scale full --runs 100",
    "lab experiment run gossip-complex-networks --scale full --runs 1000",
]
LITTLE = [
    "lab keys --peers 100 --keys 1000",
    "lab channels mapping",
    "lab channels measure --updates 1000",
    "lab channels utal --updates 1000",
    "lab channels gdfr --updates 1000 --steps 2",
    "lab construct cd-max --peers 300 --parquet",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.setenv("VIZPUB_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def vizpub(line: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, shlex.split(line), input=answer)


@pytest.mark.parametrize("line", MUCH)
def test_much_work_without_an_answer_is_refused_with_its_estimate(line: str, folder: Path) -> None:
    result = vizpub(line)
    assert (result.exit_code, result.stdout.strip()) == (2, ""), result.output
    tells(result.stderr, "at least about", "--yes")
    assert not [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("line", LITTLE)
def test_little_work_starts_without_a_question(line: str) -> None:
    result = vizpub(line)
    assert result.exit_code == 0, result.output
    assert "at least about" not in result.stderr


def test_answer_decides_and_yes_skips_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vizpub.cli.commands.lab.costs.LONG_S", 0)
    line = "lab keys --peers 100 --keys 1000"
    no, yes, skipped = vizpub(line, "n\n"), vizpub(line, "y\n"), vizpub(f"{line} --yes")
    assert (no.exit_code, no.stdout.strip()) == (1, "n")  # typed
    assert yes.exit_code == skipped.exit_code == 0
    assert yes.stdout.removeprefix(" y\n") == skipped.stdout != ""
    assert "at least about" in skipped.stderr
    assert "Go on" not in skipped.stderr


def test_stress_of_a_stored_run_asks_too(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vizpub.cli.commands.lab.costs.LONG_S", 0)
    result = vizpub(f"--workspace {workspace} lab stress monday")
    assert result.exit_code == 2
    tells(result.stderr, "at least about", "--yes")


def test_measurements_that_are_complete_are_not_estimated_again(folder: Path) -> None:
    from vizpub.experiments.channels.measuring import list_cases, measured_file
    from vizpub.experiments.channels.report import estimate
    from vizpub.experiments.measured import MeasuringRequest

    request = MeasuringRequest("full", folder, seeds=1)
    cases = list_cases("full", 1)
    file, half = measured_file(request), len(cases) // 2
    whole = estimate(request)
    note = file.complete(cases[:half], lambda missing: ((c, []) for c in missing), str, request)
    assert note == []
    assert estimate(request).seconds == pytest.approx(whole.seconds / 2)
    assert estimate(MeasuringRequest("full", folder, seeds=1, again=True)) == whole
