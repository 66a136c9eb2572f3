"""Metrics of the overlay between the subscribers of each topic."""

from __future__ import annotations

import numpy as np

from vizpub.analytics.kernels.adjacency import Peers
from vizpub.analytics.kernels.distances import distances
from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int32s, Int64s

TOPIC_COLUMNS = ("topic_links", "components", "topic_diameter", "distance_sum", "pairs")


@compiled("(int64[::1], int64[::1], uint32[::1], uint32[::1], int32[::1])")
def induced_rows(
    out_ptr: Int64s, ptr: Int64s, idx: Peers, members: Peers, place: Int32s
) -> tuple[int, Int64s, Peers]:
    """Number of links between members, and the rows either way of these links.

    `ptr`, `idx`: rows either way that begin with the outgoing neighbours; `out_ptr` gives their
    number. `place` has a new number for each of the `members`, in the order of the new rows, and -1
    for other peers. O(links of the members).
    """
    inner_ptr, room = np.zeros(members.size + 1, np.int64), 1
    for v in members:
        room += ptr[v + 1] - ptr[v]
    inner_idx = np.empty(room, np.uint32)
    count, links = 0, 0
    for i in range(members.size):
        v = np.int64(members[i])
        between = ptr[v] + out_ptr[v + 1] - out_ptr[v]
        links -= count
        # Written unconditionally: a branch here could not be predicted.
        for k in range(np.uint64(ptr[v]), np.uint64(between)):
            new = place[idx[k]]
            inner_idx[np.uint64(count)] = new
            count += new >= 0
        links += count
        for k in range(np.uint64(between), np.uint64(ptr[v + 1])):
            new = place[idx[k]]
            inner_idx[np.uint64(count)] = new
            count += new >= 0
        inner_ptr[i + 1] = count
    return links, inner_ptr, inner_idx[:count]


@compiled("(int64[::1], uint32[::1], int64[::1])")
def _measure_topic(ptr: Int64s, idx: Peers, measures: Int64s) -> None:
    """All of `TOPIC_COLUMNS` except the first, of undirected rows."""
    distance_sum, reach, eccentricity = distances(ptr, idx)
    # The shares of its members in a component add up to one.
    components = (1 / (reach + 1)).sum()
    measures[1] = int(components + 0.5)
    measures[2] = -1
    for v in range(reach.size):
        measures[2] = max(measures[2], eccentricity[v])
    measures[3], measures[4] = distance_sum.sum(), reach.sum()


@compiled("(int64[::1], int64[::1], uint32[::1], int64[::1], uint32[::1])")
def topic_measures(
    out_ptr: Int64s, ptr: Int64s, idx: Peers, bounds: Int64s, subscribers: Peers
) -> Int64s:
    """int64[topics, 5], a row per topic with the columns `TOPIC_COLUMNS`.

    `ptr`, `idx`: rows either way that begin with the outgoing neighbours; `out_ptr` gives their
    number. The subscribers of topic i are, ascending,
    `subscribers[bounds[i]:bounds[i + 1]]`. Links count with their direction and if both ends
    subscribe; components, distances and the ordered pairs that are connected (`pairs`) are of
    the same links without direction. topic_diameter is -1 where no pair is connected.
    """
    measures = np.empty((bounds.size - 1, 5), np.int64)
    place = np.full(ptr.size - 1, -1, np.int32)
    for topic in range(bounds.size - 1):
        members = subscribers[bounds[topic] : bounds[topic + 1]]
        for i in range(members.size):
            place[members[i]] = i
        links, inner_ptr, inner_idx = induced_rows(out_ptr, ptr, idx, members, place)
        measures[topic, 0] = links
        _measure_topic(inner_ptr, inner_idx, measures[topic])
        for v in members:
            place[v] = -1
    return measures
