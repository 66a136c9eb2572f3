"""A reporter: sends the reports of one or many peers to a collector. Standard library only.

    with Reporter("http://127.0.0.1:8600/v1/runs/lab") as reporter:
        header = reporter.header()
        reporter.report({"peer": "17", "interval": 42, "neighbors": ["3"]})

`report` only puts the report into a queue, and never waits for the network. A thread sends what
is in the queue, and tries again where the collector is away, busy or restarted. The memory is
bounded: when the queue is full, the oldest reports are dropped, and counted. With a spool, a file,
they are kept on disk instead, and sent by the next reporter with that spool, too.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from ingest.reports.records import Record, Report

_AGAIN = {408, 429, 500, 502, 503, 504}
_OVER = {401, 403, 404}
"""No retry helps: the reporter stops, and keeps counting what it drops."""
_TOO_LARGE = 413
_MOST_LINE = 2**20
"""Bytes of a line that a collector takes."""


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
    """For want of memory, or since the collector refuses this reporter."""
    retries: int = 0


class Reporter:
    """Sends reports to `<url>/reports`. `token` is the collector's token to report.

    `error` says why nothing is sent any more; `last_problem` what the collector last complained of.
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
        """`memory`: bytes of reports that wait. `context` checks the collector's certificate."""
        self._url, self._token, self._pace = urlsplit(url.rstrip("/")), token, pace
        self._memory, self._context = memory, context
        self._spool = _Spool(spool) if spool else None
        self._spooled = self._spool is not None
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._closing = False
        self._seq = time.time_ns() // 1_000
        self._busy = 0
        self.counts = Counts()
        self.error: str | None = None
        self.last_problem: str | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._work, name="reporter", daemon=True)
        self._thread.start()

    def report(self, record: Record | Mapping[str, Any]) -> None:
        """Queue a record, or a report as a JSON object without `format` and `seq`. Never blocks for
        long, never raises for the network. `seq` grows, also over restarts of the reporter.
        """
        value = record.to_json() if isinstance(record, Report) else record
        if isinstance(value, Mapping):
            self._seq += 1
            value = {"format": Report.format, "seq": self._seq, **value}
        else:
            value = value.to_json()
        self.line(json.dumps(value, separators=(",", ":"), allow_nan=False).encode())

    def line(self, line: bytes) -> None:
        """As `report`, for a record that is encoded already."""
        line = line.strip()
        with self._changed:
            self._waiting.append(line)
            self._size += len(line)
            while self._size > self._memory and len(self._waiting) > 1:
                self._let_go(self._waiting.popleft())
            self._changed.notify_all()

    def _let_go(self, line: bytes) -> None:
        self._size -= len(line)
        if self._spool:
            self._spool.add([line])
            self._spooled = True
        else:
            self.counts.dropped += 1

    def header(self) -> dict[str, Any]:
        """The run's header, with epoch, interval_us, now_us and fields. Raises: OSError."""
        connection = self._connect()
        try:
            connection.request("GET", self._url.path, headers=self._headers())
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise OSError(f"the collector answers {answer.status}: {_reason(text)}")
            found: dict[str, Any] = json.loads(text)["header"]
            return found
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"no collector answers at {self._url.geturl()}: {error}") from error
        finally:
            connection.close()

    @property
    def waiting(self) -> int:
        """Reports that are not acknowledged yet."""
        with self._changed:
            return len(self._waiting) + self._busy

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing waits. Returns whether that is so."""
        with self._changed:
            return (
                self._changed.wait_for(lambda: self._is_idle or self.error is not None, timeout_s)
                and self._is_idle
            )

    @property
    def _is_idle(self) -> bool:
        return not (self._waiting or self._busy or self._spooled)

    def close(self, timeout_s: float = 30.0) -> None:
        """Send what waits, for so long, and end. With a spool the rest is kept."""
        self.flush(timeout_s)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(self._pace.timeout_s)
        self._drop_connection()
        with self._changed:
            if self._spool:
                self._spool.add(self._waiting)
                self._spool.close()
                self._spool = None
            else:
                self.counts.dropped += len(self._waiting)
            self._waiting.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _work(self) -> None:
        while lines := self._next():
            try:
                self._send(lines)
            finally:
                with self._changed:
                    self._busy = 0
                    self._changed.notify_all()

    def _next(self) -> list[bytes]:
        """What goes into the next request; none at the end."""
        with self._changed:
            self._unspool()
            self._changed.wait_for(lambda: self._closing or (self._waiting and not self.error))
            if not self._closing and len(self._waiting) < self._pace.lines:
                self._changed.wait_for(
                    lambda: len(self._waiting) >= self._pace.lines or self._closing,
                    self._pace.gather_s,
                )
            if self._closing:
                return []
            count = min(len(self._waiting), self._pace.lines)
            lines = [self._waiting.popleft() for _ in range(count)]
            self._size -= sum(map(len, lines))
            self._busy = count
            return lines

    def _unspool(self) -> None:
        """Where nothing else waits, what is on disk goes on."""
        if self._spool and self._spooled and not self._waiting:
            self._spool.sent()
            found = self._spool.take(self._pace.lines)
            self._waiting.extend(found)
            self._size += sum(map(len, found))
            self._spooled = bool(found)

    def _send(self, lines: list[bytes]) -> None:
        """Until they are acknowledged or refused for good; back into the queue at the end."""
        wait = self._pace.first_wait_s
        while self.error is None:
            status, text, after = self._post(lines)
            if status == 202:
                told = json.loads(text)
                self.counts.sent += told["taken"]
                self.counts.refused += told["refused"]
                if told["lines"]:
                    self.last_problem = str(told["lines"][0]["reason"])
                return
            self.last_problem = f"{status}: {_reason(text)}"
            if status == _TOO_LARGE and len(lines) > 1:
                half = len(lines) // 2
                self._send(lines[:half])
                self._send(lines[half:])
                return
            if status in _OVER:
                self.error = self.last_problem
                break
            if status and status not in _AGAIN:
                self.counts.refused += len(lines)
                return
            self.counts.retries += 1
            self._pause(max(after, random.uniform(wait / 2, wait)))
            wait = min(2 * wait, self._pace.most_wait_s)
            if self._closing:
                self._put_back(lines)
                return
        self._put_back(lines)

    def _put_back(self, lines: list[bytes]) -> None:
        with self._changed:
            self._waiting.extendleft(reversed(lines))
            self._size += sum(map(len, lines))

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, seconds)

    def _post(self, lines: list[bytes]) -> tuple[int, bytes, float]:
        """Status (0 = none), answer, and how long the collector asks to wait."""
        body = gzip.compress(b"\n".join(lines) + b"\n", 1)
        try:
            if self._connection is None:
                self._connection = self._connect()
            headers = {"content-type": "application/x-ndjson", **self._headers()}
            self._connection.request("POST", f"{self._url.path}/reports", body, headers)
            answer = self._connection.getresponse()
            text = answer.read()
            after = answer.headers.get("retry-after", "0")
            if answer.will_close:
                self._drop_connection()
            return answer.status, text, float(after) if after.isdecimal() else 0.0
        except (OSError, http.client.HTTPException) as error:
            self._drop_connection()
            return 0, str(error).encode(), 0.0

    def _drop_connection(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _connect(self) -> http.client.HTTPConnection:
        place, seconds = self._url.netloc, self._pace.timeout_s
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(place, timeout=seconds, context=self._context)
        return http.client.HTTPConnection(place, timeout=seconds)

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token}"} if self._token else {}


class _Spool:
    """Reports on disk. What was read is removed when all of it is acknowledged: a kill sends some
    of it twice, and loses none.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b")
        self._at = 0
        size = self._file.seek(0, os.SEEK_END)
        tail = max(size - _MOST_LINE, 0)
        self._file.seek(tail)  # a kill may have left half a line
        self._file.truncate(tail + self._file.read().rfind(b"\n") + 1)

    def add(self, lines: Iterable[bytes]) -> None:
        """Add lines, as the operating system holds them: a power cut may lose the last ones."""
        self._file.write(b"".join(line + b"\n" for line in lines))
        self._file.flush()

    def take(self, count: int) -> list[bytes]:
        """The next lines."""
        self._file.seek(self._at)
        lines = [*islice(self._file, count)]
        self._at += sum(map(len, lines))
        return [line[:-1] for line in lines]

    def sent(self) -> None:
        """All that was taken is acknowledged."""
        if self._at and self._file.seek(0, os.SEEK_END) == self._at:
            self._file.truncate(0)
            self._at = 0

    def close(self) -> None:
        """Keep what is there."""
        self._file.close()


def _reason(text: bytes) -> str:
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text)["error"])
    return text[:200].decode("utf-8", "replace")
