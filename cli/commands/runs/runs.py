"""`vizpub runs`: the runs of the workspace."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.commands.neo4j.browser import guide_folder
from vizpub.cli.commands.runs.check_run import check_run
from vizpub.cli.completion import complete_tables
from vizpub.cli.options import Limit, Output, RunName, command
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import Rows, output_format, show
from vizpub.cli.terminal.streams import confirm, message

if TYPE_CHECKING:
    from vizpub.runstore.collection import Collected
    from vizpub.runstore.store import BrokenRun, StoredRun

_COLUMNS = (
    "run", "state", "neo4j", "source", "protocol", "intervals", "interval_us", "peers", "topics",
    "links", "publications", "receptions", "quarantined",
)  # fmt: skip

_FILES = ("table", "file", "rows", "bytes")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="List, show, check and remove the runs.")
    group.command("list")(command(list_runs))
    group.command("show")(command(show_run))
    group.command("path")(command(print_path))
    group.command("files")(command(list_files))
    group.command("check")(command(check_run))
    group.command("remove")(command(remove))
    app.add_typer(group, name="runs", rich_help_panel="Runs")


def list_runs(settings: Settings, output: Output) -> None:
    """List the runs of the workspace and the state of their copies in Neo4j.

    `state` is complete, ingesting (not finished: the same command resumes it), collecting (a
    collection has the name, and no interval yet), retired (what was collected for a run that was
    removed: its size and what to do follow the list), or broken (run.json cannot be read: the
    reason and what to do follow the list). A change that goes on or was interrupted follows the
    list, too: until it is done, the run is as it was.

    `neo4j` is complete, loading, removing, behind (without the last appends; a load adds them),
    outdated (the copy of an earlier run of that name) or absent; a dash means that no Neo4j is
    running (none is started).

    Examples:

    ```
    vizpub runs list
    vizpub runs list --format json
    ```
    """
    from vizpub.cli.service import states_in_neo4j
    from vizpub.runstore.changes import unfinished
    from vizpub.runstore.collection import retired
    from vizpub.runstore.store import BrokenRun, runs

    there, collections = runs(settings.workspace), retired(settings.workspace)
    broken = [run for run in there if isinstance(run, BrokenRun)]
    states = states_in_neo4j(settings, [run for run in there if not isinstance(run, BrokenRun)])
    found = [_line(run, states.get(run.name)) for run in there]
    found += [_without_facts(of.run, "retired") for of in collections]
    found.sort(key=lambda line: line["run"])
    rows = Rows.of_records(found, _COLUMNS)
    show(_with_seconds(rows) if output_format(output) == "table" else rows, output, settings)
    for run in broken:
        settings.say(f"run '{run.name}' is broken: {run.error}")
    for stored in there:
        if not isinstance(stored, BrokenRun) and (told := unfinished(stored)):
            settings.say(f"run '{stored.name}': {told}")
    for of in collections:
        settings.say(_what_stays(of))
    if not found:
        settings.say(
            f"no runs in {settings.workspace}; create one with: vizpub ingest PATH --run NAME"
        )


def _with_seconds(rows: Rows) -> Rows:
    """The length of an interval with its unit."""
    at = rows.columns.index("interval_us")
    columns = tuple("interval" if name == "interval_us" else name for name in rows.columns)
    return Rows(
        columns,
        [
            [*row[:at], None if row[at] is None else f"{row[at] / 1e6:g} s", *row[at + 1 :]]
            for row in rows.values
        ],
        leaving=("quarantined", "receptions", "publications", "interval"),
    )


def _without_facts(run: str, state: str) -> dict[str, Any]:
    return {**dict.fromkeys(_COLUMNS), "run": run, "state": state}


def _line(run: StoredRun | BrokenRun, in_neo4j: str | None) -> dict[str, Any]:
    from vizpub.runstore.store import BrokenRun

    if isinstance(run, BrokenRun):
        return _without_facts(run.name, "broken")
    clock = run.manifest.clock
    tables = ("peers", "topics", "links", "publications", "receptions", "quarantine")
    rows = [run.rows(name) if run.has(name) else None for name in tables]
    facts = (
        run.name,
        run.manifest.state,
        in_neo4j,
        run.manifest.source,
        run.manifest.protocol,
        clock.intervals if clock else None,
        clock.interval_us if clock else None,
    )
    return dict(zip(_COLUMNS, (*facts, *rows), strict=True))


def show_run(
    settings: Settings,
    run: RunName,
    output: Output,
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE|log",
            autocompletion=complete_tables,
            help="Print the rows of this table, or the log.",
        ),
    ] = None,
    limit: Limit = 0,
) -> None:
    """Show the input of a run and what was left out, or the rows of one of its tables.

    `log` shows the ingests of the run: stages with seconds and rows, refused records, and why
    an ingest stopped.

    Examples:

    ```
    vizpub runs show monday
    vizpub runs show monday --format json
    vizpub runs show monday quarantine --limit 20
    vizpub runs show monday log
    ```
    """
    from vizpub.runstore.journal import COLUMNS, LOG
    from vizpub.runstore.store import open_run

    stored = open_run(settings.workspace, run, complete=False)
    if table is None:
        show_summary(stored, output, settings)
        return
    if table == LOG:
        rows = Rows(COLUMNS, _events(stored, output))
        show(rows.first(limit) if limit else rows, output, settings)
        return
    columns = stored.definition(table).names
    # Refused records are sorted by their key: file and line.
    ordered = table == "quarantine"
    batches = stored.read(table).to_batches() if ordered else stored.scan(table, columns)
    rows = Rows.of_arrow(columns, batches)
    show(rows.first(limit) if limit else rows, output, settings)


def _events(run: StoredRun, output: Output) -> Iterator[list[Any]]:
    """The events of the run's log; in tables the rows are one text, and times have seconds."""
    from vizpub.runstore.journal import read_journal

    for event in read_journal(run.directory):
        if output_format(output) in ("table", "md"):
            event["at"] = event["at"][:19].replace("T", " ")
            if event["rows"] is not None:
                told = (f"{name} {rows:,}" for name, rows in event["rows"].items())
                event["rows"] = ", ".join(told)
        yield list(event.values())


def print_path(
    settings: Settings,
    run: RunName,
    table: Annotated[
        str, typer.Argument(autocompletion=complete_tables, help="A table, as metrics/overlay.")
    ],
) -> None:
    """Print the folder that has the rows of a table now, for other programs.

    Its files are Parquet. The folder stays as it is, for ten minutes after the run was changed or
    replaced. `runs/RUN/TABLE` in the workspace leads to the newest such folder, so who reads that
    while the run changes may find no file.

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
        typer.Argument(autocompletion=complete_tables, help="Only the files of this table."),
    ] = None,
) -> None:
    """List the Parquet files of a run, with their rows and bytes. All of their rows count.

    They stay as they are, for ten minutes after the run was changed or replaced.

    Examples:

    ```
    vizpub runs files monday
    vizpub runs files monday metrics/overlay --format json
    ```
    """
    from vizpub.model.errors import UnknownName
    from vizpub.runstore.store import open_run

    stored = open_run(settings.workspace, run)
    there = sorted(name for name in stored.manifest.tables if not name.startswith("staged/"))
    if table is not None and table not in there:
        raise UnknownName("table", table, there)
    found = [
        (name, str(stored.directory / part.directory / file.name), file.rows, file.size)
        for name in ([table] if table else there)
        for part in stored.manifest.tables[name].parts
        for file in part.files or ()
    ]
    show(Rows(_FILES, [list(line) for line in found]), output, settings)


def remove(
    settings: Settings,
    run: RunName,
    with_log: Annotated[
        bool,
        typer.Option("--with-log", help="Also delete its collection (log and batches), for good."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a run from the workspace and from Neo4j.

    Before it asks, it says what exists. The collection of the run stays, unless you give
    --with-log: it may be the only copy of the measurements. Nothing is removed while a collector
    runs.

    Examples:

    ```
    vizpub runs remove monday
    vizpub runs remove monday --yes
    vizpub runs remove lab --with-log
    ```
    """
    from vizpub.cli.service import remove_from_neo4j
    from vizpub.model.run import check_run_name
    from vizpub.runstore.collection import Collected
    from vizpub.runstore.store import run_names
    from vizpub.runstore.writer import remove_run, removing

    stored = check_run_name(run) in run_names(settings.workspace)
    of = Collected(settings.workspace, run)
    there = stored or (with_log and of.folder.is_dir())
    if not yes:
        message(_what_is_there(settings, run, with_log=with_log))
        confirm(f"Remove run '{run}' from {settings.workspace} and from Neo4j?")
    # The copy goes first, so that an interrupted removal can be repeated; that of a run that is
    # being written stays with it.
    with removing(settings.workspace, run, with_log=with_log) if there else nullcontext():
        removed = remove_from_neo4j(settings, run)
    if not (there or removed):
        remove_run(settings.workspace, run)
    shutil.rmtree(guide_folder(settings, run), ignore_errors=True)
    settings.say(f"removed run '{run}'")
    if of.is_retired:
        settings.say(_what_stays(of))


def _what_stays(of: Collected) -> str:
    """Of a collection without its run."""
    from vizpub.experiments.formatting import size
    from vizpub.machine.files import bytes_below

    found = size(bytes_below(of.folder))
    return (
        f"the collection of run '{of.run}' stays in {of.folder}, {found}; to rebuild the "
        f"run: vizpub collect {of.run} --revive; to delete the collection: "
        f"vizpub runs remove {of.run} --with-log"
    )


def _what_is_there(settings: Settings, run: str, *, with_log: bool) -> str:
    """The files of a run, its copy in Neo4j, and what was collected for it. Raises: UnknownName if
    there is nothing that is removed.
    """
    from vizpub.cli.service import copy_in_neo4j
    from vizpub.experiments.formatting import size
    from vizpub.machine.files import bytes_below
    from vizpub.runstore.collection import Collected
    from vizpub.runstore.store import run_names
    from vizpub.runstore.writer import no_run

    copy, folder = copy_in_neo4j(settings, run), settings.workspace / "runs" / run
    of, there = Collected(settings.workspace, run), run_names(settings.workspace)
    is_collected = of.folder.is_dir() and not of.is_empty
    if run not in there and copy == "absent" and not (with_log and is_collected):
        raise no_run(settings.workspace, run)
    files = f"{folder}, {size(bytes_below(folder))}" if run in there else "nothing in the workspace"
    if copy is None:
        words = "Neo4j does not answer now: it may have a copy"
    else:
        words = "no copy in Neo4j" if copy == "absent" else f"a copy in Neo4j ({copy})"
    if is_collected:
        what = "is deleted too" if with_log else "stays"
        words += f"; its collection {what}: {of.folder}, {size(bytes_below(of.folder))}"
    return f"run '{run}': {files}; {words}"


def show_summary(run: StoredRun, output: Output, settings: Settings) -> None:
    """Print what a run is and what was left out; in JSON its whole run.json, a change that is not
    done (`unfinished`), and the last intervals that appends do not change (`final`), nor their
    messages (`settled`).
    """
    from vizpub.questions.summary import facts_for_people
    from vizpub.runstore.changes import unfinished

    if output_format(output) in ("json", "jsonl"):
        facts = run.facts if run.manifest.clock else None
        final, settled = (facts.final, facts.settled) if facts else (None, None)
        change = unfinished(run) or None
        told = {
            **asdict(run.manifest), "unfinished": change, "final": final, "settled": settled
        }  # fmt: skip
        show(Rows.of_records([told]), output, settings)
    else:
        show(Rows(("fact", "value"), list(facts_for_people(run))), output, settings)
