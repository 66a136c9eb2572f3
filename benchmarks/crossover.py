"""The input size at which plans of large inputs start to pay: `python -m benchmarks.crossover`, ten
minutes.

Reports of growing size, each ingested in its own process as a small input and as a large one
(vizpub.ingest.spark.scale), in turns. `SMALL_INPUT` should be the size at which the seconds cross.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.inputs import Inputs
from benchmarks.parts import WORK
from benchmarks.sizes import Size
from benchmarks.smoke import Run, measured

INTERVALS = (25, 100, 200, 400)
"""Intervals of 200 peers with 10 links each."""
BOUNDS = {"small": 2**40, "large": -1}
_INGEST = (
    "import vizpub.ingest.spark.scale as s; s.SMALL_INPUT = {}; "
    "from vizpub.cli.main import app; app()"
)


def main() -> None:
    """Measure and print a row for each size."""
    print(f"{'MB packed':>9}{'small, s':>10}{'large, s':>10}{'small ÷ large':>15}{'processor':>11}")
    for intervals in INTERVALS:
        reports = Inputs(Size("crossover", 200, intervals, 10, 20), WORK).reports
        size = sum(path.stat().st_size for path in reports.iterdir()) / 2**20
        small, large = (ingested(reports, bound) for bound in BOUNDS.values())
        ratio, work = small.seconds / large.seconds, small.processor / large.processor
        row = f"{size:9.1f}{small.seconds:10.1f}{large.seconds:10.1f}{ratio:15.2f}{work:11.2f}"
        print(row, flush=True)


def ingested(reports: Path, bound: int) -> Run:
    """A whole `vizpub ingest --no-load` with that bound."""
    with TemporaryDirectory(prefix="vizpub-crossover-") as folder:
        words = ["--workspace", folder, "ingest", str(reports), "--run", "x", "--no-load"]
        return measured(["-c", _INGEST.format(bound), *words])


if __name__ == "__main__":
    main()
