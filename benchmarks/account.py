"""Where the time of a small ingest goes: `python -m benchmarks.account`, a minute.

Ingests the demo's trace and an edge list, each in its own process, from call to end. Wall time is
cut in two ways. Parts follow one another. Kinds exclude one another: time outside Spark's jobs is
spent in calls to Java or in our own Python; calls are what the main thread waits for while other
threads write tables. The page names the time that neither way explains. It also shows what runs in
several places at once, and so has no meaningful sum: phases of queries, and tasks.

Writes benchmarks/ACCOUNT.md.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.watched import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "benchmarks" / "ACCOUNT.md"

LINKS, PEERS, INTERVALS = 884, 100, 20
"""Links of the edge list."""
Span = tuple[float, float]


def main() -> None:
    """Measure both and write the page; or, with `--of`, run as one of the measured processes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.account", description=__doc__)
    parser.add_argument("--of", metavar="PATH", help=argparse.SUPPRESS)
    if of := parser.parse_args().of:
        print(json.dumps(measured(Path(of))))
        return
    with TemporaryDirectory(prefix="vizpub-account-") as folder:
        edges = edge_list(Path(folder) / "edges.csv")
        paths = {"demo": ROOT / "examples" / "gossipsub", f"{LINKS} edges": edges}
        found = {name: in_process(path) for name, path in paths.items()}
    text = page(found)
    PAGE.write_text(text, "utf-8")
    print(text)


def edge_list(path: Path) -> Path:
    """A file of random links, the same each time."""
    rng = random.Random(13)
    rows = (
        (rng.randrange(INTERVALS), *(f"p{peer}" for peer in rng.sample(range(PEERS), 2)))
        for _ in range(LINKS)
    )
    lines = (",".join(map(str, row)) for row in sorted(rows))
    path.write_text("\n".join(["interval,src,dst", *lines]) + "\n", "utf-8")
    return path


def in_process(path: Path) -> dict[str, dict[str, float]]:
    """`measured`, in a fresh process."""
    words, begun = [sys.executable, "-m", "benchmarks.account", "--of", str(path)], time.time()
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    whole = time.time() - begun
    told: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    for way in ("parts", "kinds"):
        told[way]["not explained"] = whole - sum(told[way].values())
        told[way]["the whole process"] = whole
    return told


def measured(path: Path) -> dict[str, dict[str, float]]:
    """Seconds by part, by kind, and what runs beside them."""
    from vizpub.ingest.pipeline import IngestRequest, ingest

    with calls() as made, in_tasks() as tasks, TemporaryDirectory() as folder:
        outcome = ingest(IngestRequest((str(path),), "account", Path(folder)))
        account = outcome.account
    parts = {part.name: part.end - part.begin for part in account.parts}
    jobs = [(job.begin, job.end) for job in account.jobs]
    in_java = [(begin - account.called, end - account.called) for begin, end in made]
    stages = [(p.begin, p.end) for p in account.parts if p.name not in AROUND]
    running = total(within(jobs, stages))
    waiting = total(within([*jobs, *in_java], stages)) - running
    kinds = {name: parts[name] for name in AROUND}
    kinds["jobs of Spark"] = running
    kinds["calls to Java outside jobs: making, analysing and planning queries"] = waiting
    kinds["Python of the driver, and commits"] = total(stages) - running - waiting
    beside = {
        "the first job": min(jobs)[1] - min(jobs)[0],
        "jobs, count": len(jobs),
        "calls to Java, count": len(made),
        **tasks,
    }
    return {"parts": parts, "kinds": kinds, "beside": beside}


AROUND = ("start of Python", "look at the input", "start of Spark", "end of Spark")


@contextmanager
def calls() -> Iterator[list[Span]]:
    """When the main thread called Java."""
    from py4j.java_gateway import GatewayClient

    found: list[Span] = []
    plain: Callable[..., Any] = GatewayClient.send_command

    def timed(client: Any, *args: Any, **options: Any) -> Any:
        begin = time.time()
        try:
            return plain(client, *args, **options)
        finally:
            if threading.current_thread() is threading.main_thread():
                found.append((begin, time.time()))

    with patch.object(GatewayClient, "send_command", timed):
        yield found


@contextmanager
def in_tasks() -> Iterator[dict[str, float]]:
    """Duration of the tasks, read before Spark ends."""
    from pyspark.sql import SparkSession

    found: dict[str, float] = {}
    plain = SparkSession.stop

    def stop(spark: SparkSession) -> None:
        context, gateway = spark.sparkContext, spark.sparkContext._gateway
        assert gateway
        nothing = gateway.new_array(gateway.jvm.double, 0), gateway.jvm.java.util.ArrayList()
        stages = context._jsc.sc().statusStore().stageList(None, False, False, *nothing)
        runs = [stages.apply(place) for place in range(stages.size())]
        found["tasks: time in executors"] = sum(run.executorRunTime() for run in runs) / 1000
        found["tasks: processor time"] = sum(run.executorCpuTime() for run in runs) / 1e9
        found["tasks: garbage collection"] = sum(run.jvmGcTime() for run in runs) / 1000
        plain(spark)

    with patch.object(SparkSession, "stop", stop):
        yield found


def within(spans: list[Span], bounds: list[Span]) -> list[Span]:
    """The periods, cut to the bounds."""
    cut = [(max(a, c), min(b, d)) for a, b in spans for c, d in bounds]
    return [(begin, end) for begin, end in cut if begin < end]


def total(spans: list[Span]) -> float:
    """The length of the union."""
    length, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        length += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return length


def page(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """The tables as Markdown."""
    text = [
        "# Where the time of a small ingest goes",
        "",
        "Seconds of a whole process, by `python -m benchmarks.account`; some rows are counts.",
    ]
    for table in ("parts", "kinds", "beside"):
        names = list(dict.fromkeys(name for of in found.values() for name in of[table]))
        text += ["", f"| {table} | {' | '.join(found)} |", "| --- |" + " ---: |" * len(found)]
        for name in names:
            cells = (_cell(name, of[table].get(name)) for of in found.values())
            text.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(text) + "\n"


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if name.endswith("count") else f"{value:.2f}"


if __name__ == "__main__":
    main()
