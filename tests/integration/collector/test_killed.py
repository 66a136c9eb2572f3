"""Real processes and real kills: nothing acknowledged is missing or doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from collector.place import Place
from ingest.reports.client import Pace, Reporter
from ingest.reports.records import RunHeader
from model.errors import UseError
from runstore.store import open_run
from tests.integration.collector.test_batches import START, reports_of
from tests.integration.test_append import same_tables
from tests.support.ingested import ingest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000)]
ROOT = Path(__file__).parents[3]
QUICK = Pace(gather_s=0.01, first_wait_s=0.05, most_wait_s=0.3, timeout_s=20.0)
PATIENCE_S = 300.0


class Collecting:
    """`vizpub collect` as a process."""

    def __init__(self, workspace: Path, port: int) -> None:
        self.place, self._port = Place(workspace, "lab"), port
        self.process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{port}/v1/runs/lab"

    def command(self, *options: str) -> list[str]:
        vizpub = [sys.executable, "-m", "cli", "--workspace", str(self.place.workspace)]
        told = ["--no-token", "--no-load", "--lateness", "2s", "--port", str(self._port)]
        return [*vizpub, "collect", "lab", *told, *options]

    def start(self) -> None:
        self.process = subprocess.Popen(self.command(), cwd=ROOT, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        subprocess.run(self.command("--stop"), cwd=ROOT, check=True, timeout=PATIENCE_S)

    def end(self, how: signal.Signals) -> int:
        assert self.process
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)

    def batches(self) -> list[psutil.Process]:
        """The processes that make the run."""
        assert self.process
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children()
        return []


@contextmanager
def collecting(workspace: Path) -> Iterator[Collecting]:
    made = Collecting(workspace, 20_000 + os.getpid() % 10_000)
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


def last_of(place: Place) -> int:
    """The last interval that the run has; -1 = none."""
    with suppress(UseError):
        clock = open_run(place.workspace, place.run).manifest.clock
        return -1 if clock is None else clock.last
    return -1


@pytest.mark.parametrize(
    "kills", [pytest.param(2, id="few"), pytest.param(20, id="many", marks=pytest.mark.long)]
)
def test_killed_collector_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, kills: int
) -> None:
    """Kills of the intake and of the process that makes the run, while reports come."""
    seed = 21
    print("seed", seed)
    rng, told = random.Random(seed), reports_of(seed, kills + 2)
    with collecting(tmp_path) as case:
        with Reporter(case.url, pace=QUICK, memory=2**30) as reporter:
            for number, records in enumerate(told):
                for record in records:
                    reporter.line(json.dumps(record).encode())
                if number == 0:
                    until(lambda: reporter.waiting == 0)
                elif number <= kills and number % 2:
                    time.sleep(rng.random())
                    case.end(signal.SIGKILL)
                    case.start()
                elif number <= kills:
                    until(lambda: bool(case.batches()))
                    time.sleep(5 * rng.random())
                    for process in case.batches():
                        process.kill()
            assert reporter.flush(PATIENCE_S)
            assert reporter.counts.refused == reporter.counts.dropped == 0
        assert case.end(signal.SIGTERM) == 0
        case.stop()
    last = START + len(told) - 1
    header = RunHeader(run="lab", interval_us=1_000_000)
    records = [record for of in told for record in of]
    ends = {"format": "vizpub.end/1", "last_interval": last}
    whole = tmp_path / "whole.ndjson"
    lines = [header.to_json(), *records, ends]
    whole.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = open_run(tmp_path, "lab")
    assert run.manifest.ended
    same_tables(run, ingest(spark, tmp_path, "whole", whole).run)


def test_paused_collection_goes_on_and_a_second_one_is_refused(tmp_path: Path) -> None:
    told = reports_of(22, 2)
    with collecting(tmp_path) as case:
        with Reporter(case.url, pace=QUICK) as reporter:
            for record in told[0]:
                reporter.line(json.dumps(record).encode())
            assert reporter.flush(PATIENCE_S)
            second = subprocess.run(
                case.command(), cwd=ROOT, capture_output=True, text=True, check=False
            )
            assert second.returncode == 2
            assert "lab" in second.stderr
            assert case.end(signal.SIGTERM) == 0
            case.start()
            for record in told[1]:
                reporter.line(json.dumps(record).encode())
            assert reporter.flush(PATIENCE_S)
        case.stop()  # of the one that runs
        assert case.process
        assert case.process.wait(PATIENCE_S) == 0
        assert last_of(case.place) == START + 1
