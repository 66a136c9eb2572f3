"""Runs a program and samples the memory of it and of its descendants."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import psutil

from vizpub.model.errors import CheckFailed

ROOT = Path(__file__).parents[1]
_EVERY = 0.1
"""Seconds between two samples."""
_CLOSELY = 10
"""Every so many samples count shared pages once, which costs more to find out."""

_LINES, _WIDTH = 20, 300
"""How much is shown of the output of a failed program."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A module to run, and the Python with its dependencies."""

    module: str
    arguments: Sequence[str]
    python: Path = Path(sys.executable)


class Look(NamedTuple):
    """Memory at a time, in MB; but in `proportional`, shared pages count in each process."""

    at: float
    all: float
    """Of all processes of the program."""
    worker: float
    """The largest Python process that the program started."""
    proportional: float = 0
    """Of all processes, where shared pages count once; 0 = not sampled."""


def measure(program: Program) -> Json:
    """The program's record (see benchmarks.steps), with a summary of the steps of each name (times,
    seconds: first, least, mean, processor seconds, peak MB), and the peaks of the whole program.

    The program runs from the checkout, and gets the path of its record as its first argument.

    Raises: CheckFailed with the end of its output, if it fails.
    """
    with tempfile.TemporaryDirectory(prefix="vizpub-benchmark-") as scratch:
        record, output = Path(scratch, "told.json"), Path(scratch, "said.txt")
        command = [str(program.python), "-m", program.module, str(record), *program.arguments]
        with output.open("wb") as stream:
            process = psutil.Popen(command, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT)
            looks = list(_watch(process))
        if process.returncode:
            raise CheckFailed(f"{program.module} failed", _last_words(output))
        return _summed_up(json.loads(record.read_text("utf-8")), looks)


def _last_words(output: Path) -> list[str]:
    """Spark prints the cause at the end, after much other output."""
    return [line[:_WIDTH] for line in output.read_text("utf-8", "replace").splitlines()[-_LINES:]]


def _watch(process: psutil.Popen) -> Iterator[Look]:
    """Take samples until it ends."""
    for number in count():
        if process.poll() is not None:
            return
        yield _look(process, closely=number % _CLOSELY == 0)
        with suppress(psutil.TimeoutExpired):
            process.wait(_EVERY)


def _look(process: psutil.Process, *, closely: bool) -> Look:
    everything, proportional, workers = 0.0, 0.0, [0.0]
    with suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                size = one.memory_info().rss / 1e6
                everything += size
                if one is not process and one.name().startswith("python"):
                    workers.append(size)
                if closely:
                    proportional += one.memory_full_info().pss / 1e6
    return Look(time.time(), everything, max(workers), proportional)


def _summed_up(record: Json, looks: Sequence[Look]) -> Json:
    """Combine the steps of one name."""
    by_name: dict[str, list[Json]] = {}
    for step in record["steps"]:
        by_name.setdefault(step["name"], []).append(step)
    return {
        **record,
        "steps": {name: _summary(steps, looks) for name, steps in by_name.items()},
        "peak_mb": round(max((look.all for look in looks), default=0)),
        "proportional_mb": round(max((look.proportional for look in looks), default=0)),
        "worker_mb": round(max((look.worker for look in looks), default=0)),
    }


def _summary(steps: Sequence[Json], looks: Sequence[Look]) -> Json:
    seconds = [step["ended"] - step["begun"] for step in steps]
    around = (
        look.all
        for step in steps
        for look in looks
        if step["begun"] - _EVERY <= look.at <= step["ended"] + _EVERY
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
