"""`vizpub compare`, as a user calls it, on runs that are known by heart."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pytest
from scipy import stats
from typer.testing import CliRunner, Result

from cli.main import app
from model.metrics import METRICS_OVERLAY
from runstore.manifest import read_manifest, write_manifest
from tests.support.rewriting import rewrite

Call = Callable[..., Result]
DIAMETERS = {"gossip": {1: 4, 2: 5, 3: 7}, "tree": {1: 9, 2: 11, 3: 12}}


def make_run(workspace: Path, protocol: str, seed: int, diameter: int) -> None:
    """A copy of `monday`: another protocol, seed and diameter."""
    goal = workspace / "runs" / f"{protocol}-{seed}"
    shutil.copytree(workspace / "runs" / "monday", goal)
    told = {"name": goal.name, "protocol": protocol, "seed": seed, "parameters": {"peers": 4}}
    write_manifest(goal, replace(read_manifest(goal), **told))
    blank = dict.fromkeys(METRICS_OVERLAY.names)
    rows = [blank | {"interval": i, "diameter": diameter + i % 2} for i in range(4)]
    table = pa.Table.from_pylist(rows, METRICS_OVERLAY.arrow)
    rewrite(workspace, goal.name, "metrics/overlay", table)


@pytest.fixture
def vizpub(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.delenv("VIZPUB_WORKSPACE", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    for protocol, diameters in DIAMETERS.items():
        for seed, diameter in diameters.items():
            make_run(workspace, protocol, seed, diameter)

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), "compare", *words])

    return call


def data(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_compare_shows_groups_side_by_side_with_their_intervals(vizpub: Call) -> None:
    result = vizpub("gossip-*", "tree-*", "--metrics", "diameter,hit_ratio", "-f", "md")
    head, _, diameter, hits = result.stdout.splitlines()
    assert head == (
        "| metric | gossip (3 runs) | tree (3 runs) | gossip / tree, paired "
        "| gossip - tree, paired | unit | over |"
    )
    cells = [cell.strip() for cell in diameter.strip("|").split("|")]
    assert cells[:3] == ["diameter", "5.8 ± 3.8", "11.2 ± 3.8"]
    assert cells[4:] == ["-5.3 [-6.8, -3.9]", "hops", "mean of intervals"]
    assert "| 0.5 ± 0 | 0.5 ± 0 | 1 [1, 1] | 0 [0, 0] | share | pooled over messages |" in hits
    assert "intervals 0 to 3" in result.stderr
    assert "note" not in result.stderr


def test_json_and_csv_have_every_estimate_in_full(vizpub: Call) -> None:
    found = data(vizpub("gossip-*", "tree-*", "--metrics", "diameter", "-f", "json"))
    assert [r["estimate"] for r in found] == ["mean", "mean", "paired ratio", "paired difference"]
    x, y = ([d + 0.5 for d in DIAMETERS[group].values()] for group in ("gossip", "tree"))
    assert (found[0]["value"], found[0]["n"]) == (pytest.approx(fmean(x)), 3)
    bounds = stats.ttest_rel(x, y).confidence_interval(0.95)
    assert [found[3]["low"], found[3]["high"]] == pytest.approx([bounds.low, bounds.high])
    text = vizpub("gossip-*", "tree-*", "--metrics", "diameter", "-f", "csv").stdout
    assert len(list(csv.DictReader(io.StringIO(text)))) == 4


def test_single_group_or_run_makes_a_table_without_interval(vizpub: Call) -> None:
    result = vizpub("gossip-1", "--metrics", "diameter")
    assert result.stdout.splitlines()[2].split()[:2] == ["diameter", "4.5"]
    assert "no confidence interval for a single run: gossip" in result.stderr
    assert "gossip (3 runs)" in vizpub("gossip-*", "--metrics", "diameter").stdout


def test_run_named_twice_is_counted_once(vizpub: Call) -> None:
    (row,) = data(vizpub("gossip-*", "gossip-1", "--metrics", "diameter", "-f", "json"))
    assert row["runs"] == 3


def test_groups_by_run_stand_below_one_another(vizpub: Call) -> None:
    result = vizpub("gossip-*", "tree-*", "--by", "run", "--metrics", "diameter")
    lines = [line.split()[:4] for line in result.stdout.splitlines()[2:]]
    assert lines[0] == ["diameter", "gossip-1", "4.5", "1"]
    assert len(lines) == 6


def test_default_metrics_leave_out_those_unknown_in_every_run(vizpub: Call) -> None:
    result = vizpub("gossip-*", "tree-*", "-f", "json")
    names = {row["metric"] for row in data(result)}
    assert {"diameter", "hit_ratio", "distinct_links", "hops_max"} <= names
    assert "clustering_mean" not in names
    assert "note: unknown in every run: " in result.stderr


def test_window_limits_the_intervals_compared(vizpub: Call) -> None:
    words = ["gossip-*", "--metrics", "diameter,publications", "-f", "json"]
    diameter, published = data(vizpub(*words, "--from", "2", "--to", "2.5s"))
    assert diameter["value"] == pytest.approx(fmean(DIAMETERS["gossip"].values()))
    assert published["value"] == 1
    assert vizpub(*words, "--from", "9").exit_code == 2


def test_compare_over_intervals_has_a_row_per_interval(vizpub: Call) -> None:
    words = ["gossip-*", "tree-*", "--over", "intervals", "--metrics", "diameter", "-f", "json"]
    found = data(vizpub(*words, "--from", "1"))
    assert [(r["group"], r["interval"]) for r in found] == [
        (group, i) for group in DIAMETERS for i in (1, 2, 3)
    ]
    assert found[1]["value"] == pytest.approx(fmean(DIAMETERS["gossip"].values()))
    assert (found[1]["n"], found[1]["runs"], found[1]["unit"]) == (3, 3, "hops")


def test_compare_over_a_parameter_has_a_row_per_value(vizpub: Call) -> None:
    words = ["gossip-*", "tree-*", "--over", "seed", "--metrics", "diameter"]
    head, _, *lines = vizpub(*words).stdout.splitlines()
    assert head.split()[:2] == ["metric", "seed"]
    assert [line.split()[:4] for line in lines] == [
        ["diameter", "1", "4.5", "9.5"],
        ["diameter", "2", "5.5", "11.5"],
        ["diameter", "3", "7.5", "12.5"],
    ]
    found = data(vizpub(*words, "-f", "json"))
    assert [r["setting"] for r in found] == ["1"] * 4 + ["2"] * 4 + ["3"] * 4


@pytest.mark.parametrize("over", ["runs", "intervals", "seed"])
def test_plot_option_writes_a_figure_beside_the_table(
    vizpub: Call, tmp_path: Path, over: str
) -> None:
    file, rows = tmp_path / "figure.svg", tmp_path / "table.csv"
    words = ["--metrics", "diameter,hit_ratio", "--over", over, "--plot", str(file)]
    result = vizpub("gossip-*", "tree-*", *words, "-o", str(rows))
    assert result.exit_code == 0, result.stderr
    assert file.read_text("utf-8").startswith("<?xml")
    with rows.open(newline="") as text:
        assert {row["metric"] for row in csv.DictReader(text)} == {"diameter", "hit_ratio"}
    assert f"wrote {file}" in result.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("gosip-1", "did you mean gossip-1"),
        ("nosuch-*", "no run like 'nosuch-*'"),
        ("gossip-1 half", "not complete"),
        ("gossip-1 --metrics diametr", "did you mean diameter"),
        ("gossip-1 --metrics diameter,", "is not a list of names"),
        ("gossip-1 --by protocl", "did you mean protocol"),
        ("gossip-1 --over interval", "did you mean intervals"),
        ("gossip-1 --over intervals --metrics distinct_links", "of a whole run"),
        ("gossip-1 --plot x.gif", ".png, .svg, .pdf"),
        ("gossip-1 --from 3 --to 1", "ends"),
    ],
)
def test_compare_options_are_refused_with_the_reason(vizpub: Call, words: str, why: str) -> None:
    result = vizpub(*words.split())
    assert result.exit_code == (1 if "half" in words else 2)
    assert result.stdout == ""
    assert why in result.stderr
    assert "Traceback" not in result.stderr
