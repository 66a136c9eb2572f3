from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import networkx as nx
import pytest

from vizpub.experiments.groups import WHOLE, Share
from vizpub.experiments.union import undirected_path_length, union_graph
from vizpub.questions.run import Run


def graph_of(links: list[tuple[int, int]], peers: int) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(peers))
    graph.add_edges_from(links)
    return graph


@pytest.mark.parametrize(
    ("during", "links"),
    [
        (WHOLE, [(0, 1), (0, 3), (3, 2), (2, 1)]),
        ((0.0, 0.25), [(0, 1), (0, 3), (3, 2), (2, 1)]),
        ((0.75, 1.0), [(0, 1)]),
    ],
)
def test_union_graph_measures_equal_networkx(
    workspace: Path, during: Share, links: list[tuple[int, int]]
) -> None:
    """The run `monday` of conftest.py; `dave`, the peer 3, is gone after half of it."""
    peers = 3 if during[0] else 4
    graph = graph_of(links, peers)
    paths = dict(nx.all_pairs_shortest_path_length(graph))
    hops = [h for source in paths for target, h in paths[source].items() if source != target]
    assert asdict(union_graph(Run.open(workspace, "monday"), during)) == pytest.approx(
        {
            "nodes": peers,
            "links": len(links),
            "degree": len(links) / peers,
            "density": nx.density(graph),
            "clustering": nx.average_clustering(graph.to_undirected()),
            "diameter": max(hops),
            "average_path_length": sum(hops) / len(hops),
            "weak_components": nx.number_weakly_connected_components(graph),
            "strong_components": nx.number_strongly_connected_components(graph),
        }
    )


@pytest.mark.parametrize(
    ("during", "links"),
    [((0.0, 0.25), [(0, 1), (0, 3), (3, 2), (2, 1)]), (WHOLE, [(0, 1)]), ((0.0, 0.75), None)],
)
def test_undirected_path_length_at_the_end_of_a_window_equals_networkx(
    workspace: Path, during: Share, links: list[tuple[int, int]] | None
) -> None:
    """The third interval has the links 0 → 1 and 2 → 1, so three pairs are connected."""
    graph = graph_of(links or [(0, 1), (2, 1)], 4).to_undirected()
    paths = dict(nx.all_pairs_shortest_path_length(graph))
    hops = [h for source in paths for target, h in paths[source].items() if source != target]
    found = undirected_path_length(Run.open(workspace, "monday"), during)
    assert found == pytest.approx(sum(hops) / len(hops))
