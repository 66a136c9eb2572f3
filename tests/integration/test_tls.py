"""Encrypted connections: a server that takes no others, and certificates made here."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from typer.testing import CliRunner

from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.graphstore.server import server as server_module
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect, from_home
from vizpub.graphstore.server.driver_errors import AT_ONCE, NO_TLS
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.settings import PROFILES
from vizpub.model.errors import Neo4jUnavailable, ServiceError

pytestmark = pytest.mark.neo4j

HOST = "127.0.0.1"
BOLT = b"\x60"
"""The first byte that a client of Neo4j says."""
POLICY = {
    "server.bolt.tls_level": "REQUIRED",
    "dbms.ssl.policy.bolt.enabled": "true",
    "dbms.ssl.policy.bolt.client_auth": "NONE",
    "dbms.ssl.policy.bolt.private_key": "private.key",
    "dbms.ssl.policy.bolt.public_certificate": "public.crt",
}


@dataclass(frozen=True)
class Authority:
    """One that only who is told so trusts."""

    made: trustme.CA
    file: Path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made, file = trustme.CA(), tmp_path_factory.mktemp("authority") / "ca.pem"
    made.cert_pem.write_to_path(file)
    return Authority(made, file)


def address(connection: Connection, scheme: str, host: str = HOST) -> Connection:
    """The same server, spoken to in another way."""
    port = connection.uri.rpartition(":")[2]
    return replace(connection, uri=f"{scheme}://{host}:{port}")


@pytest.fixture(scope="module")
def encrypted(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[Connection]:
    """A local server that answers in TLS only, as 127.0.0.1 and as nobody else."""
    folder = tmp_path_factory.mktemp("certificates")
    certificate = authority.made.issue_cert(HOST)
    certificate.private_key_pem.write_to_path(folder / "private.key")
    certificate.cert_chain_pems[0].write_to_path(folder / "public.crt")
    settings = {**POLICY, "dbms.ssl.policy.bolt.base_directory": str(folder)}

    def from_home_in_tls(home: Path) -> Connection | None:
        found = from_home(home)
        return found and address(found, "bolt+ssc")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, "tls", replace(PROFILES["test"], settings=settings))
        patch.setattr(server_module, "from_home", from_home_in_tls)
        server = LocalServer(tmp_path_factory.mktemp("server") / "home", "tls")
        try:
            started = server.start()
        except ServiceError as error:
            if os.environ.get("REQUIRE_NEO4J") == "1":
                raise
            pytest.skip(f"no local server: {error}")
    yield started
    server.remove()


@pytest.fixture
def trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))


@dataclass(frozen=True)
class Listener:
    """Greets in TLS with a certificate, and hangs up after the first byte."""

    connection: Connection
    heard: list[bytes] = field(default_factory=list)
    """First bytes of those who took the certificate."""


@pytest.fixture
def listen() -> Iterator[Callable[[trustme.LeafCert], Listener]]:
    """Begins to listen with a certificate."""
    sockets = []

    def listen(certificate: trustme.LeafCert) -> Listener:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        sockets.append(listening := socket.create_server((HOST, 0)))
        uri = f"bolt+s://{HOST}:{listening.getsockname()[1]}"
        listener = Listener(Connection(uri, "neo4j", "x"))

        def greet() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    with suppress(OSError), context.wrap_socket(peer, server_side=True) as greeted:
                        listener.heard.append(greeted.recv(1))

        threading.Thread(target=greet, daemon=True).start()
        return listener

    yield listen
    for listening in sockets:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


@pytest.fixture
def listener(authority: Authority, listen: Callable[[trustme.LeafCert], Listener]) -> Listener:
    return listen(authority.made.issue_cert(HOST))


@pytest.fixture(params=["listener", pytest.param("encrypted", marks=pytest.mark.long)])
def greeting(request: pytest.FixtureRequest) -> Connection:
    """One that greets in TLS: only that, or a Neo4j, whose start takes longer than all tests."""
    found = request.getfixturevalue(request.param)
    connection: Connection = getattr(found, "connection", found)
    return connection


def answer(connection: Connection) -> object:
    with connect(connection) as driver:
        found = driver.execute_query("RETURN 7", database_=connection.database)
    return found.records[0][0]


@pytest.mark.parametrize("scheme", ["bolt+ssc", "neo4j+ssc"])
def test_client_that_trusts_all_takes_any_certificate(listener: Listener, scheme: str) -> None:
    """A Neo4j that answers then: the next test."""
    with pytest.raises(Neo4jUnavailable):
        connect(address(listener.connection, scheme))
    assert {*listener.heard} == {BOLT}


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["bolt+ssc", "neo4j+ssc"])
def test_untrusted_certificate_is_accepted_with_ssc_schemes(
    encrypted: Connection, scheme: str
) -> None:
    assert answer(address(encrypted, scheme)) == 7


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("scheme", ["bolt+s", "neo4j+s"])
def test_client_takes_a_certificate_of_a_trusted_authority(listener: Listener, scheme: str) -> None:
    """A Neo4j that answers then: the next test."""
    with pytest.raises(Neo4jUnavailable):
        connect(address(listener.connection, scheme))
    assert {*listener.heard} == {BOLT}


@pytest.mark.long
@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("scheme", ["bolt+s", "neo4j+s"])
def test_certificate_of_a_trusted_authority_is_accepted(encrypted: Connection, scheme: str) -> None:
    assert answer(address(encrypted, scheme)) == 7


@pytest.mark.parametrize("scheme", ["bolt+s", "neo4j+s"])
def test_certificate_of_an_unknown_authority_is_refused(greeting: Connection, scheme: str) -> None:
    with pytest.raises(Neo4jUnavailable, match="unable to get") as error:
        connect(address(greeting, scheme))
    assert "SSL_CERT_FILE" in error.value.hint
    assert "+ssc" in error.value.hint


@pytest.mark.usefixtures("trusted")
def test_certificate_for_another_name_is_refused(greeting: Connection) -> None:
    with pytest.raises(Neo4jUnavailable, match="'localhost'") as error:
        connect(address(greeting, "bolt+s", "localhost"))
    tells(error.value.hint, "NEO4J_URI")


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_unencrypted_connection_to_a_tls_server_is_refused(
    greeting: Connection, scheme: str
) -> None:
    with pytest.raises(Neo4jUnavailable, match=AT_ONCE) as error:
        connect(address(greeting, scheme))
    assert "bolt+s://" in error.value.hint


@pytest.mark.long
def test_wrong_password_over_tls_is_refused_as_such(encrypted: Connection) -> None:
    with pytest.raises(Neo4jUnavailable, match="NEO4J_PASSWORD"):
        connect(replace(encrypted, password="guessed"))


@pytest.mark.parametrize("scheme", ["bolt+s", "bolt+ssc", "neo4j+ssc"])
def test_tls_connection_to_an_unencrypted_server_is_refused(
    neo4j_server: Connection, scheme: str
) -> None:
    if "+" in neo4j_server.uri:
        pytest.skip("the server of the tests speaks TLS")
    with pytest.raises(Neo4jUnavailable, match=NO_TLS) as error:
        connect(address(neo4j_server, scheme))
    assert "bolt://" in error.value.hint


@pytest.mark.usefixtures("trusted")
def test_expired_certificate_is_refused(
    authority: Authority, listen: Callable[[trustme.LeafCert], Listener]
) -> None:
    old = authority.made.issue_cert(
        HOST,
        not_before=datetime(2020, 1, 1, tzinfo=UTC),
        not_after=datetime(2021, 1, 1, tzinfo=UTC),
    )
    with pytest.raises(Neo4jUnavailable, match="expired") as error:
        connect(listen(old).connection)
    assert "renewed" in error.value.hint


def ask(connection: Connection, **more: str) -> tuple[int, str, str]:
    """What a command ends with, over TLS."""
    there = address(connection, "bolt+s")
    environment = {**more, "NEO4J_URI": there.uri, "NEO4J_PASSWORD": there.password}
    words = ["cypher", "RETURN 7 AS x", "--format", "csv"]
    done = CliRunner().invoke(app, words, env=environment)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.long
def test_command_over_tls_answers(encrypted: Connection, authority: Authority) -> None:
    assert ask(encrypted, SSL_CERT_FILE=str(authority.file)) == (0, "x\n7\n", "")


def test_command_over_tls_fails_in_two_lines(greeting: Connection) -> None:
    code, out, told = ask(greeting)
    assert (code, out) == (3, "")
    first, second = told.splitlines()
    assert first.startswith(f"error: Neo4j at {address(greeting, 'bolt+s').uri}: its certificate")
    assert second.startswith("  set SSL_CERT_FILE")
