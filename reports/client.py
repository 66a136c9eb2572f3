"""A reporter: sends the reports of one or many peers to a collector. Standard library only.

    with Reporter("http://127.0.0.1:8600/v1/runs/lab") as reporter:
        header = reporter.header()
        reporter.report({"peer": "17", "interval": 42, "neighbors": ["3"]})

`report` only puts the report into a queue, as it is then, and waits neither for the network nor for
a disk. A thread encodes and sends what is in the queue, and tries again where the collector is
away, busy or restarted.
The memory is bounded: when the queue is full, the oldest reports are dropped, and counted. With a
spool, a file, they are kept on disk instead, and sent by the next reporter with that spool, too.

`pulled` is for peers that a collector asks.
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from .encoding import Lines, Snapshot
from .endpoint import MOST_ANSWER, Endpoint, reason
from .records import Record
from .spool import Spool

_AGAIN = {408, 429, 502, 503, 504}
_OVER = {401, 403, 404}
"""No retry helps: the reporter stops, and keeps counting what it drops."""
_TAKEN, _TOO_LARGE = 202, 413
_MOST_AFTER_S = 3600.0
"""Of `Retry-After`."""
_OF_LINE = 64
"""Bytes of memory that a line takes beside its content."""
_FOR_DISK = 8 * 2**20
"""Bytes of reports that wait at most until the spool has them."""
_TURN, _TURN_S = 32, 0.0001
"""Reports that are encoded at once, and how long the peer has the interpreter then."""


@dataclass(frozen=True)
class Pace:
    """How much is sent at once, and how long is waited."""

    lines: int = 2_000
    """In one request."""
    gather_s: float = 0.2
    """What comes within so long goes into one request."""
    first_wait_s: float = 0.5
    most_wait_s: float = 30.0
    timeout_s: float = 30.0


@dataclass
class Counts:
    """What became of the reports."""

    sent: int = 0
    refused: int = 0
    dropped: int = 0
    """For want of memory or disk, or since the collector refuses this reporter."""
    retries: int = 0


class _Answer(NamedTuple):
    status: int
    """0 = none came."""
    text: bytes
    wait_s: float = 0.0
    """That the collector asks for."""


class Reporter:
    """Sends reports to `<url>/reports`. `token` is the collector's token to report.

    `error` says why nothing is sent any more; `last_problem` what the collector last complained of.
    All methods may be called from any thread.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        memory: int = 32 * 2**20,
        spool: Path | None = None,
        context: ssl.SSLContext | None = None,
        pace: Pace = Pace(),
    ) -> None:
        """`memory`: bytes of reports that wait. `context` checks the collector's certificate.

        Raises: ValueError for what is no URL or no token; OSError where the spool cannot be used.
        """
        self._at, self._pace = Endpoint(url.rstrip("/"), token, context, pace.timeout_s), pace
        self._memory, self._obeys = memory, False
        self._spool = Spool(spool) if spool else None
        self._lines = Lines()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition(threading.Lock())
        self._sleeps = self._closing = self._closed = False
        self._sending: list[bytes] = []
        self._moving = 0
        self.counts = Counts()
        self.error: str | None = None
        self.last_problem: str | None = None
        self._connection: http.client.HTTPConnection | None = None
        works = [self._work, self._move] if spool else [self._work]
        self._threads = [threading.Thread(target=w, name="reporter", daemon=True) for w in works]
        for thread in self._threads:
            thread.start()

    def report(self, record: Record | Mapping[str, Any]) -> None:
        """Queue a record, or a report as a JSON object without `format` and `seq`; what is changed
        in it afterwards is not sent.

        Never raises for the network. What is no JSON raises TypeError or ValueError, or counts as
        refused where only its encoding shows that (as NaN or bytes).
        """
        self.line(self._lines.snapshot(record))

    def line(self, line: bytes) -> None:
        """Report a record that is encoded already, without a line break."""
        with self._changed:
            self._waiting.append(line)
            self._size += len(line) + _OF_LINE
            if self._size > self._memory:
                self._overflow()
            # Waking the threads each time would cost more than all the rest.
            if self._sleeps:
                self._changed.notify_all()

    def _overflow(self) -> None:
        """With a spool there is more memory, since a disk may be slow."""
        if self._spool:
            self._changed.notify_all()
        most = self._memory + (_FOR_DISK if self._spool else 0)
        while self._size > most and len(self._waiting) > 1:
            self._size -= len(self._waiting.popleft()) + _OF_LINE
            self.counts.dropped += 1

    def header(self) -> dict[str, Any]:
        """The run's header, with epoch, interval_us, now_us and fields. Raises: OSError."""
        told = self._at.ask()
        self._obeys = told.get("commands") is True
        if not isinstance(found := told.get("header"), dict):
            raise self._at.no_collector()
        return found

    def commands(self) -> list[dict[str, Any]]:
        """Return the commands to peers, each with its `id`, `peer` and `action` (leave or join);
        none if `header` found a collector that gives no commands. Raises: OSError.
        """
        found = self._at.ask("/commands").get("commands") if self._obeys else []
        if not isinstance(found, list):
            raise self._at.no_collector()
        return found

    def answer(self, number: int, refusal: str | None = None) -> None:
        """Tell that the command of this id was obeyed, or why it was not. Raises: OSError."""
        told = {"obeyed": True} if refusal is None else {"obeyed": False, "reason": refusal}
        self._at.ask(f"/commands/{number}", told)

    @property
    def waiting(self) -> int:
        """Reports in memory that are not acknowledged yet."""
        with self._changed:
            return len(self._waiting) + len(self._sending) + self._moving

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing waits. Returns whether that is so."""
        with self._changed:
            return (
                self._changed.wait_for(lambda: self._is_idle or self.error is not None, timeout_s)
                and self._is_idle
            )

    @property
    def _is_idle(self) -> bool:
        on_disk = self._spool is not None and not self._spool.is_empty
        return not (self._waiting or self._sending or self._moving or on_disk)

    def close(self, timeout_s: float = 30.0) -> None:
        """Send what waits, for so long, and end. With a spool the rest is kept."""
        self.flush(timeout_s)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(self._pace.timeout_s)
        self._drop_connection()
        with self._changed:
            rest = [*self._sending, *self._waiting]  # a thread may still hang in the network
            self._waiting.clear()
            self._closed = True
        if self._spool:
            self._keep(rest)
            self._spool.close()
            self._spool = None
        else:
            self.counts.dropped += len(rest)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _move(self) -> None:
        """Move the oldest reports to the spool when the memory is full, until the end."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._size > self._memory)
                if self._closing:
                    return
                lines = self._popped(len(self._waiting) // 2)
                self._moving = len(lines)
            self._keep(lines)
            with self._changed:
                self._moving = 0
                self._changed.notify_all()

    def _keep(self, lines: list[bytes]) -> None:
        assert self._spool
        try:
            self._spool.add(self._encoded(lines))
        except OSError as error:
            self.counts.dropped += len(lines)
            self.last_problem = f"the spool cannot be written: {error}"

    def _popped(self, count: int) -> list[bytes]:
        lines = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        self._size -= sum(map(len, lines)) + _OF_LINE * len(lines)
        return lines

    def _work(self) -> None:
        """Send, until the end."""
        while found := self._next():
            waited, spool = found
            lines = self._encoded(waited)
            rest = self._send(lines) if lines else []
            with self._changed:
                if self._closed:
                    return
                if spool and rest:
                    spool.back()
                elif spool:
                    spool.sent()
                else:
                    self._waiting.extendleft(reversed(rest))
                    self._size += sum(map(len, rest)) + _OF_LINE * len(rest)
                self._sending = []
                self._changed.notify_all()

    def _next(self) -> tuple[list[bytes], Spool | None] | None:
        """Return the content of the next request, and the spool if it comes from there: that is
        older than what is in memory. Null at the end.
        """
        spool, pace = self._spool, self._pace
        with self._changed:
            self._sleeps = True
            self._changed.wait_for(
                lambda: (
                    self._closing
                    or (not self.error and (self._waiting or (spool and spool.has_more)))
                )
            )
            self._sleeps = False
            if not self._closing and len(self._waiting) < pace.lines:
                self._changed.wait_for(lambda: self._closing, pace.gather_s)
            if self._closing:
                return None
            if spool is None or not spool.has_more:
                self._sending = self._popped(pace.lines)
                return self._sending, None
        return spool.take(pace.lines), spool

    def _encoded(self, waited: list[bytes]) -> list[bytes]:
        """The lines of what waited."""
        lines = []
        for number, one in enumerate(waited, 1):
            if not isinstance(one, Snapshot):
                lines.append(one)
                continue
            try:
                lines.append(one.line())
            except (TypeError, ValueError, RecursionError) as error:
                self.counts.refused += 1
                self.last_problem = f"a report is not JSON: {error}"
            # A thread keeps the interpreter for 5 ms where nothing makes it wait.
            if number % _TURN == 0:
                time.sleep(_TURN_S)
        return lines

    def _send(self, lines: list[bytes]) -> list[bytes]:
        """Until they are acknowledged or refused for good. Returns what is neither at the end."""
        wait = self._pace.first_wait_s
        while self.error is None and not self._closing:
            status, text, after = self._post(lines)
            if status == _TAKEN:
                self._count(json.loads(text))
                return []
            self.last_problem = f"{status}: {reason(text)}" if status else reason(text)
            if status == _TOO_LARGE and len(lines) > 1:
                half = len(lines) // 2
                return self._send(lines[:half]) + self._send(lines[half:])
            if status in _OVER:
                self.error = self.last_problem
            elif status and status not in _AGAIN:
                self.counts.refused += len(lines)
                return []
            else:
                self.counts.retries += 1
                self._pause(max(after, random.uniform(wait / 2, wait)))
                wait = min(2 * wait, self._pace.most_wait_s)
        return lines

    def _count(self, told: dict[str, Any]) -> None:
        self.counts.sent += told["taken"]
        self.counts.refused += told["refused"]
        for line in told["lines"][:1]:
            self.last_problem = str(line["reason"])

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, seconds)

    def _post(self, lines: Iterable[bytes]) -> _Answer:
        body = gzip.compress(b"\n".join(lines) + b"\n", 1)
        headers = {
            "content-type": "application/x-ndjson",
            "content-encoding": "gzip",
            **self._at.headers,
        }
        while True:
            is_fresh = self._connection is None
            try:
                return self._exchange(body, headers)
            except ConnectionError as error:
                self._drop_connection()
                if is_fresh:  # else the collector may only have closed an idle connection
                    return _Answer(0, f"the connection failed: {error}".encode())
            except (OSError, http.client.HTTPException) as error:
                self._drop_connection()
                return _Answer(0, f"no answer: {error}".encode())

    def _exchange(self, body: bytes, headers: Mapping[str, str]) -> _Answer:
        if self._connection is None:
            self._connection = self._at.connect()
        self._connection.request("POST", f"{self._at.path}/reports", body, headers)
        answer = self._connection.getresponse()
        text = answer.read(MOST_ANSWER)
        if answer.will_close or not answer.isclosed():
            self._drop_connection()
        if answer.status == _TAKEN and not _is_told(text):
            return _Answer(0, b"what answers is no collector")
        return _Answer(answer.status, text, _seconds(answer.headers.get("retry-after", "0")))

    def _drop_connection(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None


def _is_told(text: bytes) -> bool:
    with suppress(ValueError, RecursionError, KeyError, TypeError):
        told = json.loads(text)
        for line in told["lines"]:
            line["reason"]
        return type(told["taken"]) is type(told["refused"]) is int
    return False


def _seconds(text: str) -> float:
    """Of `Retry-After`: a number, or a time; an hour at most."""
    found = 0.0
    if text.isdecimal():
        found = float(text)
    else:
        with suppress(ValueError, TypeError, OverflowError):
            found = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    return min(max(found, 0.0), _MOST_AFTER_S)
