"""RESULTS.md of the snapshots, from all kept outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.markdown import number, table
from benchmarks.page import describe_machine
from benchmarks.snapshots.graphs import GOSSIP, SHAPES
from benchmarks.watched import Json

FOLDER = Path(__file__).parent / "results"
PAGE = Path(__file__).parent / "RESULTS.md"
_HEAD = """# Metrics over snapshots: results

Made by `python -m benchmarks.snapshots` ([what is measured](README.md)); do not edit. Times are
from a single run, on the machine and at the load given below each table; compare *processor*
seconds, of all processes, if the load is high. ≈ is extrapolated from some of the snapshots.
*Lines* are those of the program's own functions for the task, without blank lines and comments.
*Answer* compares with another computation. A difference in *arrival* is in snapshots.
"""
_TITLES = {
    "metrics": "A. Fifteen metrics of every snapshot",
    "betweenness": "B. Betweenness of the graph of all events, with an error of at most 10⁻³",
    "as-of": "C. The links of a moment, and a path: twenty questions",
    "tables": "D. Reports to tables",
    "reachability": "E. Temporal reachability from a peer",
}
_NAMES = {
    "vizpub": "vizpub (from the input file, including Spark start-up)",
    "kernels": "vizpub's kernels alone, one process",
    "networkit": "NetworKit",
    "raphtory": "Raphtory",
    "tglib": "TGLib",
    "duckdb": "DuckDB",
}
_LIBRARIES = ("numba", "vizpub", "pyspark", "pyarrow")
"""Of ours; their versions are locked."""


def write_page() -> None:
    """Write the page from all outcomes."""
    outcomes = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}
    PAGE.write_text(page(outcomes), encoding="utf-8")


def page(outcomes: Mapping[str, Json]) -> str:
    """The page as Markdown. The key of an outcome is GRAPH.TASK.PROGRAM."""
    sections = [_HEAD]
    for task, title in _TITLES.items():
        sections.append(f"## {title}\n")
        for graph in (*SHAPES, GOSSIP.name):
            begin = f"{graph}.{task}."
            of = {
                key.removeprefix(begin): o for key, o in outcomes.items() if key.startswith(begin)
            }
            if of:
                sections.append(_section(graph, task, of))
    return "\n".join(sections)


def _section(graph: str, task: str, outcomes: Mapping[str, Json]) -> str:
    rows = sorted((_row(task, program, of) for program, of in outcomes.items()), key=_by_cost)
    header = ["program", "processor s", "s", "peak MB", "lines", "answer"]
    header += {"metrics": ["metrics", "snapshots"], "tables": ["reports/s"]}.get(task, [])
    return f"### {graph}\n\n{table(header, [cells for _, cells in rows])}\n{_measured(outcomes)}\n"


def _by_cost(row: tuple[float, list[str]]) -> float:
    return row[0]


def _row(task: str, program: str, outcome: Json) -> tuple[float, list[str]]:
    """The processor seconds, and the cells."""
    name = _NAMES.get(program, program)
    if "failed" in outcome:
        return float("inf"), [name, *("–",) * 4, f"failed: {outcome['failed'].strip()}"]
    name += "".join(f" {v}" for p, v in outcome["versions"].items() if p not in _LIBRARIES)
    facts = outcome["facts"]
    # Those that measure one snapshot after the other would take so many times as long for all.
    times = facts.get("total", 1) / facts.get("intervals", 1) if task == "metrics" else 1
    about = "≈ " if times > 1 else ""
    spent = {
        kind: times * sum(step[kind] for step in outcome["steps"].values())
        for kind in ("cpu_mean", "mean")
    }
    cells = [name, *(about + number(value) for value in spent.values())]
    cells += [number(outcome["peak_mb"]), str(facts.get("lines", "–")), outcome["answer"]]
    if task == "metrics":
        cells += [f"{facts['metrics']} of 15", f"{facts['intervals']:,} of {facts['total']:,}"]
    if task == "tables":
        cells.append(number(facts["reports"] / spent["mean"]))
    return spent["cpu_mean"], cells


def _measured(outcomes: Mapping[str, Json]) -> str:
    """When, of which commit and where: once, if all agree."""
    lines = {
        f"{of['date'][:10]}, commit {of['commit'] or 'not recorded'}, "
        f"{describe_machine(of['machine'])}"
        for of in outcomes.values()
    }
    loads = [load for of in outcomes.values() for load in of["load"]]
    return f"{'; '.join(sorted(lines))}; load {min(loads)} to {max(loads)}."
