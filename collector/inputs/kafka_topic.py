"""A consumer and a producer of a topic of Kafka. Only this module imports Kafka's client.

All methods of a reader may block, and none may be called while another one runs. Those of a writer
do not block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vizpub.collector.inputs.kafka_message import KafkaMessage
from vizpub.machine.files import text_of
from vizpub.machine.modules import needing_extra
from vizpub.machine.private import check_trusted, open_secret
from vizpub.model.errors import UseError, cause_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

NO_BROKER = "no broker answers"

_ANSWER_S = 4.0
"""The time in which brokers must answer a request."""
_MOST = 500
"""Messages to fetch at once."""
_SECRETS = ("password", "passphrase", "secret", "key.pem", "oauthbearer.config", "jaas.config")
_OF_SECRETS = ("key.location", "keystore.location", "keytab", "key.file", "assertion.file")
"""Ends of the names of properties that name a file with a secret."""
_RESET = "auto.offset.reset"
_BEGINNINGS = {
    **dict.fromkeys(("earliest", "smallest", "beginning"), False),
    **dict.fromkeys(("latest", "largest", "end"), True),
}
_USUAL = {
    "log_level": "0",  # vizpub's own messages say what matters
    "queued.max.messages.kbytes": "16384",
    "reconnect.backoff.max.ms": "2000",
    "topic.metadata.refresh.interval.ms": "10000",
}
"""Defaults, which a file of properties may change."""
_OURS = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    _RESET: "error",
}
_WRITTEN = {
    "acks": "all",
    "max.in.flight.requests.per.connection": "1",  # what is tried again keeps its place
    "message.timeout.ms": "10000",
    "message.max.bytes": "4194304",  # the broker's limit is of what is compressed
    "linger.ms": "5",
}


class TopicFailed(Exception):
    """Nothing can be read or written now."""


@dataclass(frozen=True)
class Topic:
    """A topic, with its brokers and their properties."""

    brokers: str
    """`HOST:PORT`, separated by commas."""
    name: str
    config: Mapping[str, str] = field(default_factory=dict)
    """Properties of librdkafka, as kcat and confluent-kafka take them."""

    def __post_init__(self) -> None:
        """Check the properties. Raises: UseError."""
        if self.config.get(_RESET, "earliest") not in _BEGINNINGS:
            raise UseError(f"{_RESET} is earliest or latest, not {self.config[_RESET]}")

    @property
    def from_end(self) -> bool:
        """True if messages from before the first collector are left out."""
        return _BEGINNINGS[self.config.get(_RESET, "earliest")]


def read_config(path: Path) -> dict[str, str]:
    """Read a file of properties, `NAME=VALUE` on each line; `#` begins a comment.

    Raises: UseError if it cannot be read, others can write it, or others can read a secret.
    """
    try:
        check_trusted(path)  # it may also say where to send secrets, and which commands to run
        text = text_of(path)
    except (OSError, ValueError) as error:
        raise UseError(f"{path} cannot be read: {cause_of(error)}") from error
    properties: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise UseError(f"{path}, line {number}: give NAME=VALUE")
        properties[name] = value
    secret = [path] if any(name.endswith(_SECRETS) for name in properties) else []
    for file in secret + [
        Path(properties[name]) for name in properties if name.endswith(_OF_SECRETS)
    ]:
        open_secret(file).close()
    return properties


@contextmanager
def _refused_properties() -> Iterator[None]:
    """Raise what Kafka's client says against its properties as UseError."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise UseError(
            f"Kafka's client does not accept these properties: {error.args[0].str()}"
        ) from None


@dataclass
class FetchResult:
    """The result of one fetch."""

    messages: list[KafkaMessage] = field(default_factory=list)
    at_end: dict[int, int] = field(default_factory=dict)
    """Partitions that were read to their end, with the next offset."""
    gone: set[int] = field(default_factory=set)
    """Partitions that do not have the next offset any more."""
    ends: dict[int, int] = field(default_factory=dict)
    """The known ends of partitions."""


class TopicReader:
    """A consumer of a topic without a group: the caller says what to read."""

    def __init__(self, topic: Topic, run: str) -> None:
        """Begin. Raises: UseError for a wrong property, or without the extra `kafka`."""
        with needing_extra("kafka", "reading a topic of Kafka"):
            from confluent_kafka import Consumer
            from confluent_kafka.admin import AdminClient

        self._topic = topic
        self._topic_id = ""
        self._why: str | None = None
        """The reason why the client could not reach a broker the last time."""
        config: dict[str, Any] = {"group.id": f"vizpub-{run}", **_USUAL, **topic.config, **_OURS}
        config |= {"bootstrap.servers": topic.brokers, "error_cb": self._note_error}
        with _refused_properties():
            self._consumer: Consumer = Consumer(config)
            self._admin: AdminClient = AdminClient(config)
        self._read: set[int] = set()
        self._paused: set[int] = set()

    def _note_error(self, error: KafkaError) -> None:
        from confluent_kafka import KafkaError as Codes

        if error.code() != Codes._ALL_BROKERS_DOWN:  # it says that, and not why
            self._why = error.str()

    def look(self) -> tuple[str, list[int]]:
        """Return Kafka's id of the topic, a new one if it was created again, and its partitions.
        After a new one nothing is read until `begin`. Raises: TopicFailed.
        """
        from confluent_kafka import TopicCollection

        names = TopicCollection([self._topic.name])
        with self._failures():
            answers = self._admin.describe_topics(names, request_timeout=_ANSWER_S)
            description = answers[self._topic.name].result()
        self._why, topic_id = None, str(description.topic_id)
        if topic_id != self._topic_id:
            self._consumer.unassign()
            self._topic_id, self._read, self._paused = topic_id, set(), set()
        return topic_id, sorted(one.id for one in description.partitions)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise errors of Kafka's client as TopicFailed."""
        from confluent_kafka import KafkaError as Codes
        from confluent_kafka import KafkaException

        topic = self._topic
        try:
            yield
        except KafkaException as raised:
            self._admin.poll(0)  # the client's own reasons come with it
            error: KafkaError = raised.args[0]
            if error.code() in (Codes.UNKNOWN_TOPIC_OR_PART, Codes._UNKNOWN_TOPIC):
                why = f"there is no topic '{topic.name}' at {topic.brokers}"
            elif error.code() in (Codes._TRANSPORT, Codes._TIMED_OUT, Codes._ALL_BROKERS_DOWN):
                why = f"{NO_BROKER} at {topic.brokers}: {self._why or error.str()}"
            else:
                why = f"topic '{topic.name}' cannot be read: {error.str()}"
            raise TopicFailed(why) from None

    def span(self, partition: int) -> tuple[int, int]:
        """Return a partition's first offset, and the one after its last. Raises: TopicFailed."""
        with self._failures():
            offsets = self._consumer.get_watermark_offsets(self._at(partition), timeout=_ANSWER_S)
        if not offsets:
            raise TopicFailed(f"{NO_BROKER} at {self._topic.brokers}")
        return offsets[0], offsets[1]

    def begin(self, partition: int, offset: int) -> None:
        """Read a partition from this offset on. Raises: TopicFailed."""
        with self._failures():
            if partition in self._read:
                self._consumer.incremental_unassign([self._at(partition)])
            self._consumer.incremental_assign([self._at(partition, offset)])
            if partition in self._paused:
                self._consumer.pause([self._at(partition)])
        self._read.add(partition)

    def pause(self, partitions: set[int]) -> None:
        """Pause these partitions, and resume all others."""
        if again := self._paused - partitions:
            self._consumer.resume([self._at(one) for one in again])
        if more := partitions - self._paused:
            self._consumer.pause([self._at(one) for one in more])
        self._paused = set(partitions)

    def next(self, timeout_s: float) -> FetchResult:
        """Fetch the messages that come within a time."""
        from confluent_kafka import KafkaError as Codes

        result, topic = FetchResult(), (self._topic.name, self._topic_id)
        for message in self._consumer.consume(_MOST, timeout_s):
            error, partition, offset = message.error(), message.partition(), message.offset()
            if partition is None or offset is None:
                continue
            if error is None:
                content = message.value() or b""
                key = message.key()
                result.messages.append(KafkaMessage.of(topic, partition, offset, content, key))
            elif error.code() == Codes._PARTITION_EOF:
                result.at_end[partition] = offset
            elif error.code() in (Codes._AUTO_OFFSET_RESET, Codes.OFFSET_OUT_OF_RANGE):
                result.gone.add(partition)
        for partition in self._read:
            offsets = self._consumer.get_watermark_offsets(self._at(partition), cached=True)
            if offsets and offsets[1] >= 0:
                result.ends[partition] = offsets[1]
        return result

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _at(self, partition: int, offset: int = -1) -> TopicPartition:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._topic.name, partition, offset)


class TopicWriter:
    """A producer of a topic. It writes to the first partition only: messages have one order."""

    def __init__(self, topic: Topic) -> None:
        """Begin. Raises: UseError for a wrong property, or without the extra `kafka`."""
        with needing_extra("kafka", "writing to a topic of Kafka"):
            from confluent_kafka import Producer

        self._topic = topic
        config: dict[str, Any] = {"compression.type": "zstd", **_USUAL, **topic.config, **_WRITTEN}
        with _refused_properties():
            self._producer: Producer = Producer({**config, "bootstrap.servers": topic.brokers})

    def write(self, key: bytes, content: bytes, then: Callable[[TopicFailed | None], None]) -> None:
        """Send a message. `poll` calls `then` when all brokers that are in sync have acknowledged
        it, or with the reason why not. Raises: TopicFailed.
        """
        from confluent_kafka import KafkaException

        def note(error: KafkaError | None, _: object) -> None:
            then(None if error is None else self._failure(error.str()))

        try:
            self._producer.produce(self._topic.name, content, key, 0, on_delivery=note)
        except KafkaException as error:
            raise self._failure(error.args[0].str()) from None
        except BufferError:
            raise self._failure("too much waits for its brokers") from None

    def poll(self) -> None:
        """Call what is to be called for messages whose outcome is known."""
        self._producer.poll(0)

    def _failure(self, why: str) -> TopicFailed:
        topic = self._topic
        return TopicFailed(f"topic '{topic.name}' at {topic.brokers} cannot be written: {why}")
