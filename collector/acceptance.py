"""The answer to a request: which of its lines were accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

REFUSED_SHOWN = 100
"""Refused lines of one request that are named; all are counted."""
_REASON = 1000
"""Characters of a reason: names have any length, and reporters read a bounded answer."""


@dataclass
class Acceptance:
    """The outcome for the lines of one request: how many were accepted, and why others were not."""

    accepted: int = 0
    late: int = 0
    """Accepted lines of closed intervals. They enter the run by `runs settle`."""
    refused: int = 0
    refusals: list[dict[str, Any]] = field(default_factory=list)
    """`line` (from 1) and `reason` of the first refused lines."""
    peers: set[str] = field(default_factory=set)
    """The peers of the accepted reports."""

    def refuse(self, line: int, reason: str) -> None:
        """Count a refused line, and keep its reason if few were refused before it."""
        self.refused += 1
        if len(reason) > _REASON:
            reason = f"{reason[: _REASON // 2]}…{reason[-_REASON // 2 :]}"
        if len(self.refusals) < REFUSED_SHOWN:
            self.refusals.append({"line": line, "reason": reason})

    def add(self, part: Acceptance, numbers: Sequence[int]) -> None:
        """Add the outcome of some of the lines, of which these are the numbers."""
        self.accepted += part.accepted
        self.late += part.late
        self.peers |= part.peers
        for refusal in part.refusals:
            self.refuse(numbers[refusal["line"] - 1], refusal["reason"])
        self.refused += part.refused - len(part.refusals)

    def to_json(self) -> dict[str, Any]:
        """Return the answer to the reporter."""
        return {
            "taken": self.accepted,
            "late": self.late,
            "refused": self.refused,
            "lines": self.refusals,
        }
