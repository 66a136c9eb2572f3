"""What each topic's subscribers make of the overlay among themselves."""

from __future__ import annotations

import numpy as np

from analytics.kernels.adjacency import induced, reverse, union
from analytics.kernels.components import weak_components
from analytics.kernels.distances import distances
from model.compiled import Int32s, Int64s, compiled

TOPIC_COLUMNS = ("topic_links", "components", "topic_diameter", "distance_sum", "pairs")


@compiled("(int64[::1], int32[::1], int64[::1], int32[::1])")
def topic_measures(ptr: Int64s, idx: Int32s, bounds: Int64s, subscribers: Int32s) -> Int64s:
    """int64[topics, 5], a row per topic with the columns `TOPIC_COLUMNS`.

    `ptr`, `idx`: outgoing rows. The subscribers of topic i are, ascending,
    `subscribers[bounds[i]:bounds[i + 1]]`. Links count with their direction and if both ends
    subscribe; components, distances and the ordered pairs that are connected (`pairs`) are of
    the same links without direction. topic_diameter is -1 where no pair is connected.
    """
    measures = np.empty((bounds.size - 1, 5), np.int64)
    place = np.full(ptr.size - 1, -1, np.int32)
    for topic in range(bounds.size - 1):
        members = subscribers[bounds[topic] : bounds[topic + 1]]
        out_ptr, out_idx = induced(ptr, idx, members, place)
        in_ptr, in_idx = reverse(out_ptr, out_idx)
        both_ptr, both_idx = union(out_ptr, out_idx, in_ptr, in_idx)
        component = weak_components(out_ptr, out_idx)
        distance_sum, reach, eccentricity = distances(both_ptr, both_idx)
        row = measures[topic]
        row[0], row[1], row[2], row[3], row[4] = out_idx.size, 0, -1, 0, 0
        for v in range(members.size):
            row[1] += component[v] == v
            row[2] = max(row[2], eccentricity[v])
            row[3] += distance_sum[v]
            row[4] += reach[v]
    return measures
