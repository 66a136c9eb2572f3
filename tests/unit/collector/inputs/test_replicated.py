"""What passes through a topic: its answer, its failures, and the header that collectors share.

The topic is a list here; `tests/integration/collector/test_replicated.py` has a real broker.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.collecting import collector_in, header, serving
from tests.support.words import naming
from vizpub.collector.acceptance import Acceptance
from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.inputs import replicated
from vizpub.collector.inputs.kafka import OVER, KafkaInput, Partition
from vizpub.collector.inputs.kafka_message import KafkaMessage
from vizpub.collector.inputs.kafka_topic import FetchResult, Topic, TopicFailed
from vizpub.collector.inputs.replicated import NOT_BACK, PostedReports, share_header
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress
from vizpub.model.errors import ServiceError, UseError
from vizpub.reports.compressed import LongLine

TOPIC = Topic("127.0.0.1:1", "reports")

pytest.importorskip("confluent_kafka", reason="this environment is older than the lock")


def report(peer: str, interval: int, **more: Any) -> bytes:
    told = {"format": "vizpub.report/1", "peer": peer, "interval": interval, "neighbors": []}
    return json.dumps({**told, **more}).encode()


@dataclass
class ListedTopic:
    """A reader and a writer of a topic. What is written is acknowledged by `poll`."""

    messages: list[KafkaMessage] = field(default_factory=list)
    first: int = 0
    why: TopicFailed | None = None
    """The reason why its brokers acknowledge nothing."""
    _then: list[Callable[[TopicFailed | None], None]] = field(default_factory=list)

    def write(self, key: bytes, content: bytes, then: Callable[[TopicFailed | None], None]) -> None:
        at = len(self.messages)
        self.messages.append(KafkaMessage.of(("reports", "id"), 0, at, content, key))
        self._then.append(then)

    def poll(self) -> None:
        for then in self._then:
            then(self.why)
        self._then.clear()

    def look(self) -> tuple[str, list[int]]:
        if self.why:
            raise self.why
        return "id", [0]

    def span(self, _: int) -> tuple[int, int]:
        return self.first, len(self.messages)

    def begin(self, _: int, offset: int) -> None:
        assert offset == 0

    def next(self, _: float) -> FetchResult:
        return FetchResult(self.messages[self.first :])

    def close(self) -> None:
        pass


def with_input(
    folder: Path, work: Callable[[KafkaInput, ListedTopic], Awaitable[None]], **rules: Any
) -> None:
    async def around() -> None:
        place = CollectionPlace(folder, "lab")
        place.make()
        intake = Intake(place, header(), ClosingRules(**rules), IntakeLimits(reserve=1))
        web = HttpInterface(intake, CollectionProgress(intake))
        topic = ListedTopic()
        kafka = KafkaInput(TOPIC, intake, lambda _: None, web, posted=PostedReports(topic))  # type: ignore[arg-type]
        kafka.partitions, kafka.up = {0: Partition(0, 0, 0)}, True
        try:
            await work(kafka, topic)
        finally:
            await kafka._call(kafka._reader.close)
            await intake.log.aclose()

    asyncio.run(around())


async def post(kafka: KafkaInput, *lines: bytes) -> asyncio.Task[Acceptance]:
    assert kafka.web.post
    posted = asyncio.ensure_future(kafka.web.post(lines))
    await asyncio.sleep(0)  # it writes
    return posted


async def take(kafka: KafkaInput, topic: ListedTopic) -> None:
    kafka._add(FetchResult(list(topic.messages)))
    await kafka._take(list(kafka._takeable()))


@pytest.mark.parametrize("first", ["acknowledged", "taken"])
def test_request_is_answered_when_the_broker_and_the_log_have_it(
    tmp_path: Path, first: str
) -> None:
    async def work(kafka: KafkaInput, topic: ListedTopic) -> None:
        posted = await post(kafka, report("a", 0), b"{}", report("b", 0))
        if first == "taken":
            await take(kafka, topic)
        else:
            topic.poll()
        await asyncio.sleep(0.01)
        assert not posted.done()
        if first == "taken":
            topic.poll()
        else:
            await take(kafka, topic)
        outcome = (await posted).to_json()
        assert (outcome["taken"], outcome["refused"], outcome["lines"][0]["line"]) == (2, 1, 2)

    with_input(tmp_path, work)


def test_report_that_is_sent_to_two_collectors_is_no_conflict(tmp_path: Path) -> None:
    """The first did not answer in time; the second writes the same lines once more."""

    async def work(kafka: KafkaInput, topic: ListedTopic) -> None:
        topic.write(b"of another collector", report("a", 0, seq=1), lambda _: None)
        posted = await post(kafka, report("a", 0, seq=1))
        topic.poll()
        await take(kafka, topic)
        assert (await posted).refused == 0
        other = await post(kafka, report("a", 0, seq=1, left=True))
        topic.poll()
        await take(kafka, topic)
        assert "conflict" in (await other).refusals[0]["reason"]

    with_input(tmp_path, work)


def test_lines_of_several_messages_are_refused_by_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated, "_MOST", 100)

    async def work(kafka: KafkaInput, topic: ListedTopic) -> None:
        lines = [report("a", 0), LongLine(b"x", 2**21), b"", b"{}", report("b", 0), b"[]"]
        posted = await post(kafka, *lines)
        assert len(topic.messages) > 1
        topic.poll()
        await take(kafka, topic)
        outcome = (await posted).to_json()
        assert (outcome["taken"], outcome["refused"]) == (2, 3)
        assert sorted(one["line"] for one in outcome["lines"]) == [2, 4, 6]

    with_input(tmp_path, work)


def test_message_without_acknowledgement_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if it can be read: too few brokers may have it."""

    async def work(kafka: KafkaInput, topic: ListedTopic) -> None:
        topic.why = TopicFailed("too few brokers")
        posted = await post(kafka, report("a", 0))
        await take(kafka, topic)
        topic.poll()
        with pytest.raises(TopicFailed, match="too few"):
            await posted
        topic.why = None
        monkeypatch.setattr(replicated, "_ANSWER_S", 0.01)
        posted = await post(kafka, report("a", 1))
        topic.poll()
        with pytest.raises(TopicFailed, match=NOT_BACK):
            await posted
        await take(kafka, topic)  # it comes back later, and nobody waits for it

    with_input(tmp_path, work)


def test_collector_ends_with_all_that_the_topic_has(tmp_path: Path) -> None:
    """What it has not read may be acknowledged to a peer, by another collector."""

    async def work(kafka: KafkaInput, topic: ListedTopic) -> None:
        topic.write(b"", report("a", 3), lambda _: None)
        ending = asyncio.create_task(kafka.intake.end())
        await asyncio.sleep(0.01)
        assert not kafka.intake.ended
        topic.poll()
        await take(kafka, topic)
        assert await ending
        assert kafka.intake.ending.last == 3
        assert kafka.obstacle() == OVER

    with_input(tmp_path, work)


def test_collector_does_not_end_while_it_cannot_read(tmp_path: Path) -> None:
    async def work(kafka: KafkaInput, _: ListedTopic) -> None:
        kafka.up, kafka.error = False, "no broker answers"
        assert not await kafka.intake.end()
        assert not kafka.intake.ended
        assert kafka.obstacle() == "no broker answers"

    with_input(tmp_path, work)


def test_collector_that_is_far_behind_the_topic_accepts_nothing(tmp_path: Path) -> None:
    async def work(kafka: KafkaInput, _: ListedTopic) -> None:
        assert kafka.obstacle() is None
        kafka.partitions[0].end = 10**6
        assert kafka.obstacle()
        assert kafka.web.has_room(), "it must go on reading"

    with_input(tmp_path, work)


def test_reporter_is_told_why_nothing_passes(tmp_path: Path) -> None:
    async def fail(_: object) -> Acceptance:
        raise TopicFailed("the broker said no")

    def web() -> HttpInterface:
        return replace(collector_in(tmp_path)(), post=fail, obstacle=lambda: why)

    why: str | None = None
    with serving(web) as served:
        code, told, answer = served.post(report("a", 0))
        assert (code, answer.headers["retry-after"]) == (503, "5")
        assert "the broker said no" in told["error"]
        why = "no broker answers"
        code, told, _ = served.post(report("a", 0))
        assert code == 503
        assert why in told["error"]
        code, told, _ = served.ask("GET", "/readyz")
        assert (code, why in told) == (503, True)
        assert served.lines() == []


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> ListedTopic:
    made = ListedTopic()
    monkeypatch.setattr(replicated, "TopicReader", lambda *_: made)
    monkeypatch.setattr(replicated, "TopicWriter", lambda *_: made)
    return made


def test_first_collector_decides_the_epoch(topic: ListedTopic) -> None:
    first, second = header(), replace(header(), epoch="2026-01-01T00:00:00Z")
    assert share_header(TOPIC, first) == first
    assert share_header(TOPIC, second) == first
    assert len(topic.messages) == 1


def test_topic_without_its_beginning_or_of_another_run_is_refused(topic: ListedTopic) -> None:
    share_header(TOPIC, header())
    with pytest.raises(UseError, match=naming("reports", "'other'")):
        share_header(TOPIC, replace(header(), run="other"))
    topic.first = 1
    with pytest.raises(UseError, match=naming("--with-log")):
        share_header(TOPIC, header())
    topic.first, topic.messages[0] = 0, replace(topic.messages[0], lines=(report("a", 0),))
    with pytest.raises(UseError, match="header"):
        share_header(TOPIC, header())


def test_broker_that_is_away_is_an_error_at_the_start(topic: ListedTopic) -> None:
    topic.why = TopicFailed("no broker answers")
    with pytest.raises(ServiceError, match="no broker answers"):
        share_header(TOPIC, header())
