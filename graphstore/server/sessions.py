"""Sessions, and Neo4j's errors as vizpub's.

Reads go through READ sessions, in which the server refuses to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from neo4j import READ_ACCESS, WRITE_ACCESS, Driver, NotificationMinimumSeverity, Query, Session
from neo4j.exceptions import (
    DriverError,
    IncompleteCommit,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from vizpub.graphstore.server.driver_errors import RESTART, hangs, has_stopped
from vizpub.model.errors import Neo4jAnswer, Neo4jUnavailable, UseError

LOST = "the connection was lost"
SILENT = "it does not answer any more"

REPEAT = "run the same command again"
UNSTORABLE = "Neo4j cannot store such a value"
TOO_MUCH_MEMORY = "it needs more memory than the server allows one query"

_T = TypeVar("_T")

_URIS: WeakKeyDictionary[Driver, str] = WeakKeyDictionary()
"""Where the server of a driver is: the driver itself does not say."""

LATE = "it did not end in time and was stopped; ask for less, or allow more time"

_AGAIN = {
    WRITE_ACCESS: f"{REPEAT}: finished work is kept",
    READ_ACCESS: f"see that it runs, then {REPEAT}",
}
"""What to do where a connection was lost."""


def remember(driver: Driver, uri: str) -> None:
    """Name the server in what goes wrong with the driver from now on."""
    _URIS[driver] = uri


@contextmanager
def writing(driver: Driver, database: str) -> Iterator[Session]:
    """A session that writes.

    Raises: Neo4jUnavailable where the connection is lost, Neo4jAnswer.
    """
    with _session(driver, database, WRITE_ACCESS) as session:
        yield session


@contextmanager
def reading(driver: Driver, database: str, *, warnings: bool = False) -> Iterator[Session]:
    """A session in which the server refuses to write; with `warnings`, summaries have them.

    Raises: UseError where the time is up, Neo4jUnavailable, Neo4jAnswer.
    """
    with _session(driver, database, READ_ACCESS, warnings=warnings) as session:
        yield session


def write(session: Session, work: Callable[..., _T], *given: Any) -> _T:
    """What `work` returns, given a transaction and `given`; it may be done twice.

    Where the connection is lost in a commit, nobody knows whether it took effect: it is done again.
    """
    try:
        return session.execute_write(work, *given)
    except IncompleteCommit:
        return session.execute_write(work, *given)


def rows(
    driver: Driver,
    database: str,
    text: str,
    parameters: Mapping[str, Any],
    timeout: float | None = None,
) -> list[list[Any]]:
    """All rows of one of our own reading statements. `timeout` in seconds, null = the server's."""
    with reading(driver, database) as session:
        query = Query(text, timeout=timeout)
        return [record.values() for record in session.run(query, dict(parameters))]


@contextmanager
def _session(
    driver: Driver, database: str, access: str, *, warnings: bool = False
) -> Iterator[Session]:
    # In our own statements, a type or property that no run has used yet is no news.
    severity = NotificationMinimumSeverity
    config: dict[str, Any] = {
        "database": database,
        "default_access_mode": access,
        "notifications_min_severity": severity.WARNING if warnings else severity.OFF,
    }
    uri = _URIS.get(driver, f"database '{database}'")
    with _errors(uri, _AGAIN[access]), driver.session(**config) as session:
        yield session


@contextmanager
def _errors(uri: str, again: str) -> Iterator[None]:
    try:
        yield
    except (ServiceUnavailable, SessionExpired, IncompleteCommit) as error:
        if hangs(error):
            raise Neo4jUnavailable(uri, SILENT, f"{RESTART}, then {REPEAT}") from error
        raise Neo4jUnavailable(uri, LOST, again) from error
    except Neo4jError as error:
        code = error.code or ""
        if code.endswith(".DatabaseUnavailable"):  # as where another command restarts the server
            raise Neo4jUnavailable(uri, "its database is not available now", again) from error
        raise (has_stopped(uri, code) or _in_our_words(error)) from error
    except DriverError as error:
        raise Neo4jUnavailable(uri, str(error)) from error
    except RecursionError as error:
        raise UseError("its plan is too deep to be read; split the query") from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise UseError(f"{UNSTORABLE}: {error}") from error


def _in_our_words(error: Neo4jError) -> UseError | Neo4jAnswer:
    """The server's error as one of ours."""
    code, message = error.code or "", error.message or ""
    if "TransactionTimedOut" in code:
        return UseError(LATE)
    if "OutOfMemory" in code:
        return UseError(f"{TOO_MUCH_MEMORY}; ask for less")
    return Neo4jAnswer(code, message)
