"""`vizpub runs tables`: explains every table and column of a run."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.completion import complete_runs, complete_tables
from vizpub.cli.options import Output, refuse_options
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, output_format, show_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vizpub.model.columns import Column, Table

_OF_GRAPH = ("graph", "if degenerate")
_MAKES = re.compile(r"^-- makes: (\S+)$", re.MULTILINE)
_OF_STRUCTURE = "analytics/snapshots.py"
"""Where metrics of the graph are put together; the kernels that it calls are beside it."""
_MESSAGES = "analytics/messages/message_fold.py"
_BY_MODULES = {
    "receptions": _MESSAGES,
    "missed": _MESSAGES,
    "metrics/messages": _MESSAGES,
    "metrics/percolation": "analytics/prediction/percolation.py",
    "quarantine": "ingest/tasks/fold.py",
}


def tables(
    ctx: typer.Context,
    settings: Settings,
    output: Output,
    name: Annotated[
        str | None, typer.Argument(metavar="TABLE", autocompletion=complete_tables)
    ] = None,
    columns: Annotated[
        bool, typer.Option("--columns", help="Show every column of every table.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Explain the tables of this run, with its own metrics.",
            autocompletion=complete_runs,
        ),
    ] = None,
) -> None:
    """Explain the tables of a run; with TABLE, its columns, units and definitions.

    The list names the step of an ingest that makes each table: an SQL file or a module. With
    TABLE, each column has the place where it is computed.

    The definition of a metric says how it treats the direction of links, and which value it has on
    a graph that is empty or disconnected.

    Examples:

    ```
    vizpub runs tables
    vizpub runs tables metrics/overlay
    vizpub runs tables --columns -o tables.md
    vizpub runs tables metrics/peers --run monday
    ```
    """
    from vizpub.model.own import with_own
    from vizpub.model.tables import TABLES, table
    from vizpub.runstore.store import open_run

    if name is not None:
        refuse_options(ctx, "one TABLE, whose columns are shown anyway", "--columns")
    elif not columns:
        refuse_options(ctx, "the list of tables; name a TABLE, or give --columns", "--run")
    own_metrics = open_run(settings.workspace, run, complete=False).manifest.own if run else ()
    steps = _steps()
    if name is None and not columns:
        listed = [
            {
                "table": t.name,
                "key": ", ".join(t.key),
                "one row per": t.row,
                "made by": steps[t.name],
            }
            for t in TABLES
        ]
    elif name is None:
        every = (with_own(table, own_metrics) for table in TABLES)
        listed = [{"table": t.name, **line} for t in every for line in _columns(t, steps)]
    else:
        listed = _columns(with_own(table(name), own_metrics), steps)
    if output_format(output) == "table":
        listed = list(map(_merge_notes, listed))
    show_rows(OutputRows.of_records(listed), output, settings)


def _steps() -> dict[str, str]:
    """The text or the module that makes each table."""
    texts = (
        (f"{package}/sql/{text.name}", text.read_text("utf-8"))
        for package in ("ingest", "analytics")
        for text in (files(f"vizpub.{package}") / "sql").iterdir()
    )
    steps = {match[1]: name for name, text in texts if (match := _MAKES.search(text))}
    return steps | _BY_MODULES


def _merge_notes(line: dict[str, Any]) -> dict[str, Any]:
    """Move the notes on graphs of a metric behind its meaning, into one column."""
    graph, otherwise = map(line.get, _OF_GRAPH)
    notes = [f"{graph} graph"] if graph else []
    notes += [f"if degenerate: {otherwise}"] if otherwise else []
    columns = {name: value for name, value in line.items() if name not in _OF_GRAPH}
    return columns | {"meaning": "; ".join([line["meaning"], *notes])} if notes else columns


def _columns(table: Table, steps: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "column": column.name,
            "type": column.type + (" or null" if column.nullable else ""),
            "unit": column.unit,
            "meaning": column.meaning,
            # Tables without metrics of a graph have no use for these two columns.
            **(
                dict(zip(_OF_GRAPH, (column.graph, column.degenerate), strict=True))
                if table.name.startswith("metrics/")
                else {}
            ),
            "computed in": _place_of(column, table.name, steps),
        }
        for column in table
    ]


def _place_of(column: Column, table: str, steps: Mapping[str, str]) -> str:
    """The text or module that computes a column."""
    from vizpub.model.tables import table as shipped_table

    if column.name not in shipped_table(table).names:
        return "own metric"
    if column.graph and table != "metrics/percolation":
        return _OF_STRUCTURE
    return steps[table]
