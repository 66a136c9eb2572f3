"""The collectors of a run, to one of which a reporter posts. Standard library only."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from .endpoint import MOST_ANSWER, Endpoint

TAKEN = 202
_MOST_RETRY_AFTER_S = 3600.0


class Answer(NamedTuple):
    """An answer to a request."""

    status: int
    """0 = no answer."""
    text: bytes
    wait_s: float = 0.0
    """The time that the collector asks to wait."""


class Collectors:
    """Collectors that share a run, with a connection to one of them. `ask_any` may be called from
    any thread, all else from one.
    """

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        """Begin with the first. Raises: ValueError without any."""
        if not endpoints:
            raise ValueError("give the URL of a run")
        self.endpoints, self.current = endpoints, endpoints[0]
        self._connection: http.client.HTTPConnection | None = None

    def ask_any(self) -> dict[str, Any]:
        """Return the run's header and progress, from the first that answers. Raises: OSError."""
        for endpoint in self.endpoints:
            try:
                answer = endpoint.ask()
                if isinstance(answer.get("header"), dict):
                    return answer
                raise endpoint.no_collector()
            except OSError as error:
                failure = error
        raise failure

    def post(self, lines: list[bytes]) -> Answer:
        """Post lines to the current collector, and return its answer."""
        body = gzip.compress(b"\n".join(lines) + b"\n", 1)
        headers = {
            "content-type": "application/x-ndjson",
            "content-encoding": "gzip",
            **self.current.headers,
        }
        while True:
            is_fresh = self._connection is None
            try:
                self._connection = self._connection or self.current.connect()
                self._connection.request("POST", f"{self.current.path}/reports", body, headers)
                answer = self._connection.getresponse()
                text = answer.read(MOST_ANSWER)
                break
            except ConnectionError as error:
                self.drop_connection()
                if is_fresh:  # else the collector may only have closed an idle connection
                    return Answer(0, f"the connection failed: {error}".encode())
            except (OSError, http.client.HTTPException) as error:
                self.drop_connection()
                return Answer(0, f"no answer: {error}".encode())
        if answer.will_close or not answer.isclosed():
            self.drop_connection()
        if answer.status == TAKEN and not _is_acceptance(text):
            return Answer(0, str(self.current.no_collector()).encode())
        return Answer(answer.status, text, _retry_after_s(answer.headers.get("retry-after", "0")))

    def turn_to_next(self) -> None:
        """Post to the next collector from now on, if there are several."""
        if len(self.endpoints) > 1:
            self.drop_connection()
            following = self.endpoints.index(self.current) + 1
            self.current = self.endpoints[following % len(self.endpoints)]

    def drop_connection(self) -> None:
        """Close the connection, if there is one."""
        if self._connection:
            self._connection.close()
            self._connection = None


def _is_acceptance(text: bytes) -> bool:
    """Return True if a text is a collector's answer to reports."""
    with suppress(ValueError, RecursionError, KeyError, TypeError):
        outcome = json.loads(text)
        for line in outcome["lines"]:
            line["reason"]
        return type(outcome["taken"]) is type(outcome["refused"]) is int
    return False


def _retry_after_s(text: str) -> float:
    """Return the seconds that `Retry-After`, a number or a time, asks to wait; an hour at most."""
    seconds = 0.0
    with suppress(ValueError, TypeError, OverflowError):
        if text.isdecimal():
            seconds = float(text)
        else:
            seconds = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _MOST_RETRY_AFTER_S)
