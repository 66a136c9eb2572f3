"""What a measured program records: its steps, their times, and facts. Needs psutil."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil


@dataclass
class Step:
    """A completed step. Times are seconds since 1970, so that they match a watcher's."""

    name: str
    begun: float
    ended: float
    cpu: float
    """Processor seconds, of this process and all that it started."""


@dataclass
class Steps:
    """Measures the time of steps, one after the other."""

    taken: list[Step] = field(default_factory=list)
    _cpu_before: float = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step for the length of the block."""
        begun, cpu = time.time(), cpu_seconds()
        yield
        self.taken.append(Step(name, begun, time.time(), cpu_seconds() - cpu))

    def at(self, name: str) -> None:
        """The step of that name begins or continues; any other current step ends."""
        now, cpu = time.time(), cpu_seconds()
        if self.taken:
            self.taken[-1].ended = now
            self.taken[-1].cpu = cpu - self._cpu_before
        if not self.taken or self.taken[-1].name != name:
            self.taken.append(Step(name, now, now, 0))
            self._cpu_before = cpu

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        """The progress of an ingest, as steps."""
        del done, total, note
        self.at(step.partition(" (")[0])

    def write(self, path: Path, *packages: str, **facts: Any) -> None:
        """Write everything as JSON, with the versions of those packages."""
        record = {
            "steps": [asdict(step) for step in self.taken],
            "versions": {package: version(package) for package in packages},
            "facts": facts,
        }
        path.write_text(json.dumps(record, indent=1), encoding="utf-8")


def cpu_seconds() -> float:
    """Processor seconds so far, of this process and all its descendants, living or reaped."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # own and reaped children's, user and system
    return total
