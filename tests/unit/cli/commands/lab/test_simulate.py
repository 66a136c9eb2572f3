"""`vizpub lab simulate`, with the system that the guide writes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.words import tells, unknown
from vizpub.cli.commands.lab.simulate import CHANNELS, _help_text
from vizpub.cli.main import app
from vizpub.model.run import NO_NAME_OF_A_RUN
from vizpub.reports.files import ReportReader
from vizpub.simulators.engine.specs import describe
from vizpub.simulators.engine.systems import SYSTEMS

ROOT = Path(__file__).parents[5]
Call = Callable[[str], Result]


@pytest.fixture
def vizpub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guide_code: str) -> Call:
    """A call in a folder with the guide's flood.py."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flood.py").write_text(guide_code, "utf-8")
    return lambda line: CliRunner().invoke(app, shlex.split(line))


def interval_of(folder: Path) -> int:
    """The last interval that is reported."""
    lines = (line for path in sorted(folder.iterdir()) for line in ReportReader(path))
    return max(getattr(line.record, "interval", -1) for line in lines)


def test_simulation_prints_its_size_and_messages_and_writes_reports(vizpub: Call) -> None:
    result = vizpub("lab simulate flood.py:Flood --peers 30 --intervals 10 --publications every:5")
    assert result.exit_code == 0, result.output
    assert "flood-1: 30 peers, 10 intervals, " in result.stderr
    assert "hello" in result.stdout
    assert interval_of(Path("vizpub-data/simulations/flood-1/reports")) == 9


def test_second_simulation_says_that_it_is_the_first_one(vizpub: Call) -> None:
    line = "lab simulate flood.py:Flood --peers 5 --intervals 3"
    first, again, anew = vizpub(line), vizpub(line), vizpub(f"{line} --replace")
    assert first.exit_code == again.exit_code == anew.exit_code == 0
    tells(again.stderr, "flood-1", "--replace")
    assert again.stdout == first.stdout == anew.stdout
    assert "--replace" not in first.stderr + anew.stderr


def test_config_file_gives_options_that_the_command_line_lacks(vizpub: Call) -> None:
    Path("study.toml").write_text('peers = 12\nintervals = 5\nlatency = "constant:5ms"\n', "utf-8")
    result = vizpub("lab simulate flood.py:Flood --config study.toml --intervals 7 --out here")
    assert result.exit_code == 0, result.output
    plan = json.loads(Path("here/simulation.json").read_text("utf-8"))["plan"]
    assert (plan["peers"], plan["intervals"], plan["latency"]) == (12, 7, "constant:5ms")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("flood.py:Flood --config none.toml", "none.toml"),
        ("flood.py:Flood --config typo.toml", unknown("option in typo.toml", "degre", "degree")),
        ("flood.py:Flood --peers none", "--peers"),
        ("flood.py:Flood --degree 0", "--degree"),
        ("gossip --ttl far", "'far'"),
        ("chord --lookup both", "'--lookup': 'both' is not one of 'iterative'"),
        ("flood.py:Flood --no-load", "--ingest NAME"),
        ("flood.py:Flood --churn weibul:1s", "weibull? (see: vizpub lab simulate models)"),
        ("flood.py:Flood --workload friends:nowhere.txt", "nowhere.txt"),
        ("flood.py:Flod", "'Flod'"),
        ("food.py:Flood", "food.py"),
        (":Flood", "module ''"),
        (".flood:Flood", "module '.flood'"),
        ("flood.py:annotations", "'annotations'"),
        ("flood.py:dataclass", "'dataclass'"),
        ("poldercats", unknown("system", "poldercats", "poldercast")),
    ],
)
def test_simulate_arguments_are_refused_with_the_reason(vizpub: Call, line: str, told: str) -> None:
    Path("typo.toml").write_text("degre = 12\n", "utf-8")
    result = vizpub(f"lab simulate {line}")
    assert result.exit_code == 2, result.output
    assert told in result.output


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("simulate flood.py:Flood --peers 5 --intervals 3", ("--no-load", "--speed 2")),
        ("construct cd-max --peers 5 --parquet", ("--live http://127.0.0.1:9", "--runs 2")),
    ],
)
def test_default_that_does_not_apply_is_left_out(
    vizpub: Call, line: str, given: tuple[str, ...]
) -> None:
    Path("study.toml").write_text(
        'no-load = true\nlayers = "ring"\nspeed = 2.0\nruns = 1\n', "utf-8"
    )
    assert vizpub(f"lab {line} --config study.toml").exit_code == 0
    for option in given:
        assert vizpub(f"lab {line} --replace {option}").exit_code == 2, option


@pytest.mark.parametrize("name", SYSTEMS)
def test_examples_in_the_help_of_a_system_run(vizpub: Call, name: str) -> None:
    shown = _help_text(name, "")
    (line,) = re.findall(r"vizpub (lab .*) --ingest study --no-load", shown)
    done = vizpub(f"{line} --peers 20 --intervals 2")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--ingest bad/name", f"'bad/name' {NO_NAME_OF_A_RUN}"),
        ("--ingest ''", f"'' {NO_NAME_OF_A_RUN}"),
        ("--ingest study --layers ring", unknown("layer", "ring")),
    ],
)
def test_ingest_options_are_refused_before_the_simulation(
    vizpub: Call, line: str, told: str
) -> None:
    result = vizpub(f"lab simulate flood.py:Flood --peers 5 --intervals 3 {line}")
    assert result.exit_code == 2, result.output
    assert told in result.output
    assert not Path("vizpub-data").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("peers = true", "peers"),
        ("loss = true", "loss"),
        ('replace = "no"', "replace"),
        ("[churn]\nmodel = 1", "churn"),
        ('workload = ["zipf"]', "workload"),
    ],
)
def test_config_values_of_a_wrong_type_are_refused(vizpub: Call, text: str, told: str) -> None:
    Path("study.toml").write_text(f"{text}\n", "utf-8")
    result = vizpub("lab simulate flood.py:Flood --config study.toml")
    assert result.exit_code == 2, result.output
    assert f"study.toml: {told}" in result.output


def test_earlier_simulation_is_kept_without_the_replace_option(vizpub: Call) -> None:
    line = "lab simulate flood.py:Flood --peers 5 --intervals 3 --out here"
    assert vizpub(line).exit_code == 0
    refused = vizpub(f"{line} --seed 2")
    assert refused.exit_code == 2
    tells(refused.output, "seed 1, not 2", "--replace")
    assert vizpub(f"{line} --seed 2 --replace").exit_code == 0


def test_simulate_models_lists_churn_models_and_options(vizpub: Call) -> None:
    from vizpub.simulators.world.churn import CHURNS

    shown = vizpub("lab simulate models").stdout
    assert all(line in shown for line in describe(CHURNS))
    assert all(f"--{option}" in shown for option in ("workload", "publications", "latency"))


def test_simulate_help_lists_all_systems(vizpub: Call) -> None:
    shown = vizpub("lab simulate --help").stdout
    assert all(name in shown for name in SYSTEMS if name != CHANNELS)


def test_interrupted_simulation_leaves_complete_intervals(vizpub: Call, tmp_path: Path) -> None:
    words = "lab simulate flood.py:Flood --peers 20 --intervals 100000 --out here"
    running = subprocess.Popen(
        [sys.executable, "-c", "from vizpub.cli.main import app; app()", *shlex.split(words)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        stderr=subprocess.PIPE,
        text=True,
    )
    reports = tmp_path / "here" / "reports"
    while not [*reports.glob("reports-*")]:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(2)
    _, told = running.communicate(timeout=300)
    assert running.returncode == 130, told
    tells(told, "here/reports")
    assert interval_of(reports) >= 49
    assert not [*reports.glob(".*")]


def test_long_simulation_asks_before_it_begins(
    vizpub: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "lab simulate flood.py:Flood --peers 30 --intervals 10"
    monkeypatch.setattr("vizpub.simulators.engine.estimate.NOTICED", 1)
    monkeypatch.setattr("vizpub.cli.commands.lab.costs.LONG_S", 0)
    unanswered = vizpub(line)
    assert unanswered.exit_code == 2
    tells(unanswered.stderr, "simulation", "--yes")
    assert not list(Path().rglob("reports"))
    assert vizpub(f"{line} --yes").exit_code == 0
    again = vizpub(line)
    assert again.exit_code == 0
    assert "Go on" not in again.stderr
