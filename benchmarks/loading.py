"""A run loaded into Neo4j by transactions and by an import, side by side."""

from __future__ import annotations

from benchmarks.ingested import RUN
from benchmarks.parts import WORK, Bench, ingested
from benchmarks.watched import Json

_BOTH = ("index", "verify")
"""The last steps of either way."""


def loading(bench: Bench) -> Json:
    """Load into an empty local server, in each way. The part `ingest` made the run."""
    workspace = WORK / "made" / f"{bench.size.key}-ingest"
    if not (workspace / "runs" / RUN / "run.json").exists():
        ingested("ingest", "none")(bench)
    return bench.program("loaded", bench.folder("loading"), workspace)


def took(told: Json, way: str, kind: str, *, entering: bool = False) -> float:
    """Seconds (`mean`) or processor seconds (`cpu_mean`) of a way; with `entering`, without the
    last steps of both ways."""
    return float(
        sum(
            step[kind] * step["times"]
            for name, step in told["steps"].items()
            if name.startswith(f"{way}: ")
            and not (entering and name.removeprefix(f"{way}: ") in _BOTH)
        )
    )
