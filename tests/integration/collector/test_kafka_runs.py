"""The run that is collected from a topic equals one ingest of the same reports, through kills."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from tests.integration.collector.test_batches import START, Live, reports_of
from tests.integration.test_append import same_tables
from tests.support.broker import Broker, broker_in
from tests.support.collected import Collecting, running, until
from tests.support.ingested import ingest
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs.kafka import KafkaInput
from vizpub.collector.inputs.kafka_topic import Topic
from vizpub.collector.intake import Intake
from vizpub.collector.making.batch import batches_in
from vizpub.collector.progress import CollectionProgress
from vizpub.reports.records import RunHeader
from vizpub.runstore.store import open_run

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.timeout(3000),
]
PARTITIONS = 3
Messages = list[tuple[int, bytes]]


def messages_of(rng: random.Random, records: list[dict[str, Any]]) -> Messages:
    """Some lines each, in any partition and order."""
    rng.shuffle(records)
    found = []
    while records:
        size = rng.randint(1, 5)
        now, records = records[:size], records[size:]
        content = "".join(json.dumps(record) + "\n" for record in now)
        found.append((rng.randrange(PARTITIONS), content.encode()))
    return found


async def read(broker: Broker, intake: Intake, topic: str, count: int) -> None:
    """A collector that takes so many messages of the topic, counted from its beginning."""
    web = HttpInterface(intake, CollectionProgress(intake))
    kafka = KafkaInput(Topic(broker.address, topic), intake, print, web)
    following = asyncio.create_task(kafka.follow())
    async with asyncio.timeout(100):
        while sum(one["offset"] for one in kafka.summary()["partitions"]) < count:
            await asyncio.sleep(0.02)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def test_run_of_a_topic_equals_one_ingest(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    """Some reports come over HTTP too, some messages twice; collectors and appends go on."""
    seed = 51
    print("seed", seed)
    case = Live(spark, tmp_path, random.Random(seed), [])
    rng, topic = case.rng, f"equal.{seed}"
    broker.make_topic(topic, PARTITIONS)
    told = reports_of(seed, 3)

    async def collect() -> None:
        intake, count = case.intake(), 0
        for number, records in enumerate(told):
            cut = len(records) // 3
            await case.post(intake, records[:cut])
            sent = messages_of(rng, records[cut:])
            sent += [one for one in sent if rng.random() < 0.2]
            broker.send(topic, sent)
            case.sent += records[cut:]
            count += len(sent)
            await read(broker, intake, topic, count)
            if number % 2:
                await intake._close(START + number)
                case.until = intake.closed_at
                case.append(afresh=True)
                await intake.log.aclose()
                intake = case.intake()
        assert intake.counts["refused"] == 0
        await case.end(intake)

    asyncio.run(collect())
    assert case.run.manifest.ended
    same_tables(case.run, case.whole(case.sent, end=START + 2))


@pytest.mark.long
@pytest.mark.parametrize("kills", [2, 12])
def test_kills_of_collector_and_broker_lose_and_double_nothing(
    spark: SparkSession, tmp_path: Path, kills: int
) -> None:
    seed = 52
    print("seed", seed)
    rng, told = random.Random(seed), reports_of(seed, kills + 2)
    (tmp_path / "broker").mkdir()
    own = broker_in(tmp_path / "broker")
    own.make_topic("reports", PARTITIONS)
    from_topic = ("--kafka", own.address, "--topic", "reports")
    try:
        with running(Collecting(tmp_path, ("--no-token", "--no-load", *from_topic))) as case:
            count = send_and_kill(case, own, rng, told)
            until(lambda: has_read(case, count))
            progress = case.answering().get()["progress"]
            assert (progress["reports"], progress["refused"]) == (sum(map(len, told)), 0)
            assert case.end(signal.SIGTERM) == 0
            case.stop()
            lines = lines_of(case)
    finally:
        own.end(signal.SIGKILL)
    everything = [json.dumps(record) for records in told for record in records]
    assert lines == Counter(everything), "each line is in one batch"
    header = RunHeader(run="lab", interval_us=1_000_000).to_json()
    end = {"format": "vizpub.end/1", "last_interval": START + len(told) - 1}
    whole = tmp_path / "whole.ndjson"
    whole.write_text("\n".join([json.dumps(header), *everything, json.dumps(end)]))
    run = open_run(tmp_path, "lab")
    assert run.manifest.ended
    same_tables(run, ingest(spark, tmp_path, "whole", whole).run)


def send_and_kill(
    case: Collecting, own: Broker, rng: random.Random, told: list[list[dict[str, Any]]]
) -> int:
    """A kill after each interval's messages but the first's and the last's: of the collector, of
    the broker, and so on. Returns the number of messages.
    """
    count = 0
    for number, records in enumerate(told):
        sent = messages_of(rng, list(records))
        own.send("reports", sent)
        count += len(sent)
        if number == 0:
            until(lambda: has_read(case, 1))
        elif number < len(told) - 1:
            time.sleep(2 * rng.random())
            if number % 2:
                case.end(signal.SIGKILL)
                case.start()
            else:
                own.end(signal.SIGKILL)
                time.sleep(3 * rng.random())
                own.start()
    return count


def has_read(case: Collecting, count: int) -> bool:
    case.answering()
    with suppress(OSError), urlopen(f"{case.url}/topic", timeout=20) as answer:
        told = json.load(answer)
        return sum(one["offset"] for one in told["partitions"]) >= count
    return False  # it is busy


def lines_of(case: Collecting) -> Counter[str]:
    """All reports of the batches."""
    found = Counter[str]()
    for batch in batches_in(case.place.batches):
        with gzip.open(case.place.batches / batch.name, "rt") as file:
            found.update(line.rstrip("\n") for line in file if '"interval":' in line)
    return found
