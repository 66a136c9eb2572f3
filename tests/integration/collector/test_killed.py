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
from typer.testing import CliRunner

from tests.integration.collector.test_batches import START, Record, reports_of
from tests.integration.test_append import same_tables
from tests.support.collected import PATIENCE_S, QUICK, ROOT, Collecting, last_of, running, until
from tests.support.ingested import ingest
from tests.support.object_store import Machine, check_objects, in_s3
from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.reports.client import Reporter
from vizpub.reports.records import RunHeader
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import remove_run

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(3000)]


@pytest.mark.parametrize(
    "kills", [pytest.param(2, id="few"), pytest.param(20, id="many", marks=pytest.mark.long)]
)
def test_killed_collector_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, kills: int
) -> None:
    told = reports_of(21, kills + 2)
    with running(Collecting(tmp_path)) as case:
        report_under_kills(case, told, seed=21)
        refuses_a_second(case)
        assert case.end(signal.SIGTERM) == 0
        case.stop()
    run = open_run(tmp_path, "lab")
    assert run.manifest.ended
    same_tables(run, whole(spark, tmp_path, told))


@in_s3
@pytest.mark.long
@pytest.mark.parametrize("seed", [24, 25])
def test_killed_collector_of_a_run_in_a_store_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, machine: Machine, seed: int
) -> None:
    told, log = reports_of(seed, 6), tmp_path / "log"
    options = (*Collecting.options, "--log", str(log))
    with running(Collecting(machine("here"), options)) as case:
        report_under_kills(case, told, seed)
        assert case.end(signal.SIGTERM) == 0
        case.stop()
    assert any(case.place.log.resolve().iterdir())
    assert case.place.log.resolve().is_relative_to(log)
    run = open_run(machine("elsewhere"), "lab")
    assert run.manifest.ended
    same_tables(run, whole(spark, tmp_path, told))
    check_objects(run)


def report_under_kills(case: Collecting, told: list[list[Record]], seed: int) -> None:
    """Report intervals while the intake is killed, and any process that makes the run, in turns;
    neither in the first nor in the last interval.
    """
    print("seed", seed)
    rng = random.Random(seed)
    with Reporter(case.url, pace=QUICK, memory=2**30) as reporter:
        for number, records in enumerate(told):
            for record in records:
                reporter.line(json.dumps(record).encode())
            if number == 0:
                until(lambda: reporter.waiting == 0)
            elif number == len(told) - 1:
                break
            elif number % 2:
                time.sleep(rng.random())
                case.end(signal.SIGKILL)
                case.start()
            else:
                until(lambda: bool(case.batches()))
                time.sleep(5 * rng.random())
                if alive := case.batches():
                    rng.choice(alive).kill()
        assert reporter.flush(PATIENCE_S)
        assert reporter.counts.refused == reporter.counts.dropped == 0


def whole(spark: SparkSession, folder: Path, told: list[list[Record]]) -> StoredRun:
    """One ingest of the reports of all intervals, and of the end."""
    header = RunHeader(run="lab", interval_us=1_000_000)
    ends = {"format": "vizpub.end/1", "last_interval": START + len(told) - 1}
    lines = [header.to_json(), *(record for of in told for record in of), ends]
    path = folder / "whole.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return ingest(spark, folder, "whole", path).run


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


@pytest.mark.long
def test_name_is_the_collectors_until_the_run_has_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also before its first append, and where the collector is killed."""
    told = reports_of(23, 2)
    path = tmp_path / "foreign.ndjson"
    path.write_text("".join(f"{json.dumps(record)}\n" for of in told for record in of))

    def refused(*command: str) -> None:
        done = CliRunner().invoke(app, ["--workspace", str(tmp_path), *command])
        assert done.exit_code == 2
        tells(done.stderr, "lab", "vizpub live collect lab --stop")

    ingest_it = ("ingest", str(path), "--run", "lab", "--no-load")
    with running(Collecting(tmp_path)) as case:
        case.answering()
        refused(*ingest_it)
        refused("runs", "remove", "lab", "--yes")
        with Reporter(case.url, pace=QUICK) as reporter:
            for record in told[0]:
                reporter.line(json.dumps(record).encode())
            assert reporter.flush(PATIENCE_S)
            until(lambda: last_of(case.place) == START)
            case.end(signal.SIGKILL)
            refused(*ingest_it, "--replace")
            case.start()
            for record in told[1]:
                reporter.line(json.dumps(record).encode())
            assert reporter.flush(PATIENCE_S)
        refused("runs", "settle", "lab", "--no-load")
        case.stop()
        assert case.process
        assert case.process.wait(PATIENCE_S) == 0
        expected = whole(spark, tmp_path, told)
        same_tables(open_run(tmp_path, "lab"), expected)
        remove_run(tmp_path, "lab")
        second = subprocess.run(case.command("--stop"), cwd=ROOT, capture_output=True, check=False)
        assert second.returncode == 2
        subprocess.run(case.command("--stop", "--revive"), cwd=ROOT, check=True)
        same_tables(open_run(tmp_path, "lab"), expected)
