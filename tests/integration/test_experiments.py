"""An experiment from its file to its report, and what is made again when it is run again."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.words import tells
from vizpub.cli.commands.lab.experiment import ALREADY
from vizpub.questions.run import Run

TEXT = """
title = "Rings of sixteen"
about = "Two fanouts."
source = "none"
seeds = [1, 2]
metrics = ["hit_ratio", "messages/receptions", "union/nodes"]
notes = ["A note."]

[world]
peers = 16
intervals = 12
workload = "uniform:topics=1,subscriptions=1"
publications = "script:at=11"

[[systems]]
name = "F = 2"
system = "poldercast"
layers = ["rings"]

[[systems]]
name = "F = 3"
system = "poldercast"
parameters = { fanout = 3 }

[[published]]
kind = "value"
what = "Copies"
source = "n·F"
metric = "messages/receptions"
of = "F = 3"
value = 48
relative = 0

[[published]]
kind = "value"
what = "Too much to ask"
source = "nobody"
metric = "hit_ratio"
of = "F = 2"
above = 1
why = "It is a share."

[[published]]
kind = "order"
what = "Fanout costs copies"
source = "n·F"
metric = "messages/receptions"
order = ["F = 2", "F = 3"]

[[figures]]
kind = "tree"
name = "tree"
caption = "A tree."
groups = ["F = 3"]

[[figures]]
kind = "series"
name = "size"
caption = "Peers."
metrics = ["network_size"]

[small]
seeds = [1]
"""

Vizpub = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiment")


@pytest.fixture(scope="module")
def run(folder: Path, vizpub_here: Vizpub) -> Vizpub:
    return running(vizpub_here, folder)


def running(vizpub: Vizpub, folder: Path) -> Vizpub:
    path = folder / "rings.toml"
    path.write_text(TEXT, "utf-8")

    def call(*options: str) -> CompletedProcess[str]:
        return vizpub("lab", "experiment", "run", str(path), "--out", str(folder / "out"), *options)

    return call


@pytest.fixture(scope="module")
def first(run: Vizpub) -> CompletedProcess[str]:
    return run()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_experiment_run_says_how_many_claims_are_met(first: CompletedProcess[str]) -> None:
    assert first.returncode == 0, first.stderr
    tells(first.stderr, "run 1 of 2", "F = 2, seed 1")
    ((number, *_),) = re.findall(r"run (\d) of 2: .*; ends at about [\d: -]+, in", first.stderr)
    assert number == "1"  # after the last one there is nothing to wait for
    tells(first.stderr, "2 of 3")


def test_report_holds_results_against_published_values(
    first: CompletedProcess[str], folder: Path
) -> None:
    text = (folder / "out/report.md").read_text("utf-8")
    assert "| 1 | Copies | n·F | 48 exactly | 48 | met |" in text
    assert "| **not met** |" in text
    assert "- 2: It is a share." in text
    assert "A note." in text
    for name in ("tree-f-3.png", "tree-f-3.svg", "tree-f-3.gexf", "tree-f-3.csv", "size.png"):
        assert (folder / "out/figures" / name).stat().st_size > 100


def test_experiment_tables_hold_outcomes_values_and_runs(
    first: CompletedProcess[str], folder: Path
) -> None:
    published = rows(folder / "out/published.csv")
    assert [row["outcome"] for row in published] == ["met", "not met", "met"]
    values = {(r["metric"], r["group"]): r["value"] for r in rows(folder / "out/values.csv")}
    assert values["union/nodes", "F = 2"] == "16"
    assert values["messages/receptions", "F = 2"] == "32"
    kinds = {row["kind"] for row in rows(folder / "out/runs.csv")}
    assert {"publication"} < kinds


def test_experiment_runs_are_kept_in_their_own_workspace(
    first: CompletedProcess[str], folder: Path
) -> None:
    assert Run.open(folder / "out/workspace", "f-3-1").facts.parameters["fanout"] == 3
    assert Run.open(folder / "out/workspace", "f-2-1").facts.layers == ("rings",)
    assert not list((folder / "out/simulations").rglob("*.ndjson.gz"))


@pytest.mark.long
def test_shipped_experiment_on_dissemination_meets_its_claims(
    vizpub_here: Vizpub, tmp_path: Path
) -> None:
    """By a seed of each group; what is claimed of the full scale is only shown."""
    out = tmp_path / "out"
    done = vizpub_here(
        "lab", "experiment", "run", "dissemination", "--runs", "1", "--out", str(out)
    )
    assert done.returncode == 0, done.stderr
    outcomes = {row["what"]: row["outcome"] for row in rows(out / "published.csv")}
    shown = ("Mean hops, F = 2", "Mean hops, F = 3")
    assert len(outcomes) > 10
    assert outcomes == dict.fromkeys(outcomes, "met") | dict.fromkeys(shown, "shown")


@pytest.mark.long
def test_shipped_experiment_on_all_systems_meets_its_claims(
    vizpub_here: Vizpub, tmp_path: Path
) -> None:
    """By a seed of each group without churn; what churn does is only shown, and not run here."""
    out = tmp_path / "out"
    words = ["lab", "experiment", "run", "dissemination-of-all", "--runs", "1", "--only", "calm"]
    done = vizpub_here(*words, "--out", str(out))
    assert done.returncode == 0, done.stderr
    outcomes = {row["what"]: row["outcome"] for row in rows(out / "published.csv")}
    beside = {what: outcome for what, outcome in outcomes.items() if "under churn" not in what}
    assert len(beside) > 10
    assert beside == dict.fromkeys(beside, "met")
    churn = outcomes.items() - beside.items()
    assert {outcome for _, outcome in churn} == {"unknown"}


@pytest.mark.long
@pytest.mark.parametrize(("name", "setting", "met"), [("hyparview", "none", 10)])
def test_shipped_experiment_meets_the_claims_of_a_setting(
    name: str, setting: str, met: int, vizpub_here: Vizpub, tmp_path: Path
) -> None:
    """By a seed of each group; claims of other settings are unknown then."""
    out = tmp_path / "out"
    words = ["lab", "experiment", "run", name, "--runs", "1", "--only", setting]
    done = vizpub_here(*words, "--out", str(out))
    assert done.returncode == 0, done.stderr
    outcomes = [row["outcome"] for row in rows(out / "published.csv")]
    assert outcomes.count("met") == met
    assert "not met" not in outcomes


@pytest.mark.long
def test_experiment_starts_a_spark_of_its_own(vizpub_process: Vizpub, tmp_path: Path) -> None:
    alone = running(vizpub_process, tmp_path)()
    assert alone.returncode == 0, alone.stderr
    tells(alone.stderr, "2 of 3")


@pytest.mark.long
def test_experiment_runs_already_there_are_not_made_again(
    first: CompletedProcess[str], run: Vizpub, folder: Path
) -> None:
    gone, kept = (folder / "out/workspace/runs" / name for name in ("f-2-1", "f-3-1"))
    before = (kept / "run.json").stat().st_mtime_ns
    shutil.rmtree(gone)
    (folder / "out/report.md").unlink()
    # What is not asked for stays in the report.
    again = run("--only", "F = 2")
    assert again.returncode == 0
    assert "F = 3, seed 1" not in again.stderr
    assert (kept / "run.json").stat().st_mtime_ns == before
    assert (gone / "run.json").exists()
    assert (folder / "out/report.md").exists()
    outcomes = [row["outcome"] for row in rows(folder / "out/published.csv")]
    assert outcomes == ["met", "not met", "met"]
    tells(run().stderr, "2 runs", ALREADY)


@pytest.mark.long
def test_experiment_part_leaves_other_claims_unknown(
    first: CompletedProcess[str], run: Vizpub, folder: Path
) -> None:
    shutil.rmtree(folder / "out/workspace/runs/f-3-1")
    part = run("--only", "F = 2")
    assert part.returncode == 0
    outcomes = [row["outcome"] for row in rows(folder / "out/published.csv")]
    assert outcomes == ["unknown", "not met", "unknown"]
    assert run("--only", "F = 4").returncode == 2
    assert run().returncode == 0


def test_changed_parameters_in_the_same_folder_are_refused(
    first: CompletedProcess[str], run: Vizpub, folder: Path
) -> None:
    path = folder / "rings.toml"
    path.write_text(TEXT.replace("peers = 16", "peers = 17"), "utf-8")
    try:
        refused = run()
    finally:
        path.write_text(TEXT, "utf-8")
    assert refused.returncode == 2
    tells(refused.stderr, "peers 16, not 17", "--out")


def test_missing_data_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vizpub_here: Vizpub
) -> None:
    monkeypatch.delenv("VIZPUB_DATA", raising=False)
    words = [
        "lab",
        "experiment",
        "run",
        "table-4.3",
        "--out",
        str(tmp_path),
        "--data",
        str(tmp_path),
    ]
    refused = vizpub_here(*words)
    assert refused.returncode == 2
    tells(refused.stderr, "skype.avt.gz")
    assert list(tmp_path.iterdir()) == []
