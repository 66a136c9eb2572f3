"""Metrics of some layers, measured beside those of a run."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

from tests.support.ingested import workspace_of
from tests.support.words import unknown
from vizpub.analytics.comparison.layers import WITHOUT_LAYERS, RunOfLayers
from vizpub.cli.main import app
from vizpub.model.errors import UnknownName, UseError
from vizpub.questions.run import Run, Where
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.spark

WINDOW = Where(48, 57)


@pytest.fixture(scope="module")
def run(gossipsub: StoredRun) -> Run:
    return Run(gossipsub)


@pytest.mark.parametrize("table", ["overlay", "peers", "topics"])
def test_metrics_of_all_layers_equal_the_stored_ones(run: Run, table: str) -> None:
    beside = RunOfLayers.of(run, ["mesh", "streams"]).metrics(table, where=WINDOW)
    stored = run.metrics(table, where=WINDOW)
    assert beside.to_arrow().equals(stored.to_arrow())
    assert len(stored)


def test_metrics_of_one_layer_equal_networkx(run: Run) -> None:
    of_mesh = RunOfLayers.of(run, ["mesh"])
    overlay = of_mesh.metrics("overlay", where=WINDOW).to_pylist()
    peers = of_mesh.metrics("peers", ["degree", "clustering", "betweenness"], WINDOW).to_pylist()
    for row in overlay:
        at = run.overlay(row["interval"], ["mesh"]).to_networkx()
        graph = nx.Graph(at)
        assert (row["network_size"], row["links"]) == (len(at), nx.DiGraph(at).size())
        assert row["weak_components"] == nx.number_connected_components(graph)
        clustering = nx.clustering(graph)
        between = nx.betweenness_centrality(nx.DiGraph(at), normalized=False)
        here = [peer for peer in peers if peer["interval"] == row["interval"]]
        assert {peer["peer_name"]: peer["degree"] for peer in here if peer["peer_name"] in at} == (
            dict(graph.degree)
        )
        for peer in here:
            if peer["peer_name"] in at:
                assert peer["clustering"] == pytest.approx(clustering[peer["peer_name"]])
                assert peer["betweenness"] == pytest.approx(between[peer["peer_name"]])


def test_layers_that_change_nothing_are_refused(run: Run) -> None:
    with pytest.raises(UnknownName, match=unknown("layer", "mehs", "mesh")):
        RunOfLayers.of(run, ["mehs"])
    with pytest.raises(UseError, match=f"messages {WITHOUT_LAYERS}"):
        RunOfLayers.of(run, ["mesh"]).metrics("messages")


def test_plot_and_table_of_a_layer_have_its_metrics(run: Run, tmp_path: Path) -> None:
    def called(*words: str) -> str:
        place = ["--workspace", str(workspace_of(run.stored))]
        done = CliRunner().invoke(app, [*place, *words, "--layers", "mesh"])
        assert done.exit_code == 0, done.output
        return done.stdout

    between = ("--from", "48", "--to", "57")
    printed = called("metrics", "gossipsub", "--columns", "links", *between, "-f", "csv")
    called("plot", "gossipsub", "links", *between, "-o", str(tmp_path / "links.svg"))
    assert (tmp_path / "links.csv").read_text() == printed
    expected = RunOfLayers.of(run, ["mesh"]).metrics("overlay", ["links"], WINDOW)
    rows = [f"{row['interval']},{row['links']}" for row in expected.to_pylist()]
    assert printed.splitlines() == ["interval,links", *rows]
