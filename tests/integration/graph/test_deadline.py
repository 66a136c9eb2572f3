"""Questions end in time on a server that hangs, which answers others meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import neo4j
import pytest

from tests.integration.graph.conftest import free_text
from tests.support.bombs import SHAPES
from tests.support.few import few
from vizpub.graphstore.ask import deadline
from vizpub.graphstore.ask.deadline import STILL_BUSY, TimedSession
from vizpub.graphstore.ask.queries import Limits
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.sessions import LATE
from vizpub.model.errors import UseError

pytestmark = pytest.mark.neo4j

FOR_EVER = {
    "reduce": "RETURN reduce(a = 0, x IN range(1, 1000000000000) | a + x % 7) AS y",
    "comprehension": "RETURN size([x IN range(1, 1000000000000) WHERE x % 7 = 8]) AS y",
    "predicate": "RETURN all(x IN range(1, 1000000000000) WHERE x > 0) AS y",
}
"""One row that no Neo4j ends, or looks at its clock in."""


@pytest.fixture(scope="module")
def driver(home: Path) -> Iterator[neo4j.Driver]:
    """Of a server that is killed in the end: what hangs in it stops in no other way."""
    server = LocalServer(home, "test")
    with connect(server.start()) as driver:
        # The first question of a server takes it longer than any other.
        free_text(driver, "neo4j", FOR_EVER["reduce"].replace("0000", ""), {}, Limits(60))
        yield driver
    pid = server.status().pid
    assert pid
    os.kill(pid, signal.SIGKILL)


def transactions(driver: neo4j.Driver) -> list[tuple[str, dict[str, Any]]]:
    """Others' transactions: (status, metadata)."""
    asked = "SHOW TRANSACTIONS YIELD status, metaData"
    found = driver.execute_query(asked, database_="neo4j").records
    return [(r["status"], r["metaData"]) for r in found if r["metaData"]]


def ask_without_a_clock(driver: neo4j.Driver, text: str) -> None:
    """As if the server's own clock did not run: its transactions have no limit (0)."""
    with closing(TimedSession(driver, "neo4j", 0.5)) as asked:
        query = neo4j.Query(text, metadata=asked.query(text).metadata, timeout=0)
        asked.do(lambda session: session.run(query).consume())


@pytest.mark.long
def test_transaction_is_ended_by_its_name_alone(
    driver: neo4j.Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "_GRACE_S", 10.0)  # a busy machine does not obey within a second
    before = {told["vizpub"] for _, told in transactions(driver)}  # of other tests, which never end
    with driver.session(database="neo4j") as others:
        other = others.begin_transaction(metadata={"vizpub": "another"})
        other.run("RETURN 1").consume()
        with pytest.raises(UseError, match=LATE):
            ask_without_a_clock(driver, "UNWIND range(1, 1000000000000) AS x RETURN sum(x % 7)")
        after = [one for one in transactions(driver) if one[1]["vizpub"] not in before]
        assert after == [("Running", {"vizpub": "another"})]
        other.commit()


@pytest.mark.parametrize("shape", few(SHAPES, ["subqueries", "steps"]))
def test_largest_text_that_is_let_through_is_answered(driver: neo4j.Driver, shape: str) -> None:
    text, most = SHAPES[shape]
    assert len(free_text(driver, "neo4j", text(most), {}, Limits(60)).rows) == 1


def test_error_in_a_step_and_an_abandoned_answer_leave_nothing(driver: neo4j.Driver) -> None:
    before = len(transactions(driver))
    with pytest.raises(UseError, match="by zero"):
        free_text(driver, "neo4j", "RETURN 1 / 0", {})
    endless = "UNWIND range(1, 1000000000) AS x RETURN x"
    assert free_text(driver, "neo4j", endless, {}, Limits(60, 3)).more
    assert len(transactions(driver)) == before


# From here on rows that never end keep the server's processors busy.


@pytest.mark.parametrize("name", few(FOR_EVER, ["reduce"]))
def test_row_that_takes_for_ever_is_given_up(driver: neo4j.Driver, name: str) -> None:
    before = len(transactions(driver))
    with pytest.raises(UseError, match=STILL_BUSY):
        free_text(driver, "neo4j", FOR_EVER[name], {}, Limits(2))
    left = transactions(driver)
    assert len(left) == before + 1, "it has ended by itself, and shows nothing"
    assert all("Terminated" in status for status, _ in left)
    assert free_text(driver, "neo4j", "RETURN 1 AS x", {}).rows == [[1]]


@pytest.mark.long
def test_command_ends_although_its_row_does_not(
    driver: neo4j.Driver,
    home: Path,
    tmp_path: Path,
    vizpub_process: Callable[..., CompletedProcess[str]],
) -> None:
    (tmp_path / "neo4j").symlink_to(home)
    words = ("--workspace", str(tmp_path), "cypher", FOR_EVER["reduce"], "--timeout", "2s")
    done = vizpub_process(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {STILL_BUSY}")
    assert len(done.stderr.splitlines()) == 1
    assert transactions(driver)
