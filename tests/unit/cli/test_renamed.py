"""Former names of commands: in calls, in the file of settings, and in the environment."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.cli.renamed import NEW_NAMES, former_paths, with_new_name

CALLS = {
    "settle": "settle monday --no-load",
    "summary": "summary monday --topic news -f json",
    "tables": "tables metrics/peers --run monday",
    "load": "load monday --bulk",
    "verify": "verify monday --full",
    "rebuild": "rebuild monday",
    "collect": "collect lab --no-token --interval 5s",
    "report": "report trace.json --to http://localhost/v1/runs/lab",
    "watch": "watch lab --rows 3",
    "tell": "tell lab 17 leave --no-wait",
    "simulate": "simulate models",
    "simulate channels": "simulate channels --peers 30 --mapping cd",
    "construct": "construct cd-max --peers 20 --refine",
    "channels": "channels mapping --mapping perfect-c",
    "experiment": "experiment list -f json",
    "topics": "topics monday --at 1 --limit 2",
    "dissemination": "dissemination monday m0 -f csv",
    "missed": "missed monday m0 --layers mesh",
    "runs show RUN log": "runs show monday log --limit 2",
}
"""A call by each former name, with arguments that it had."""
PRINTING = (
    *("summary monday -f csv", "tables --columns -f csv", "simulate models", "experiment list"),
    *("topics monday --at 1 -f csv", "topics monday", "dissemination monday m0"),
    *("missed monday m1", "missed monday --by topic", "runs show monday log"),
)
"""Calls that print what is in a run, or nothing of a run."""


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The command that a call runs, and its parameters."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("vizpub", words)
    while hasattr(group, "commands"):
        rest = [*context._protected_args, *context.args]
        name, group, words = group.resolve_command(context, rest)
        context = group.make_context(name, words, parent=context)
    return context.command_path, context.params


def test_calls_are_of_every_former_name() -> None:
    assert CALLS.keys() == NEW_NAMES.keys()


@pytest.mark.parametrize("old", CALLS)
def test_former_name_is_parsed_as_the_present_one(
    old: str, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_workspace = ["--workspace", str(workspace)]
    words = CALLS[old].split()
    by_old = parsed([*of_workspace, *words])
    (line,) = capsys.readouterr().err.splitlines()
    tells(line, f"vizpub {old}", f"vizpub {NEW_NAMES[old]}")
    pattern = re.compile(re.sub("RUN", r"(\\S+)", old))
    now = pattern.sub(NEW_NAMES[old].replace("RUN", r"\1"), CALLS[old], count=1).split()
    assert by_old == parsed([*of_workspace, *now])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("call", PRINTING)
def test_former_name_prints_the_same_with_one_line_more_on_stderr(
    workspace: Path, call: str
) -> None:
    def called(*words: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["--workspace", str(workspace), *words])
        return done.exit_code, done.stdout, done.stderr

    code, out, err = called(*call.split())
    now = called(*with_new_name(call.split())[0])
    assert (code, out) == now[:2]
    assert code == 0
    assert out
    line, separator, rest = err.partition("\n")
    assert rest == now[2]
    assert (bool(line), separator) == (True, "\n")
    assert called("--quiet", *call.split())[2] == ""


def test_unknown_command_gets_the_nearest_present_name() -> None:
    for typed, near in (
        ("metrcs", "metrics"), ("setle", "runs settle"), ("disemination", "message"),
        ("simulte", "lab simulate"), ("run", "runs"),
    ):  # fmt: skip
        done = CliRunner().invoke(app, [typed, "monday"])
        assert done.exit_code == 2
        tells(done.stderr, f"'{typed}'", f"did you mean {near}")


def test_former_tables_of_the_file_go_on_working(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIZPUB_DATA", raising=False)
    (workspace / "vizpub.toml").write_text(
        "[topics]\nlimit = 1\n[topic]\nformat = 'csv'\n[missed]\nlayers = 'mesh'\n"
        "[simulate.cyclon]\npeers = 7\n[simulate.channels]\nmapping = 'cd'\n"
        "[runs]\n[runs.tables]\ncolumns = true\n[tables]\ncolumns = false\nformat = 'csv'\n"
    )

    def called(*words: str) -> Any:
        return CliRunner().invoke(app, ["--workspace", str(workspace), *words])

    done = called("config", "show", "--format", "json")
    shown = {row["setting"]: row["value"] for row in json.loads(done.stdout)}
    assert {name: value for name, value in shown.items() if "." in name and value is not None} == {
        "topic.limit": 1,
        "topic.format": "csv",
        "message.layers": "mesh",
        "lab.simulate.cyclon.peers": 7,
        "lab.channels.simulate.mapping": "cd",
        "runs.tables.columns": True,  # the present name comes first
        "runs.tables.format": "csv",
    }
    lines = [line for line in done.stderr.splitlines() if "is now" in line]
    for line, (old, new) in zip(
        sorted(lines),
        [
            ("missed", "message"),
            ("simulate.channels", "lab.channels.simulate"),
            ("simulate", "lab.simulate"),
            ("tables", "runs.tables"),
            ("topics", "topic"),
        ],
        strict=True,
    ):
        tells(line, f"[{old}]", f"[{new}]")
    assert len(called("topic", "monday").stdout.splitlines()) == 2  # a head, and one topic
    spread = called("message", "monday", "m0")
    assert spread.exit_code == 0, spread.stderr  # --layers of the file is for --missed
    for option, value in (("--layers", "mesh"), ("--by", "topic")):
        refused = called("message", "monday", "m0", option, value)
        assert refused.exit_code == 2
        tells(refused.stderr, option, "--missed")


def test_former_table_beside_a_wrong_one_is_an_error_of_the_file(workspace: Path) -> None:
    deep = ".".join("a" * 10_000)
    for text, told in (
        ("runs = 3\n[settle]\nno-load = true\n", "[runs]"),
        (f"[tables.{deep}]\n[runs.tables.{deep}]\n", "runs.tables.a"),
    ):
        (workspace / "vizpub.toml").write_text(text)
        done = CliRunner().invoke(app, ["--workspace", str(workspace), "runs", "list"])
        assert done.exit_code == 2, done.stderr
        tells(done.stderr, told)


def test_former_variable_goes_on_working(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIZPUB_TOPICS_FORMAT", "json")
    done = CliRunner().invoke(app, ["--workspace", str(workspace), "topic", "monday"])
    assert json.loads(done.stdout)
    tells(done.stderr, "VIZPUB_TOPICS_FORMAT", "VIZPUB_TOPIC_FORMAT")
    monkeypatch.setenv("VIZPUB_TOPIC_FORMAT", "csv")
    done = CliRunner().invoke(app, ["--workspace", str(workspace), "topic", "monday"])
    assert (done.stdout.partition(",")[0], done.stderr) == ("topic", "")


def test_former_paths_are_those_that_lead_to_the_command() -> None:
    assert set(former_paths(("message",))) == {("dissemination",), ("missed",)}
    assert set(former_paths(("lab", "simulate", "scribe"))) == {("simulate", "scribe")}
    assert set(former_paths(("metrics",))) == set()
