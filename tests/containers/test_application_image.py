"""The application image: the command line in a container, beside Neo4j on a Docker network."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from graphstore.connection import connect
from graphstore.queries import ask
from graphstore.remove import remove_run
from tests.containers.engine import SECRET, VIZPUB, WORD, answering, look_for
from tests.integration.graph.conftest import Graph

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network

pytestmark = pytest.mark.containers

Done = subprocess.CompletedProcess[str]
Vizpub = Callable[..., Done]
RUN = "small"


def docker(*words: str) -> Done:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def vizpub(
    server: DockerContainer, net: Network, auth_file: Path, libp2p_small: Path
) -> Iterator[Vizpub]:
    """A command in a container of its own; the workspace is a volume that all of them mount."""
    look_for(VIZPUB)
    answering(server, SECRET)
    workspace = f"vizpub-test-{uuid4().hex[:8]}"
    words = ["run", "--rm", "--network", net.name, "-v", f"{workspace}:/workspace"]
    words += ["-v", f"{libp2p_small}:/input:ro", "-v", f"{auth_file}:/run/secrets/neo4j_auth:ro"]
    words += ["-e", "NEO4J_URI=bolt://neo4j", "-e", "NEO4J_AUTH_FILE=/run/secrets/neo4j_auth"]
    yield lambda *command: docker(*words, VIZPUB, *command)
    assert docker("volume", "rm", workspace).returncode == 0


@pytest.fixture(scope="module")
def loaded(vizpub: Vizpub, server: DockerContainer) -> Iterator[Graph]:
    """The recorded network ingested by one container, loaded by another, seen from here."""
    for words in (("ingest", "/input/trace.pb.gz", "--run", RUN, "--no-load"), ("load", RUN)):
        done = vizpub(*words)
        assert done.returncode == 0, done.stderr
    with connect(answering(server, SECRET)) as driver:
        yield Graph(driver, "neo4j")
        remove_run(driver, "neo4j", RUN)


@pytest.fixture(scope="module")
def truth(libp2p_small: Path) -> dict[str, Any]:
    packed = (libp2p_small / "truth.json.gz").read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(packed))
    return found


def test_it_finds_what_it_needs(vizpub: Vizpub) -> None:
    done = vizpub("doctor")
    assert done.returncode == 0, done.stderr
    assert "vizpub can be used" in done.stderr


def test_what_was_loaded_is_what_was_recorded(loaded: Graph, truth: dict[str, Any]) -> None:
    counted = {
        "nodes": "MATCH (p:Peer {run: $run}) RETURN count(p)",
        "messages": "MATCH (m:Message {run: $run}) RETURN count(m)",
        "Deliver": "MATCH ()-[h:HOP {run: $run, first: true}]->() RETURN count(h)",
        "Duplicate": "MATCH ()-[h:HOP {run: $run, first: false}]->() RETURN count(h)",
    }
    found = {name: loaded.ask(text, run=RUN)[0][0] for name, text in counted.items()}
    lists = {name: len(truth[name]) for name in ("nodes", "messages")}
    totals = {name: truth["raw_tracer_totals"][name] for name in ("Deliver", "Duplicate")}
    assert found == lists | totals


@pytest.mark.parametrize("which", [0, 4])
def test_the_meshes_are_those_recorded(loaded: Graph, truth: dict[str, Any], which: int) -> None:
    snapshot = truth["snapshots"][which]
    peers = {node["idx"]: node["peer_id"] for node in truth["nodes"]}
    expected = {
        (topic, peers[int(src)], peers[dst])
        for topic, mesh in snapshot["mesh"].items()
        for src, neighbours in mesh.items()
        for dst in neighbours
    }
    at = f"{(snapshot['t_ns'] - truth['start_ns']) / 1e9}s"
    asked = {"at": at, "layers": "mesh"}
    answer = ask(loaded.driver, loaded.database, "overlay-at", asked, run=RUN)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    found = {(topic, row["src"], row["dst"]) for row in rows for topic in row["topics"]}
    assert found == expected


def test_the_secret_is_not_told(vizpub: Vizpub, server: DockerContainer) -> None:
    """Not by a command that is refused, whatever it prints."""
    wrong = vizpub("load", "no such run")
    assert wrong.returncode == 2
    assert WORD not in wrong.stdout + wrong.stderr
