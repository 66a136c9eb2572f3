"""`vizpub runs remove`: runs that go, by name, by pattern or by age."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.cli.commands.neo4j.browser import guide_folder
from vizpub.cli.completion import complete_runs
from vizpub.cli.errors import report
from vizpub.cli.options import Yes, check_duration, match_runs
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.formatting import printable
from vizpub.cli.terminal.streams import confirm, message
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import RunCollected, RunLocked, UseError

if TYPE_CHECKING:
    from vizpub.runstore.collection import Collected


def remove(
    settings: Settings,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="Names, or patterns such as 'test-*'.",
            autocompletion=complete_runs,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            callback=check_duration,
            help="Only runs without a change for this long, such as 30d.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be removed.")
    ] = False,
    with_log: Annotated[
        bool,
        typer.Option("--with-log", help="Also delete their collections, for good."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove runs from the workspace and from Neo4j.

    Shows what exists, and asks for confirmation. The collection of a run (log and batches) stays,
    unless you give --with-log: it may be the only copy of the measurements. A run that a collector
    or another command writes is refused and stays; the others are removed.

    Examples:

    ```
    vizpub runs remove monday
    vizpub runs remove 'test-*' --dry-run
    vizpub runs remove --older-than 30d --yes
    vizpub runs remove lab --with-log
    ```
    """
    if not (runs or older_than):
        raise UseError("name the runs to remove, or give --older-than DURATION")
    names = _select_runs(settings, runs or [], older_than, with_log=with_log)
    if not names:
        settings.say(f"no run to remove in {settings.place}")
        return
    notes = list(_removal_notes(settings, names, with_log=with_log))
    if dry_run:
        typer.echo("\n".join(f"would remove {printable(note)}" for note in notes))
        return
    if not yes:
        message("\n".join(notes))
        runs_text = f"run '{names[0]}'" if len(names) == 1 else f"these {len(names)} runs"
        confirm(f"Remove {runs_text} from {settings.place} and from Neo4j?")
    exit_codes = []
    for name in names:
        try:
            _remove_run(settings, name, with_log=with_log)
        except (RunLocked, RunCollected) as error:
            exit_codes.append(report(error, debug=settings.debug))
    if exit_codes:
        raise typer.Exit(max(exit_codes))


def _select_runs(
    settings: Settings, texts: Sequence[str], older_than: str | None, *, with_log: bool
) -> list[str]:
    """The names of the runs, each once. Raises: UnknownName, UseError."""
    from vizpub.runstore.collection import retired_collections
    from vizpub.runstore.store import directory_of, run_names
    from vizpub.runstore.stores.remote import changed_s
    from vizpub.runstore.writer import no_run

    existing = run_names(settings.workspace)
    if older_than is None:
        collections = retired_collections(settings.workspace) if with_log else ()
        candidates = sorted({*existing, *(collection.run for collection in collections)})
        return list(dict.fromkeys(name for text in texts for name in match_runs(text, candidates)))
    latest_s = time.time() - parse_duration_us(older_than) / 1e6
    names = []
    matches = [name for text in texts for name in match_runs(text, existing)] if texts else existing
    for name in dict.fromkeys(matches):
        if name not in existing:
            raise no_run(settings.workspace, name)
        if changed_s(directory_of(settings.workspace, name)) < latest_s:
            names.append(name)
    return names


def _remove_run(settings: Settings, run: str, *, with_log: bool) -> None:
    """Remove a run. Raises: UnknownName, RunLocked, RunCollected, UseError."""
    from vizpub.cli.service import remove_from_neo4j
    from vizpub.model.run import check_run_name
    from vizpub.runstore.collection import Collected
    from vizpub.runstore.store import run_names
    from vizpub.runstore.writer import remove_run, removing

    stored = check_run_name(run) in run_names(settings.workspace)
    collection = Collected(settings.workspace, run)
    exists = stored or (with_log and collection.folder.is_dir())
    # The copy goes first, so that an interrupted removal can be repeated; that of a run that is
    # being written stays with it.
    with removing(settings.workspace, run, with_log=with_log) if exists else nullcontext():
        removed = remove_from_neo4j(settings, run)
    if not (exists or removed):
        remove_run(settings.workspace, run)
    shutil.rmtree(guide_folder(settings, run), ignore_errors=True)
    settings.say(f"removed run '{run}'")
    if collection.is_retired:
        settings.say(describe_retired(collection))


def describe_retired(collection: Collected) -> str:
    """Describe a collection that stays without its run, and the commands for it."""
    from vizpub.experiments.formatting import size_text
    from vizpub.machine.files import bytes_below

    total = size_text(bytes_below(collection.folder))
    return (
        f"the collection of run '{collection.run}' stays in {collection.folder}, {total}; "
        f"to rebuild the run: vizpub live collect {collection.run} --revive; "
        f"to delete the collection: vizpub runs remove {collection.run} --with-log"
    )


def _removal_notes(settings: Settings, names: Sequence[str], *, with_log: bool) -> Iterator[str]:
    """Describe the files of each run, its copy in Neo4j and its collection.

    Raises: UnknownName if there is nothing to remove, UseError for an invalid name.
    """
    from vizpub.cli.service import copies_in_neo4j
    from vizpub.experiments.formatting import size_text
    from vizpub.machine.files import bytes_below
    from vizpub.model.run import check_run_name
    from vizpub.runstore.collection import Collected
    from vizpub.runstore.store import run_names
    from vizpub.runstore.stores.remote import size_of
    from vizpub.runstore.writer import no_run

    for run in names:
        check_run_name(run)
    copies, existing = copies_in_neo4j(settings), run_names(settings.workspace)
    for run in names:
        folder, collection = settings.workspace / "runs" / run, Collected(settings.workspace, run)
        is_collected = collection.folder.is_dir() and not collection.is_empty
        copy = _copy_text(copies, run)
        if run not in existing and copy == NO_COPY and not (with_log and is_collected):
            raise no_run(settings.workspace, run)
        size = size_text(size_of(folder))
        files = (
            f"{settings.place}/runs/{run}, {size}"
            if run in existing
            else "nothing in the workspace"
        )
        if is_collected:
            fate = "is deleted too" if with_log else "stays"
            size = size_text(bytes_below(collection.folder))
            copy += f"; its collection {fate}: {collection.folder}, {size}"
        yield f"run '{run}': {files}; {copy}"


NO_COPY = "no copy in Neo4j"


def _copy_text(copies: Mapping[str, str] | None, run: str) -> str:
    if copies is None:
        return "Neo4j does not answer now: it may have a copy"
    return f"a copy in Neo4j ({copies[run]})" if run in copies else NO_COPY
