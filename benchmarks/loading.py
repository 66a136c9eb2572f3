"""A run into Neo4j by transactions and by an import, beside each other."""

from __future__ import annotations

from benchmarks.ingested import RUN
from benchmarks.parts import WORK, Bench, ingested
from benchmarks.watched import Json

_BOTH = ("index", "verify")
"""What either way ends with."""


def loading(bench: Bench) -> Json:
    """Each into an empty local server. The run is the one that the part `ingest` made."""
    workspace = WORK / "made" / f"{bench.size.key}-ingest"
    if not (workspace / "runs" / RUN / "run.json").exists():
        ingested("ingest", "none")(bench)
    return bench.program("loaded", bench.folder("loading"), workspace)


def took(told: Json, way: str, kind: str, *, entering: bool = False) -> float:
    """Seconds (`mean`) or seconds of processor (`cpu_mean`) of a way, without what both end
    with where only `entering` is asked for."""
    return float(
        sum(
            step[kind] * step["times"]
            for name, step in told["steps"].items()
            if name.startswith(f"{way}: ")
            and not (entering and name.removeprefix(f"{way}: ") in _BOTH)
        )
    )
