"""What users wait for first, in two minutes: `python -m benchmarks.smoke`.

Measures whole processes, from call to end: the demo's ingest, and the reports of size S, as
multiples of what bare Spark takes on this machine in the same run (benchmarks.floor). They run in
turns; the best run of each counts. Prints a warning for what got worse than in smoke.json; nothing
fails, because machines are shared. `--keep` makes the figures the new smoke.json.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from benchmarks.inputs import Inputs
from benchmarks.parts import WORK
from benchmarks.sizes import SIZES
from benchmarks.watched import ROOT

KEPT = ROOT / "benchmarks" / "smoke.json"
WORSE = 1.25
"""From this ratio to the kept figure on, a figure gets a warning."""
_EVERY_S = 0.1
_MAKER = str(ROOT / "vizpub" / "machine" / "jvm" / "class_data.py")
_MADE_S = 300


class Run(NamedTuple):
    """A whole process and all its children."""

    seconds: float
    processor: float
    """Processor seconds of all processes, as far as their end was observed."""
    megabytes: float
    """The peak, with shared pages counted once."""
    jobs: int
    """Spark's jobs, as the ingest reports them; 0 for other processes."""


def main() -> None:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.smoke", description=__doc__)
    parser.add_argument("--runs", type=int, default=2, help="of each (default: 2)")
    parser.add_argument(
        "--keep", action="store_true", help="keep these figures for later comparisons"
    )
    options = parser.parse_args()
    reports = Inputs(SIZES["S"], WORK).reports
    programs: dict[str, Callable[[], Run]] = {
        "floor": lambda: run_measured(["-m", "benchmarks.floor"]),
        "demo": lambda: run_ingest(ROOT / "examples" / "gossipsub"),
        "S": lambda: run_ingest(reports),
    }
    warm(programs["demo"])
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    for _ in range(options.runs):
        for name, run in programs.items():
            runs[name].append(run())
    measured_figures = figures(
        {name: min(of, key=lambda run: run.seconds) for name, of in runs.items()}
    )
    kept_figures = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    for name, value in measured_figures.items():
        was = kept_figures.get(name)
        comparison = "" if was is None else f"   {was:g} before"
        worse = "   WORSE" if was and value > WORSE * was and not name.endswith(", s") else ""
        print(f"{name:32}{value:9g}{comparison}{worse}")
    if options.keep:
        KEPT.write_text(json.dumps(measured_figures, indent=1) + "\n", "utf-8")


def warm(run: Callable[[], Run]) -> None:
    """Run once without measuring, until the work that is left for later starts is done: compiled
    kernels, class archives of Java."""
    run()
    psutil.wait_procs([p for p in psutil.process_iter() if _makes(p)], timeout=_MADE_S)


def _makes(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return _MAKER in process.cmdline()
    return False


def figures(best: dict[str, Run]) -> dict[str, float]:
    """The kept figures: ratios to the floor, jobs, megabytes, and the seconds for people."""
    floor, values = best["floor"], {"floor, s": round(best["floor"].seconds, 1)}
    for name, run in best.items():
        if name != "floor":
            values |= {
                f"{name}, s": round(run.seconds, 1),
                f"{name}, times the floor": round(run.seconds / floor.seconds, 2),
                f"{name}, processor, times": round(run.processor / floor.processor, 2),
                f"{name}, jobs": run.jobs,
                f"{name}, MB": round(run.megabytes),
            }
    return values


def run_ingest(inputs: Path) -> Run:
    """A whole `vizpub ingest --no-load`."""
    with TemporaryDirectory(prefix="vizpub-smoke-") as folder:
        words = ["--workspace", folder, "ingest", str(inputs), "--run", "smoke", "--no-load"]
        return run_measured(["-m", "vizpub.cli", *words])


def run_measured(words: list[str]) -> Run:
    """Run Python with those arguments, from the checkout."""
    start, most, seen = time.monotonic(), 0.0, dict[int, float]()
    process = psutil.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None:
        most = max(most, _look(process, seen))
        with suppress(psutil.TimeoutExpired):
            process.wait(_EVERY_S)
    seconds = time.monotonic() - start
    errors = process.stderr.read()
    if process.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{errors}")
    jobs = re.search(r"(\d+) jobs of Spark", errors)
    return Run(seconds, sum(seen.values()), most, int(jobs[1]) if jobs else 0)


def _look(process: psutil.Process, seen: dict[int, float]) -> float:
    """Megabytes of the process and its descendants; the processor time of each goes to `seen`."""
    bytes_, processes = 0, [process]
    with suppress(psutil.NoSuchProcess):
        processes += process.children(recursive=True)
    for one in processes:
        with suppress(psutil.Error):
            bytes_ += one.memory_full_info().pss
            times = one.cpu_times()
            seen[one.pid] = times.user + times.system
    return bytes_ / 1e6


if __name__ == "__main__":
    main()
