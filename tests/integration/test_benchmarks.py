"""The parts of the benchmark that need no other program: each checks its own results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import parts, results
from benchmarks.__main__ import MORE, USUAL, measure_parts
from benchmarks.page import page
from benchmarks.parts import Bench
from benchmarks.sizes import Size

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800)]

SIZE = Size("S", peers=40, intervals=250, links=5, topics=5, subscriptions=3)
"""A tenth of it is a file of reports."""
NAMES = ("kernels", "spark", "periods", "ingest", "ingest-sampled", "growth", "append", "stored")


@pytest.mark.parametrize("name", NAMES)
def test_part_measures_and_is_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "WORK", tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    measure_parts(Bench(SIZE), {name: (USUAL | MORE)[name]})
    shown = page(results.read_outcomes())
    assert re.search(rf"^\| {name} \| 20..-", shown, re.MULTILINE)
