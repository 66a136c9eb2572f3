"""`vizpub ingest`: from reports or a trace to tables, metrics and a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from vizpub.analytics.options import ENGINES, Measures
from vizpub.cli.commands.neo4j.load import load_stored
from vizpub.cli.commands.runs.runs import show_summary
from vizpub.cli.completion import SOURCES, complete_engines, complete_sources
from vizpub.cli.options import (
    GapTolerance,
    Master,
    NoBetweenness,
    NoLoad,
    Output,
    check_duration,
    check_size,
    check_unit,
    comma_list,
)
from vizpub.cli.service import LoadOptions, remove_stale
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.help import RARE
from vizpub.cli.terminal.output import to_stdout
from vizpub.cli.terminal.streams import is_closed
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import CheckFailed
from vizpub.model.sizes import parse_size
from vizpub.model.wording import amount, was_or_were

if TYPE_CHECKING:
    from vizpub.ingest.account import Account
    from vizpub.ingest.request import IngestRequest
    from vizpub.runstore.store import StoredRun

ALREADY = "is already complete"


OwnMetrics: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE.py:NAME", help="Also measure a metric of your own (docs/metrics.md)."
    ),
]


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading the input, and for measuring."""

    source: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help=f"Format of the input: {', '.join(SOURCES[:-1])} or {SOURCES[-1]}.",
            autocompletion=complete_sources,
        ),
    ] = "auto"
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            callback=check_duration,
            help="Length of an interval (default for traces: 1s).",
        ),
    ] = None
    gap_tolerance: GapTolerance = 0
    input_run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="The run, or Xatu's network, to ingest if the input holds several.",
            rich_help_panel=RARE,
        ),
    ] = None
    reporters_only: Annotated[
        bool,
        typer.Option(
            "--reporters-only",
            help="Leave out peers that do not report themselves.",
            rich_help_panel=RARE,
        ),
    ] = False
    message_window: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="With --append: intervals after which a message is final (default: 64).",
            rich_help_panel=RARE,
        ),
    ] = None
    max_line: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            callback=check_size,
            help="Refuse longer lines (default: 64MB).",
            rich_help_panel=RARE,
        ),
    ] = None
    undirected: Annotated[
        bool,
        typer.Option(
            "--undirected",
            help="Read each row of an edge list as a link in both directions.",
            rich_help_panel=RARE,
        ),
    ] = False
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns of a table, in order (src,dst,-,interval; - skips one) or by name "
            "(src=from,dst=to,time=ts).",
            rich_help_panel=RARE,
        ),
    ] = None
    time_unit: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            callback=check_unit,
            help="Unit of times that are numbers, such as s or ms.",
            rich_help_panel=RARE,
        ),
    ] = None
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.toml|NAME",
            help="Regular expressions that find events in lines of logs; nim-libp2p and waku are "
            "shipped (docs/sources.md).",
            rich_help_panel=RARE,
        ),
    ] = None
    attributes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="CSV or Parquet with attributes of peers, such as peer,client,country.",
        ),
    ] = None
    layers: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Layers whose links the metrics count (default: all)."),
    ] = None
    engine: Annotated[
        str,
        typer.Option(
            metavar="|".join(ENGINES),
            help="Engine that measures the overlay.",
            autocompletion=complete_engines,
            rich_help_panel=RARE,
        ),
    ] = "auto"
    no_betweenness: NoBetweenness = False
    max_edge_visits: Annotated[
        float,
        typer.Option(
            metavar="LINKS",
            min=1,
            show_default=False,
            help="Sample metrics that would traverse more links per interval (default: 2e10): "
            "n·(n+m) for betweenness, 1/64 of that for distances in the overlay and in topics.",
            rich_help_panel=RARE,
        ),
    ] = Measures.max_edge_visits
    metric: OwnMetrics = None


@dataclass(frozen=True)
class IngestOptions(LoadOptions):
    """Options for the run that is made."""

    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an existing run of that name.")
    ] = False
    append: Annotated[
        bool, typer.Option("--append", help="Add files of later intervals to the run.")
    ] = False
    no_settle: Annotated[
        bool,
        typer.Option(
            "--no-settle",
            help="With --append: fail if the run must be rebuilt.",
            rich_help_panel=RARE,
        ),
    ] = False
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 if any input was refused or damaged.")
    ] = False
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Ingest the rest even if most input is refused.",
            rich_help_panel=RARE,
        ),
    ] = False
    no_load: NoLoad = False
    master: Master = None
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Show time, processor time and memory of each stage, and of each step also rows.",
            rich_help_panel=RARE,
        ),
    ] = False


def ingest(
    settings: Settings,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, folders, URIs, or - for stdin.")
    ],
    run: Annotated[str, typer.Option(metavar="NAME", help="Name of the run.")],
    reading: ReadingOptions,
    options: IngestOptions,
    output: Output,
) -> None:
    """Read reports or a trace into a run: tables, metrics and a graph.

    The graph is loaded into Neo4j. Records that cannot be read go to the table `quarantine` and are
    counted. The rest is ingested, unless most records were refused. The same command resumes an
    ingest that was interrupted. With --append, it adds files that the run does not have yet.

    Examples:

    ```
    vizpub ingest traces/ --run monday
    vizpub ingest trace.pb.gz --run monday --interval 500ms --no-load
    curl -fsSL https://example.org/trace.json.gz | vizpub ingest - --run monday
    vizpub ingest reports/*.ndjson --run lab --gap-tolerance 2 --strict
    vizpub ingest reports/ --run live --append
    vizpub ingest traces/ --run monday --attributes peers.csv
    vizpub ingest logs/ --run tuesday --pattern nim-libp2p
    vizpub ingest traces/ --run mine --metric own_metrics.py:core_number
    ```
    """
    from vizpub.ingest.inputs.standard_input import stdin_as_file
    from vizpub.ingest.pipeline import ingest as run_ingest
    from vizpub.questions.summary import damaged_inputs

    with (
        stdin_as_file(paths, sys.stdin, settings.scratch) as files,
        settings.progress() as progress,
    ):
        outcome = run_ingest(_request(settings, files, run, reading, options), progress)
    if outcome.already_complete:
        settings.say(f"run '{run}' {ALREADY}")
    show_ingested(outcome.run, output, settings)
    for line in profile_lines(outcome.account) if options.profile else ():
        settings.say(line)
    if not outcome.already_complete:
        settings.say(outcome.account.summary_line())
    refusals = []
    if count := outcome.run.rows("quarantine"):
        see = f"vizpub sql {run} 'FROM quarantine'"
        refusals = [f"{amount(count, 'record')} {was_or_were(count)} refused; see: {see}"]
    if refusals and not options.strict:
        settings.say(refusals[0])
    if not options.no_load:
        load_stored(settings, outcome.run, options)
    elif options.replace or options.append:
        remove_stale(settings, outcome.run)
    if not options.strict:
        return
    if details := [*refusals, *damaged_inputs(outcome.run)]:
        raise CheckFailed("some input was refused or damaged (--strict)", details)


def show_ingested(run: StoredRun, output: Output, settings: Settings) -> None:
    """Print the summary, unless stdout is closed, which does not stop the command."""
    if to_stdout(output.file) and is_closed(sys.stdout):
        return
    with suppress(typer.Exit):
        show_summary(run, output, settings)


def _request(
    settings: Settings,
    paths: tuple[str, ...],
    run: str,
    reading: ReadingOptions,
    options: IngestOptions,
) -> IngestRequest:
    from vizpub.ingest.measures.choice import MeasurementOptions
    from vizpub.ingest.measures.own import load_own_metrics
    from vizpub.ingest.request import IngestRequest
    from vizpub.ingest.sources.base import SourceOptions
    from vizpub.ingest.sources.lines.patterns import read_patterns

    interval_us = parse_duration_us(reading.interval) if reading.interval else None
    return IngestRequest(
        paths=paths,
        run=run,
        workspace=settings.workspace,
        source=reading.source,
        options=SourceOptions(
            interval_us,
            reading.gap_tolerance,
            reading.input_run,
            reading.reporters_only,
            reading.message_window,
            parse_size(reading.max_line) if reading.max_line else None,
            reading.undirected or None,
            reading.columns,
            parse_duration_us(reading.time_unit) if reading.time_unit else None,
            read_patterns(reading.pattern) if reading.pattern else None,
        ),
        attributes=tuple(reading.attributes or ()),
        measuring=MeasurementOptions(
            comma_list(reading.layers),
            reading.engine,
            Measures(
                not reading.no_betweenness,
                max_edge_visits=reading.max_edge_visits,
                own=load_own_metrics(reading.metric or ()),
            ),
        ),
        replace=options.replace,
        append=options.append,
        settle=not options.no_settle,
        keep_going=options.keep_going,
        master=options.master,
        profile=options.profile,
    )


_JOBS_SHOWN = 5


def profile_lines(account: Account) -> Iterator[str]:
    """A line for each part of the ingest, then for each step in tasks, then the longest jobs."""
    head = ("seconds", "in jobs", "processor s", "tasks", "memory MB")
    yield "{:18}{:>9}{:>9}{:>13}{:>7}{:>11}".format("stage", *head)
    for part, in_jobs, tasks in account.part_lines():
        used = part.used
        processors = f"{used.seconds:.2f}" if used else "-"
        memory = f"{used.resident / 1e6:,.0f}" if used else "-"
        yield (
            f"{part.name:18}{part.end - part.begin:9.2f}{in_jobs:9.2f}{processors:>13}"
            f"{tasks:7}{memory:>11}"
        )
    columns = ("seconds", "processor s", "tasks", "rows in", "rows out", "memory MB")
    yield "{:47}{:>9}{:>13}{:>7}{:>13}{:>13}{:>11}".format("step in tasks", *columns)
    for name, step in sorted(account.steps.items(), key=lambda named: -named[1].seconds):
        memory = f"{step.peak / 1e6:,.0f}" if step.peak else "-"
        yield (
            f"{name:47}{step.seconds:9.3f}{step.processor_seconds:13.3f}{step.tasks:7}"
            f"{step.rows_in:13,}{step.rows_out:13,}{memory:>11}"
        )
    for job in account.longest_jobs(_JOBS_SHOWN):
        seconds = job.end - job.begin
        yield f"job at {job.begin:.2f} s: {seconds:.2f} s, {amount(job.tasks, 'task')}, {job.name}"
