"""Commands to peers while they run: to leave the overlay, or to join it again.

A command waits until the reporter of its peer has fetched, obeyed and answered it, or it expires.
All of this is in the log, so a restarted collector knows it. A reporter may get a command twice;
obeying twice changes nothing.
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
"""Commands to keep for readers, also those that are over."""
_LONGEST_REASON = 1_000
"""Characters of a reason that are kept."""


@dataclass(frozen=True)
class PeerCommand:
    """One command to one peer."""

    id: int
    """From 1, in the order in which they were given."""
    peer: str
    action: str
    """One of `ACTIONS`."""
    expires: float
    """The time of its end by the collector's clock, in seconds since 1970."""
    obeyed: bool | None = None
    """The reporter's answer; null = none yet."""
    reason: str | None = None
    """The reason why it did not obey."""

    def is_open(self, now: float) -> bool:
        """Return True if a reporter still has to obey it."""
        return self.obeyed is None and now < self.expires

    def summary(self, now: float) -> dict[str, Any]:
        """Return the command for readers: `state` is queued, obeyed, refused or expired."""
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
        """Return the content of its record in the log."""
        return dict(vars(self))


class PeerCommands:
    """All commands, except old ones that are over."""

    def __init__(self, commands: Iterable[Mapping[str, Any]] = ()) -> None:
        self._commands: dict[int, PeerCommand] = {}
        self._last = 0
        for one in commands:
            self.record(PeerCommand(**one))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the content of its record in the log."""
        return [one.to_json() for one in self._commands.values()]

    def open(self, now: float) -> list[PeerCommand]:
        """Return the commands that reporters still have to obey, in order."""
        return [one for one in self._commands.values() if one.is_open(now)]

    def new_command(self, peer: str, action: str, now: float, seconds: float) -> PeerCommand:
        """Return a command with the next id. It counts once it is recorded. Raises: InputError."""
        if action not in ACTIONS:
            raise InputError(f"'{action}' is none of {', '.join(ACTIONS)}")
        if not 0 < seconds <= _MOST_S:
            raise InputError(f"a command expires within {_MOST_S} s, and not in {seconds:g}")
        if len(self.open(now)) >= _MOST_OPEN:
            raise InputError(f"{_MOST_OPEN:,} {WAITING}")
        self._last += 1
        return PeerCommand(self._last, peer, action, now + seconds)

    def record(self, command: PeerCommand) -> PeerCommand:
        """Keep a new command, or its answer; the first answer counts. Return what is kept."""
        known = self._commands.get(command.id)
        kept = command if known is None or known.obeyed is None else known
        self._commands[command.id] = kept
        self._last = max(self._last, command.id)
        if len(self._commands) > _KEPT:
            oldest = min(self._commands.values(), key=lambda one: (one.obeyed is None, one.id))
            del self._commands[oldest.id]
        return kept

    def get(self, number: int) -> PeerCommand:
        """Return a command by its number. Raises: InputError if it is not kept any more."""
        try:
            return self._commands[number]
        except KeyError:
            raise InputError(f"no command {number} is known") from None

    def with_answer(self, number: int, *, obeyed: bool, reason: str | None) -> PeerCommand:
        """Return a command with this answer. It counts once it is recorded. Raises: InputError."""
        return replace(self.get(number), obeyed=obeyed, reason=reason and reason[:_LONGEST_REASON])
