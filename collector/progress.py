"""What is told about a collection: its progress, a row of metrics per interval, and counters.

Rows are kept for those who read late or come back; who reads too slowly gets the newest row.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from vizpub.collector.intake import Intake

_KEPT = 512
"""Rows that are kept for readers who come back."""
_BEHIND = 64
"""Rows that a reader may be behind before it gets the newest one instead."""
_SILENT_S = 30.0
Row = dict[str, Any]


class Progress:
    """The progress of the intake, and of the process that makes the run."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.began = time.time()
        self.draining = False
        self.batches = 0
        self.consumed = intake.log.end - intake.log.size
        """The position of the log that the run has."""
        self.done: int | None = None
        """The last interval that the run has."""
        self.loaded: int | None = None
        """The last interval that Neo4j has."""
        self.seconds = 0.0
        """Of the last append."""
        self.run_late = 0
        self.settled = False
        self.error: str | None = None
        """Why nothing is appended now."""
        self.damaged: str | None = None
        """What of the log cannot be read: then nothing is taken until that is mended."""
        self.load_error: str | None = None
        self.alive = False
        """The process that makes the run has a Spark."""
        self.heard = 0.0
        """When its Java answered last, on the monotonic clock."""
        self.topic: Callable[[], Row] = dict
        """The topic of Kafka that is read, and how far; empty without one."""
        self.disk = 0
        """Bytes of the log and of all batches."""
        self.posts = self.post_errors = 0
        self.rows: deque[Row] = deque(maxlen=_KEPT)
        self.counted: dict[str, int] = {}
        """Publications, receptions and first receptions since this process began, as far as they
        are known."""
        self._more = asyncio.Event()
        self._closed_at: dict[int, float] = {}
        self.lag_s = 0.0
        """From the closing of the last interval in the run to its commit."""

    def closed(self, interval: int) -> None:
        """The intake closed it."""
        self._closed_at[interval] = time.monotonic()
        self._wake()

    def committed(self, told: Row) -> None:
        """A batch is in the run."""
        self.batches, self.consumed, self.done = told["number"], told["position"], told["closed"]
        self.seconds, self.run_late = told["seconds"], told["late"]
        self.error = None
        ready = [i for i in self._closed_at if i <= told["closed"]]
        if ready:
            self.lag_s = time.monotonic() - min(self._closed_at[i] for i in ready)
        for interval in ready:
            del self._closed_at[interval]
        self.measured(told["rows"])

    def measured(self, rows: Sequence[Row]) -> None:
        """The run has these."""
        self.rows.extend(rows)
        for row in rows:
            for name, value in _counts(row):
                if value is not None:  # unknown is not 0
                    self.counted[name] = self.counted.get(name, 0) + value
        self._wake()

    def drain(self) -> None:
        """Nothing is taken any more; readers of events are let go."""
        self.draining = True
        self._wake()

    def _wake(self) -> None:
        before, self._more = self._more, asyncio.Event()
        before.set()

    @property
    def has_spark(self) -> bool:
        """Whether Spark runs, and its Java has answered lately."""
        return self.alive and time.monotonic() - self.heard < _SILENT_S

    @property
    def backlog(self) -> int:
        """Bytes of the log that the run does not have."""
        return self._intake.log.end - self.consumed

    @property
    def lag(self) -> float:
        """Seconds that the oldest closed interval has waited for its commit."""
        return time.monotonic() - min(self._closed_at.values()) if self._closed_at else 0.0

    def told(self) -> Row:
        """All of it, as JSON."""
        intake, closing, topic = self._intake, self._intake.closing, self.topic()
        return {
            "state": self.state,
            "peers": len(closing.newest) - len(closing.left),
            "median": closing.median(),
            "reached": closing.reached,
            "closed": closing.closed,
            "in_run": self.done,
            "in_neo4j": self.loaded,
            "waited_s": round(closing.waited(time.monotonic()), 3),
            "lag_s": round(max(self.lag, self.lag_s if not self._closed_at else 0), 3),
            "append_s": self.seconds,
            "batches": self.batches,
            "log_bytes": self.backlog,
            "log_bytes_most": intake.limits.log,
            "disk_bytes": self.disk,
            "reports": intake.counts["reports"],
            "late": intake.counts["late"],
            "refused": intake.counts["refused"],
            "late_peers": dict(intake.of_peers["late"]),
            "refused_peers": dict(intake.of_peers["refused"]),
            "error": self.error,
            "load_error": self.load_error,
            "kafka_lag": topic.get("lag"),
            "kafka_error": topic.get("error"),
        }

    @property
    def state(self) -> str:
        """In a word."""
        if self.settled:
            return "ended"
        if self._intake.ended:
            return "ending"
        return "pausing" if self.draining else "collecting"

    async def events(self, after: int | None, status_s: float = 5.0) -> AsyncGenerator[Row]:
        """Rows of intervals after one, as they come, and the progress behind them, at the end, and
        again and again: readers take a long silence for the end.
        """
        clock = asyncio.get_running_loop().time
        yield {"event": "status", **self.told()}
        due, last = clock() + status_s, -1 if after is None else after
        if after is None and self.rows:
            last = self.rows[-1]["interval"] - 1
        while True:
            # What comes before the end is told, too.
            more, is_over = self._more, self.draining
            new = [row for row in self.rows if row["interval"] > last]
            for row in new if len(new) <= _BEHIND else new[-1:]:
                last = row["interval"]
                yield {"event": "interval", **row}
            if new or is_over or clock() >= due:
                yield {"event": "status", **self.told()}
                due = clock() + status_s
            if is_over:
                return
            # Closed intervals wake it, too, long before the run has them.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await more.wait()


def _counts(row: Row) -> Iterator[tuple[str, int | None]]:
    yield "publications", row.get("publications")
    yield "receptions", (arrived := row.get("receptions"))
    again = row.get("duplicates")
    yield "first receptions", None if arrived is None or again is None else arrived - again
