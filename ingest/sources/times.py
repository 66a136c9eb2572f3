"""Times of an input, in parts that gaps separate, and the parts that are outliers.

One wrong clock must not stretch a run over years of empty intervals, and sound data must not be
lost for it. So of the parts that more than GAP empty intervals separate, two kinds are outliers:

- those that one peer alone logs, where several peers agree on the part with most records. They are
  less than a tenth of all records.
- those without which the run has at most MOST_INTERVALS, the parts with most records first. They
  are less than half of all records where one peer alone logs each, otherwise less than a tenth.

One of three or more records is always few enough. If there are more of a kind, none of them is
refused: the input is sparse, or has several beginnings. Empty stretches that stay are noted.

Tasks find parts by themselves, and these are put together in any order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np

from vizpub.model.arrays import Int32s, Int64s
from vizpub.model.clock import Clock, duration
from vizpub.model.errors import InputError
from vizpub.reports.fields import LAST_INTERVAL

GAP = 10_000
MOST_INTERVALS = 10_000_000
ALONE = f"its time is more than {GAP:,} intervals from those that other peers agree on"
TOO_FAR = (
    f"its time is so far from most others that the run would have over {MOST_INTERVALS:,} intervals"
)

BELONGS = "belongs to the run by its time now, and did not before"
BELONGS_NOT = "does not belong to the run by its time now, and did before"
_MOST_PARTS = 1000
"""Of a task; where there are more, greater gaps separate them."""
_LONGER_US = (10**6, 60 * 10**6, 3600 * 10**6, 24 * 3600 * 10**6)
_SHOWN = 3
"""Empty stretches that are noted one by one."""


class TimePart(NamedTuple):
    """Records with times that no gap separates."""

    first: int
    last: int
    file: str
    line: int
    """Line of the first of them."""
    peer: str | None
    """The peer whose clock gives the times; null = several have."""
    records: int = 1


class RecordTimes:
    """Times of records, in parts. The unit is the source's."""

    def __init__(self, gap: int, parts: Iterable[Sequence[Any]] = ()) -> None:
        """Create it from the longest time without a record inside a part."""
        self._gap, self._parts = gap, [TimePart(*part) for part in parts]
        self._begin: TimePart | None = None
        """Beginning of the part of the latest record."""
        self._after = inf
        self._peer: str | None = None
        self._last = self._until = self._more = 0
        """State of that part for `see`: its last time, and the number of further records."""

    def see(self, time: int, peer: str | None, file: str, line: int, records: int = 1) -> None:
        """Count a record, or so many from this time on."""
        if self._after < time <= self._until and (self._peer is None or self._peer == peer):
            self._more += records
            if time > self._last:
                self._last, self._until = time, time + self._gap
            return
        self._parts = self._close_part()
        if len(self._parts) > 2 * _MOST_PARTS:
            self._parts = self.parts
        begin = TimePart(time, time, file, line, peer, records)
        if self._parts and _touch(self._parts[-1], begin, self._gap):
            begin = _join_pair(self._parts.pop(), begin)
        self._begin, self._more, self._after, self._peer = begin, 0, begin.first, begin.peer
        self._last, self._until = begin.last, begin.last + self._gap

    def see_all(self, times: Int64s, numbers: Int32s, lines: Int64s, files: Sequence[str]) -> None:
        """Count records of several peers, with the numbers of their files and their lines."""
        order = np.argsort(times)
        cuts = np.flatnonzero(np.diff(times[order]) > self._gap) + 1
        for part in np.split(order, cuts) if len(order) else ():
            first, last = int(times[part[0]]), int(times[part[-1]])
            file, line = min(
                (files[numbers[at]], int(lines[at])) for at in part[times[part] == first]
            )
            self._parts = [*self._close_part(), TimePart(first, last, file, line, None, len(part))]
        if len(self._parts) > 2 * _MOST_PARTS:
            self._parts = self.parts

    def _close_part(self) -> list[TimePart]:
        """Close the part of the latest record, and return all parts."""
        if (begin := self._begin) is None:
            return self._parts
        now = begin._replace(last=self._last, records=begin.records + self._more)
        self._begin, self._after = None, inf
        self._parts.append(now)
        return self._parts

    @property
    def parts(self) -> list[TimePart]:
        """All parts in order of time."""
        parts = self._close_part()
        while len(joined := _join_parts(parts, self._gap)) > _MOST_PARTS:
            self._gap *= 2
        return joined

    @classmethod
    def together(cls, plains: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Combine the `plain` values of several ones into those of one."""
        times = cls(0)
        for plain in plains:
            times.add(cls.of(plain))
        return times.plain

    def add(self, times: RecordTimes) -> None:
        """Add the records of another one."""
        self._gap = max(self._gap, times._gap)
        self._parts = _join_parts([*self.parts, *times.parts], self._gap)

    @property
    def plain(self) -> dict[str, Any]:
        """JSON values from which `of` restores it."""
        return {"parts": [list(part) for part in self.parts], "gap": self._gap}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Restore the times from their `plain` values."""
        return cls(**plain)

    def outliers(self, interval: int) -> Outliers:
        """Find the parts that do not belong to the run."""
        parts = self.parts
        if not parts:
            return NO_OUTLIERS
        main = max(parts, key=lambda part: (part.records, part.first))
        alone = [part for part in parts if part.peer is not None and main.peer is None]
        reasons = dict.fromkeys(alone if _are_few(alone, parts, 10) else (), ALONE)
        far, (first, last) = list[TimePart](), main[:2]
        for part in sorted(parts, key=lambda part: (-part.records, -part.first)):
            if part not in reasons and part is not main:
                span = min(first, part.first), max(last, part.last)
                if span[1] // interval - span[0] // interval < MOST_INTERVALS:
                    first, last = span
                else:
                    far.append(part)
        of_several = [part for part in far if part.peer is None]
        if _are_few(far, parts, 2) and _are_few(of_several, parts, 10):
            reasons |= dict.fromkeys(far, TOO_FAR)
        return Outliers(reasons, next(part.first for part in parts if part not in reasons))

    def empty(self, interval: int) -> dict[str, int]:
        """Return notes on the longest stretches without a record: the number of empty intervals."""
        gaps = [
            (later.first // interval - earlier.last // interval - 1, later)
            for earlier, later in pairwise(self.parts)
        ]
        longest = sorted(gaps, key=lambda gap: (-gap[0], gap[1].first))
        notes = {
            f"empty intervals before {part.file}, line {part.line}": length
            for length, part in longest[:_SHOWN]
        }
        if rest := longest[_SHOWN:]:
            notes[f"empty intervals in {len(rest)} other stretches"] = sum(n for n, _ in rest)
        return notes


class Outliers:
    """Parts of the time that do not belong to a run, with the reasons."""

    def __init__(self, reasons: Mapping[TimePart, str], first: int | None = None) -> None:
        """Create it from disjoint parts, and the first time of all others."""
        self.first = first
        self._parts = sorted(reasons)
        self.reasons, self._firsts = dict(reasons), [part.first for part in self._parts]

    def __bool__(self) -> bool:
        """Return True if there is one."""
        return bool(self._parts)

    def why(self, time: int) -> str | None:
        """Return the reason for refusing a record of this time; null if it is not refused."""
        if not self._parts or (place := bisect_right(self._firsts, time)) == 0:
            return None
        part = self._parts[place - 1]
        return self.reasons[part] if time <= part.last else None


NO_OUTLIERS = Outliers({})


def check_length(times: RecordTimes, clock: Clock, noun: str, advice: str = "") -> None:
    """Check that a run does not have too many intervals, in which case no part of the input is
    small enough to be an outlier, and that their numbers fit. `noun` names its records.

    Raises: InputError.
    """
    if clock.intervals <= MOST_INTERVALS:
        if clock.last > LAST_INTERVAL:
            message = f"{noun} reach to interval {clock.last:,}, counted from 1970"
            least = duration((clock.interval_us or 0) * clock.last // LAST_INTERVAL)
            raise InputError(
                f"{message}; the last possible one is {LAST_INTERVAL:,}",
                f"give times from the start of the run, or intervals of more than {least}",
            )
        return
    bounds = times.parts[0], times.parts[-1]
    ends = " to ".join(f"{part.file}, line {part.line}" for part in bounds)
    message = f"{noun} reach over {clock.intervals:,} intervals, from {ends}"
    span_us = clock.intervals * (clock.interval_us or 0)
    lengths = (duration(us) for us in _LONGER_US if 0 < span_us // us < MOST_INTERVALS)
    longer = (f"give longer intervals: --interval {length}" for length in islice(lengths, 1))
    hint = "; ".join(filter(None, (advice, *longer)))
    raise InputError(f"{message}; a run has at most {MOST_INTERVALS:,}", hint)


def _are_few(some: Iterable[TimePart], parts: Iterable[TimePart], share: int) -> bool:
    """Return True if some parts have less than one in `share` records, or one of three or more."""
    few, total = (sum(part.records for part in of) for of in (some, parts))
    return share * few < total or (few == 1 and total > 2)


def _join_parts(parts: Iterable[TimePart], gap: int) -> list[TimePart]:
    """Join parts that no gap separates. Return all in order of time."""
    joined: list[TimePart] = []
    for part in sorted(parts, key=lambda part: part[:4]):
        if joined and _touch(joined[-1], part, gap):
            joined[-1] = _join_pair(joined[-1], part)
        else:
            joined.append(part)
    return joined


def _touch(a: TimePart, b: TimePart, gap: int) -> bool:
    return b.first - a.last <= gap and a.first - b.last <= gap


def _join_pair(a: TimePart, b: TimePart) -> TimePart:
    """Join two parts into one."""
    begins = min(a, b, key=lambda part: part[:1] + part[2:4])
    return TimePart(
        begins.first,
        max(a.last, b.last),
        begins.file,
        begins.line,
        a.peer if a.peer == b.peer else None,
        a.records + b.records,
    )
