"""Queries that end in time, whatever the server does.

Neo4j looks at its clock between rows only. If one row, or one plan, takes for ever, only the
waiting caller can notice. So another thread talks to the server. The caller waits for that thread
until the time is up, then ends the transaction through another connection and goes on without an
answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar
from uuid import uuid4

from neo4j import Driver, Query, Session

from vizpub import cypher
from vizpub.graphstore.server import sessions
from vizpub.model.errors import UseError, VizpubError

_GRACE_S = 2.0
"""Seconds after the server's time limit until the caller gives up: one half for the server to
report the end, the other for it to end the transaction."""

STILL_BUSY = (
    "it did not end in time, and the server has not stopped it yet: it is busy with a single "
    "row, or with the plan; other queries still run, and a restart of the server ends it"
)

T = TypeVar("T")
Step = Callable[[Session], Any]


class TimedSession:
    """A reading session in a thread of its own, which runs steps one after the other.

    They may take `seconds` in total. The caller closes it.
    """

    def __init__(
        self, driver: Driver, database: str, seconds: float, *, warnings: bool = False
    ) -> None:
        self._warnings = warnings
        self._driver, self._database, self._seconds = driver, database, seconds
        self._remaining = seconds
        """Seconds left; the caller's own time between steps does not count."""
        self._lost = False
        self._name = uuid4().hex
        self._steps: SimpleQueue[tuple[Step, Future[Any]] | None] = SimpleQueue()
        # A daemon, as it may hang: the interpreter must not wait for it at exit.
        self._thread = Thread(target=self._serve, name=f"vizpub {self._name}", daemon=True)
        self._thread.start()

    def query(self, text: str) -> Query:
        """Make a query that ends in time, and that another connection can find and end."""
        return Query(text, metadata={"vizpub": self._name}, timeout=self._seconds)

    def do(self, step: Callable[[Session], T]) -> T:
        """Run a step with the session and return its result.

        Raises: UseError if the time is up, Neo4jUnavailable, Neo4jAnswer.
        """
        result: Future[T] = Future()
        began = time.monotonic()
        until = began + max(self._remaining, 0)
        self._steps.put((step, result))
        try:
            in_time = _wait(result, until + _GRACE_S / 2)
        except BaseException:  # the caller is interrupted
            self._end_transaction()
            raise
        self._remaining -= time.monotonic() - began
        if in_time:
            return result.result()
        self._end_transaction()
        if _wait(result, until + _GRACE_S):
            raise UseError(sessions.LATE)
        self._lost = True
        raise UseError(STILL_BUSY)

    def _end_transaction(self) -> None:
        ending = Thread(target=self._terminate, daemon=True)
        ending.start()
        ending.join(_GRACE_S / 4)

    def _terminate(self) -> None:
        text = cypher.statement("read", "end-transaction").text
        with suppress(VizpubError):
            sessions.rows(self._driver, self._database, text, {"name": self._name}, _GRACE_S)

    def close(self) -> None:
        """Close the session, unless its thread hangs."""
        self._steps.put(None)
        if not self._lost:
            self._thread.join(_GRACE_S)

    def _serve(self) -> None:
        result = None
        try:
            with sessions.reading(self._driver, self._database, warnings=self._warnings) as session:
                while job := self._steps.get():
                    step, result = job
                    result.set_result(step(session))
        except BaseException as error:
            if result and not result.done():
                result.set_exception(error)


def _wait(result: Future[Any], until: float) -> bool:
    """Wait for a step; return True if it has ended by then."""
    try:
        result.exception(max(until - time.monotonic(), 0))
    except TimeoutError:
        return False
    return True
