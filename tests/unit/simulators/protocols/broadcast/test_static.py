"""Broadcasts on static topologies."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from tests.support.overlays import LATENCY_US, Overlay
from tests.support.words import naming
from vizpub.model.errors import InputError, UseError
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.broadcast.static import BroadcastStatic, BroadcastStaticParameters
from vizpub.simulators.protocols.broadcast.topologies import AclGraph


def static(peers: int, topology: str, broadcast: str = "flood") -> Overlay:
    net = Simulation(peers, 1, lambda sender, to: LATENCY_US)
    overlay = Overlay(
        net, BroadcastStatic(net, BroadcastStaticParameters(broadcast, topology=topology))
    )
    overlay.join_all(1)
    return overlay


class TestTopologies:
    def test_poisson_graph_has_degrees_of_that_law(self) -> None:
        graph = static(4000, "poisson:5").graph("overlay").to_undirected()
        degrees = [degree for _, degree in graph.degree]
        assert sum(degrees) / 4000 == pytest.approx(5, rel=0.03)
        spread = sum(degree**2 for degree in degrees) / 4000
        assert spread == pytest.approx(30, rel=0.05)
        assert nx.number_of_selfloops(graph) == 0

    def test_scale_free_graph_has_the_moments_of_its_law(self) -> None:
        """⟨k⟩ = 1.2435 without a cut-off, which a few per cent of variation hides."""
        graph = static(8000, "scale-free:3.3").graph("overlay").to_undirected()
        degrees = [degree for _, degree in graph.degree]
        assert sum(degrees) / 8000 == pytest.approx(1.243, rel=0.03)
        assert sum(degree == 1 for degree in degrees) / 8000 == pytest.approx(0.8676, rel=0.02)

    def test_highest_and_lowest_degree_bound_a_scale_free_graph(self) -> None:
        graph = static(500, "scale-free:1,lowest=3,highest=6").graph("overlay").to_undirected()
        degrees = {degree for _, degree in graph.degree}
        assert max(degrees) == 6
        assert min(degrees) >= 1  # without double edges

    def test_power_law_without_chance_has_exactly_its_peers_and_stubs(self) -> None:
        graph = AclGraph(6, 1)
        degrees = graph.degrees(2482, np.random.default_rng(1))
        assert (degrees.size, degrees.sum(), degrees.max()) == (2482, 133_600, 403)
        assert [*map(int, graph.of_each_degree[1:4])] == [403, 201, 134]
        erased = static(2482, "acl:a=6,b=1").graph("overlay").to_undirected()
        assert erased.number_of_edges() * 2 / 2482 == pytest.approx(47.2, rel=0.01)

    def test_power_law_without_chance_refuses_another_number_of_peers(self) -> None:
        with pytest.raises(UseError, match=naming("2,482", "100", "--peers 2482")):
            static(100, "acl:a=6,b=1")

    def test_file_gives_the_edges_in_both_directions(self, tmp_path: Path) -> None:
        path = tmp_path / "edges.txt"
        path.write_text("0 1\n1 2\n2 1\n3 3\n", "utf-8")
        overlay = static(4, f"file:{path}")
        assert overlay.links("overlay") == {0: [1], 1: [0, 2], 2: [1], 3: []}

    def test_file_with_more_peers_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "edges.txt"
        path.write_text("0 7\n", "utf-8")
        with pytest.raises(InputError, match=naming(path, "peer 7")):
            static(4, f"file:{path}")

    def test_unknown_topology_is_refused(self) -> None:
        with pytest.raises(UseError, match="scale-free"):
            BroadcastStaticParameters(topology="scale")


class TestBroadcasts:
    def test_flood_reaches_the_publishers_component(self) -> None:
        overlay = static(300, "poisson:2")
        graph = overlay.graph("overlay").to_undirected()
        component = nx.node_connected_component(graph, 4)
        receptions = overlay.publish(4)
        assert {4, *(peer for peer, _, _ in receptions)} == component
        edges = graph.subgraph(component).number_of_edges()
        assert len(receptions) == 2 * edges - len(component) + 1

    def test_tree_forms_on_a_static_topology(self) -> None:
        overlay = static(200, "scale-free:2,lowest=3,highest=20", "plumtree")
        graph = overlay.graph("overlay").to_undirected()
        assert nx.is_connected(graph)
        for publisher in (0, 50, 100, 7, 8, 9):
            receptions = overlay.publish(publisher)
        assert len(receptions) == 199
        assert nx.is_tree(overlay.graph("eager").to_undirected())
