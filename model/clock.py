"""Ticks, intervals and the open end.

A run's time is counted in *ticks* (int64, from 0) since its epoch; validity periods
are half-open, `[valid_from, valid_to)` in ticks, and an open period has `valid_to = OPEN`. A
reporting interval is `ticks_per_interval` ticks, and is *sampled* at its last tick: the state at
its end. A source of reports has one tick per interval, so that all three are plain interval
numbers; a source of events has ticks of a microsecond.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from vizpub.model.errors import OutOfRange, UseError

NO_BEGINNING = "this run does not know when it began"
TOO_LONG = "is longer than 2⁶³ microseconds"

OPEN = 2**63 - 1
"""The end of an open period; not null, so that it can be compared and indexed."""

_MOST_US = 2**63 - 1
_HOUR_US = 3_600_000_000
UNITS_US = {
    "us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": _HOUR_US, "d": 24 * _HOUR_US
}  # fmt: skip
"""Microseconds in each unit of durations."""
_WALL_CLOCK = re.compile(
    r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_DURATION = re.compile(r"(\d{1,15}(?:\.\d+)?)\s*(us|µs|ms|s|m|h|d)")


def parse_duration_us(text: str) -> int:
    """Parse '250ms', '1s' or '1.5m' as microseconds, at least 1 and at most 2⁶³ - 1.

    Raises: UseError for anything else.
    """
    microseconds = _microseconds(text)
    if microseconds is None:
        raise UseError(f"'{text}' is not a duration; write for example 500ms, 1s or 2m")
    if microseconds < 1:
        raise UseError(f"'{text}' is shorter than a microsecond")
    if microseconds > _MOST_US:
        raise UseError(f"'{text}' {TOO_LONG}")
    return microseconds


def duration(us: int) -> str:
    """Format 1_500_000 as '1500ms', in the largest unit that gives a whole number."""
    return next(
        f"{us // size}{unit}" for unit, size in reversed(UNITS_US.items()) if us % size == 0
    )


def _microseconds(text: str) -> int | None:
    match = _DURATION.fullmatch(text.strip())
    return round(float(match[1]) * UNITS_US[match[2].replace("µ", "u")]) if match else None


def _since(epoch: str | None, wall_clock: str) -> int:
    """Return the microseconds from the epoch to a wall-clock time. Raises: UseError."""
    if epoch is None:
        raise UseError(
            f"'{wall_clock}': {NO_BEGINNING}; "
            "give an interval number, or a time since the start such as 12.5s"
        )
    try:
        begin = _with_offset(datetime.fromisoformat(epoch), UTC)
        day = "" if "T" in wall_clock else f"{begin.date()}T"
        moment = _with_offset(datetime.fromisoformat(day + wall_clock), begin.tzinfo)
    except ValueError as error:
        raise UseError(
            f"'{wall_clock}' is not a time of day or a date with one ({error}); "
            f"this run begins at {epoch}"
        ) from None
    return (moment - begin) // timedelta(microseconds=1)


def _with_offset(time: datetime, offset: tzinfo | None) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=offset)


def check_window(first: int | None, last: int | None) -> None:
    """Check a window of intervals; null = no limit.

    Raises: UseError if it ends before it begins.
    """
    if first is not None and last is not None and first > last:
        raise UseError(
            f"the window ends (interval {last}) before it begins (interval {first}): "
            "swap --from and --to"
        )


@dataclass(frozen=True)
class Clock:
    """The time scale of a run. `tick_us` and `interval_us` are null if unknown."""

    ticks_per_interval: int = 1
    tick_us: int | None = None
    first: int = 0
    """The first interval of the run."""
    last: int = 0
    """The last interval of the run; it is sampled at its end."""

    @property
    def interval_us(self) -> int | None:
        """The length of an interval in microseconds, null if unknown."""
        return None if self.tick_us is None else self.tick_us * self.ticks_per_interval

    @property
    def intervals(self) -> int:
        """The number of intervals of the run."""
        return self.last - self.first + 1

    def interval_of(self, tick: int) -> int:
        """Return the interval of a tick."""
        return tick // self.ticks_per_interval

    def sampling_tick(self, interval: int) -> int:
        """Return the tick at which an interval's state is taken: its last one."""
        return (interval + 1) * self.ticks_per_interval - 1

    def sampled(self, valid_from: int, valid_to: int) -> range:
        """Return the intervals of the run in whose sampling tick `[valid_from, valid_to)` holds."""
        k = self.ticks_per_interval
        end = self.last if valid_to == OPEN else valid_to // k - 1
        return range(max(valid_from // k, self.first), min(end, self.last) + 1)

    def clip(self, first: int | None, last: int | None) -> tuple[int, int]:
        """Return the first and last interval of the run in a window with open or distant ends.

        The first is after the last if the run has no interval in the window.
        """
        return (
            self.first if first is None else max(first, self.first),
            self.last if last is None else min(last, self.last),
        )

    def check_tick(self, tick: int) -> int:
        """Return the tick itself. Raises: OutOfRange if it is not in the run."""
        low, high = self.first * self.ticks_per_interval, self.sampling_tick(self.last)
        if not low <= tick <= high:
            raise OutOfRange("time", self.describe(tick), self.describe_range())
        return tick

    def parse_at(self, text: str, epoch: str | None = None) -> int:
        """Parse an interval number ('137'), 'first', 'last', a time since the epoch ('12.5s'), or a
        wall-clock time ('2000-01-01T00:00:12Z', or '00:00:12' on the epoch's day; without an offset
        from UTC it has the epoch's), and return the tick.

        `epoch` is the wall-clock time of tick 0, null if unknown.

        Raises: UseError for anything else, for a time if the interval's length is unknown, and for
        a wall-clock time if the epoch is unknown; OutOfRange.
        """
        text = text.strip()
        if text in ("first", "last"):
            return self.sampling_tick(self.first if text == "first" else self.last)
        if re.fullmatch(r"\d{1,18}", text):
            interval = int(text)
            if not self.first <= interval <= self.last:
                raise OutOfRange("interval", text, self.describe_range())
            return self.sampling_tick(interval)
        return self.check_tick(self._time_tick(text, epoch))

    def begin_of(self, text: str, epoch: str | None = None) -> int:
        """Parse an interval number, a time since the epoch or a wall-clock time as `parse_at` does,
        and return the tick at which it begins, in the run or not. Raises: UseError.
        """
        text = text.strip()
        if re.fullmatch(r"\d{1,10}", text):
            return int(text) * self.ticks_per_interval
        return self._time_tick(text, epoch)

    def _time_tick(self, text: str, epoch: str | None) -> int:
        """Return the tick of a time. Raises: UseError."""
        since_epoch_us = _microseconds(text)
        if since_epoch_us is None and _WALL_CLOCK.fullmatch(text):
            since_epoch_us = _since(epoch, text)
        if since_epoch_us is None:
            raise UseError(
                f"'{text}' is not a time; give an interval number ({self.first} to {self.last}), "
                "first, last, or a time since the start such as 12.5s"
                + (f", or a wall-clock time from {epoch} on" if epoch else "")
            )
        if self.tick_us is None:
            raise UseError(
                f"'{text}': the length of this run's intervals is unknown; "
                f"give an interval number ({self.first} to {self.last})"
            )
        return since_epoch_us // self.tick_us

    def describe(self, tick: int) -> str:
        """Return a tick as text for users: 'interval 7', with the time if it is known."""
        if tick == OPEN:
            return "open"
        interval = f"interval {self.interval_of(tick)}"
        if self.tick_us is None:
            return interval
        return f"{interval} ({tick * self.tick_us / 1e6:g} s)"

    def describe_presence(self, periods: Iterable[tuple[int, int]]) -> str:
        """Return periods as text for users: 'from interval 3 on'; 'never' if there are none."""
        spoken = (
            f"from {self.describe(begin)} "
            + ("on" if end == OPEN else f"to before {self.describe(end)}")
            for begin, end in periods
        )
        return ", ".join(spoken) or "never"

    def describe_range(self) -> str:
        """Return the intervals of the run as text for users."""
        return f"intervals {self.first} to {self.last}" + (
            f" ({self.interval_us / 1e6:g} s each)" if self.interval_us else ""
        )
