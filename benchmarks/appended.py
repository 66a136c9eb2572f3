"""The cost of appending a tenth more, against one ingest of everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.parts import KEYS, Bench
from benchmarks.reference import require_same
from benchmarks.reports import first_interval
from benchmarks.watched import Json
from vizpub.questions.run import Run


def append(bench: Bench) -> Json:
    """`whole`: everything at once; `begun`: all but the last tenth; `appended`: the last tenth to
    it."""
    more = Bench(replace(bench.size, intervals=bench.size.intervals * 11 // 10))
    files = sorted(more.inputs.reports.iterdir())
    new = [path for path in files if first_interval(path) >= bench.size.intervals]
    old = [path for path in files if path not in new]
    whole, parts = bench.folder("whole"), bench.folder("parts")
    outcomes = {
        "whole": bench.program("ingested", whole, "none", "new", *files),
        "begun": bench.program("ingested", parts, "none", "new", *old),
        "appended": bench.program("ingested", parts, "none", "append", *new),
    }
    check_same("appended", whole, parts)
    return outcomes


def check_same(way: str, whole: Path, other: Path) -> None:
    """Check that both ways end with the same tables. Raises: CheckFailed."""
    ours, theirs = (Run.open(workspace, "benchmark") for workspace in (whole, other))
    links = (run.table("links") for run in (ours, theirs))
    require_same(f"{way} links", *links, "src", "dst", "valid_from")
    for name, keys in KEYS.items():
        both = (run.table(f"metrics/{name}") for run in (ours, theirs))
        require_same(f"{way} metrics/{name}", *both, *keys)
