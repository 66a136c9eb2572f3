"""Commands from a collector that asks for reports, and the peers' answers. Standard library only.

The collector gives all commands that wait, again and again, until it has their answers. So nothing
is lost with a connection, and what it gives no more is over.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from threading import Lock
from typing import Any

NO_COMMANDS = "these are not commands"


@dataclass
class _Command:
    told: dict[str, Any]
    """`id`, `peer` and `action`."""
    expires: float
    """On the monotonic clock."""
    answer: dict[str, Any] | None = None


class Given:
    """The commands that the collector gave last. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._commands: dict[int, _Command] = {}
        self.obeyed = False
        """Whether somebody asks for them: else peers take none."""

    def take(self, body: bytes) -> bytes:
        """All that wait, as the collector sends them. Returns the answers to these as JSON.

        Raises: ValueError for what is no list of commands.
        """
        try:
            given = [_command(one) for one in json.loads(body)["commands"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{NO_COMMANDS}: {error}") from error
        with self._lock:
            before, self._commands = self._commands, {}
            for one in given:
                known = before.get(one.told["id"])
                # Another collector may have given another command with this id.
                is_same = known is not None and known.told == one.told
                self._commands[one.told["id"]] = known if known and is_same else one
            answers = [one.answer for one in self._commands.values() if one.answer]
        return json.dumps({"answers": answers}).encode()

    def waiting(self) -> list[dict[str, Any]]:
        """Commands without an answer, in their order."""
        self.obeyed, now = True, time.monotonic()
        with self._lock:
            waiting = (one for one in self._commands.values() if one.answer is None)
            return [dict(one.told) for one in waiting if now < one.expires]

    def answer(self, number: int, refusal: str | None) -> None:
        """The first answer counts; one to a command that is over is dropped."""
        told = {"id": number, "obeyed": refusal is None, "reason": refusal}
        with self._lock:
            known = self._commands.get(number)
            if known and known.answer is None:
                known.answer = told


def _command(given: dict[str, Any]) -> _Command:
    told = {"id": int(given["id"]), "peer": str(given["peer"]), "action": str(given["action"])}
    return _Command(told, time.monotonic() + float(given["expires_in_s"]))
