"""Counts over records, which tasks add up and runs store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from vizpub.ingest.sources.times import RecordTimes
from vizpub.ingest.tasks.fold import count_name


@dataclass
class RecordTally:
    """Counts over the records of a task, of several tasks, or of a whole run; `plain` is stored.

    Fields of subclasses are counters, integers, times of records, or values that they add
    themselves.
    """

    refused: Counter[str] = field(default_factory=Counter)
    """Refused records by reason."""
    first: int | None = None
    last: int | None = None
    """First and last time of a record, in the source's unit."""

    def refuse(self, reason: str) -> None:
        """Count a refused record."""
        count_name(self.refused, reason)

    def extend(self, first: int, last: int) -> None:
        """Include records between these times."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)

    def add(self, tally: Self) -> None:
        """Add the counts of another tally."""
        if tally.first is not None and tally.last is not None:
            self.extend(tally.first, tally.last)
        for name, count in vars(tally).items():
            own_count = getattr(self, name)
            if isinstance(own_count, Counter):
                own_count.update(count)
            elif isinstance(own_count, RecordTimes):
                own_count.add(count)
            elif isinstance(own_count, int) and name not in ("first", "last"):
                setattr(self, name, own_count + count)

    @property
    def plain(self) -> dict[str, Any]:
        """JSON values from which `of` restores it."""
        return {name: _plain_value(value) for name, value in vars(self).items()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Restore a tally from its `plain` values; earlier versions counted less."""
        tally = cls()
        for name, value in vars(tally).items():
            if (stored := plain.get(name)) is not None:
                setattr(tally, name, _restored_value(stored, type(value)))
        return tally

    @classmethod
    def together(cls, plains: Iterable[Mapping[str, Any]]) -> Self:
        """Return the sum of several tallies, from their `plain` values."""
        tally = cls()
        for plain in plains:
            tally.add(cls.of(plain))
        return tally


def _plain_value(value: Any) -> Any:
    if isinstance(value, RecordTimes):
        return value.plain
    return dict(value) if isinstance(value, Counter) else value


def _restored_value(stored: Any, kind: type) -> Any:
    if issubclass(kind, RecordTimes):
        return RecordTimes.of(stored)
    return Counter(stored) if issubclass(kind, Counter) else stored
