"""The benchmark of snapshots: `python -m benchmarks.snapshots`; see README.md beside this file."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import results
from benchmarks.inputs import Inputs, filled_folder
from benchmarks.parts import OTHERS, WORK
from benchmarks.reference import require_same
from benchmarks.results import is_current
from benchmarks.snapshots.answers import EXPECTED, count_metrics, describe_difference
from benchmarks.snapshots.given import TASKS, Given
from benchmarks.snapshots.graphs import GOSSIP, SHAPES, write_graph
from benchmarks.snapshots.page import FOLDER, write_page
from benchmarks.watched import Json, Program, measure
from vizpub.model.errors import CheckFailed, UseError

SMALL = ("CollegeMsg", "email-Eu-core-temporal", GOSSIP.name)
GRAPHS = (*SMALL, "sx-mathoverflow", "sx-superuser")
TABLES = "tables"
"""The task whose input are reports, of GOSSIP only; its programs are those of `benchmarks`."""
OURS = ("vizpub", "kernels")
PROGRAMS = {
    "metrics": ("igraph", *OURS, "networkit", "networkx", "raphtory", "duckdb"),
    "betweenness": ("igraph", "vizpub", "networkit", "networkx", "raphtory"),
    "as-of": ("vizpub", "networkit", "networkx", "igraph", "raphtory", "duckdb"),
    "reachability": ("vizpub", "raphtory", "tglib", "duckdb"),
}
"""The first of a task is what the others are compared with, if nothing else is (EXPECTED)."""
REFERENCE = "compared with"
SAMPLED = {"igraph": 20, "networkit": 20, "networkx": 4, "raphtory": 20, "kernels": 20}
"""Snapshots that are measured by programs that measure one after the other."""


def intervals_of(program: str, total: int, full: bool) -> list[int]:
    """The snapshots to measure, evenly spaced; the same for all that measure as many."""
    count = total if full else min(SAMPLED.get(program, total), total)
    return [place * (total - 1) // max(1, count - 1) for place in range(count)]


def answer(program: str, task: str, given: Given, out: Path) -> Json:
    """Run a program and measure it. Raises: CheckFailed with the end of its output."""
    module = f"benchmarks.snapshots.by_{program}"
    words = [str(out), str(given.folder), task, *map(str, given.intervals)]
    python = Path(sys.executable) if program in OURS else OTHERS
    return measure(Program(module, words, python))


def judge(program: str, task: str, given: Given, out: Path, expected: pa.Table | None) -> Json:
    """Measure a program, and say how its answer differs; or why it has none."""
    try:
        outcome = answer(program, task, given, out)
    except CheckFailed as error:
        return {"failed": str(error).splitlines()[-1].strip()[:200]}
    rows = pq.read_table(out)
    outcome["answer"] = describe_difference(expected, rows) if expected else REFERENCE
    outcome["facts"] |= {"intervals": len(given.intervals), "total": given.total}
    if task == "metrics":
        outcome["facts"]["metrics"] = count_metrics(rows)
    return outcome


def run_task(name: str, task: str, given: Given, options: argparse.Namespace) -> None:
    """Measure the programs that are asked for, and compare their answers."""
    expected = EXPECTED[task](given) if task in EXPECTED else None
    for program in PROGRAMS[task]:
        key = f"{name}.{task}.{program}"
        kept = WORK / "answers" / key
        is_done = options.resume and kept.exists() and is_current(FOLDER / f"{key}.json")
        if program in options.only and not is_done:
            print(key, "…", end=" ", flush=True)
            before = results.load()
            chosen = intervals_of(program, given.total, options.full)
            outcome = judge(program, task, Given(given.folder, chosen), kept, expected)
            results.write_outcome(FOLDER / f"{key}.json", outcome, before)
            print(outcome.get("answer") or outcome["failed"], flush=True)
        if expected is None and kept.exists():
            expected = pq.read_table(kept)


def run_tables(options: argparse.Namespace) -> None:
    """From the reports of the gossip overlay to tables: vizpub's ingest, and DuckDB's periods."""
    inputs = Inputs(GOSSIP, WORK)
    reports = GOSSIP.peers * GOSSIP.intervals
    inside = pq.read_table(inputs.versions / "links.parquet")
    for program in ("vizpub", "duckdb"):
        key = f"{GOSSIP.name}.{TABLES}.{program}"
        if program not in options.only or (options.resume and is_current(FOLDER / f"{key}.json")):
            continue
        print(key, "…", end=" ", flush=True)
        before = results.load()
        with tempfile.TemporaryDirectory() as folder:
            if program == "duckdb":
                out = Path(folder, "links.parquet")
                words = [str(inputs.reports), str(out), str(GOSSIP.intervals - 1)]
                outcome = measure(Program("benchmarks.periods", words))
                rows = pq.read_table(out)
            else:
                words = [folder, "none", "new", str(inputs.reports)]
                outcome = measure(Program("benchmarks.ingested", words))
                rows = pq.read_table(next(Path(folder, "runs").iterdir()) / "links")
        require_same(program, inside, rows, "src", "dst", "valid_from")
        outcome["answer"] = "equal"
        outcome["facts"]["reports"] = reports
        results.write_outcome(FOLDER / f"{key}.json", outcome, before)
        print("equal", flush=True)


def main() -> None:
    """Measure what is asked for, and write the page from all kept outcomes."""
    names = sorted({program for programs in PROGRAMS.values() for program in programs})
    parser = argparse.ArgumentParser(prog="python -m benchmarks.snapshots", description=__doc__)
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=GRAPHS, metavar="GRAPH")
    parser.add_argument("--tasks", nargs="*", choices=(*TASKS, TABLES), default=(*TASKS, TABLES))
    parser.add_argument("--only", nargs="*", choices=names, default=names, metavar="PROGRAM")
    parser.add_argument("--data", type=Path, help="folder with SNAP's files (*.txt.gz)")
    parser.add_argument("--full", action="store_true", help="measure all snapshots, by all")
    parser.add_argument("--resume", action="store_true", help="keep what this commit measured")
    options = parser.parse_args()
    if not OTHERS.exists():
        raise UseError("the other programs are not installed; run: make .bench/ready")
    (WORK / "answers").mkdir(exist_ok=True)
    for name in options.graphs:
        kind = "published" if options.data and name in SHAPES else "generated"
        folder = filled_folder(
            WORK / "snapshots" / f"{name}-{kind}",
            lambda place, name=name: write_graph(name, place, options.data),  # type: ignore[misc]
        )
        for task in options.tasks:
            if task in TASKS and (name in SMALL or task in EXPECTED):
                run_task(name, task, Given(folder, []), options)
            elif task == TABLES and name == GOSSIP.name:
                run_tables(options)
    write_page()


if __name__ == "__main__":
    try:
        main()
    except (CheckFailed, UseError) as error:
        sys.exit(f"\n{error}")
