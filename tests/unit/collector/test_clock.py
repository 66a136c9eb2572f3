"""The collector's time does not follow its machine's clock where that is set."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from vizpub.collector.clock import CollectorClock
from vizpub.collector.collect import Collector
from vizpub.collector.place import CollectionPlace
from vizpub.collector.request import CollectRequest

EPOCH = "2026-11-20T10:00:00Z"
AT = 1_795_168_800.0
"""The epoch, in seconds since 1970."""


@dataclass
class Machine:
    """Its two clocks."""

    wall: float = AT
    steady: float = 5000.0

    def go(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def clock(self) -> CollectorClock:
        return CollectorClock(EPOCH, lambda: self.wall, lambda: self.steady)


@pytest.mark.parametrize("by", [-3600.0, 7200.0])
def test_clock_that_is_set_moves_no_interval_and_is_told_once(by: float) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.go(10)
    assert (clock.now_us, clock.jump()) == (10_000_000, 0.0)
    machine.wall += by
    assert clock.now_us == 10_000_000
    assert (clock.jump(), clock.jump()) == (by, 0.0)
    machine.go(10)
    assert (clock.now_us, clock.jump()) == (20_000_000, 0.0)
    assert machine.clock().now_us == max(int(20 + by), 0) * 1_000_000  # after a restart


def test_suspended_machine_goes_on_with_the_time_of_its_peers() -> None:
    """Both clocks go on meanwhile."""
    machine = Machine()
    clock = machine.clock()
    machine.go(3600)
    assert (clock.now_us, clock.jump()) == (3_600_000_000, 0.0)


def test_clock_that_is_kept_right_does_not_jump() -> None:
    machine = Machine()
    clock = machine.clock()
    for _ in range(100):
        machine.go(60)
        machine.wall += 0.005
        assert not clock.jump()


@pytest.mark.parametrize(("by", "word"), [(-3600.0, "back"), (7200.0, "forward")])
def test_collector_says_that_its_clock_was_set_and_refuses_what_is_ahead(
    tmp_path: Path, by: float, word: str
) -> None:
    """Peers on its machine have the same clock: theirs is wrong now, too."""
    place, said, machine = CollectionPlace(tmp_path, "lab"), list[str](), Machine()
    place.make()
    collector = Collector(CollectRequest(place), said.append)
    intake = collector._intake
    intake.clock = machine.clock()

    def take(interval: int) -> int:
        told = {"format": "vizpub.report/1", "peer": "a", "interval": interval}
        return asyncio.run(intake._judge([json.dumps(told).encode()]))[0].refused

    machine.go(10)
    assert (take(26), take(27)) == (0, 1)
    machine.wall += by
    collector._say_jump()
    collector._say_jump()
    (text,) = said
    assert f"set {word} by {abs(by):,.0f} s" in text
    assert (take(26), take(27), take(7200)) == (0, 1, 1)
