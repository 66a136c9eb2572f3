"""What each topic's subscribers make of the overlay among themselves."""

from __future__ import annotations

import numpy as np

from analytics.kernels.adjacency import Peers, induced, row
from analytics.kernels.distances import distances
from model.compiled import Int32s, Int64s, compiled

TOPIC_COLUMNS = ("topic_links", "components", "topic_diameter", "distance_sum", "pairs")


@compiled("(int64[::1], uint32[::1], uint32[::1], int32[::1])")
def _links_among(ptr: Int64s, idx: Peers, members: Peers, place: Int32s) -> int:
    """How many links the members have with each other; arguments as of `induced`."""
    links = 0
    for v in members:
        for k in row(ptr, v):
            links += place[idx[k]] >= 0
    return links


@compiled("(int64[::1], uint32[::1], int64[::1])")
def _measure(ptr: Int64s, idx: Peers, measures: Int64s) -> None:
    """All of `TOPIC_COLUMNS` but the first, of undirected rows."""
    distance_sum, reach, eccentricity = distances(ptr, idx)
    # The shares of its members in a component add up to one.
    components = (1 / (reach + 1)).sum()
    measures[1] = int(components + 0.5)
    measures[2] = -1
    for v in range(reach.size):
        measures[2] = max(measures[2], eccentricity[v])
    measures[3], measures[4] = distance_sum.sum(), reach.sum()


_ROWS = "int64[::1], uint32[::1]"


@compiled(f"({_ROWS}, {_ROWS}, int64[::1], uint32[::1])")
def topic_measures(
    ptr: Int64s, idx: Peers, both_ptr: Int64s, both_idx: Peers, bounds: Int64s, subscribers: Peers
) -> Int64s:
    """int64[topics, 5], a row per topic with the columns `TOPIC_COLUMNS`.

    `ptr`, `idx`: outgoing rows; `both_ptr`, `both_idx`: rows either way of the same links. The
    subscribers of topic i are, ascending, `subscribers[bounds[i]:bounds[i + 1]]`. Links count with
    their direction and if both ends subscribe; components, distances and the ordered pairs that
    are connected (`pairs`) are of the same links without direction. topic_diameter is -1 where
    no pair is connected.
    """
    measures = np.empty((bounds.size - 1, 5), np.int64)
    place = np.full(ptr.size - 1, -1, np.int32)
    for topic in range(bounds.size - 1):
        members = subscribers[bounds[topic] : bounds[topic + 1]]
        for i in range(members.size):
            place[members[i]] = i
        measures[topic, 0] = _links_among(ptr, idx, members, place)
        inner_ptr, inner_idx = induced(both_ptr, both_idx, members, place)
        _measure(inner_ptr, inner_idx, measures[topic])
        for v in members:
            place[v] = -1
    return measures
