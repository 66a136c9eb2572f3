"""What is done while a server is stopped, where it runs in a container."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine import NEO4J, PASSWORD, answering, neo4j, started
from tests.integration.graph.conftest import Graph
from tests.integration.graph.everything import awkward_history, everything
from tests.support.words import naming
from vizpub.graphstore.load.bulk import LoadTarget, find_empty, load
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.archive import dump, restore
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.container import Container
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import Neo4jUnavailable, UseError
from vizpub.model.progress import silent

pytestmark = [pytest.mark.long, pytest.mark.containers]

HISTORY = awkward_history(82, "contained")


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def name() -> Iterator[str]:
    """The container of a server that has answered."""
    with started(neo4j()) as container:
        answering(container)
        found = container.get_container_id()
        assert found
        yield found


@pytest.fixture
def place(name: str) -> Container:
    """An empty server, at the port that it has now."""
    port = docker("port", name, "7687/tcp").splitlines()[0].rpartition(":")[2]
    connection = connection_at(port)
    with connect(connection) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
    return Container(name, connection)


def connection_at(port: str) -> Connection:
    return Connection(f"bolt://127.0.0.1:{port}", "neo4j", PASSWORD)


def tools() -> list[str]:
    """The containers that tools run in."""
    return docker("ps", "--all", "--quiet", "--filter", "label=vizpub.tool").split()


def test_container_is_imported_dumped_and_restored_unchanged(
    place: Container, tmp_path: Path
) -> None:
    """Imported, the same as by transactions; dumped, emptied and restored, the same again, by way
    of a local server.
    """
    graphs = []
    for bulk in (False, True):
        loaded = load(LoadTarget(place.start(), place, bulk), HISTORY.facts, HISTORY.tables)
        assert not loaded.already_complete
        with connect(place.start()) as driver:
            graphs.append(everything(Graph(driver, "neo4j")))
            if bulk:
                assert verify_run(driver, "neo4j", HISTORY.facts, HISTORY.tables) == []
                break
            driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
    assert graphs[0] == graphs[1]
    dump(place, "neo4j", tmp_path / "dump", silent)
    with connect(place.start()) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
    (tmp_path / "cut").write_bytes((tmp_path / "dump").read_bytes()[:-1000])
    with pytest.raises(Neo4jUnavailable, match="Truncated"):
        restore(place, "neo4j", tmp_path / "cut", silent)
    with connect(place.start()) as driver:
        assert find_empty(driver, "neo4j")
    local = LocalServer(tmp_path / "home", "test")
    local.start()
    restore(local, "neo4j", tmp_path / "dump", silent)
    with connect(local.start()) as driver:
        assert everything(Graph(driver, "neo4j")) == graphs[0]
    dump(local, "neo4j", tmp_path / "of local", silent)
    local.remove()
    restore(place, "neo4j", tmp_path / "of local", silent)
    with connect(place.start()) as driver:
        assert everything(Graph(driver, "neo4j")) == graphs[0]
    assert not tools()


def test_container_other_than_the_server_is_refused(place: Container) -> None:
    other = docker("create", "--volume=/data", NEO4J).strip()
    try:
        wrong = Container(other, place.start())
        with pytest.raises(UseError, match=naming(other)), wrong.offline_tool():
            raise AssertionError
    finally:
        docker("rm", "--force", "--volumes", other)
    with connect(place.start()) as driver:
        assert find_empty(driver, "neo4j")


@pytest.mark.usefixtures("name")
def test_container_name_unknown_to_docker_is_refused() -> None:
    with pytest.raises(UseError, match="No such container"):
        Container("nobody", connection_at("7687")).start()
