"""What a message of Kafka holds."""

from __future__ import annotations

import json

import pytest

from vizpub.collector.inputs.kafka_message import KafkaMessage, interval_of


def report(interval: int) -> bytes:
    told = {"format": "vizpub.report/1", "peer": "a", "interval": interval, "neighbors": []}
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    ("content", "lines", "newest"),
    [
        (report(3), 1, 3),
        (report(3) + b"\n", 1, 3),
        (report(3) + b"\r\n" + report(9) + b"\n\n" + report(5), 4, 9),
        (b'{"format": "vizpub.end/1", "last_interval": 80}', 1, -1),
        (b"", 0, -1),
        (b"no report\n" + report(0), 2, 0),
        (report(0) + b"\n" + b"x" * (2**20 + 1) + b"\n" + report(1), 3, 1),
    ],
    ids=["one", "ended", "several", "an end mark", "empty", "other text", "a long line"],
)
def test_message_is_lines_and_knows_its_newest_interval(
    content: bytes, lines: int, newest: int
) -> None:
    message = KafkaMessage.of(("reports", "id"), 2, 17, content)
    assert len(message.lines) == lines
    assert message.newest == newest
    assert message.size == len(content)
    assert max(map(len, message.lines), default=0) < 2**20


def test_head_has_the_place_of_the_message_and_what_was_refused() -> None:
    message = KafkaMessage.of(("reports", "id"), 2, 17, b"")
    place = {"topic": "reports", "made": "id", "partition": 2, "offset": 17}
    assert json.loads(message.head(0)) == place
    assert json.loads(message.head(4)) == {**place, "refused": 4}
    assert message.source == "kafka:reports/id/2"


def test_interval_of_a_line_that_is_no_report_is_null() -> None:
    assert interval_of(report(7)) == 7
    assert interval_of(b"{") is None
    assert interval_of(b'{"format": "vizpub.run/1", "interval_us": 5}') is None
