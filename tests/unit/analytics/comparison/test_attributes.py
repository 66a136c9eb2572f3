"""Comparisons of groups of peers, against plain loops over the rows of runs drawn at random."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy import stats

from tests.support.grouped import KEY, play_groups, value_at
from tests.support.played import Played
from vizpub.analytics.comparison.attributes import BY_ATTRIBUTE
from vizpub.analytics.comparison.conditions import Condition, judge_conditions
from vizpub.analytics.comparison.per_run import NO_ATTRIBUTE, ComparisonRequest, measure_runs
from vizpub.analytics.comparison.tables import compare_groups, compare_settings
from vizpub.model.errors import UnknownName, UseError
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun

METRICS = ("degree", "duplicates", "delay_us_mean", "hit_ratio")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Played, Run]]:
    """Three runs of the same kind of clock."""
    found = []
    for seed in (1, 3, 5):
        folder = tmp_path_factory.mktemp("runs")
        made = play_groups(folder, seed)
        found.append((made, Run.open(folder, made.name)))
    return found


def peer_means(made: Played, column: str, first: int, last: int) -> dict[str | None, float]:
    """The mean over the peers present in each interval, and then over intervals, by value."""
    values: dict[Any, list[float]] = defaultdict(list)
    for row in made.rows["metrics/peers"]:
        if first <= row["interval"] <= last and row[column] is not None:
            value = value_at(made, row["peer"], made.clock.sampling_tick(row["interval"]))
            values[value, row["interval"]].append(row[column])
    by_value: dict[str | None, list[float]] = defaultdict(list)
    for (value, _), numbers in values.items():
        by_value[value].append(fmean(numbers))
    return {value: fmean(means) for value, means in by_value.items()}


def delay_means(made: Played, *, receivers: bool) -> dict[str | None, float]:
    """The mean delay of first arrivals, by the value of the publisher or of the receiver."""
    at = {row["message"]: row for row in made.rows["publications"]}
    delays: dict[str | None, list[int]] = defaultdict(list)
    for row in made.rows["receptions"]:
        message = at[row["message"]]
        peer = row["peer"] if receivers else message["publisher"]
        if row["first"]:
            delays[value_at(made, peer, message["tick"])].append(
                row["time_us"] - message["time_us"]
            )
    return {value: fmean(numbers) for value, numbers in delays.items()}


@pytest.mark.parametrize("receivers", [False, True])
def test_groups_are_peers_with_the_same_value(
    played: list[tuple[Played, Run]], receivers: bool
) -> None:
    runs = [run for _, run in played]
    answer = measure_runs(runs, ComparisonRequest(METRICS, (KEY,), receivers=receivers))
    expected: dict[str, dict[str, list[float]]] = {"degree": {}, "duplicates": {}, "delays": {}}
    for made, _ in played:
        for name in ("degree", "duplicates"):
            for value, mean in peer_means(made, name, made.clock.first, made.clock.last).items():
                expected[name].setdefault(f"{KEY}={value}", []).append(mean)
        for value, mean in delay_means(made, receivers=receivers).items():
            expected["delays"].setdefault(f"{KEY}={value}", []).append(mean)
    rows = compare_groups(answer.runs, answer.metrics).to_pylist()
    names = {"degree": "degree", "duplicates": "duplicates", "delay_us_mean": "delays"}
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["metric"] in names and row["value"] is not None and row["estimate"] == "mean":
            found[names[row["metric"]]][row["group"]] = row["value"]
    for name, by_group in expected.items():
        by_group.pop(f"{KEY}=None", None)
        assert found[name] == pytest.approx({of: fmean(v) for of, v in by_group.items()})
    assert any("peers without" in note and KEY in note for note in answer.notes)
    (over,) = {row["over"] for row in rows if row["metric"] == "hit_ratio"}
    assert ("peers" in over) is receivers


def test_window_limits_the_intervals_of_groups(played: list[tuple[Played, Run]]) -> None:
    made, run = played[0]
    answer = measure_runs([run], ComparisonRequest(("degree",), (KEY,), window=(1, 3)))
    found = {one.group: one.values["degree"] for one in answer.runs}
    expected = peer_means(made, "degree", 1, 3)
    expected.pop(None, None)
    assert {k: v for k, v in found.items() if v is not None} == pytest.approx(
        {f"{KEY}={value}": mean for value, mean in expected.items()}
    )
    assert {metric.over for metric in answer.metrics} == {"mean of peers, then of intervals 1 to 3"}


def test_runs_are_compared_at_each_value(played: list[tuple[Played, Run]]) -> None:
    runs = [run for _, run in played]
    request = ComparisonRequest(
        ("degree",), ("pattern",), setting=KEY, patterns=("old", "new", "new")
    )
    answer = measure_runs(runs, request)
    rows = compare_settings(answer.runs, answer.metrics).to_pylist()
    means = [peer_means(made, "degree", made.clock.first, made.clock.last) for made, _ in played]
    found = {
        (row["setting"], row["group"]): row["value"]
        for row in rows
        if row["estimate"] == "mean" and row["value"] is not None
    }
    expected = {}
    for group, members in (("old", means[:1]), ("new", means[1:])):
        for value in {value for mean in members for value in mean} - {None}:
            expected[value, group] = fmean(mean[value] for mean in members if value in mean)
    assert found == pytest.approx(expected)


def test_conditions_are_judged_at_each_value(played: list[tuple[Played, Run]]) -> None:
    runs = [run for _, run in (*played, *played)]
    patterns = ("old",) * 3 + ("new",) * 3
    request = ComparisonRequest(("degree",), ("pattern",), setting=KEY, patterns=patterns)
    answer = measure_runs(runs, request)
    conditions = [Condition.parse("degree > 0.5x"), Condition.parse("degree < 1")]
    rows = judge_conditions(answer.runs, answer.metrics, conditions, KEY).to_pylist()
    means = [peer_means(made, "degree", made.clock.first, made.clock.last) for made, _ in played]
    shared = {value for mean in means for value in mean} - {None}
    by_place = {(row["condition"], row["group"]): row for row in rows}
    assert len(by_place) == len(rows)
    for value in shared:
        numbers = [mean[value] for mean in means if value in mean]
        row = by_place["degree > 0.5x", f"new {KEY}={value}"]
        assert row["value"] == pytest.approx(fmean(numbers))
        assert row["limit"] == pytest.approx(0.5 * fmean(numbers))
        if len(numbers) > 1:
            bounds = stats.ttest_1samp([one - 1 for one in numbers], 0).confidence_interval()
            row = by_place["degree < 1", f"new {KEY}={value}"]
            assert [row["low"], row["high"]] == pytest.approx([bounds.low, bounds.high])


def test_groups_of_the_same_runs_are_compared_by_pairs(
    played: list[tuple[Played, Run]],
) -> None:
    runs = [replace(run, stored=renamed(run, f"run {n}")) for n, (_, run) in enumerate(played)]
    answer = measure_runs(runs, ComparisonRequest(("degree",), ("zone",)))
    conditions = [Condition.parse("degree > 1x")]
    rows = judge_conditions(answer.runs, answer.metrics, conditions).to_pylist()
    values = {(one.run, one.group): one.values["degree"] for one in answer.runs}
    gaps = []
    for run in runs:
        first, second = (values[run.facts.name, f"zone=zone {n}"] for n in (0, 1))
        assert first is not None
        assert second is not None
        gaps.append(second - first)
    bounds = stats.ttest_1samp(gaps, 0).confidence_interval()
    (row,) = [row for row in rows if row["group"] == "zone=zone 1"]
    assert [row["low"], row["high"]] == pytest.approx([bounds.low, bounds.high])


def renamed(run: Run, name: str) -> StoredRun:
    return StoredRun(run.stored.directory, replace(run.stored.manifest, name=name))


def test_value_that_a_group_lacks_cannot_be_judged(played: list[tuple[Played, Run]]) -> None:
    (first, run), (second, other) = played[0], played[2]
    zones = [{row["value"] for row in made.rows["attributes"] if row["key"] == "load"}
             for made in (first, second)]  # fmt: skip
    (only,) = sorted({f"{z}" for z in zones[0] ^ zones[1]}, key=float)[:1]
    request = ComparisonRequest(("degree",), ("pattern",), setting="load", patterns=("a", "b"))
    answer = measure_runs([run, other], request)
    for text in ("degree > 1x", "degree > 1"):
        conditions = [Condition.parse(text, fails_if_possible=True)]
        rows = judge_conditions(answer.runs, answer.metrics, conditions, "load").to_pylist()
        of_value = [row for row in rows if row["group"] == f"b load={only}"]
        is_judged = text == "degree > 1" and only in zones[1]
        assert [row["result"] == "unknown" for row in of_value] == [not is_judged]


def test_usual_metrics_of_groups_are_those_that_are_known(
    played: list[tuple[Played, Run]],
) -> None:
    answer = measure_runs([played[0][1]], ComparisonRequest(by=(KEY,)))
    assert {metric.name for metric in answer.metrics} < {*BY_ATTRIBUTE}
    assert {"duplicates", "hit_ratio"} <= {metric.name for metric in answer.metrics}


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (ComparisonRequest(by=("cuntry",)), UnknownName, ["cuntry", "country"]),
        (ComparisonRequest(by=("country", "load")), UseError, ["country", "load"]),
        (ComparisonRequest(("diameter",), ("country",)), UnknownName, ["diameter"]),
        (ComparisonRequest(("component",), ("country",)), UnknownName, ["component"]),
        (ComparisonRequest(by=("country",), per_interval=True), UseError, ["intervals"]),
        (ComparisonRequest(receivers=True), UseError, [NO_ATTRIBUTE]),
    ],
)
def test_questions_without_an_answer_by_group_are_refused(
    played: list[tuple[Played, Run]],
    request_: ComparisonRequest,
    error: type[Exception],
    words: list[str],
) -> None:
    with pytest.raises(error) as found:
        measure_runs([played[0][1]], request_)
    assert all(word in str(found.value) for word in words)


def test_run_without_the_attribute_is_named(
    played: list[tuple[Played, Run]], workspace: Path
) -> None:
    runs = [played[0][1], Run.open(workspace, "monday")]
    with pytest.raises(UseError, match=r"monday.*country"):
        measure_runs(runs, ComparisonRequest(by=("country",)))
