"""`vizpub report`: posts reports of the peers of traces to a collector, while the traces grow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from vizpub.collector.http.client import Collector
from vizpub.collector.inputs.traces import Traces
from vizpub.ingest.sources.libp2p.reporting import TraceReports
from vizpub.model.errors import InputError, UseError
from vizpub.model.wording import amount
from vizpub.reports.client import Reporter
from vizpub.reports.records import RunEnd, RunHeader

CLOSED_ALREADY = "intervals of the run are closed already"
NO_EVENT = "no event of the trace could be read"

_LOOK_S = 0.2
_TOGETHER = 8
"""Intervals that may wait at once: a collector refuses what is too far ahead of most peers."""
_UNKNOWN = ("rejections",)
"""What the reports have not, though the trace does."""
_MOST_INTERVALS = 1_000_000
"""From the run's epoch to the first event; more is another time than the run's."""
_END_S = 600.0
"""That a collector has to take what waits."""


@dataclass(frozen=True)
class Following:
    """How traces are followed."""

    follow: bool = False
    """Until a signal, instead of to the end of the files."""
    delay_s: float = 2.0
    """How long after its end an interval is reported, since traces are written in batches."""
    silence_s: float = 30.0
    """After which a peer without events is gone, unless a present peer has a stream to it."""
    replay: bool = False
    """Move the first event to the beginning of the run, and keep the pace of the trace."""
    speed: float = 1.0
    """Seconds of the trace in one of the clock, with `replay`."""
    end: bool = False
    """Mark the end of the run."""


@dataclass
class Told:
    """What was reported."""

    intervals: int = 0
    sent: int = 0
    """Reports."""
    refused: int = 0
    dropped: int = 0
    late: int = 0
    """Events that came after the report of their interval; they are in a later one."""
    unread: int = 0
    """Records of the traces that are no valid events."""
    problem: str | None = None


class Tracing:
    """Reads traces and reports. Raises: InputError, ServiceError, UseError."""

    def __init__(
        self,
        places: Iterable[Path],
        collector: Collector,
        how: Following,
        say: Callable[[str], None],
    ) -> None:
        self._how, self._say = how, say
        found = collector.get()
        header, progress = found["header"], found["progress"]
        self._interval_us = int(header["interval_us"])
        epoch = datetime.fromisoformat(header["epoch"])
        self._epoch_us = int(epoch.timestamp() * 1_000_000)
        closed = progress["closed"]
        self._closed = -1 if closed is None else int(closed)
        self._is_new = closed is None and header.get("protocol") is None
        self._traces = Traces(places, say)
        self._reporter = Reporter(collector.url, collector.token, context=collector.context)
        self._reports: TraceReports | None = None
        self._began = time.monotonic()
        self._first: int | None = None
        self._beside = 0
        """Records that are no reports."""
        self.told = Told()

    def run(self, over: Callable[[], bool] = lambda: False) -> Told:
        """To the end of the files, or until `over`."""
        try:
            with self._traces:
                while not over() and (self._turn() or self._how.follow):
                    pass
                return self._ended()
        finally:
            self._reporter.close(0)

    def _turn(self) -> bool:
        """Read on, and report what is over; false where nothing is left to read now."""
        self._traces.look()
        events = self._traces.read()
        if events and self._reports is None:
            self._reports = self._made(min(event.time for event in events))
        if self._reports:
            for event in events or ():
                self._reports.add(event)
            self._send(self._reports)
        if events is None and self._how.follow:
            time.sleep(_LOOK_S)
        return events is not None

    def _made(self, first_ns: int) -> TraceReports:
        first_us, interval_us = first_ns // 1000, self._interval_us
        if self._how.replay:
            if self._closed >= 0:
                raise UseError(f"{CLOSED_ALREADY}: replay into a new run")
            self._epoch_us = first_us // interval_us * interval_us
        elif abs(first_us - self._epoch_us) > _MOST_INTERVALS * interval_us:
            apart_s = (first_us - self._epoch_us) / 1e6
            side = "after" if apart_s > 0 else "before"
            raise UseError(
                f"the trace begins {abs(apart_s):,.0f} s {side} the run: `vizpub report --replay` "
                "moves it to the beginning of the run"
            )
        if self._is_new:
            self._tell(RunHeader(protocol="gossipsub", interval_us=interval_us, unknown=_UNKNOWN))
        self._began = time.monotonic()
        return TraceReports(self._epoch_us, interval_us, int(self._how.silence_s * 1_000_000))

    def _tell(self, what: RunHeader | RunEnd) -> None:
        self._reporter.report(what)
        self._beside += 1

    def _send(self, reports: TraceReports) -> None:
        """Report the intervals that are over."""
        behind_ns, how = self._traces.behind_ns, self._how
        if behind_ns is not None:
            last = reports.ended(behind_ns // 1000)
        elif how.follow:
            last = reports.ended(int((time.time() - how.delay_s) * 1_000_000))
        else:
            last = reports.ended(self._traces.last_ns // 1000) + 1  # that of the last event
        if not how.replay:  # an event of the future is one of a wrong clock
            now = reports.ended(int(time.time() * 1_000_000))
            last = min(last, now if how.follow else now + _TOGETHER)
        for interval, told in reports.through(last):
            if interval > self._closed:
                self._post(interval, told)

    def _post(self, interval: int, reports: list[dict[str, Any]]) -> None:
        if self._first is None:
            self._first = interval
        number = interval - self._first
        if self._how.replay:
            pace_s = self._interval_us / 1_000_000 / self._how.speed
            time.sleep(max(self._began + (number + 1) * pace_s - time.monotonic(), 0))
        if number % _TOGETHER == 0:
            self._flush()
        for report in reports:
            self._reporter.line(json.dumps(report, separators=(",", ":")).encode())
        self.told.intervals += 1

    def _flush(self) -> None:
        if not self._reporter.flush(_END_S):
            why = self._reporter.error or self._reporter.last_problem
            raise UseError(f"the collector does not take the reports: {why}")

    def _ended(self) -> Told:
        if self._reports is None and not self._how.follow:
            raise InputError(NO_EVENT)
        self._flush()
        if self._how.end and self._reports:
            # All reports first: what comes behind the end is refused.
            last = self._reports.last
            if last is not None:
                self._tell(RunEnd(last))
                self._flush()
        counts, told = self._reporter.counts, self.told
        told.sent = counts.sent - self._beside
        told.refused, told.dropped = counts.refused, counts.dropped
        told.late = self._reports.late if self._reports else 0
        told.unread = sum(self._traces.refused.values())
        told.problem = self._reporter.last_problem if counts.refused else None
        if (coming := self._reports.coming if self._reports else 0) and not self._how.follow:
            what = amount(coming, "event")
            self._say(f"{what} in the future, in no report: set the clocks of these peers")
        for why in self._traces.rest():
            self._say(why)
        return told
