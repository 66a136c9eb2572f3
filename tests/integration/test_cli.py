"""The command line from a trace to answers, with real Spark and Neo4j.

Most calls are made in the process of the tests. What a process alone can show, as what it imports
and what stands on its standard input, is shown by one.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import networkx as nx
import pytest
from typer.testing import CliRunner

from tests.support.imports import codes_and_imports
from tests.support.ingested import copied
from tests.support.words import tells, unknown
from vizpub.cli.commands.everyday.ingest import ALREADY
from vizpub.cli.main import app
from vizpub.graphstore.ask.free_text import NO_CYPHER
from vizpub.graphstore.ask.judge import ALLOWED
from vizpub.graphstore.ask.parameters import MISSING
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.sessions import LATE
from vizpub.model.errors import OutOfRange
from vizpub.questions.run import Run
from vizpub.questions.snapshots import snapshot
from vizpub.runstore.store import StoredRun

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

ROOT = Path(__file__).parents[2]
RUN = f"cli-{uuid4().hex[:8]}"
VIZPUB = "from vizpub.cli.main import app; app(prog_name='vizpub')"


@dataclass(frozen=True)
class Answer:
    """What a call gave."""

    code: int
    out: str
    err: str

    def json(self) -> list[dict[str, object]]:
        assert self.code == 0, self.err
        found: list[dict[str, object]] = json.loads(self.out)
        return found


@dataclass(frozen=True)
class Shell:
    """Calls of vizpub in a workspace, against the Neo4j of the tests."""

    workspace: Path
    connection: Connection

    @property
    def environment(self) -> dict[str, str]:
        return {
            "VIZPUB_WORKSPACE": str(self.workspace),
            "NEO4J_URI": self.connection.uri,
            "NEO4J_USERNAME": self.connection.username,
            "NEO4J_PASSWORD": self.connection.password,
            "NEO4J_DATABASE": self.connection.database,
        }

    def __call__(self, *words: str) -> Answer:
        done = CliRunner().invoke(app, words, env=self.environment)
        return Answer(done.exit_code, done.stdout, done.stderr)

    def process(self, *words: str, stdin: str | None = None) -> Answer:
        """The call in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-c", VIZPUB, *words], cwd=ROOT,
            env=os.environ | self.environment, input=stdin,
            capture_output=True, text=True, timeout=500, check=False,
        )  # fmt: skip
        return Answer(done.returncode, done.stdout, done.stderr)

    @property
    def run(self) -> Run:
        return Run.open(self.workspace, RUN)


@pytest.fixture(scope="module")
def vizpub(
    tmp_path_factory: pytest.TempPathFactory,
    neo4j_server: Connection,
    gossipsub: StoredRun,
    libp2p_small: Path,
) -> Iterator[Shell]:
    """The run is there already, from the same files elsewhere; it is loaded."""
    shell = Shell(tmp_path_factory.mktemp("workspace"), neo4j_server)
    copied(gossipsub, shell.workspace, RUN)
    made = shell("ingest", str(libp2p_small / "json"), "--run", RUN, "--strict")
    assert made.code == 0, made.err
    tells(made.err, f"run '{RUN}'", ALREADY, "30 peers", "3 topics", "64 messages")
    assert "30 files" in made.out
    yield shell
    removed = shell("runs", "remove", RUN, "--yes")
    assert removed.code == 0, removed.err
    assert RUN not in shell("query", "runs").out
    assert not (shell.workspace / "runs" / RUN).exists()


def overlay(shell: Shell, interval: int) -> nx.DiGraph:
    """The overlay of an interval, from the Parquet tables."""
    peers, links = snapshot(shell.run, shell.run.clock.sampling_tick(interval))
    graph = nx.DiGraph()
    graph.add_nodes_from(peers["peer_name"].to_pylist())
    graph.add_edges_from(
        zip(links["src_name"].to_pylist(), links["dst_name"].to_pylist(), strict=True)
    )
    return graph


@pytest.mark.long
def test_repeated_ingest_says_the_run_is_complete(vizpub: Shell, libp2p_small: Path) -> None:
    again = vizpub("ingest", str(libp2p_small / "json"), "--run", RUN)
    assert again.code == 0, again.err
    tells(again.err, f"run '{RUN}' {ALREADY}", "Neo4j")


def test_path_command_equals_networkx(vizpub: Shell) -> None:
    graph = overlay(vizpub, 50)
    ends = sorted(graph)[0], sorted(graph)[-1]
    (found,) = vizpub("path", RUN, *ends, "--at", "50", "--format", "json").json()
    assert found["hops"] == nx.shortest_path_length(graph, *ends)
    every = vizpub("path", RUN, *ends, "--at", "50", "--all", "--format", "json").json()
    assert sorted(row["peers"] for row in every) == sorted(nx.all_shortest_paths(graph, *ends))
    table = vizpub("path", RUN, *ends, "--at", "50").out.splitlines()
    assert [line.split()[-1] for line in table[2:]] == found["peers"]


def test_overlay_at_a_time_is_that_of_its_interval(vizpub: Shell) -> None:
    query = ("query", RUN, "overlay", "--format", "json", "-p")
    graph = overlay(vizpub, 50)
    rows = vizpub(*query, "at=50").json()
    assert vizpub("query", RUN, "overlay", "50", "--format", "json").json() == rows
    meshed = vizpub(*query, "at=50", "-p", "layers=mesh").json()
    assert vizpub(*query, "at=50", "--layers", "mesh").json() == meshed
    assert {(row["src"], row["dst"]) for row in rows if row["dst"]} == set(graph.edges)
    assert vizpub(*query, "at=50.999999s").json() == rows


def test_topic_command_equals_links_among_subscribers(vizpub: Shell) -> None:
    rows = vizpub("topic", RUN, "alerts", "--at", "50", "--format", "json").json()
    peers, links = snapshot(vizpub.run, vizpub.run.clock.sampling_tick(50), "alerts")
    inside = links.filter(links["inside"])
    assert {(row["src"], row["dst"]) for row in rows if row["dst"]} == set(
        zip(inside["src_name"].to_pylist(), inside["dst_name"].to_pylist(), strict=True)
    )
    assert {row["src"] for row in rows} <= set(peers["peer_name"].to_pylist())


def test_tree_command_shows_all_receptions(vizpub: Shell) -> None:
    message = vizpub.run.metrics("messages").to_pylist()[0]
    name = str(message["message_name"])
    rows = vizpub("message", RUN, name, "--format", "jsonl").out.splitlines()
    assert len(rows) == message["receptions"]
    drawn = vizpub("message", RUN, name).out.splitlines()
    assert len(drawn) == 2 + message["first_receptions"] + 1
    assert drawn[2].startswith(str(message["publisher_name"]))


def test_cypher_command_answers_text_files_and_standard_input(
    vizpub: Shell, tmp_path: Path
) -> None:
    text = "MATCH (p:Peer {run: $run}) RETURN p.name AS name ORDER BY name"
    rows = vizpub("cypher", text, "-p", f"run={RUN}", "--format", "json").json()
    assert [row["name"] for row in rows] == sorted(vizpub.run.peers)
    words = ("cypher", "-", "-p", f"run={RUN}", "--limit", "3", "--format", "csv")
    some = vizpub.process(*words, stdin=text)
    assert len(some.out.splitlines()) == 4
    tells(some.err, "--limit")
    (file := tmp_path / "names of peers").write_text(text, "utf-8")
    again = vizpub("cypher", str(file), "-p", f"run={RUN}", "--format", "json").json()
    assert again == rows


def test_time_of_a_query_is_its_option_or_its_value(vizpub: Shell) -> None:
    by_value = vizpub("query", RUN, "topics", "2", "--format", "json").json()
    assert vizpub("query", RUN, "topics", "--at", "2", "--format", "json").json() == by_value


ENDLESS = (
    "UNWIND range(1, 1000000) AS x UNWIND range(1, 1000000) AS y "
    "WITH x, y WHERE x * y < 0 RETURN count(*)"
)
"""10¹² rows that take no memory."""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("cypher", "CREATE (:Peer)"), ALLOWED),
        (("cypher", "MATCH"), NO_CYPHER),
        (("cypher", "RETURN $x"), "-p x=VALUE"),
        (("cypher", ENDLESS, "--timeout", "100ms"), LATE),
        (("path", RUN, "nobody", "no one"), unknown("peer", "nobody")),
        (("topic", RUN, "alrt", "--at", "50"), unknown("topic", "alrt", "alerts")),
        (("topic", RUN, "alerts", "--at", "1000"), str(OutOfRange("interval", "1000", ""))),
        (("message", RUN, "m"), unknown("message", "m")),
        (("query", "nosuch", "overlay", "-p", "at=1"), unknown("run", "nosuch")),
        (("query", RUN, "overlay"), f"at {MISSING}"),
        (("query", RUN, "overlay", "-p", "at=1", "-p", "when=2"), "parameter when"),
        (("query", RUN, "overlay", "-p", "at=1", "-p", "layers=msh"), unknown("layer", "msh")),
        (("query", RUN, "overlay", "1", "--layers", "msh"), unknown("layer", "msh", "mesh")),
        (("export", "gexf", RUN, "--topic", "alrt"), unknown("topic", "alrt", "alerts")),
        (("export", "gexf", RUN, "--attributes", "degre"), unknown("attribute", "degre", "degree")),
        (("export", "gexf", RUN, "-o", "no/such/x.gexf"), "no/such/x.gexf"),
    ],
)  # fmt: skip
def test_wrong_query_exits_with_code_2_and_the_reason(
    vizpub: Shell, words: tuple[str, ...], why: str
) -> None:
    answer = vizpub(*words)
    assert (answer.code, answer.out) == (2, ""), answer.err
    assert why in answer.err
    assert "Traceback" not in answer.err


def test_gexf_export_is_valid_with_chosen_attributes(vizpub: Shell, tmp_path: Path) -> None:
    file = tmp_path / "all.gexf"
    assert vizpub("export", "gexf", RUN, "-o", str(file), "--attributes", "degree").code == 0
    assert vizpub("export", "check", str(file)).code == 0
    text = file.read_text("utf-8")
    assert text.count("<node ") == 30
    assert 'title="degree"' in text
    assert 'title="betweenness"' not in text


def test_gexf_export_writes_into_a_pipe_and_leaves_it(vizpub: Shell, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.gexf")
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text, "utf-8")
        written = vizpub("export", "gexf", RUN, "--from", "50", "--to", "50", "-o", str(pipe))
        assert written.code == 0, written.err
    assert read.result().endswith("</gexf>\n")
    assert pipe.is_fifo()
    window = ("export", "gexf", RUN, "--from", "50", "--to", "50")
    assert vizpub(*window).out == vizpub(*window, "-o", "-").out == read.result()


def test_broken_gexf_file_fails_the_check(vizpub: Shell, tmp_path: Path) -> None:
    file = tmp_path / "part.gexf"
    vizpub("export", "gexf", RUN, "--from", "50", "--to", "52", "-o", str(file))
    file.write_text(file.read_text("utf-8").replace('version="1.3"', 'version="1.2"'), "utf-8")
    checked = vizpub("export", "check", str(file), "--format", "csv")
    assert checked.code == 1
    assert next(csv.DictReader(checked.out.splitlines()))["rule"] == "version"


def test_difference_is_found_by_verify_and_mended_by_rebuild(vizpub: Shell) -> None:
    assert vizpub("neo4j", "verify", RUN).code == 0
    with connect(vizpub.connection) as driver:
        driver.execute_query(
            "MATCH (:Peer {run: $run})-[r:LINK]->() WITH r LIMIT 1 DELETE r",
            run=RUN, database_=vizpub.connection.database,
        )  # fmt: skip
    found = vizpub("neo4j", "verify", RUN, "--format", "json")
    assert found.code == 1
    (difference,) = json.loads(found.out)
    assert difference["table"] == "links"
    assert difference["should be"] == difference["in Neo4j"] + 1
    assert f"vizpub neo4j rebuild {RUN}" in found.err
    assert vizpub("neo4j", "rebuild", RUN).code == 0
    assert vizpub("neo4j", "verify", RUN).code == 0


ASKING = (
    ("query", "runs"),
    ("query", RUN, "overlay", "-p", "at=50"),
    ("topic", RUN, "alerts", "--at", "50"),
    ("cypher", "RETURN 1"),
    ("neo4j", "verify", RUN),
    ("neo4j", "load", RUN),
    ("export", "gexf", RUN, "--from", "50", "--to", "50"),
)


def test_commands_that_query_import_no_heavy_package(vizpub: Shell) -> None:
    told = codes_and_imports(ASKING, vizpub.environment)
    assert dict(zip(ASKING, told, strict=True)) == dict.fromkeys(ASKING, (0, []))
