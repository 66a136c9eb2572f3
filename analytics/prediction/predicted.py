"""How far gossip should spread on an overlay, beside how far it spread: rows of
metrics/percolation.

The prediction is by message passing on the links of the interval
(`vizpub.analytics.prediction.message_passing`): subscribers get an event from every neighbour that
has it, other peers with probability gamma.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import ArpackError

from vizpub.analytics.own import Interval
from vizpub.analytics.prediction.message_passing import (
    LinkGraph,
    Prediction,
    predict_spread,
    threshold,
)
from vizpub.model.arrays import Int64s

Flags = npt.NDArray[np.bool_]
Row = dict[str, int | float | None]


@dataclass(frozen=True)
class GossipEvent:
    """A message and its arrivals. Peers and topics are dense indices."""

    topic: int
    publisher: int
    peer: Int64s
    """The peer that each copy arrived at."""
    sender: Int64s
    """The peer that sent each copy; -1 = unknown."""
    first: Flags
    """True if the copy was the first at its peer."""


@dataclass(frozen=True)
class CopyCounts:
    """Neighbours without the subscription that peers with an event had, but for those that it came
    from, and those of them that were sent a copy."""

    offered: int = 0
    passed: int = 0

    @property
    def gamma(self) -> float | None:
        """The probability to be sent one; null if nobody had such a neighbour."""
        return self.passed / self.offered if self.offered else None

    def __add__(self, other: CopyCounts) -> CopyCounts:
        return CopyCounts(self.offered + other.offered, self.passed + other.passed)


class IntervalGossip:
    """The overlay of an interval, and the events published in it by peers that are present."""

    def __init__(self, interval: Interval, events: list[GossipEvent]) -> None:
        self.interval = interval
        self.peers = interval.peers.to_numpy().astype(np.int64)
        links = interval.links
        src, dst = (
            self._places(links[name].to_numpy().astype(np.int64)) for name in ("src", "dst")
        )
        keys = np.unique(self._keys_of(src, dst))
        n = max(self.peers.size, 1)
        self.overlay = LinkGraph(self.peers.size, keys // n, keys % n)
        present = {*self.peers.tolist()}
        self.events = [event for event in events if event.publisher in present]

    def _places(self, peers: Int64s) -> Int64s:
        return np.searchsorted(self.peers, peers)

    def _is_present(self, peers: Int64s) -> Flags:
        return np.isin(peers, self.peers)

    def _keys_of(self, src: Int64s, dst: Int64s) -> Int64s:
        """A number for each pair of places."""
        keys: Int64s = src.astype(np.int64) * self.peers.size + dst
        return keys

    @cached_property
    def _subscribers_by_topic(self) -> dict[int, Flags]:
        """The subscribers of each topic with an event, as flags by place."""
        topic = self.interval.subscriptions["topic"].to_numpy()
        peer = self.interval.subscriptions["peer"].to_numpy().astype(np.int64)
        subscribers = {}
        for event_topic in {event.topic for event in self.events}:
            wants = np.zeros(self.peers.size, np.bool_)
            wants[self._places(peer[topic == event_topic])] = True
            subscribers[event_topic] = wants
        return subscribers

    def count_copies(self) -> CopyCounts:
        """Count the copies of all events along links of this overlay."""
        return sum((self._count_event_copies(event) for event in self.events), CopyCounts())

    def _count_event_copies(self, event: GossipEvent) -> CopyCounts:
        is_unsubscribed = ~self._subscribers_by_topic[event.topic]
        src, dst = self.overlay.src, self.overlay.dst
        has_event = np.zeros(self.peers.size, np.bool_)
        has_event[self._places(self._holders(event))] = True
        offered = self._keys_of(src, dst)[has_event[src] & is_unsubscribed[dst]]
        is_known = (
            (event.sender >= 0) & self._is_present(event.sender) & self._is_present(event.peer)
        )
        to, sender = self._places(event.peer[is_known]), self._places(event.sender[is_known])
        first = event.first[is_known] & (event.peer[is_known] != event.publisher)
        offered = np.setdiff1d(offered, self._keys_of(to, sender)[first])
        return CopyCounts(offered.size, np.intersect1d(offered, self._keys_of(sender, to)).size)

    def _holders(self, event: GossipEvent) -> Int64s:
        """The peers that are present and have the event, its publisher with them."""
        peers = np.unique(np.append(event.peer, event.publisher))
        return peers[self._is_present(peers)]

    def row(self, sigma: float | None, gamma: float | None) -> Row:
        """The row of metrics/percolation; sigma null = who subscribes to the events' topics."""
        predicted = self._predict_means(sigma, gamma)
        copies = self.count_copies()
        return {
            "interval": self.interval.number,
            "gamma": gamma,
            "percolation_threshold": _finite_threshold(self.overlay),
            "gossip_events": len(self.events),
            **predicted,
            **self._measure_events(),
            "copies_offered": copies.offered,
            "copies_passed": copies.passed,
        }

    def _predict_means(self, sigma: float | None, gamma: float | None) -> Row:
        """The prediction, as means over the events, or over all publishers if there is none."""
        names = ("sigma", "predicted_percolation", "predicted_receivers", "predicted_subscribers")
        if not self.peers.size or (sigma is None and not self.events):
            return dict.fromkeys(names)
        if sigma is not None and gamma is None:  # nothing shows to whom others pass events on
            return {**dict.fromkeys(names), "sigma": sigma}
        rows = [*self._predictions(sigma, gamma or 0.0)]  # null: all neighbours subscribe
        weights = [weight for weight, _ in rows]
        columns = np.array([row for _, row in rows], np.float64)
        means = np.average(columns, axis=0, weights=weights)
        values = [None if math.isnan(mean) else mean for mean in means.tolist()]
        return dict(zip(names, values, strict=True))

    def _predictions(
        self, sigma: float | None, gamma: float
    ) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Yield (number of events, predicted values) of each topic, or of all events."""
        if sigma is not None:
            prediction = predict_spread(self.overlay, sigma, gamma)
            published = np.array([event.publisher for event in self.events], np.int64)
            places = self._places(published) if self.events else np.arange(self.peers.size)
            yield max(len(self.events), 1), (sigma, *_spread(prediction, places), math.nan)
            return
        for topic, wants in self._subscribers_by_topic.items():
            prediction = predict_spread(self.overlay, wants.astype(np.float64), gamma)
            published = np.array([e.publisher for e in self.events if e.topic == topic], np.int64)
            reached = float(prediction.receives[wants].mean()) if wants.any() else math.nan
            spread = _spread(prediction, self._places(published))
            yield published.size, (float(wants.mean()), *spread, reached)

    def _measure_events(self) -> Row:
        """Mean number of peers that got an event, and mean share of its subscribers."""
        if not self.events:
            return {"measured_receivers": None, "measured_subscribers": None}
        receivers, shares = [], []
        for event in self.events:
            receivers.append(np.unique(np.append(event.peer, event.publisher)).size)
            wants = self._subscribers_by_topic[event.topic]
            if wants.any():
                holders = self._places(self._holders(event))
                shares.append(np.count_nonzero(wants[holders]) / np.count_nonzero(wants))
        return {
            "measured_receivers": float(np.mean(receivers)),
            "measured_subscribers": float(np.mean(shares)) if shares else None,
        }


def _spread(prediction: Prediction, publishers: Int64s) -> tuple[float, float]:
    return float(prediction.percolates[publishers].mean()), float(
        prediction.receivers[publishers].mean()
    )


def _finite_threshold(overlay: LinkGraph) -> float | None:
    """Return null where every walk ends, or the eigenvalue was not found."""
    try:
        value = threshold(overlay)
    except ArpackError:
        return None
    return value if math.isfinite(value) else None
