"""How far gossip spreads over a random network, by generating functions of its degrees.

The model of S. Ferretti, Publish-Subscribe Systems via Gossip: a Study based on Complex Networks,
2012. Whoever gets an event for the first time sends it to each neighbour that subscribes to it, and
to each other neighbour with probability `gamma`; a peer subscribes with probability `sigma`. Links
join random peers of the given degrees, and there are very many peers. (His sums (1) and (2) must
begin at j = i, not behind it, as his own (5) needs; for his subscribers see `mean_subscribers`.)

An event *percolates* if it reaches a share of all peers, however many there are; else it dies out
among few. His model ends at the threshold; the rest follows M. Newman, Random graphs as models of
networks, 2005. `message_passing` beside it predicts the same on the links of one overlay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from scipy.integrate import quad
from scipy.special import gamma as factorial
from scipy.special import zeta

from vizpub.model.arrays import Floats

NO_LINK = "no peer has a link"

_ROUNDS = 1_000_000
_CLOSE = 1e-16
_DAMPED = 1e-8


@dataclass(frozen=True)
class Degrees:
    """A distribution of degrees: three moments, and the two generating functions.

    `own` is G0, of a peer's degree; `excess` is G1, of the further links of a peer that is found
    along a link. Both take numbers up to 1 and, except for `power_law`, arrays of complex numbers.
    """

    mean: float
    mean_square: float
    mean_cube: float
    own: Callable[[Any], Any]
    excess: Callable[[Any], Any]

    @property
    def threshold(self) -> float:
        """Γc: the probability of passing an event on from which it can percolate. Infinite where
        nobody found along a link has another one.
        """
        further = self.mean_square - self.mean
        return self.mean / further if further > 0 else math.inf


def empirical_degrees(counts: Sequence[int] | Floats) -> Degrees:
    """Degrees of a network: `counts[k]` peers have k links. Raises: ValueError without a link."""
    share = np.asarray(counts, np.float64)
    degree = np.arange(share.size)
    if not share[1:].any():
        raise ValueError(NO_LINK)
    share = share / share.sum()
    mean = float(degree @ share)
    excess = polyder(share) / mean
    return Degrees(
        mean,
        float(degree**2 @ share),
        float(degree.astype(np.float64) ** 3 @ share),
        lambda x: polyval(x, share),
        lambda x: polyval(x, excess),
    )


def poisson_degrees(mean: float) -> Degrees:
    """Degrees of links drawn independently of one another."""

    def generate(x: Any) -> Any:
        return np.exp(mean * (x - 1))

    cube = mean + 3 * mean**2 + mean**3
    return Degrees(mean, mean + mean**2, cube, generate, generate)


def power_law_degrees(exponent: float) -> Degrees:
    """Degrees k ≥ 1 in proportion to k^-exponent, without a cut-off.

    A network of N peers has none above N: `counted` takes one with a cut-off, and the difference is
    large (Γc of exponent 3.3 is .573, but .689 with a cut-off at 1,000). Raises: ValueError for an
    exponent up to 3, where the variance is infinite and every event can percolate.
    """
    if exponent <= 3:
        raise ValueError("the exponent must be above 3: the degrees have no variance below")
    norm, links = zeta(exponent), zeta(exponent - 1)
    return Degrees(
        links / norm,
        zeta(exponent - 2) / norm,
        zeta(exponent - 3) / norm if exponent > 4 else math.inf,
        lambda x: x * _power_sum(exponent, x) / norm,
        lambda x: _power_sum(exponent - 1, x) / links,
    )


def _power_sum(order: float, x: float) -> float:
    """The sum of x^(k - 1) / k^order over k ≥ 1, for 0 ≤ x ≤ 1, as the integral of Bose and
    Einstein; in t = s², because of the root at 0.
    """

    def part(s: float) -> float:
        fall = math.exp(-(s**2))
        return 2 * s ** (2 * order - 1) * fall / (1 - x * fall) if s else 0.0

    value, _ = quad(part, 0, 8, epsabs=1e-14, epsrel=1e-13, limit=500)
    return float(value / factorial(order))


_Share = TypeVar("_Share", float, Floats)


def passing_probability(sigma: _Share, gamma: float) -> _Share:
    """Γ: the probability that a peer which has an event passes it to a neighbour."""
    return sigma + (1 - sigma) * gamma


def critical_sigma(degrees: Degrees, gamma: float) -> float:
    """The share of subscribers from which events can percolate; 0 where gamma alone suffices, above
    1 or infinite where nothing does.
    """
    if gamma >= 1:
        return 0.0 if degrees.threshold <= 1 else math.inf
    return max(0.0, (degrees.threshold - gamma) / (1 - gamma))


def mean_receivers(degrees: Degrees, sigma: float, gamma: float) -> float:
    """Peers that get an event, its publisher with them, below the threshold; infinite from there on
    (equation 16).
    """
    share = passing_probability(sigma, gamma)
    if share >= degrees.threshold:
        return math.inf
    return 1 + share * degrees.mean / (1 - share / degrees.threshold)


def mean_subscribers(degrees: Degrees, sigma: float, gamma: float) -> float:
    """Subscribers that get an event, its publisher with them if it is one; as `mean_receivers`.

    Who gets an event from a neighbour subscribes with probability sigma / Γ, as subscribers are
    preferred. The paper's sigma · receivers takes them for any peers, which holds for gamma = 1.
    """
    receivers = mean_receivers(degrees, sigma, gamma)
    if math.isinf(receivers):
        return math.inf
    share = passing_probability(sigma, gamma)
    return sigma + (sigma / share * (receivers - 1) if share else 0.0)


def deviation_of_receivers(degrees: Degrees, sigma: float, gamma: float) -> float:
    """The standard deviation of the number of peers that get an event, over events, below the
    threshold; infinite from there on, and where the third moment of the degrees is.

    It is that of the size of a branching process (T. Harris, The Theory of Branching Processes,
    1963), whose first generation has another distribution than the others.
    """
    share = passing_probability(sigma, gamma)
    rest = 1 - share / degrees.threshold
    if rest <= 0:
        return math.inf
    pairs = degrees.mean_square - degrees.mean
    triples = degrees.mean_cube - 3 * degrees.mean_square + 2 * degrees.mean
    further, first = 1 - rest, share * degrees.mean
    of_further = share**2 * triples / degrees.mean + further - further**2
    of_first = share**2 * pairs + first - first**2
    return math.sqrt(first * of_further / rest**3 + of_first / rest**2)


@dataclass(frozen=True)
class Spread:
    """Outcome of an event in a very large network.

    percolates: the probability that it does; receivers, subscribers: the shares of all peers, and
    of all subscribers, that then get it.
    """

    percolates: float
    receivers: float
    subscribers: float


def expected_spread(degrees: Degrees, sigma: float, gamma: float) -> Spread:
    """All 0 up to the threshold.

    Whether an event percolates depends on the links it goes out by, whether a peer gets it on those
    it comes in by: a subscriber gets it from any neighbour that has it, another with probability
    gamma from each.
    """
    share = passing_probability(sigma, gamma)
    if share <= degrees.threshold:
        return Spread(0.0, 0.0, 0.0)
    dies = _fixed_point(lambda u: degrees.excess(1 - share + share * u))

    def without(function: Callable[[float], float], missed: float) -> float:
        relayed = function(1 - gamma + gamma * missed)
        return sigma * function(missed) + (1 - sigma) * relayed

    missed = _fixed_point(lambda h: without(degrees.excess, h))
    return Spread(
        percolates=1 - degrees.own(1 - share + share * dies),
        receivers=1 - without(degrees.own, missed),
        subscribers=1 - degrees.own(missed),
    )


def _fixed_point(function: Callable[[float], float]) -> float:
    """The least fixed point in [0, 1], from below, where the function rises and is convex."""
    value = 0.0
    for _ in range(_ROUNDS):
        value, last = function(value), value
        if abs(value - last) <= _CLOSE:
            break
    return value


def cascade_sizes(degrees: Degrees, sigma: float, gamma: float, most: int) -> Floats:
    """The probability that an event reaches i peers, its publisher with them, and no more, for i
    from 0 to `most`: the coefficients of R(x) in equation 13.

    What is missing from 1 is larger, or percolates. R is found on a circle by iteration and turned
    into coefficients by a Fourier transform; a radius below 1 keeps sizes beyond `most` out. The
    absolute error is some 1e-8. O(most · log most) and a few hundred rounds.
    """
    size = 1 << (most + 1).bit_length()
    radius = _DAMPED ** (1 / size)
    share = passing_probability(sigma, gamma)
    x = radius * np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    along = x.copy()
    for _ in range(_ROUNDS):
        along, last = x * degrees.excess(1 - share + share * along), along
        if np.abs(along - last).max() <= 1e-15:
            break
    coefficients = np.fft.irfft(x * degrees.own(1 - share + share * along), size)
    return np.asarray(coefficients[: most + 1] / radius ** np.arange(most + 1), np.float64)
