"""`vizpub.ingest_files` as a program calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

pytestmark = pytest.mark.spark
PEERS = 800
"""More than the smallest sample of distances has targets."""
# In a process of its own, as a program's session ends with it.
PROGRAM = """
import json, sys, vizpub
edges, workspace = sys.argv[1:]
for name, limit in (("exact", {}), ("sampled", {"max_edge_visits": 1})):
    run = vizpub.ingest_files(edges, run=name, workspace=workspace, interval="1s", **limit)
    columns = ["links", "average_path_length", "average_path_length_error"]
    print(json.dumps(run.metrics("overlay", columns).to_pylist()[0]))
"""


def test_limit_of_edge_visits_samples_the_distances(tmp_path: Path) -> None:
    graph = nx.gnp_random_graph(PEERS, 6 / PEERS, seed=1, directed=True)
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{src} {dst} 0\n" for src, dst in graph.edges))
    command = [sys.executable, "-c", PROGRAM, str(edges), str(tmp_path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exact, sampled = map(json.loads, printed.splitlines())
    lengths = [
        hops for _, of in nx.all_pairs_shortest_path_length(graph) for hops in of.values() if hops
    ]
    assert exact["average_path_length"] == pytest.approx(sum(lengths) / len(lengths))
    assert exact["average_path_length_error"] == 0
    assert sampled["links"] == exact["links"] == graph.number_of_edges()
    assert sampled["average_path_length_error"] > 0
    assert sampled["average_path_length"] == pytest.approx(exact["average_path_length"], rel=0.05)
