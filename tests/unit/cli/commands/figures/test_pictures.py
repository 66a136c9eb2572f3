"""Numbers of peers that pictures of an overlay show."""

from __future__ import annotations

from random import Random

import networkx as nx
import pyarrow as pa
import pytest

from vizpub.analytics.figures import overlay_snapshot
from vizpub.cli.commands.figures.pictures import hops_from


@pytest.mark.parametrize("seed", range(5))
def test_hops_from_a_peer_equal_networkx(seed: int) -> None:
    rng = Random(seed)
    links = [(rng.randrange(20), rng.randrange(20)) for _ in range(30)]
    graph = nx.DiGraph(links)
    graph.add_node(0)
    table = pa.table({"src": [src for src, _ in links], "dst": [dst for _, dst in links]})
    assert hops_from(0, table) == nx.single_source_shortest_path_length(graph, 0)


def test_peers_have_the_colour_and_area_of_their_numbers() -> None:
    peers = pa.table(
        {
            "peer": pa.array([0, 1, 2], pa.int32()),
            "peer_name": ["a", "b", "c"],
            "role": ["peer"] * 3,
            "publishes": [False] * 3,
            "rendezvous": [False] * 3,
        }
    )
    for column, name, values in (("shade", "hops", [0, 4, None]), ("weight", "degree", [0, 1, 2])):
        field = pa.field(column, pa.float64(), metadata={"name": name})
        peers = peers.append_column(field, pa.array(values, pa.float64()))
    links = pa.table({"src": [0], "dst": [1], "inside": [False]})
    figure = overlay_snapshot(peers, links, 3)
    panel, bar = figure.axes
    (dots,) = (of for of in panel.collections if of.get_array() is not None)
    assert dots.get_array().tolist() == [0, 4]
    small, large = dots.get_sizes()
    assert small < large
    assert bar.get_ylabel() == "hops"
    labels = [text.get_text() for text in panel.get_legend().get_texts()]
    assert labels == ["degree 0", "degree 1", "degree 2", "unknown (1)"]
