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
from vizpub.analytics.prediction.message_passing import Overlay, Prediction, predict, threshold
from vizpub.model.arrays import Int64s

Flags = npt.NDArray[np.bool_]
Row = dict[str, int | float | None]


@dataclass(frozen=True)
class Event:
    """A message and its arrivals. Peers and topics are dense indices."""

    topic: int
    publisher: int
    peer: Int64s
    """Who it arrived at, once for each copy."""
    sender: Int64s
    """Who sent the copy; -1 = unknown."""
    first: Flags
    """Whether the copy was the first at its peer."""


@dataclass(frozen=True)
class Passed:
    """Neighbours without the subscription that peers with an event had, but for those that it came
    from, and those of them that were sent a copy."""

    offered: int = 0
    passed: int = 0

    @property
    def gamma(self) -> float | None:
        """The probability to be sent one; null if nobody had such a neighbour."""
        return self.passed / self.offered if self.offered else None

    def __add__(self, other: Passed) -> Passed:
        return Passed(self.offered + other.offered, self.passed + other.passed)


class Situation:
    """The overlay of an interval, and the events published in it by peers that are present."""

    def __init__(self, interval: Interval, events: list[Event]) -> None:
        self.interval = interval
        self.peers = interval.peers.to_numpy().astype(np.int64)
        links = interval.links
        src, dst = (
            self._places(links[name].to_numpy().astype(np.int64)) for name in ("src", "dst")
        )
        keys = np.unique(src * self.peers.size + dst)
        self._keys = keys
        n = max(self.peers.size, 1)
        self.overlay = Overlay(self.peers.size, keys // n, keys % n)
        there = {*self.peers.tolist()}
        self.events = [event for event in events if event.publisher in there]

    def _places(self, peers: Int64s) -> Int64s:
        return np.searchsorted(self.peers, peers)

    def _present(self, peers: Int64s) -> Flags:
        return np.isin(peers, self.peers)

    def _linked(self, src: Int64s, dst: Int64s) -> Flags:
        return np.isin(src * self.peers.size + dst, self._keys)

    @cached_property
    def _by_topic(self) -> dict[int, Flags]:
        """Who subscribes to each topic with an event, by place."""
        topic = self.interval.subscriptions["topic"].to_numpy()
        peer = self.interval.subscriptions["peer"].to_numpy().astype(np.int64)
        found = {}
        for one in {event.topic for event in self.events}:
            wants = np.zeros(self.peers.size, np.bool_)
            wants[self._places(peer[topic == one])] = True
            found[one] = wants
        return found

    def passed(self) -> Passed:
        """Over all events, along links of this overlay."""
        return sum((self._passed(event) for event in self.events), Passed())

    def _passed(self, event: Event) -> Passed:
        others = ~self._by_topic[event.topic]
        src, dst = self.overlay.src, self.overlay.dst
        held = np.zeros(self.peers.size, np.bool_)
        held[self._places(self._got(event))] = True
        offered = int(np.count_nonzero(held[src] & others[dst]))
        known = (event.sender >= 0) & self._present(event.sender) & self._present(event.peer)
        to, sender = self._places(event.peer[known]), self._places(event.sender[known])
        first = event.first[known] & (event.peer[known] != event.publisher)
        offered -= int(np.count_nonzero(self._linked(to, sender) & others[sender] & first))
        passed = self._linked(sender, to) & others[to] & held[sender]
        return Passed(offered, int(np.count_nonzero(passed)))

    def _got(self, event: Event) -> Int64s:
        """The peers that are present and have the event, its publisher with them."""
        got = np.unique(np.append(event.peer, event.publisher))
        return got[self._present(got)]

    def row(self, sigma: float | None, gamma: float | None) -> Row:
        """The row of metrics/percolation; sigma null = who subscribes to the events' topics."""
        told = self._told(sigma, gamma or 0.0)
        passed = self.passed()
        return {
            "interval": self.interval.number,
            "gamma": gamma,
            "percolation_threshold": _finite(_threshold(self.overlay)),
            "gossip_events": len(self.events),
            **told,
            **self._measured(),
            "copies_offered": passed.offered,
            "copies_passed": passed.passed,
        }

    def _told(self, sigma: float | None, gamma: float) -> Row:
        """The prediction, as means over the events, or over all publishers if there is none."""
        names = ("sigma", "predicted_percolation", "predicted_receivers", "predicted_subscribers")
        if not self.peers.size or (sigma is None and not self.events):
            return dict.fromkeys(names)
        rows = [*self._predictions(sigma, gamma)]
        weights = [weight for weight, _ in rows]
        columns = np.array([row for _, row in rows], np.float64)
        means = np.average(columns, axis=0, weights=weights)
        return dict(zip(names, map(_known, means.tolist()), strict=True))

    def _predictions(
        self, sigma: float | None, gamma: float
    ) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Of each topic, or of all events: (how many events, the values)."""
        if sigma is not None:
            found = predict(self.overlay, sigma, gamma)
            published = np.array([event.publisher for event in self.events], np.int64)
            places = self._places(published) if self.events else np.arange(self.peers.size)
            yield max(len(self.events), 1), (sigma, *_spread(found, places), math.nan)
            return
        for topic, wants in self._by_topic.items():
            found = predict(self.overlay, wants.astype(np.float64), gamma)
            published = np.array([e.publisher for e in self.events if e.topic == topic], np.int64)
            reached = float(found.receives[wants].mean()) if wants.any() else math.nan
            spread = _spread(found, self._places(published))
            yield published.size, (float(wants.mean()), *spread, reached)

    def _measured(self) -> Row:
        """Of the events: how many peers got each, and which share of its subscribers."""
        if not self.events:
            return {"measured_receivers": None, "measured_subscribers": None}
        receivers, shares = [], []
        for event in self.events:
            receivers.append(np.unique(np.append(event.peer, event.publisher)).size)
            wants = self._by_topic[event.topic]
            if wants.any():
                got = self._places(self._got(event))
                shares.append(np.count_nonzero(wants[got]) / np.count_nonzero(wants))
        return {
            "measured_receivers": float(np.mean(receivers)),
            "measured_subscribers": float(np.mean(shares)) if shares else None,
        }


def _spread(found: Prediction, publishers: Int64s) -> tuple[float, float]:
    return float(found.percolates[publishers].mean()), float(found.receivers[publishers].mean())


def _threshold(overlay: Overlay) -> float:
    """Infinite where every walk ends; NaN where the eigenvalue was not found."""
    try:
        return threshold(overlay)
    except ArpackError:
        return math.nan


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
