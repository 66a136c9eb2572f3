"""Which messages are taken next, and which wait; reading is tested with a real broker."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.collecting import header
from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs.kafka import KafkaInput, Partition
from vizpub.collector.inputs.kafka_message import KafkaMessage
from vizpub.collector.inputs.kafka_topic import FetchResult, Topic
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log import records as log
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress

AHEAD = 4

pytest.importorskip("confluent_kafka", reason="this environment is older than the lock")


def message(partition: int, offset: int, interval: int, peer: str = "") -> KafkaMessage:
    told = {"format": "vizpub.report/1", "peer": peer or f"{partition}", "interval": interval}
    content = json.dumps({**told, "neighbors": []}).encode()
    return KafkaMessage.of(("reports", "id"), partition, offset, content)


def with_partitions(
    folder: Path, ends: list[int], work: Callable[[KafkaInput], Awaitable[None]]
) -> None:
    """Partitions with so many messages at the broker, and none read yet."""

    async def around() -> None:
        place = CollectionPlace(folder, "lab")
        place.make()
        intake = Intake(place, header(), ClosingRules(ahead=AHEAD), IntakeLimits(reserve=1))
        web = HttpInterface(intake, CollectionProgress(intake))
        kafka = KafkaInput(Topic("127.0.0.1:1", "reports"), intake, lambda _: None, web)
        kafka.partitions = {n: Partition(n, 0, end) for n, end in enumerate(ends)}
        try:
            await work(kafka)
        finally:
            await kafka._call(kafka._reader.close)
            await intake.log.aclose()

    asyncio.run(around())


async def taken(kafka: KafkaInput, *messages: KafkaMessage) -> list[tuple[int, int]]:
    """Partition and offset of what a turn takes that brings these."""
    kafka._add(FetchResult(list(messages)))
    ready = list(kafka._takeable())
    await kafka._take(ready)
    return [(one.partition, one.offset) for one in ready]


def test_partition_that_is_ahead_waits_for_what_the_others_had_then(tmp_path: Path) -> None:
    async def work(kafka: KafkaInput) -> None:
        assert await taken(kafka, message(0, 0, 0), message(1, 0, 0)) == [(0, 0), (1, 0)]
        assert await taken(kafka, message(0, 1, 50)) == []
        assert kafka.summary()["partitions"][0]["held"]
        assert await taken(kafka) == []
        assert await taken(kafka, message(1, 1, 1)) == [(1, 1)]
        kafka.partitions[1].end = 9  # what comes later need not be waited for
        assert await taken(kafka, message(1, 2, 2)) == [(1, 2)]
        assert await taken(kafka) == [(0, 1)]
        assert kafka.intake.of_peers["refused"] == {"0": 1}
        assert not kafka.summary()["partitions"][0]["held"]

    with_partitions(tmp_path, [2, 3], work)


def test_least_of_those_that_are_ahead_goes_first(tmp_path: Path) -> None:
    async def work(kafka: KafkaInput) -> None:
        await taken(kafka, message(0, 0, 0), message(1, 0, 0))
        assert await taken(kafka, message(0, 1, 90), message(1, 1, 50), message(1, 2, 51)) == []
        assert await taken(kafka) == [(1, 1)]

    with_partitions(tmp_path, [2, 3], work)


def test_message_that_comes_again_is_left_out(tmp_path: Path) -> None:
    async def work(kafka: KafkaInput) -> None:
        assert await taken(kafka, message(0, 3, 0), message(0, 4, 0)) == [(0, 3), (0, 4)]
        assert await taken(kafka, message(0, 4, 0), message(0, 5, 1)) == [(0, 5)]
        assert kafka.summary()["partitions"][0] == {
            "partition": 0,
            "offset": 6,
            "lag": 1,
            "lost": 0,
            "held": False,
        }

    with_partitions(tmp_path, [7], work)


def test_end_behind_a_transaction_is_no_lag(tmp_path: Path) -> None:
    """The mark of a commit has an offset, and never comes."""

    async def work(kafka: KafkaInput) -> None:
        await taken(kafka, message(0, 0, 0))
        kafka._add(FetchResult(at_end={0: 2}, ends={0: 2}))
        assert [(one["offset"], one["lag"]) for one in kafka.summary()["partitions"]] == [(2, 0)]

    with_partitions(tmp_path, [1], work)


@pytest.mark.parametrize("seed", range(20))
def test_message_never_waits_forever(tmp_path: Path, seed: int) -> None:
    """Partitions with jumps and wrong clocks: all is taken, in the order of each partition."""
    print("seed", seed)
    rng = random.Random(seed)
    parts: list[list[KafkaMessage]] = []
    for number in range(rng.randint(1, 4)):
        interval, part = 0, list[KafkaMessage]()
        for offset in range(rng.randint(0, 40)):
            interval += rng.choice((0, 0, 1, 1, 2, 30))
            told = interval + 10**5 * (rng.random() < 0.1)
            part.append(message(number, offset, told, f"{number}.{rng.randrange(3)}"))
        parts.append(part)

    async def work(kafka: KafkaInput) -> None:
        coming = [list(part) for part in parts]
        turns = 0
        while any(coming) or any(one.waiting for one in kafka.partitions.values()):
            now: list[KafkaMessage] = []
            for part in coming:
                size = rng.randint(0, 10)
                now += part[:size]
                del part[:size]
            await taken(kafka, *now)
            turns += not any(coming)
            assert turns <= 2 * sum(map(len, parts)) + 2

    with_partitions(tmp_path, [len(part) for part in parts], work)
    heads = [
        json.loads(r.content)
        for r in log.read_records(tmp_path / "collected/lab/log")
        if r.kind == b"M"
    ]
    for number, part in enumerate(parts):
        found = [head["offset"] for head in heads if head["partition"] == number]
        assert found == list(range(len(part)))
