"""The application image: the command line in a container, beside Neo4j, as Compose joins them."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.containers.engine import NEO4J, SECRET, VIZPUB, WORD, compose_command, look_for
from tests.integration.graph.conftest import Graph
from tests.support.words import tells
from vizpub.cli.commands.setup.doctor import USABLE
from vizpub.graphstore.ask.queries import ask
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect

pytestmark = pytest.mark.containers

COMPOSE = Path(__file__).parents[2] / "docker" / "compose.yaml"
RUN = "small"

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Project:
    """Neo4j, commands beside it, and the volumes that they share."""

    compose: tuple[str, ...]
    environment: dict[str, str]

    def run(self, *words: str, **environment: str) -> Done:
        """A word of Compose's."""
        told = os.environ | self.environment | environment
        return subprocess.run(
            [*self.compose, *words], env=told, capture_output=True, text=True, check=False
        )

    def __call__(self, *words: str) -> Done:
        """A command of vizpub's, in a container of its own."""
        return self.run("run", "--rm", "vizpub", *words)

    @property
    def graph(self) -> Connection:
        """Neo4j, as it is reached from here."""
        return Connection(
            f"bolt://127.0.0.1:{self.environment['NEO4J_BOLT_PORT']}", "neo4j", SECRET
        )


@pytest.fixture(scope="module")
def vizpub(auth_file: Path, libp2p_small: Path) -> Iterator[Project]:
    """A project of compose.yaml's, told where the input and the secret are."""
    look_for(VIZPUB)
    look_for(NEO4J)
    with socket.create_server(("127.0.0.1", 0)) as bolt, socket.create_server(("", 0)) as http:
        ports = [str(found.getsockname()[1]) for found in (bolt, http)]
    project = Project(
        (*compose_command(), "-f", str(COMPOSE), "-p", f"vizpub-test-{uuid4().hex[:8]}"),
        {
            "INPUT": str(libp2p_small),
            "NEO4J_AUTH_FILE": str(auth_file),
            "NEO4J_BOLT_PORT": ports[0],
            "NEO4J_HTTP_PORT": ports[1],
        },
    )
    try:
        yield project
    finally:
        gone = project.run("--profile", "cluster", "down", "--volumes")
    assert gone.returncode == 0, gone.stderr


@pytest.fixture(scope="module")
def loaded(vizpub: Project) -> Iterator[Graph]:
    """The recorded network ingested by one container, loaded by another, seen from here."""
    for words in (
        ("ingest", "/input/trace.pb.gz", "--run", RUN, "--no-load"),
        ("neo4j", "load", RUN),
    ):
        done = vizpub(*words)
        assert done.returncode == 0, done.stderr
    with connect(vizpub.graph) as driver:
        yield Graph(driver, "neo4j")


@pytest.fixture(scope="module")
def truth(libp2p_small: Path) -> dict[str, Any]:
    packed = (libp2p_small / "truth.json.gz").read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(packed))
    return found


def test_doctor_passes_in_the_application_image(vizpub: Project) -> None:
    done = vizpub("doctor")
    assert done.returncode == 0, done.stderr
    tells(done.stderr, USABLE)


def test_loaded_counts_equal_the_recorded_truth(loaded: Graph, truth: dict[str, Any]) -> None:
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
def test_mesh_links_at_a_snapshot_equal_the_recorded(
    loaded: Graph, truth: dict[str, Any], which: int
) -> None:
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
    answer = ask(loaded.driver, loaded.database, "overlay", asked, run=RUN)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    found = {(topic, row["src"], row["dst"]) for row in rows for topic in row["topics"]}
    assert found == expected


def test_password_is_absent_from_the_output_of_refused_load(vizpub: Project) -> None:
    """Not by a command that is refused, whatever it prints."""
    told = ["-e", "NEO4J_AUTH_FILE=", "-e", f"NEO4J_PASSWORD=not {WORD}"]
    wrong = vizpub.run("run", "--rm", *told, "vizpub", "--debug", "query", "runs")
    assert wrong.returncode == 3
    assert "password" in wrong.stderr
    assert WORD not in wrong.stdout + wrong.stderr


@pytest.mark.long
def test_run_by_the_cluster_of_compose_is_that_of_one_container(
    vizpub: Project, loaded: Graph
) -> None:
    assert loaded
    cluster = {"SPARK_MASTER": "spark://spark-master:7077", "SPARK_WORKER_CORES": "1"}
    workers = ("up", "-d", "--scale", "spark-worker=2", "spark-master", "spark-worker")
    up = vizpub.run("--profile", "cluster", *workers, **cluster)
    assert up.returncode == 0, up.stderr
    words = ("ingest", "/input/trace.pb.gz", "--run", "by-cluster", "--no-load")
    done = vizpub.run("run", "--rm", "vizpub", *words, **cluster)
    assert done.returncode == 0, done.stderr
    for name in ("overlay", "peers", "topics", "messages"):
        rows = [vizpub("metrics", run, name, "-f", "csv") for run in (RUN, "by-cluster")]
        assert [row.returncode for row in rows] == [0, 0], rows[1].stderr
        assert rows[0].stdout == rows[1].stdout != ""
