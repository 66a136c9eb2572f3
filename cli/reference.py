"""The page docs/cli.md, generated from the help of the commands.

`python -m vizpub.cli.reference` writes it; a test compares it with the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from vizpub.cli.main import app
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
    yield from _walk_commands("vizpub", typer.main.get_command(app))


def _walk_commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    if hasattr(command, "commands"):
        for part in sorted(command.list_commands(None)):
            yield from _walk_commands(f"{name} {part}", command.get_command(None, part))


def page() -> str:
    """The page in Markdown."""
    overview = [
        (f"`{name}`", command.help.splitlines()[0])
        for name, command in commands()
        if not hasattr(command, "commands")
    ]
    sections = [_section(name, command) for name, command in commands()]
    return "\n".join([_HEAD, *markdown_table(("command", "does"), overview), "", *sections])


def _section(name: str, command: Any) -> str:
    lines = [f"## {name}", "", command.help.strip(), ""]
    if rows := [row for parameter in command.params if (row := _row(parameter))]:
        lines += [*markdown_table(("", ""), rows), ""]
    return "\n".join(lines)


def _row(parameter: Any) -> tuple[str, str] | None:
    if parameter.name in ("help", "install_completion", "show_completion"):
        return None
    argument = parameter.param_type_name == "argument"
    value = parameter.name.upper() if argument or not parameter.is_flag else ""
    metavar = parameter.metavar or value
    names = [] if argument else [", ".join([*parameter.opts, *parameter.secondary_opts])]
    words = [parameter.help or ""]
    default = parameter.default
    if default is not None and default is not False and not callable(default):  # 0 is shown
        words.append(
            f"Default: {default:g}." if isinstance(default, float) else f"Default: {default}."
        )
    if parameter.required:
        words.append("Required.")
    if parameter.envvar:
        words.append(f"Or: {parameter.envvar}.")
    usage = " ".join([*names, *([metavar] if metavar else [])])
    return f"`{usage}`", " ".join(filter(None, words))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
