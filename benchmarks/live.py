"""How far a collected run is behind its peers: `python -m benchmarks.live`.

Peers report every interval through one reporter to `vizpub live collect`, a process of its own; 5 %
of the links are replaced in an interval. The lag of an interval is the time from the
acknowledgement of its last report to the commit that has it in the tables, or with `--neo4j` to the
end of the load that has it in Neo4j. The first few intervals come one after the other and are not
measured: Spark and Neo4j start meanwhile. Prints the lags of the second and the last third of the
others, and the memory of the collector's processes then.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks.fed import System
from vizpub.collector.http.client import CollectorClient, collector_of
from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import ServiceError, UseError
from vizpub.reports.client import Pace, Reporter

_START_S = 120.0
_WARM = 3
"""Intervals that are not measured."""


@contextmanager
def collecting(
    workspace: Path, options: argparse.Namespace
) -> Iterator[tuple[int, CollectorClient]]:
    """A collector: its process number, and what it answers."""
    vizpub = [sys.executable, "-m", "vizpub.cli", "--workspace", str(workspace)]
    words = ["--no-token", "--interval", f"{options.interval}s", "--lateness", "2s"]
    if not options.neo4j:
        words.append("--no-load")
    process = subprocess.Popen([*vizpub, "live", "collect", "lab", *words])
    try:
        yield process.pid, answering(CollectionPlace(workspace, "lab"))
    finally:
        process.terminate()
        process.wait()
        if options.neo4j:
            subprocess.run([*vizpub, "neo4j", "stop"], check=False)


def answering(place: CollectionPlace) -> CollectorClient:
    """Waits until it listens."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        try:
            collector = collector_of(place)
            if collector.get()["progress"]["state"]:
                return collector
        except (UseError, ServiceError):
            time.sleep(0.2)
    raise UseError("the collector does not start")


@dataclass
class Feed:
    """Reports to a collector, and how far it is behind them."""

    collector: CollectorClient
    pid: int
    what: str
    """What tells of the progress: `in_run` or `in_neo4j`."""
    reporter: Reporter
    system: System
    acknowledged: list[float] = field(default_factory=list)
    found: list[tuple[float, tuple[float, float]]] = field(default_factory=list)
    """Lag in seconds, and memory in MB, of each interval."""

    def report(self) -> None:
        """The next interval."""
        for record in self.system.interval(len(self.acknowledged)):
            self.reporter.line(json.dumps(record).encode())
        self.reporter.flush()
        self.acknowledged.append(time.monotonic())

    def look(self) -> None:
        """Note what is there now."""
        last = self.collector.get()["progress"][self.what]
        next_interval = 0 if last is None else last + 1
        for at in self.acknowledged[len(self.found) : next_interval]:
            self.found.append((time.monotonic() - at, _memory(self.pid)))
        time.sleep(0.1)

    def wait(self) -> None:
        """Until all is there."""
        while len(self.found) < len(self.acknowledged):
            self.look()


def fed(
    collector: CollectorClient, pid: int, options: argparse.Namespace
) -> list[tuple[float, tuple[float, float]]]:
    """Lag in seconds, and memory in MB, of each interval that is measured."""
    system, kind = System(options.peers, options.links), "in_neo4j" if options.neo4j else "in_run"
    with Reporter(collector.url, pace=Pace(gather_s=0.02)) as reporter:
        feed = Feed(collector, pid, kind, reporter, system)
        for _ in range(_WARM):
            feed.report()
            feed.wait()
        batches_and_cpu, began = (
            (collector.get()["progress"]["batches"], _processor_s(pid)),
            time.monotonic(),
        )
        for number in range(1, options.intervals + 1):
            feed.report()
            while time.monotonic() < began + number * options.interval:
                feed.look()
        feed.wait()
        counts, batches = (
            reporter.counts,
            collector.get()["progress"]["batches"] - batches_and_cpu[0],
        )
        spent = (_processor_s(pid) - batches_and_cpu[1]) / batches
        print(f"{batches} batches, {spent:.1f} processor seconds for each")
        print(f"retries {counts.retries}, refused {counts.refused}, dropped {counts.dropped}")
        print("load averages", *(round(load, 1) for load in os.getloadavg()))
    return feed.found[_WARM:]


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _memory(pid: int) -> tuple[float, float]:
    """Of all processes; pages that they share count once, and in each of them."""
    sizes = [one.memory_full_info() for one in _family(pid) if one.is_running()]
    return sum(size.pss for size in sizes) / 2**20, sum(size.rss for size in sizes) / 2**20


def _processor_s(pid: int) -> float:
    """Of those that run now; what ended counts for its parent."""
    seconds = 0.0
    for one in _family(pid):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def main() -> None:
    """Feed a collector, and print how far it is behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=int, default=100)
    parser.add_argument("--links", type=int, default=10)
    parser.add_argument("--intervals", type=int, default=60)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--neo4j", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder, collecting(Path(folder), options) as (pid, collector):
        lags_and_sizes = fed(collector, pid, options)
    third = max(len(lags_and_sizes) // 3, 1)
    for name, part in (
        ("second", lags_and_sizes[third : 2 * third]),
        ("last", lags_and_sizes[-third:]),
    ):
        lags = sorted(lag for lag, _ in part)
        proportional, resident = (max(sizes) for sizes in zip(*(s for _, s in part), strict=True))
        p99 = lags[int(0.99 * (len(lags) - 1))]
        middle = lags[len(lags) // 2]
        print(f"{name:6} {middle:6.1f} s median, {p99:6.1f} s p99, {proportional:6.0f} MB", end=" ")
        print(f"({resident:.0f} MB resident)")


if __name__ == "__main__":
    main()
