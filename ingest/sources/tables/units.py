"""Times in tables: numbers of a unit, or dates, in microseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from vizpub.ingest.sources.tables.joined import INTERVAL
from vizpub.model.clock import OPEN
from vizpub.reports.fields import INT64, LAST_INTERVAL

SECOND_US = 1_000_000
UNIX_US = 10**15
"""A billion seconds, in 2001: times from there on count from 1970."""
UNIX_EPOCH = "1970-01-01T00:00:00Z"
_ENDS = frozenset({"valid_to", "vt"})
_TIMES = (INTERVAL, "valid_from", "vf", "t_us", *_ENDS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,2})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*", re.ASCII)
_TOO_LARGE = str(INT64 + 1)


@dataclass(frozen=True)
class TimeScale:
    """The unit of a file's times, and how far they may reach."""

    unit_us: int
    """Of numbers."""
    length_us: int | None = None
    """Of an interval, if times must be in intervals that a run can have."""
    is_of_intervals: bool = False
    """Numbers are those of intervals: whole."""

    def convert(self, fields: dict[str, str | None]) -> dict[str, str | None]:
        """Put the times of a row into microseconds."""
        for name in _TIMES:
            if text := fields.get(name):
                fields[name] = self._to_us(text, is_end=name in _ENDS)
        return fields

    def _to_us(self, text: str, *, is_end: bool) -> str:
        """Return a time in microseconds, as digits. Text that is none, and times that are no
        intervals of a run, remain what the rules of columns refuse.
        """
        if is_end and text == str(OPEN):
            return text
        if text.isascii() and text.isdigit():
            time = int(text.lstrip("0")[:40] or 0) * self.unit_us
        elif _NUMBER.fullmatch(text):
            number = Decimal(text)
            if self.is_of_intervals and number != number.to_integral_value():
                return text
            time = int(number * self.unit_us)
        elif (date := _parse_date(text)) is not None:
            time = date
        else:
            return text
        most = LAST_INTERVAL + is_end  # a period ends after its last interval
        is_far = self.length_us is not None and time // self.length_us > most
        return _TOO_LARGE if is_far or time > INT64 else str(time)


def is_time(text: str) -> bool:
    """Return True for a number or a date."""
    return bool(_NUMBER.fullmatch(text)) or _parse_date(text) is not None


def _parse_date(text: str) -> int | None:
    """Return microseconds since 1970 of a date as in ISO 8601, in UTC if it has no zone; null for
    other text.
    """
    if not _DATE.fullmatch(text):
        return None
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
