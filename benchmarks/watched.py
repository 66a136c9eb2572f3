"""Runs a program and watches the memory of it and of all that it starts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from model.errors import CheckFailed

ROOT = Path(__file__).parents[1]
_EVERY = 0.1
"""Seconds between two looks."""

_LINES, _WIDTH = 20, 300
"""So much is shown of what a program said that failed."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A module to run, and the Python that has what it needs."""

    module: str
    arguments: Sequence[str]
    python: Path = Path(sys.executable)

    @property
    def command(self) -> list[str]:
        """The module runs from the checkout, and gets where to write its outcome first."""
        return [str(self.python), "-m", self.module]


def measure(program: Program) -> Json:
    """What the program wrote (see benchmarks.steps), with a summary of the steps of each name:
    times, seconds (first, least, mean), seconds of processor and peak MB.

    Memory is the resident one of all its processes together; pages they share count in each.

    Raises: CheckFailed with the end of what it said, if it fails.
    """
    with tempfile.TemporaryDirectory(prefix="vizpub-benchmark-") as scratch:
        told, said = Path(scratch, "told.json"), Path(scratch, "said.txt")
        with said.open("wb") as stream:
            process = psutil.Popen(
                [*program.command, str(told), *program.arguments],
                cwd=ROOT,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
            memory = _watch(process)
        if process.returncode:
            raise CheckFailed(
                f"{program.module} failed", said.read_text("utf-8").splitlines()[-30:]
            )
        return _with_memory(json.loads(told.read_text("utf-8")), memory)


def _last_words(said: Path) -> list[str]:
    """Spark says what it means at the end, and much at length before."""
    return [line[:_WIDTH] for line in said.read_text("utf-8", "replace").splitlines()[-_LINES:]]


def _watch(process: psutil.Popen) -> list[tuple[float, float]]:
    """(time, MB) at every look, until it ends."""
    looks = []
    while process.poll() is None:
        looks.append((time.time(), _megabytes(process)))
        with suppress(psutil.TimeoutExpired):
            process.wait(_EVERY)
    return looks


def _megabytes(process: psutil.Popen) -> float:
    total = 0
    with suppress(psutil.NoSuchProcess):
        for part in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += part.memory_info().rss
    return total / 1e6


def _with_memory(told: Json, memory: Sequence[tuple[float, float]]) -> Json:
    """Steps of one name are put together: how often it was taken, and what it took."""
    by_name: dict[str, list[Json]] = {}
    for step in told["steps"]:
        by_name.setdefault(step["name"], []).append(step)
    return {
        **told,
        "steps": {name: _summary(steps, memory) for name, steps in by_name.items()},
        "peak_mb": round(max((size for _, size in memory), default=0)),
    }


def _summary(steps: Sequence[Json], memory: Sequence[tuple[float, float]]) -> Json:
    seconds = [step["ended"] - step["begun"] for step in steps]
    around = (
        size
        for step in steps
        for at, size in memory
        if step["begun"] - _EVERY <= at <= step["ended"] + _EVERY
    )
    return {
        "times": len(steps),
        "first": round(seconds[0], 4),
        "least": round(min(seconds), 4),
        "mean": round(fmean(seconds), 4),
        "cpu_least": round(min(step["cpu"] for step in steps), 2),
        "cpu_mean": round(fmean(step["cpu"] for step in steps), 3),
        "peak_mb": round(max(around, default=0)),
    }
