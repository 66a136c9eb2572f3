"""The configuration file: defaults of options and services, and where each value comes from.

A flag comes first, then the environment, then the file, then the built-in default. Tables of the
file have the names of commands, and keys those of their options: the file can set every option, and
the commands themselves define which there are and which values they take. `[neo4j]`, `[spark]` and
`cache` stand for the environment variables of `SERVICES`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from vizpub.cli.groups import LazyGroup
from vizpub.cli.renamed import former_paths, rename_tables
from vizpub.machine.files import toml_of
from vizpub.model.errors import InputError, UnknownName, UseError, VizpubError

FILE = "vizpub.toml"
"""Name of the file in a workspace."""

SERVICES = {
    "neo4j.uri": ("NEO4J_URI",),
    "neo4j.user": ("NEO4J_USERNAME", "NEO4J_USER"),
    "neo4j.password-file": ("NEO4J_PASSWORD_FILE", "NEO4J_PASSWORD"),
    "neo4j.database": ("NEO4J_DATABASE",),
    "neo4j.container": ("VIZPUB_NEO4J_CONTAINER",),
    "spark.master": ("SPARK_MASTER",),
    "spark.memory": ("VIZPUB_SPARK_MEMORY",),
    "cache": ("VIZPUB_CACHE",),
    "s3.cache-gb": ("VIZPUB_S3_CACHE_GB",),
}
"""Settings that are no options, with the variables they stand for. The first one is set, unless one
of them is set already."""

_LOGIN = ("neo4j.uri", "neo4j.user", "neo4j.password-file", "neo4j.database")
"""Of one server: where the environment names another, none of them is taken from the file."""

_PATHS = ("neo4j.password-file", "cache")
_FUNCTIONS = ("ingest.metric",)
"""Lists of FILE.py:NAME; other items are names of installed functions."""
_KEY = "vizpub.configuration"
_TEXT = "text in quotes"
_NUMBERS: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}


@dataclass(frozen=True)
class Configuration:
    """The settings of the file and the environment."""

    file: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Defaults of options, by command and parameter, as typer takes them."""
    values: dict[str, Any] = field(default_factory=dict)
    """The same and the services, by their full names, such as ingest.no-load."""
    origins: dict[str, str] = field(default_factory=dict)
    """File or variable of each of the values."""
    variables: dict[str, str] = field(default_factory=dict)
    """Variables to set for the services."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Present names of tables and variables that have former names."""

    def keep(self, path: Sequence[str], parameter: Any, value: Any, origin: str) -> None:
        """Store the value of an option, in place of an earlier one."""
        table = self.options
        for name in path:
            table = table.setdefault(name, {})
        table[parameter.name] = value
        name = full_name(path, parameter)
        self.values[name], self.origins[name] = value, origin


def configuration(ctx: typer.Context) -> Configuration:
    """The configuration of this call."""
    current: Configuration = ctx.find_root().meta.get(_KEY) or Configuration()
    return current


def configure(ctx: typer.Context) -> None:
    """Make the settings of the file and the environment the defaults of all options.

    `ctx` has the words of the call with the present names of commands.

    Raises: InputError for a file that cannot be read or a value of another type, UnknownName for
    a key that is no option, UseError.
    """
    file = ctx.params["config"]
    path = Path(file) if file else Path(ctx.params["workspace"]) / FILE
    current = Configuration(path if file or os.path.exists(path) else None)
    words = [*ctx._protected_args, *ctx.args]
    if current.file:
        reader = _FileReader(current, path, words, implicit=not file)
        content = _read_file(path, implicit=not file)
        current.renamed.update(
            (f"{path}: {old}", new) for old, new in rename_tables(content).items()
        )
        reader.read_table(ctx.command, content, ())
    for names, command in _called_commands(ctx, words):
        _read_environment(current, names, command)
    ctx.default_map = current.options
    for parameter in settable(ctx.command):
        source = ctx.get_parameter_source(parameter.name)
        if source is not None and source.name == "DEFAULT" and parameter.name in current.options:
            ctx.params[parameter.name] = current.options[parameter.name]
    ctx.meta[_KEY] = current


def settable(command: Any) -> list[Any]:
    """Options that can be set in the file: all but those that act themselves, such as --help."""
    return [p for p in command.params if p.param_type_name == "option" and not p.is_eager]


def key(parameter: Any) -> str:
    """'--no-load' → 'no-load'."""
    return str(next(o for o in parameter.opts if o.startswith("--"))[2:])


def full_name(path: Sequence[str], parameter: Any) -> str:
    """Name of an option with its command: ingest.no-load."""
    return ".".join((*path, key(parameter)))


def variable(path: Sequence[str], parameter: Any) -> str:
    """The variable of an option: VIZPUB_INGEST_NO_LOAD, or the one in its help."""
    return str(
        parameter.envvar
        or "_".join(("VIZPUB", *path, key(parameter))).upper().replace("-", "_").replace(":", "_")
    )


def walk_commands(
    ctx: typer.Context, command: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below, with its path, the command itself first."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name in command.list_commands(ctx):
            yield from walk_commands(ctx, command.get_command(ctx, name), (*path, name))


def _called_commands(
    ctx: typer.Context, words: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands that are called: vizpub, and those that the words name; all for `config`."""
    if words[:1] == ["config"]:
        yield from walk_commands(ctx, ctx.command)
        return
    command: Any = ctx.command
    path: tuple[str, ...] = ()
    yield path, command
    # Some commands are created on use, so they are not looked up without need.
    if not words:
        return
    first_words = {words[0], *(old[0] for old in former_paths(words))}
    begins = tuple(f"VIZPUB_{word}_".upper() for word in first_words)
    if not any(name.startswith(begins) for name in os.environ):
        return
    for word in words:
        if not isinstance(command, TyperGroup):
            return
        subcommand = None
        with suppress(VizpubError):  # typer says it as well
            subcommand = command.get_command(ctx, word)
        if subcommand is None:
            return
        command, path = subcommand, (*path, word)
        yield path, command


def _read_environment(current: Configuration, path: tuple[str, ...], command: Any) -> None:
    for parameter in settable(command):
        now = variable(path, parameter)
        names = [now, *(variable(old, parameter) for old in former_paths(path))]
        name = next(filter(os.environ.get, names), now)
        if not (text := os.environ.get(name)):
            continue
        if name != now:
            current.renamed[name] = now
        value = text.split() if parameter.multiple else text
        current.keep(path, parameter, _coerced_value(parameter, value, name), name)


def _coerced_value(parameter: Any, value: Any, place: str) -> Any:
    """The value in the type of the option, which its callback has checked. Raises: InputError."""
    try:
        coerced = parameter.get_runtime_param().coerce(value, param=parameter, ctx=None)
        return parameter.callback(None, parameter, coerced) if parameter.callback else coerced
    except typer.BadParameter as error:
        problem = error.message.removeprefix("Value error, ").removeprefix("Input ")
    except UseError as error:
        problem = str(error).removeprefix(f"{parameter.opts[0]}: ")
    raise InputError(f"{place}: {problem}") from None


def _read_file(path: Path, *, implicit: bool) -> dict[str, Any]:
    """The content of the file. Raises: InputError.

    If the user did not name it, a file of another user is a UseError: it could send a password
    elsewhere.
    """
    from vizpub.machine.private import check_trusted

    try:
        if implicit:
            check_trusted(path)
        return toml_of(path)
    except UseError as error:
        raise UseError(f"{error}; if you trust it, name it: vizpub --config {path} …") from None
    except (OSError, ValueError) as error:
        origin = f"VIZPUB_CONFIG: {path}" if os.environ.get("VIZPUB_CONFIG") == str(path) else path
        reason = (
            f"cannot be read: {error.strerror}"
            if isinstance(error, OSError)
            else f"is not TOML: {error}"
        )
        raise InputError(f"{origin} {reason}") from error


@dataclass(frozen=True)
class _FileReader:
    """Checks the file and copies its settings into a configuration."""

    target: Configuration
    file: Path
    words: Sequence[str]
    """The words of the call after the global options."""
    implicit: bool
    """True if the file was found in the workspace, not named by the user."""

    def read_table(self, command: Any, content: Mapping[str, Any], path: tuple[str, ...]) -> None:
        """Read a table. Raises: InputError, UnknownName, UseError."""
        options = {key(p): p for p in settable(command)} if command else {}
        for name, value in content.items():
            below, full = (*path, name), ".".join((*path, name))
            if full in SERVICES:
                self._read_service(full, value)
            elif name in options:
                self._read_option(path, options[name], value)
            elif self._is_table(command, below):
                if not isinstance(value, dict):
                    raise InputError(f"{self.file}: {full} is a table; write [{full}]")
                self._read_command(command, value, below)
            else:
                raise self._unknown_name(command, options, below)

    def _is_table(self, command: Any, path: tuple[str, ...]) -> bool:
        has_command = isinstance(command, TyperGroup) and (
            path[-1] in command.commands or isinstance(command, LazyGroup)
        )
        return has_command or any(name.startswith(".".join(path) + ".") for name in SERVICES)

    def _read_command(self, group: Any, content: Mapping[str, Any], path: tuple[str, ...]) -> None:
        """Read the table of a command.

        A command that is created on use is created only for its own calls and for `config`: it
        would load what other commands do not need.
        """
        name = path[-1]
        if group is not None and name not in group.commands and isinstance(group, LazyGroup):
            if self.words[:1] != ["config"] and tuple(self.words[: len(path)]) != path:
                return
            try:
                command = group.get_command(None, name)
            except UnknownName as error:
                raise InputError(f"{self.file}: {'.'.join(path)}: {error}") from None
        else:
            command = group.commands.get(name) if group else None
        self.read_table(command, content, path)

    def _unknown_name(
        self, command: Any, options: Mapping[str, Any], path: tuple[str, ...]
    ) -> UnknownName | UseError:
        """The error for a name that is no setting: UnknownName, or UseError for a password."""
        full, table = ".".join(path), ".".join(path[:-1])
        if full == "neo4j.password":
            return UseError(
                f"{self.file}: a password cannot be in this file; write it to a file of mode "
                "0600 and name that file: neo4j.password-file, or set NEO4J_PASSWORD"
            )
        names = [*options, *(command.commands if isinstance(command, TyperGroup) else ())]
        known_names = {".".join((*path[:-1], name)) for name in names}
        known_names |= {name for name in SERVICES if name.startswith(table)}
        see = f"vizpub config show {table}".strip()
        return UnknownName(f"setting in {self.file}", full, sorted(known_names), see)

    def _read_option(self, path: tuple[str, ...], parameter: Any, value: Any) -> None:
        full = full_name(path, parameter)
        if full == "workspace" and self.implicit:
            raise UseError(
                f"{self.file}: this file was found in the workspace, and cannot set it; "
                "a file that --config names can"
            )
        self._check_type(full, parameter, value)
        if parameter.type_descriptor.is_path:
            value = self._path(value)
        if full in _FUNCTIONS:
            value = [self._path(item) if ":" in item else item for item in value]
        value = _coerced_value(parameter, value, f"{self.file}: {full}")
        self.target.keep(path, parameter, value, str(self.file))

    def _check_type(self, full: str, parameter: Any, value: Any) -> None:
        """Check the type, or true would be read as the number 1, and 7 as a text.

        Raises: InputError.
        """
        if parameter.is_flag:
            fits, words = isinstance(value, bool), "true or false"
        elif parameter.multiple:
            fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
            words = "a list of texts"
        else:
            types, words = _NUMBERS.get(parameter.type_descriptor.annotation, ((str,), _TEXT))
            fits = isinstance(value, types) and not isinstance(value, bool)
        if not fits:
            raise InputError(f"{self.file}: {full} must be {words}, not {_toml_text(value)}")

    def _read_service(self, full: str, value: Any) -> None:
        if not isinstance(value, str):
            raise InputError(f"{self.file}: {full} must be {_TEXT}, not {_toml_text(value)}")
        if full in _PATHS:
            value = self._path(value)
        names = SERVICES[full]
        elsewhere = full in _LOGIN and os.environ.get("NEO4J_URI")
        if elsewhere or any(os.environ.get(name) for name in names):
            return
        try:
            if full == "neo4j.uri":
                from vizpub.graphstore.server.address import check_uri

                check_uri(value)
            if full == "neo4j.password-file":
                from vizpub.machine.private import open_secret

                open_secret(Path(value)).close()
        except UseError as error:
            raise InputError(f"{self.file}: {full}: {error}") from None
        self.target.variables[names[0]] = value
        self.target.values[full], self.target.origins[full] = value, str(self.file)

    def _path(self, text: str) -> str:
        """A path in the file; a relative one begins at the folder of the file."""
        return text if text == "-" else str(self.file.parent / Path(text).expanduser())


def _toml_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
