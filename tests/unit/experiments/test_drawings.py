from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from vizpub.analytics.comparison.metrics import OF_A_WHOLE_RUN
from vizpub.experiments.drawings import Drawing, DrawnFigure
from vizpub.experiments.groups import ExperimentGroup, ExperimentSetting, ExperimentSystem
from vizpub.experiments.results import ExperimentResults, Replica
from vizpub.model.errors import UnknownName, UseError
from vizpub.questions.run import Run

GROUPS = [
    ExperimentGroup(ExperimentSystem(name, "cyclon"), setting)
    for setting in (ExperimentSetting("calm", 0.0), ExperimentSetting("rough", 1.0))
    for name in ("A", "B")
]


def drawing(**given: Any) -> Drawing:
    made: Drawing = msgspec.convert({"name": "f", "caption": "C.", **given}, Drawing)
    made.check()
    return made


@pytest.fixture
def results(workspace: Path) -> ExperimentResults:
    """The run `monday` of conftest.py as every run of every group but the last."""
    run = Run.open(workspace, "monday")
    return ExperimentResults(
        [Replica(group.name, seed, run) for group in GROUPS[:3] for seed in (1, 2)]
    )


def drawn(results: ExperimentResults, **given: Any) -> list[DrawnFigure]:
    return list(drawing(**given).draw(results, GROUPS))


def test_series_has_a_line_for_each_group_with_runs(results: ExperimentResults) -> None:
    (found,) = drawn(results, kind="series", metrics=["network_size"])
    values = found.numbers.select(["group", "interval", "value"]).to_pylist()
    assert [row["value"] for row in values] == [4, 4, 3, 3] * 3
    assert {row["group"] for row in values} == {group.name for group in GROUPS[:3]}


def test_means_are_of_the_named_groups(results: ExperimentResults) -> None:
    (found,) = drawn(results, kind="means", metrics=["links"], groups=["A, calm"])
    assert found.numbers.to_pylist()[0]["value"] == 2.75
    assert found.numbers.num_rows == 1


def test_axis_leaves_out_groups_without_runs(results: ExperimentResults) -> None:
    (found,) = drawn(results, kind="axis", metrics=["links", "hit_ratio"], label="rate")
    means = [row for row in found.numbers.to_pylist() if row["estimate"] == "mean"]
    rows = [(row["metric"], row["group"], row["setting"], row["value"]) for row in means]
    links = [("links", "A", "0", 2.75), ("links", "B", "0", 2.75), ("links", "A", "1", 2.75)]
    assert rows[:3] == links
    panels = found.figure.axes
    assert [panel.get_title() for panel in panels] == ["links", "hit ratio"]
    assert [text.get_text() for text in found.figure.legends[0].texts] == [
        "A (2 runs)",
        "B (2 runs)",
    ]
    assert panels[0].get_xlabel() == "rate"
    assert list(panels[0].lines[0].get_ydata()) == [2.75, 2.75]


def test_distribution_is_of_the_peers_at_a_moment(results: ExperimentResults) -> None:
    given = {"kind": "distribution", "metric": "degree", "groups": ["A, calm"]}
    (found,) = drawn(results, **given, at=0.5)
    assert found.numbers["interval"].to_pylist() == [2, 2, 2]
    assert found.numbers["degree"].to_pylist() == [1, 2, 1]
    with pytest.raises(UnknownName):
        drawing(kind="distribution", metric="density")


def test_tree_is_drawn_per_hop_and_whole(results: ExperimentResults) -> None:
    found = drawn(results, kind="tree", hops=[1], groups=["A, rough"])
    assert [one.name for one in found] == ["f-a-rough-hop-1", "f-a-rough"]
    assert [one.message is not None for one in found] == [False, True]
    assert found[1].numbers.num_rows == 4


def test_overlay_is_drawn_at_its_moment(results: ExperimentResults) -> None:
    (found,) = drawn(results, kind="overlay", at=1.0, groups=["A, calm"])
    assert "interval 3: 3 peers, 1 link" in found.caption


def test_metric_of_a_whole_run_is_refused_as_series() -> None:
    with pytest.raises(UseError, match=OF_A_WHOLE_RUN):
        drawing(kind="series", metrics=["distinct_peers"])
