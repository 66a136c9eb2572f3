"""Appends with a copy in Neo4j: Python, Java or Neo4j is killed in each, and the same command again
goes on. In the end it is the run, and the copy, that nobody disturbed.

What is stopped in one process, at every commit and transaction, is in test_append.py and in
graph/test_growth_faults.py.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.integration.graph.conftest import Graph
from tests.integration.graph.everything import everything
from tests.integration.test_append import same_tables
from tests.integration.test_growth import interval
from tests.support.ingested import ingest
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.verify.verify import verify_run
from vizpub.runstore.integrity import damages
from vizpub.runstore.store import open_run

pytestmark = [
    pytest.mark.spark,
    pytest.mark.neo4j,
    pytest.mark.long,
    pytest.mark.timeout(7200),
]

ROOT = Path(__file__).parents[2]
RUN, WINDOW = "fed", 4
INGEST = ("read", "names", "periods", "messages", "metrics", "finish")
GROWTH = ("grow nodes", "grow links", "grow messages", "grow what ended", "grow facts")
STEPS = {"python": INGEST + GROWTH, "java": INGEST, "neo4j": ("finish", *GROWTH)}
"""In which a process may be killed that the step needs, or is about to need."""


def appending(workspace: Path, file: Path) -> list[str]:
    words = ["--workspace", str(workspace), "ingest", str(file), "--run", RUN, "--append"]
    return [sys.executable, "-m", "vizpub.cli", *words, "--message-window", str(WINDOW)]


def environment() -> dict[str, str]:
    """Without a Neo4j, so that the workspace's own is used."""
    others = {name: text for name, text in os.environ.items() if not name.startswith("NEO4J_")}
    return {**others, "PYTHONPATH": str(ROOT)}


def killed(workspace: Path, file: Path, victim: str, step: str, after: float) -> tuple[int, str]:
    """An append of which one process is killed in a step. Returns its exit code, and what it said
    to the end.
    """
    command, told, was_killed = appending(workspace, file), "", False
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        for line in child.stderr:
            told += line
            if line.startswith(step) and not was_killed:
                time.sleep(after)
                kill(psutil.Process(child.pid), workspace, victim)
                was_killed = True
    assert was_killed, told
    return child.returncode, told


def kill(command: psutil.Process, workspace: Path, victim: str) -> None:
    """Unless it has ended before."""
    if victim == "python":
        found = [command]
    elif victim == "java":
        started = command.children(recursive=True)
        found = [p for p in started if "SparkSubmit" in " ".join(p.cmdline())]
    else:
        found = [psutil.Process(LocalServer(workspace / "neo4j").status().pid)]
    for process in found:
        process.send_signal(signal.SIGKILL)
    if victim == "neo4j":
        psutil.wait_procs(found, 30)


@pytest.mark.parametrize(("seed", "kills"), [(18, 6), (19, 14)])
def test_run_whose_processes_are_killed_again_and_again_is_the_undisturbed_one(
    spark: SparkSession, tmp_path: Path, seed: int, kills: int
) -> None:
    print("seed", seed)
    rng, workspace, files = random.Random(seed), tmp_path / "ws", list[Path]()
    for number in range(kills + 1):
        files.append(tmp_path / f"{number}.ndjson")
        files[-1].write_text("".join(json.dumps(record) + "\n" for record in interval(number)))
    run = ingest(spark, workspace, RUN, files[0], append=True, message_window=WINDOW).run
    server = LocalServer(workspace / "neo4j")
    try:
        with connect(server.start()) as driver:
            load_run(driver, "neo4j", run.facts, run)
        for number, file in enumerate(files[1:], start=1):
            victim = ("python", "java", "neo4j")[number % 3]
            step, after = rng.choice(STEPS[victim]), rng.uniform(0, 0.3)
            code, told = killed(workspace, file, victim, step, after)
            run = open_run(workspace, RUN)
            print(number, victim, step, "exit", code, "generation", run.manifest.generation)
            assert run.manifest.generation in (number - 1, number), told
            assert [damage for damage in damages(run.directory, run.manifest) if damage] == []
            again = subprocess.run(
                appending(workspace, file), cwd=ROOT, env=environment(), capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            assert again.returncode == 0, (told, again.stderr)
            assert open_run(workspace, RUN).manifest.generation == number
        check_undisturbed(spark, server, workspace, files)
    finally:
        server.remove()


def check_undisturbed(
    spark: SparkSession, server: LocalServer, workspace: Path, files: list[Path]
) -> None:
    """The run is one ingest of all, and its copy one that was loaded from nothing."""
    run, whole = open_run(workspace, RUN), workspace.with_name("whole")
    same_tables(run, ingest(spark, whole, RUN, *files, message_window=WINDOW).run)
    with connect(server.start()) as driver:
        graph = Graph(driver, "neo4j")
        assert verify_run(driver, "neo4j", run.facts, run) == []
        grown = everything(graph)
        graph.remove(RUN)
        load_run(driver, "neo4j", run.facts, run)
        assert everything(graph) == grown
