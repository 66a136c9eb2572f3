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
from vizpub.machine.modules import needing_extra
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


@pytest.mark.parametrize(
    ("mark", "url", "line"),
    [
        ("tools/vizpub/uv-receipt.toml", None, "uv tool install --with 'vizpub[s3]' vizpub"),
        (
            "tools/vizpub/uv-receipt.toml",
            "file:///a.whl",
            "uv tool install --with 'vizpub[s3] @ file:///a.whl' vizpub",
        ),
        ("cache/CACHEDIR.TAG", None, "uvx --with 'vizpub[s3]' vizpub …"),
        ("cache/CACHEDIR.TAG", "file:///a", "uvx --with 'vizpub[s3] @ file:///a' vizpub …"),
    ],
)
def test_extra_is_added_by_uv_where_uv_has_installed_the_program(
    mark: str, url: str | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As uv 0.13 lays out the environment of a tool, and what uvx makes in its cache."""
    prefix = tmp_path / ("tools/vizpub" if "tools" in mark else "cache/archive-v0/gijcGafl")
    record = prefix / "lib/vizpub-1.0.dist-info"
    record.mkdir(parents=True)
    (tmp_path / mark).touch()
    (record / "METADATA").write_text("Metadata-Version: 2.4\nName: vizpub\nVersion: 1.0\n")
    if url:
        (record / "direct_url.json").write_text(f'{{"url": "{url}", "archive_info": {{}}}}')
    monkeypatch.setattr(sys, "path", [str(record.parent), *sys.path])
    monkeypatch.setattr(sys, "prefix", str(prefix))
    with (
        pytest.raises(UseError, match=re.escape(line) + "$"),
        needing_extra("s3", "a workspace in S3"),
    ):
        raise ModuleNotFoundError


def test_engine_without_its_extra_is_refused_before_it_is_asked_for_jars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "graphframes", None)
    with pytest.raises(UseError, match=naming("vizpub[graphframes]")):
        load_graphframes(None)  # type: ignore[arg-type]
