"""What peers are asked to do while they run: leave the overlay, or join it again.

A command waits for the reporter of
its peer to fetch it, obey and answer, until it expires. All of this is in the log, so a collector
that is started again knows it. A reporter may get a command twice; obeying twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vizpub.model.errors import InputError

WAITING = "commands are waiting already"

ACTIONS = ("leave", "join")
_MOST_OPEN = 1_000
"""Commands that may wait at once."""
_MOST_S = 86_400
_KEPT = 2_000
"""Commands that are told, those that are over included."""


@dataclass(frozen=True)
class Command:
    """One command to one peer."""

    id: int
    """From 1, in the order in which they were given."""
    peer: str
    action: str
    """One of `ACTIONS`."""
    expires: float
    """By the collector's clock, in seconds since 1970."""
    obeyed: bool | None = None
    """What the reporter answered; null = nothing yet."""
    reason: str | None = None
    """Why it did not obey."""

    def is_open(self, now: float) -> bool:
        """Whether a reporter still has to obey."""
        return self.obeyed is None and now < self.expires

    def told(self, now: float) -> dict[str, Any]:
        """For readers: `state` is queued, obeyed, refused or expired."""
        if self.obeyed is None:
            state = "queued" if self.is_open(now) else "expired"
        else:
            state = "obeyed" if self.obeyed else "refused"
        return {
            "id": self.id,
            "peer": self.peer,
            "action": self.action,
            "expires_in_s": round(max(self.expires - now, 0), 3),
            "state": state,
            "reason": self.reason,
        }

    def to_json(self) -> dict[str, Any]:
        """For the log."""
        return dict(vars(self))


class Commands:
    """All that were given, but for old ones that are over."""

    def __init__(self, known: Iterable[Mapping[str, Any]] = ()) -> None:
        self._known: dict[int, Command] = {}
        self._last = 0
        for one in known:
            self.note(Command(**one))

    def to_json(self) -> list[dict[str, Any]]:
        """For the log."""
        return [one.to_json() for one in self._known.values()]

    def open(self, now: float) -> list[Command]:
        """Those that reporters have to obey, in order."""
        return [one for one in self._known.values() if one.is_open(now)]

    def next(self, peer: str, action: str, now: float, seconds: float) -> Command:
        """A command that is not noted yet. Raises: InputError."""
        if action not in ACTIONS:
            raise InputError(f"'{action}' is none of {', '.join(ACTIONS)}")
        if not 0 < seconds <= _MOST_S:
            raise InputError(f"a command expires within {_MOST_S} s, and not in {seconds:g}")
        if len(self.open(now)) >= _MOST_OPEN:
            raise InputError(f"{_MOST_OPEN:,} {WAITING}")
        self._last += 1
        return Command(self._last, peer, action, now + seconds)

    def note(self, command: Command) -> None:
        """A new one, or what became of one."""
        self._known[command.id] = command
        self._last = max(self._last, command.id)
        if len(self._known) > _KEPT:
            oldest = min(self._known.values(), key=lambda one: (one.obeyed is None, one.id))
            del self._known[oldest.id]

    def get(self, number: int) -> Command:
        """Raises: InputError for one that nobody knows any more."""
        try:
            return self._known[number]
        except KeyError:
            raise InputError(f"no command {number} is known") from None

    def answered(self, number: int, *, obeyed: bool, reason: str | None) -> Command:
        """A command with its reporter's answer; the first answer counts. Raises: InputError."""
        found = self.get(number)
        return found if found.obeyed is not None else replace(found, obeyed=obeyed, reason=reason)
