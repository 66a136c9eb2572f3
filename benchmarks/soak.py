"""Whether a collector stays as it is for long: `python -m benchmarks.soak --minutes 90`.

Peers report every second to `vizpub live collect`, each by its own clock, which is right, fast,
slow or drifts. In the first half, one process after the other is killed: the intake, what makes the
run (Python, Java, a worker), the load, Neo4j. All the time, some readers hardly read what they
asked for. Prints a row for each sixth of the time: MB of each kind of process, seconds that the run
is behind, MB on the disk. At the end the tables must equal those of one ingest of everything that
was reported, and `vizpub neo4j verify` must find the copy in Neo4j equal to them.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import IO

import duckdb
import psutil

from benchmarks.fed import System
from benchmarks.live import answering
from vizpub.collector.http.client import CollectorClient
from vizpub.collector.place import CollectionPlace
from vizpub.graphstore.server.server import LocalServer
from vizpub.model.errors import CheckFailed, ServiceError
from vizpub.reports.client import Pace, Reporter
from vizpub.reports.records import RunEnd, RunHeader
from vizpub.runstore.store import open_run

_LINKS = 10
_LATENESS_S = 5
_CLOCKS: tuple[Callable[[float], float], ...] = (
    lambda at: at + 8,  # as far ahead as the collector lets it be
    lambda at: at - 3,  # slower than the others, but within the lateness
    lambda at: at - 20,  # always late: its reports enter the run when it ends
    lambda at: 1.001 * at,
)
"""Of the first peers: what they show at a true time. Those of the others are right."""
_LOOK_S = 5.0
_PARTS = 6
_KINDS = ("intake", "batches", "Java", "worker", "load", "Neo4j")
_DISK = ("runs", "collected", "neo4j")
_SHOWN = (*_KINDS, "behind", *_DISK)
_PATIENCE_S = 600.0
_DIFFERING = """SELECT count(*) FROM (
    (FROM here EXCEPT ALL FROM there) UNION ALL (FROM there EXCEPT ALL FROM here))"""
_VICTIMS = ("intake", "Java", "batches", "worker", "load", "Neo4j")


@dataclass
class Soaked:
    """A collector of run `lab`, its Neo4j, and what is noted of them."""

    workspace: Path
    kills: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as door:
            self.port: int = door.getsockname()[1]
        self.vizpub = [sys.executable, "-m", "vizpub.cli", "--workspace", str(self.workspace)]
        self.neo4j = LocalServer(self.workspace / "neo4j")
        self.place = CollectionPlace(self.workspace, "lab")
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Begin to collect, or go on."""
        return subprocess.Popen(self.collect())

    def collect(self, *options: str) -> list[str]:
        """The command."""
        words = ["--no-token", "--lateness", f"{_LATENESS_S}s", "--port", str(self.port)]
        return [*self.vizpub, "live", "collect", "lab", *words, *options]

    def processes(self) -> Iterator[tuple[str, psutil.Process]]:
        """Each by its kind. Neo4j is a child of the load that started it."""
        intake, neo4j = psutil.Process(self.process.pid), self.neo4j.status().pid
        yield "intake", intake
        for child in intake.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if child.pid != neo4j:
                    yield _kind(child), child
        if neo4j:
            yield "Neo4j", psutil.Process(neo4j)

    def kill(self, kind: str) -> None:
        """Kill one of that kind, and start again what nobody else does."""
        for process in [process for found, process in self.processes() if found == kind][-1:]:
            process.kill()
            self.kills.append(kind)
        if kind == "intake":
            self.process.wait()
            self.process = self.start()
        elif kind == "Neo4j":
            self.neo4j.start()

    def look(self, collector: CollectorClient) -> dict[str, float] | None:
        """MB of each kind and of the disk, seconds behind; null while something is away."""
        figures: dict[str, float] = defaultdict(float)
        with suppress(psutil.NoSuchProcess, ServiceError):
            for kind, process in self.processes():
                figures[kind] += process.memory_info().rss / 2**20
            figures["behind"] = collector.get()["progress"]["lag_s"]
            for folder in _DISK:
                figures[folder] = _size(self.workspace / folder) / 2**20
            return figures
        return None


def _kind(process: psutil.Process) -> str:
    words = " ".join(process.cmdline())
    if process.name() == "java":
        return "Java"
    if "pyspark" in words:
        return "worker"
    return "load" if " load " in words else "batches"


def _size(folder: Path) -> int:
    """Of its files, each once under all its names, which may go meanwhile."""
    sizes = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = Path(place, name).lstat()
                sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


@contextmanager
def soaking(workspace: Path) -> Iterator[Soaked]:
    """Nothing of it runs after the block."""
    case = Soaked(workspace)
    try:
        yield case
    finally:
        case.process.terminate()
        case.process.wait()
        case.neo4j.stop()


@dataclass
class Peers:
    """They report by their clocks; `told` gets what they reported."""

    url: str
    count: int
    told: IO[str]
    last: int = 0

    def report(self, over: threading.Event) -> None:
        """Until it is over; then wait until all is there."""
        system, sent = System(self.count, _LINKS), 0
        waiting: list[deque[str]] = [deque() for _ in range(self.count)]
        start = time.monotonic()
        with ExitStack() as stack:
            pace = Pace(gather_s=0.02, first_wait_s=0.2, most_wait_s=2.0)
            reporters = [
                stack.enter_context(Reporter(self.url, pace=pace)) for _ in range(self.count)
            ]
            reported = [0] * self.count
            while not over.wait(0.05):
                now = time.monotonic() - start
                for peer, reporter in enumerate(reporters):
                    shown = _CLOCKS[peer](now) if peer < len(_CLOCKS) else now
                    for interval in range(reported[peer], int(shown)):
                        while sent <= interval:
                            for lines, record in zip(waiting, system.interval(sent), strict=True):
                                lines.append(json.dumps(record))
                            sent += 1
                        line = waiting[peer].popleft()
                        self.told.write(line + "\n")
                        reporter.line(line.encode())
                        reported[peer] = interval + 1
            self.last = max(reported) - 1
            for reporter in reporters:
                counts = reporter.counts
                if not reporter.flush(_PATIENCE_S) or counts.refused or counts.dropped:
                    raise CheckFailed(f"reports are lost: {counts}", [str(reporter.last_problem)])


def slow_reader(port: int, path: str, requests: int, over: threading.Event) -> None:
    """Asks so often at once, and reads 64 bytes in 10 s, again whenever it is cut off."""
    words = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode() * requests
    while not over.wait(1):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 10) as end:
            end.sendall(words)
            while end.recv(64) and not over.wait(10):
                pass


@contextmanager
def slow_readers(port: int) -> Iterator[threading.Event]:
    """Some, for the length of the block, which yields what ends with it."""
    over = threading.Event()
    requests = [("/v1/runs/lab/events", 1)] * 4 + [("/metrics", 16)] * 2
    threads = [threading.Thread(target=slow_reader, args=(port, *one, over)) for one in requests]
    for thread in threads:
        thread.start()
    try:
        yield over
    finally:
        over.set()
        for thread in threads:
            thread.join()


def watch(case: Soaked, collector: CollectorClient, seconds: float, kills: int) -> None:
    """Look, and kill in the first half, for so long; print a row for each part of it."""
    print("|", " | ".join(("part", *_SHOWN)), "|\n|", " --- |" * (1 + len(_SHOWN)), flush=True)
    start = time.monotonic()
    for part in range(1, _PARTS + 1):
        looks: list[dict[str, float]] = []
        while (passed := time.monotonic() - start) < part * seconds / _PARTS:
            if looked := case.look(collector):
                looks.append(looked)
            if (len(case.kills) + 1) * seconds / 2 / (kills + 1) < passed < seconds / 2:
                case.kill(_VICTIMS[len(case.kills) % len(_VICTIMS)])
            time.sleep(_LOOK_S)
        cells = (f"{median(looked.get(name, 0) for looked in looks):.0f}" for name in _SHOWN)
        print("|", " | ".join((str(part), *cells)), "|", flush=True)


def check(case: Soaked, header: RunHeader, log: Path, last: int) -> None:
    """Compare the run with one ingest, and with Neo4j. Raises: CheckFailed where they differ."""
    all_reports = case.workspace / "whole.ndjson"
    with all_reports.open("w") as out:
        out.write(f"{json.dumps(header.to_json())}\n{log.read_text()}")
        out.write(f"{json.dumps(RunEnd(last_interval=last).to_json())}\n")
    command = [*case.vizpub, "--quiet", "ingest", str(all_reports), "--run", "whole", "--no-load"]
    subprocess.run(command, check=True)
    lab, ingested = (open_run(case.workspace, run) for run in ("lab", "whole"))
    differing, rows = [], 0
    for table in sorted({*lab.manifest.tables} | {*ingested.manifest.tables}):
        ours, theirs = lab.read(table), ingested.read(table)
        rows += ours.num_rows
        database = duckdb.connect().register("here", ours).register("there", theirs)
        if count := database.execute(_DIFFERING).fetchall()[0][0]:
            differing.append(f"{table}: {count} rows")
    if differing:
        raise CheckFailed("the collected run differs from one ingest", differing)
    print(f"{rows:,} rows in {len(lab.manifest.tables)} tables equal those of one ingest")
    subprocess.run([*case.vizpub, "neo4j", "verify", "lab"], check=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--peers", type=int, default=20)
    parser.add_argument("--kills", type=int, default=24)
    arguments = parser.parse_args()
    seconds = 60 * arguments.minutes
    with (
        tempfile.TemporaryDirectory(prefix="vizpub-soak-") as folder,
        soaking(Path(folder)) as case,
    ):
        collector, log = answering(case.place), Path(folder, "told")
        header = RunHeader.from_json(collector.get()["header"])
        with log.open("w") as out, ThreadPoolExecutor(1) as others:
            peers = Peers(collector.url, arguments.peers, out)
            with slow_readers(case.port) as over:
                reported = others.submit(peers.report, over)
                watch(case, collector, seconds, arguments.kills)
            reported.result()
        counts = collector.get()["progress"]
        subprocess.run(case.collect("--stop"), check=True)
        print(f"{counts['reports']:,} reports, {counts['late']:,} of them late; killed:")
        print(", ".join(f"{kind} {count} times" for kind, count in Counter(case.kills).items()))
        case.process.wait()
        case.neo4j.start()
        check(case, header, log, peers.last)


if __name__ == "__main__":
    try:
        main()
    except CheckFailed as error:
        sys.exit(str(error))
