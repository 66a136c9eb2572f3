"""How to reach a Neo4j: from the environment or the local server, and the driver for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neo4j import READ_ACCESS, Driver, GraphDatabase
from neo4j.exceptions import ConfigurationError, DriverError, Neo4jError

from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.address import Connection, check_uri, from_environment
from vizpub.graphstore.server.driver_errors import check_agent, connection_error, no_neo4j_error
from vizpub.graphstore.server.home import ServerHome
from vizpub.model.errors import Neo4jUnavailable, VizpubError

_TIMEOUT_S = 10
CONNECT_S = 3 * _TIMEOUT_S
"""Seconds to wait for a connection: for the host, and for the handshake of what listens there."""
SILENT_S = 120.0
"""Seconds to wait for an answer if the server announces no limit of its own, as Neo4j does.

A server that still works on a request says so now and then, and this time starts again.
"""


def from_home(home: Path) -> Connection | None:
    """Return the connection to the local server last started in `home`, or None if there is none.

    The server may have stopped since.

    Raises: UseError if anybody else owns the home or can enter it.
    """
    files = ServerHome(home.resolve())
    if not files.check():
        return None
    state, password = files.read_state(), files.read_password()
    if not state or not password:
        return None
    return Connection(state.uri, "neo4j", password, home=files.path)


def find_connection(home: Path) -> Connection:
    """Return the connection of the environment, or else that of the local server in `home`.

    Raises: Neo4jUnavailable if there is neither, UseError as `from_environment`.
    """
    connection = from_environment() or from_home(home)
    if not connection:
        raise Neo4jUnavailable(str(home), "no server was ever started here")
    return connection


def check_server(connection: Connection) -> None:
    """Check that a local server's password would reach that server and nobody else.

    Raises: Neo4jUnavailable, UseError.
    """
    if connection.home:
        # psutil takes a while to import, and remote servers do not need it.
        from vizpub.graphstore.server import processes

        processes.check_server(ServerHome(connection.home), connection.uri)


def connect(connection: Connection, timeout_s: float = _TIMEOUT_S) -> Driver:
    """Connect to a server and return its driver, which the caller closes.

    `timeout_s` limits the wait for a host that does not even refuse.

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
            # It limits the handshake too: else a port that accepts and stays silent would hang us.
            connection_acquisition_timeout=3 * timeout_s,
            user_agent="vizpub",
        )
    except (ConfigurationError, ValueError) as error:
        raise connection_error(connection, error) from error
    _bound_silence(driver)
    try:
        with driver.session(
            database=connection.database, default_access_mode=READ_ACCESS
        ) as session:
            agent = session.run("RETURN 1").consume().server.agent
        check_agent(connection.uri, agent)
    except VizpubError:
        driver.close()
        raise
    except (DriverError, Neo4jError) as error:
        driver.close()
        raise connection_error(connection, error) from error
    except Exception as error:  # the driver raises anything if the answer is not Neo4j's
        driver.close()
        raise no_neo4j_error(connection) from error
    except BaseException:
        driver.close()
        raise
    sessions.remember(driver, connection.uri)
    return driver


def _bound_silence(driver: Driver) -> None:
    """Limit the wait for each answer to what the server announces, or else to SILENT_S."""
    # The driver has an option for the handshake only, so the function that opens its
    # connections is wrapped.
    open_connection = driver._pool.opener

    def open_with_timeout(*arguments: Any) -> Any:
        socket = (connection := open_connection(*arguments)).socket
        if socket.get_read_timeout() is None:
            socket.set_read_timeout(SILENT_S)
        return connection

    driver._pool.opener = open_with_timeout
