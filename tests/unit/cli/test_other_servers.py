"""Whatever answers where Neo4j is looked for, a command says so in words of its own."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.few import few
from tests.support.other_servers import AT_ONCE, HUNG, MUTE, Talk, listening
from vizpub.cli.main import app
from vizpub.graphstore.server import connection

READ = [
    "query runs",
    "cypher 'MATCH (n) RETURN n'",
    "query monday overlay at=1",
    "neo4j verify monday",
    "runs list",
    "export gexf elsewhere",
]
WRITE = ["neo4j load monday", "runs remove monday --yes"]
"""The driver tries these again for half a minute."""


def wrong(workspace: Path, talk: Talk, command: str) -> str:
    """What a command says that it should not; empty if it does not."""
    with listening(talk) as port:
        environment = {
            "NEO4J_URI": f"bolt://127.0.0.1:{port}",
            "NEO4J_USERNAME": "neo4j",
            "NEO4J_PASSWORD": "secret",
        }
        words = ["--workspace", str(workspace), *shlex.split(command)]
        done = CliRunner().invoke(app, words, env=environment)
    said = done.output
    is_bad = "unexpected" in said or "Traceback" in said or "Neo4j" not in said
    return said if is_bad or not isinstance(done.exception, SystemExit | None) else ""


@pytest.mark.parametrize("command", few(["runs list", "neo4j load monday"], ["neo4j load monday"]))
@pytest.mark.parametrize("name", AT_ONCE)
def test_command_tells_what_answers_instead_of_neo4j(
    workspace: Path, name: str, command: str
) -> None:
    assert wrong(workspace, AT_ONCE[name], command) == ""


@pytest.mark.parametrize("command", few([*READ, *WRITE], [READ[0], READ[3]]))
@pytest.mark.parametrize("name", HUNG)
def test_command_gives_up_a_server_that_hangs(
    workspace: Path, name: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SILENT_S", 0.2)
    assert wrong(workspace, HUNG[name], command) == ""


@pytest.mark.parametrize("command", few([*READ, *WRITE], [READ[0], WRITE[1]]))
@pytest.mark.parametrize("name", MUTE)
def test_command_gives_up_a_server_that_says_nothing(
    workspace: Path, name: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = connection.connect
    monkeypatch.setattr(connection, "connect", lambda to, **_: connect(to, timeout_s=0.1))
    assert wrong(workspace, MUTE[name], command) == ""
