"""Outcomes of parts of the benchmark, kept as JSON; the page is made from them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.watched import ROOT, Json

FOLDER = ROOT / "benchmarks" / "results"
PAGE = ROOT / "benchmarks" / "RESULTS.md"

_OUTCOMES = (":!benchmarks/*.json", ":!benchmarks/*RESULTS.md", ":!benchmarks/*.png")
"""What measuring changes, as git leaves it out; its * matches slashes, too."""

Results = Mapping[str, Mapping[str, Json]]
"""Outcomes by size and part."""


def machine() -> Json:
    """The machine and the versions of the measurement."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    """The processor's name, where the system reports it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def load() -> float:
    """Processes that waited for a processor or used one, averaged over the last minute."""
    return round(os.getloadavg()[0], 1)


def commit() -> str:
    """The commit that is measured, with + if files differ that are not outcomes."""
    changed = _git("status", "--porcelain", "-uno", "--", ".", *_OUTCOMES)
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "") or "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def is_current(path: Path) -> bool:
    """The outcome there was measured at this commit, and nothing has changed since."""
    now = commit()
    is_of_commit = path.exists() and json.loads(path.read_text("utf-8")).get("commit") == now
    return is_of_commit and not now.endswith("+")


def keep(size: str, part: str, outcome: Json, load_before: float) -> None:
    """Keep an outcome with its circumstances."""
    write_outcome(place_of(size, part), outcome, load_before)


def place_of(size: str, part: str) -> Path:
    """Where the outcome of a part is kept."""
    return FOLDER / f"{size}-{part}.json"


def write_outcome(path: Path, outcome: Json, load_before: float) -> None:
    """Write an outcome with its circumstances."""
    path.parent.mkdir(exist_ok=True)
    about = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "load": [load_before, load()],
        "machine": machine(),
    }
    path.write_text(json.dumps({**about, **outcome}, indent=1) + "\n", encoding="utf-8")


def read_outcomes() -> Results:
    """All kept outcomes."""
    outcomes: dict[str, dict[str, Json]] = {}
    for path in sorted(FOLDER.glob("*-*.json")):
        size, _, part = path.stem.partition("-")
        outcomes.setdefault(size, {})[part] = json.loads(path.read_text("utf-8"))
    return outcomes
