"""The graph's columns of the metrics tables, from what an engine measured.

Numpy in, numpy out. NaN is null, and so is -1 in a column of integers. Sums of an interval are
over its peers in their order, so that they do not depend on blocks or tasks to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]
_Floats = npt.NDArray[np.float64]
_Columns = dict[str, _Array]

_MEANS = ("in_degree", "out_degree", "degree", "clustering", "betweenness", "closeness")
_KNOWN_MEANS = ("mean_distance", "eccentricity")
"""Means over the peers that reach another peer."""
_LARGEST = ("in_degree", "out_degree", "degree", "betweenness")


def peer_columns(measured: Mapping[str, _Array]) -> _Columns:
    """The graph's columns of metrics/peers.

    `measured` has the columns of `vizpub.analytics.blocks.PEER_TYPES`, by interval.
    """
    _, place, sizes = _intervals(measured["interval"])
    n = sizes[place].astype(np.float64)
    mean_distance = _ratio(measured["distance_sum"], measured["reachable_peers"])
    with np.errstate(divide="ignore", invalid="ignore"):
        closeness = measured["reachable_peers"] / (n - 1) / mean_distance
    return {
        **{name: column for name, column in measured.items() if name != "distance_sum"},
        "betweenness_normalized": np.where(
            n >= 3, _ratio(measured["betweenness"], (n - 1) * (n - 2)), np.nan
        ),
        "mean_distance": mean_distance,
        "closeness": np.where(measured["reachable_peers"] == 0, 0.0, closeness),
    }


def topic_columns(measured: Mapping[str, _Array]) -> _Columns:
    """The graph's columns of metrics/topics.

    `measured` has the columns of `vizpub.analytics.blocks.TOPIC_TYPES`, by interval.
    """
    columns = dict(measured)
    mean = _ratio(columns.pop("distance_sum"), columns.pop("pairs"))
    return {**columns, "topic_average_path_length": mean}


def interval_columns(
    measured: Mapping[str, _Array], peers: Mapping[str, _Array], errors: Mapping[str, _Array]
) -> _Columns:
    """The graph's columns of metrics/overlay, for each interval with peers.

    `measured` is the input of `of_peers`, `peers` its result; `errors` has interval and
    average_path_length_error.
    """
    numbers, place, sizes = _intervals(peers["interval"])
    begins = np.cumsum(sizes) - sizes

    def total(values: _Array) -> _Array:
        result: _Array = np.add.reduceat(values, begins)
        return result

    n, links, reached = (
        sizes.astype(np.float64),
        total(peers["out_degree"]),
        total(peers["reachable_peers"]),
    )
    pairs = n * (n - 1)
    # The number of peers in each component of each interval.
    component = peers["component"]
    width = int(component.max()) + 1
    component_sizes = np.bincount(place * width + component, minlength=(int(place[-1]) + 1) * width)
    largest: _Array = component_sizes.reshape(-1, width).max(axis=1)
    return {
        "interval": numbers,
        "network_size": sizes,
        "links": links,
        "density": _ratio(links, pairs),
        **{f"{name}_mean": total(peers[name]) / n for name in _MEANS},
        **{f"{name}_mean": _mean_where_known(peers[name], total) for name in _KNOWN_MEANS},
        **{f"{name}_max": np.maximum.reduceat(peers[name], begins) for name in _LARGEST},
        "diameter": np.maximum.reduceat(peers["eccentricity"], begins),
        "average_path_length": _ratio(total(measured["distance_sum"]), reached),
        "average_path_length_error": errors["average_path_length_error"],
        "reachable_pairs_share": _ratio(reached, pairs),
        # A component is named after its smallest peer, which is in it.
        "weak_components": total((peers["component"] == peers["peer"]).astype(np.int32)),
        "strong_components": total((peers["strong_component"] == peers["peer"]).astype(np.int32)),
        "largest_weak_component_share": largest / n,
    }


def topic_diameter_mean(topics: Mapping[str, _Array], intervals: _Array) -> _Floats:
    """The mean over the topics that have a diameter, for each of the intervals."""
    has_diameter = topics["topic_diameter"] >= 0
    place = np.searchsorted(intervals, topics["interval"][has_diameter])
    sums = np.bincount(place, topics["topic_diameter"][has_diameter], intervals.size)
    return _ratio(sums, np.bincount(place, minlength=intervals.size))


def _intervals(interval: _Array) -> tuple[_Array, _Array, _Array]:
    """The distinct intervals, the index of each row's interval, and the rows per interval."""
    return np.unique(interval, return_inverse=True, return_counts=True)


def _ratio(part: _Array, total: _Array) -> _Floats:
    """Quotient; NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, part / total, np.nan)


def _mean_where_known(values: _Array, total: Callable[[_Array], _Array]) -> _Floats:
    is_known = values >= 0  # neither -1 nor NaN
    return _ratio(total(np.where(is_known, values, 0)), total(is_known.astype(np.int32)))
