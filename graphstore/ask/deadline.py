"""Queries that end in time, whatever the server does.

Neo4j looks at its clock between rows. One row, or one plan, that takes for ever is noticed only by
the caller that waits for it. So another thread speaks to the server. The caller waits for it as
long as agreed, then has the transaction ended through another connection and goes on without an
answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar
from uuid import uuid4

from neo4j import Driver, Query, Session

from vizpub import cypher
from vizpub.graphstore.server import sessions
from vizpub.model.errors import UseError, VizpubError

_GRACE_S = 2.0
"""So much later than the server who asked gives up: one half for the server to report the end,
the other to be obeyed."""

STILL_BUSY = (
    "it did not end in time, and the server has not stopped it yet: it is busy with a single "
    "row, or with the plan; other queries still run, and a restart of the server ends it"
)

T = TypeVar("T")
Step = Callable[[Session], Any]


@contextmanager
def asking(
    driver: Driver, database: str, seconds: float, *, warnings: bool = False
) -> Iterator[Asked]:
    """Who may be asked for so many seconds, for the length of the block."""
    with closing(Asked(driver, database, seconds, warnings=warnings)) as asked:
        yield asked


class Asked:
    """A reading session in a thread of its own, which takes steps in their order."""

    def __init__(
        self, driver: Driver, database: str, seconds: float, *, warnings: bool = False
    ) -> None:
        self._warnings = warnings
        self._driver, self._database, self._seconds = driver, database, seconds
        self._left = seconds
        """Of the time, without what the caller takes for himself."""
        self._lost = False
        self._name = uuid4().hex
        self._steps: SimpleQueue[tuple[Step, Future[Any]] | None] = SimpleQueue()
        # No caller waits for it in the end: it may hang.
        self._hand = Thread(target=self._serve, name=f"vizpub {self._name}", daemon=True)
        self._hand.start()

    def query(self, text: str) -> Query:
        """The text as a query that can be found and ended, and that ends itself in time."""
        return Query(text, metadata={"vizpub": self._name}, timeout=self._seconds)

    def do(self, step: Callable[[Session], T]) -> T:
        """What a step with the session gives.

        Raises: UseError where the time is up, Neo4jUnavailable, Neo4jAnswer.
        """
        given: Future[T] = Future()
        began = time.monotonic()
        until = began + max(self._left, 0)
        self._steps.put((step, given))
        try:
            in_time = _is_given(given, until + _GRACE_S / 2)
        except BaseException:  # the caller is interrupted
            self._end_transaction()
            raise
        self._left -= time.monotonic() - began
        if in_time:
            return given.result()
        self._end_transaction()
        if _is_given(given, until + _GRACE_S):
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
        """Let the session go, if its thread does."""
        self._steps.put(None)
        if not self._lost:
            self._hand.join(_GRACE_S)

    def _serve(self) -> None:
        given: Future[Any] = Future()
        try:
            with sessions.reading(self._driver, self._database, warnings=self._warnings) as session:
                while job := self._steps.get():
                    step, given = job
                    given.set_result(step(session))
        except BaseException as error:
            if not given.done():
                given.set_exception(error)


def _is_given(given: Future[Any], until: float) -> bool:
    """Whether a step has ended by then."""
    try:
        given.exception(max(until - time.monotonic(), 0))
    except TimeoutError:
        return False
    return True
