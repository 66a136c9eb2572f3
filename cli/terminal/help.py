"""Help of commands as plain text: it fits any width, and nothing in it is cut."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

RARE = "Rare options"
"""Section of options that few calls need."""
_BLOCK = re.compile(r"(?:^(\w[^\n]*):\n+)?^```\n(.*?)\n```\n?", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|\S)+")
_FIRST_COLUMN = 26
"""Wider names have their text below."""


class HelpfulCommand(TyperCommand):
    """A command that shows its help as this module does."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of a call: [OPTIONS] RUN [TABLE]."""
        del ctx
        return _usage(self)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        _write_help(self, ctx, formatter)


class HelpfulGroup(TyperGroup):
    """A group that shows its help as this module does."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of a call: [OPTIONS] COMMAND [ARGS]..."""
        del ctx
        return [*_usage(self), self.subcommand_metavar]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the commands of the group."""
        _write_help(self, ctx, formatter)
        panels: dict[str, list[tuple[str, str]]] = {}
        for panel, name, summary in self.summaries(ctx):
            panels.setdefault(panel, []).append((name, summary))
        _write_sections(formatter, panels)

    def summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:
        """The panel, name and summary of every command of the group."""
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            yield command.rich_help_panel or "Commands", name, command.help.splitlines()[0]


def help_record(parameter: Any, ctx: Any) -> tuple[str, str] | None:
    """The usage of an option or argument and its text; null = not shown."""
    record: tuple[str, str] | None = parameter.get_help_record(ctx)
    if record and parameter.param_type_name == "argument":
        return _argument(parameter), parameter.help or ""
    return record


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper()).strip("[]")


def _write_help(command: Any, ctx: Any, formatter: Any) -> None:
    command.format_usage(ctx, formatter)
    text = inspect.cleandoc(command.help or "")
    summary, *rest = [*_BLOCK.sub("", text).strip().split("\n\n"), ""]
    _write_paragraph(formatter, summary)
    for title, block in _BLOCK.findall(text):
        formatter.write(f"\n{title or 'Examples'}:\n")
        for line in block.splitlines():
            formatter.write(_break_line(line, formatter.width))
    for paragraph in filter(None, rest):
        _write_paragraph(formatter, paragraph)
    panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(ctx):
        record = help_record(parameter, ctx)
        is_argument = parameter.param_type_name == "argument"
        if record is None or (is_argument and not record[1]):
            continue
        panel = "Arguments" if is_argument else parameter.rich_help_panel or "Options"
        panels.setdefault(panel, []).append(record)
    _write_sections(formatter, panels)


def _usage(command: Any) -> list[str]:
    words = ["[OPTIONS]"]
    for parameter in command.params:
        if parameter.param_type_name != "argument" or parameter.hidden:
            continue
        name = _argument(parameter)
        if parameter.nargs != 1 and not name.endswith(("...", "…")):
            name += "..."
        words.append(name if parameter.required else f"[{name}]")
    return words


def _write_paragraph(formatter: Any, text: str) -> None:
    formatter.write("\n" + "".join(f"{line}\n" for line in _wrap(text, formatter.width)))


def _write_sections(formatter: Any, panels: dict[str, list[tuple[str, str]]]) -> None:
    for title, rows in panels.items():
        names = (len(name) for name, _ in rows if len(name) <= _FIRST_COLUMN)
        column = max(names, default=_FIRST_COLUMN) + 4
        formatter.write(f"\n{title}:\n" if rows else "")
        for name, text in rows:
            lines = _wrap(text, formatter.width - column)
            if len(name) + 4 > column:
                lines.insert(0, "")
            first, *more = lines or [""]
            formatter.write(f"  {name}".ljust(column) + first.rstrip() + "\n")
            formatter.write("".join(f"{' ' * column}{line}\n" for line in more))


def _wrap(text: str, width: int) -> list[str]:
    """Lines of whole words: a path or a name with hyphens stays in one piece."""
    text = " ".join(text.split())
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _break_line(line: str, width: int) -> str:
    """Break a line of a shell between words where it is too long."""
    lines = ["  "]
    for word in _WORD.findall(line) if len(line) + 2 > width else [line]:
        if lines[-1].strip() and len(lines[-1]) + len(word) + 2 > width:
            lines.append("    ")
        lines[-1] += word + " "
    return "\\\n".join(lines).rstrip() + "\n"
