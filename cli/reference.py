"""The page docs/cli.md, generated from the help of the commands.

`python -m vizpub.cli.reference` writes it; a test compares it with the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from vizpub.cli.main import app
from vizpub.experiments.formatting import markdown

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
    yield from _below("vizpub", typer.main.get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    if hasattr(command, "commands"):
        for part in sorted(command.list_commands(None)):
            yield from _below(f"{name} {part}", command.get_command(None, part))


def page() -> str:
    """The page in Markdown."""
    sections = [_section(name, command) for name, command in commands()]
    return "\n".join([_HEAD, _overview(), *sections])


def _overview() -> str:
    """Every command with the first line of its help, as a table in Markdown."""
    rows = [
        (f"`{name}`", command.help.splitlines()[0])
        for name, command in commands()
        if not hasattr(command, "commands")
    ]
    return "\n".join([*markdown(("command", "does"), rows), ""])


def _section(name: str, command: Any) -> str:
    lines = [f"## {name}", "", command.help.strip(), ""]
    if rows := [row for parameter in command.params if (row := _row(parameter))]:
        lines += [*markdown(("", ""), rows), ""]
    return "\n".join(lines)


def _row(parameter: Any) -> tuple[str, str] | None:
    if parameter.name in ("help", "install_completion", "show_completion"):
        return None
    argument = parameter.param_type_name == "argument"
    shown = parameter.metavar or (parameter.name.upper() if argument else _value(parameter))
    names = [] if argument else [", ".join([*parameter.opts, *parameter.secondary_opts])]
    words = [parameter.help or ""]
    default = parameter.default
    if default is not None and default is not False and not callable(default):  # 0 is shown
        words.append(f"Default: {_plain(default)}.")
    if parameter.required:
        words.append("Required.")
    if parameter.envvar:
        words.append(f"Or: {parameter.envvar}.")
    left = " ".join([*names, *([shown] if shown else [])])
    return f"`{left}`", " ".join(filter(None, words))


def _plain(default: Any) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def _value(parameter: Any) -> str:
    return "" if parameter.is_flag else parameter.name.upper()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
