"""What programs that make versions from rows have in common.

    python -m benchmarks.others.by_polars TOLD.json VERSIONS.parquet ROWS.parquet TIMES

ROWS has interval, src, dst, by interval; VERSIONS gets src, dst, valid_from, valid_to, where
valid_to is the interval after the last, also at the end of the run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.steps import Steps


def run(package: str, islands: Callable[[str, str], None]) -> None:
    """Make versions as often as the command line says, from file to file."""
    told, made, rows, times = sys.argv[1:]
    steps = Steps()
    for _ in range(int(times)):
        with steps.step("islands"):
            islands(rows, made)
    steps.write(Path(told), package)
