"""The public state of a collection: its progress, a row of metrics per interval, and counters.

Rows are kept for readers that come late or come back; a reader that is too slow gets the newest
row.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any

from vizpub.collector.intake import Intake

_KEPT_ROWS = 512
"""Rows to keep for readers that come back."""
_MOST_BEHIND = 64
"""The most rows that a reader gets late; instead of more, it gets the newest one."""
_SILENT_S = 30.0
_LEFT = ("left_intervals", "left_rows", "left_bytes")
Row = dict[str, Any]


class CollectionProgress:
    """The progress of the intake, and of the process that makes the run."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.began = time.time()
        self.draining = False
        self.batches = 0
        self.consumed = intake.log.end - intake.log.size
        """The position in the log up to which the run has all."""
        self.done: int | None = None
        """The last interval that the run has."""
        self.loaded: int | None = None
        """The last interval that Neo4j has."""
        self.seconds = 0.0
        """The duration of the last append."""
        self.run_late = 0
        self.left: Sequence[int] | None = None
        """The intervals, rows and bytes that have left the run; null = none, or not known yet."""
        self.settled = False
        self.error: str | None = None
        """The reason why nothing is appended now."""
        self.damaged: str | None = None
        """The part of the log that cannot be read: nothing is accepted until it is repaired."""
        self.load_error: str | None = None
        self.alive = False
        """True if the process that makes the run has a Spark."""
        self.heard = 0.0
        """The time of its Java's last answer, on the monotonic clock."""
        self.topic: Callable[[], Row] = dict
        """Returns the state of the topic of Kafka that is read; empty without one."""
        self.disk = 0
        """Bytes of the log and of all batches."""
        self.posts = 0
        self.rows: deque[Row] = deque(maxlen=_KEPT_ROWS)
        self.counted: dict[str, int] = {}
        """The known publications, receptions and first receptions since this process began."""
        self.control: dict[str, Counter[str]] = {"sent": Counter(), "received": Counter()}
        """The known control messages of gossipsub since then, by kind."""
        self._more = asyncio.Event()
        self._closed_at: dict[int, float] = {}
        self.lag_s = 0.0
        """From the closing of the last interval in the run to its commit."""

    def note_closed(self, interval: int) -> None:
        """Note that the intake closed an interval."""
        self._closed_at[interval] = time.monotonic()
        self._wake()

    def note_commit(self, batch: Row) -> None:
        """Note that a process has appended a batch to the run."""
        self.batches, self.consumed, self.done = batch["number"], batch["position"], batch["closed"]
        self.seconds, self.run_late = batch["seconds"], batch["late"]
        self.left = batch["left"]
        self.error = None
        ready = [i for i in self._closed_at if i <= batch["closed"]]
        if ready:
            self.lag_s = time.monotonic() - min(self._closed_at[i] for i in ready)
        for interval in ready:
            del self._closed_at[interval]
        for way, counts in batch["control"].items():
            self.control[way].update(counts)
        self.add_rows(batch["rows"])

    def add_rows(self, rows: Sequence[Row]) -> None:
        """Add rows of the run's metrics, for readers of events."""
        self.rows.extend(rows)
        for row in rows:
            receptions, duplicates = row.get("receptions"), row.get("duplicates")
            first = None if receptions is None or duplicates is None else receptions - duplicates
            counts = {
                "publications": row.get("publications"),
                "receptions": receptions,
                "first receptions": first,
            }
            for name, count in counts.items():
                if count is not None:  # unknown is not 0
                    self.counted[name] = self.counted.get(name, 0) + count
        self._wake()

    def drain(self) -> None:
        """Stop: nothing more is accepted, and readers of events get their last one."""
        self.draining = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._more = self._more, asyncio.Event()
        waiting.set()

    @property
    def has_spark(self) -> bool:
        """True if Spark runs, and its Java has answered lately."""
        return self.alive and time.monotonic() - self.heard < _SILENT_S

    @property
    def backlog(self) -> int:
        """Bytes of the log that the run does not have."""
        return self._intake.log.end - self.consumed

    @property
    def lag(self) -> float:
        """Seconds that the oldest closed interval has waited for its commit."""
        return time.monotonic() - min(self._closed_at.values()) if self._closed_at else 0.0

    def summary(self) -> Row:
        """Return the progress as JSON (docs/collecting.md has its members)."""
        intake, closing, topic = self._intake, self._intake.closing, self.topic()
        return {
            "state": self.state,
            "peers": len(closing.newest) - len(closing.departed),
            "median": closing.median(),
            "reached": closing.greatest_interval,
            "closed": closing.closed,
            "in_run": self.done,
            "in_neo4j": self.loaded,
            "waited_s": round(closing.waiting_time(time.monotonic()), 3),
            "lag_s": round(max(self.lag, self.lag_s if not self._closed_at else 0), 3),
            "append_s": self.seconds,
            "batches": self.batches,
            **dict(zip_longest(_LEFT, self.left or ())),
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
        """The state: collecting, pausing, ending or ended."""
        if self.settled:
            return "ended"
        if self._intake.ended:
            return "ending"
        return "pausing" if self.draining else "collecting"

    async def events(self, last: int | None, status_s: float = 5.0) -> AsyncGenerator[Row]:
        """Yield the rows of the intervals after the last one that a reader has as they come, each
        time followed by the progress; from the newest row on for a reader that has none.

        The progress also comes every `status_s` seconds: readers take a long silence for the end.
        """
        clock = asyncio.get_running_loop().time
        yield {"event": "status", **self.summary()}
        due = clock() + status_s
        if last is None:
            last = self.rows[-1]["interval"] - 1 if self.rows else -1
        while True:
            # This is read before the rows, so that rows added before the end are sent, too.
            more, is_over = self._more, self.draining
            new = [row for row in self.rows if row["interval"] > last]
            for row in new if len(new) <= _MOST_BEHIND else new[-1:]:
                last = row["interval"]
                yield {"event": "interval", **row}
            if new or is_over or clock() >= due:
                yield {"event": "status", **self.summary()}
                due = clock() + status_s
            if is_over:
                return
            # Closed intervals also wake it, long before the run has them.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await more.wait()
