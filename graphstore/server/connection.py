"""How to reach a Neo4j: from the environment or the local server, and the driver for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neo4j import READ_ACCESS, Driver, GraphDatabase
from neo4j.exceptions import ConfigurationError, DriverError, Neo4jError

from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.address import Connection, check_uri, from_environment
from vizpub.graphstore.server.driver_errors import check_agent, no_neo4j, unavailable
from vizpub.graphstore.server.home import ServerHome
from vizpub.model.errors import Neo4jUnavailable, VizpubError

_TIMEOUT_S = 10

SILENT_S = 120.0
"""How long an answer may take of a server that does not tell it, as Neo4j does. Neo4j also says now
and then that it still works on a request; then this time begins again.
"""


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
        from vizpub.graphstore.server import (
            processes,  # which imports what others need not wait for
        )

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
        raise unavailable(connection, error) from error
    except Exception as error:  # of any kind: what the driver makes of answers that are not Neo4j's
        driver.close()
        raise no_neo4j(connection) from error
    except BaseException:
        driver.close()
        raise
    sessions.remember(driver, connection.uri)
    return driver


def _bound_silence(driver: Driver) -> None:
    """Wait for no answer longer than the server, or else SILENT_S, allows.

    The driver has an option for the first words only, so what opens its connections is wrapped.
    """
    opened = driver._pool.opener

    def bounded(*given: Any) -> Any:
        end = (connection := opened(*given)).socket
        if end.get_read_timeout() is None:
            end.set_read_timeout(SILENT_S)
        return connection

    driver._pool.opener = bounded
