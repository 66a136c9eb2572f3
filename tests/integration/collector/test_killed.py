"""Real processes and real kills: nothing acknowledged is missing or doubled."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingest.reports.client import Reporter
from ingest.reports.records import RunHeader
from runstore.store import open_run
from tests.integration.collector.test_batches import START, reports_of
from tests.integration.test_append import same_tables
from tests.support.collected import PATIENCE_S, QUICK, ROOT, Collecting, last_of, running, until
from tests.support.ingested import ingest

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(3000)]


@pytest.mark.parametrize(
    "kills", [pytest.param(2, id="few"), pytest.param(20, id="many", marks=pytest.mark.long)]
)
def test_killed_collector_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, kills: int
) -> None:
    """Kills of the intake, and of any process that makes the run, while reports come."""
    seed = 21
    print("seed", seed)
    rng, told = random.Random(seed), reports_of(seed, kills + 2)
    with running(Collecting(tmp_path)) as case:
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
                    if alive := case.batches():
                        rng.choice(alive).kill()
            assert reporter.flush(PATIENCE_S)
            assert reporter.counts.refused == reporter.counts.dropped == 0
        refuses_a_second(case)
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


def refuses_a_second(case: Collecting) -> None:
    second = subprocess.run(case.command(), cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "lab" in second.stderr


@pytest.mark.long
def test_paused_collection_goes_on_and_is_stopped_while_it_runs(tmp_path: Path) -> None:
    told = reports_of(22, 2)
    with running(Collecting(tmp_path)) as case:
        with Reporter(case.url, pace=QUICK) as reporter:
            for record in told[0]:
                reporter.line(json.dumps(record).encode())
            assert reporter.flush(PATIENCE_S)
            assert case.end(signal.SIGTERM) == 0
            case.start()
            for record in told[1]:
                reporter.line(json.dumps(record).encode())
            assert reporter.flush(PATIENCE_S)
        case.stop()  # of the one that runs
        assert case.process
        assert case.process.wait(PATIENCE_S) == 0
        assert last_of(case.place) == START + 1
