"""`vizpub live report`: posts reports of the peers in traces to a collector, while they grow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from vizpub.collector.http.client import CollectorClient
from vizpub.collector.inputs.traces import Traces
from vizpub.ingest.sources.libp2p.reporting import TraceReports
from vizpub.model.errors import InputError, ServiceError, UseError
from vizpub.model.wording import amount
from vizpub.reports.client import Reporter
from vizpub.reports.records import RunEnd, RunHeader

CLOSED_ALREADY = "intervals of the run are closed already"
NO_EVENT = "no event of the trace could be read"

_LOOK_S = 0.2
_TOGETHER = 8
"""Intervals that may wait at once: a collector refuses reports too far ahead of most peers."""
_UNKNOWN = ("rejections",)
"""Facts of the trace that reports cannot contain."""
_MOST_INTERVALS = 1_000_000
"""Most intervals from the run's epoch to the first event; beyond, the trace is of another time."""
_END_S = 600.0
"""The time in which a collector must accept the waiting reports."""


@dataclass(frozen=True)
class FollowOptions:
    """The options of following traces."""

    follow: bool = False
    """Read until a signal, instead of to the end of the files."""
    delay_s: float = 2.0
    """The time from the end of an interval to its reports: traces are written in batches."""
    silence_s: float = 30.0
    """The time after which a peer without events is gone, unless a present peer has a stream to it.
    """
    replay: bool = False
    """Move the first event to the beginning of the run, and keep the pace of the trace."""
    speed: float = 1.0
    """Seconds of the trace in one of the clock, with `replay`."""
    end: bool = False
    """Mark the end of the run."""


@dataclass
class ReportingSummary:
    """The counts of what was reported."""

    intervals: int = 0
    sent: int = 0
    """Reports."""
    refused: int = 0
    dropped: int = 0
    late: int = 0
    """Events that came after the report of their interval; a later report has them."""
    unread: int = 0
    """Records of the traces that are no valid events."""
    problem: str | None = None


class TraceReporter:
    """Reads traces, and reports their peers. Raises: InputError, ServiceError, UseError."""

    def __init__(
        self,
        places: Iterable[Path],
        collectors: Sequence[CollectorClient],
        options: FollowOptions,
        say: Callable[[str], None],
    ) -> None:
        self._options, self._say = options, say
        state = _first_answer(collectors)
        header, progress = state["header"], state["progress"]
        self._interval_us = int(header["interval_us"])
        epoch = datetime.fromisoformat(header["epoch"])
        self._epoch_us = int(epoch.timestamp() * 1_000_000)
        closed = progress["closed"]
        self._closed = -1 if closed is None else int(closed)
        self._is_new = closed is None and header.get("protocol") is None
        self._traces = Traces(places, say)
        token, context = collectors[0].token, collectors[0].context
        self._reporter = Reporter([one.url for one in collectors], token, context=context)
        self._reports: TraceReports | None = None
        self._began = time.monotonic()
        self._first: int | None = None
        self._beside = 0
        """The number of records that are no reports."""
        self.summary = ReportingSummary()

    def run(self, over: Callable[[], bool] = lambda: False) -> ReportingSummary:
        """Report to the end of the files, or until `over`."""
        try:
            with self._traces:
                while not over() and (self._turn() or self._options.follow):
                    pass
                return self._finish()
        finally:
            self._reporter.close(0)

    def _turn(self) -> bool:
        """Read on, and report ended intervals. Returns False if there is nothing to read now."""
        self._traces.look()
        events = self._traces.read()
        if events and self._reports is None:
            self._reports = self._begin_reports(min(event.time for event in events))
        if self._reports:
            for event in events or ():
                self._reports.add(event)
            self._send(self._reports)
        if events is None and self._options.follow:
            time.sleep(_LOOK_S)
        return events is not None

    def _begin_reports(self, first_ns: int) -> TraceReports:
        first_us, interval_us = first_ns // 1000, self._interval_us
        if self._options.replay:
            if self._closed >= 0:
                raise UseError(f"{CLOSED_ALREADY}: replay into a new run")
            self._epoch_us = first_us // interval_us * interval_us
        elif abs(first_us - self._epoch_us) > _MOST_INTERVALS * interval_us:
            apart_s = (first_us - self._epoch_us) / 1e6
            side = "after" if apart_s > 0 else "before"
            raise UseError(
                f"the trace begins {abs(apart_s):,.0f} s {side} the run: "
                "`vizpub live report --replay` moves it to the beginning of the run"
            )
        if self._is_new:
            self._report_record(
                RunHeader(protocol="gossipsub", interval_us=interval_us, unknown=_UNKNOWN)
            )
        self._began = time.monotonic()
        return TraceReports(self._epoch_us, interval_us, int(self._options.silence_s * 1_000_000))

    def _report_record(self, record: RunHeader | RunEnd) -> None:
        self._reporter.report(record)
        self._beside += 1

    def _send(self, reports: TraceReports) -> None:
        """Report the intervals that have ended."""
        behind_ns, options = self._traces.behind_ns, self._options
        if behind_ns is not None:
            last = reports.last_ended(behind_ns // 1000)
        elif options.follow:
            last = reports.last_ended(int((time.time() - options.delay_s) * 1_000_000))
        else:
            last = reports.last_ended(self._traces.last_ns // 1000) + 1  # that of the last event
        if not options.replay:  # an event of the future is one of a wrong clock
            now = reports.last_ended(int(time.time() * 1_000_000))
            last = min(last, now if options.follow else now + _TOGETHER)
        for interval, interval_reports in reports.reports_through(last):
            if interval > self._closed:
                self._post(interval, interval_reports)

    def _post(self, interval: int, reports: list[dict[str, Any]]) -> None:
        if self._first is None:
            self._first = interval
        number = interval - self._first
        if self._options.replay:
            pace_s = self._interval_us / 1_000_000 / self._options.speed
            time.sleep(max(self._began + (number + 1) * pace_s - time.monotonic(), 0))
        if number % _TOGETHER == 0:
            self._flush()
        for report in reports:
            self._reporter.line(json.dumps(report, separators=(",", ":")).encode())
        self.summary.intervals += 1

    def _flush(self) -> None:
        if not self._reporter.flush(_END_S):
            why = self._reporter.error or self._reporter.last_problem
            raise UseError(f"the collector does not accept the reports: {why}")

    def _finish(self) -> ReportingSummary:
        if self._reports is None and not self._options.follow:
            raise InputError(NO_EVENT)
        self._flush()
        if self._options.end and self._reports:
            # All reports first: reports behind the end are refused.
            last = self._reports.last
            if last is not None:
                self._report_record(RunEnd(last))
                self._flush()
        counts, summary = self._reporter.counts, self.summary
        summary.sent = counts.sent - self._beside
        summary.refused, summary.dropped = counts.refused, counts.dropped
        summary.late = self._reports.late if self._reports else 0
        summary.unread = sum(self._traces.refusals.values())
        summary.problem = self._reporter.last_problem if counts.refused else None
        if (coming := self._reports.coming if self._reports else 0) and not self._options.follow:
            events = amount(coming, "event")
            self._say(f"{events} in the future, in no report: set the clocks of these peers")
        for why in self._traces.rest():
            self._say(why)
        return summary


def _first_answer(collectors: Sequence[CollectorClient]) -> dict[str, Any]:
    """Return header and progress from the first collector that answers. Raises: ServiceError."""
    for collector in collectors[:-1]:
        with suppress(ServiceError):
            return collector.get()
    return collectors[-1].get()
