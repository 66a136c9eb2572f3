"""How to reach a Neo4j: from the environment or the local server, and the driver for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from neo4j import READ_ACCESS, Driver, GraphDatabase
from neo4j.exceptions import ConfigurationError, DriverError, Neo4jError

from graphstore.server import sessions
from graphstore.server.home import ServerHome
from graphstore.server.refusals import check_agent, unavailable
from model.errors import Neo4jUnavailable, UseError

_TIMEOUT_S = 10
_SCHEMES = tuple(
    name + encryption for name in ("bolt", "neo4j") for encryption in ("", "+s", "+ssc")
)


@dataclass(frozen=True)
class Connection:
    """Where a Neo4j is and who asks it."""

    uri: str
    username: str
    password: str = field(repr=False)
    database: str = "neo4j"
    home: Path | None = field(default=None, compare=False)
    """Of a local server, which alone is told the password."""


def from_environment() -> Connection | None:
    """The server NEO4J_URI names, null where it is not set.

    With NEO4J_USERNAME (or NEO4J_USER; default neo4j), NEO4J_PASSWORD or a file that
    NEO4J_PASSWORD_FILE names, NEO4J_DATABASE (default neo4j).

    Raises: UseError where NEO4J_URI is no address for queries, or is set without a password.
    """
    get = os.environ.get
    if not (uri := get("NEO4J_URI")):
        return None
    check_uri(uri)
    return Connection(
        uri,
        get("NEO4J_USERNAME") or get("NEO4J_USER") or "neo4j",
        _environment_password(),
        get("NEO4J_DATABASE") or "neo4j",
    )


def check_uri(uri: str) -> None:
    """Raises: UseError where no query can be sent to the address, or it has a secret in it."""
    if "@" in uri:
        raise UseError(
            "NEO4J_URI names a user or a password, which others would see there; "
            "set NEO4J_USERNAME and NEO4J_PASSWORD instead"
        )
    scheme = uri.partition("://")[0].lower() if "://" in uri else ""
    if scheme in _SCHEMES and _has_port(uri):
        return
    browser = " (http is for Neo4j Browser)" if scheme in ("http", "https") else ""
    raise UseError(
        f"NEO4J_URI: '{uri}' is no address for queries{browser}; write it like "
        f"bolt://localhost:7687, or with one of {', '.join(_SCHEMES[1:])}"
    )


def _has_port(uri: str) -> bool:
    """Whether its port is none or a number that ports have; the driver cuts larger ones."""
    try:
        return urlsplit(uri).port != 0
    except ValueError:
        return False


def _environment_password() -> str:
    if (password := os.environ.get("NEO4J_PASSWORD")) is not None:
        return password
    if not (file := os.environ.get("NEO4J_PASSWORD_FILE")):
        raise UseError("NEO4J_URI is set and NEO4J_PASSWORD is not; set it too")
    try:
        return Path(file).expanduser().read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UseError(f"NEO4J_PASSWORD_FILE: {error}") from None


def from_home(home: Path) -> Connection | None:
    """The local server that was last started in `home`, null where none ever was.

    Whether it is running shows when it is connected to.

    Raises: UseError where anybody else owns the home or can enter it.
    """
    files = ServerHome(home.resolve())
    if not files.check():
        return None
    state, password = files.read_state(), files.read_password()
    if not state or not password:
        return None
    return Connection(state.uri, "neo4j", password, home=files.path)


def find_connection(home: Path) -> Connection:
    """The server of the environment, else the local one of `home`.

    Raises: Neo4jUnavailable where there is neither, UseError as `from_environment`.
    """
    found = from_environment() or from_home(home)
    if not found:
        raise Neo4jUnavailable(str(home), "no server was ever started here")
    return found


def check_server(connection: Connection) -> None:
    """See that the password goes to the server of the home, where it is that of one.

    Raises: Neo4jUnavailable, UseError.
    """
    if connection.home:
        from graphstore.server import processes  # which imports what others need not wait for

        processes.check_server(ServerHome(connection.home), connection.uri)


def connect(connection: Connection, timeout_s: float = _TIMEOUT_S) -> Driver:
    """A driver for a server that has answered; close it after use.

    `timeout_s` is how long to wait for one that does not even refuse.

    Raises: Neo4jUnavailable; UseError for an address of another scheme, and for a home that is
    not ours alone.
    """
    check_uri(connection.uri)
    check_server(connection)
    try:
        driver = GraphDatabase.driver(
            connection.uri,
            auth=(connection.username, connection.password),
            connection_timeout=timeout_s,
            # It bounds the first words too, so that what listens and says nothing is noticed.
            connection_acquisition_timeout=3 * timeout_s,
            user_agent="vizpub",
        )
    except (ConfigurationError, ValueError) as error:
        raise unavailable(connection, error) from error
    try:
        with driver.session(
            database=connection.database, default_access_mode=READ_ACCESS
        ) as session:
            agent = session.run("RETURN 1").consume().server.agent
        check_agent(connection.uri, agent)
    except (DriverError, Neo4jError, ValueError) as error:
        driver.close()
        raise unavailable(connection, error) from error
    except BaseException:
        driver.close()
        raise
    sessions.remember(driver, connection.uri)
    return driver
