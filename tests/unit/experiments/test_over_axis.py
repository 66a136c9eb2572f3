from __future__ import annotations

from pathlib import Path

import pytest

from experiments.groups import WHOLE, Group, Setting, System
from experiments.over_axis import over_axis, table_over_axis
from experiments.results import Measures, Replica
from runstore.run import Run


@pytest.fixture
def groups() -> list[Group]:
    settings = [Setting("calm", 0.0), Setting("rough", 2.0)]
    return [Group(System(name, "cyclon"), setting) for setting in settings for name in ("A", "B")]


def test_table_has_a_row_for_each_metric_and_group(workspace: Path, groups: list[Group]) -> None:
    run = Run.open(workspace, "monday")
    replicas = [Replica(group.name, seed, run) for group in groups for seed in (1, 2)]
    table = table_over_axis(Measures(replicas), groups, ["links", "hit_ratio"], WHOLE)
    assert table.num_rows == 8
    assert table.slice(2, 1).to_pylist() == [
        {
            "metric": "links", "unit": "", "system": "A", "setting": "rough",
            "x": 2.0, "value": 2.75, "low": 2.75, "high": 2.75, "n": 2,
        }
    ]  # fmt: skip


def test_figure_has_a_line_for_each_system(workspace: Path, groups: list[Group]) -> None:
    run = Run.open(workspace, "monday")
    measures = Measures([Replica(group.name, 1, run) for group in groups])
    figure = over_axis(table_over_axis(measures, groups, ["links", "hit_ratio"], WHOLE), "rate")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["links", "hit_ratio (share)"]
    assert figure.axes[0].get_xlabel() == "rate"
    lines = [list(line.get_ydata()) for line in figure.axes[0].lines if len(line.get_ydata()) == 2]
    assert lines[:1] == [[2.75, 2.75]]
    assert figure.axes[0].get_legend_handles_labels()[1] == ["A", "B"]
