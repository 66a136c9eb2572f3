"""What README and docs print below a command is what it prints today.

`python -m tests.support.printed` writes the pages anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.ingested import ROOT, copied
from tests.support.printed import (
    CONFIGURATION,
    OF_RUNS,
    PAGES,
    SIMULATED,
    Call,
    Shown,
    anew,
    called,
    configured,
    shown_in,
    simulated,
)
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.ingest.measures.percolation import PercolationOptions, ensure_percolation
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun, open_run

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

SHOWN = [(page, shown) for page in PAGES for shown in shown_in(page.read_text("utf-8"))]
RUNS = (OF_RUNS, *SIMULATED)
TIES = {"shortest-path", "k-shortest-paths"}
"""Queries that choose among paths of one length; what the server has else decides which."""
PEER = re.compile(r"\b12D3Koo\w+")


def run_of(shown: Shown) -> str:
    return next((word for word in shown.words if word in RUNS), OF_RUNS)


def params(*runs: str) -> list[object]:
    return [
        pytest.param(shown, id=f"{page.stem} {' '.join(shown.words[:3])}")
        for page, shown in SHOWN
        if page != CONFIGURATION and run_of(shown) in runs
    ]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, gossipsub: StoredRun) -> Path:
    folder = tmp_path_factory.mktemp("printed")
    copied(gossipsub, folder)
    return folder


@pytest.fixture(scope="module")
def load(workspace: Path, neo4j_server: Connection) -> Iterator[Callable[[str], Call]]:
    """Load a run of the workspace, and call vizpub there."""
    environment = {
        "VIZPUB_WORKSPACE": str(workspace),
        "NEO4J_URI": neo4j_server.uri,
        "NEO4J_USERNAME": neo4j_server.username,
        "NEO4J_PASSWORD": neo4j_server.password,
        "NEO4J_DATABASE": neo4j_server.database,
    }
    loaded, database = set[str](), neo4j_server.database
    for page in {page for page, _ in SHOWN}:
        page.read_text("utf-8")  # again, for the record: `SHOWN` is older than any test
    with connect(neo4j_server) as driver:

        def loading(run: str) -> Call:
            if run not in loaded:
                stored = open_run(workspace, run)
                load_run(driver, database, stored.facts, stored)
                loaded.add(run)
            return partial(called, **environment)

        yield loading
        for run in loaded:
            remove_run(driver, database, run)


@pytest.mark.parametrize("shown", params(OF_RUNS))
def test_answer_on_a_page_is_that_of_the_demo(load: Callable[[str], Call], shown: Shown) -> None:
    printed, text = shown.printed(load(OF_RUNS)), shown.text
    if TIES.intersection(shown.words):
        printed, text = (re.sub(PEER, "peer", told) for told in (printed, text))
    assert printed == text


@pytest.fixture(scope="module", params=SIMULATED)
def simulation(
    request: pytest.FixtureRequest, workspace: Path, vizpub_here: Callable[..., object]
) -> str:
    run = str(request.param)
    vizpub_here("--workspace", str(workspace), *simulated(run), "--no-load")
    return run


@pytest.mark.long
def test_answers_on_a_page_are_those_of_the_simulations(
    load: Callable[[str], Call], simulation: str
) -> None:
    call, mine = load(simulation), [shown for _, shown in SHOWN if run_of(shown) == simulation]
    assert {shown.line: shown.printed(call) for shown in mine} == {s.line: s.text for s in mine}


def test_settings_on_a_page_are_those_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = configured(tmp_path)
    monkeypatch.chdir(tmp_path)
    page = CONFIGURATION.read_text("utf-8")
    assert len(shown_in(page)) == 1
    assert anew(page, call) == page


def test_page_written_anew_has_what_is_printed() -> None:
    table = "```sh\nvizpub query a b\n```\n\n| x |\n| --- |\n| 1 |\n\nmore\n"
    console = "```console\n$ A=b vizpub c\none 1\n…\nthree 3\n```\n"
    lines = "one 2\ntwo\nthree 4\n"

    def call(*words: str, **environment: str) -> tuple[str, str]:
        assert environment == ({"A": "b"} if words == ("c",) else {})
        return ("| y |\n| --- |\n| 3 |\n| 4 |\n", "") if words[0] == "query" else (lines, "")

    assert anew(table + console, call) == (
        table.replace("| x |", "| y |").replace("| 1 |", "| 3 |")
        + console.replace("one 1", "one 2").replace("three 3", "three 4")
    )


def test_prediction_on_the_page_of_metrics_is_that_of_the_demo(workspace: Path) -> None:
    run = ensure_percolation(workspace, Run.open(workspace, OF_RUNS), PercolationOptions(("mesh",)))
    rows = run.stored.read("metrics/percolation").to_pylist()
    known = [row for row in rows if row["measured_receivers"] is not None]
    apart = [abs(row["predicted_receivers"] - row["measured_receivers"]) for row in known]
    near, equal = (sum(value <= most for value in apart) for most in (1, 1e-9))
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    told = re.search(r"In (\d+) of its (\d+) intervals with messages .*?\n?.*?in (\d+) they", page)
    assert told
    assert tuple(map(int, told.groups())) == (near, len(known), equal)
