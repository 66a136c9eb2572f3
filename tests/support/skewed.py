"""Peers whose clocks are right or wrong, and what a collector closes of their reports."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from vizpub.collector.closing import Closing, ClosingRules

BEGAN, SECONDS, LATENESS = 4000.0, 90, 5.0
"""The true time at which peers begin: a clock may be an hour slow."""
BREAK = (BEGAN + 20, BEGAN + 33)
AFTER = BREAK[1] + 2
Clock = Callable[[float], float]
"""What a peer's clock shows at a true time."""


def fast(seconds: float) -> Clock:
    return lambda at: at + seconds


def drifting(rate: float) -> Clock:
    return lambda at: at + rate * (at - BEGAN)


def jumping(seconds: float) -> Clock:
    return lambda at: at + (seconds if at > BEGAN + 40 else 0)


WRONG = {
    **{f"{seconds:+} s": fast(seconds) for seconds in (1, 8, 14, 3600, -1, -8, -60, -3600)},
    **{f"drift {rate:+}": drifting(rate) for rate in (0.1, -0.1)},
    **{f"jump {seconds:+} s": jumping(seconds) for seconds in (9, 3600, -9, -3600)},
}


@dataclass
class Simulated:
    """Peers that report intervals of a second, and what became of their reports."""

    peers: dict[str, Clock]
    """By name; the clocks of the sound ones are right."""
    sound: set[str]
    broken: set[str] = field(default_factory=set)
    """Whose network breaks; then they send all that they kept."""
    restarts: bool = False
    seed: int = 1
    closing: Closing = field(default_factory=lambda: Closing(ClosingRules(LATENESS)))
    late: list[tuple[str, int]] = field(default_factory=list)
    """Reports of the sound."""
    reported: dict[int, float] = field(default_factory=dict)
    """When the first sound peer reported an interval."""
    closed: dict[int, float] = field(default_factory=dict)

    def arrivals(self) -> Iterator[tuple[float, str, int]]:
        """When which report of whom arrives: each in time for the lateness, a peer's in order."""
        rng = random.Random(self.seed)
        for peer, clock in self.peers.items():
            usual, last, before = rng.uniform(0, 3), int(clock(BEGAN)) - 1, 0.0
            for step in range(SECONDS * 20):
                at = BEGAN + step / 20
                for interval in range(last + 1, int(clock(at))):
                    arrives = before = max(at + usual + rng.uniform(0, 1.5), before)
                    if peer in self.broken and BREAK[0] <= arrives < BREAK[1]:
                        arrives = BREAK[1]
                    yield arrives, peer, interval
                last = max(last, int(clock(at)) - 1)

    def run(self) -> None:
        restart = BEGAN + 50
        for at, peer, interval in sorted(self.arrivals()):
            if self.restarts and at > restart:
                state = json.loads(json.dumps(self.closing.state()))
                self.closing, restart = Closing.from_state(self.closing.rules, state, at), 1e9
            self.tick(at)
            if self.closing.is_ahead(interval, int(at)):
                continue
            if peer in self.sound:
                self.reported.setdefault(interval, at)
                if self.closing.is_late(interval):
                    self.late.append((peer, interval))
            self.closing.note_report(peer, interval, at)
            self.tick(at)

    def tick(self, at: float) -> None:
        """Close what is due."""
        before = self.closing.closed
        if (due := self.closing.due(at)) is not None:
            assert before is None or due > before
            for interval in range((due - 1 if before is None else before) + 1, due + 1):
                self.closed[interval] = at
            self.closing.close(due)


def among(count: int, wrong: int, clock: Clock) -> tuple[dict[str, Clock], set[str]]:
    names = [f"p{number}" for number in range(count)]
    return {name: clock if n < wrong else fast(0) for n, name in enumerate(names)}, {*names[wrong:]}
