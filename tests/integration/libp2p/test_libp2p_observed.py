"""Peers that say nothing themselves, in a small made-up trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.events import at, name_of, trace
from tests.support.staged import Taken, staged
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.libp2p.events import EventType
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.model.clock import OPEN

LATE = 10**15
"""The events are after the run's epoch, and that long after that of Unix."""


@pytest.fixture
def taken(tmp_path: Path) -> Taken:
    """a, which is there until 50, has streams to x; and b, later. b is named by a before it
    tells anything.
    """
    events = [
        at(LATE + 5, EventType.STREAM_OPENED, "a", "b"),
        at(LATE + 10, EventType.STREAM_OPENED, "a", "x"),
        at(LATE + 12, EventType.STREAM_CLOSED, "a", "b"),
        at(LATE + 15, EventType.STREAM_OPENED, "b", "a"),
        at(LATE + 20, EventType.STREAM_CLOSED, "a", "x"),
        at(LATE + 30, EventType.STREAM_OPENED, "a", "x"),
        at(LATE + 50, EventType.STREAM_CLOSED, "b", "a"),
        at(LATE + 60, EventType.STREAM_OPENED, "b", "x"),
    ]
    options = SourceOptions(interval_us=10)
    found = staged(Libp2p(), trace(tmp_path, events), options)
    return Taken(Libp2p(), found, options)


def test_peer_named_by_others_is_present_during_streams(taken: Taken) -> None:
    found = {
        (name_of(peer), *span)
        for peer, *span in taken.rows("presence", "peer", "valid_from", "valid_to")
    }
    streams = {("x", 10, 20), ("x", 30, 50), ("x", 60, OPEN)}
    assert found == {("a", 5, 50), ("b", 15, OPEN), *streams}


def test_quiet_intervals_end_where_a_peer_does(taken: Taken) -> None:
    """a was last there in interval 4, b in the last one."""
    rows = taken.rows("traffic", "peer", "interval", "control_messages_sent", "dropped")
    found = {(name_of(peer), interval) for peer, interval, *_ in rows}
    assert found == {("a", i) for i in range(5)} | {("b", i) for i in range(1, 7)}
    assert {row[2:] for row in rows} == {(0, 0)}
