"""What `vizpub lab experiment run` keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from vizpub.cli.commands.lab import experiment
from vizpub.cli.main import app
from vizpub.experiments.definition import read_experiment
from vizpub.experiments.runs import ExperimentFolder, planned_runs
from vizpub.model.errors import UseError
from vizpub.simulators.engine.simulation import simulate

TEXT = """
title = "T"
about = "A"
source = "S"
systems = [{ name = "one", system = "cyclon" }]
seeds = [1]
metrics = ["links"]

[world]
peers = 8
intervals = 4
"""


def test_replacement_that_is_not_confirmed_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tmp_path / "own.toml", tmp_path / "out"
    path.write_text(TEXT, "utf-8")
    (one,) = planned_runs(read_experiment(str(path)), ExperimentFolder(out), None, ())
    simulate(one.plan, one.folder)

    def refuse(*_: object, **__: object) -> None:
        raise UseError("no")

    monkeypatch.setattr(experiment, "confirm_simulations", refuse)
    words = ["lab", "experiment", "run", str(path), "--out", str(out), "--replace"]
    assert CliRunner().invoke(app, words).exit_code == 2
    assert one.has_reports()
