"""Whatever is given and whatever lies in a workspace, a command answers in words of its own."""

from __future__ import annotations

import itertools
import os
import random
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.few import few
from tests.support.permissions import as_a_user
from vizpub.cli.main import app

COMMANDS = (
    "runs list",
    "runs show monday",
    "sql monday 'FROM links'",
    "runs log monday",
    "runs check monday",
    "metrics monday overlay",
    "metrics monday peers --totals",
    "sql monday",
    "sql monday 'FROM links'",
    "topic monday news --at 1",
    "message monday m0",
    "runs summary monday",
    "runs tables monday",
    "compare monday --metrics diameter",
    "live watch monday",
    "live tell monday bob leave",
    "live collect monday --stop",
    "config show",
)
OPTIONS = ("--limit", "--at", "--from", "--to")
VALUES = ("-1", "1e999", "nan", "9" * 30, "9" * 5000, "\x00", "\ud800", "", "'", "1" * 100_000)


def _nothing(_: Path) -> None:
    pass


def _each(change: Callable[[Path], None], *patterns: str) -> Callable[[Path], None]:
    def changed(workspace: Path) -> None:
        for pattern in patterns:
            for path in sorted(workspace.glob(pattern)):
                change(path)

    return changed


def _file(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)
    path.touch()


def _text(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text, "latin-1")

    return write


def _as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _as_link_to(target: str) -> Callable[[Path], None]:
    def link(path: Path) -> None:
        path.unlink()
        path.symlink_to(target)

    return link


RUN_JSON, TABLES = "runs/*/run.json", "runs/*/**/*.parquet"
DAMAGES: dict[str, Callable[[Path], None]] = {
    "nothing": _nothing,
    "run.json is empty": _each(_text(""), RUN_JSON),
    "run.json is deep": _each(_text("[" * 100_000), RUN_JSON),
    "run.json has digits": _each(_text("9" * 10_000), RUN_JSON),
    "run.json is no text": _each(_text("\xff\xfe"), RUN_JSON),
    "run.json is a pipe": _each(_as_pipe, RUN_JSON),
    "run.json is a folder": _each(_as_folder, RUN_JSON),
    "run.json is endless": _each(_as_link_to("/dev/zero"), RUN_JSON),
    "run.json is a loop": _each(_as_link_to("run.json"), RUN_JSON),
    "run.json is not to be read": _each(lambda path: path.chmod(0), RUN_JSON),
    "tables are pipes": _each(_as_pipe, TABLES),
    "tables are folders": _each(_as_folder, TABLES),
    "tables are empty": _each(_text(""), TABLES),
    "tables are not to be read": _each(lambda path: path.chmod(0), TABLES),
    "runs are not to be read": _each(lambda path: path.chmod(0), "runs"),
    "a run is not to be read": _each(lambda path: path.chmod(0), "runs/*"),
    "the workspace is not to be read": lambda workspace: workspace.chmod(0),
    "runs is a file": lambda workspace: _file(workspace / "runs"),
    "collected is a file": lambda workspace: _file(workspace / "collected"),
    "the endpoint is deep": lambda workspace: _endpoint(workspace, "[" * 100_000),
    "the endpoint has another shape": lambda workspace: _endpoint(workspace, '{"url": 5}'),
}


def _endpoint(workspace: Path, text: str) -> None:
    folder = workspace / "collected/monday"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "endpoint.json").write_text(text)
    (folder / "endpoint.json").chmod(0o600)


Case = tuple[str, list[str]]
"""A damage, and the words of a command."""


def cases() -> list[Case]:
    """Each command after each damage, and with each senseless value, in some order."""
    commands = [shlex.split(command) for command in COMMANDS]
    found: list[Case] = [*itertools.product(DAMAGES, commands)]
    found += [
        ("nothing", [*command, option, value])
        for command, option, value in itertools.product(commands, OPTIONS, VALUES)
    ]
    random.Random(36).shuffle(found)
    return found


CASES = cases()
PARTS = 40
"""The cases are cut into so many."""


@pytest.mark.parametrize("part", few(range(PARTS), [0]))
def test_errors_of_commands_are_expected(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory, part: int
) -> None:
    wrong = []
    for damage, words in CASES[part::PARTS]:
        place = tmp_path_factory.mktemp("case") / "workspace"
        shutil.copytree(workspace, place)
        DAMAGES[damage](place)
        with as_a_user():
            done = CliRunner().invoke(app, ["--workspace", str(place), *words])
        place.chmod(0o700)
        shutil.rmtree(place)
        if "unexpected" in done.output or not isinstance(done.exception, SystemExit | None):
            wrong.append((damage, words, done.output[-300:], repr(done.exception)[:300]))
    assert wrong == []
