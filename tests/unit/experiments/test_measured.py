"""Files of measured cases, and estimates over their rows."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from vizpub.experiments.measured import (
    MEASURED_NAMES,
    MeasuredFile,
    MeasuringRequest,
    RowEstimates,
    measured_experiment,
    rows_table,
)


@dataclass(frozen=True)
class Case:
    size: int
    seed: int


@dataclass(frozen=True)
class Row:
    case: Case
    value: float
    weight: float | None = None

    @property
    def seed(self) -> int:
        return self.case.seed


class Measuring:
    """Counts what is measured."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def __call__(self, cases: Sequence[Case]) -> Generator[tuple[Case, list[Row]]]:
        for case in cases:
            self.cases.append(case)
            yield case, [Row(case, np.float64(case.size / 2))]


CASES = [Case(4, 1), Case(4, 2), Case(6, 1)]


def completed(folder: Path, measuring: Measuring, *, again: bool = False) -> list[Row]:
    request = MeasuringRequest("small", folder, again=again)
    return MeasuredFile(folder / "rows.jsonl", Case, Row).complete(CASES, measuring, str, request)


def test_file_has_each_case_measured_once(tmp_path: Path) -> None:
    measuring = Measuring()
    rows = completed(tmp_path, measuring)
    assert [row.value for row in rows] == [2, 2, 3]
    assert completed(tmp_path, measuring) == rows
    assert measuring.cases == CASES
    completed(tmp_path, measuring, again=True)
    assert measuring.cases == CASES * 2


def test_torn_line_loses_only_its_own_case(tmp_path: Path) -> None:
    rows, path = completed(tmp_path, Measuring()), tmp_path / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    measuring = Measuring()
    assert completed(tmp_path, measuring) == completed(tmp_path, measuring) == rows
    assert measuring.cases == CASES[-1:]


def test_estimates_are_by_seed_and_leave_out_unknown_values() -> None:
    seeds = [Case(4, seed) for seed in (1, 2, 3)]
    groups = {"a": [3.0, 6.1, 9.0], "b": [1.5, 3.0, 4.5]}
    rows = {
        name: [Row(case, value, 2.0) for case, value in zip(seeds, values, strict=True)]
        for name, values in groups.items()
    }
    ratio = RowEstimates(rows).estimate("value", "a / b")
    assert ratio.value == pytest.approx(18.1 / 9)
    assert ratio.n == 3, "not paired by seed"
    assert RowEstimates(rows).estimate("value / weight", "b").value == pytest.approx(1.5)
    assert RowEstimates({"a": [Row(CASES[0], 1.0)]}).estimate("weight", "a").value is None
    assert RowEstimates(rows).estimate("value", "c").value is None


def test_table_of_rows_has_the_fields_of_their_case_first() -> None:
    table = rows_table([Row(CASES[0], 1.0)])
    assert table.column_names == ["size", "seed", "value", "weight"]


@pytest.mark.parametrize("name", MEASURED_NAMES)
def test_measured_experiments_list_their_cases(name: str) -> None:
    experiment = measured_experiment(name)
    small, full = (experiment.cases(scale, None) for scale in ("small", "full"))
    assert 0 < len(small) < len(full)
    assert next(iter(experiment.describe("small"))) == experiment.title
