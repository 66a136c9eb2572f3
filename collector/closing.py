"""When an interval is closed: what was not reported by then comes late.

Intervals close in order. Interval i closes when all expected peers have reported i or later; or
some time (the lateness) after half of them have; or, where all fall silent, that time after the
last report of i or later. A peer is expected that has reported one of the last 1 + gap tolerance
intervals and has not left; or all of a given list. Time is the monotonic clock of the collector:
no clock of a peer can close anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from typing import Any


@dataclass(frozen=True)
class Rules:
    """How long to wait, and for whom."""

    lateness_s: float = 5.0
    """How long to wait for the rest after half of the peers."""
    ahead: int = 16
    """A report is refused that is more intervals ahead of the median peer and of the clock."""
    gap_tolerance: int = 0
    peers: frozenset[str] | None = None
    """All peers, where they are known."""


@dataclass
class Closing:
    """What the peers have reached, and what is closed. Times are in seconds, monotonic."""

    rules: Rules
    closed: int | None = None
    """The last closed interval; null = none is."""
    newest: dict[str, int] = field(default_factory=dict)
    """The greatest interval of each peer's reports."""
    left: set[str] = field(default_factory=set)
    _half_at: dict[int, float] = field(default_factory=dict)
    """When half of the expected peers were first seen to have reached an interval."""
    _last_at: dict[int, float] = field(default_factory=dict)
    _first: int | None = None
    _began: float | None = None
    _reached: Counter[int] = field(init=False)
    """Peers that have not left, by the interval that they have reached."""

    def __post_init__(self) -> None:
        there = self.newest.items()
        self._reached = Counter(at for peer, at in there if peer not in self.left)

    @classmethod
    def restored(cls, rules: Rules, state: Mapping[str, Any], now: float) -> Closing:
        """As it was, from `state`; waiting begins again."""
        made = cls(rules, state["closed"], dict(state["newest"]), set(state["left"]))
        made._first = state["first"]
        if made._first is not None:
            made._began = now
        for interval in made.newest.values():
            if made.closed is None or interval > made.closed:
                made._last_at[interval] = now
        return made

    def state(self) -> dict[str, Any]:
        """What `restored` needs, as JSON."""
        return {
            "closed": self.closed,
            "newest": self.newest,
            "left": sorted(self.left),
            "first": self._first,
        }

    @property
    def reached(self) -> int | None:
        """The greatest interval of any report."""
        return max(self.newest.values(), default=None)

    def is_late(self, interval: int) -> bool:
        """Whether the interval is closed."""
        return self.closed is not None and interval <= self.closed

    def median(self) -> int | None:
        """The interval that the median of the peers who are expected has reached. Peers that fell
        silent do not count: in time they would be most, and hold the others back.
        """
        oldest = None if self.closed is None else self.closed - self.rules.gap_tolerance
        there = sorted(at for at in self._reached if oldest is None or at >= oldest)
        left = (sum(self._reached[at] for at in there) + 1) // 2
        for at in there:
            left -= self._reached[at]
            if left <= 0:
                return at
        return None

    def is_ahead(self, interval: int, now: int) -> bool:
        """Whether a report must be refused because its peer's clock is wrong. `now` is the interval
        of the collector's own clock, too: after a break of the collector, or of the network, each
        reporter sends all that it has kept, and the median peer is still where the break began.
        """
        return interval > max(self.median() or 0, now) + self.rules.ahead

    def note(self, peer: str, interval: int, now: float, *, left: bool = False) -> None:
        """A report that was admitted."""
        if interval >= (before := self.newest.get(peer, -1)):
            if before >= 0 and peer not in self.left:
                self._reached[before] -= 1
                if not self._reached[before]:
                    del self._reached[before]
            self.newest[peer] = interval
            (self.left.add if left else self.left.discard)(peer)
            if not left:
                self._reached[interval] += 1
        if self.is_late(interval):
            return
        self._last_at[interval] = now
        if self._began is None:
            self._began = now
        self._first = interval if self._first is None else min(self._first, interval)

    def due(self, now: float) -> int | None:
        """The interval up to which can be closed now; null = nothing new."""
        found, following = None, self._following()
        while following is not None and (due := self._due_from(following, now)) is not None:
            found, following = due, due + 1
        return found

    def close(self, interval: int) -> None:
        """All intervals up to this one are closed."""
        self.closed = interval if self.closed is None else max(self.closed, interval)
        for waits in (self._half_at, self._last_at):
            for done in [i for i in waits if i <= interval]:
                del waits[done]

    def waited(self, now: float) -> float:
        """How long the oldest report of an open interval has waited, in seconds; 0 for none."""
        return now - min(self._last_at.values()) if self._last_at else 0.0

    def _following(self) -> int | None:
        return self._first if self.closed is None else self.closed + 1

    def _expected(self, interval: int) -> Collection[str]:
        if self.rules.peers is not None:
            return self.rules.peers
        oldest = interval - 1 - self.rules.gap_tolerance
        return [p for p, at in self.newest.items() if at >= oldest and p not in self.left]

    def _due_from(self, interval: int, now: float) -> int | None:
        """The interval up to which can be closed with this one; null = it cannot."""
        last = [at for i, at in self._last_at.items() if i >= interval]
        if not last:
            return None
        lateness = self.rules.lateness_s
        expected = self._expected(interval)
        reached = Counter(map(self.newest.get, expected, repeat(-1)))
        there = sum(peers for at, peers in reached.items() if at >= interval)
        # Before the first closing nobody knows who will report: all have the lateness to come.
        if self.closed is None and interval == self._first and self.rules.peers is None:
            assert self._began is not None
            return interval if now - self._began >= lateness else None
        if there == len(expected):
            # After a break of days, so many intervals are not looked at one by one.
            return min(reached, default=interval)
        if 2 * there >= len(expected):
            # Also of the intervals behind it, which wait only now, but not for another lateness.
            self._half_at.setdefault(_half(reached, len(expected)), now)
            since = min(at for i, at in self._half_at.items() if i >= interval)
        else:
            since = self._last_at.get(interval, min(last))
        return interval if now - since >= lateness else None


def _half(reached: Counter[int], count: int) -> int:
    """The greatest interval that half of so many peers have reached; they are counted by theirs."""
    downwards = sorted(reached, reverse=True)
    there = accumulate(reached[at] for at in downwards)
    return next(at for at, peers in zip(downwards, there, strict=True) if 2 * peers >= count)
