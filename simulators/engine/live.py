"""A simulation that reports to a collector while it runs, at the pace of the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from vizpub.model.errors import UseError
from vizpub.reports.client import Reporter
from vizpub.reports.records import RunEnd, RunHeader

_END_S = 600.0
"""That a collector has at the end to take what waits."""
_TOGETHER = 8
"""Intervals that may wait at once: a collector refuses what is too far ahead of most peers."""


class Live:
    """Sends the reports of each interval when the clock reaches its end.

    `speed` is how many seconds of the simulation pass in one of the clock. Raises: UseError.
    """

    def __init__(
        self, url: str | Sequence[str], token: str | None = None, speed: float = 1.0
    ) -> None:
        try:
            self._reporter, self._speed = Reporter(url, token), speed
        except ValueError as error:
            raise UseError(str(error)) from error
        self._began = time.monotonic()
        self._interval_s = 0.0

    def begin(self, header: RunHeader) -> None:
        """Tell the collector of the run. Raises: UseError where it is no run for this."""
        try:
            collected = self._reporter.header()
        except OSError as error:
            self._reporter.close(0)
            raise UseError(str(error)) from error
        if collected["interval_us"] != header.interval_us:
            self._reporter.close(0)
            raise UseError(
                f"the collector has intervals of {collected['interval_us']} µs, and the simulation "
                f"of {header.interval_us}: collect with the same --interval"
            )
        self._interval_s = (header.interval_us or 0) / 1_000_000 / self._speed
        self._began = time.monotonic()
        self._reporter.report(
            RunHeader(
                protocol=header.protocol,
                parameters=header.parameters,
                seed=header.seed,
                interval_us=header.interval_us,
                lists=header.lists,
            )
        )

    def interval(self, number: int, lines: Iterable[str]) -> list[str]:
        """Wait for the end of the interval, and send its reports; returns them."""
        reports = list(lines)
        if number % _TOGETHER == 0:
            self._reporter.flush(_END_S)
        time.sleep(max(self._began + (number + 1) * self._interval_s - time.monotonic(), 0))
        for line in reports:
            self._reporter.line(line.encode())
        return reports

    def obey(self, peers: int, obey: Callable[[int, str], str | None]) -> None:
        """Let the peers 0 … `peers` − 1 do what the collector asks for; `obey` returns why not. A
        collector that does not answer asks for nothing.
        """
        with suppress(OSError):
            for peer_command in self._reporter.commands():
                name = str(peer_command["peer"])
                # Other reporters answer for other peers.
                if name.isdecimal() and name == str(int(name)) and int(name) < peers:
                    self._reporter.answer(
                        peer_command["id"], obey(int(name), peer_command["action"])
                    )

    def end(self, last: int) -> None:
        """Mark the end, and wait until all is acknowledged. Raises: UseError where it is not."""
        # All reports first: what comes behind the end is refused.
        self._reporter.flush(_END_S)
        with suppress(OSError):
            self._reporter.report(RunEnd(last))
        done = self._reporter.flush(_END_S)
        counts, problem = self._reporter.counts, self._reporter.last_problem
        self._reporter.close(0)
        if not done or counts.refused or counts.dropped:
            raise UseError(
                f"the collector did not take all: {counts.refused:,} refused, "
                f"{counts.dropped:,} dropped ({problem})"
            )
