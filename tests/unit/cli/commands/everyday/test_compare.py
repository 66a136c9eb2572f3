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
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from PIL import Image
from scipy import stats
from typer.testing import CliRunner, Result

from tests.support.grouped import add_attributes
from tests.support.rewriting import rewrite
from tests.support.words import tells, unfinished, unknown
from vizpub.analytics.comparison.conditions import (
    NEEDS_TWO_GROUPS,
    NO_INTERVAL_TO_JUDGE,
    UNKNOWN_IN_EVERY_RUN,
)
from vizpub.analytics.comparison.groups import NO_INTERVAL
from vizpub.cli.commands.everyday.compare import for_people
from vizpub.cli.main import app
from vizpub.model.metrics import METRICS_OVERLAY
from vizpub.runstore.manifest import read_manifest, write_manifest

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
    tells(result.stderr, "0 to 3")
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
    tells(result.stderr, NO_INTERVAL, "gossip")
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
    tells(result.stderr, "note", "clustering_mean")


def test_window_limits_the_intervals_compared(vizpub: Call) -> None:
    words = ["gossip-*", "--metrics", "diameter,publications", "-f", "json"]
    diameter, published = data(vizpub(*words, "--from", "2", "--to", "2.5s"))
    assert diameter["value"] == pytest.approx(fmean(DIAMETERS["gossip"].values()))
    assert published["value"] == 1
    assert vizpub(*words, "--from", "9").exit_code == 2


def test_window_is_of_the_intervals_that_any_run_has(vizpub: Call, workspace: Path) -> None:
    short = workspace / "runs" / "gossip-1"
    manifest = read_manifest(short)
    write_manifest(short, replace(manifest, clock=replace(manifest.clock, last=1)))
    words = ["gossip-1", "gossip-2", "--metrics", "diameter", "-f", "json"]
    whole, windowed = (data(vizpub(*words, *window)) for window in ([], ["--to", "last"]))
    assert whole == windowed
    assert vizpub(*words, "--common", "--to", "3").exit_code == 2


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
    tells(result.stderr, file)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("gosip-1", unknown("run", "gosip-1", "gossip-1")),
        ("nosuch-*", unknown("run like", "nosuch-*")),
        ("gossip-1 half", unfinished("half", "ingesting")),
        ("gossip-1 --metrics diametr", unknown("metric", "diametr", "diameter")),
        ("gossip-1 --metrics diameter,", "'diameter,'"),
        ("gossip-1 --by protocl", unknown("property of these runs", "protocl", "protocol")),
        ("gossip-1 --over interval", unknown("property to compare over", "interval", "intervals")),
        ("gossip-1 --over intervals --metrics distinct_links", "distinct_links"),
        ("gossip-1 --plot x.gif", ".png, .svg, .pdf"),
        ("gossip-1 --from 3 --to 1", "(interval 1)"),
        ("gossip-1 --fail-if diametr>1", unknown("metric", "diametr", "diameter")),
        ("gossip-1 --fail-if diameter", "'diameter'"),
        ("gossip-1 --fail-if diameter>1x", NEEDS_TWO_GROUPS),
        ("gossip-1 --fail-if diameter>1 --metrics diameter", "--metrics"),
        ("gossip-1 --fail-if diameter>1 --over intervals", "--over"),
        ("gossip-1 -f junit", "--fail-if"),
        ("gossip-1 -o a.xml", "--fail-if"),
    ],
)
def test_compare_options_are_refused_with_the_reason(vizpub: Call, words: str, why: str) -> None:
    result = vizpub(*words.split())
    assert result.exit_code == (1 if "half" in words else 2)
    assert result.stdout == ""
    assert why in result.stderr
    assert "Traceback" not in result.stderr


def test_condition_that_holds_for_certain_fails_the_comparison(vizpub: Call) -> None:
    # Diameters of tree exceed twice those of gossip in no pair, and 1.2 times in every one.
    # By hand: 9.5 - 1.2·4.5 = 4.1, 11.5 - 1.2·5.5 = 4.9, 12.5 - 1.2·7.5 = 3.5.
    words = ["gossip-*", "tree-*", "--fail-if", "diameter > 1.2x", "--fail-if", "diameter > 2x"]
    result = vizpub(*words, "-f", "json")
    assert result.exit_code == 1
    certain, no = json.loads(result.stdout)
    bounds = stats.ttest_1samp([4.1, 4.9, 3.5], 0).confidence_interval()
    assert (certain["condition"], certain["group"], certain["result"]) == (
        "diameter > 1.2x", "tree-*", "failed",
    )  # fmt: skip
    assert [certain["low"], certain["high"]] == pytest.approx([bounds.low, bounds.high])
    assert no["result"] == "possible"
    tells(result.stderr, "diameter > 1.2x", "failed", "1 of 2 checks")


def test_condition_that_may_hold_fails_only_where_that_suffices(vizpub: Call) -> None:
    words = ["gossip-*", "tree-*"]
    lenient = vizpub(*words, "--fail-if", "diameter > 2x", "-f", "md")
    assert lenient.exit_code == 0
    assert [cell.strip() for cell in lenient.stdout.splitlines()[2].split("|")[1:4]] == [
        "diameter > 2x", "tree-*", "possible",
    ]  # fmt: skip
    strict = vizpub(*words, "--fail-if-possible", "diameter > 2x", "-f", "csv")
    (row,) = csv.DictReader(io.StringIO(strict.stdout))
    assert (strict.exit_code, row["result"]) == (1, "failed")


def test_junit_report_has_a_case_for_each_condition(vizpub: Call, tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    conditions = ("hit_ratio<0.5", "diameter>1.2x", "clustering_mean > 1x")
    words = [word for text in conditions for word in ("--fail-if", text)]
    result = vizpub("gossip-*", "tree-*", *words, "-o", str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    suites = ElementTree.parse(file).getroot()
    (suite,) = suites
    assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
    for element in (suites, suite):
        counts = {name: element.get(name) for name in ("tests", "failures", "errors", "skipped")}
        assert counts == {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    assert suite.get("name") == "vizpub compare gossip-* tree-*"
    assert [(case.tag, case.get("classname"), case.get("name")) for case in suite] == [
        ("testcase", "tree-*", text) for text in conditions
    ]
    ((passed,), (failure,), (error,)) = suite
    assert (passed.tag, failure.tag, error.tag) == ("system-out", "failure", "error")
    assert failure.get("type") == "failed"
    tells(error.get("message") or "", "clustering_mean > 1x", UNKNOWN_IN_EVERY_RUN)


def test_single_runs_have_no_certain_difference(vizpub: Call) -> None:
    words = ["gossip-1", "tree-1"]
    result = vizpub(*words, "--fail-if", "diameter > 3x")
    assert result.exit_code == 1
    tells(result.stderr, "diameter > 3x", NO_INTERVAL_TO_JUDGE)
    assert vizpub(*words, "--fail-if-possible", "diameter > 3x").exit_code == 0
    assert vizpub(*words, "--fail-if-possible", "diameter > 2x").exit_code == 1


def test_patterns_make_groups_of_runs_that_nothing_else_tells_apart(
    vizpub: Call, workspace: Path
) -> None:
    for seed in (1, 2):
        make_run(workspace, "new", seed, 30)
        goal = workspace / "runs" / f"new-{seed}"
        write_manifest(goal, replace(read_manifest(goal), protocol="gossip"))
    words = ["gossip-*", "new-*", "--metrics", "diameter", "--by", "pattern", "-f", "json"]
    found = data(vizpub(*words))
    assert [(r["group"], r["runs"]) for r in found if r["estimate"] == "mean"] == [
        ("gossip-*", 3), ("new-*", 2),
    ]  # fmt: skip


def test_groups_of_peers_are_compared_by_an_attribute(
    vizpub: Call, workspace: Path, tmp_path: Path
) -> None:
    for protocol, diameters in DIAMETERS.items():
        for seed in diameters:
            add_attributes(workspace, f"{protocol}-{seed}", client="abab")
    words = ["gossip-*", "tree-*", "--metrics", "degree"]
    by_client = data(vizpub(*words, "--by", "client", "--receivers", "-f", "json"))
    clients = ["client=a", "client=b"]
    assert [(r["group"], r["runs"]) for r in by_client[:2]] == [(name, 6) for name in clients]
    head = vizpub(*words, "--by", "client", "-f", "md").stdout.splitlines()[0]
    assert "| client=a (6 runs) | client=b (6 runs) |" in head
    over_client = data(vizpub(*words, "--over", "client", "-f", "json"))
    assert [(r["setting"], r["group"]) for r in over_client if r["estimate"] == "mean"] == [
        ("a", "gossip"), ("a", "tree"), ("b", "gossip"), ("b", "tree"),
    ]  # fmt: skip
    report = tmp_path / "report.xml"
    conditions = ["--over", "client", "--fail-if", "degree > 2x", "-o", str(report)]
    assert vizpub(*words[:2], *conditions).exit_code == 0
    cases = ElementTree.parse(report).getroot().iter("testcase")
    assert [case.get("classname") for case in cases] == [f"tree-* {name}" for name in clients]


def record(group: str, value: float | None = 5.0, **more: Any) -> dict[str, Any]:
    about = {"metric": "diameter", "unit": "hops", "over": "mean of intervals"}
    estimate = {"estimate": "mean", "value": value, "low": None, "high": None}
    return {**about, "group": group, **estimate, "n": 1, "runs": 1, **more}


def test_groups_stand_beside_one_another() -> None:
    pair = record("a / b", 2.0, estimate="paired ratio")
    rows, _ = for_people([record("a", 6.0, n=2, runs=2), record("b", 3.0), pair])
    assert rows.columns == (
        "metric", "a (2 runs)", "b (1 run)", "a / b, paired", "unit", "over",
    )  # fmt: skip
    assert list(rows.values) == [("diameter", "6", "3", "2", "hops", "mean of intervals")]


def test_groups_beyond_the_columns_stand_below_one_another() -> None:
    rows, _ = for_people([record(f"g{i}", float(i)) for i in range(5)])
    assert [row[1:3] for row in rows.values] == [(f"g{i}", str(i)) for i in range(5)]


def test_setting_has_a_row_despite_missing_run_or_group() -> None:
    """One of the settings lacks a run, and one a group."""
    every = [
        record("a", 1.0, setting="0", n=2, runs=2),
        record("a", 2.0, setting="5"),
        record("b", 3.0, setting="5"),
    ]
    rows, _ = for_people(every, ("churn",))
    assert rows.columns == ("metric", "churn", "a (2 runs)", "b (1 run)", "unit", "over")
    about = ("hops", "mean of intervals")
    assert list(rows.values) == [
        ("diameter", "0", "1", None, *about),
        ("diameter", "5", "2 (n = 1)", "3", *about),
    ]


def test_estimates_are_never_cut_to_the_width() -> None:
    groups = [record(name, 3.14159, low=3.0, high=3.28318, n=2, runs=2) for name in ("a", "b")]
    every = [*groups, record("a / b", 1.0, low=0.9, high=1.1, estimate="ratio")]
    whole, nothing = for_people(every)
    assert nothing == ()
    cells = {str(cell) for row in whole.values for cell in row}
    for width in range(20, 100):
        rows, hidden = for_people(every, width=width)
        assert {str(cell) for row in rows.values for cell in row} <= cells | {
            "a",
            "b",
            "a / b",
            "2",
        }
        if rows.columns[1] == "group":
            assert rows.columns[2] == "estimate, 95 %"
            assert len(list(rows.values)) == 3
        else:
            assert (*rows.columns, *hidden) == whole.columns
            assert len(rows.columns) >= 3
    assert for_people(every, width=25)[0].columns[1] == "group"


def test_sentence_has_both_means_and_the_interval_of_their_difference(vizpub: Call) -> None:
    result = vizpub("gossip-*", "tree-*", "--metrics", "diameter")
    apart = [DIAMETERS["gossip"][seed] - DIAMETERS["tree"][seed] for seed in (1, 2, 3)]
    low, high = stats.t.interval(0.95, 2, fmean(apart), stats.sem(apart))
    assert (
        "diameter: 5.8 ± 3.8 hops for gossip, 11.2 ± 3.8 hops for tree; gossip - tree is "
        f"{fmean(apart):.1f} hops, between {low:.1f} and {high:.1f} with 95 % confidence "
        "(3 pairs of runs)." in result.stderr
    )
    assert "confidence (" not in vizpub("gossip-*", "--metrics", "diameter").stderr


def test_figure_has_the_style_size_and_title_that_are_asked_for(
    vizpub: Call, tmp_path: Path
) -> None:
    words = ("gossip-*", "tree-*", "--metrics", "diameter,hit_ratio")
    for over in ("runs", "intervals"):
        file = tmp_path / f"{over}.png"
        look = ("--size", "9x6cm", "--style", "dark", "--title", "Gossip and trees")
        assert vizpub(*words, "--over", over, "--plot", str(file), *look).exit_code == 0
        with Image.open(file) as image:
            assert image.size == pytest.approx((9 / 2.54 * 150, 6 / 2.54 * 150), abs=1)
            assert max(image.convert("RGB").getpixel((1, 1))) < 60  # a dark ground
    drawing = tmp_path / "runs.svg"
    assert vizpub(*words, "--plot", str(drawing), *look).exit_code == 0
    assert "Gossip and trees" in drawing.read_text()


def test_look_of_a_figure_is_refused_where_it_does_not_apply(vizpub: Call, tmp_path: Path) -> None:
    for option in (["--style", "paper"], ["--size", "9cm"], ["--title", ""]):
        refused = vizpub("gossip-*", "--metrics", "diameter", *option)
        assert refused.exit_code == 2
        tells(refused.stderr, option[0], "--plot")
    file = tmp_path / "f.pdf"
    for option, word in ((["--style", "posh"], "posh"), (["--size", "9ft"], "9ft")):
        refused = vizpub("gossip-*", "--metrics", "diameter", "--plot", str(file), *option)
        assert refused.exit_code == 2
        tells(refused.stderr, word)
        assert not file.exists()
