"""`vizpub live collect`: collects reports from running peers into a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.options import (
    GapTolerance,
    NoBetweenness,
    NoLoad,
    check_duration,
    check_size,
    comma_list,
)
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.help import RARE
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.progress import announce_wait
from vizpub.model.sizes import parse_size

if TYPE_CHECKING:
    from vizpub.collector.collect import CollectRequest, ListenOptions
    from vizpub.collector.inputs.kafka_topic import Topic
    from vizpub.collector.place import CollectionPlace

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


@dataclass(frozen=True)
class InputOptions:
    """Inputs of the collector, and their limits."""

    watch: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            exists=True,
            help="Also read the growing files of reports and gossipsub traces in this folder.",
        ),
    ] = None
    pull: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Also ask this reporter, or those in a file with one URL per line; repeatable.",
        ),
    ] = None
    kafka: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,…", help="Also read a topic of Kafka, from these brokers."),
    ] = None
    topic: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The topic; its messages are lines of reports."),
    ] = None
    kafka_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Properties of Kafka's client, as kcat has them: NAME=VALUE.",
            rich_help_panel=RARE,
        ),
    ] = None
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = (
        "127.0.0.1"
    )
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Port to listen on (0: the last one, or any free one).",
        ),
    ] = 0
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Require no token; only on this machine.")
    ] = False
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TLS certificate, PEM.", rich_help_panel=RARE),
    ] = None
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS key, PEM.", rich_help_panel=RARE)
    ] = None
    max_peers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Refuse reports of more peers.", rich_help_panel=RARE
        ),
    ] = 100_000
    max_name: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            callback=check_size,
            help="Refuse peers whose name is longer.",
            rich_help_panel=RARE,
        ),
    ] = "1kB"
    max_log: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            callback=check_size,
            help="Make reporters wait while the log is larger.",
            rich_help_panel=RARE,
        ),
    ] = "1GB"
    max_disk: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            callback=check_size,
            help="Accept nothing while log and batches are larger (default: no limit).",
            rich_help_panel=RARE,
        ),
    ] = None
    reserve: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            callback=check_size,
            help="Accept nothing while less is free on the disk.",
            rich_help_panel=RARE,
        ),
    ] = "256MB"
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Folder of the logs, where the workspace is in a store.",
            rich_help_panel=RARE,
        ),
    ] = None
    allow_commands: Annotated[
        bool,
        typer.Option(
            "--allow-commands",
            help="Let `vizpub live tell` make peers leave and join.",
            rich_help_panel=RARE,
        ),
    ] = False
    past_damage: Annotated[
        bool,
        typer.Option(
            "--past-damage",
            help="Continue without the damaged part of the log.",
            rich_help_panel=RARE,
        ),
    ] = False
    revive: Annotated[
        bool,
        typer.Option(
            "--revive",
            help="Rebuild a removed run from everything that was collected for it.",
            rich_help_panel=RARE,
        ),
    ] = False
    no_load: NoLoad = False


def collect(
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
    from vizpub.collector.collect import CollectRequest
    from vizpub.collector.inputs.pull import TargetList
    from vizpub.collector.intake import IntakeLimits

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
        _listen_options(inputs),
        closing.message_window,
        not closing.no_betweenness,
        _report_fields(closing.fields),
        inputs.allow_commands,
        inputs.watch,
        targets,
        _topic(inputs, place.run),
        () if inputs.no_load else load,
        stop,
        inputs.revive,
        inputs.past_damage,
        _kept_intervals(closing),
    )


def _kept_intervals(closing: ClosingOptions) -> int | None:
    """The intervals of the time to keep; null = all."""
    if closing.keep is None:
        return None
    return -(-parse_duration_us(closing.keep) // parse_duration_us(closing.interval))


def _topic(inputs: InputOptions, run: str) -> Topic | None:
    """The topic of Kafka to read; null = none.

    Raises: UseError where the options do not fit, or Kafka's client does not take them.
    """
    if inputs.kafka is None and inputs.topic is None and inputs.kafka_config is None:
        return None
    if not inputs.kafka or not inputs.topic:
        raise UseError("--kafka and --topic belong together: give both, or none")
    from vizpub.collector.inputs.kafka_topic import Topic, TopicReader, read_config

    config = read_config(inputs.kafka_config) if inputs.kafka_config else {}
    topic = Topic(inputs.kafka, inputs.topic, config)
    TopicReader(topic, run).close()
    return topic


def _listen_options(inputs: InputOptions) -> ListenOptions:
    """The address and its protection. Raises: UseError where others could listen or speak."""
    from vizpub.collector.collect import ListenOptions
    from vizpub.reports.endpoint import is_loopback

    if (inputs.certificate is None) != (inputs.key is None):
        raise UseError("--certificate and --key belong together: give both, or none")
    if not is_loopback(inputs.host):
        if inputs.no_token:
            raise UseError("--no-token is for this machine only: leave it out, or --host")
        if inputs.certificate is None:
            raise UseError(f"--host {inputs.host} needs TLS: give --certificate and --key")
    return ListenOptions(
        inputs.host, inputs.port, inputs.certificate, inputs.key, not inputs.no_token
    )


def _report_fields(text: str | None) -> tuple[str, ...]:
    """The names of the fields to report. Raises: UnknownName."""
    from vizpub.reports.fields import REPORT

    names = comma_list(text) or ()
    report_fields = [name for name in REPORT.fields if name not in ("format", "run")]
    for name in names:
        if name not in report_fields:
            raise UnknownName("field of a report", name, report_fields)
    return names
