"""Commands from a collector that asks for reports, and the peers' answers. Standard library only.

The collector sends all waiting commands each time, until it has their answers. So nothing is lost
with a connection, and a command that it no longer sends is over.
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
    content: dict[str, Any]
    """`id`, `peer` and `action`."""
    expires: float
    """On the monotonic clock."""
    answer: dict[str, Any] | None = None


class CommandInbox:
    """The commands that the collector sent last. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._commands: dict[int, _Command] = {}
        self.obeyed = False
        """True once the program has asked for commands; before, none are accepted."""

    def take(self, body: bytes) -> bytes:
        """Take all waiting commands from a collector's request. Returns their answers as JSON.

        Raises: ValueError if the body is not a list of commands.
        """
        try:
            commands = [
                _Command(
                    {"id": int(one["id"]), "peer": str(one["peer"]), "action": str(one["action"])},
                    time.monotonic() + float(one["expires_in_s"]),
                )
                for one in json.loads(body)["commands"]
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{NO_COMMANDS}: {error}") from error
        with self._lock:
            previous, self._commands = self._commands, {}
            for command in commands:
                number = command.content["id"]
                earlier = previous.get(number)
                # Another collector may have given another command with this id.
                is_same = earlier is not None and earlier.content == command.content
                self._commands[number] = earlier if earlier and is_same else command
            answers = [one.answer for one in self._commands.values() if one.answer]
        return json.dumps({"answers": answers}).encode()

    def waiting(self) -> list[dict[str, Any]]:
        """Return the commands without an answer, in order."""
        self.obeyed, now = True, time.monotonic()
        with self._lock:
            waiting = (one for one in self._commands.values() if one.answer is None)
            return [dict(one.content) for one in waiting if now < one.expires]

    def answer(self, number: int, refusal: str | None) -> None:
        """Answer a command, unless it has an answer already or is over."""
        answer = {"id": number, "obeyed": refusal is None, "reason": refusal}
        with self._lock:
            command = self._commands.get(number)
            if command and command.answer is None:
                command.answer = answer
