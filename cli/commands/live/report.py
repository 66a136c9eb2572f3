"""`vizpub report`: traces that grow, reported to a collector."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vizpub.cli.options import command
from vizpub.cli.settings import Settings
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import InputError, UseError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", rich_help_panel="Runs")(command(report))


@dataclass(frozen=True)
class How:
    """How traces are reported."""

    to: Annotated[
        str,
        typer.Option("--to", metavar="URL", help="The run's URL, as `vizpub collect` shows it."),
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
            help="With --follow: how long after its end an interval is reported.",
        ),
    ] = "2s"
    silence: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="A peer without events for this time, to which no peer has a stream, is gone.",
        ),
    ] = "30s"
    end: Annotated[bool, typer.Option("--end", help="Mark the end of the run afterwards.")] = False


def report(
    settings: Settings,
    traces: Annotated[
        list[Path], typer.Argument(metavar="TRACE…", help="Files of a trace, or their folders.")
    ],
    how: How,
) -> None:
    """Report traces of go-libp2p-pubsub to a collector, each peer in each interval.

    A trace is JSON or protobuf, plain or gzip. With --follow it may still grow, and files that come
    later are taken, too. The token is in VIZPUB_TOKEN.

    Examples:

    ```
    vizpub report traces/ --to http://127.0.0.1:8600/v1/runs/lab --follow
    vizpub report examples/gossipsub --to http://127.0.0.1:8600/v1/runs/demo --replay --end
    ```
    """
    from vizpub.collector.http.client import TOKEN, Collector, check_url
    from vizpub.collector.inputs.trace_reporter import Following, Tracing

    if how.replay and how.follow:
        raise UseError("--replay is for finished traces: leave it out, or --follow")
    if how.speed != 1 and not how.replay:
        raise UseError("--speed needs --replay")
    following = Following(
        how.follow,
        parse_duration_us(how.delay) / 1_000_000,
        parse_duration_us(how.silence) / 1_000_000,
        how.replay,
        how.speed,
        how.end,
    )
    if missing := [trace for trace in traces if not trace.exists()]:
        raise InputError(f"{missing[0]} does not exist")
    over: list[int] = []

    def end(number: int, _: object) -> None:
        """What is over is still sent; a second signal ends it at once, as where nobody takes it."""
        over.append(number)
        signal.signal(number, before[number])

    endings = (signal.SIGINT, signal.SIGTERM) if how.follow else ()
    before = {int(number): signal.signal(number, end) for number in endings}
    collector = Collector(check_url(how.to).rstrip("/"), os.environ.get(TOKEN))
    told = Tracing(traces, collector, following, settings.say).run(lambda: bool(over))
    settings.say(f"reported {told.intervals:,} intervals, {told.sent:,} reports")
    for number, what in (
        (told.late, "events came after the report of their interval, and are in a later one"),
        (told.unread, "records are not valid events"),
    ):
        if number:
            settings.say(f"{number:,} {what}")
    if told.refused or told.dropped:
        raise UseError(
            f"the collector did not accept all: {told.refused:,} refused, {told.dropped:,} dropped "
            f"({told.problem})"
        )
