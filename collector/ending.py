"""The marked end of a run. Those who may end the run mark it, or those who may only report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vizpub.collector.closing import Closing
from vizpub.model.errors import InputError


@dataclass
class Ending:
    """The marked end of the run, if any. The mark of a peer that may only report counts once all
    members agree: they have left or are silent, and none has reported a later interval.
    """

    last: int | None = None
    """The last interval; null = no end is marked."""
    by_all: bool = False
    """All members must agree."""
    marked_at: float = field(default_factory=time.monotonic)

    def mark(self, last: int, closing: Closing, at: tuple[int, int], *, may_end: bool) -> None:
        """Mark an end. `at`: the greatest interval of any line, and that of the collector's clock.

        Raises: InputError if there are later reports, or it is too far ahead.
        """
        reached, now = at
        if last < reached:
            raise InputError(f"it ends in interval {last}, and there are reports of {reached}")
        if last > max(reached, now) + closing.rules.ahead:
            raise InputError(
                f"it ends in interval {last}, too far ahead: reports have reached {reached}"
            )
        if may_end or self.by_all or self.last is None:
            self.last, self.by_all, self.marked_at = last, not may_end, time.monotonic()

    def note_report(self, interval: int) -> None:
        """Discard a mark that needs all members, if a peer reports a later interval."""
        if self.by_all and self.last is not None and interval > self.last:
            self.last, self.by_all = None, False

    def is_reached(self, closing: Closing, due: int | None, now: float) -> bool:
        """Return True if the run ends now. Peers often mark the end after all their reports; then
        they are silent, which closes no interval.
        """
        if self.last is None:
            return False
        if self.by_all:
            return closing.is_silent(now)
        is_due = closing.is_late(self.last) or (due is not None and due >= self.last)
        rules = closing.rules
        return is_due or now >= self.marked_at + rules.interval_s + rules.lateness_s

    def to_json(self) -> dict[str, Any]:
        """Return the content of its record in the log."""
        return {"last_interval": self.last, "by_all": self.by_all}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Ending:
        """Read it from the log. Older logs do not say who marked the end."""
        return cls(content["last_interval"], bool(content.get("by_all")))
