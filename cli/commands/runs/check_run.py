"""`vizpub runs check`: compares the files of a run with run.json."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from vizpub.cli.options import Output, RunName
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.machine.files import as_errors_of_ours
from vizpub.model.errors import CheckFailed, RunChanged
from vizpub.model.wording import amount, was_or_were

_DAMAGE = ("file", "table", "why")


def check_run(
    settings: Settings,
    run: RunName,
    output: Output,
    mend: Annotated[
        bool,
        typer.Option("--mend", help="Rebuild the folders for other programs if they are wrong."),
    ] = False,
) -> None:
    """Read all files of a run and compare them with the sizes and checksums in run.json.

    Lists damaged files with the reason, and names in the run's folders for other programs that do
    not lead to the files of run.json. Exit code 1 if there are any.

    Examples:

    ```
    vizpub runs check monday
    vizpub runs check monday --format json
    vizpub runs check monday --mend
    ```
    """
    from vizpub.runstore.integrity import damages
    from vizpub.runstore.store import open_run
    from vizpub.runstore.stores.copying import drop_all
    from vizpub.runstore.views import damages as damages_of_views
    from vizpub.runstore.writer import writing

    stored = open_run(settings.workspace, run, complete=False)
    drop_all(stored)
    files = list(damages(stored.directory, stored.manifest))
    damaged = [damage for damage in files if damage is not None]
    # A folder for other programs that leads to a damaged file is rebuilt when that file is.
    with as_errors_of_ours(stored.directory):
        wrong = [] if damaged else list(damages_of_views(stored.directory, stored.manifest))
    if wrong and open_run(settings.workspace, run).manifest.view != stored.manifest.view:
        raise RunChanged(run)
    listed = [asdict(damage) for damage in (*damaged, *wrong)]
    show_rows(OutputRows.of_records(listed, _DAMAGE), output, settings)
    if wrong and mend:
        with writing(settings.workspace, run) as writer:
            writer.show_again()
        settings.say(f"rebuilt the folders of run '{run}' for other programs")
    elif wrong:
        raise CheckFailed(
            f"all {len(files)} files of run '{run}' are intact, but other programs find others: "
            f"{amount(len(wrong), 'name')} in its folders {was_or_were(len(wrong))} wrong",
            [f"rebuild the folders: vizpub runs check {run} --mend"],
        )
    if damaged:
        raise CheckFailed(
            f"{len(damaged)} of {len(files)} files of run '{run}' are damaged",
            ["ingest it again with --replace, or remove it: vizpub runs remove " + run],
        )
    settings.say(f"all {len(files)} files of run '{run}' are intact")
