"""Where a connection comes from, and what is said where none can be made."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from neo4j import GraphDatabase

from tests.support.words import naming
from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.address import NO_ADDRESS, Connection, from_environment
from vizpub.graphstore.server.connection import connect, find_connection, from_home
from vizpub.graphstore.server.driver_errors import NO_HOST, check_agent
from vizpub.graphstore.server.home import ServerHome, ServerState
from vizpub.graphstore.server.sessions import LOST
from vizpub.model.errors import NO_ANSWER, Neo4jUnavailable, UseError

NAMES = ("URI", "USERNAME", "USER", "PASSWORD", "PASSWORD_FILE", "DATABASE")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(f"NEO4J_{name}", raising=False)


def _set(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"NEO4J_{name}", value)


def test_environment_without_uri_gives_no_connection() -> None:
    assert from_environment() is None


def test_environment_defaults_to_user_and_database_neo4j(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, URI="neo4j://db", PASSWORD="s3cret")
    assert from_environment() == Connection("neo4j://db", "neo4j", "s3cret", "neo4j")


def test_environment_variables_make_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, URI="bolt://db", USER="me", PASSWORD="", DATABASE="overlays")
    assert from_environment() == Connection("bolt://db", "me", "", "overlays")
    _set(monkeypatch, USERNAME="you")
    assert from_environment() == Connection("bolt://db", "you", "", "overlays")


def test_password_is_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    (tmp_path / "secret").chmod(0o600)
    _set(monkeypatch, URI="bolt://db", PASSWORD_FILE=str(tmp_path / "secret"))
    assert from_environment() == Connection("bolt://db", "neo4j", "from a file")
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(UseError, match=naming("NEO4J_PASSWORD_FILE", "chmod 600")):
        from_environment()
    _set(monkeypatch, PASSWORD_FILE=str(tmp_path / "none"))
    with pytest.raises(UseError, match="NEO4J_PASSWORD_FILE"):
        from_environment()


def test_uri_without_password_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, URI="bolt://db")
    with pytest.raises(
        UseError, match=naming("NEO4J_URI", "NEO4J_PASSWORD", "NEO4J_PASSWORD_FILE")
    ):
        from_environment()


def test_password_is_hidden_in_the_repr() -> None:
    assert "s3cret" not in repr(Connection("bolt://db", "neo4j", "s3cret"))


def test_home_of_a_server_gives_its_connection(tmp_path: Path) -> None:
    assert from_home(tmp_path) is None
    home = ServerHome(tmp_path)
    password = home.make_password()
    assert from_home(tmp_path) is None
    home.write_state(ServerState(7001, 7002, "5.26.30", 1, 2.5))
    assert from_home(tmp_path) == Connection("bolt://127.0.0.1:7001", "neo4j", password)
    assert find_connection(tmp_path) == from_home(tmp_path)


def test_home_without_a_server_is_refused_naming_neo4j_start(tmp_path: Path) -> None:
    with pytest.raises(Neo4jUnavailable, match="vizpub neo4j start"):
        find_connection(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"bolt_port": 1}', '{"another": 1}'])
def test_unreadable_server_state_is_none(text: str, tmp_path: Path) -> None:
    home = ServerHome(tmp_path)
    home.state_file.write_text(text)
    assert home.read_state() is None


def test_server_state_reads_back(tmp_path: Path) -> None:
    home, state = ServerHome(tmp_path), ServerState(7001, 7002, "5.26.30", 1, 2.5)
    home.write_state(state)
    assert home.read_state() == state
    assert json.loads(home.state_file.read_text())["pid"] == 1
    assert state.browser.startswith("http://127.0.0.1:7002/browser/")


def test_password_is_made_once_and_readable_by_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        first = ServerHome(tmp_path).make_password()
    finally:
        os.umask(old)
    assert ServerHome(tmp_path).make_password() == first
    assert stat.S_IMODE((tmp_path / "password").stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    assert ServerHome(tmp_path / "other").make_password() != first


def test_closed_port_is_an_error_that_says_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Neo4jUnavailable, match=NO_ANSWER):
        connect(Connection(f"bolt://127.0.0.1:{port}", "neo4j", "x"))


@pytest.mark.parametrize("uri", [
    "localhost", "localhost:7687", "ftp://db:21", "http://db:7474", "bolt://a:b",
    "bolt://db:99999", "bolt://db:0", "bolt://[::1", "", " bolt://db",
])  # fmt: skip
def test_uri_of_another_scheme_or_form_is_refused(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UseError, match="bolt://localhost:7687"):
        connect(Connection(uri, "neo4j", "x"))
    _set(monkeypatch, URI=uri or " ", PASSWORD="x")
    with pytest.raises(UseError, match=naming(f"'{uri or ' '}' {NO_ADDRESS}")) as error:
        from_environment()
    assert ("http is for Neo4j Browser" in str(error.value)) == uri.startswith("http")


def test_password_in_the_uri_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    for uri in ("bolt://neo4j:s3cret@db", "bolt://neo4j:s3/cret@db:7687", "neo4j:s3cret@db"):
        _set(monkeypatch, URI=uri, PASSWORD="x")
        with pytest.raises(UseError, match=naming("NEO4J_USERNAME", "NEO4J_PASSWORD")) as error:
            from_environment()
        assert "s3" not in str(error.value)


def test_unknown_host_is_an_error_that_names_the_cause() -> None:
    with pytest.raises(Neo4jUnavailable, match=NO_HOST):
        connect(Connection("neo4j://no.such.machine.invalid", "neo4j", "x"))


@pytest.mark.parametrize(
    ("agent", "fits"),
    [
        ("Neo4j/5.26.30", True),
        ("Neo4j/5.27-aura", True),
        ("Neo4j/2025.10.1", True),
        ("Neo4j/2026.01.0", True),
        ("Neo4j/5.25.1", False),
        ("Neo4j/4.4.41", False),
        ("Neo4j/3.5.35", False),
        ("Neo4j/5.2.0 compatible graph database server - Memgraph", False),
        ("Another/7.0", False),
        ("", False),
    ],
)
def test_server_of_an_unsupported_version_is_refused(agent: str, fits: bool) -> None:
    if fits:
        check_agent("bolt://db", agent)
        return
    with pytest.raises(Neo4jUnavailable, match=naming("5.26, 2025 or 2026")):
        check_agent("bolt://db", agent)


def test_lost_connection_error_has_the_uri() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"bolt://127.0.0.1:{listener.getsockname()[1]}"
    with GraphDatabase.driver(uri, auth=("neo4j", "x")) as driver:
        sessions.remember(driver, uri)
        with pytest.raises(Neo4jUnavailable, match=LOST) as error:
            sessions.rows(driver, "neo4j", "RETURN 1", {})
    assert error.value.uri == uri


@pytest.mark.parametrize("scheme", ["bolt", "neo4j", "bolt+s", "neo4j+ssc", "BOLT"])
def test_schemes_of_neo4j_are_accepted(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, URI=f"{scheme}://db", PASSWORD="x")
    assert from_environment() == Connection(f"{scheme}://db", "neo4j", "x")


def test_connection_from_the_command_line_imports_no_heavy_package() -> None:
    """A query starts at once; what it does not hide can be imported afterwards."""
    heavy = {"pandas", "numpy", "pyarrow", "pyspark", "numba", "matplotlib", "psutil", "filelock"}
    listed = f"""
import sys
from vizpub.cli.imports import lean_imports
with lean_imports():
    import vizpub.graphstore.server.connection
    print(*({heavy} & sys.modules.keys()))
    import numpy, pyarrow
import pandas, neo4j
neo4j.GraphDatabase
"""
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, check=True)
    assert done.stdout.split() == []
