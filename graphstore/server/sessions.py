"""Sessions, and Neo4j's errors as vizpub's.

Reads go through READ sessions, in which the server refuses to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    Driver,
    ManagedTransaction,
    NotificationMinimumSeverity,
    Query,
    Session,
)
from neo4j.exceptions import (
    DriverError,
    IncompleteCommit,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from vizpub.graphstore.server.driver_errors import RESTART, stopped_error, timed_out
from vizpub.model.errors import Neo4jAnswer, Neo4jUnavailable, UseError

LOST = "the connection was lost"
SILENT = "it does not answer any more"

REPEAT = "run the same command again"
UNSTORABLE = "Neo4j cannot store such a value"
TOO_MUCH_MEMORY = "it needs more memory than the server allows one query"

_T = TypeVar("_T")

_URIS: WeakKeyDictionary[Driver, str] = WeakKeyDictionary()
"""The address of each driver's server: the driver itself does not tell it."""

LATE = "it did not end in time and was stopped; ask for less, or allow more time"

LATE_WRITE = (
    "a transaction did not end in time and was stopped; raise the server's "
    f"db.transaction.timeout, then {REPEAT}: finished work is kept"
)

_HINTS = {
    WRITE_ACCESS: f"{REPEAT}: finished work is kept",
    READ_ACCESS: f"see that it runs, then {REPEAT}",
}
"""Advice after a lost connection, by the kind of access."""


def remember(driver: Driver, uri: str) -> None:
    """Register a driver's address, so that errors can name its server."""
    _URIS[driver] = uri


@contextmanager
def writing(driver: Driver, database: str) -> Iterator[Session]:
    """Open a session that writes.

    Raises: Neo4jUnavailable if the connection is lost, Neo4jAnswer.
    """
    with _session(driver, database, WRITE_ACCESS) as session:
        yield session


@contextmanager
def reading(driver: Driver, database: str, *, warnings: bool = False) -> Iterator[Session]:
    """Open a session in which the server refuses to write; with `warnings`, summaries have them.

    Raises: UseError if the time is up, Neo4jUnavailable, Neo4jAnswer.
    """
    with _session(driver, database, READ_ACCESS, warnings=warnings) as session:
        yield session


def write(session: Session, work: Callable[[ManagedTransaction], _T]) -> _T:
    """Return the result of `work` in a transaction; it may be called twice."""
    try:
        return session.execute_write(work)
    except IncompleteCommit:
        # The connection was lost in the commit, so nobody knows whether it took effect.
        return session.execute_write(work)


def rows(
    driver: Driver,
    database: str,
    text: str,
    parameters: Mapping[str, Any],
    timeout: float | None = None,
) -> list[list[Any]]:
    """Return all rows of one of our own reading statements.

    `timeout` is in seconds; None is the server's own.
    """
    with reading(driver, database) as session:
        query = Query(text, timeout=timeout)
        return [record.values() for record in session.run(query, dict(parameters))]


@contextmanager
def _session(
    driver: Driver, database: str, access: str, *, warnings: bool = False
) -> Iterator[Session]:
    # Our own statements may name a type or property that no run has used yet: no warning.
    severity = NotificationMinimumSeverity
    config: dict[str, Any] = {
        "database": database,
        "default_access_mode": access,
        "notifications_min_severity": severity.WARNING if warnings else severity.OFF,
    }
    uri = _URIS.get(driver, f"database '{database}'")
    with _translate_errors(uri, access), driver.session(**config) as session:
        yield session


@contextmanager
def _translate_errors(uri: str, access: str) -> Iterator[None]:
    hint = _HINTS[access]
    try:
        yield
    except (ServiceUnavailable, SessionExpired, IncompleteCommit) as error:
        if timed_out(error):
            raise Neo4jUnavailable(uri, SILENT, f"{RESTART}, then {REPEAT}") from error
        raise Neo4jUnavailable(uri, LOST, hint) from error
    except Neo4jError as error:
        code = error.code or ""
        if code.endswith(".DatabaseUnavailable"):  # another command may be restarting it
            raise Neo4jUnavailable(uri, "its database is not available now", hint) from error
        if "TransactionTimedOut" in code:
            raise UseError(LATE_WRITE if access == WRITE_ACCESS else LATE) from error
        if "OutOfMemory" in code:
            raise UseError(f"{TOO_MUCH_MEMORY}; ask for less") from error
        raise (stopped_error(uri, code) or Neo4jAnswer(code, error.message or "")) from error
    except DriverError as error:
        raise Neo4jUnavailable(uri, str(error)) from error
    except RecursionError as error:
        raise UseError("its plan is too deep to be read; split the query") from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise UseError(f"{UNSTORABLE}: {error}") from error
