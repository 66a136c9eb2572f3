"""Commands on a workspace in an object store: what they ask of it, and that no fault changes it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.integration.graph.conftest import Calls
from tests.support.explored import exploring
from tests.support.few import few
from tests.support.ingested import ingest, ingested
from tests.support.newcomers import called
from tests.support.object_store import Fault, Machine, Server, in_s3
from vizpub.graphstore.server.address import Connection
from vizpub.ingest.pipeline import settling_request
from vizpub.model.errors import RunLocked, ServiceError
from vizpub.runstore.integrity import damages
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.stores.copying import copy_run
from vizpub.runstore.stores.place import folder_of, store_of
from vizpub.runstore.writer import remove_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FAULTS: tuple[Fault, ...] = ("503", "slow-down", "cut", "lost", "half")
QUESTIONS = (
    "metrics RUN", "topic RUN", "topic RUN --at 2s", "sql RUN 'SELECT count(*) FROM links'",
    "runs show RUN", "runs check RUN", "export csv RUN -o OUT/csv", "export gexf RUN -o OUT/a.gexf",
    "plot RUN network_size -o OUT/a.svg",
)  # fmt: skip


@pytest.fixture
def moved(gossipsub: StoredRun, machine: Machine) -> StoredRun:
    """A run in the store, of which this machine has nothing."""
    copy_run(gossipsub, machine("there"), "lab")
    return open_run(machine("here"), "lab")


def test_questions_get_the_same_answers_from_a_store(
    gossipsub: StoredRun, moved: StoredRun, url: str, tmp_path: Path
) -> None:
    here = gossipsub.directory.parents[1]
    for number, question in enumerate(QUESTIONS):
        answers = []
        for place, workspace, run in (("a", str(here), gossipsub.name), ("b", url, "lab")):
            out = tmp_path / f"{number}{place}"
            out.mkdir()
            words = shlex.split(question.replace("RUN", run).replace("OUT", str(out)))
            done = called("--workspace", workspace, "--quiet", *words)
            assert done.returncode == 0, (question, done.stderr)
            printed = done.stdout.replace(str(out), "").replace(gossipsub.name, "lab")
            written = {p.name: p.stat().st_size for p in out.rglob("*") if p.suffix == ".csv"}
            answers.append((printed, written))
        assert answers[0] == answers[1], question


@pytest.mark.neo4j
@pytest.mark.long
def test_run_of_a_store_is_loaded_and_equal_to_its_copy(
    moved: StoredRun, url: str, neo4j_server: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in Calls(Path(), neo4j_server).environment.items():
        monkeypatch.setenv(name, value)
    commands = ("neo4j load lab", "neo4j verify lab --full", "runs remove lab --yes")
    for words in commands:
        done = called("--workspace", url, *words.split())
        assert done.returncode == 0, done.stderr
    assert called("--workspace", url, "neo4j", "verify", "lab").returncode != 0


def test_page_of_a_store_shows_what_that_of_a_folder_shows(
    gossipsub: StoredRun, moved: StoredRun, url: str
) -> None:
    answers = []
    for folder, run in ((gossipsub.directory.parents[1], gossipsub.name), (folder_of(url), "lab")):
        with exploring(folder) as explorer:
            assert run in {listed["run"] for listed in explorer.ask("/api/runs").json()["runs"]}
            overlay = explorer.ask(f"/api/runs/{run}/overlay").arrays()
            tables = explorer.ask(f"/api/runs/{run}/tables").json()
            answers.append(({name: [*values] for name, values in overlay.items()}, tables))
    assert answers[0] == answers[1]
    assert answers[0][0]


@in_s3
@pytest.mark.parametrize(
    ("question", "most"), [("metrics lab", 2), ("topic lab TOPIC --at 2s", 6), ("topic lab", 8)]
)
def test_question_makes_few_requests(
    gossipsub: StoredRun, moved: StoredRun, url: str, server: Server, question: str, most: int
) -> None:
    """One for run.json, and one for each file of a table that it reads."""
    question = question.replace("TOPIC", gossipsub.read("topics")["name"][0].as_py())
    with server.counting() as cold:
        assert called("--workspace", url, *shlex.split(question)).returncode == 0
    assert len(cold) <= most
    assert not [request for request in cold if "list-type" in request]
    with server.counting() as warm:
        assert called("--workspace", url, *shlex.split(question)).returncode == 0
    assert [request.rpartition("/")[2] for request in warm] == ["run.json"]


def write_reports(folder: Path, intervals: range) -> Path:
    """Reports of a ring of peers that turns."""
    path = folder / f"{intervals.start}.ndjson"
    rows = (
        {
            "format": "vizpub.report/1",
            "peer": f"p{p}",
            "interval": i,
            "neighbors": [f"p{(p + i) % 7}"],
        }
        for i in intervals
        for p in range(7)
    )
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("seed", few(range(10), [0]))
def test_commands_under_faults_leave_the_same_tables(
    spark: SparkSession,
    tmp_path: Path,
    machine: Machine,
    server: Server,
    seed: int,
) -> None:
    """Six faults each, at random requests of an ingest, an append, a settling and a removal."""
    random, left = Random(seed), [6]

    def sometimes(_: str) -> Fault | None:
        if left[0] and random.random() < 0.1:
            left[0] -= 1
            return random.choice(FAULTS)
        return None

    def insist(command: Callable[[], object]) -> None:
        for _ in range(5):
            with suppress(ServiceError, RunLocked):
                command()
                return
        command()

    first, second = (write_reports(tmp_path, days) for days in (range(3), range(3, 6)))
    whole = ingest(spark, tmp_path, "lab", first, second).run
    folder = machine("here")
    with server.failing(sometimes):
        insist(lambda: ingest(spark, folder, "lab", first))
        insist(lambda: ingest(spark, folder, "lab", second, append=True, settle=False))
        insist(lambda: ingested(spark, settling_request(open_run(folder, "lab"))))
        run = open_run(machine("elsewhere"), "lab")
        assert {name: run.rows(name) for name in run.manifest.tables} == {
            name: whole.rows(name) for name in whole.manifest.tables
        }
        for name in ("peers", "links", "metrics/overlay"):
            assert run.read(name).equals(whole.read(name))
        assert not any(damages(run.directory, run.manifest))
        insist(lambda: remove_run(machine("here"), "lab"))
    store = store_of(folder)
    assert store
    assert [*store.walk("runs")] == []
