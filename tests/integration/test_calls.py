"""`vizpub.ingest_files` as a program calls it."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

import vizpub

pytestmark = pytest.mark.spark
PEERS = 800
"""More than the smallest sample of distances has targets."""


def test_limit_of_edge_visits_samples_the_distances(tmp_path: Path) -> None:
    graph = nx.gnp_random_graph(PEERS, 6 / PEERS, seed=1, directed=True)
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{src} {dst} 0\n" for src, dst in graph.edges))
    rows = [
        vizpub.ingest_files(edges, run=name, workspace=tmp_path, interval="1s", **limit)
        .metrics("overlay", ["links", "average_path_length", "average_path_length_error"])
        .to_pylist()[0]
        for name, limit in (("exact", {}), ("sampled", {"max_edge_visits": 1}))
    ]
    exact, sampled = rows
    lengths = [
        hops for _, of in nx.all_pairs_shortest_path_length(graph) for hops in of.values() if hops
    ]
    assert exact["average_path_length"] == pytest.approx(sum(lengths) / len(lengths))
    assert exact["average_path_length_error"] == 0
    assert sampled["links"] == exact["links"] == graph.number_of_edges()
    assert sampled["average_path_length_error"] > 0
    assert sampled["average_path_length"] == pytest.approx(exact["average_path_length"], rel=0.05)
