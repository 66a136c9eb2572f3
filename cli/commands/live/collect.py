"""`vizpub live collect`: collects reports from running peers into a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.commands.live.inputs import InputOptions, drop_others, listening_of, topic_of
from vizpub.cli.options import (
    GapTolerance,
    NoBetweenness,
    check_duration,
    comma_list,
)
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.help import RARE
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.progress import announce_wait
from vizpub.model.sizes import parse_size

if TYPE_CHECKING:
    from vizpub.collector.place import CollectionPlace
    from vizpub.collector.request import CollectRequest

_POLL_S = 0.2


@dataclass(frozen=True)
class ClosingOptions:
    """Options for closing intervals, and for measuring them."""

    interval: Annotated[
        str,
        typer.Option(
            metavar="DURATION", callback=check_duration, help="Length of a reporting interval."
        ),
    ] = "1s"
    lateness: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            callback=check_duration,
            help="How long to wait after most peers have reported.",
        ),
    ] = "5s"
    ahead: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Refuse reports more than N intervals ahead of other peers and of the clock.",
            rich_help_panel=RARE,
        ),
    ] = 16
    peers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the names of all peers, one per line, if known.",
            rich_help_panel=RARE,
        ),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            callback=check_duration,
            help="Let intervals leave the run when they are older, such as 7d (default: never).",
        ),
    ] = None
    gap_tolerance: GapTolerance = 0
    message_window: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Intervals after which a message is final (default: 64).",
            rich_help_panel=RARE,
        ),
    ] = None
    no_betweenness: NoBetweenness = False
    fields: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Fields that peers are asked to report (default: all).",
            rich_help_panel=RARE,
        ),
    ] = None


def collect(
    ctx: typer.Context,
    settings: Settings,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Name of the run.")],
    closing: ClosingOptions,
    inputs: InputOptions,
    stop: Annotated[bool, typer.Option("--stop", help="End the run.")] = False,
) -> None:
    """Collect reports from running peers into a run.

    Peers post reports to the address that is printed. An acknowledged report is on disk. An
    interval closes when all peers have reported it, or after a while; then it is added to the run
    and to its copy in Neo4j. Ctrl-C pauses: the same command resumes. With --stop, all reported
    intervals are closed and added, and the run ends.

    The collector owns the name from the beginning: until the run has ended, other commands can
    only read the run, or settle it while the collection is paused.

    Examples:

    ```
    vizpub live collect lab --no-token
    vizpub live collect lab --interval 5s --lateness 10s --peers peers.txt
    vizpub live collect lab --host 0.0.0.0 --port 8443 --certificate cert.pem --key key.pem
    vizpub live collect lab --pull http://127.0.0.1:8700 --pull targets.txt
    vizpub live collect lab --kafka broker:9092 --topic reports
    vizpub live collect lab --kafka one:9092,two:9092 --topic lab --replicated
    vizpub live collect lab --keep 7d
    vizpub live collect lab --stop
    ```
    """
    from vizpub.collector.collect import collect as run_collector
    from vizpub.collector.place import CollectionPlace

    place = CollectionPlace(settings.workspace, run)
    place.place_log(inputs.log)
    if stop and not place.folder.is_dir():
        raise UseError(
            f"nothing is collected for run '{run}' in {settings.place}; "
            f"a collection begins with: vizpub live collect {run}"
        )
    if stop and _stop_collector(place, settings.say):
        settings.say(f"run '{run}' has ended")
        return
    inputs = drop_others(ctx, inputs)
    request = _collect_request(settings, place, closing, inputs, stop=stop)
    if run_collector(request, settings.say):
        settings.say(f"run '{run}' has ended")
    else:
        settings.say(f"paused; the same command resumes, and --stop ends run '{run}'")


def _stop_collector(place: CollectionPlace, say: Callable[[str], None]) -> bool:
    """Ask a collector that runs to end the run, and wait; false if none runs."""
    if not place.is_held():
        return False
    say(f"the collector of run '{place.run}' appends the remaining intervals and ends the run")
    place.stop.touch()
    with announce_wait(f"the collector of run '{place.run}' to end"):
        while place.is_held():
            time.sleep(_POLL_S)
    return not place.stop.exists()


def _collect_request(
    settings: Settings,
    place: CollectionPlace,
    closing: ClosingOptions,
    inputs: InputOptions,
    *,
    stop: bool,
) -> CollectRequest:
    from vizpub.collector.closing import ClosingRules, peers_of
    from vizpub.collector.inputs.pull import TargetList
    from vizpub.collector.intake import IntakeLimits
    from vizpub.collector.request import CollectRequest

    targets = tuple(inputs.pull or ())
    TargetList(targets).targets()  # a wrong one is an error now
    options = replace(settings, quiet=False, json_log=True).as_arguments()
    load = [sys.executable, "-m", "vizpub.cli", *options, "neo4j", "load", place.run, "--follow"]
    return CollectRequest(
        place,
        parse_duration_us(closing.interval),
        ClosingRules(
            parse_duration_us(closing.lateness) / 1_000_000,
            closing.ahead,
            closing.gap_tolerance,
            peers_of(closing.peers) if closing.peers else None,
        ),
        IntakeLimits(
            inputs.max_peers,
            parse_size(inputs.max_name),
            parse_size(inputs.max_log),
            parse_size(inputs.max_disk) if inputs.max_disk else None,
            parse_size(inputs.reserve),
        ),
        listening_of(inputs),
        closing.message_window,
        not closing.no_betweenness,
        _report_fields(closing.fields),
        inputs.allow_commands,
        inputs.watch,
        targets,
        topic_of(inputs, place.run),
        () if inputs.no_load else load,
        stop,
        inputs.revive,
        inputs.past_damage,
        _kept_intervals(closing),
        inputs.replicated,
    )


def _kept_intervals(closing: ClosingOptions) -> int | None:
    """The intervals of the time to keep; null = all."""
    if closing.keep is None:
        return None
    return -(-parse_duration_us(closing.keep) // parse_duration_us(closing.interval))


def _report_fields(text: str | None) -> tuple[str, ...]:
    """The names of the fields to report. Raises: UnknownName."""
    from vizpub.reports.fields import REPORT

    names = comma_list(text) or ()
    report_fields = [name for name in REPORT.fields if name not in ("format", "run")]
    for name in names:
        if name not in report_fields:
            raise UnknownName("field of a report", name, report_fields)
    return names
