"""What an append to a run costs, and whether that grows with the run: `python -m benchmarks.fed`.

A run is fed in one session. Processor seconds are of this process and those it started, and of
Neo4j; ratios are of one run of the benchmark, so a busy machine changes them little. The outcome is
kept in results/fed.json; README.md has the figures.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil
from neo4j import Driver
from pyspark.sql import SparkSession

from benchmarks.results import FOLDER, commit, load, machine
from benchmarks.watched import Json
from vizpub.collector.making import child
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.ingest.pipeline import ingest_in
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.spark.session import spark_session
from vizpub.runstore.manifest import FILE
from vizpub.runstore.store import StoredRun
from vizpub.runstore.writer import writing

_REPLACED = 0.05
"""Share of the links that an interval replaces."""
_FEW = (50, 5)
"""Peers, and links of each, of the runs that get many appends."""
_SIZES = {"the demo's size": (30, 10), "1,000 peers with 20 links": (1_000, 20)}
_WARM = 16
"""Appends before those that are measured, while Java and the workers are cold."""
_MEASURED = 5
_AT_ONCE = 10
_SHORT = 100
_APPENDS = 20


class System:
    """Peers with links, some of which each interval replaces."""

    def __init__(self, peers: int, links: int) -> None:
        self._rng = random.Random(0)
        self._links = [self._rng.choices(range(peers), k=links) for _ in range(peers)]

    def interval(self, number: int) -> Iterator[dict[str, Any]]:
        """The reports of the next interval; one peer publishes, another received."""
        rng, peers = self._rng, len(self._links)
        for peer, links in enumerate(self._links):
            for place, _ in enumerate(links):
                if rng.random() < _REPLACED:
                    links[place] = rng.randrange(peers)
            sent = {"message": f"m{number}", "topic": "news", "hops": 0, "to": ["p0"]}
            came = {"message": f"m{number - 1}", "topic": "news", "from": "p0", "hops": 1}
            yield {
                "format": "vizpub.report/1",
                "peer": f"p{peer}",
                "interval": number,
                "neighbors": [f"p{neighbour}" for neighbour in sorted({*links} - {peer})],
                "topics": ["news"],
                "sent": [sent] if peer == number % peers else [],
                "received": [came] if number and peer == (number + 1) % peers else [],
            }


class Asked(argparse.Namespace):
    """What is measured."""

    parts: list[str]
    appends: int
    long: int


class Cost(NamedTuple):
    """Of an append: the tables, and their copy in Neo4j."""

    seconds: float
    processor: float
    load_seconds: float = 0.0
    load_processor: float = 0.0


@dataclass
class Feed:
    """A run that is fed in a session, and loaded where there is a Neo4j."""

    spark: SparkSession
    folder: Path
    system: System
    driver: Driver | None = None
    server: psutil.Process | None = None
    intervals: int = field(init=False, default=0)

    def append(self, intervals: int = 1) -> Cost:
        """Some intervals at once; the first time they make the run."""
        numbers = range(self.intervals, self.intervals + intervals)
        self.intervals = numbers.stop
        path = self.folder / f"{numbers.start}.ndjson"
        with path.open("w") as out:
            for number in numbers:
                out.writelines(json.dumps(r) + "\n" for r in self.system.interval(number))
        request = IngestRequest((str(path),), "fed", self.folder, append=True)
        start, cpu_start = time.monotonic(), self._processor_seconds()
        with writing(self.folder, "fed") as writer:
            run = ingest_in(self.spark, writer, request).run
        child.trim()
        committed, cpu_committed = time.monotonic(), self._processor_seconds()
        cost = Cost(committed - start, cpu_committed - cpu_start)
        if self.driver is None:
            return cost
        self._load(self.driver, run)
        load_costs = time.monotonic() - committed, self._processor_seconds() - cpu_committed
        return Cost(*cost[:2], *load_costs)

    def _load(self, driver: Driver, run: StoredRun) -> None:
        loaded = load_run(driver, "neo4j", run.facts, run)
        assert loaded.grown == (run.manifest.generation > 0)

    def _processor_seconds(self) -> float:
        me = psutil.Process()
        started = {me, *me.children(recursive=True), *filter(None, [self.server])}
        times = [process.cpu_times() for process in started]
        return sum(of.user + of.system for of in times)

    def memory(self) -> Json:
        """Of each process after a collection, in MB; of Java the heap in use."""
        gc.collect()
        java = self.spark._jvm.java.lang  # type: ignore[union-attr]
        java.System.gc()  # lets cleaners run, whose objects the next one frees
        java.System.gc()
        heap = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
        me = psutil.Process()
        pythons = [c for c in me.children(recursive=True) if c.name().startswith("python")]
        resident = {"this process": me, **{f"worker {n}": c for n, c in enumerate(pythons)}}
        sizes = {name: process.memory_info().rss for name, process in resident.items()}
        return {name: round(size / 1e6, 1) for name, size in {"Java": heap, **sizes}.items()}


def many(spark: SparkSession, folder: Path, options: Asked) -> Json:
    """Early appends against late ones, each of one interval."""
    feed, appends = Feed(spark, folder, System(*_FEW)), options.appends
    feed.append()
    tenth, seconds, memory = max(1, appends // 10), [], []
    for number in range(appends):
        seconds.append(feed.append().processor)
        if number + 1 in (tenth, appends):
            memory.append(feed.memory())
    early, late = median(seconds[tenth : 2 * tenth]), median(seconds[-tenth:])
    return {
        "appends": appends,
        "early": round(early, 2),
        "late": round(late, 2),
        "late/early": round(late / early, 2),
        # Java is cold before.
        "slowest/median": round(max(seconds[tenth:]) / median(seconds), 2),
        "memory, MB": memory,
        "run.json": (folder / "runs/fed" / FILE).stat().st_size,
    }


def sizes(spark: SparkSession, folder: Path, _: Asked) -> Json:
    """One interval and ten at once, into the tables and into Neo4j."""
    outcomes: Json = {}
    server = LocalServer(folder / "neo4j")
    try:
        with connect(server.start()) as driver:
            process = psutil.Process(server.status().pid)
            for place, (name, shape) in enumerate(_SIZES.items()):
                place_folder = folder / str(place)
                place_folder.mkdir()
                outcomes[name] = _of_size(
                    Feed(spark, place_folder, System(*shape), driver, process)
                )
                remove_run(driver, "neo4j", "fed")
    finally:
        server.remove()
    return outcomes


def _of_size(feed: Feed) -> Json:
    for _ in range(_WARM):
        feed.append()
    one = _medians([feed.append() for _ in range(_MEASURED)])
    feed.append(_AT_ONCE)
    ten = _medians([feed.append(_AT_ONCE) for _ in range(_MEASURED)])
    ratios = {of: round(b / a, 2) for of, a, b in zip(Cost._fields, one, ten, strict=True)}
    return {"one": one._asdict(), "ten at once": ten._asdict(), "ten/one": ratios}


def _medians(costs: list[Cost]) -> Cost:
    return Cost(*(round(median(of), 2) for of in zip(*costs, strict=True)))


def lengths(spark: SparkSession, folder: Path, options: Asked) -> Json:
    """Appends to a long run made in one go, and to a short one."""
    seconds: Json = {}
    for length in (_SHORT, options.long):
        place = folder / str(length)
        place.mkdir()
        feed = Feed(spark, place, System(*_FEW))
        feed.append(length)
        feed.append()
        seconds[str(length)] = round(sum(feed.append().processor for _ in range(_APPENDS)), 2)
    short, long = seconds.values()
    return {**seconds, "appends": _APPENDS, "long/short": round(long / short, 2)}


PARTS: dict[str, Callable[[SparkSession, Path, Asked], Json]] = {
    "many": many,
    "sizes": sizes,
    "lengths": lengths,
}


def main() -> None:
    """Print and keep the figures, of a process that is started as the collector starts its own."""
    if (environment := child.environment()) != dict(os.environ):
        words = [sys.executable, "-m", "benchmarks.fed", *sys.argv[1:]]
        os.execve(sys.executable, words, environment)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=[*PARTS], metavar="PART")
    parser.add_argument("--appends", type=int, default=500, help="of the part `many`")
    parser.add_argument("--long", type=int, default=5_000, help="intervals, of the part `lengths`")
    options = parser.parse_args(namespace=Asked())
    with (
        TemporaryDirectory(prefix="vizpub-fed-") as name,
        spark_session(Path(name) / "spark", quick=True) as spark,
    ):
        for part in options.parts:
            folder, load_before = Path(name) / part, load()
            folder.mkdir()
            outcome = PARTS[part](spark, folder, options)
            about = {"load": [load_before, load()], "machine": machine(), "commit": commit()}
            _keep(part, {**outcome, **about})
            print(part, json.dumps(outcome), flush=True)


def _keep(part: str, outcome: Json) -> None:
    path = FOLDER / "fed.json"
    outcomes = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**outcomes, part: outcome}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
