"""An import makes the same graph as transactions, or none; a dump comes back as it was.

Whatever is done to a stopped database ends with a start, which is dear: what is looked at more
than once is made once, and what must fail fails in one stop.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from neo4j import Driver
from typer.testing import CliRunner

from tests.integration.graph.conftest import Graph, emptied
from tests.integration.graph.everything import awkward_history, everything
from tests.support.tables import Batches
from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.graphstore.load import bulk
from vizpub.graphstore.load.bulk import EmptyDatabase, LoadTarget, find_empty, import_run
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.transactions import LoadSummary, load_run
from vizpub.graphstore.runs import run_names, run_properties
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.admin import tool_processes
from vizpub.graphstore.server.archive import restore
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.home import ServerHome
from vizpub.graphstore.server.offline import TOOL, Tool, last_transaction
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.settings import PROFILES
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import Neo4jUnavailable
from vizpub.model.progress import Progress, silent

pytestmark = [pytest.mark.long, pytest.mark.neo4j]

ROOT = Path(__file__).parents[3]
HISTORY = awkward_history(80, "bulk")
PARTITION = 128
"""Intervals of its time partitions."""
SOMEBODY = "CREATE (:Peer {of: 'somebody'})"
_KILLED = """
import os, signal, sys
from pathlib import Path
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.load.bulk import find_empty, import_run
from vizpub.graphstore.server.server import LocalServer
from tests.integration.graph.test_bulk import HISTORY

def die(step, done, total, note=""):
    if step.startswith("import"):
        os.kill(os.getpid(), signal.SIGKILL)

server = LocalServer(Path(sys.argv[1]), "test")
with connect(server.start()) as driver:
    empty = find_empty(driver, "neo4j")
import_run(server, empty, HISTORY.facts, HISTORY.tables, die)
"""


@dataclass(frozen=True)
class Imported:
    """What an import made of HISTORY, when the load had come to its end."""

    graph: Counter[str]
    dump: Path
    readings: Counter[str]
    """How often each table was read for it."""


class Counted(Batches):
    """Tables that count how often they are read."""

    readings: ClassVar[Counter[str]] = Counter()

    def row_groups(self, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        self.readings[name] += 1
        return super().row_groups(name)


@dataclass(frozen=True)
class Stopped:
    """A place whose server stays stopped from one step to the next."""

    tool: Tool
    folder: Path

    def start(self) -> Connection:
        pytest.fail("it is stopped")

    @contextmanager
    def offline_tool(self) -> Iterator[Tool]:
        yield self.tool

    @contextmanager
    def staging_folder(self) -> Iterator[Path]:
        yield self.folder


class Telling:
    """Progress that keeps the steps, and sets an event at one."""

    def __init__(self, event: Event, step: str) -> None:
        self.event, self.step, self.steps = event, step, set[str]()

    def __call__(self, step: str, done: int, total: int, note: str = "") -> None:
        self.steps.add(step)
        if step == self.step:
            self.event.set()


class ToolsKiller:
    """Kills the tools of a home once one has begun to import."""

    def __init__(self, home: Path) -> None:
        self.home, self.killed = ServerHome(home), 0

    def __call__(self, step: str, done: int, total: int, note: str = "") -> None:
        if step.startswith("import"):
            for process in tool_processes(self.home):
                process.kill()
                self.killed += 1


@pytest.fixture(scope="module")
def imported(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """Imported as it pays, made complete and dumped; only the one who dumps may read the file."""
    server, file = emptied(home), tmp_path_factory.mktemp("dump") / "it.dump"
    counted = Counted(HISTORY.rows, HISTORY.batch)
    tables = TableReader(counted, HISTORY.facts.clock)

    def look_and_load(driver: Driver, *given: Any) -> LoadSummary:
        there = run_properties(driver, "neo4j", "bulk")
        assert there
        assert there["state"] == "loading"
        assert run_names(driver, "neo4j") == ["bulk"]
        assert find_empty(driver, "neo4j") is None
        return load_run(driver, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "load_run", look_and_load)
        patch.setattr(bulk, "PAYING_ROWS", 1)
        bulk.load(
            LoadTarget(server.start(), server, partition_intervals=PARTITION), HISTORY.facts, tables
        )
    readings = counted.readings.copy()
    graph = content(server)
    told = vizpub(home, "neo4j", "dump", str(file))
    assert [path.name for path in file.parent.iterdir()] == ["it.dump"]
    tells(told, f"{file.stat().st_size / 1e6:.1f} MB")
    assert file.stat().st_mode & 0o77 == 0
    return Imported(graph, file, readings)


def import_into(place: LocalServer, progress: Progress | None = None) -> None:
    """Import into a database that must be empty."""
    with connect(place.start()) as driver:
        empty = find_empty(driver, "neo4j")
    assert empty
    assert import_run(place, empty, HISTORY.facts, HISTORY.tables, progress)


def content(server: LocalServer) -> Counter[str]:
    with connect(server.start()) as driver:
        return everything(Graph(driver, "neo4j"))


def vizpub(home: Path, *words: str) -> str:
    """What a command tells of a workspace whose Neo4j this is."""
    workspace = home.parent / "workspace"
    workspace.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROFILES, "default", PROFILES["test"])
        patch.delenv("NEO4J_URI", raising=False)
        if not (workspace / "neo4j").exists():
            (workspace / "neo4j").symlink_to(home)
        done = CliRunner().invoke(app, ["--workspace", str(workspace), *words])
    assert done.exit_code == 0, done.output
    return done.stderr


def test_import_makes_the_same_graph_as_transactions(imported: Imported, graph: Graph) -> None:
    graph.remove("bulk")
    before = everything(graph)
    graph.load(HISTORY, PARTITION)
    by_transactions = everything(graph)
    graph.remove("bulk")
    assert imported.graph == by_transactions - before


def test_import_and_the_load_after_it_read_no_table_more_than_twice(imported: Imported) -> None:
    assert imported.readings.keys() == HISTORY.rows.keys()
    assert max(imported.readings.values()) == 2


def test_dump_restores_the_whole_graph(imported: Imported, server: LocalServer, home: Path) -> None:
    """In the place of what somebody wrote."""
    with connect(server.start()) as driver:
        driver.execute_query(SOMEBODY, database_="neo4j")
    told = vizpub(home, "neo4j", "restore", str(imported.dump), "--yes")
    tells(told, imported.dump)
    assert content(server) == imported.graph


def test_database_no_longer_empty_is_not_imported_into(
    imported: Imported, server: LocalServer, tmp_path: Path
) -> None:
    """By an import that saw it empty, by one whose tool is killed, by half a dump."""
    with connect(server.start()) as driver:
        empty = find_empty(driver, "neo4j")
        assert empty
        driver.execute_query(SOMEBODY, database_="neo4j")
    cut = tmp_path / "cut.dump"
    cut.write_bytes(imported.dump.read_bytes()[:-1000])
    kill = ToolsKiller(server.status().home)
    with pytest.raises(Neo4jUnavailable, match=TOOL):
        fail_in_one_stop(server, empty, cut, kill)
    assert kill.killed
    assert server.status().state == "running"
    assert content(server) == {"[['Peer'], [('of', 'somebody')]]": 1}


def fail_in_one_stop(
    server: LocalServer, empty: EmptyDatabase, cut: Path, kill: ToolsKiller
) -> None:
    """Raises: Neo4jUnavailable."""
    with server.offline_tool() as tool:
        there = Stopped(tool, cut.parent)
        assert not import_run(there, empty, HISTORY.facts, HISTORY.tables)
        with pytest.raises(Neo4jUnavailable, match="Truncated"):
            restore(there, "neo4j", cut, silent)
        now = EmptyDatabase("neo4j", last_transaction(tool, "neo4j"))
        import_run(there, now, HISTORY.facts, HISTORY.tables, kill)


@pytest.mark.long
def test_killed_import_leaves_an_empty_database(server: LocalServer, home: Path) -> None:
    """First who imports, then the tool; the third time it comes to its end."""
    done = subprocess.run([sys.executable, "-c", _KILLED, str(home)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tool_processes(ServerHome(home))
    kill = ToolsKiller(home)
    with pytest.raises(Neo4jUnavailable):
        import_into(server, kill)
    assert kill.killed
    assert not left.is_running()
    assert server.status().state == "running"
    import_into(server)
    with connect(server.start()) as driver:
        load_run(driver, "neo4j", HISTORY.facts, HISTORY.tables)
    assert not [*home.glob("*staging*")]


@pytest.mark.long
def test_loads_into_one_server_wait_for_each_other(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is held where it is about to stop the server, until the second waits for it."""
    monkeypatch.setattr(bulk, "PAYING_ROWS", 1)
    runs = [HISTORY, replace(HISTORY, facts=replace(HISTORY.facts, name="other"))]
    begun, waits = Event(), Event()
    connection = server.start()

    def load(place: int, progress: Progress) -> LoadSummary:
        facts, tables = runs[place].facts, runs[place].tables
        return bulk.load(
            LoadTarget(connection, LocalServer(server.status().home)), facts, tables, progress
        )

    def first(step: str, done: int, total: int, note: str = "") -> None:
        if step == "stop Neo4j":
            begun.set()
            assert waits.wait(60)

    second = Telling(waits, "wait for another load")
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(load, 0, first)
        assert begun.wait(60)
        two = threads.submit(load, 1, second)
        assert not one.result().already_complete
        assert not two.result().already_complete
    assert "stop Neo4j" not in second.steps
    with connect(server.start()) as driver:
        for run in runs:
            assert verify_run(driver, "neo4j", run.facts, run.tables) == []


@pytest.mark.long
def test_dump_comes_back_on_another_server(imported: Imported, tmp_path: Path) -> None:
    other = LocalServer(tmp_path / "other", "test")
    try:
        other.start()
        restore(other, "neo4j", imported.dump, silent)
        assert content(other) == imported.graph
    finally:
        other.remove()
