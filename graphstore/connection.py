"""How to reach a Neo4j: from the environment or the local server, and the driver for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from neo4j import Driver, GraphDatabase
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConfigurationError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
)

from graphstore import sessions
from graphstore.home import ServerHome
from model.errors import Neo4jUnavailable, UseError

_TIMEOUT_S = 10
_SCHEMES = tuple(
    name + encryption for name in ("bolt", "neo4j") for encryption in ("", "+s", "+ssc")
)

_WHY = {
    "Neo.ClientError.Security.AuthenticationRateLimit": (
        "it refuses after too many wrong passwords", "wait a minute, then check NEO4J_PASSWORD",
    ),
    "Neo.ClientError.Security.CredentialsExpired": (
        "the password has to be changed first", "log in with Neo4j Browser and change it",
    ),
    "Neo.ClientError.Database.DatabaseNotFound": (
        "it has no database '{database}'", "check NEO4J_DATABASE",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Connection:
    """Where a Neo4j is and who asks it."""

    uri: str
    username: str
    password: str = field(repr=False)
    database: str = "neo4j"


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
    """Raises: UseError where the address is of no scheme that queries can be sent by."""
    scheme = uri.partition("://")[0].lower() if "://" in uri else ""
    if scheme in _SCHEMES:
        return
    browser = " (http is for Neo4j Browser)" if scheme in ("http", "https") else ""
    raise UseError(
        f"NEO4J_URI: '{uri}' is no address for queries{browser}; write it like "
        f"bolt://localhost:7687, or with one of {', '.join(_SCHEMES[1:])}"
    )


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
    """
    files = ServerHome(home.resolve())
    state, password = files.read_state(), files.read_password()
    return Connection(state.uri, "neo4j", password) if state and password else None


def find_connection(home: Path) -> Connection:
    """The server of the environment, else the local one of `home`.

    Raises: Neo4jUnavailable where there is neither, UseError as `from_environment`.
    """
    found = from_environment() or from_home(home)
    if not found:
        raise Neo4jUnavailable(str(home), "no server was ever started here")
    return found


def connect(connection: Connection) -> Driver:
    """A driver for a server that has answered; close it after use.

    Raises: Neo4jUnavailable, UseError for an address of another scheme.
    """
    check_uri(connection.uri)
    try:
        driver = GraphDatabase.driver(
            connection.uri,
            auth=(connection.username, connection.password),
            connection_timeout=_TIMEOUT_S,
            user_agent="vizpub",
        )
    except (ConfigurationError, ValueError) as error:
        raise unavailable(connection, error) from error
    try:
        with driver.session(database=connection.database) as session:
            session.run("RETURN 1").consume()
    except (DriverError, Neo4jError, ValueError) as error:
        driver.close()
        raise unavailable(connection, error) from error
    except BaseException:
        driver.close()
        raise
    sessions.remember(driver, connection.uri)
    return driver


def unavailable(connection: Connection, error: Exception) -> Neo4jUnavailable:
    """The driver's error in words a user can act on."""
    if isinstance(error, ServiceUnavailable):
        return Neo4jUnavailable(connection.uri, "it does not answer")
    if isinstance(error, (ConfigurationError, ValueError)):
        return Neo4jUnavailable(
            connection.uri, str(error), "write NEO4J_URI like bolt://localhost:7687"
        )
    code = error.code if isinstance(error, Neo4jError) and error.code else ""
    if code in _WHY:
        why, hint = _WHY[code]
        return Neo4jUnavailable(connection.uri, why.format(database=connection.database), hint)
    if isinstance(error, AuthError):
        return Neo4jUnavailable(
            connection.uri,
            f"wrong password for the user '{connection.username}'",
            "check NEO4J_USERNAME and NEO4J_PASSWORD",
        )
    message = error.message if isinstance(error, ClientError) else str(error)
    return Neo4jUnavailable(connection.uri, message or code, "see the server's log")
