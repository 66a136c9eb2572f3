"""`vizpub config`: the settings, and where they come from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from vizpub.cli.configuration import (
    FILE,
    SERVICES,
    Configuration,
    configuration,
    full_name,
    settable,
    walk_commands,
)
from vizpub.cli.groups import command_group
from vizpub.cli.options import Output
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, output_format, show_rows
from vizpub.model.errors import UnknownName

_MASK = "******"


def _complete_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of commands and settings."""
    try:
        rows = _setting_rows(ctx.find_root(), Configuration())
        names = {".".join(part) for name, _, _ in rows for part in _name_prefixes(name)}
    except Exception:  # the shell cannot show an error
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def _name_prefixes(name: str) -> Iterator[list[str]]:
    words = name.split(".")
    return (words[: end + 1] for end in range(len(words)))


def show_settings(
    ctx: typer.Context,
    settings: Settings,
    output: Output,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=_complete_names,
            help="Only this command or setting, with all built-in defaults.",
        ),
    ] = None,
) -> None:
    """Show the settings and where each comes from: a flag, a variable, the file, or the default.

    Without NAME: the global options, the services, and every option of a command that is set.
    docs/configuration.md describes the file.

    Examples:

    ```
    vizpub config show
    vizpub config show ingest
    vizpub config show ingest.interval --format json
    ```
    """
    current = configuration(ctx)
    rows = list(_setting_rows(ctx.find_root(), current))
    if name is None:
        rows = [
            row for row in rows if "." not in row[0] or row[0] in SERVICES or row[2] != "default"
        ]
    else:
        known_names = sorted(
            {".".join(part) for full, _, _ in rows for part in _name_prefixes(full)}
        )
        if name not in known_names:
            raise UnknownName("command or setting", name, known_names, "vizpub config show")
        rows = [row for row in rows if f"{row[0]}.".startswith(f"{name}.")]
    if output_format(output) == "table":  # as they are written in the file
        rows = [(full, str(v) if type(v) is int else v, origin) for full, v, origin in rows]
    show_rows(OutputRows(("setting", "value", "from"), rows), output, settings)
    source = f"read {current.file}" if current.file else f"no {FILE} in {settings.place}"
    settings.say(source)


SettingRow = tuple[str, Any, str]


def _setting_rows(root: Any, current: Configuration) -> Iterable[SettingRow]:
    """Every setting with its value and where it comes from."""
    for path, called in walk_commands(root, root.command):
        for parameter in settable(called):
            yield _option_row(root, current, path, parameter)
        if not path:
            yield from _service_rows(current)


def _option_row(
    root: Any, current: Configuration, path: tuple[str, ...], parameter: Any
) -> SettingRow:
    name = full_name(path, parameter)
    source = None if path else root.get_parameter_source(parameter.name)
    if source is not None and source.name == "COMMANDLINE":
        return name, _file_value(root.params[parameter.name]), parameter.opts[0]
    if name in current.values:
        return name, _file_value(current.values[name]), current.origins[name]
    return name, _file_value(parameter.default), "default"


def _file_value(value: Any) -> Any:
    """The value as written in a file; null = no default."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or None
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _service_rows(current: Configuration) -> Iterator[SettingRow]:
    for name, variables in SERVICES.items():
        if name in current.origins:
            yield name, current.values[name], current.origins[name]
        elif text := os.environ.get(variables[0]):
            # An address can have a password in it, which is refused, but not before it is used.
            yield name, _MASK if "@" in text else text, variables[0]
        else:
            yield name, None, "default"
    if os.environ.get("NEO4J_PASSWORD"):
        yield "neo4j.password", _MASK, "NEO4J_PASSWORD"


GROUP = command_group("config", "Show the settings and where they come from.", show=show_settings)
