"""Groups of commands: with fixed commands, or with commands that are imported or created on use."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import typer

from vizpub.cli.options import command
from vizpub.cli.terminal.help import HelpfulCommand, HelpfulGroup
from vizpub.model.errors import UnknownName


def command_group(
    name: str, help_text: str, *, cls: type[HelpfulGroup] = HelpfulGroup, **parts: Any
) -> typer.Typer:
    """A group of commands, which are functions or groups; the keywords are their names."""
    group = typer.Typer(name=name, cls=cls, no_args_is_help=True, help=help_text)
    for part_name, part in parts.items():
        if isinstance(part, typer.Typer):
            group.add_typer(part, name=part_name)
        else:
            group.command(part_name, cls=HelpfulCommand)(command(part))
    # Without a callback, Typer treats a group with one command as that command.
    group.callback()(lambda: None)
    return group


def with_examples(summary: str, *lines: str) -> str:
    """The help of a group, with examples as commands have them."""
    return "\n".join([summary, "", "Examples:", "", "```", *lines, "```"])


class LazyGroup(HelpfulGroup):
    """A group that creates its commands on use: their options are those of compiled code."""

    kind = "command"
    """Word for a command in the error for an unknown one."""

    def names(self) -> Sequence[str]:
        """The names of the commands that are created."""
        raise NotImplementedError

    def create(self, name: str) -> Callable[..., None]:
        """The function of a command."""
        raise NotImplementedError

    def creates(self, name: str) -> bool:
        """Return True for the name of a command that is created."""
        return name in self.names()

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, fixed ones first."""
        return [*super().list_commands(ctx), *self.names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name. Raises: UnknownName."""
        if (fixed := super().get_command(ctx, cmd_name)) is not None:
            return fixed
        if not self.creates(cmd_name):
            raise UnknownName(self.kind, cmd_name, self.list_commands(ctx))
        return _command_of(cmd_name, self.create(cmd_name))


class CommandsOnUse(UserDict[str, Any]):
    """Commands by name. Each is `MODULE:NAME` of `cli.commands` until it is looked up.

    Importing and creating all of them takes as long as Python and typer need to start.
    """

    def __getitem__(self, name: str) -> Any:
        if isinstance(place := self.data[name], str):
            module, _, attribute = place.partition(":")
            part = getattr(import_module(f"vizpub.cli.commands.{module}"), attribute)
            is_group = isinstance(part, typer.Typer)
            self.data[name] = typer.main.get_group(part) if is_group else _command_of(name, part)
        return self.data[name]


def _command_of(name: str, function: Callable[..., None]) -> Any:
    app = typer.Typer(add_completion=False)
    app.command(name, cls=HelpfulCommand)(command(function))
    return typer.main.get_command(app)
