"""A reporter: sends the reports of one or many peers to a collector. Standard library only.

    with Reporter("http://127.0.0.1:8600/v1/runs/lab") as reporter:
        header = reporter.header()
        reporter.report({"peer": "17", "interval": 42, "neighbors": ["3"]})

`report` only queues the report as it is then, and waits neither for the network nor for a disk. A
thread encodes and sends queued reports, and retries if the collector is down, busy or restarted.
Memory is bounded: when the queue is full, the oldest reports are dropped and counted. With a spool,
a file, they are moved to disk instead, and a later reporter with that spool sends them, too.

A run may have several collectors: the reporter sends to the first, and to the next where that does
not take the reports.

`pulled` is for peers that a collector asks.
"""

from __future__ import annotations

import json
import random
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .collectors import TAKEN, Collectors
from .encoding import LineEncoder, Snapshot
from .endpoint import Endpoint, reason
from .records import Record
from .spool import Spool

_AGAIN = {408, 429, 502, 503, 504}
_OVER = {401, 403, 404}
"""Retrying does not help: if all collectors answer so, the reporter stops, and only counts what it
drops.
"""
_TOO_LARGE = 413
_OF_LINE = 64
"""Bytes of memory that a line takes in addition to its content."""
_FOR_DISK = 8 * 2**20
"""Additional bytes of reports that may wait if there is a spool: a disk may be slow."""
_TURN, _TURN_S = 32, 0.0001
"""Reports that are encoded at once, and the pause in which the peer gets the interpreter."""


@dataclass(frozen=True)
class Pace:
    """The size of requests, and the times to wait."""

    lines: int = 2_000
    """Lines in one request."""
    gather_s: float = 0.2
    """Reports of this time go into one request."""
    first_wait_s: float = 0.5
    most_wait_s: float = 30.0
    timeout_s: float = 30.0


@dataclass
class Counts:
    """The outcomes of the reports."""

    sent: int = 0
    refused: int = 0
    dropped: int = 0
    """Because memory or disk was full, or the collector refuses this reporter."""
    retries: int = 0


class Reporter:
    """Sends reports to `<url>/reports`. `token` is the collector's token to report.

    Several URLs are those of collectors that share a run and the token.

    `error` is the reason why nothing is sent any more, `last_problem` the collector's last
    complaint. All methods may be called from any thread.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | None = None,
        *,
        memory: int = 32 * 2**20,
        spool: Path | None = None,
        context: ssl.SSLContext | None = None,
        pace: Pace = Pace(),
    ) -> None:
        """Start. `memory`: bytes of waiting reports. `context` checks the collector's certificate.

        Raises: ValueError for an invalid URL or token; OSError if the spool cannot be used.
        """
        urls = (url,) if isinstance(url, str) else dict.fromkeys(url)
        self._collectors = Collectors(
            [Endpoint(each.rstrip("/"), token, context, pace.timeout_s) for each in urls]
        )
        self._pace = pace
        self._memory, self._obeys = memory, False
        self._spool = Spool(spool) if spool else None
        self._lines = LineEncoder()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition(threading.Lock())
        self._sleeps = self._closing = self._closed = False
        self._sending: list[bytes] = []
        self._moving = 0
        self.counts = Counts()
        self.error: str | None = None
        self.last_problem: str | None = None
        works = [self._work, self._move_to_spool] if spool else [self._work]
        self._threads = [threading.Thread(target=w, name="reporter", daemon=True) for w in works]
        for thread in self._threads:
            thread.start()

    def report(self, record: Record | Mapping[str, Any]) -> None:
        """Queue a record, or a report as a JSON object without `format` and `seq`; later changes
        of the object are not sent.

        Never raises for the network. Raises TypeError or ValueError if the object is not JSON, or
        counts it as refused if only its encoding shows that (as for NaN or bytes).
        """
        self.line(self._lines.snapshot(record))

    def line(self, line: bytes) -> None:
        """Report a record that is encoded already, without a line break."""
        with self._changed:
            self._waiting.append(line)
            self._size += len(line) + _OF_LINE
            most = self._memory + (_FOR_DISK if self._spool else 0)
            # Waking the threads each time would cost more than all the rest.
            if self._sleeps or (self._spool and self._size > self._memory):
                self._changed.notify_all()
            while self._size > most and len(self._waiting) > 1:
                self._size -= len(self._waiting.popleft()) + _OF_LINE
                self.counts.dropped += 1

    def header(self) -> dict[str, Any]:
        """Return the run's header, with epoch, interval_us, now_us and fields, from the first
        collector that answers. Raises: OSError.
        """
        answer = self._collectors.ask_any()
        self._obeys = answer.get("commands") is True
        header: dict[str, Any] = answer["header"]
        return header

    def commands(self) -> list[dict[str, Any]]:
        """Return the commands to peers, each with its `id`, `peer` and `action` (leave or join);
        none if `header` showed that the collector gives no commands. Raises: OSError.
        """
        commands = self._collectors.current.ask("/commands").get("commands") if self._obeys else []
        if not isinstance(commands, list):
            raise self._collectors.current.no_collector()
        return commands

    def answer(self, number: int, refusal: str | None = None) -> None:
        """Answer the command of this id: it was obeyed, or the reason why not. Raises: OSError."""
        answer = {"obeyed": True} if refusal is None else {"obeyed": False, "reason": refusal}
        self._collectors.current.ask(f"/commands/{number}", answer)

    @property
    def waiting(self) -> int:
        """The number of reports in memory that are not acknowledged yet."""
        with self._changed:
            return len(self._waiting) + len(self._sending) + self._moving

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until all reports are sent. Returns False if they are not."""
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
        """Send what waits, for at most this time, and end. A spool keeps the rest."""
        self.flush(timeout_s)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(self._pace.timeout_s)
        self._collectors.drop_connection()
        with self._changed:
            rest = [*self._sending, *self._waiting]  # a thread may still hang in the network
            self._waiting.clear()
            self._closed = True
        if self._spool:
            self._add_to_spool(rest)
            self._spool.close()
            self._spool = None
        else:
            self.counts.dropped += len(rest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _move_to_spool(self) -> None:
        """Move the oldest reports to the spool whenever the memory is full, until the end."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._size > self._memory)
                if self._closing:
                    return
                lines = self._pop(len(self._waiting) // 2)
                self._moving = len(lines)
            self._add_to_spool(lines)
            with self._changed:
                self._moving = 0
                self._changed.notify_all()

    def _add_to_spool(self, lines: list[bytes]) -> None:
        assert self._spool
        try:
            self._spool.add(self._encode(lines))
        except OSError as error:
            self.counts.dropped += len(lines)
            self.last_problem = f"the spool cannot be written: {error}"

    def _pop(self, count: int) -> list[bytes]:
        lines = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        self._size -= sum(map(len, lines)) + _OF_LINE * len(lines)
        return lines

    def _work(self) -> None:
        """Send requests, until the end or until the spool cannot be read."""
        try:
            self._send_requests()
        except OSError as error:
            with self._changed:
                self.error = f"the spool cannot be read: {error}"
                self._changed.notify_all()

    def _send_requests(self) -> None:
        while request := self._next_request():
            unencoded, spool = request
            lines = self._encode(unencoded)
            rest = self._send(lines) if lines else []
            with self._changed:
                if self._closed:
                    return
                if spool and rest:
                    spool.put_back()
                elif spool:
                    spool.confirm()
                else:
                    self._waiting.extendleft(reversed(rest))
                    self._size += sum(map(len, rest)) + _OF_LINE * len(rest)
                self._sending = []
                self._changed.notify_all()

    def _next_request(self) -> tuple[list[bytes], Spool | None] | None:
        """Return the content of the next request, and the spool if it comes from there, which has
        older reports than the memory. Null at the end.
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
                self._sending = self._pop(pace.lines)
                return self._sending, None
        return spool.take(pace.lines), spool

    def _encode(self, waiting: list[bytes]) -> list[bytes]:
        """Return the lines of waiting reports, without those that are not JSON."""
        lines = []
        for number, report in enumerate(waiting, 1):
            if not isinstance(report, Snapshot):
                lines.append(report)
                continue
            try:
                lines.append(report.encode())
            except (TypeError, ValueError, RecursionError) as error:
                self.counts.refused += 1
                self.last_problem = f"a report is not JSON: {error}"
            # A thread keeps the interpreter for 5 ms where nothing makes it wait.
            if number % _TURN == 0:
                time.sleep(_TURN_S)
        return lines

    def _send(self, lines: list[bytes]) -> list[bytes]:
        """Send lines until they are acknowledged or refused for good. Returns those that are
        neither at the end.
        """
        wait, overs, failures = self._pace.first_wait_s, 0, 0
        while self.error is None and not self._closing:
            status, text, retry_after_s = self._collectors.post(lines)
            if status == TAKEN:
                outcome = json.loads(text)
                self.counts.sent += outcome["taken"]
                self.counts.refused += outcome["refused"]
                if refusals := outcome["lines"]:
                    self.last_problem = str(refusals[0]["reason"])
                return []
            self.last_problem = f"{status}: {reason(text)}" if status else reason(text)
            if status == _TOO_LARGE and len(lines) > 1:
                half = len(lines) // 2
                return self._send(lines[:half]) + self._send(lines[half:])
            overs = overs + 1 if status in _OVER else 0
            if overs == len(self._collectors.endpoints):
                self.error = self.last_problem
            elif status and status not in _AGAIN | _OVER:
                self.counts.refused += len(lines)
                return []
            else:
                self.counts.retries += 1
                failures += 1
                self._collectors.turn_to_next()
                if failures % len(self._collectors.endpoints) == 0:  # none takes the lines now
                    self._pause(max(retry_after_s, random.uniform(wait / 2, wait)))
                    wait = min(2 * wait, self._pace.most_wait_s)
        return lines

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, seconds)
