"""`vizpub export`: a run as a file for Gephi (GEXF), browsers (HTML) or netviz, or as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from vizpub.cli.commands.everyday.bctrace import bctrace
from vizpub.cli.completion import complete_messages, complete_tables, complete_topics
from vizpub.cli.groups import command_group
from vizpub.cli.options import (
    Layers,
    Output,
    OutputFile,
    RunName,
    Window,
    comma_list,
    drop_defaults,
    refuse_options,
)
from vizpub.cli.service import querying, run_of_workspace
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, open_output, show_rows, to_stdout
from vizpub.machine.files import make_folder
from vizpub.model.errors import CheckFailed, RunNotComplete, UnknownName, UseError
from vizpub.model.progress import Progress
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from vizpub.cli.service import Neo4j
    from vizpub.graphstore.gexf.export import OverlayExport
    from vizpub.graphstore.gexf.rows import ExportRows as GexfRows
    from vizpub.graphstore.gexf.spans import MetricRun
    from vizpub.graphstore.gexf.writer import GexfCounts
    from vizpub.graphstore.runs import LoadedRun
    from vizpub.model.columns import Table
    from vizpub.model.run import RunFacts
    from vizpub.runstore.store import StoredRun

REMOVED = "was removed from Neo4j"
REPLACED = "was replaced"
GROWN = "has grown"


@dataclass(frozen=True)
class _Part:
    """The part of a run to write as GEXF."""

    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Export only this topic's subscribers and their links.",
            autocompletion=complete_topics,
        ),
    ] = None
    message: Annotated[
        str | None,
        typer.Option(
            metavar="MESSAGE",
            help="Export how this message spread, hop by hop.",
            autocompletion=complete_messages,
        ),
    ] = None
    layers: Layers = None
    parallel: Annotated[
        bool,
        typer.Option(
            "--parallel", help="Write one edge per layer and topic, not per pair of peers."
        ),
    ] = False
    attributes: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Metrics of peers to include (default: a few)."),
    ] = None


def gexf(
    ctx: typer.Context,
    settings: Settings,
    run: RunName,
    part: _Part,
    window: Window,
    file: OutputFile = None,
) -> None:
    """Write an overlay over time for Gephi (GEXF 1.3): a run, a window, a topic or a message.

    The time axis is the interval number; for a message it is the hop.

    Examples:

    ```
    vizpub export gexf monday -o monday.gexf
    vizpub export gexf monday --from 10 --to 20 --topic news -o news.gexf
    vizpub export gexf monday --message m17 -o m17.gexf
    ```
    """
    if part.message:
        of_overlays = ("--topic", "--from", "--to", "--layers", "--parallel", "--attributes")
        refuse_options(ctx, "a --message, which is exported whole", *of_overlays)
        part = drop_defaults(ctx, part, *of_overlays)
        window = drop_defaults(ctx, window, *of_overlays)
    job = _GexfJob(settings, part, window, file)
    if stored := run_of_workspace(settings, run):
        from vizpub.graphstore.gexf.table_rows import TableRows

        job.write(TableRows(stored.stored), nullcontext(), stored.stored)
        return
    with querying(settings) as neo4j:
        from vizpub.graphstore.gexf.graph_rows import GraphRows

        loaded = neo4j.open_run(run)
        job.write(GraphRows(loaded), check_unchanged(neo4j, loaded))


@dataclass(frozen=True)
class _GexfJob:
    """The part of a run to write as GEXF, and its destination."""

    settings: Settings
    part: _Part
    window: Window
    file: Path | None

    def write(
        self, rows: GexfRows, guard: AbstractContextManager[None], stored: StoredRun | None = None
    ) -> None:
        """Write the rows of a run, read inside `guard`; `stored` has metrics of peers."""
        with self.settings.progress() as progress:
            options = _export_options(self.part, self.window, rows.facts, progress)
            values = None
            if stored and not self.part.message:
                values = _metric_values(stored, options)
            elif not self.part.message:
                self.settings.say(
                    f"(no run '{rows.facts.name}' in {self.settings.workspace}: "
                    "metrics of peers are left out)"
                )
            with _open_gexf(self.file) as out, guard:
                counts = _write_gexf(rows, self.part, options, values, out)
        self.settings.say(
            f"wrote {amount(counts.nodes, 'node')} and {amount(counts.edges, 'edge')}"
        )
        if self.part.message:
            tick = rows.message(self.part.message).tick
            if note := rows.facts.provisional(rows.facts.clock.interval_of(tick)):
                self.settings.say(f"({note})")


@contextmanager
def check_unchanged(neo4j: Neo4j, run: LoadedRun) -> Iterator[None]:
    """Check that all data read in the block is of one run.

    Raises: CheckFailed if the run is removed or replaced, or grows, in the meantime.
    """
    try:
        yield
    except Exception:
        _check_same(neo4j, run)  # otherwise a missing row would be reported as an error
        raise
    _check_same(neo4j, run)


def _check_same(neo4j: Neo4j, run: LoadedRun) -> None:
    name = run.facts.name
    try:
        now = neo4j.open_run(name)
    except (UnknownName, RunNotComplete):
        raise CheckFailed(f"run '{name}' {REMOVED} while it was read") from None
    if now.state != run.state:
        is_grown = now.growing or now.facts.generation > run.facts.generation
        change = GROWN if is_grown else REPLACED
        raise CheckFailed(f"run '{name}' {change} while it was read; export it again")


@contextmanager
def _open_gexf(file: Path | None) -> Iterator[TextIO]:
    """Open the output; standard output is written in UTF-8 in any locale."""
    from vizpub.graphstore.gexf.export import gexf_output

    with open_output(file) as out:
        if not to_stdout(file):
            yield out
            return
        with gexf_output(None) as in_utf8:
            yield in_utf8


def _export_options(
    part: _Part, window: Window, facts: RunFacts, progress: Progress
) -> OverlayExport:
    from vizpub.graphstore.gexf.export import DEFAULT_ATTRIBUTES, OverlayExport

    first, last = window.intervals(facts.clock, facts.epoch)
    return OverlayExport(
        first=first,
        last=last,
        layers=comma_list(part.layers),
        parallel=part.parallel,
        attributes=tuple(dict.fromkeys(comma_list(part.attributes) or DEFAULT_ATTRIBUTES)),
        progress=progress,
    )


def _metric_values(stored: StoredRun, options: OverlayExport) -> Iterator[MetricRun]:
    """The metrics of the peers. Raises: UnknownName."""
    from vizpub.graphstore.gexf.spans import run_lengths

    names = stored.definition("metrics/peers").names
    for name in options.attributes:
        if name not in names:
            raise UnknownName("attribute", name, names, "vizpub runs tables metrics/peers")
    columns = ["peer", "interval", *options.attributes]
    return run_lengths(stored.scan("metrics/peers", columns), options.attributes)


def _write_gexf(
    rows: GexfRows,
    part: _Part,
    options: OverlayExport,
    values: Iterator[MetricRun] | None,
    out: TextIO,
) -> GexfCounts:
    from vizpub.graphstore.gexf.export import export_message, export_overlay, export_topic

    if part.message:
        return export_message(rows, part.message, out)
    if part.topic:
        return export_topic(rows, part.topic, options, values, out)
    return export_overlay(rows, options, values, out)


def csv(
    settings: Settings,
    run: RunName,
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE...", autocompletion=complete_tables, help="Default: all."),
    ] = None,
    place: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Output directory; for a single table also a .csv file.",
        ),
    ] = None,
) -> None:
    """Write tables of a run as CSV with a header: links.csv, metrics-overlay.csv, …

    Without -o, a single table goes to stdout. A null is an empty field; `vizpub runs tables`
    explains the columns.

    Examples:

    ```
    vizpub export csv monday -o monday-csv
    vizpub export csv monday links metrics/peers -o monday-csv
    vizpub export csv monday quarantine
    ```
    """
    from vizpub.model.metrics import OF_MESSAGES
    from vizpub.model.tables import TABLES
    from vizpub.runstore.store import open_run

    stored = open_run(settings.workspace, run)
    chosen = [stored.definition(name) for name in tables or (table.name for table in TABLES)]
    for table, file in _csv_files(chosen, place).items():
        if stored.has(table.name) or tables:
            rows = OutputRows.of_arrow(table.names, stored.scan(table.name, table.names))
            show_rows(rows, Output("csv", file), settings)
    has_messages = any({*table.names} & {"message", *OF_MESSAGES} for table in chosen)
    if has_messages and (note := stored.facts.provisional()):
        settings.say(f"({note})")


def _csv_files(tables: Sequence[Table], place: Path | None) -> dict[Table, Path | None]:
    """The output file of each table; null = stdout. Raises: UseError."""
    is_one = len(tables) == 1
    if is_one and (place is None or to_stdout(place) or place.suffix.lower() == ".csv"):
        return {tables[0]: place}
    if place is None or to_stdout(place):
        raise UseError("give an output directory: -o DIR")
    make_folder(place)
    return {table: place / f"{table.name.replace('/', '-')}.csv" for table in tables}


@dataclass(frozen=True)
class _HtmlPart:
    """The part of a run to write as HTML, and what to add."""

    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Only this topic's subscribers, their links and its messages.",
            autocompletion=complete_topics,
        ),
    ] = None
    layers: Layers = None
    views: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Saved views to bring along, as 'Views' in the page exports them."
        ),
    ] = None


def html(
    settings: Settings,
    run: RunName,
    part: _HtmlPart,
    window: Window,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ] = None,
) -> None:
    """Write the page of `vizpub explore` with a run's overlay and messages as one file.

    The file opens in a browser without vizpub and without a network, for example from a mail.
    Comparisons, other runs and tables of more than 50,000 rows are left out. A file of more than
    50 MB is refused: choose a window, a topic or layers.

    Examples:

    ```
    vizpub export html monday -o monday.html
    vizpub export html monday --from 10 --to 20 --topic news -o news.html
    vizpub export html monday --views "monday views.json" -o monday.html
    ```
    """
    from vizpub.explorer.offline.embedding import ExportPart
    from vizpub.explorer.offline.exported import html_page
    from vizpub.explorer.offline.views import read_views
    from vizpub.questions.names import NamedRun
    from vizpub.runstore.store import open_run

    if file is None:
        raise UseError("give an output file: -o FILE")
    named = NamedRun(open_run(settings.workspace, run))
    exported = ExportPart(
        window.clip(named.clock, named.facts.epoch),
        None if part.topic is None else named.topic_index(part.topic),
        comma_list(part.layers),
    )
    views = None if part.views is None else read_views(part.views, run)
    with open_output(file) as out:
        with settings.progress() as progress:
            page = html_page(named, exported, progress, views)
        out.write(page)
    settings.say(f"wrote {file}: {len(page) / 1e6:.1f} MB")
    if note := named.facts.provisional():
        settings.say(f"({note})")


def check(
    settings: Settings,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    output: Output,
) -> None:
    """Show what Gephi's importer would drop or change in GEXF files; exit code 1 if anything.

    Examples:

    ```
    vizpub export check monday.gexf
    ```
    """
    from vizpub.graphstore.gexf.check import check_gexf

    problems = [(str(f), i.rule, i.element, i.detail) for f in files for i in check_gexf(f)]
    show_rows(OutputRows(("file", "rule", "element", "what"), problems), output, settings)
    if not problems:
        settings.say(f"{amount(len(files), 'file')} without problems for Gephi")
        return
    raise CheckFailed(f"Gephi reports {amount(len(problems), 'problem')}")


GROUP = command_group(
    "export",
    "Write a run as GEXF, CSV or HTML, or a message for netviz.",
    gexf=gexf,
    csv=csv,
    html=html,
    bctrace=bctrace,
    check=check,
)
