"""A topic that is read: real brokers, kills, and everything that a topic may lack."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.support.broker import PASSWORD, USER, Broker, broker_in
from tests.support.collected import ROOT
from tests.support.collecting import LATER, header
from tests.support.words import tells
from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.http.prometheus import page
from vizpub.collector.inputs.kafka import MADE_ANEW, KafkaInput
from vizpub.collector.inputs.kafka_topic import NO_BROKER, Topic, read_config
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log import records as log
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
TOPIC = "reports"


@pytest.fixture
def name(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with three partitions."""
    found = "".join(c if c.isalnum() else "." for c in request.node.name)
    broker.make_topic(found, 3)
    return found


@dataclass
class Case:
    """A collector of a topic, in a folder."""

    folder: Path
    topic: Topic
    limits: IntakeLimits = field(default_factory=lambda: IntakeLimits(reserve=1))
    rules: ClosingRules = field(default_factory=ClosingRules)
    began: datetime = LATER
    said: list[str] = field(default_factory=list)

    @property
    def place(self) -> CollectionPlace:
        return CollectionPlace(self.folder, "lab")

    def run(self, work: Callable[[KafkaInput], Awaitable[None]]) -> None:
        async def around() -> None:
            self.place.make()
            intake = Intake(self.place, header(self.began), self.rules, self.limits)
            web = HttpInterface(intake, CollectionProgress(intake))
            kafka = KafkaInput(self.topic, intake, self.said.append, web)
            following = asyncio.create_task(kafka.follow())
            try:
                await work(kafka)
            finally:
                following.cancel()
                (done,) = await asyncio.gather(following, return_exceptions=True)
                await intake.log.aclose()
            assert isinstance(done, asyncio.CancelledError), done

        asyncio.run(around())

    def taken(self) -> list[tuple[str, int]]:
        records = [r.line for r in log.read_records(self.place.log) if r.kind == log.REPORT]
        return [(r["peer"], r["interval"]) for r in map(json.loads, records)]

    def offsets(self) -> list[tuple[int, int]]:
        """Partition and offset of each message in the log."""
        heads = [
            json.loads(r.content) for r in log.read_records(self.place.log) if r.kind == log.MESSAGE
        ]
        assert all(head["topic"] == self.topic.name for head in heads)
        return [(head["partition"], head["offset"]) for head in heads]

    async def has(self, count: int) -> None:
        await until(lambda: len(self.taken()) == count)


def of(folder: Path, broker: Broker, name: str, **config: str) -> Case:
    told = {key.replace("_", "."): value for key, value in config.items()}
    return Case(folder, Topic(broker.address, name, told))


async def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 100
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.05)


def report(peer: str, interval: int, **more: Any) -> bytes:
    told = {"format": "vizpub.report/1", "peer": peer, "interval": interval, "neighbors": []}
    return json.dumps({**told, **more}).encode()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_of_all_partitions_are_taken(
    tmp_path: Path, broker: Broker, name: str, compression: str
) -> None:
    sent = [(number % 3, report(f"{number % 3}", number // 3)) for number in range(12)]
    several = b"\n".join(report("several", interval) for interval in range(5))
    settings = {"compression.type": compression, "linger.ms": 50}
    broker.send(name, [*sent, (1, several)], **settings)
    case = of(tmp_path, broker, name)
    case.run(lambda _: case.has(17))
    wanted = [(str(p), i) for p in range(3) for i in range(4)]
    assert sorted(case.taken()) == wanted + [("several", i) for i in range(5)]
    assert sorted(case.offsets()) == [(p, i) for p in range(3) for i in range(4 + (p == 1))]


def test_collector_goes_on_where_its_log_ends(tmp_path: Path, broker: Broker, name: str) -> None:
    """Nothing is committed at the broker, and a property that would do so changes nothing."""
    case = of(tmp_path, broker, name, enable_auto_commit="true", group_id="mine")
    broker.send(name, [(p, report(f"{p}", 0)) for p in range(3)])
    case.run(lambda _: case.has(3))
    broker.send(name, [(p, report(f"{p}", 1)) for p in range(2)])
    case.run(lambda _: case.has(5))

    async def nothing_more(kafka: KafkaInput) -> None:
        await until(lambda: bool(kafka.up))
        await asyncio.sleep(1)
        assert [one["lag"] for one in kafka.summary()["partitions"]] == [0, 0, 0]

    case.run(nothing_more)
    assert len(case.taken()) == 5
    other = of(tmp_path / "other", broker, name, group_id="mine")
    other.run(lambda _: other.has(5))


def test_refused_lines_are_named_and_the_stream_goes_on(
    tmp_path: Path, broker: Broker, name: str
) -> None:
    """Also those of a peer whose clock is a day ahead, which would otherwise be waited for."""
    mixed = report("a", 0) + b"\n{}\n" + report("b", 0)
    sent = [(0, mixed), (0, report("late", 86_400)), (0, b"\xff"), (0, report("a", 1))]
    broker.send(name, [*sent, (1, report("c", 1)), (2, report("d", 1, run="other"))])
    case = of(tmp_path, broker, name)

    async def work(kafka: KafkaInput) -> None:
        await case.has(4)
        await until(lambda: kafka.intake.counts["refused"] == 4)
        broker.send(name, [(0, report("b", 1))])
        await case.has(5)
        assert kafka.intake.of_peers["refused"] == {"late": 1, "d": 1}

    case.run(work)
    assert sorted(case.taken()) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 1)]
    told = "\n".join(case.said)
    place = f"topic '{name}', partition 0, offset"
    tells(told, f"{place} 0, line 2", f"{place} 1, line 1", f"{place} 2, line 1")
    tells(told, "'late'", "UTF-8", "'other'")


def test_new_partition_is_found(
    tmp_path: Path, broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vizpub.collector.inputs.kafka._LOOK_S", 0.3)
    case = of(tmp_path, broker, name, auto_offset_reset="latest")

    async def work(kafka: KafkaInput) -> None:
        await until(lambda: len(kafka.partitions) == 3)
        broker.add_partitions(name, 5)
        broker.send(name, [(4, report("e", 0)), (0, report("a", 0))])
        await case.has(2)

    case.run(work)
    assert sorted(case.offsets()) == [(0, 0), (4, 0)]


def test_topic_is_read_from_its_end_where_that_is_told(
    tmp_path: Path, broker: Broker, name: str
) -> None:
    """From the end as it was when the first collector came, even if that one took nothing."""
    broker.send(name, [(0, report("a", 0)), (1, report("b", 0))])
    case = of(tmp_path, broker, name, auto_offset_reset="latest")
    case.run(lambda kafka: until(lambda: bool(kafka.up)))
    assert case.taken() == []
    broker.send(name, [(0, report("a", 1)), (2, report("c", 1))])
    case.run(lambda _: case.has(2))
    assert sorted(case.taken()) == [("a", 1), ("c", 1)]


def test_missing_topic_is_waited_for_and_not_made(tmp_path: Path, broker: Broker) -> None:
    name = "not.yet"
    case = of(tmp_path, broker, name)

    async def work(kafka: KafkaInput) -> None:
        await until(lambda: kafka.up is False)
        assert kafka.error == f"there is no topic '{name}' at {broker.address}"
        await asyncio.sleep(2)
        assert name not in broker.topics()
        broker.make_topic(name, 2)
        broker.send(name, [(1, report("a", 0))])
        await case.has(1)

    case.run(work)
    assert [text.partition(";")[0] for text in case.said] == [
        f"there is no topic '{name}' at {broker.address}",
        f"topic '{name}' is read, 2 partitions",
    ]


def test_removed_messages_are_said_and_reading_goes_on_behind_them(
    tmp_path: Path, broker: Broker, name: str
) -> None:
    broker.send(name, [(0, report("a", interval)) for interval in range(3)])
    case = of(tmp_path, broker, name)
    case.run(lambda _: case.has(3))
    broker.send(name, [(0, report("a", interval)) for interval in range(3, 10)])
    broker.remove_before(name, 0, 8)

    async def work(kafka: KafkaInput) -> None:
        await case.has(5)
        assert [one["lost"] for one in kafka.summary()["partitions"]] == [5, 0, 0]
        text = page(kafka.intake, kafka.web.progress)
        assert f'vizpub_kafka_lost_messages_total{{topic="{name}",partition="0"}} 5\n' in text

    case.run(work)
    assert case.taken() == [("a", interval) for interval in (0, 1, 2, 8, 9)]
    said = "lacks 5 messages from offset 3 on: they were removed"
    assert sum(said in text for text in case.said) == 1


def test_messages_that_are_removed_while_nothing_is_read_are_said(
    tmp_path: Path, broker: Broker, name: str
) -> None:
    """The collector runs, and its log is full: what the client fetched ahead is still taken."""
    case = of(tmp_path, broker, name)
    case.limits = IntakeLimits(reserve=1, log=0)
    broker.send(name, [(0, report("a", interval)) for interval in range(4)])

    async def work(kafka: KafkaInput) -> None:
        await until(lambda: bool(kafka.up))
        await asyncio.sleep(1.5)
        assert not case.taken()
        assert kafka.summary()["partitions"][0]["lag"] == 4
        broker.send(name, [(0, report("a", 4))])
        await until(lambda: kafka.summary()["partitions"][0]["lag"] == 5)
        kafka.intake.limits = IntakeLimits(reserve=1)
        await case.has(5)
        assert 'partition="0"} 0\n' in page(kafka.intake, kafka.web.progress)

    case.run(work)


def test_lag_of_all_partitions_is_in_the_progress(
    tmp_path: Path, broker: Broker, name: str
) -> None:
    """Counted by what was sent: while nothing is taken, and as it is taken."""
    case = of(tmp_path, broker, name)
    case.limits = IntakeLimits(reserve=1, log=0)
    broker.send(name, [(p, report(f"{p}", i)) for p in range(3) for i in range(p + 2)])

    async def work(kafka: KafkaInput) -> None:
        progress = kafka.web.progress
        assert progress.summary()["kafka_lag"] is None  # unknown is not 0
        await until(lambda: bool(kafka.up))
        assert progress.summary()["kafka_lag"] == 9
        broker.send(name, [(1, report("1", i)) for i in range(3, 7)])
        await until(lambda: progress.summary()["kafka_lag"] == 13)
        assert f'vizpub_kafka_lag_messages{{topic="{name}",partition="1"}} 7\n' in page(
            kafka.intake, progress
        )
        kafka.intake.limits = IntakeLimits(reserve=1)
        await case.has(13)
        await until(lambda: progress.summary()["kafka_lag"] == 0)
        assert progress.summary()["kafka_error"] is None

    case.run(work)


@pytest.mark.parametrize("count", [2, 6], ids=["less in it", "more in it"])
@pytest.mark.parametrize("begins", ["earliest", "latest"])
def test_topic_that_was_made_anew_is_read_from_its_beginning(
    tmp_path: Path, broker: Broker, name: str, count: int, begins: str
) -> None:
    """While the collector runs, and while none does. What is read before the collector sees that
    the topic is another one may be in the log twice; the run has it once.
    """
    case = of(tmp_path, broker, name, auto_offset_reset=begins)

    def make_anew(first: int) -> None:
        broker.remove_topic(name)
        while name in broker.topics():
            time.sleep(0.1)
        broker.make_topic(name, 2)
        broker.send(name, [(0, report("a", first + i)) for i in range(count)])

    async def all_of(count: int) -> None:
        await until(lambda: set(case.taken()) == {("a", interval) for interval in range(count)})

    async def first(kafka: KafkaInput) -> None:
        await until(lambda: bool(kafka.up))
        broker.send(name, [(0, report("a", interval)) for interval in range(4)])
        await all_of(4)
        make_anew(4)
        await all_of(4 + count)
        await until(lambda: any(MADE_ANEW in text for text in case.said))

    case.run(first)
    make_anew(4 + count)
    case.run(lambda _: all_of(4 + 2 * count))
    assert sum(MADE_ANEW in text for text in case.said) == 2


def test_password_of_a_properties_file_opens_the_broker(
    tmp_path: Path, broker: Broker, name: str
) -> None:
    broker.send(name, [(0, report("a", 0))])
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    wrong = {**login, "sasl.password": "wrong"}
    case = Case(tmp_path, Topic(broker.address_with_password, name, wrong))
    case.run(lambda kafka: until(lambda: kafka.up is False))
    assert "Authentication failed" in case.said[0]
    assert "wrong" not in case.said[0]
    case.topic = Topic(broker.address_with_password, name, login)
    case.run(lambda _: case.has(1))


def test_broker_with_a_certificate_is_trusted_by_its_authority_only(
    tmp_path: Path, broker: Broker, name: str
) -> None:
    broker.send(name, [(0, report("a", 0))])
    other, settings = tmp_path / "other.pem", tmp_path / "client.properties"
    trustme.CA().cert_pem.write_to_path(other)

    def trusting(authority: Path, host: str = "127.0.0.1") -> Topic:
        settings.write_text(f"security.protocol = SSL\nssl.ca.location = {authority}\n")
        place = broker.address_with_tls.replace("127.0.0.1", host)
        return Topic(place, name, read_config(settings))

    case = Case(tmp_path, trusting(other))
    for topic in (case.topic, trusting(broker.authority, "localhost")):
        case.topic, case.said = topic, []
        case.run(lambda kafka: until(lambda: kafka.up is False))
        print(case.said)
        assert "certificate" in case.said[0]
        assert case.taken() == []
    case.topic = trusting(broker.authority)
    case.run(lambda _: case.has(1))


@pytest.mark.parametrize("held", [1000, 4 * 2**20], ids=["little", "much"])
def test_histories_in_partitions_go_side_by_side(
    tmp_path: Path, broker: Broker, name: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more intervals than a peer may be ahead: nothing is refused, also where only little can
    wait. How far one is read ahead of the others is up to what the broker sends first.
    """
    monkeypatch.setattr("vizpub.collector.inputs.kafka._MOST_WAITING", held)
    last = 600
    sent = [(p, report(f"{p}", i)) for p in (2, 0, 1) for i in range(0, last, p + 1)]
    broker.send(name, sent)
    case = of(tmp_path, broker, name)
    case.rules = ClosingRules(ahead=16)
    case.run(lambda _: case.has(len(sent)))
    assert sorted(case.taken()) == sorted(
        (str(p), i) for p in range(3) for i in range(0, last, p + 1)
    )
    assert not any("refused" in text for text in case.said)


READING = """
import asyncio, sys
from pathlib import Path
from vizpub.collector.inputs.kafka_topic import Topic, read_config
from vizpub.collector.closing import ClosingRules
from tests.integration.collector.test_kafka import Case

case = Case(Path(sys.argv[1]), Topic(sys.argv[2], sys.argv[3]), rules=ClosingRules(ahead=2))
case.run(lambda _: asyncio.Event().wait())
"""


def test_killed_reading_takes_every_message_once(tmp_path: Path, broker: Broker, name: str) -> None:
    """Kills while it writes: it may be only a few intervals ahead, so it writes all the time."""
    seed, peers, last, kills = 31, 4, 400, 8
    print("seed", seed)
    rng = random.Random(seed)
    sent = [(rng.randrange(3), report(f"{p}", i)) for i in range(last) for p in range(peers)]
    broker.send(name, sent)
    case = of(tmp_path, broker, name)
    case.place.make()
    command = [sys.executable, "-c", READING, str(tmp_path), broker.address, name]
    killed_at = []
    for _ in range(kills):
        before = len(case.taken())
        process = subprocess.Popen(command, cwd=ROOT)
        while len(case.taken()) == before < len(sent):
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.01)
        time.sleep(0.1 * rng.random())
        process.kill()
        process.wait()
        killed_at.append(len(case.taken()))
    print("reports taken before each kill:", killed_at)
    assert 0 < killed_at[0] < len(sent), "nothing was killed while it read"
    case.run(lambda kafka: case.has(len(sent)))
    assert sorted(case.taken()) == sorted((f"{p}", i) for i in range(last) for p in range(peers))
    offsets = case.offsets()
    assert len(set(offsets)) == len(offsets) == len(sent)
    for partition in range(3):
        found = [offset for number, offset in offsets if number == partition]
        assert found == list(range(len(found)))


class TestBrokerThatDies:
    """Each test has a broker of its own."""

    def test_broker_may_come_after_the_collector(self, tmp_path: Path, broker: Broker) -> None:
        own = Broker(tmp_path)
        case = of(tmp_path, own, "later")

        async def work(kafka: KafkaInput) -> None:
            await until(lambda: kafka.up is False)
            assert f"no broker answers at {own.address}" in (kafka.error or "")
            own.start()
            own.make_topic("later")
            own.send("later", [(0, report("a", 0))])
            await case.has(1)

        try:
            case.run(work)
        finally:
            own.end(signal.SIGKILL)

    def test_killed_broker_is_waited_for(self, tmp_path: Path, broker: Broker) -> None:
        """Nothing is missing and nothing comes twice, though it dies while it is read."""
        own = broker_in(tmp_path)
        own.make_topic(TOPIC, 3)
        own.send(TOPIC, [(i % 3, report(f"{i % 3}", i // 3)) for i in range(30)])
        case = of(tmp_path, own, TOPIC)

        async def work(kafka: KafkaInput) -> None:
            await until(lambda: bool(case.taken()))
            own.end(signal.SIGKILL)
            await until(lambda: kafka.up is False)
            assert NO_BROKER in kafka.web.progress.summary()["kafka_error"]
            own.start()
            own.send(TOPIC, [(i % 3, report(f"{i % 3}", i // 3)) for i in range(30, 60)])
            await case.has(60)

        try:
            case.run(work)
        finally:
            own.end(signal.SIGKILL)
        assert sorted(case.taken()) == sorted((f"{p}", i) for p in range(3) for i in range(20))
        assert sorted(case.offsets()) == [(p, i) for p in range(3) for i in range(20)]
        assert any(NO_BROKER in text for text in case.said)
        assert sum("3 partitions" in text for text in case.said) == 2
