"""What an issue is given of a machine."""

from __future__ import annotations

import getpass
import json
import os
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.project import ROOT
from vizpub.cli.commands.setup.issue import _packages_of_extras
from vizpub.cli.main import app

SECRET = "correct-horse-battery"


def test_report_has_no_secret_user_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_PASSWORD", SECRET)
    monkeypatch.setenv("NEO4J_URI", f"bolt://someone:{SECRET}@127.0.0.1:1")
    monkeypatch.setenv("NEO4J_USERNAME", f"user-{SECRET}")
    monkeypatch.setenv("HOME", str(tmp_path / SECRET))
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache" / SECRET))
    config = tmp_path / "vizpub.toml"
    config.write_text(f'[neo4j]\npassword-file = "{tmp_path}/{SECRET}"\ndatabase = "{SECRET}"\n')
    words = ["--config", str(config), "--workspace", str(tmp_path / SECRET), "doctor", "--report"]
    result = CliRunner().invoke(app, [*words, "--format", "json"])
    assert result.exit_code == 0, result.output
    rows = {row["what"]: row["value"] for row in json.loads(result.stdout)}
    assert {"vizpub", "Python", "platform", "memory", "Java", "extra kafka"} <= {*rows}
    assert "NEO4J_PASSWORD" in rows["variables that are set"]
    for private in (SECRET, str(tmp_path), os.sep + getpass.getuser()):
        assert private not in result.output


def test_report_tells_of_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    del extras["all"]
    assert {name: text.partition(">")[0] for name, (text,) in extras.items()} == dict(
        _packages_of_extras()
    )


def test_report_and_kit_exclude_each_other(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "--report", "--kit", str(tmp_path / "kit")])
    assert result.exit_code == 2
    assert not (tmp_path / "kit").exists()
