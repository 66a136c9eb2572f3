"""Pages of docs/ that are generated from the code: commands, tables, and names in Python.

`python -m vizpub.cli.reference` writes them; a test compares them with the code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from vizpub.cli.configuration import walk_commands
from vizpub.cli.main import app
from vizpub.cli.terminal.help import help_record
from vizpub.experiments.formatting import markdown_table

DOCS = Path(__file__).resolve().parent.parent / "docs"

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


_TABLES_HEAD = """\
# Tables of a run

Every table of a run is a folder of Parquet files ([the store](store.md)). `vizpub runs tables`
prints this page's tables, and with `--run` a run's [metrics of your own](metrics.md#own-metrics).
A null is unknown; a 0 was measured. [Metrics](metrics.md) explains the numbers. This page is made
from the definitions (`python -m vizpub.cli.reference`).
"""
_PYTHON_HEAD = """\
# Names in Python

The public names of `vizpub`, by their own descriptions. [Using vizpub from Python](python.md) shows
how they are used. This page is made from the code (`python -m vizpub.cli.reference`).
"""


def tables_page() -> str:
    """The page of all tables and columns."""
    from vizpub.model.tables import TABLES

    lines = [_TABLES_HEAD]
    for table in TABLES:
        columns = [
            (
                f"`{column.name}`",
                column.type + (" or null" if column.nullable else ""),
                column.unit,
                column.meaning.replace("|", "\\|"),
            )
            for column in table
        ]
        key = ", ".join(f"`{name}`" for name in table.key)
        lines += [f"## {table.name}", "", f"A row is one {table.row}. Key: {key or 'none'}.", ""]
        lines += [*markdown_table(("column", "type", "unit", "meaning"), columns), ""]
    return "\n".join(lines)


def python_page() -> str:
    """The page of the public names of the package."""
    lines = [_PYTHON_HEAD]
    package = import_module("vizpub")  # by name, as it stands above the command line
    for name in package.__all__:
        value = getattr(package, name)
        lines += [f"## {name}", "", *_described(name, value)]
        if inspect.isclass(value) and not issubclass(value, Exception):
            for called, method in inspect.getmembers_static(value):
                if not called.startswith("_") and called in _own_names(value):
                    lines += [f"### {name}.{called}", "", *_described(called, method)]
    return "\n".join(lines)


def _own_names(value: type) -> set[str]:
    """What the classes of this package, not those of libraries, define and describe."""
    ours = [of for of in value.__mro__ if of.__module__.startswith("vizpub.")]
    return {name for of in ours for name, item in vars(of).items() if _description(item)}


def _description(item: object) -> str:
    """The docstring of a function, property, class or module; not that of a value's type."""
    function = getattr(item, "__func__", item)
    is_described = isinstance(function, property | type | ModuleType) or inspect.isroutine(function)
    return inspect.cleandoc(function.__doc__ or "") if is_described else ""


def _described(name: str, item: object) -> list[str]:
    """The signature, if it is called, and the docstring as it is written."""
    called = getattr(item, "__func__", item)
    if isinstance(called, ModuleType | property) or not callable(called):
        head = name
    else:
        head = f"{name}{_signature(called)}"
    return ["```text", head, "", _description(item), "```", ""]


def _signature(called: Any) -> str:
    if inspect.isclass(called) and (
        issubclass(called, Exception) or getattr(called, "_is_protocol", False)
    ):
        return ""  # no one's own
    text = re.sub(r"ForwardRef\(('[^']*')\)", r"\1", str(inspect.signature(called)))
    plain = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    return re.sub(r"(?:\w+\.)+(?=[A-Z]\w*)", "", plain)


PAGES = {"cli.md": page, "tables.md": tables_page, "api.md": python_page}

if __name__ == "__main__":
    for file, content in PAGES.items():
        (DOCS / file).write_text(content(), "utf-8")
