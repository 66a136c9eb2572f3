"""`vizpub runs`: the runs of the workspace."""

from __future__ import annotations

from vizpub.cli.commands.runs.archive import copy, export, import_
from vizpub.cli.commands.runs.check_run import check_run
from vizpub.cli.commands.runs.remove import remove
from vizpub.cli.commands.runs.runs import list_files, list_runs, print_path, show_log, show_run
from vizpub.cli.commands.runs.settle import settle
from vizpub.cli.commands.runs.summary import summary
from vizpub.cli.commands.runs.tables import tables
from vizpub.cli.groups import command_group, with_examples
from vizpub.cli.options import command
from vizpub.cli.terminal.help import HelpfulCommand

GROUP = command_group(
    "runs",
    with_examples(
        "List, show, check, settle, copy, back up and remove runs.",
        "vizpub runs list",
        "vizpub runs show monday",
        "vizpub runs settle lab",
    ),
    list=list_runs,
    show=show_run,
    log=show_log,
    summary=summary,
    tables=tables,
    path=print_path,
    files=list_files,
    check=check_run,
    settle=settle,
    copy=copy,
    export=export,
    remove=remove,
)
GROUP.command("import", cls=HelpfulCommand)(command(import_))
