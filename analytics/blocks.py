"""Metrics of every interval of a block, rebuilt from versions inside one task.

Numpy in, numpy out. All validity periods are `[start, stop)` in numbers of sampled intervals, in
any order; they may repeat, overlap, touch and extend beyond the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vizpub.analytics.kernels.adjacency import Peers, Rows, outgoing, reverse, union
from vizpub.analytics.kernels.betweenness import betweenness
from vizpub.analytics.kernels.clustering import clustering
from vizpub.analytics.kernels.components import strong_components, weak_components
from vizpub.analytics.kernels.pagerank import pagerank
from vizpub.analytics.kernels.path_lengths import path_lengths
from vizpub.analytics.kernels.periods import clipped_periods
from vizpub.analytics.kernels.topics import TOPIC_COLUMNS, topic_measures
from vizpub.analytics.options import Measures
from vizpub.model.arrays import Int32s, Integers

Columns = dict[str, npt.NDArray[Any]]
_Types = dict[str, type[np.generic]]


class LinkPeriods(NamedTuple):
    """Validity periods of directed links, of any layer and topic."""

    src: Integers
    dst: Integers
    start: Integers
    stop: Integers


class PresencePeriods(NamedTuple):
    """Validity periods of the presence of peers."""

    peer: Integers
    start: Integers
    stop: Integers


class SubscriptionPeriods(NamedTuple):
    """Validity periods of subscriptions."""

    peer: Integers
    topic: Integers
    start: Integers
    stop: Integers


PEER_TYPES: _Types = {
    "interval": np.int32,
    "peer": np.int32,
    "in_degree": np.int32,
    "out_degree": np.int32,
    "degree": np.int32,
    "clustering": np.float64,
    "betweenness": np.float64,
    "betweenness_error": np.float64,
    "distance_sum": np.int64,
    "mean_distance_error": np.float64,
    "reachable_peers": np.int32,
    "eccentricity": np.int32,
    "component": np.int32,
    "strong_component": np.int32,
    "pagerank": np.float64,
    "subscriptions": np.int32,
}
TOPIC_TYPES: _Types = {
    "interval": np.int32,
    "topic": np.int32,
    "subscribers": np.int32,
    "topic_links": np.int32,
    "components": np.int32,
    "topic_diameter": np.int32,
    "distance_sum": np.int64,
    "pairs": np.int64,
    "topic_average_path_length_error": np.float64,
}


INTERVAL_TYPES: _Types = {"interval": np.int32, "average_path_length_error": np.float64}


class BlockMetrics(NamedTuple):
    """Columns of equal length, ordered by interval, then by peer or topic."""

    peers: Columns
    topics: Columns
    intervals: Columns
    """Of intervals with at least one peer."""


class IndexedSnapshot(NamedTuple):
    """The overlay of one interval. Other fields number peers by their position in `peers`."""

    interval: int
    peers: Int32s
    """Index of each peer present, ascending."""
    outgoing: Rows
    incoming: Rows
    either_way: Rows
    """See `vizpub.analytics.kernels`."""
    topic: Int32s
    subscriber: Peers
    """Subscriptions of present peers, ordered by topic, then by peer."""


def measure_block(
    links: LinkPeriods,
    presence: PresencePeriods,
    subscriptions: SubscriptionPeriods,
    first: int,
    last: int,
    measures: Measures = Measures(),
) -> BlockMetrics:
    """Metrics of each present peer and each topic with present subscribers, first … last.

    `peers` has the columns of `PEER_TYPES`: degrees (distinct links in, out, and peers linked
    either way), clustering (undirected), betweenness (directed, ordered pairs, not normalised)
    with its standard error (0 where exact; both NaN where not asked for), distance_sum and
    reach (hops to, and number of, the other peers it reaches), eccentricity (-1 where it
    reaches none), mean_distance_error (standard error of distance_sum / reach: 0 where exact,
    NaN where it reaches none, or too few of a sample), component and strong_component
    (its smallest peer), pagerank, subscriptions (topics). Where distances are sampled, reach
    and distance_sum are estimates and eccentricity is at most the true one.
    `topics` has the columns of `TOPIC_TYPES`, of the links whose two ends both subscribe:
    topic_links with direction; components, topic_diameter (-1 where no pair is connected),
    distance_sum and pairs (ordered pairs that are connected) without, and
    topic_average_path_length_error, the standard error of distance_sum / pairs (0 where exact, NaN
    without a pair). Where it is above 0, distance_sum is an estimate, and topic_diameter at most
    the true one. Empty if not asked for. `intervals` has the columns of `INTERVAL_TYPES`:
    average_path_length_error, the standard error of the mean distance over all connected ordered
    pairs (0 where exact, NaN without one).

    Links of a peer to itself and links or subscriptions of absent peers do not count. Except for
    the result, memory does not grow with the number of intervals.
    """
    peers, topics, intervals = [], [], []
    for snapshot in _snapshots(links, presence, subscriptions, range(first, last + 1)):
        if not snapshot.peers.size:
            continue
        peer_columns, interval_columns = _measure_overlay(snapshot, measures)
        peers.append(peer_columns)
        intervals.append(interval_columns)
        if measures.topics:
            begins = np.flatnonzero(np.diff(snapshot.topic, prepend=-1))
            topic_numbers, bounds = snapshot.topic[begins], np.append(begins, snapshot.topic.size)
            values, errors = topic_measures(
                *(snapshot.outgoing[0], snapshot.either_way, bounds, snapshot.subscriber),
                measures.max_edge_visits,
                np.random.default_rng([measures.seed, snapshot.interval, 1]),
            )
            topics.append(
                {
                    "interval": np.full(topic_numbers.size, snapshot.interval),
                    "topic": topic_numbers,
                    "subscribers": np.diff(bounds),
                    **dict(zip(TOPIC_COLUMNS, values.T, strict=True)),
                    "topic_average_path_length_error": errors,
                }
            )
    return BlockMetrics(
        _concatenate(peers, PEER_TYPES),
        _concatenate(topics, TOPIC_TYPES),
        _concatenate(intervals, INTERVAL_TYPES),
    )


def _snapshots(
    links: LinkPeriods, presence: PresencePeriods, subscriptions: SubscriptionPeriods, window: range
) -> Iterator[IndexedSnapshot]:
    """The overlay of each interval of the window, each made from the previous one."""
    presence_periods = clipped_periods((presence.peer, presence.peer), presence[1:], window)
    link_periods = clipped_periods((links.src, links.dst), links[2:], window)
    subscription_periods = clipped_periods(
        (subscriptions.topic, subscriptions.peer), subscriptions[2:], window
    )
    largest_peer = max(
        int(x.max(initial=-1))
        for x in (presence_periods.a, link_periods.a, link_periods.b, subscription_periods.b)
    )
    rank = np.empty(largest_peer + 1, np.int32)
    alive = zip(
        window,
        presence_periods.alive(window),
        link_periods.alive(window),
        subscription_periods.alive(window),
        strict=True,
    )
    for interval, present, linked, subscribed in alive:
        peers = presence_periods.a[present]
        rank[:] = -1
        rank[peers] = np.arange(peers.size)
        outgoing_rows = outgoing(peers.size, rank, link_periods.a, link_periods.b, linked)
        incoming = reverse(*outgoing_rows)
        subscriber = rank[subscription_periods.b[subscribed]]
        is_present = subscriber >= 0
        yield IndexedSnapshot(
            interval,
            peers,
            outgoing_rows,
            incoming,
            union(*outgoing_rows, *incoming),
            subscription_periods.a[subscribed][is_present],
            subscriber[is_present].astype(np.uint32),
        )


def _measure_overlay(snapshot: IndexedSnapshot, measures: Measures) -> tuple[Columns, Columns]:
    """Rows of `PEER_TYPES` and `INTERVAL_TYPES` of one interval."""
    peers, out = snapshot.peers, snapshot.outgoing
    rng = np.random.default_rng([measures.seed, snapshot.interval])
    paths = path_lengths(out, measures.max_edge_visits, rng)
    between = error = np.full(peers.size, np.nan)
    if measures.betweenness:
        hops = int(paths.eccentricity.max(initial=0))
        between, error = betweenness(*out, hops, measures.max_edge_visits, rng)
    peer_columns = {
        "interval": np.full(peers.size, snapshot.interval),
        "peer": peers,
        "in_degree": np.diff(snapshot.incoming[0]),
        "out_degree": np.diff(out[0]),
        "degree": np.diff(snapshot.either_way[0]),
        "clustering": clustering(*snapshot.either_way),
        "betweenness": between,
        "betweenness_error": error,
        "distance_sum": paths.distance_sum,
        "mean_distance_error": paths.mean_error,
        "reachable_peers": paths.reachable_peers,
        "eccentricity": paths.eccentricity,
        "component": peers[weak_components(*out)],
        "strong_component": peers[strong_components(*out)],
        "pagerank": pagerank(out[0], *snapshot.incoming),
        "subscriptions": np.bincount(snapshot.subscriber, minlength=peers.size),
    }
    return peer_columns, {
        "interval": np.array([snapshot.interval]),
        "average_path_length_error": np.array([paths.average_path_length_error]),
    }


def _concatenate(rows: Sequence[Columns], types: _Types) -> Columns:
    """The rows of all intervals as one set of columns of the given types."""
    return {
        name: np.concatenate(
            [np.empty(0, dtype), *(row[name] for row in rows)], dtype=dtype, casting="same_kind"
        )
        for name, dtype in types.items()
    }
