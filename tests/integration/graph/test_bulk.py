"""An import makes the same graph as transactions, or none; a dump comes back as it was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphstore.admin import tools
from graphstore.archive import dump, restore
from graphstore.bulk import find_empty, import_run
from graphstore.connection import connect
from graphstore.home import ServerHome
from graphstore.load import load_run
from graphstore.runs import run_properties
from graphstore.server import LocalServer
from graphstore.verify import verify_run
from model.errors import Neo4jUnavailable
from model.progress import Progress
from tests.integration.graph.conftest import Graph, History
from tests.integration.graph.everything import awkward_history, everything

pytestmark = pytest.mark.neo4j

ROOT = Path(__file__).parents[3]
HISTORY = awkward_history(80, "bulk")
_KILLED = """
import os, signal, sys
from pathlib import Path
from graphstore.connection import connect
from graphstore.bulk import find_empty, import_run
from graphstore.server import LocalServer
from tests.integration.graph.test_bulk import HISTORY

def die(step, done, total, note=""):
    if step.startswith("import"):
        os.kill(os.getpid(), signal.SIGKILL)

server = LocalServer(Path(sys.argv[1]), "test")
with connect(server.start()) as driver:
    empty = find_empty(driver, "neo4j")
import_run(server, empty, HISTORY.facts, HISTORY.tables, die)
"""


@pytest.fixture
def server(home: Path) -> LocalServer:
    """A server that runs, with nothing in it."""
    server = LocalServer(home, "test")
    with connect(server.start()) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
    return server


def imported(server: LocalServer, history: History, progress: Progress | None = None) -> bool:
    """Import into a database that must be empty."""
    with connect(server.start()) as driver:
        empty = find_empty(driver, "neo4j")
    assert empty
    return import_run(server, empty, history.facts, history.tables, progress)


def loaded(server: LocalServer, history: History) -> Graph:
    """Its graph when it is complete."""
    driver = connect(server.start())
    load_run(driver, "neo4j", history.facts, history.tables)
    assert verify_run(driver, "neo4j", history.facts, history.tables) == []
    return Graph(driver, "neo4j")


def test_it_makes_the_same_graph_as_transactions(server: LocalServer) -> None:
    by_bolt = loaded(server, HISTORY)
    expected = everything(by_bolt)
    by_bolt.ask("MATCH (n) DETACH DELETE n")
    by_bolt.driver.close()
    assert imported(server, HISTORY)
    with connect(server.start()) as driver:
        there = run_properties(driver, "neo4j", "bulk")
        assert there
        assert there["state"] == "loading"
    by_import = loaded(server, HISTORY)
    with by_import.driver:
        assert everything(by_import) == expected
        assert find_empty(by_import.driver, "neo4j") is None


def test_a_database_that_somebody_wrote_to_is_left_alone(server: LocalServer) -> None:
    with connect(server.start()) as driver:
        empty = find_empty(driver, "neo4j")
        assert empty
        driver.execute_query("CREATE (:Peer {of: 'somebody'})", database_="neo4j")
    assert not import_run(server, empty, HISTORY.facts, HISTORY.tables)
    with connect(server.start()) as driver:
        found = everything(Graph(driver, "neo4j"))
    assert found == {"[['Peer'], [('of', 'somebody')]]": 1}


def test_what_is_killed_leaves_an_empty_database(server: LocalServer, home: Path) -> None:
    """First who imports, then the tool; the third time it comes to its end."""
    done = subprocess.run([sys.executable, "-c", _KILLED, str(home)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tools(ServerHome(home))
    with pytest.raises(Neo4jUnavailable):
        imported(server, HISTORY, _kill_tools(home))
    assert not left.is_running()
    assert server.status().state == "running"
    assert imported(server, HISTORY)
    loaded(server, HISTORY).driver.close()
    assert not (home / "staging").exists()


def _kill_tools(home: Path) -> Progress:
    def kill(step: str, done: int, total: int, note: str = "") -> None:
        if step.startswith("import"):
            for process in tools(ServerHome(home)):
                process.kill()

    return kill


def test_a_dump_is_all_of_it_and_comes_back(server: LocalServer, tmp_path: Path) -> None:
    graph = loaded(server, HISTORY)
    expected = everything(graph)
    graph.driver.close()
    file = tmp_path / "it.dump"
    size = dump(server, "neo4j", file)
    assert [size] == [path.stat().st_size for path in tmp_path.iterdir()]
    assert file.stat().st_mode & 0o77 == 0
    server.remove()
    server.start()
    (tmp_path / "cut.dump").write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(Neo4jUnavailable, match="Truncated"):
        restore(server, "neo4j", tmp_path / "cut.dump")
    with connect(server.start()) as driver:
        assert find_empty(driver, "neo4j")
    restore(server, "neo4j", file)
    with connect(server.start()) as driver:
        assert verify_run(driver, "neo4j", HISTORY.facts, HISTORY.tables) == []
        assert everything(Graph(driver, "neo4j")) == expected
