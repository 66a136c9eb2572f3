"""How far gossip spreads on the links of one overlay, by message passing along them.

After B. Karrer, M. Newman and L. Zdeborová, Percolation on sparse networks, 2014, for directed
links and two ways to pass an event on: always to a subscriber, with probability gamma to another
peer. Exact on trees; on other overlays as good as their short cycles are few.
`vizpub.analytics.prediction.percolation` has the same for random networks of which only the degrees
are known.

Each link i → j has a number that does not consider the opposite link j → i, so that nothing comes
back to where it was sent from. All numbers are found by iteration over all links, O(links) a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigs

from vizpub.analytics.prediction.percolation import passing_probability
from vizpub.model.arrays import Floats, Int64s

_ROUNDS = 20_000
_CLOSE = 1e-10
_TINY = 1e-300
"""Stands for 0 in logarithms."""


@dataclass(frozen=True)
class LinkGraph:
    """The links src[k] → dst[k] between n peers, each once, none from a peer to itself."""

    n: int
    src: Int64s
    dst: Int64s

    @cached_property
    def back(self) -> Int64s:
        """The position of the opposite link, -1 where there is none."""
        keys, reversed_keys = self.src * self.n + self.dst, self.dst * self.n + self.src
        order = np.argsort(keys)
        place = np.searchsorted(keys, reversed_keys, sorter=order).clip(max=keys.size - 1)
        candidates = order[place] if keys.size else place
        return np.where(keys[candidates] == reversed_keys, candidates, -1)

    def reversed_links(self) -> LinkGraph:
        """Return the graph with every link reversed."""
        return LinkGraph(self.n, self.dst, self.src)

    def ahead(self, values: Floats) -> Floats:
        """For each link, the sum of a number over the links that go on from its end, without the
        opposite one.
        """
        sent_back = np.where(self.back >= 0, values[self.back], 0.0)
        return self.at_peers(values)[self.dst] - sent_back

    def at_peers(self, values: Floats) -> Floats:
        """For each peer, the sum of a number over the links that leave it."""
        return np.bincount(self.src, values, self.n).astype(np.float64, copy=False)


def threshold(overlay: LinkGraph) -> float:
    """The probability of passing an event on from which it can percolate.

    1 / the greatest eigenvalue of the matrix of walks that do not turn back; infinite where every
    such walk ends.
    """
    lasting = _prune_dead_ends(overlay)
    size = lasting.src.size
    if size < 3:
        return 1.0 if size else math.inf
    walks = LinearOperator((size, size), matvec=lasting.ahead, dtype=np.float64)
    (value,) = eigs(walks, k=1, which="LR", v0=np.ones(size), return_eigenvectors=False, tol=1e-10)
    return float(1 / value.real)


def _prune_dead_ends(overlay: LinkGraph) -> LinkGraph:
    """The overlay without links from which every walk that does not turn back ends."""
    while True:
        continues = overlay.ahead(np.ones(overlay.src.size)) > 0.5
        if continues.all():
            return overlay
        overlay = LinkGraph(overlay.n, overlay.src[continues], overlay.dst[continues])


@dataclass(frozen=True)
class Prediction:
    """Outcome of events on an overlay; one number per peer, by its position.

    percolates: the probability that an event published by the peer percolates; receivers: the mean
    number of peers that get it, the publisher with them; reached: the probability that the peer
    gets an event that percolates; receives: the probability that it gets an event of a publisher
    drawn from all peers, itself included.
    """

    percolates: Floats
    receivers: Floats
    reached: Floats
    receives: Floats


def predict_spread(overlay: LinkGraph, sigma: float | Floats, gamma: float) -> Prediction:
    """Predict how events spread. `sigma` is the probability that a peer subscribes: one for all, or
    one for each peer (1 and 0 where it is known).
    """
    share = np.broadcast_to(np.asarray(sigma, np.float64), overlay.n)
    ends, if_few = _predict_publishers(overlay, passing_probability(share, gamma))
    missed, if_few_reach = _predict_receivers(overlay.reversed_links(), share, gamma)
    percolates, reached = 1 - ends, 1 - missed
    n = max(overlay.n, 1)
    return Prediction(
        percolates=percolates,
        receivers=percolates * reached.sum() + if_few,
        reached=reached,
        receives=(percolates.sum() * reached + if_few_reach) / n,
    )


def _predict_publishers(overlay: LinkGraph, share: Floats) -> tuple[Floats, Floats]:
    """For each publisher, the probability that an event does not percolate, and the mean number of
    peers that get it, counted where it does not.

    `share`: the probability that a peer is sent an event by a neighbour that has it. A link's
    number is the probability that nothing percolates by it: h = 1 - share + share · z · product of
    h ahead, at z = 1; the derivative by z counts the peers.
    """
    at_end = share[overlay.dst]

    def dies(h: Floats) -> Floats:
        return 1 - at_end + at_end * np.exp(overlay.ahead(_log(h)))

    h = _find_fixed_point(dies, np.zeros(overlay.src.size))
    logs = _log(h)
    product = at_end * np.exp(overlay.ahead(logs))

    def few(counted: Floats) -> Floats:
        return product * (1 + overlay.ahead(counted / np.exp(logs)))

    counted = _find_fixed_point(few, np.zeros_like(h)) / np.exp(logs)
    ends = np.exp(overlay.at_peers(logs))
    return ends, ends * (1 + overlay.at_peers(counted))


def _predict_receivers(overlay: LinkGraph, sigma: Floats, gamma: float) -> tuple[Floats, Floats]:
    """For each receiver, the probability that it misses an event that percolates, and the mean
    number of publishers from which it gets one, counted where those are few.

    The links run from receivers to senders. A link's number is the probability that the sender has
    no event to pass on: h = z · (sigma · product of h ahead + (1 - sigma) · product of
    (1 - gamma + gamma · h) ahead), at z = 1; the derivative by z counts the publishers.
    """
    sums = Callable[[Floats], Floats]

    def missing(h: Floats, share: Floats, over: sums) -> Floats:
        from_all, from_some = over(_log(h)), over(_log(1 - gamma + gamma * h))
        return share * np.exp(from_all) + (1 - share) * np.exp(from_some)

    def few(counted: Floats, h: Floats, share: Floats, over: sums) -> Floats:
        always, some = _log(h), _log(1 - gamma + gamma * h)
        subscribes = np.exp(over(always)) * (1 + over(counted / np.exp(always)))
        relays = np.exp(over(some)) * (1 + over(gamma * counted / np.exp(some)))
        return share * subscribes + (1 - share) * relays

    at_end = sigma[overlay.dst]
    h = _find_fixed_point(lambda h: missing(h, at_end, overlay.ahead), np.zeros(overlay.src.size))
    counted = _find_fixed_point(
        lambda counts: few(counts, h, at_end, overlay.ahead), np.zeros_like(h)
    )
    return missing(h, sigma, overlay.at_peers), few(counted, h, sigma, overlay.at_peers)


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, _TINY))


def _find_fixed_point(step: Callable[[Floats], Floats], values: Floats) -> Floats:
    """The fixed point that repeated steps reach, to 1e-10 of the greatest number."""
    for _ in range(_ROUNDS):
        previous, values = values, step(values)
        if np.abs(values - previous).max(initial=0) <= _CLOSE * max(1.0, values.max(initial=0)):
            break
    return values
