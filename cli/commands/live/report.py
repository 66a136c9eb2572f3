"""`vizpub live report`: reports traces to a collector."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vizpub.cli.options import check_duration, drop_defaults, given_options
from vizpub.cli.settings import Settings
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import InputError, UseError

_DELAY = "2s"


@dataclass(frozen=True)
class ReportingOptions:
    """The collector, and the pace of the reports."""

    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            metavar="URL",
            help="The run's URL, as `vizpub live collect` shows it; repeatable.",
        ),
    ]
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue while the traces grow, until Ctrl-C.")
    ] = False
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Move the trace to the beginning of the run, and keep its pace."
        ),
    ] = False
    speed: Annotated[
        float,
        typer.Option(
            metavar="X",
            min=0.001,
            help="With --replay: seconds of the trace per second of the clock.",
        ),
    ] = 1.0
    delay: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            callback=check_duration,
            help="With --follow: how long after its end an interval is reported.",
        ),
    ] = _DELAY
    silence: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            callback=check_duration,
            help="Time without events and streams after which a peer counts as gone.",
        ),
    ] = "30s"
    end: Annotated[bool, typer.Option("--end", help="Mark the end of the run afterwards.")] = False


def _drop_others(ctx: typer.Context, reporting: ReportingOptions) -> ReportingOptions:
    """The options without defaults that do not apply to what the command line chooses."""
    given = {*given_options(ctx)}
    if "--replay" in given:
        reporting = drop_defaults(ctx, reporting, "--follow")
    elif "--follow" in given:
        reporting = drop_defaults(ctx, reporting, "--replay")
    if not reporting.replay:
        reporting = drop_defaults(ctx, reporting, "--speed")
    return reporting if reporting.follow else drop_defaults(ctx, reporting, "--delay")


def report(
    ctx: typer.Context,
    settings: Settings,
    traces: Annotated[
        list[Path], typer.Argument(metavar="TRACE…", help="Files of a trace, or their folders.")
    ],
    reporting: ReportingOptions,
) -> None:
    """Report traces of go-libp2p-pubsub to a collector, each peer in each interval.

    A trace is JSON or protobuf, plain or gzip. With --follow, traces may still grow, and new files
    are read, too. Set VIZPUB_TOKEN to the token.

    Examples:

    ```
    vizpub live report traces/ --to http://127.0.0.1:8600/v1/runs/lab --follow
    vizpub live report examples/gossipsub --to http://127.0.0.1:8600/v1/runs/demo --replay --end
    ```
    """
    from vizpub.collector.http.client import TOKEN, CollectorClient, check_url
    from vizpub.collector.inputs.trace_reporter import FollowOptions, TraceReporter

    reporting = _drop_others(ctx, reporting)
    if reporting.replay and reporting.follow:
        raise UseError("--replay is for finished traces: leave it out, or --follow")
    if reporting.speed != 1 and not reporting.replay:
        raise UseError("--speed needs --replay")
    if reporting.delay != _DELAY and not reporting.follow:
        raise UseError("--delay needs --follow")
    following = FollowOptions(
        reporting.follow,
        parse_duration_us(reporting.delay) / 1_000_000,
        parse_duration_us(reporting.silence) / 1_000_000,
        reporting.replay,
        reporting.speed,
        reporting.end,
    )
    if missing := [trace for trace in traces if not trace.exists()]:
        raise InputError(f"{missing[0]} does not exist")
    ended_by: list[int] = []

    def end(number: int, _: object) -> None:
        """Send the intervals that are over and end; a second signal ends the command at once."""
        # Without a collector that takes the reports, the first signal would have to wait.
        ended_by.append(number)
        signal.signal(number, handlers[number])

    endings = (signal.SIGINT, signal.SIGTERM) if reporting.follow else ()
    handlers = {int(number): signal.getsignal(number) for number in endings}
    for number in handlers:
        signal.signal(number, end)
    token = os.environ.get(TOKEN)
    collectors = [CollectorClient(check_url(url).rstrip("/"), token) for url in reporting.to]
    summary = TraceReporter(traces, collectors, following, settings.say).run(lambda: bool(ended_by))
    settings.say(f"reported {summary.intervals:,} intervals, {summary.sent:,} reports")
    for number, problem in (
        (summary.late, "events came after the report of their interval, and are in a later one"),
        (summary.unread, "records are not valid events"),
    ):
        if number:
            settings.say(f"{number:,} {problem}")
    if summary.refused or summary.dropped:
        raise UseError(
            f"the collector did not accept all: {summary.refused:,} refused, "
            f"{summary.dropped:,} dropped ({summary.problem})"
        )
