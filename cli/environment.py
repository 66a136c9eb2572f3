"""Environment variables that begin with VIZPUB_: each sets something, or is an error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

from vizpub.cli.configuration import SERVICES, settable, variable
from vizpub.cli.groups import LazyGroup
from vizpub.cli.renamed import former_paths
from vizpub.model.errors import UseError, VizpubError

OF_NO_OPTION = frozenset(
    {
        *(name for names in SERVICES.values() for name in names if name.startswith("VIZPUB_")),
        *("VIZPUB_TOKEN", "VIZPUB_JAVA", "VIZPUB_JARS", "VIZPUB_GRAPHFRAMES_JARS"),
        *("VIZPUB_CONFIG", "VIZPUB_SPARK_LOG"),
        # Of the images, and of the tests.
        *("VIZPUB_IMAGE", "VIZPUB_BASE_IMAGE"),
        *("VIZPUB_DATA", "VIZPUB_TEST_NEO4J", "VIZPUB_PICTURES", "VIZPUB_WATCHED"),
    }
)
"""Variables that stand for no option of a command."""

_OF_KUBERNETES = re.compile(r"VIZPUB_(\w+_)?(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_[A-Z]\w+)")
"""Kubernetes sets these in all containers if there is a service called vizpub."""


def check_variables(ctx: typer.Context, words: Sequence[str]) -> None:
    """Check that each variable VIZPUB_… of the environment sets something.

    Variables of commands that are created on use are checked in calls of these commands only.

    Raises: UseError with the nearest name.
    """
    unexplained = {
        name
        for name, text in os.environ.items()
        if text and name.startswith("VIZPUB_") and not _OF_KUBERNETES.fullmatch(name)
    } - OF_NO_OPTION
    if not unexplained:
        return
    present_names, former_names = set(OF_NO_OPTION), set[str]()
    pending: list[tuple[tuple[str, ...], Any]] = [((), ctx.command)]
    for path, command in pending:
        present_names.update(_variables(path, command))
        for former in former_paths(path):
            former_names.update(_variables(former, command))
        if unexplained <= present_names | former_names:
            return  # no more commands are imported
        if isinstance(command, TyperGroup):
            pending += [((*path, name), part) for name, part in command.commands.items()]
        if isinstance(command, LazyGroup):
            called = words[len(path)] if tuple(words[: len(path)]) == path < tuple(words) else None
            unexplained = {
                name for name in unexplained if not _is_later(name, command, path, called)
            }
            with suppress(VizpubError):  # typer says it as well
                if called is not None and called not in command.commands:
                    pending.append(((*path, called), command.get_command(ctx, called)))
    for name in sorted(unexplained - present_names - former_names):
        endings = sorted(present.removeprefix("VIZPUB_") for present in present_names)
        nearest = get_close_matches(name.removeprefix("VIZPUB_"), endings, n=1)
        advice = f"did you mean VIZPUB_{nearest[0]}?" if nearest else "unset it"
        raise UseError(f"the environment variable {name} sets nothing; {advice}")


def _variables(path: tuple[str, ...], command: Any) -> Iterator[str]:
    """The variables of a command's options, by this path."""
    return (variable(path, parameter) for parameter in settable(command))


def _is_later(name: str, group: LazyGroup, path: tuple[str, ...], called: str | None) -> bool:
    """Return True for a variable that only another command of the group can judge."""
    if not name.startswith(_prefixes(path)):
        return False
    siblings = [sibling for sibling in group.names() if sibling != called]
    longer = [sibling for sibling in siblings if called and sibling.startswith(called)]
    return (
        called is None
        or not name.startswith(_prefixes((*path, called)))
        or any(name.startswith(_prefixes((*path, sibling))) for sibling in longer)
    )


def _prefixes(path: tuple[str, ...]) -> tuple[str, ...]:
    """The beginnings of the variables of a command: VIZPUB_LAB_SIMULATE_, VIZPUB_SIMULATE_."""
    names = ("_".join(("VIZPUB", *words, "")) for words in (path, *former_paths(path)))
    return tuple(name.upper().replace("-", "_").replace(":", "_") for name in names)
