"""Two collectors of one run: each is killed, one loses its disk, and both runs equal one ingest."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.collector.test_batches import START, reports_of
from tests.integration.test_append import same_tables
from tests.support.broker import Broker, broker_in, free_ports
from tests.support.collected import QUICK, Collecting, last_of, running, until
from tests.support.ingested import ingest
from vizpub.reports.client import Reporter
from vizpub.reports.records import RunHeader
from vizpub.runstore.store import open_run

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(3000)]


@contextmanager
def two_collectors(folder: Path) -> Iterator[tuple[Broker, Collecting, Collecting]]:
    (folder / "broker").mkdir()
    own = broker_in(folder / "broker")
    own.make_topic("reports")
    options = ("--no-token", "--no-load", "--kafka", own.address, "--topic", "reports")
    with ExitStack() as stack:
        stack.callback(own.end, signal.SIGKILL)
        first, second = (
            Collecting(folder / name, (*options, "--replicated"), port=port)
            for name, port in zip("ab", free_ports(2), strict=True)
        )
        for one in (first, second):
            stack.enter_context(running(one))
        yield own, first, second


def send(reporter: Reporter, records: list[dict[str, Any]]) -> None:
    for record in records:
        reporter.line(json.dumps(record).encode())


def test_kills_of_two_collectors_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed = 53
    print("seed", seed)
    rng, told = random.Random(seed), reports_of(seed, 8)
    with two_collectors(tmp_path) as (own, first, second):
        headers = [one.answering().get()["header"] for one in (first, second)]
        assert headers[0]["epoch"] == headers[1]["epoch"]
        with Reporter([first.url, second.url], pace=QUICK) as reporter:
            for number, records in enumerate(told):
                if number in (4, 6):
                    (first if number == 4 else second).answering()
                send(reporter, records)
                time.sleep(0.1 * rng.random())
                if number == 1:
                    until(lambda: last_of(first.place) >= 0)
                elif number == 2:  # the machine is lost, and replaced
                    first.end(signal.SIGKILL)
                    shutil.rmtree(first.place.workspace)
                    assert reporter.flush(100), "the second takes over"
                    first.start()
                elif number == 4:
                    second.end(signal.SIGKILL)
                    assert reporter.flush(100), "the first takes over"
                    second.start()
                elif number == 6:
                    own.end(signal.SIGKILL)
                    own.start()
            assert reporter.flush(100)
            count = sum(map(len, told))
            assert (reporter.counts.sent, reporter.counts.refused) == (count, 0)
        for one in (first, second):
            one.answering()
            one.stop()
    everything = [json.dumps(record) for records in told for record in records]
    header = RunHeader(run="lab", interval_us=1_000_000).to_json()
    end = {"format": "vizpub.end/1", "last_interval": START + len(told) - 1}
    whole = tmp_path / "whole.ndjson"
    whole.write_text("\n".join([json.dumps(header), *everything, json.dumps(end)]))
    wanted = ingest(spark, tmp_path, "whole", whole).run
    for one in (first, second):
        run = open_run(one.place.workspace, "lab")
        assert run.manifest.ended
        same_tables(run, wanted)
