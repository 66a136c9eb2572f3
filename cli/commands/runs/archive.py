"""`vizpub runs export` and `vizpub runs import`: back-up and restore of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vizpub.cli.options import RunName
from vizpub.cli.service import remove_stale
from vizpub.cli.settings import Settings


def export(
    settings: Settings,
    run: RunName,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="File: .tar, .tar.gz or .tar.zst."),
    ],
    with_log: Annotated[
        bool,
        typer.Option(
            "--with-log",
            help="Also back up its collection (log, batches, tokens), so that it can resume.",
        ),
    ] = False,
) -> None:
    """Write a run to a file, for `vizpub runs import`.

    The run may grow meanwhile: the file has it as it was at the beginning. Only its owner can read
    the file; with --with-log, it contains the tokens of the collector.

    Examples:

    ```
    vizpub runs export monday -o monday.tar
    vizpub runs export lab --with-log -o lab.tar.zst
    ```
    """
    from vizpub.experiments.formatting import size_text
    from vizpub.runstore.archive import export_run
    from vizpub.runstore.store import open_run
    from vizpub.runstore.stores.copying import bring_all

    stored = open_run(settings.workspace, run)
    bring_all(stored)
    export_run(stored, output, with_log=with_log)
    settings.say(f"wrote {output} ({size_text(output.stat().st_size)})")


def copy(
    settings: Settings,
    run: RunName,
    workspace: Annotated[
        str,
        typer.Argument(
            metavar="WORKSPACE", help="Folder, s3://BUCKET/PREFIX or hdfs://HOST:PORT/PATH."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Name of the copy (default: the run's)."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another run of that name.")
    ] = False,
) -> None:
    """Copy a run to another workspace: a folder, or a store.

    To copy from a store, give that as --workspace. The copy appears when all of its files are there
    and have their checksums. After a kill, the same command resumes: it sends and fetches no file a
    second time. The collection of a run stays where it is.

    Examples:

    ```
    vizpub runs copy lab s3://bucket/study
    vizpub runs copy lab s3://bucket/back-up --as lab-may
    ```
    """
    from vizpub.runstore.store import open_run
    from vizpub.runstore.stores.copying import copy_run
    from vizpub.runstore.stores.place import folder_of

    to = folder_of(workspace)
    copied = copy_run(open_run(settings.workspace, run), to, name, replaces=replace)
    settings.say(f"copied run '{run}' to {workspace}, as '{copied.name}'")


def import_(
    settings: Settings,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Name of the run (default: its own)."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an existing run of that name.")
    ] = False,
) -> None:
    """Restore a run from a file that `vizpub runs export` has written.

    All files are compared with their checksums first; until then, the workspace stays as it is. The
    run is not loaded into Neo4j: use `vizpub neo4j load`. If the file has the collection of the
    run, `vizpub live collect` resumes it.

    Examples:

    ```
    vizpub runs import monday.tar
    vizpub runs import monday.tar --as restored
    vizpub runs import lab.tar.zst --replace
    ```
    """
    from vizpub.runstore.archive import import_run

    run = import_run(file, settings.workspace, name, replaces=replace)
    settings.say(f"imported run '{run.name}'")
    remove_stale(settings, run)
