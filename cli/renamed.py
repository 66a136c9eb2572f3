"""Former names of commands, which go on working for one version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

NEW_NAMES = {
    "settle": "runs settle",
    "summary": "runs summary",
    "tables": "runs tables",
    "load": "neo4j load",
    "verify": "neo4j verify",
    "rebuild": "neo4j rebuild",
    "collect": "live collect",
    "report": "live report",
    "watch": "live watch",
    "tell": "live tell",
    "simulate": "lab simulate",
    "simulate channels": "lab channels simulate",
    "construct": "lab construct",
    "channels": "lab channels",
    "experiment": "lab experiment",
    "topics": "topic",
    "dissemination": "message",
    "missed": "message --missed",
    "runs show RUN log": "runs log RUN",
}
"""The words of a call that replace its first words."""


def with_new_name(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words of a call with the present name of the command, and the former name, if it had one.

    The longest former name with which the words begin counts.
    """
    for old in sorted(NEW_NAMES, key=len, reverse=True):
        pattern = old.split()
        begin, rest = words[: len(pattern)], words[len(pattern) :]
        values = {part: word for part, word in zip(pattern, begin, strict=False) if part == "RUN"}
        if [values.get(part, part) for part in pattern] == list(begin):
            return [*(values.get(part, part) for part in NEW_NAMES[old].split()), *rest], old
    return list(words), None


def former_paths(path: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The paths that a command had earlier: ('runs', 'settle') → ('settle',)."""
    for old in filter(_is_command, NEW_NAMES):
        begin = _path(NEW_NAMES[old])
        if tuple(path[: len(begin)]) == begin:
            yield *old.split(), *path[len(begin) :]


def rename_tables(content: dict[str, Any]) -> dict[str, str]:
    """Rename the tables of a configuration file that have former names. Returns old → new names.

    A setting under the present name comes first.
    """
    renamed = {}
    # `simulate channels` comes before `simulate`.
    for old in sorted(filter(_is_command, NEW_NAMES), key=len, reverse=True):
        path = _path(NEW_NAMES[old])
        *above, name = old.split()
        holder = content.get(above[0], {}) if above else content
        if isinstance(holder, dict) and isinstance(table := holder.get(name), dict):
            del holder[name]
            _put_below(content, path, table)
            renamed[f"[{'.'.join((*above, name))}]"] = f"[{'.'.join(path)}]"
    return renamed


def _is_command(name: str) -> bool:
    """Return False for a name with an argument: it has no table of its own."""
    return "RUN" not in name


def _path(new_name: str) -> tuple[str, ...]:
    """The command of a new name, without options."""
    return tuple(word for word in new_name.split() if not word.startswith("-"))


def _put_below(content: dict[str, Any], path: Sequence[str], table: dict[str, Any]) -> None:
    """Add a table at the path, without what is there already."""
    target = content
    for name in path:
        target = target.setdefault(name, {})
        if not isinstance(target, dict):  # which is an error in the file
            return
    pending = [(target, table)]
    for into, values in pending:
        for key, value in values.items():
            present = into.setdefault(key, value)
            if present is not value and isinstance(present, dict) and isinstance(value, dict):
                pending.append((present, value))
