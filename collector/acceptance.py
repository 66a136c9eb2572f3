"""What became of the lines that somebody gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

REFUSED_SHOWN = 100
"""Refused lines of one request that are named; all are counted."""
_REASON = 1000
"""Characters of a reason: names have any length, and reporters read a bounded answer."""


@dataclass
class Taken:
    """What became of the lines of one request."""

    taken: int = 0
    late: int = 0
    """Of those taken: for a closed interval. They enter the run by `settle`."""
    refused: int = 0
    why: list[dict[str, Any]] = field(default_factory=list)
    """`line` (from 1) and `reason` of the first refused lines."""
    peers: set[str] = field(default_factory=set)
    """Of the reports that were taken."""

    def refuse(self, line: int, reason: str) -> None:
        """A line that was not taken."""
        self.refused += 1
        if len(reason) > _REASON:
            reason = f"{reason[: _REASON // 2]}…{reason[-_REASON // 2 :]}"
        if len(self.why) < REFUSED_SHOWN:
            self.why.append({"line": line, "reason": reason})

    def to_json(self) -> dict[str, Any]:
        """The answer to a reporter."""
        return {
            "taken": self.taken,
            "late": self.late,
            "refused": self.refused,
            "lines": self.why,
        }
