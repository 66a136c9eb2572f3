"""`vizpub live collect` as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from vizpub.collector.http.client import CollectorClient, collector_of
from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import RunNotComplete, ServiceError, UseError
from vizpub.reports.client import Pace
from vizpub.runstore.store import open_run

ROOT = Path(__file__).parents[2]
QUICK = Pace(gather_s=0.01, first_wait_s=0.05, most_wait_s=0.3, timeout_s=20.0)
PATIENCE_S = 1500.0
"""What takes longer hangs; on a busy machine everything takes long."""


@dataclass
class Collecting:
    """A collector of run `lab`, with these options."""

    workspace: Path
    options: tuple[str, ...] = ("--no-token", "--no-load")
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=lambda: 20_000 + os.getpid() % 10_000)
    process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> CollectionPlace:
        return CollectionPlace(self.workspace, "lab")

    @property
    def url(self) -> str:
        scheme = "https" if "--certificate" in self.options else "http"
        return f"{scheme}://127.0.0.1:{self.port}/v1/runs/lab"

    def answering(self) -> CollectorClient:
        """Waits until it listens."""

        def listens() -> bool:
            with suppress(UseError, ServiceError):
                return bool(collector_of(self.place).get())
            return False

        until(listens)
        return collector_of(self.place)

    def command(self, *options: str) -> list[str]:
        vizpub = [sys.executable, "-m", "vizpub.cli", "--workspace", str(self.place.workspace)]
        told = ["--lateness", "2s", "--port", str(self.port)]
        return [*vizpub, "live", "collect", "lab", *self.options, *told, *options]

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command(),
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )

    def stop(self) -> None:
        subprocess.run(self.command("--stop"), cwd=ROOT, check=True, timeout=PATIENCE_S)

    def end(self, how: signal.Signals) -> int:
        assert self.process
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)

    def batches(self) -> list[psutil.Process]:
        """The processes that make the run: Python, Java and Spark's workers."""
        assert self.process
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []


@contextmanager
def running(made: Collecting) -> Iterator[Collecting]:
    """Started, and killed at the end with the processes that make the run."""
    made.start()
    try:
        yield made
    finally:
        assert made.process
        for process in made.batches():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        made.process.kill()
        made.process.wait()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def last_of(place: CollectionPlace) -> int:
    """The last interval that the run has; -1 = none."""
    with suppress(UseError, RunNotComplete):
        clock = open_run(place.workspace, place.run).manifest.clock
        return -1 if clock is None else clock.last
    return -1
