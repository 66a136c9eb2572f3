"""The page docs/cli.md, generated from the help of the commands.

`python -m vizpub.cli.reference` writes it; a test compares it with the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import typer

from vizpub.cli.configuration import walk_commands
from vizpub.cli.main import app
from vizpub.cli.terminal.help import help_record
from vizpub.experiments.formatting import markdown_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

_HEAD = """\
# The command line

Data goes to standard output, messages and progress to standard error. Exit codes: 0 done,
1 failed (a check failed; `--strict` and some input was refused), 2 wrong use,
3 a service (Neo4j, Java) is unavailable or fails, 130 interrupted, 131 quit
(SIGQUIT), 143 terminated (SIGTERM).

Every command that prints a table takes `--format` and `-o FILE`. A table on a terminal is fitted
to its width; the other formats have every column and value in full. In tables `-` is
unknown, in JSON `null`, in CSV an empty field; 0 is a measured zero.

A file or the environment can set the default of any option ([configuration](configuration.md)).
`vizpub --install-completion` lets Tab complete the names of runs, topics, peers, queries and
settings.
This page is made from the commands' own help (`python -m vizpub.cli.reference`).
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and group with its full name, `vizpub` itself first."""
    program = typer.main.get_command(app)
    for path, command in sorted(walk_commands(typer.Context(program), program), key=itemgetter(0)):
        yield " ".join(("vizpub", *path)), command


def page() -> str:
    """The page in Markdown."""
    overview = [
        (f"`{name}`", command.help.splitlines()[0])
        for name, command in commands()
        if not hasattr(command, "commands")
    ]
    lines = [_HEAD, *markdown_table(("command", "does"), overview), ""]
    for name, command in commands():
        context = typer.Context(command)
        options = [
            (f"`{usage}`", " ".join(help_text.split()))
            for usage, help_text in filter(None, (help_record(p, context) for p in command.params))
            if usage not in ("--install-completion", "--show-completion")
        ]
        lines += [f"## {name}", "", command.help.strip(), ""]
        lines += [*markdown_table(("", ""), options), ""] if options else []
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
