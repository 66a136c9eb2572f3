"""Users and samples of them, checked with networkx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import networkx as nx
import pytest

from tests.support.words import naming
from vizpub.model.errors import InputError, UseError
from vizpub.simulators.world.social import connected_users, neighbours, random_users, read_edges


def graph_of(drawn: nx.Graph) -> dict[int, list[int]]:
    return neighbours(list(drawn.edges()))


def written(folder: Path, text: str) -> str:
    (folder / "edges").write_text(text)
    return str(folder / "edges")


def test_edges_are_read_once_and_without_loops(tmp_path: Path) -> None:
    edges = read_edges(written(tmp_path, "# a b\n1 2\n2\t1\n1,2\n3 3\n7, 9\n"))
    assert edges == [(1, 2), (2, 1), (7, 9)]
    assert neighbours(edges) == {1: [2], 2: [1], 7: [9], 9: [7]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2\n1 b\n", "edges:2: '1 b'"),
        ("1 2 3\n", "edges:1: '1 2 3'"),
        ("1 -2\n", "edges:1: '1 -2'"),
        ("3 2\n0 1\n1 2\n", "edges:1: '3 2'"),
    ],
)
def test_invalid_edge_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_edges(written(tmp_path, text))


def test_count_line_of_gnutella_is_refused_as_an_edge(
    outside_data: Callable[[str], Path],
) -> None:
    with pytest.raises(InputError, match=naming("p2p-Gnutella08.txt.gz:1", "'6301 20777'")):
        read_edges(str(outside_data("p2p-Gnutella08.txt.gz")))


@pytest.mark.parametrize(
    ("name", "users", "edges"),
    [
        ("facebook_combined_relabelled.txt.gz", 4039, 88_234),
        ("twitter_follow_hersheycareers.edges.gz", 3726, 23_939),
        ("twitter_follow_verizoncareers.edges.gz", 9226, 59_576),
        ("twitter_follow_bofa_careers.edges.gz", 13_688, 68_328),
        ("goerliTopology.edgelist.gz", 1355, 19_146),
    ],
)
def test_real_networks_have_their_known_users_and_edges(
    outside_data: Callable[[str], Path], name: str, users: int, edges: int
) -> None:
    read = read_edges(str(outside_data(name)))
    assert (len(neighbours(read)), len(read)) == (users, edges)


def test_random_users_are_equally_likely() -> None:
    graph = graph_of(nx.star_graph(9))
    counts = Counter(u for seed in range(2000) for u in random_users(graph, 3, Random(seed)))
    assert all(abs(counts[user] - 600) < 100 for user in range(10)), counts
    assert sorted(random_users(graph, 10, Random(1))) == list(range(10))


@pytest.mark.parametrize("seed", range(6))
def test_connected_users_are_connected(seed: int) -> None:
    drawn = nx.gnm_random_graph(300, 320, seed=seed)
    graph = graph_of(drawn)
    largest = max(map(len, nx.connected_components(drawn)))
    for count in (1, 10, largest // 2, largest):
        users = connected_users(graph, count, Random(seed))
        assert len(set(users)) == count
        assert nx.is_connected(drawn.subgraph(users))
    with pytest.raises(UseError, match=naming(f"{largest} connected users")):
        connected_users(graph, largest + 1, Random(seed))


def test_walk_gets_to_the_end_of_a_long_path() -> None:
    """From where it flies back it would hardly get further than twenty users."""
    graph = graph_of(nx.path_graph(80))
    assert sorted(connected_users(graph, 80, Random(4))) == list(range(80))


def test_connected_sample_keeps_edges_that_a_random_one_loses(
    outside_data: Callable[[str], Path],
) -> None:
    edges = read_edges(str(outside_data("facebook_combined_relabelled.txt.gz")))
    graph, whole = neighbours(edges), nx.Graph(edges)
    connected = whole.subgraph(connected_users(graph, 1000, Random(1)))
    scattered = whole.subgraph(random_users(graph, 1000, Random(1)))
    assert nx.is_connected(connected)
    assert nx.number_connected_components(scattered) > 20
    assert nx.average_clustering(connected) == pytest.approx(0.6055, abs=0.05)
    # Of 43.7 friends, a quarter of the users keeps a quarter.
    assert 2 * scattered.number_of_edges() / 1000 == pytest.approx(43.7 / 4.04, rel=0.1)
    assert connected.number_of_edges() > 1.5 * scattered.number_of_edges()


def test_sample_larger_than_the_network_is_refused() -> None:
    with pytest.raises(UseError, match=naming("11 peers", "10 users")):
        random_users(graph_of(nx.path_graph(10)), 11, Random(1))
    with pytest.raises(UseError, match="0 connected users"):
        connected_users({}, 1, Random(1))
