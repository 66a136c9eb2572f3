"""Metrics of the overlay between the subscribers of each topic."""

from __future__ import annotations

import numpy as np

from vizpub.analytics.kernels.adjacency import Peers, Rows
from vizpub.analytics.kernels.components import weak_components
from vizpub.analytics.kernels.distances import distances
from vizpub.analytics.kernels.path_lengths import path_lengths
from vizpub.analytics.options import ALWAYS_EXACT, TARGETS_A_WORD
from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Floats, Int32s, Int64s

TOPIC_COLUMNS = ("topic_links", "components", "topic_diameter", "distance_sum", "pairs")
PAIRS = TOPIC_COLUMNS.index("pairs")


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
def exact_topic_measures(
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


def topic_measures(
    out_ptr: Int64s,
    either_way: Rows,
    bounds: Int64s,
    subscribers: Peers,
    budget: float,
    rng: np.random.Generator,
) -> tuple[Int64s, Floats]:
    """`exact_topic_measures`, and the standard error of each mean distance: 0, or NaN of no pair.

    The topics share the `budget` of an interval by their subscribers. The distances of a topic that
    needs more than its share are sampled, see `path_lengths`: its mean distance is then an
    estimate, and topic_diameter at most the true one.
    """
    ptr, sizes = either_way[0], np.diff(bounds)
    shares = budget * sizes / max(subscribers.size, 1)
    ends = np.append(0, np.cumsum(np.diff(ptr)[subscribers]))[bounds]
    # Links to peers that do not subscribe count, too, so that links are only sought where in doubt.
    is_costly = sizes * (sizes + np.diff(ends)) > TARGETS_A_WORD * shares
    kept = np.append(0, np.cumsum(np.where(is_costly, 0, sizes)))
    of_cheap = subscribers[np.repeat(~is_costly, sizes)] if is_costly.any() else subscribers
    measures = exact_topic_measures(out_ptr, *either_way, kept, of_cheap)
    errors = np.where(measures[:, PAIRS] > 0, 0.0, np.nan)
    place = np.full(ptr.size - 1, -1, np.int32)
    for topic in np.flatnonzero(is_costly):
        members = subscribers[bounds[topic] : bounds[topic + 1]]
        place[members] = np.arange(members.size)
        links, inner_ptr, inner_idx = induced_rows(out_ptr, *either_way, members, place)
        rows = inner_ptr, inner_idx
        place[members] = -1
        components = np.unique(weak_components(*rows), return_counts=True)[1]
        pairs = int((components * (components - 1)).sum())
        paths = path_lengths(rows, shares[topic], rng)
        reached = paths.reachable_peers.sum(dtype=np.int64)
        if pairs and not reached:  # so few that to search all takes no time
            paths, reached = path_lengths(rows, ALWAYS_EXACT, rng), np.int64(pairs)
        distance_sum = round(paths.distance_sum.sum() / max(reached, 1) * pairs)
        diameter = paths.eccentricity.max()
        measures[topic] = links, components.size, diameter, distance_sum, pairs
        errors[topic] = paths.average_path_length_error
    return measures, errors
