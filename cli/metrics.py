"""`vizpub metrics`: the metrics of a run, from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cli.completion import complete_columns, complete_metrics, complete_peers, complete_topics
from cli.options import Limit, Output, RunName, comma_list, command
from cli.output import Rows, show
from cli.settings import Settings

if TYPE_CHECKING:
    from ingest.run import Run, Where


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("metrics", rich_help_panel="Metrics")(command(metrics))


@dataclass(frozen=True)
class Wanted:
    """Which rows and columns of a metrics table."""

    first: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="First interval, or a time.")
    ] = None
    last: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Last interval (it is included).")
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Only these.", autocompletion=complete_columns),
    ] = None
    peer: Annotated[
        str | None, typer.Option(help="Only this peer.", autocompletion=complete_peers)
    ] = None
    topic: Annotated[
        str | None, typer.Option(help="Only this topic.", autocompletion=complete_topics)
    ] = None
    limit: Limit = 0

    def rows_of(self, run: Run) -> Where:
        """The rows in the words of the run. Raises: OutOfRange, UseError."""
        from ingest.run import Where

        first, last = (self._interval(run, text) for text in (self.first, self.last))
        return Where(first, last, self.peer, self.topic)

    @staticmethod
    def _interval(run: Run, text: str | None) -> int | None:
        return None if text is None else run.clock.interval_of(run.clock.parse_at(text))


def metrics(
    settings: Settings,
    run: RunName,
    wanted: Wanted,
    output: Output,
    table: Annotated[
        str,
        typer.Argument(metavar="overlay|peers|topics|messages", autocompletion=complete_metrics),
    ] = "overlay",
) -> None:
    """Print the metrics of a run: per interval, or of its peers, topics or messages.

    `vizpub tables metrics/overlay` explains every column. A dash is unknown, 0 was measured.

    Examples:

        vizpub metrics monday
        vizpub metrics monday --from 10 --to 20 --columns network_size,diameter
        vizpub metrics monday topics --topic news --format csv
        vizpub metrics monday messages -o messages.json
    """
    from ingest.run import Run

    opened = Run.open(settings.workspace, run)
    found = opened.metrics(table, comma_list(wanted.columns), wanted.rows_of(opened))
    found = found.slice(0, wanted.limit or None)
    show(Rows.of_arrow(found.column_names, found.to_batches(10_000)), output, settings)
