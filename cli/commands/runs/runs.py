"""`vizpub runs`: the runs of the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.commands.runs.remove import describe_retired
from vizpub.cli.completion import complete_tables
from vizpub.cli.options import Limit, Output, RunName
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, output_format, show_rows
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from vizpub.runstore.store import StoredRun

_COLUMNS = (
    "run", "state", "neo4j", "source", "protocol", "intervals", "interval_us", "peers", "topics",
    "links", "publications", "receptions", "quarantined",
)  # fmt: skip

_FILES = ("table", "file", "rows", "bytes")


def list_runs(settings: Settings, output: Output) -> None:
    """List the runs of the workspace and the state of their copies in Neo4j.

    `state` is complete, ingesting (not finished: the same command resumes it), collecting (its
    collection has no closed interval yet), retired (the collection of a run that was
    removed: its size and what to do follow the list), or broken (run.json cannot be read: the
    reason and what to do follow the list). Changes that are in progress or were interrupted follow
    the list, too: until a change is done, the run is as it was.

    `neo4j` is complete, loading, removing, behind (without the last appends; a load adds them),
    outdated (the copy of an earlier run of that name) or absent; a dash means that no Neo4j is
    running. The command starts none.

    Examples:

    ```
    vizpub runs list
    vizpub runs list --format json
    ```
    """
    from vizpub.cli.service import states_in_neo4j
    from vizpub.questions.summary import runs_table
    from vizpub.runstore.changes import describe_unfinished
    from vizpub.runstore.collection import retired_collections
    from vizpub.runstore.store import BrokenRun, runs

    stored_runs, collections = runs(settings.workspace), retired_collections(settings.workspace)
    broken = [run for run in stored_runs if isinstance(run, BrokenRun)]
    states = states_in_neo4j(
        settings, [run for run in stored_runs if not isinstance(run, BrokenRun)]
    )
    facts = runs_table(stored_runs, collections).to_pylist()
    lines = [line | {"neo4j": states.get(line["run"])} for line in facts]
    rows = OutputRows.of_records(lines, _COLUMNS)
    show_rows(_show_seconds(rows) if output_format(output) == "table" else rows, output, settings)
    for run in broken:
        settings.say(f"run '{run.name}' is broken: {run.error}")
    for stored in stored_runs:
        if not isinstance(stored, BrokenRun) and (change := describe_unfinished(stored)):
            settings.say(f"run '{stored.name}': {change}")
    for collection in collections:
        settings.say(describe_retired(collection))
    if not lines:
        settings.say(f"no runs in {settings.place}; create one with: vizpub ingest PATH --run NAME")


def _show_seconds(rows: OutputRows) -> OutputRows:
    """The length of an interval with its unit."""
    at = rows.columns.index("interval_us")
    columns = tuple("interval" if name == "interval_us" else name for name in rows.columns)
    return OutputRows(
        columns,
        [
            [*row[:at], None if row[at] is None else f"{row[at] / 1e6:g} s", *row[at + 1 :]]
            for row in rows.values
        ],
        leaving=("quarantined", "receptions", "publications", "interval"),
    )


def show_run(
    settings: Settings,
    run: RunName,
    output: Output,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", hidden=True)] = None,
) -> None:
    """Show the input of a run, and what was left out.

    Examples:

    ```
    vizpub runs show monday
    vizpub runs show monday --format json
    ```
    """
    from vizpub.questions.sql import sql_name
    from vizpub.runstore.store import open_run

    stored = open_run(settings.workspace, run, complete=False)
    if table is not None:
        name = sql_name(stored.definition(table).name)
        raise UseError(f"this command shows no rows; use: vizpub sql {run} 'FROM {name}'")
    show_summary(stored, output, settings)


def show_log(settings: Settings, run: RunName, output: Output, limit: Limit = 0) -> None:
    """Show the ingests of a run: stages, seconds and rows, refused records, why one stopped.

    Examples:

    ```
    vizpub runs log monday
    vizpub runs log monday --limit 20 --format json
    ```
    """
    from vizpub.runstore.journal import COLUMNS
    from vizpub.runstore.store import open_run

    stored = open_run(settings.workspace, run, complete=False)
    rows = OutputRows(COLUMNS, _log_rows(stored, output))
    show_rows(rows.first(limit), output, settings)


def _log_rows(run: StoredRun, output: Output) -> Iterator[list[Any]]:
    """The events of the run's log; in tables the rows are one text, and times have seconds."""
    from vizpub.runstore.journal import read_journal
    from vizpub.runstore.stores.copying import bring_log

    bring_log(run)
    for event in read_journal(run.directory):
        if output_format(output) in ("table", "md"):
            event["at"] = event["at"][:19].replace("T", " ")
            if event["rows"] is not None:
                counts = (f"{name} {rows:,}" for name, rows in event["rows"].items())
                event["rows"] = ", ".join(counts)
        yield list(event.values())


def print_path(
    settings: Settings,
    run: RunName,
    table: Annotated[
        str,
        typer.Argument(autocompletion=complete_tables, help="A table, such as metrics/overlay."),
    ],
) -> None:
    """Print the folder of a table's current files, for other programs.

    The files are Parquet. The folder stays unchanged until ten minutes after the run was changed or
    replaced. `runs/RUN/TABLE` in the workspace links to the newest such folder: a program that
    reads through the link while the run changes may fail, and has to read again.

    Examples:

    ```
    vizpub runs path monday links
    duckdb -c "SELECT count(*) FROM '$(vizpub runs path monday links)/*.parquet'"
    ```
    """
    from vizpub.runstore.store import open_run
    from vizpub.runstore.views import folder

    typer.echo(folder(open_run(settings.workspace, run), table))


def list_files(
    settings: Settings,
    run: RunName,
    output: Output,
    table: Annotated[
        str | None,
        typer.Argument(autocompletion=complete_tables, help="List only the files of this table."),
    ] = None,
) -> None:
    """List the Parquet files of a run, with their numbers of rows and bytes.

    Every row in them belongs to the run. The files stay unchanged until ten minutes after the run
    was changed or replaced.

    Examples:

    ```
    vizpub runs files monday
    vizpub runs files monday metrics/overlay --format json
    ```
    """
    from vizpub.model.errors import UnknownName
    from vizpub.runstore.store import open_run
    from vizpub.runstore.stores.place import store_of

    stored = open_run(settings.workspace, run)
    table_names = sorted(name for name in stored.manifest.tables if not name.startswith("staged/"))
    if table is not None and table not in table_names:
        raise UnknownName("table", table, table_names)
    store = store_of(settings.workspace)
    top = f"{store.url}/runs/{run}" if store else str(stored.directory)
    files = [
        (name, f"{top}/{part.directory}/{file.name}", file.rows, file.size)
        for name in ([table] if table else table_names)
        for part in stored.manifest.tables[name].parts
        for file in part.files or ()
    ]
    show_rows(OutputRows(_FILES, [list(line) for line in files]), output, settings)


def show_summary(run: StoredRun, output: Output, settings: Settings) -> None:
    """Print the facts of a run, and what was left out.

    JSON has its whole run.json, a change that is not done (`unfinished`), and the last intervals
    that appends do not change (`final`), nor their messages (`settled`).
    """
    from vizpub.questions.summary import facts_for_people
    from vizpub.runstore.changes import describe_unfinished

    if output_format(output) in ("json", "jsonl"):
        facts = run.facts if run.manifest.clock else None
        final, settled = (facts.final, facts.settled) if facts else (None, None)
        change = describe_unfinished(run) or None
        fields = {
            **asdict(run.manifest), "unfinished": change, "final": final, "settled": settled
        }  # fmt: skip
        show_rows(OutputRows.of_records([fields]), output, settings)
    else:
        show_rows(OutputRows(("fact", "value"), list(facts_for_people(run))), output, settings)
