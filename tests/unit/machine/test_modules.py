"""What commands say where the packages of an extra are missing."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.project import PACKAGES, ROOT
from tests.support.words import naming
from vizpub.analytics.graphframes.graphs import load_graphframes
from vizpub.cli.main import app
from vizpub.model.errors import UseError

NEEDING = re.compile(r"needing_extra\(\s*\"([a-z0-9]+)\"")


def extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return extras


def test_extra_is_needed_by_name_where_it_is_declared() -> None:
    needed = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in NEEDING.findall(path.read_text("utf-8"))
    }
    assert needed == {*extras()} - {"all"}


def test_extra_all_has_every_other() -> None:
    (both,) = extras()["all"]
    assert sorted(re.findall(r"\w+", both)) == sorted(["vizpub", *({*extras()} - {"all"})])


@pytest.mark.parametrize(
    ("module", "extra", "words"),
    [
        ("obstore", "s3", ["--workspace", "s3://lab/a", "runs", "list"]),
        ("hdfs_native", "hdfs", ["--workspace", "hdfs://lab:8020/a", "runs", "list"]),
        ("confluent_kafka", "kafka", ["live", "collect", "x", "--kafka", "h:1", "--topic", "t"]),
    ],
)
def test_command_without_its_extra_ends_with_the_line_that_installs_it(
    module: str, extra: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.endswith(f"needs the extra '{extra}': pip install 'vizpub[{extra}]'")
    monkeypatch.setattr(sys, "prefix", "/opt/pipx/venvs/vizpub")
    (line,) = CliRunner().invoke(app, words).stderr.splitlines()
    assert line.endswith(f"pipx runpip vizpub install 'vizpub[{extra}]'")


def test_engine_without_its_extra_is_refused_before_it_is_asked_for_jars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "graphframes", None)
    with pytest.raises(UseError, match=naming("vizpub[graphframes]")):
        load_graphframes(None)  # type: ignore[arg-type]
