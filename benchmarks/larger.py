"""How the cost of an ingest grows with the reports: `python -m benchmarks.larger`.

Measures whole processes, from call to end: the generator's reports, ten times as many each time, to
all metrics but betweenness. With `--duckdb PROGRAM`, also DuckDB's time from the same reports to
validity periods; the program takes a folder and the word `versions`. The exponent compares the
seconds of one size with the next: 1 means linear growth. `--wide` takes 100,000 peers in 100
intervals instead.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.inputs import Inputs
from benchmarks.parts import OTHERS, WORK
from benchmarks.sizes import SIZES, Size
from benchmarks.smoke import Run, measured

INTERVALS = (5, 50, 500, 5_000)
"""Of 2,000 peers: 10⁴ to 10⁷ reports."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.larger", description=__doc__)
    parser.add_argument("--most", type=float, default=1e6, help="reports (default: 1e6)")
    parser.add_argument("--wide", action="store_true", help="100,000 peers, 100 intervals")
    parser.add_argument("--duckdb", metavar="PROGRAM", help="another program to measure")
    asked = parser.parse_args()
    sizes = [replace(SIZES["L"], intervals=intervals) for intervals in INTERVALS]
    if asked.wide:
        sizes = [Size("W", peers=100_000, intervals=100, links=5, topics=100)]
    before: tuple[int, float] | None = None
    for size in sizes:
        reports = size.peers * size.intervals
        if reports > asked.most and not asked.wide:
            break
        folder = Inputs(size, WORK).reports
        run = ingested(folder)
        told = f"{reports:>12,} reports  {run.seconds:7.1f} s  {run.processor:7.1f} processor s"
        told += f"  {run.megabytes:6.0f} MB  {run.jobs:3} jobs"
        if before:
            exponent = math.log(run.seconds / before[1]) / math.log(reports / before[0])
            told += f"  exponent {exponent:.2f}"
        if asked.duckdb:
            other = beside(asked.duckdb, folder)
            told += f"  DuckDB's versions {other:.1f} s: {run.seconds / other:.1f} times"
        print(told, flush=True)
        before = reports, run.seconds


def ingested(reports: Path) -> Run:
    """A whole `vizpub ingest` to all metrics but betweenness."""
    with TemporaryDirectory(prefix="vizpub-larger-") as folder:
        more = ["--run", "larger", "--no-load", "--no-betweenness"]
        return measured(["-m", "vizpub.cli", "--workspace", folder, "ingest", str(reports), *more])


def beside(program: str, folder: Path) -> float:
    """Seconds of the other program."""
    begun = time.monotonic()
    command = [str(OTHERS), program, str(folder), "versions"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


if __name__ == "__main__":
    main()
