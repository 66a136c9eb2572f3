"""Sampled distances against the exact ones: unbiased, and as far off as they say."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from vizpub.analytics.kernels.adjacency import Rows
from vizpub.analytics.kernels.path_lengths import PathLengths, path_lengths, sampled_path_lengths

PEERS = 400
DRAWS = 600


def rows_of(graph: Any) -> Rows:
    rows = [sorted(graph.successors(v)) for v in range(graph.number_of_nodes())]
    ptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return ptr, np.array([w for row in rows for w in row], dtype=np.uint32)


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Two thirds of the peers in one random overlay, a ring of the others, links from it."""
    graph: Any = nx.gnp_random_graph(300, 0.009, seed=1, directed=True)
    nx.add_cycle(graph, range(300, PEERS))
    graph.add_edges_from((v, v - 300) for v in range(300, PEERS, 7))
    return rows_of(graph)


@pytest.fixture(scope="module")
def exact(rows: Rows) -> PathLengths:
    return path_lengths(rows, 2e10, np.random.default_rng(0))


def average_path_length(lengths: PathLengths) -> float:
    return float(lengths.distance_sum.sum() / lengths.reachable_peers.sum())


@pytest.fixture(scope="module")
def draws(rows: Rows) -> list[PathLengths]:
    rng = np.random.default_rng(2)
    samples = (rng.choice(PEERS, 192, replace=False).astype(np.uint32) for _ in range(DRAWS))
    return [sampled_path_lengths(rows, sample) for sample in samples]


def test_sample_of_all_peers_gives_the_exact_path_lengths(rows: Rows, exact: PathLengths) -> None:
    everybody = np.random.default_rng(3).permutation(PEERS).astype(np.uint32)
    for mine, theirs in zip(sampled_path_lengths(rows, everybody), exact, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert exact.average_path_length_error == 0


def test_sampled_reach_is_unbiased(exact: PathLengths, draws: list[PathLengths]) -> None:
    reach = np.array([draw.reachable_peers for draw in draws])
    off = abs(reach.mean(axis=0) - exact.reachable_peers)
    np.testing.assert_array_less(off, 4.5 * reach.std(axis=0) / DRAWS**0.5 + 0.1)


def test_sampled_mean_distances_are_unbiased_and_state_their_error(
    exact: PathLengths, draws: list[PathLengths]
) -> None:
    often = exact.reachable_peers > 40
    means = np.array([draw.distance_sum[often] / draw.reachable_peers[often] for draw in draws])
    errors = np.array([draw.mean_error[often] for draw in draws])
    truth = exact.distance_sum[often] / exact.reachable_peers[often]
    spread = means.std(axis=0)
    np.testing.assert_array_less(abs(means.mean(axis=0) - truth), 5 * spread / DRAWS**0.5 + 0.01)
    np.testing.assert_allclose((errors**2).mean(axis=0) ** 0.5, spread, rtol=0.15)
    covered = abs(means - truth) <= 1.96 * errors
    assert covered.mean() == pytest.approx(0.95, abs=0.02)


def test_sampled_path_length_is_unbiased_and_states_its_error(
    exact: PathLengths, draws: list[PathLengths]
) -> None:
    estimates = np.array([average_path_length(draw) for draw in draws])
    errors = np.array([draw.average_path_length_error for draw in draws])
    truth, spread = average_path_length(exact), estimates.std()
    assert estimates.mean() == pytest.approx(truth, abs=5 * spread / DRAWS**0.5 + 0.005 * truth)
    # Three random groups: the error is right on the whole, and Student's t with 2 degrees covers.
    assert (errors**2).mean() ** 0.5 == pytest.approx(spread, rel=0.15)
    assert np.mean(abs(estimates - truth) <= 4.303 * errors) == pytest.approx(0.95, abs=0.03)


def test_sampled_eccentricity_never_exceeds_the_exact_one(
    exact: PathLengths, draws: list[PathLengths]
) -> None:
    assert all((draw.eccentricity <= exact.eccentricity).all() for draw in draws)


def test_budget_bounds_the_number_of_sampled_targets() -> None:
    rows = rows_of(nx.gnp_random_graph(1_000, 0.005, seed=4, directed=True))
    work = 1_000 + rows[1].size
    exact = path_lengths(rows, 1_000 * work / 64, np.random.default_rng(5))
    assert np.nanmax(exact.mean_error) == 0

    first, second = (path_lengths(rows, 10 * work, np.random.default_rng(6)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    targets = np.random.default_rng(6).choice(1_000, 640, replace=False).astype(np.uint32)
    sampled = sampled_path_lengths(rows, targets)
    np.testing.assert_array_equal(first.reachable_peers, sampled.reachable_peers)
    least = path_lengths(rows, 0, np.random.default_rng(6))
    assert np.nanmean(least.mean_error) > np.nanmean(first.mean_error) > 0
    assert (
        abs(average_path_length(first) - average_path_length(exact))
        < 4 * first.average_path_length_error
    )


def test_error_is_unknown_where_too_few_targets_are_reached() -> None:
    ptr, idx = np.array([0, 1, 3, 3, 3]), np.array([1, 2, 3], np.uint32)
    lengths = sampled_path_lengths((ptr, idx), np.array([2, 1], np.uint32))
    assert lengths.reachable_peers.tolist() == [3, 3, 0, 0]
    assert lengths.distance_sum.tolist() == [4, 3, 0, 0]
    assert np.isnan(lengths.mean_error).tolist() == [False, True, True, True]


def test_peers_without_links_have_no_path_length() -> None:
    for n in (0, 1, 3):
        lengths = path_lengths((np.zeros(n + 1, np.int64), np.empty(0, np.uint32)), 2e10, Any)
        assert np.isnan(lengths.mean_error).all()
        assert np.isnan(lengths.average_path_length_error)


def test_sample_of_a_large_overlay_has_its_reach_and_error() -> None:
    """A star: numbers of pairs that 32 bits do not hold, and whose squares 64 bits do not hold."""
    n, k = 60_000, 55_000
    hub, leaves = np.zeros(n - 1, np.uint32), np.arange(1, n, dtype=np.uint32)
    ptr = np.concatenate([[0], np.arange(n - 1, 2 * n - 1)]).astype(np.int64)
    targets = np.random.default_rng(7).choice(n, k, replace=False).astype(np.uint32)
    lengths = sampled_path_lengths((ptr, np.concatenate([leaves, hub])), targets)
    assert (lengths.reachable_peers == n - 1).all()
    assert average_path_length(lengths) == pytest.approx(2 * (n - 1) / n, rel=1e-4)
    assert 0 <= lengths.average_path_length_error < 1e-4
