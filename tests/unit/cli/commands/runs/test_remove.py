"""Runs that `vizpub runs remove` selects by pattern and age, and those that stay."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.support.reserved import LAB, Reserved
from tests.support.tables import add, links
from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.runstore.manifest import FILE
from vizpub.runstore.store import run_names
from vizpub.runstore.writer import writing

Call = Callable[..., Result]
DAY_S = 86_400
RUNS = ["lab-1", "lab-2", "other"]


@pytest.fixture
def vizpub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A call on a workspace of three runs."""
    monkeypatch.delenv("NEO4J_URI", raising=False)
    for name in RUNS:
        with writing(tmp_path, name) as writer:
            writer.begin(replace(LAB, name=name))
            add(writer, "versions", "links", links(9, seed=1), state="complete")

    def call(*words: str, **streams: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(tmp_path), *words], **streams)

    return call


def age_run(workspace: Path, name: str, days: float) -> None:
    changed_s = time.time() - days * DAY_S
    os.utime(workspace / "runs" / name / FILE, (changed_s, changed_s))


@pytest.mark.parametrize(
    ("words", "remaining"),
    [
        (["lab-*"], ["other"]),
        (["lab-[2-9]"], ["lab-1", "other"]),
        (["lab-1", "oth?r", "lab-1"], ["lab-2"]),
        (["--older-than", "30d"], ["lab-1"]),
        (["lab-*", "--older-than", "30d"], ["lab-1", "other"]),
        (["lab-1", "--older-than", "30d"], RUNS),
        (["--older-than", "365d"], RUNS),
    ],
)
def test_removal_by_pattern_and_age_leaves_the_others(
    vizpub: Call, tmp_path: Path, words: list[str], remaining: list[str]
) -> None:
    age_run(tmp_path, "lab-2", 31)
    age_run(tmp_path, "other", 90)
    assert vizpub("runs", "remove", *words, "--yes").exit_code == 0
    assert run_names(tmp_path) == remaining


def test_removal_of_several_runs_lists_them_and_asks_once(vizpub: Call, tmp_path: Path) -> None:
    refused = vizpub("runs", "remove", "lab-*", input="n\n")
    assert refused.exit_code == 1
    assert run_names(tmp_path) == RUNS
    done = vizpub("runs", "remove", "lab-*", input="y\n")
    assert done.exit_code == 0
    tells(done.stderr, str(tmp_path / "runs/lab-1"), str(tmp_path / "runs/lab-2"), 2)
    assert done.stderr.count("[y/N]") == 1
    assert run_names(tmp_path) == ["other"]


def test_dry_run_of_a_removal_only_prints_runs(vizpub: Call, tmp_path: Path) -> None:
    done = vizpub("runs", "remove", "lab-*", "--dry-run", "--yes")
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()
    tells(first, str(tmp_path / "runs/lab-1"))
    tells(second, str(tmp_path / "runs/lab-2"))
    assert run_names(tmp_path) == RUNS


def test_removal_by_age_takes_a_workspace_without_runs(vizpub: Call, tmp_path: Path) -> None:
    for words in (["lab-*", "other"], ["--older-than=1d"]):
        done = vizpub("runs", "remove", *words, "--yes")
        assert done.exit_code == 0, done.output
    tells(done.stderr, str(tmp_path))


def test_removal_of_what_is_not_there_removes_nothing(vizpub: Call, tmp_path: Path) -> None:
    for words, facts in {
        ("lab-*", "nosuch"): ("nosuch", "vizpub runs list"),
        ("lab-1", "none-*"): ("none-*", "vizpub runs list"),
        ("nosuch", "--older-than=1d"): ("nosuch", "vizpub runs list"),
        ("lab-1", "--older-than=old"): ("old",),
        (): ("--older-than",),
    }.items():
        refused = vizpub("runs", "remove", *words, "--yes")
        assert refused.exit_code == 2, words
        tells(refused.stderr, *facts)
    assert run_names(tmp_path) == RUNS


def test_removal_names_busy_runs_and_removes_the_others(vizpub: Call, tmp_path: Path) -> None:
    collected = Reserved(tmp_path)  # the run `lab`
    collected.append()
    with writing(tmp_path, "lab-2"), collected.of.hold():
        refused = vizpub("runs", "remove", "lab*", "--yes")
    assert refused.exit_code == 2
    tells(refused.stderr, "'lab'", "'lab-2'", "'lab-1'", "vizpub live collect lab --stop")
    assert run_names(tmp_path) == ["lab", "lab-2", "other"]


def test_removal_with_log_reaches_collections_of_removed_runs(vizpub: Call, tmp_path: Path) -> None:
    collected = Reserved(tmp_path)
    collected.append()
    assert vizpub("runs", "remove", "lab*", "--yes").exit_code == 0
    assert collected.of.folder.is_dir()
    assert vizpub("runs", "remove", "lab*", "--yes").exit_code == 2
    assert vizpub("runs", "remove", "lab*", "--yes", "--with-log").exit_code == 0
    assert not collected.of.folder.exists()
    assert run_names(tmp_path) == ["other"]
