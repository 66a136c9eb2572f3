"""Which Neo4j can be stopped, and what is said of one that cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.words import tells
from vizpub.cli.main import app

Call = Callable[..., Result]


@pytest.fixture
def vizpub(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.delenv("VIZPUB_NEO4J_CONTAINER", raising=False)
    monkeypatch.delenv("NEO4J_URI", raising=False)
    return lambda *words: CliRunner().invoke(app, ["--workspace", str(workspace), *words])


@pytest.fixture
def elsewhere(vizpub: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls with a Neo4j that nobody here can stop."""
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    monkeypatch.setenv("NEO4J_PASSWORD", "secret")
    return vizpub


@pytest.mark.parametrize(
    "words",
    [
        "neo4j load monday --bulk",
        "neo4j rebuild monday --bulk",
        "neo4j dump",
        "neo4j restore it --yes",
    ],
)
def test_server_that_cannot_be_stopped_is_refused_without_container(
    elsewhere: Call, words: str
) -> None:
    refused = elsewhere(*words.split())
    assert refused.exit_code == 2
    tells(refused.stderr, "NEO4J_URI", "--container NAME")


@pytest.mark.parametrize("words", ["neo4j load monday", "neo4j dump", "neo4j restore it --yes"])
def test_container_option_without_neo4j_uri_is_refused(vizpub: Call, words: str) -> None:
    refused = vizpub(*words.split(), "--container", "box")
    assert refused.exit_code == 2
    tells(refused.stderr, "container box", "NEO4J_URI")


def test_container_without_a_docker_command_is_refused(
    elsewhere: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VIZPUB_NEO4J_CONTAINER", "box")
    refused = elsewhere("neo4j", "load", "monday", "--bulk")
    assert refused.exit_code == 2
    tells(refused.stderr, "container box", "docker")
