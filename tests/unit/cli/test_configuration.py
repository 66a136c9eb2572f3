"""Defaults from the file and the environment, and where they come from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.imports import codes_and_imports
from tests.support.permissions import as_a_user
from tests.support.words import tells, unknown
from vizpub.cli.configuration import SERVICES
from vizpub.cli.main import app
from vizpub.runstore.stores.place import STORES, store_of
from vizpub.runstore.stores.s3 import S3Objects

Call = Callable[..., Result]
NEO4J = ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_USER", "NEO4J_PASSWORD", "NEO4J_PASSWORD_FILE")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def vizpub(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    for name in os.environ:
        if name.startswith(("VIZPUB_", "SPARK_")) or name in (*NEO4J, "NEO4J_DATABASE"):
            monkeypatch.delenv(name)

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), *words])

    return call


def shown(result: Result) -> dict[str, tuple[object, str]]:
    """Values and origins by name."""
    assert result.exit_code == 0, result.stderr
    return {row["setting"]: (row["value"], row["from"]) for row in json.loads(result.stdout)}


def test_flag_comes_before_environment_before_file_before_default(
    vizpub: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(*words: str) -> int:
        return len(json.loads(vizpub("metrics", "monday", "--format", "json", *words).stdout))

    every = rows()
    file = workspace / "vizpub.toml"
    file.write_text("[metrics]\nlimit = 3\n")
    of_file = rows()
    monkeypatch.setenv("VIZPUB_METRICS_LIMIT", "2")
    assert (every, of_file, rows(), rows("--limit", "1")) == (4, 3, 2, 1)
    words = ("config", "show", "--format", "json")
    assert shown(vizpub(*words))["metrics.limit"] == (2, "VIZPUB_METRICS_LIMIT")
    monkeypatch.delenv("VIZPUB_METRICS_LIMIT")
    assert shown(vizpub(*words))["metrics.limit"] == (3, str(file))
    file.unlink()
    assert "metrics.limit" not in shown(vizpub(*words))
    assert shown(vizpub(*words, "metrics"))["metrics.limit"] == (0, "default")


@pytest.mark.parametrize(
    ("text", "words", "refused"),
    [
        (
            "[compare]\nover = 'intervals'",
            ("compare", "monday", "monday", "--fail-if", "diameter > 99"),
            ("--over", "intervals"),
        ),
        ("[compare]\nformat = 'junit'", ("compare", "monday"), ("--format", "junit")),
        ("[doctor]\nkit = 'kit'", ("doctor", "--report"), ("--kit", "kit")),
    ],
)
def test_default_that_does_not_apply_is_left_out(
    vizpub: Call, workspace: Path, text: str, words: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    (workspace / "vizpub.toml").write_text(f"{text}\n")
    done = vizpub(*words)  # a condition on one run cannot be judged, which is no misuse
    assert done.exit_code < 2, done.output
    assert vizpub(*words, *refused).exit_code == 2


def test_global_options_stand_in_file_environment_and_flags(
    vizpub: Call, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'workspace = "{workspace}"\nlog-format = "json"\nquiet = true\n')
    given = CliRunner().invoke(app, ["--config", str(file), "metrics", "nosuch"])
    assert json.loads(given.stderr)["error"] == "UnknownName"
    tells(given.stderr, "half", "monday")
    monkeypatch.setenv("VIZPUB_CONFIG", str(file))
    monkeypatch.setenv("VIZPUB_QUIET", "false")
    found = shown(CliRunner().invoke(app, ["-v", "config", "show", "--format", "json"]))
    assert found["workspace"] == (str(workspace), str(file))
    assert found["quiet"] == (False, "VIZPUB_QUIET")
    assert found["verbose"] == (True, "--verbose")
    assert found["debug"] == (False, "default")


def test_switch_of_the_file_is_undone_by_the_environment(
    vizpub: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "vizpub.toml").write_text("[ingest]\nno-load = true\nbulk = false\n")
    words = ("config", "show", "ingest", "--format", "json")
    assert shown(vizpub(*words))["ingest.no-load"][0] is True
    monkeypatch.setenv("VIZPUB_INGEST_NO_LOAD", "false")
    found = shown(vizpub(*words))
    assert found["ingest.no-load"] == (False, "VIZPUB_INGEST_NO_LOAD")
    assert found["ingest.bulk"][0] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inges = 1", ["'inges'", "ingest?"]),
        ("[ingest]\nno_load = true", ["'ingest.no_load'", "ingest.no-load"]),
        ("[runs]\nlst = 3", ["'runs.lst'", "runs.list"]),
        ("[sprk]\nmaster = 'x'", ["'sprk'", "spark"]),
        ("[neo4j]\nurl = 'x'", ["'neo4j.url'", "neo4j.uri"]),
        (
            "[lab.simulate.poldercast]\npears = 1",
            ["'lab.simulate.poldercast.pears'", "lab.simulate.poldercast.peers"],
        ),
        ("[lab.simulate.poldercst]\npeers = 1", [unknown("system", "poldercst")]),
        ("ingest = true", ["[ingest]"]),
        ("[ingest]\nno-load = 1", ["ingest.no-load", "true or false", "not 1"]),
        ("[ingest]\ninterval = 5", ["ingest.interval", "not 5"]),
        ("[metrics]\nlimit = '3'", ["metrics.limit", "not '3'"]),
        ("[metrics]\nlimit = true", ["metrics.limit", "not true"]),
        ("[metrics]\nlimit = -1", ["metrics.limit", "0"]),
        ("[query]\nparam = 'x'", ["query.param", "not 'x'"]),
        ("[neo4j]\nuri = 7", ["neo4j.uri", "not 7"]),
        ("[neo4j]\nuri = 'http://db'", ["neo4j.uri", "'http://db'"]),
        ("[neo4j]\npassword = 'secret-x'", ["neo4j.password-file", "NEO4J_PASSWORD", "0600"]),
        ("[neo4j]\npassword-file = 'none'", ["neo4j.password-file", "none"]),
        ("log-format = 'xml'", ["log-format", "'xml'", "'text'", "'json'"]),
        ("workspace = 'x'", ["workspace", "--config"]),
        ("version = true", ["'version'"]),
        ("x = ", ["TOML"]),
    ],
)
def test_wrong_setting_is_refused_with_file_key_and_nearest(
    vizpub: Call, workspace: Path, text: str, words: list[str]
) -> None:
    file = workspace / "vizpub.toml"
    file.write_text(text)
    result = vizpub("config", "show")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    tells(result.stderr, file, *words)
    assert "secret-x" not in result.stderr


@pytest.mark.parametrize(
    ("variable", "value", "what"),
    [("VIZPUB_METRICS_LIMIT", "many", "integer"), ("VIZPUB_METRICS_WITHIN", "soon", "duration")],
)
def test_wrong_variable_is_refused_by_its_name(
    vizpub: Call, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, what: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert vizpub("runs", "list").exit_code == 0
    refused = vizpub("metrics", "monday")
    assert (refused.exit_code, refused.stdout) == (2, "")
    tells(refused.stderr, variable, what)
    assert "--within" not in refused.stderr


def test_services_of_the_file_reach_the_commands_for_the_call_only(
    vizpub: Call, workspace: Path
) -> None:
    secret = workspace / "password"
    secret.write_text("guess-me")
    secret.chmod(0o600)
    file = workspace / "vizpub.toml"
    file.write_text("[neo4j]\nuri = 'bolt://127.0.0.1:1'\npassword-file = 'password'\n")
    asked = vizpub("query", "runs")
    assert (asked.exit_code, "bolt://127.0.0.1:1" in asked.stderr) == (3, True)
    found = shown(vizpub("config", "show", "neo4j", "--format", "json"))
    assert found["neo4j.password-file"] == (str(secret), str(file))
    assert not {name for names in SERVICES.values() for name in names} & {*os.environ}
    secret.chmod(0o644)
    refused = vizpub("query", "runs")
    assert (refused.exit_code, f"chmod 600 {secret}" in refused.stderr) == (2, True)


def test_store_of_the_file_is_asked(
    vizpub: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "stores.toml"
    file.write_text("s3-endpoint = 'http://127.0.0.1:1'\ns3-region = 'eu-west-1'\n")
    words = ("--config", str(file), "--workspace", "s3://bucket/study", "config", "show")
    assert vizpub(*words).exit_code == 0
    (folder,) = (tmp_path / "cache" / STORES).iterdir()
    assert store_of(folder) == S3Objects("bucket", "study", "http://127.0.0.1:1", "eu-west-1")


def test_login_of_the_file_is_not_sent_to_the_server_of_the_environment(
    vizpub: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "vizpub.toml").write_text("[neo4j]\nuri = 'bolt://db'\nuser = 'reader'\n")
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    monkeypatch.setenv("NEO4J_PASSWORD", "guess-me")
    result = vizpub("config", "show", "neo4j", "--format", "json")
    found = shown(result)
    assert found["neo4j.uri"] == ("bolt://127.0.0.1:1", "NEO4J_URI")
    assert found["neo4j.user"] == (None, "default")
    assert found["neo4j.password"] == ("******", "NEO4J_PASSWORD")
    assert "guess-me" not in result.output
    monkeypatch.setenv("NEO4J_URI", "bolt://me:guess-me@db")
    assert "guess-me" not in vizpub("config", "show").output


def test_workspace_file_that_others_can_write_must_be_named(vizpub: Call, workspace: Path) -> None:
    file = workspace / "vizpub.toml"
    file.write_text("quiet = true\n")
    for mode in (0o664, 0o646, 0o666):
        file.chmod(mode)
        refused = vizpub("runs", "list")
        assert (refused.exit_code, f"vizpub --config {file}" in refused.stderr) == (2, True)
    assert vizpub("--config", str(file), "runs", "list").exit_code == 0


def test_setting_names_are_completed(vizpub: Call) -> None:
    def offered(typed: str) -> list[str]:
        env = {"_VIZPUB_COMPLETE": "complete_bash", "COMP_WORDS": f"vizpub config show {typed}"}
        return CliRunner().invoke(app, [], env={**env, "COMP_CWORD": "3"}).stdout.split()

    assert offered("ingest.no-l") == ["ingest.no-load"]
    assert offered("ingest.no-b") == ["ingest.no-betweenness"]
    assert offered("neo4j.u") == ["neo4j.uri", "neo4j.user"]


def test_messages_are_one_json_object_per_line(vizpub: Call, workspace: Path) -> None:
    def told(*words: str) -> list[dict[str, object]]:
        result = vizpub("--log-format", "json", *words)
        lines = [json.loads(line) for line in result.stderr.splitlines()]
        assert all(re.fullmatch(r"[-\d]+T[\d:.]+Z", line["time"]) for line in lines)
        return lines

    (other,) = told("metrics", "nosuch")
    assert (other["level"], other["exit_code"]) == ("error", 2)
    assert str(other["message"]).startswith(unknown("run", "nosuch"))
    (wrong,) = told("metrics", "--nosuch")
    assert (wrong["level"], wrong["exit_code"]) == ("error", 2)
    *_, intact = told("runs", "check", "monday")
    assert intact["level"] == "info"
    tells(str(intact["message"]), "15", "'monday'")
    assert vizpub("runs", "check", "monday").stderr.endswith(f"{intact['message']}\n")
    (traced,) = told("--debug", "metrics", "nosuch")
    assert "Traceback" in str(traced["traceback"])


def test_table_of_a_system_is_not_read_by_other_commands(workspace: Path) -> None:
    (workspace / "vizpub.toml").write_text("[lab.simulate.poldercast]\npeers = 7\n")
    words = ["--workspace", str(workspace), "metrics", "monday"]
    assert codes_and_imports([words], {}) == [(0, [])]


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "{a = " * 10_000, "a = " + "9" * 10_000]
)
def test_file_that_no_parser_takes_is_an_error(vizpub: Call, workspace: Path, text: str) -> None:
    file = workspace / "vizpub.toml"
    file.write_text(text)
    refused = vizpub("runs", "list")
    assert refused.exit_code == 2
    tells(refused.stderr, file, "TOML")


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "unreadable"])
def test_workspace_file_that_is_no_file_is_an_error(
    vizpub: Call, workspace: Path, kind: str
) -> None:
    file = workspace / "vizpub.toml"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "endless":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case "unreadable":
            file.touch(0o000)
    with as_a_user():
        refused = vizpub("runs", "list")
    assert refused.exit_code == 2
    tells(refused.stderr, file)


def test_file_that_is_named_is_read_up_to_a_bound(vizpub: Call) -> None:
    refused = vizpub("--config", "/dev/zero", "runs", "list")
    assert refused.exit_code == 2
    tells(refused.stderr, "/dev/zero")
    assert vizpub("--config", "/dev/null", "runs", "list").exit_code == 0


def test_number_that_no_table_takes_is_an_error(vizpub: Call, workspace: Path) -> None:
    refused = vizpub("metrics", "monday", "overlay", "--limit", str(10**24))
    assert refused.exit_code == 2
    tells(refused.stderr, "--limit")
    (workspace / "vizpub.toml").write_text(f"[metrics]\nlimit = {10**24}\n")
    refused = vizpub("metrics", "monday", "overlay")
    assert refused.exit_code == 2
    tells(refused.stderr, "--limit")
    (workspace / "vizpub.toml").write_text(f"[metrics]\nlimit = {2**63 - 1}\n")
    assert vizpub("metrics", "monday", "overlay").exit_code == 0
