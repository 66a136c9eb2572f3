"""`vizpub metrics RUN percolation`, on runs of the simulator and of real peers."""

from __future__ import annotations

import csv
import pickle
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import vizpub.ingest.measures.percolation
from tests.support.faults import stopping
from tests.support.ingested import copied
from tests.support.object_store import Machine, in_s3
from tests.support.words import naming
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.verify.verify import verify_run
from vizpub.ingest.measures.percolation import (
    PercolationOptions,
    _IntervalBlock,
    ensure_percolation,
)
from vizpub.model.errors import UseError
from vizpub.questions.run import Run
from vizpub.runstore.changes import state
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.stores.copying import copy_run
from vizpub.runstore.stores.place import RunPlace, store_of_run

Vizpub = Callable[..., CompletedProcess[str]]

pytestmark = pytest.mark.spark

GAMMA = 0.4
SIMULATED = (
    "lab simulate gossip --peers 400 --topology poisson:6 --workload bernoulli:0.2 "
    f"--gamma {GAMMA} --ttl 400 --intervals 6 --publications each:10 --seed 5 "
    "--ingest gossip --no-load"
)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, vizpub_here: Vizpub) -> StoredRun:
    """The run `gossip`, without the table."""
    place = tmp_path_factory.mktemp("percolation")
    (place / "publications.csv").write_text(
        "".join(f"{at + 1.2 + 0.02 * n:.2f}s,0,{7 * n}\n" for at in range(4) for n in range(20))
    )
    line = SIMULATED.replace("each:10", f"script:{place}/publications.csv")
    done = vizpub_here("--workspace", str(place), *shlex.split(line))
    assert done.returncode == 0, done.stderr
    return open_run(place, "gossip")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, ingested: StoredRun) -> Path:
    """With a copy of the run, whose table each test makes anew."""
    place = tmp_path_factory.mktemp("copy")
    copied(ingested, place)
    return place


def rows(vizpub: Vizpub, workspace: Path, words: str) -> list[dict[str, str]]:
    done = vizpub("--workspace", str(workspace), *shlex.split(words), "-f", "csv")
    assert done.returncode == 0, done.stderr
    return [*csv.DictReader(done.stdout.splitlines())]


@pytest.mark.long
@pytest.mark.neo4j
def test_copy_of_the_run_still_follows_when_the_table_is_made(
    ingested: StoredRun, tmp_path: Path, vizpub_here: Vizpub, neo4j_server: Connection
) -> None:
    copied(ingested, tmp_path)
    before = Run.open(tmp_path, "gossip")
    assert "metrics/percolation" not in (before.facts.known or ())
    database = neo4j_server.database
    with connect(neo4j_server) as driver:
        try:
            load_run(driver, database, before.facts, before.stored)
            rows(vizpub_here, tmp_path, "metrics gossip percolation --gamma 0.3")
            after = Run.open(tmp_path, "gossip")
            assert "metrics/percolation" in (after.facts.known or ())
            assert verify_run(driver, database, after.facts, after.stored) == []
        finally:
            remove_run(driver, database, "gossip")


def test_prediction_agrees_with_what_was_measured(workspace: Path, vizpub_here: Vizpub) -> None:
    found = rows(vizpub_here, workspace, "metrics gossip percolation --from 1 --to 4")
    offered, passed = (
        sum(int(row[f"copies_{what}"]) for row in found) for what in ("offered", "passed")
    )
    assert offered > 20_000
    assert passed / offered == pytest.approx(GAMMA, abs=4 * (GAMMA * (1 - GAMMA) / offered) ** 0.5)
    assert float(found[0]["gamma"]) == pytest.approx(passed / offered)
    assert [int(row["gossip_events"]) for row in found] == [20] * 4
    for what in ("receivers", "subscribers"):
        told, ours = (
            sum(float(row[f"{word}_{what}"]) for row in found) for word in ("predicted", "measured")
        )
        assert told == pytest.approx(ours, rel=0.12)


def test_table_is_stored_and_the_run_stays_the_same(workspace: Path, vizpub_here: Vizpub) -> None:
    before = open_run(workspace, "gossip").facts.tables
    rows(vizpub_here, workspace, "metrics gossip percolation --gamma 0.3")
    stored = open_run(workspace, "gossip")
    assert stored.facts.tables == before
    assert stored.rows("metrics/percolation") == 6
    assert {row["gamma"] for row in stored.read("metrics/percolation").to_pylist()} == {0.3}
    assert "gamma 0.3" in stored.manifest.engines["metrics/percolation"]
    done = vizpub_here("--workspace", str(workspace), "runs", "check", "gossip")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("committed", [False, True])
def test_prediction_that_is_killed_leaves_the_run_complete(
    workspace: Path, vizpub_here: Vizpub, committed: bool
) -> None:
    """At the commit, just before and after it."""
    asked = PercolationOptions(gamma=0.25 + committed / 8)
    before = open_run(workspace, "gossip").facts.tables
    with stopping("finish", committed=committed):
        ensure_percolation(workspace, Run.open(workspace, "gossip"), asked)
    run = open_run(workspace, "gossip")
    assert (state(run), run.facts.tables) == ("complete", before)
    done = vizpub_here("--workspace", str(workspace), "runs", "check", "gossip")
    assert done.returncode == 0, done.stderr
    rows(vizpub_here, workspace, f"metrics gossip percolation --gamma {asked.gamma}")
    stored = open_run(workspace, "gossip").read("metrics/percolation")
    assert {*stored["gamma"].to_pylist()} == {asked.gamma}


def test_blocks_in_tasks_make_the_same_rows(
    workspace: Path, vizpub_here: Vizpub, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = rows(vizpub_here, workspace, "metrics gossip percolation")
    rows(vizpub_here, workspace, "metrics gossip percolation --gamma 0.1")
    monkeypatch.setattr(vizpub.ingest.measures.percolation, "_SMALL", 0)
    assert rows(vizpub_here, workspace, "metrics gossip percolation") == here


@in_s3
def test_block_is_measured_on_a_machine_that_shares_only_the_store(
    ingested: StoredRun, machine: Machine
) -> None:
    run = copy_run(ingested, machine("here"))
    places = (
        RunPlace(ingested.directory, None),
        RunPlace(run.directory, store_of_run(run.directory)),
    )
    blocks = [_IntervalBlock(place, None, 1, 2, GAMMA, 1.0) for place in places]
    machine("elsewhere")
    shutil.rmtree(run.directory)
    here, elsewhere = (pickle.loads(pickle.dumps(block)).rows() for block in blocks)
    assert elsewhere == here


def test_columns_serve_comparisons_and_figures(workspace: Path, vizpub_here: Vizpub) -> None:
    found = rows(vizpub_here, workspace, "metrics gossip percolation --from 1 --to 4")
    line = "compare gossip --metrics predicted_receivers,measured_receivers --from 1 --to 4"
    compared = {row["metric"]: float(row["value"]) for row in rows(vizpub_here, workspace, line)}
    for name, value in compared.items():
        assert value == pytest.approx(sum(float(row[name]) for row in found) / 4)
    place = workspace / "plot.svg"
    line = f"plot gossip predicted_receivers measured_receivers -o {place}"
    done = vizpub_here("--workspace", str(workspace), *shlex.split(line))
    assert done.returncode == 0, done.stderr
    assert place.with_suffix(".csv").read_text().startswith("interval,predicted_receivers")


def test_real_trace_has_a_prediction(
    gossipsub: StoredRun, tmp_path: Path, vizpub_here: Vizpub
) -> None:
    """In gossipsub, only subscribers get a message: gamma is 0, and its mesh is what matters."""
    copied(gossipsub, tmp_path)
    found = rows(vizpub_here, tmp_path, "metrics gossipsub percolation --layers mesh")
    found = [row for row in found if row["gossip_events"] != "0"]
    assert {float(row["gamma"]) for row in found} == {0}
    assert sum(int(row["copies_offered"]) for row in found) > 1_000
    told, ours = (
        [float(row[f"{word}_receivers"]) for row in found] for word in ("predicted", "measured")
    )
    close = sum(abs(a - b) <= 1 for a, b in zip(told, ours, strict=True))
    assert close > 0.8 * len(found)  # not: messages that were refused, peers that just came


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("metrics gossip percolation --gamma 1.5", "from 0 to 1"),
        ("metrics gossip percolation --layers mush", "no layer 'mush'"),
        ("metrics gossip overlay --gamma 0.5", "is for: vizpub metrics RUN percolation"),
    ],
)
def test_senseless_questions_are_refused(
    workspace: Path, vizpub_here: Vizpub, words: str, told: str
) -> None:
    done = vizpub_here("--workspace", str(workspace), *shlex.split(words))
    assert done.returncode == 2
    assert told in done.stderr


def test_table_that_was_not_asked_for_is_named(gossipsub: StoredRun) -> None:
    with pytest.raises(
        UseError,
        match=naming("metrics/percolation", f"vizpub metrics {gossipsub.name} percolation"),
    ):
        Run(gossipsub).metrics("percolation")
