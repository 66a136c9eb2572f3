"""Groups of commands: with fixed commands, or with commands that are created on use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from vizpub.cli.options import command
from vizpub.model.errors import UnknownName


def command_group(
    name: str, help_text: str, *, cls: type[TyperGroup] | None = None, **functions: Any
) -> typer.Typer:
    """A group of commands; the keywords are their names."""
    group = typer.Typer(name=name, cls=cls, no_args_is_help=True, help=help_text)
    for command_name, function in functions.items():
        group.command(command_name)(command(function))
    # Without a callback, Typer treats a group with one command as that command.
    group.callback()(lambda: None)
    return group


class LazyGroup(TyperGroup):
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
        app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        app.command(cmd_name)(command(self.create(cmd_name)))
        return typer.main.get_command(app)
