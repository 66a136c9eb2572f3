"""Sets formula and simulation side by side, and judges them by what is known of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import sqrt

import numpy as np

from vizpub.analytics.comparison.estimates import Estimate, mean
from vizpub.analytics.prediction.percolation import (
    cascade_sizes,
    critical_sigma,
    deviation_of_receivers,
    expected_spread,
    mean_receivers,
    mean_subscribers,
    passing_probability,
)
from vizpub.experiments.claims import JudgedClaim, ValueClaim, judge_statement
from vizpub.experiments.formatting import number_text
from vizpub.experiments.gossip.measuring import SIZES, NetworkMeasures
from vizpub.experiments.gossip.points import (
    EVENTS,
    FIVE,
    HUBS,
    HUBS_PEERS,
    SIGMA,
    GossipPoint,
    degrees_of,
)
from vizpub.experiments.measured import RowEstimates
from vizpub.model.arrays import Floats

_ERRORS = 3
"""Standard errors within which a mean agrees with a formula."""
_COIN_ERRORS = 4
_TIGHT = 0.95
"""Share of many points that must agree. 3 standard errors of 20 networks leave out 0.7 %, but the
points of a topology have the same networks and publishers, so those left out come together."""


class GossipResults:
    """The measured networks, by topology, size and point."""

    def __init__(self, rows: Sequence[NetworkMeasures]) -> None:
        self.rows = rows
        self._by: dict[tuple[str, int, GossipPoint], list[NetworkMeasures]] = defaultdict(list)
        for row in rows:
            self._by[row.topology, row.peers, row.point].append(row)

    @cached_property
    def places(self) -> list[tuple[str, int, GossipPoint]]:
        """Topology, peers and point of all networks."""
        return [*self._by]

    def sizes(self, topology: str) -> list[int]:
        """The numbers of peers of a topology, ascending."""
        return sorted({peers for name, peers, _ in self._by if name == topology})

    def of(self, topology: str, peers: int, point: GossipPoint) -> list[NetworkMeasures]:
        """The networks at a point; none if it was not simulated."""
        return self._by.get((topology, peers, point), [])

    def points(self, topology: str, peers: int) -> list[GossipPoint]:
        """The points of a topology and size."""
        return sorted(point for name, size, point in self._by if (name, size) == (topology, peers))

    def mean(self, measure: str, topology: str, peers: int, point: GossipPoint) -> Estimate:
        """Mean over the networks at a point in which the measure is known."""
        rows = self.of(topology, peers, point)
        return RowEstimates({topology: rows}).estimate(measure, topology)

    def means(
        self, measure: str, topology: str, peers: int, points: Sequence[GossipPoint]
    ) -> Floats:
        """The mean at each point; NaN where it is unknown."""
        values = (self.mean(measure, topology, peers, point).value for point in points)
        return np.array([np.nan if value is None else value for value in values])


def judge_claims(results: GossipResults) -> list[JudgedClaim]:
    """All claims on what was simulated."""
    return [
        *_judge_exact(results),
        _judge_coins(results),
        *_judge_below(results),
        *_judge_published(results),
        *_judge_above(results),
        *_judge_cascades(results),
    ]


def _judge_exact(results: GossipResults) -> Iterator[JudgedClaim]:
    flooded = [row for row in results.rows if row.gamma == 1]
    largest_difference = max(abs(row.receivers - row.component) for row in flooded)
    yield judge_statement(
        "γ = 1: the receivers are the publisher's component",
        "Algorithm 1",
        "equal on every network",
        f"largest difference of the means {largest_difference:g} on {len(flooded)} networks",
        largest_difference == 0,
    )
    hubs = {(row.peers, row.ends, row.largest) for row in results.rows if row.topology == HUBS}
    yield judge_statement(
        "a = 6, b = 1: peers, ends of links, largest degree",
        "Aiello, Chung and Lu 2000",
        "2,482, 133,600, 403 exactly",
        "; ".join(", ".join(map(number_text, numbers)) for numbers in sorted(hubs)),
        hubs == {(HUBS_PEERS, 133_600, 403)},
    )


def _judge_coins(results: GossipResults) -> JudgedClaim:
    """Pooled over the networks of each point."""
    worst, points = 0.0, 0
    for topology, peers, point in results.places:
        rows = results.of(topology, peers, point)
        offered, passed = sum(row.offered for row in rows), sum(row.passed for row in rows)
        if offered and 0 < point.gamma < 1:
            error = sqrt(point.gamma * (1 - point.gamma) / offered)
            worst, points = max(worst, abs(passed / offered - point.gamma) / error), points + 1
    return judge_statement(
        "copies to non-subscribers / such neighbours = γ",
        "Algorithm 1",
        f"within {_COIN_ERRORS} binomial errors at every point",
        f"at most {worst:.2f} at {points} points",
        worst <= _COIN_ERRORS,
    )


def _judge_below(results: GossipResults) -> Iterator[JudgedClaim]:
    """Against the formulas with the cut-off of the graph, up to half of the critical sigma.

    The standard error is that over networks, or that of the model if it is larger: the size of
    cascades is so skewed that few networks may agree by chance.
    """
    for topology in sorted({name for name, peers, _ in results.places if name != HUBS}):
        degrees = degrees_of(topology, peers := results.sizes(topology)[-1])
        receivers, subscribers, of_paper = [], [], []
        for point in results.points(topology, peers):
            if point.sigma > critical_sigma(degrees, point.gamma) / 2:
                continue
            rows = results.of(topology, peers, point)
            deviation = deviation_of_receivers(degrees, *point) / sqrt(EVENTS)
            expected = mean_receivers(degrees, *point)
            receivers.append(_errors_apart([row.receivers for row in rows], expected, deviation))
            deviation *= point.sigma / passing_probability(*point)
            ours, expected_of_paper = [row.subscribers for row in rows], point.sigma * expected
            subscribers.append(_errors_apart(ours, mean_subscribers(degrees, *point), deviation))
            of_paper.append(_errors_apart(ours, expected_of_paper, deviation))
        claims = {
            "mean receivers are the formula's": ("equation 16", receivers),
            "mean subscribers are σ + σ/Γ · (receivers − 1)": ("the model", subscribers),
        }
        if topology == FIVE:
            claims["mean subscribers are σ · receivers"] = ("the paper", of_paper)
        for statement, (source, apart) in claims.items():
            within = sum(difference <= _ERRORS for difference in apart)
            yield judge_statement(
                f"{topology}, N = {peers:,}, σ ≤ σc / 2: {statement}",
                source,
                f"within {_ERRORS} standard errors at {_TIGHT:.0%} of the points",
                f"{within} of {len(apart)}; at most {max(apart, default=0):.2f}",
                bool(apart) and within >= _TIGHT * len(apart),
            )


def _errors_apart(ours: Sequence[float], expected: float, deviation: float) -> float:
    """The difference of a mean over networks from what is expected, in standard errors; a network
    has at least this standard deviation.
    """
    error = max(deviation, mean(ours).sd or 0.0) / sqrt(len(ours))
    return abs(expected - float(np.mean(ours))) / error


_FIVE = ((0.05, 3.6, 0.15), (0.4, 0.712, 0.06), (0.6, 0.902, 0.06))
"""γ; receivers, or their share of N; relative tolerance."""
_HUBS = {"mean receivers": ("receivers", 2_199.0),
         "mean receivers, if it percolates": ("receivers_then", 2_295.0)}  # fmt: skip
_OF_HUBS = 0.04


def _judge_published(results: GossipResults) -> Iterator[JudgedClaim]:
    for gamma, value, tolerance in _FIVE:
        for peers in results.sizes(FIVE):
            if rows := results.of(FIVE, peers, GossipPoint(SIGMA, gamma)):
                share = f" ({value:g} N)" if value < 1 else ""
                yield _near(
                    f"Poisson 5, σ = .1, γ = {gamma:g}, N = {peers:,}: mean receivers{share}",
                    "Figure 4",
                    (value * peers if value < 1 else value, tolerance),
                    rows,
                    "receivers",
                )
    rows = results.of(HUBS, HUBS_PEERS, GossipPoint(SIGMA, 0.6))
    for statement, (measure, value) in _HUBS.items():
        yield _near(
            f"a = 6, b = 1, σ = .1, γ = .6: {statement}",
            "Figure 5",
            (value, _OF_HUBS),
            rows,
            measure,
        )


def _judge_above(results: GossipResults) -> Iterator[JudgedClaim]:
    """The share of events that percolate, and what those reach, far above the threshold."""
    peers = results.sizes(FIVE)[-2]
    for gamma in (0.2, 0.4, 0.6, 0.8):
        point = GossipPoint(SIGMA, gamma)
        rows, expected = results.of(FIVE, peers, point), expected_spread(degrees_of(FIVE), *point)
        text = f"Poisson 5, σ = .1, γ = {gamma:g}, N = {peers:,}"
        shares, reached = (expected.percolates, 0.06), (expected.receivers * peers, 0.06)
        statement = f"{text}: share of events that percolate, P"
        yield _near(statement, "the formula", shares, rows, "percolated_share")
        statement = f"{text}: receivers then, R N"
        yield _near(statement, "the formula", reached, rows, "receivers_then")


def _near(
    statement: str,
    source: str,
    published: tuple[float, float],
    rows: Sequence[NetworkMeasures],
    measure: str,
) -> JudgedClaim:
    """Compare a mean over networks with a value and its relative tolerance."""
    value, relative = published
    claim = ValueClaim(
        what=statement, source=source, metric=measure, of="networks", value=value, relative=relative
    )
    return claim.judge(RowEstimates({"networks": rows}))


def _judge_cascades(results: GossipResults) -> Iterator[JudgedClaim]:
    """The largest difference of the two distribution functions (Kolmogorov)."""
    peers = results.sizes(FIVE)[-1]
    for point in histogram_points(results):
        ours, exact = cascade_histogram(results, point)
        most = 1.63 / sqrt(EVENTS * len(results.of(FIVE, peers, point)))
        difference = float(np.abs(np.cumsum(ours) - np.cumsum(exact)).max())
        yield judge_statement(
            f"Poisson 5, σ = {point.sigma:g}, γ = {point.gamma:g}, N = {peers:,}: cascades",
            "the Fourier transform of R(x)",
            f"distribution within 1.63/√n = {most:.3f}",
            f"{difference:.3f}",
            difference <= most,
        )


def histogram_points(results: GossipResults) -> list[GossipPoint]:
    """Points of the largest Poisson networks whose cascades are shown: four of them below the
    threshold.
    """
    points = results.points(FIVE, results.sizes(FIVE)[-1])
    return [point for point in points if point.gamma in (0.05, 0.1) and point.sigma > 0.03][::4]


def cascade_histogram(results: GossipResults, point: GossipPoint) -> tuple[Floats, Floats]:
    """The share of events that reach 0, 1, … peers: counted, and by the Fourier transform."""
    peers = results.sizes(FIVE)[-1]
    rows = results.of(FIVE, peers, point)
    counts = np.zeros(SIZES + 1)
    for row in rows:
        counts[: len(row.cascades)] += row.cascades
    return counts / (EVENTS * len(rows)), cascade_sizes(degrees_of(FIVE), *point, SIZES)
