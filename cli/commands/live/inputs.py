"""Options of `vizpub live collect`: where reports come from, and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.options import NoLoad, check_size, drop_defaults, given_options
from vizpub.cli.terminal.help import RARE
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from vizpub.collector.inputs.kafka_topic import Topic
    from vizpub.collector.request import ListenOptions


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
    replicated: Annotated[
        bool,
        typer.Option(
            "--replicated",
            help="Write what peers post to the topic, for other collectors of this run, too.",
            rich_help_panel=RARE,
        ),
    ] = False
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


def drop_others(ctx: typer.Context, inputs: InputOptions) -> InputOptions:
    """The options without defaults that do not apply to the others."""
    from vizpub.reports.endpoint import is_loopback

    if not (inputs.kafka and inputs.topic):
        inputs = drop_defaults(ctx, inputs, "--kafka", "--topic", "--kafka-config", "--replicated")
    # A default is no reason to give up the other collectors of the run, so it is refused then.
    if "--replicated" in given_options(ctx):
        inputs = drop_defaults(ctx, inputs, "--watch", "--pull", "--allow-commands")
    return inputs if is_loopback(inputs.host) else drop_defaults(ctx, inputs, "--no-token")


def topic_of(inputs: InputOptions, run: str) -> Topic | None:
    """The topic of Kafka to read; null = none.

    Raises: UseError where the options do not fit, or Kafka's client does not take them.
    """
    if inputs.kafka is None and inputs.topic is None and inputs.kafka_config is None:
        if inputs.replicated:
            raise UseError("--replicated needs --kafka and --topic")
        return None
    if not inputs.kafka or not inputs.topic:
        raise UseError("--kafka and --topic belong together: give both, or none")
    from vizpub.collector.inputs.kafka_topic import Topic, TopicReader, read_config

    config = read_config(inputs.kafka_config) if inputs.kafka_config else {}
    topic = Topic(inputs.kafka, inputs.topic, config)
    if inputs.replicated and topic.from_end:
        raise UseError("--replicated reads the whole topic: leave out auto.offset.reset=latest")
    if inputs.replicated and (inputs.watch or inputs.pull or inputs.allow_commands):
        raise UseError("--replicated goes without --watch, --pull and --allow-commands")
    TopicReader(topic, run).close()
    return topic


def listening_of(inputs: InputOptions) -> ListenOptions:
    """The address and its protection. Raises: UseError where others could listen or speak."""
    from vizpub.collector.request import ListenOptions
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
