"""What docs/python.md shows of Python does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest

from tests.support.ingested import copied, workspace_of
from tests.support.printed import python_anew
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import run_properties
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.model.tables import table
from vizpub.questions.frames import Frame
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

PAGE = (Path(__file__).parents[2] / "docs/python.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RUN = "gossipsub"


@pytest.fixture
def _in_neo4j(
    gossipsub: StoredRun, neo4j_server: Connection, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """The run in the Neo4j of the tests, which the environment names."""
    for name in ("uri", "username", "password", "database"):
        monkeypatch.setenv(f"NEO4J_{name.upper()}", getattr(neo4j_server, name))
    run = gossipsub
    with connect(neo4j_server) as driver:
        if run_properties(driver, neo4j_server.database, RUN):
            remove_run(driver, neo4j_server.database, RUN)
        load_run(driver, neo4j_server.database, run.facts, run)
        yield
        remove_run(driver, neo4j_server.database, RUN)


@pytest.mark.usefixtures("_in_neo4j")
def test_code_of_the_page_runs_with_right_answers(
    gossipsub: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("py2neo", reason="the extra py2neo is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vizpub-data").symlink_to(workspace_of(gossipsub), target_is_directory=True)
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert (tmp_path / "series.png").stat().st_size
    assert isinstance(names["frame"], Frame)
    run, at = names["run"], 49
    overlay = run.overlay(at).to_networkx()
    assert names["kept_apart"].number_of_edges() == len(run.overlay(at))
    ((hops, path),) = names["answer"].rows
    assert hops == nx.shortest_path_length(overlay, names["alice"], names["bob"])
    assert (path[0], path[-1]) == (names["alice"], names["bob"])
    mesh = run.overlay(at, ["mesh"])
    assert len(names["overlay"].nodes) == len(mesh.peers)
    assert len(names["overlay"].relationships) == len(mesh)
    degrees = dict(overlay.to_undirected().degree())
    assert names["hubs"]["degree"].tolist() == sorted(degrees.values(), reverse=True)[:5]
    assert isinstance(names["named"], pd.DataFrame)
    assert {*names["named"]["p.name"]} <= {*run.peers}


def test_sessions_of_the_page_print_what_it_has(
    gossipsub: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vizpub-data").mkdir()
    copied(gossipsub, tmp_path / "vizpub-data")
    assert python_anew(PAGE) == PAGE
    assert ">>> " in PAGE


def test_files_of_a_run_are_taken_by_pandas_as_they_are(gossipsub: StoredRun) -> None:
    """As README says; a table is a folder."""
    for name in ("peers", "presence", "links", "receptions", "metrics/overlay", "metrics/peers"):
        wanted = gossipsub.read(name).to_pandas()
        found = pd.read_parquet(gossipsub.directory / name)
        assert len(found) == gossipsub.manifest.tables[name].rows > 0
        by = [*table(name).key]
        assert not found.duplicated(by).any()
        pd.testing.assert_frame_equal(found.sort_values(by, ignore_index=True), wanted)


def a_message(run: Run) -> str:
    name: str = run.metrics("messages")["message_name"][0].as_py()
    return name


@pytest.mark.parametrize(
    ("row", "ask"),
    [
        ("overlay, topic", lambda run: run.overlay(49)),
        ("overlay, topic", lambda run: run.topic("news", 49)),
        ("their `peers`", lambda run: run.overlay(49).peers),
        ("their `peers`", lambda run: run.topic("news", 49).peers),
        ("tree", lambda run: run.tree(a_message(run))),
        ("its `peers`", lambda run: run.tree(a_message(run)).peers),
    ],
)  # fmt: skip
def test_columns_of_frames_equal_those_of_the_page(
    gossipsub: StoredRun, row: str, ask: Any
) -> None:
    (told,) = re.findall(rf"^\| {re.escape(row)} \| (.*) \|$", PAGE, re.M)
    assert re.findall(r"`(\w+)`", told) == ask(Run(gossipsub)).columns
