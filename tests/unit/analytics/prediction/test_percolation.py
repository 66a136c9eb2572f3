"""The closed forms against mpmath, Ferretti's figures and what is known of cascades."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from vizpub.analytics.prediction.percolation import (
    NO_LINK,
    Degrees,
    cascade_sizes,
    critical_sigma,
    deviation_of_receivers,
    empirical_degrees,
    expected_spread,
    mean_receivers,
    mean_subscribers,
    passing_probability,
    poisson_degrees,
    power_law_degrees,
)

Generating = Callable[[Any], Any]

POISSON, SCALE_FREE = poisson_degrees(5), power_law_degrees(3.3)
HUBS = [0, *(math.floor(math.exp(6) / degree) for degree in range(1, 404))]
"""The paper's network of a = 6, b = 1, by degree."""


@pytest.mark.parametrize(
    ("degrees", "mean", "square", "threshold"),
    [
        (POISSON, 5, 30, 0.2),
        (SCALE_FREE, 1.243478, 3.413314, 0.573075),
        (empirical_degrees(HUBS), 53.83, 10_599, 0.0051),
    ],
)
def test_moments_and_threshold_are_those_of_the_paper(
    degrees: Degrees, mean: float, square: float, threshold: float
) -> None:
    assert degrees.mean == pytest.approx(mean, rel=1e-4)
    assert degrees.mean_square == pytest.approx(square, rel=1e-4)
    assert degrees.threshold == pytest.approx(threshold, abs=5e-5)


def test_cut_off_moves_the_threshold_as_known() -> None:
    found = [
        empirical_degrees([0, *np.arange(1, most + 1) ** -3.3]).threshold
        for most in (100, 1_000, 10_000)
    ]
    assert found == pytest.approx([0.859, 0.689, 0.626], abs=5e-4)


def test_network_of_the_paper_has_its_peers_and_stubs() -> None:
    assert (sum(HUBS), sum(k * count for k, count in enumerate(HUBS))) == (2_482, 133_600)


@pytest.mark.parametrize(
    ("degrees", "sigma", "gamma", "receivers"),
    [
        (POISSON, 0.1, 0, 2.0),
        (POISSON, 0.05, 0.05, 1.951),
        (POISSON, 0.08, 0.1, 7.143),
        (POISSON, 0.1, 0.1, 20.0),
        (POISSON, 0.05, 0.15, 26.67),
        (POISSON, 0.01, 0.18, 16.95),
        (SCALE_FREE, 0.1, 0, 1.151),
        (SCALE_FREE, 0.5, 0, 5.876),
        (SCALE_FREE, 0.2, 0.4, 7.982),
        (SCALE_FREE, 0.1, 0.5, 17.99),
    ],
)
def test_mean_receivers_are_those_of_equation_16(
    degrees: Degrees, sigma: float, gamma: float, receivers: float
) -> None:
    assert mean_receivers(degrees, sigma, gamma) == pytest.approx(receivers, rel=5e-4)


@pytest.mark.parametrize(
    ("degrees", "sigma", "gamma"),
    [(POISSON, 0.05, 0.05), (empirical_degrees([1, 5, 2, 3, 0, 1]), 0.2, 0.1)],
)
def test_deviation_of_receivers_is_that_of_the_sizes(
    degrees: Degrees, sigma: float, gamma: float
) -> None:
    sizes = np.arange(1_001)
    shares = cascade_sizes(degrees, sigma, gamma, 1_000)
    variance = shares @ sizes**2 - (shares @ sizes) ** 2
    assert deviation_of_receivers(degrees, sigma, gamma) == pytest.approx(variance**0.5, rel=5e-3)


def test_deviation_of_receivers_on_poisson_degrees_is_that_of_borel() -> None:
    mean = 5 * passing_probability(0.1, 0.05)
    found = deviation_of_receivers(POISSON, 0.1, 0.05)
    assert found == pytest.approx((mean / (1 - mean) ** 3) ** 0.5)


def test_third_moment_of_a_power_law_is_that_of_a_long_sum() -> None:
    share = np.concatenate([[0.0], np.arange(1, 1_000_001) ** -5.5])
    assert power_law_degrees(5.5).mean_cube == pytest.approx(
        empirical_degrees(share).mean_cube, rel=1e-6
    )


@pytest.mark.parametrize(("sigma", "gamma"), [(0.1, 0.0), (0.05, 0.1), (0.3, 0.0)])
def test_subscribers_and_deviation_are_those_of_simulated_branching(
    sigma: float, gamma: float
) -> None:
    """20,000 events among endlessly many peers of mean degree 2, generation by generation."""
    degrees, events, seed = poisson_degrees(2), 20_000, 5
    random = np.random.default_rng(seed)
    wants = random.random(events) < sigma
    event = np.arange(events)  # of each peer of the generation
    receivers, subscribers = np.ones(events), wants.astype(np.float64)
    while event.size:
        event = np.repeat(event, random.poisson(2, event.size))
        wants = random.random(event.size) < sigma
        gets = wants | (random.random(event.size) < gamma)
        event, wants = event[gets], wants[gets]
        receivers += np.bincount(event, minlength=events)
        subscribers += np.bincount(event[wants], minlength=events)
    error = subscribers.std() / math.sqrt(events)
    found = mean_subscribers(degrees, sigma, gamma)
    assert found == pytest.approx(subscribers.mean(), abs=3 * error), f"seed {seed}"
    assert mean_receivers(degrees, sigma, gamma) == pytest.approx(receivers.mean(), rel=0.03)
    assert deviation_of_receivers(degrees, sigma, gamma) == pytest.approx(receivers.std(), rel=0.1)


def test_subscribers_are_those_of_the_paper_where_all_neighbours_get_an_event() -> None:
    few = poisson_degrees(0.5)
    assert mean_subscribers(few, 0.2, 1) == pytest.approx(0.2 * mean_receivers(few, 0.2, 1))
    assert mean_subscribers(few, 0, 0) == 0
    assert math.isinf(mean_subscribers(POISSON, 0.2, 0.2))


def test_deviation_of_receivers_is_infinite_with_the_third_moment() -> None:
    assert math.isinf(deviation_of_receivers(SCALE_FREE, 0.1, 0.1))
    assert math.isinf(deviation_of_receivers(POISSON, 0.2, 0.2))


@pytest.mark.parametrize(
    ("degrees", "gamma", "sigma"),
    [
        (POISSON, 0, 0.2),
        (POISSON, 0.02, 0.18367),
        (POISSON, 0.15, 0.05882),
        (POISSON, 0.2, 0),
        (POISSON, 1, 0),
        (SCALE_FREE, 0.3, 0.3901),
        (SCALE_FREE, 0.55, 0.0513),
    ],
)
def test_critical_share_of_subscribers_is_as_known(
    degrees: Degrees, gamma: float, sigma: float
) -> None:
    assert critical_sigma(degrees, gamma) == pytest.approx(sigma, abs=5e-5)
    assert math.isinf(mean_receivers(degrees, sigma + 1e-3, gamma))


@pytest.mark.parametrize(
    ("gamma", "percolates", "receivers", "subscribers"),
    [
        (0.15, 0.282, 0.140, 0.504),
        (0.2, 0.511, 0.344, 0.821),
        (0.4, 0.862, 0.826, 0.984),
        (0.6, 0.953, 0.947, 0.991),
        (0.8, 0.982, 0.982, 0.993),
        (1.0, 0.993, 0.993, 0.993),
    ],
)
def test_spread_above_the_threshold_is_as_known(
    gamma: float, percolates: float, receivers: float, subscribers: float
) -> None:
    found = expected_spread(POISSON, 0.1, gamma)
    assert (found.percolates, found.receivers, found.subscribers) == pytest.approx(
        (percolates, receivers, subscribers), abs=6e-4
    )


def test_spread_is_0_below_the_threshold() -> None:
    found = expected_spread(SCALE_FREE, 0.1, 0.5)
    assert (found.percolates, found.receivers, found.subscribers) == (0, 0, 0)


_COUNTS = [2, 3, 4, 0, 5, 1]
_POWER = mp.mpf("3.3")


def _exact(which: str) -> tuple[list[mp.mpf], Generating, Generating]:
    """The first two moments, G0 and G1, by mpmath."""
    if which == "poisson":
        return [mp.mpf(5), mp.mpf(30)], *[lambda x: mp.exp(5 * (x - 1))] * 2
    if which == "scale-free":
        norm, links = mp.zeta(_POWER), mp.zeta(_POWER - 1)
        return (
            [links / norm, mp.zeta(_POWER - 2) / norm],
            lambda x: mp.polylog(_POWER, x) / norm,
            lambda x: mp.polylog(_POWER - 1, x) / x / links if x else 1 / links,
        )
    share = [mp.mpf(count) / sum(_COUNTS) for count in _COUNTS]
    mean = mp.fsum(k * p for k, p in enumerate(share))
    return (
        [mean, mp.fsum(k * k * p for k, p in enumerate(share))],
        lambda x: mp.fsum(p * x**k for k, p in enumerate(share)),
        lambda x: mp.fsum(k * p * x ** (k - 1) for k, p in enumerate(share) if k) / mean,
    )


def _exact_spread(own: Generating, excess: Generating, s: mp.mpf, g: mp.mpf) -> list[mp.mpf]:
    share = s + (1 - s) * g
    at = (mp.mpf(0), mp.mpf("0.3"))
    u = mp.findroot(lambda u: excess(1 - share + share * u) - u, at)
    h = mp.findroot(lambda h: s * excess(h) + (1 - s) * excess(1 - g + g * h) - h, at)
    reached = 1 - s * own(h) - (1 - s) * own(1 - g + g * h)
    return [1 - own(1 - share + share * u), reached, 1 - own(h)]


@pytest.mark.parametrize(
    ("which", "degrees", "sigma", "gamma"),
    [
        ("poisson", POISSON, ".3", ".6"),
        ("scale-free", SCALE_FREE, ".5", ".8"),
        ("counted", empirical_degrees(_COUNTS), ".4", ".5"),
    ],
)
def test_figures_equal_those_of_exact_arithmetic(
    which: str, degrees: Degrees, sigma: str, gamma: str
) -> None:
    with mp.workdps(40):
        (mean, square), own, excess = _exact(which)
        wanted = _exact_spread(own, excess, mp.mpf(sigma), mp.mpf(gamma))
        small = mp.mpf(".01") + mp.mpf(".99") * mp.mpf(".02")
        receivers = 1 + small * mean**2 / ((1 + small) * mean - small * square)
        wanted = [*wanted, mean, square, receivers]
    found = expected_spread(degrees, float(sigma), float(gamma))
    assert [
        *(found.percolates, found.receivers, found.subscribers),
        *(degrees.mean, degrees.mean_square, mean_receivers(degrees, 0.01, 0.02)),
    ] == pytest.approx([float(x) for x in wanted], rel=1e-9)


@pytest.mark.parametrize(("sigma", "gamma"), [(0.05, 0.1), (0.1, 0.4)])
def test_cascades_on_poisson_degrees_have_sizes_after_borel(sigma: float, gamma: float) -> None:
    mean = 5 * passing_probability(sigma, gamma)
    sizes = np.arange(1, 301)
    logs = [math.lgamma(size + 1) for size in sizes]
    wanted = np.exp(-mean * sizes + (sizes - 1) * np.log(mean * sizes) - logs)
    found = cascade_sizes(POISSON, sigma, gamma, 300)
    assert found[0] == pytest.approx(0, abs=1e-9)
    assert found[1:] == pytest.approx(wanted, abs=1e-8)


def test_sizes_of_cascades_sum_to_those_that_do_not_percolate() -> None:
    degrees = empirical_degrees([0, 3, 4, 0, 5, 1])
    below, above = (cascade_sizes(degrees, sigma, 0.1, 5_000) for sigma in (0.1, 0.4))
    assert below.sum() == pytest.approx(1, abs=1e-6)
    assert below @ np.arange(5_001) == pytest.approx(mean_receivers(degrees, 0.1, 0.1), rel=1e-4)
    assert 1 - above.sum() == pytest.approx(expected_spread(degrees, 0.4, 0.1).percolates, abs=1e-6)


def test_degrees_without_a_link_or_a_variance_are_refused() -> None:
    with pytest.raises(ValueError, match=NO_LINK):
        empirical_degrees([4])
    with pytest.raises(ValueError, match="above 3"):
        power_law_degrees(3)
