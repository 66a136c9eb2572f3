"""`vizpub doctor`: checks what is installed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vizpub.cli.options import Output, given_options
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, output_format, show_rows
from vizpub.model.errors import CheckFailed, UseError

USABLE = "vizpub can be used"

_COLUMNS = ("part", "needed for", "state", "found", "get")


def doctor(
    ctx: typer.Context,
    settings: Settings,
    output: Output,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Print what an issue needs: versions, memory, limits; no secrets or paths.",
        ),
    ] = False,
    kit: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Collect wheels and jars here, for a machine without a network.",
        ),
    ] = None,
) -> None:
    """Check what is installed here, what is missing, and how to get it.

    Exit code 0 if runs can be ingested, loaded and queried here. Parts that only some commands or
    developers need do not count, nor do parts that are downloaded on first use. The command writes
    a file into the workspace and the cache, and removes it.

    Examples:

    ```
    vizpub doctor
    vizpub doctor --format json
    vizpub doctor --report
    vizpub doctor --kit kit
    ```
    """
    given = {*given_options(ctx)} & {"--report", "--kit"}
    if given:  # a default of the other one does not apply
        report, kit = report and "--report" in given, kit if "--kit" in given else None
    if report and kit:
        raise UseError("give --report or --kit, not both")
    if kit:
        _collect_kit(kit, settings)
    elif report:
        from vizpub.cli.commands.setup.issue import issue_facts

        facts = OutputRows(("what", "value"), list(issue_facts(settings.workspace)))
        show_rows(facts, output, settings)
    else:
        _check(settings, output)


def _check(settings: Settings, output: Output) -> None:
    from vizpub.cli.checks import check_machine

    parts = list(check_machine(settings.workspace))
    lines = [
        {
            "part": check.part,
            "needed for": check.needed_for,
            "state": check.state,
            "found": check.detail,
            "get": check.remedy if check.state != "ok" else "",
        }
        for check in parts
    ]
    apart = output_format(output) == "table"  # a narrow column would cut a command
    show_rows(OutputRows.of_records(lines, _COLUMNS[:-1] if apart else _COLUMNS), output, settings)
    for line in lines:
        if apart and line["get"]:
            settings.say(f"to get {line['part']}: {line['get']}")
    if failing := [check.part for check in parts if check.is_missing]:
        raise CheckFailed(f"vizpub cannot be used without: {', '.join(failing)}")
    settings.say(USABLE)


def _collect_kit(folder: Path, settings: Settings) -> None:
    from vizpub.machine.kit import CACHE, WHEELS, collect_kit

    with settings.progress() as progress:
        lacking = collect_kit(folder, partial(progress, "Fetch Neo4j (bytes)"))
    if lacking:
        settings.say(f"the kit is without GraphFrames: {lacking}", "warning")
    settings.say(
        f"{folder} is complete; copy it to the other machine, and there:\n"
        f"  pip install --no-index --find-links {folder.name}/{WHEELS} vizpub\n"
        f"  export VIZPUB_CACHE=$PWD/{folder.name}/{CACHE}"
    )
