"""The closing of intervals: reports that come after it are late.

Intervals close in order, once more than half of the members have reached them, and so have all
members except those that are behind; or some time (the lateness) after more than half have. A
member is a peer that reported recently and has not left, or one of a fixed list. It is behind if
all its reports during the lateness came late.

So no peer's clock closes anything for others. While the clocks of fewer than half of the members
are wrong, an interval closes after a sound member has reported it, and a sound member's report is
not late if it comes within the lateness of the first sound one. Time is the collector's monotonic
clock. If all are silent, nothing closes: peers that come back report what they have kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any

from vizpub.machine.files import text_of
from vizpub.model.errors import UseError, cause_of


@dataclass(frozen=True)
class ClosingRules:
    """The time to wait before an interval closes, and the peers to wait for."""

    lateness_s: float = 5.0
    """Seconds to wait for the rest after more than half of the peers; 0 = for nobody."""
    ahead: int = 16
    """The most intervals of a report ahead of the median peer and of the clock."""
    gap_tolerance: int = 0
    peers: frozenset[str] | None = None
    """All peers, if they are known."""
    interval_s: float = 1.0
    """The length of an interval."""

    def member_since(self, now: float) -> float:
        """Return the time since which a member must have reported."""
        return now - (1 + self.gap_tolerance) * self.interval_s - self.lateness_s


@dataclass
class Closing:
    """The intervals that peers have reached, and the closed ones. Times are monotonic seconds."""

    rules: ClosingRules
    closed: int | None = None
    """The last closed interval; null = none is closed."""
    newest: dict[str, int] = field(default_factory=dict)
    """The greatest interval of each peer's reports."""
    departed: set[str] = field(default_factory=set)
    """Peers whose last report said that they leave."""
    _heard: dict[str, float] = field(default_factory=dict)
    """The time of each peer's last report, also late ones."""
    _behind: dict[str, float] = field(default_factory=dict)
    """The time since which all reports of a peer have been late."""
    _quorum_at: dict[int, float] = field(default_factory=dict)
    """The time at which more than half of the members were first known to have reached it."""
    _last_at: dict[int, float] = field(default_factory=dict)
    _firsts: dict[str, int] = field(default_factory=dict)
    """The first interval of each peer, until one is closed."""
    _began: float | None = None
    _reached: Counter[int] = field(init=False)
    """Peers that have not left, by the interval that they have reached."""

    def __post_init__(self) -> None:
        present = (at for peer, at in self.newest.items() if peer not in self.departed)
        self._reached = Counter(present)

    @classmethod
    def from_state(cls, rules: ClosingRules, state: Mapping[str, Any], now: float) -> Closing:
        """Restore it from a `state`. All waiting times begin again."""
        closing = cls(rules, state["closed"], dict(state["newest"]), set(state["left"]))
        closing._heard = dict.fromkeys(closing.newest, now)
        # Older logs have one first interval for all.
        firsts = state.get("firsts", dict.fromkeys(closing.newest, state.get("first")))
        if closing.closed is None and firsts:
            closing._firsts, closing._began = dict(firsts), now
        for interval in closing.newest.values():
            if closing.closed is None or interval > closing.closed:
                closing._last_at[interval] = now
        return closing

    def state(self) -> dict[str, Any]:
        """Return what `from_state` needs, as JSON."""
        return {
            "closed": self.closed,
            "newest": self.newest,
            "left": sorted(self.departed),
            "firsts": self._firsts,
        }

    @property
    def first(self) -> int | None:
        """The median of the peers' first intervals, so that one slow clock adds no intervals. Null
        once an interval is closed.
        """
        return median_low(self._firsts.values()) if self._firsts else None

    @property
    def greatest_interval(self) -> int | None:
        """The greatest interval of any report."""
        return max(self.newest.values(), default=None)

    def is_late(self, interval: int) -> bool:
        """Return True if the interval is closed."""
        return self.closed is not None and interval <= self.closed

    def median(self) -> int | None:
        """Return the interval that the median of the expected peers has reached. Silent peers do
        not count: in time they would be the majority, and hold the others back.
        """
        oldest = None if self.closed is None else self.closed - self.rules.gap_tolerance
        intervals = sorted(at for at in self._reached if oldest is None or at >= oldest)
        behind = (sum(self._reached[at] for at in intervals) + 1) // 2
        for at in intervals:
            behind -= self._reached[at]
            if behind <= 0:
                return at
        return None

    def is_ahead(self, interval: int, now: int) -> bool:
        """Return True if a report must be refused because its peer's clock is wrong.

        `now`, the interval of the collector's own clock, counts, too: after an outage of the
        collector or of the network, each reporter sends all that it has kept, while the median peer
        is still where the outage began.
        """
        return interval > max(self.median() or 0, now) + self.rules.ahead

    def note_report(self, peer: str, interval: int, now: float, *, leaves: bool = False) -> None:
        """Count an admitted report. `leaves`: its peer leaves with it."""
        if interval >= (previous := self.newest.get(peer, -1)):
            if previous >= 0 and peer not in self.departed:
                self._reached[previous] -= 1
                if not self._reached[previous]:
                    del self._reached[previous]
            self.newest[peer] = interval
            (self.departed.add if leaves else self.departed.discard)(peer)
            if not leaves:
                self._reached[interval] += 1
        self._heard[peer] = now
        if self.is_late(interval):
            self._behind.setdefault(peer, now)
            return
        self._behind.pop(peer, None)
        self._last_at[interval] = now
        if self.closed is None:
            self._began = now if self._began is None else self._began
            self._firsts[peer] = min(interval, self._firsts.get(peer, interval))

    def due(self, now: float) -> int | None:
        """Return the interval up to which all can be closed now; null = nothing new."""
        following = self.first if self.closed is None else self.closed + 1
        if following is None:
            return None
        members = self._members(now)
        quorum = _quorum(
            Counter(at for peer, at in members if peer not in self.departed),
            Counter(at for peer, at in members if peer in self.departed),
        )
        for outdated in [i for i in self._quorum_at if quorum is None or i > quorum]:
            del self._quorum_at[outdated]
        if quorum is None:
            return None
        self._quorum_at.setdefault(quorum, now)
        lateness = self.rules.lateness_s
        due = min([quorum, *(at for peer, at in members if self._holds_others(peer, now))])
        due = max([due, *(i for i, at in self._quorum_at.items() if now - at >= lateness)])
        if self.closed is None and self.rules.peers is None and lateness:
            # Before the first closing nobody knows who will report, so all get time.
            assert self._began is not None
            if now - self._began < self.rules.interval_s + lateness:
                return None
        return None if due < following else due

    def is_silent(self, now: float) -> bool:
        """Return True if all peers have left or are no longer members."""
        since, heard = self.rules.member_since(now), self._heard
        if not heard or (self.rules.peers and not self.rules.peers <= heard.keys()):
            return False
        return all(at < since or peer in self.departed for peer, at in heard.items())

    def close(self, interval: int) -> None:
        """Close all intervals up to this one."""
        self.closed = interval if self.closed is None else max(self.closed, interval)
        self._firsts.clear()
        for waits in (self._quorum_at, self._last_at):
            for done in [i for i in waits if i <= interval]:
                del waits[done]

    def waiting_time(self, now: float) -> float:
        """Return the seconds that the oldest report of an open interval has waited, or 0."""
        return now - min(self._last_at.values()) if self._last_at else 0.0

    def _members(self, now: float) -> list[tuple[str, int]]:
        """Return all members, also departed ones, with the interval that each has reached."""
        if self.rules.peers is not None:
            return [(peer, self.newest.get(peer, -1)) for peer in self.rules.peers]
        if self.closed is None:
            # A peer that reports once and then waits for the first closing remains a member.
            return [(peer, self.newest[peer]) for peer in self._heard]
        since = self.rules.member_since(now)
        return [(peer, self.newest[peer]) for peer, at in self._heard.items() if at >= since]

    def _holds_others(self, peer: str, now: float) -> bool:
        """Return True if intervals wait for the peer. They do not if it left, or has been behind
        for so long that its next report will be late, too; a peer that was late once may recover.
        """
        if peer in self.departed:
            return False
        since = self._behind.get(peer)
        return since is None or now - since < self.rules.lateness_s


def _quorum(present: Counter[int], departed: Counter[int]) -> int | None:
    """Return the greatest interval that more than half of the members have reached. Members are
    counted by the interval that they have reached; a departed one counts up to its last.
    """
    # Twice the members that have reached an interval, minus those that have left after it.
    count, twice = present.total(), 0
    for at in sorted({*present, *departed}, reverse=True):
        twice += 2 * present[at] + departed[at]
        if twice > count:
            return at
    return None


def peers_of(path: Path) -> frozenset[str]:
    """Return the names in a file, one per line; `#` begins a comment. Raises: UseError."""
    try:
        names = map(str.strip, text_of(path).splitlines())
    except (OSError, ValueError) as error:
        raise UseError(f"{path} cannot be read: {cause_of(error)}") from error
    peers = frozenset(name for name in names if name and not name.startswith("#"))
    if not peers:
        raise UseError(f"{path} has no names of peers")
    return peers
