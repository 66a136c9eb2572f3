"""Path lengths of the directed overlay: exact, or from a sample of targets, with their errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vizpub.analytics.kernels.adjacency import Peers, Rows
from vizpub.analytics.kernels.distances import distances, search_distances
from vizpub.analytics.options import LEAST_TARGETS, TARGETS_A_WORD
from vizpub.model.arrays import Floats, Int32s, Int64s


class PathLengths(NamedTuple):
    """Values of each peer; the last is of the overlay."""

    distance_sum: Int64s
    reachable_peers: Int32s
    eccentricity: Int32s
    """-1 where it reaches none."""
    mean_error: Floats
    """Standard error of distance_sum / reach; NaN where that or its error is unknown."""
    average_path_length_error: float
    """Standard error of the mean over all connected ordered pairs; NaN where there is none."""


def path_lengths(rows: Rows, budget: float, rng: np.random.Generator) -> PathLengths:
    """Along outgoing rows: exact while n · (n + links) / 64 is within `budget`.

    A word holds 64 targets. Beyond the budget, as many full words of targets as it allows
    (at least 8) are drawn by `rng` without replacement, see `sampled_path_lengths`.
    """
    n, work = rows[0].size - 1, rows[0].size - 1 + rows[1].size
    is_exact = n * work <= TARGETS_A_WORD * budget
    targets = n if is_exact else max(LEAST_TARGETS, int(budget // work) * TARGETS_A_WORD)
    if targets >= n:
        distance_sum, reach, eccentricity = distances(*rows)
        return PathLengths(
            distance_sum,
            reach,
            eccentricity,
            np.where(reach > 0, 0.0, np.nan),
            0.0 if reach.any() else np.nan,
        )
    return sampled_path_lengths(rows, rng.choice(n, targets, replace=False).astype(np.uint32))


def sampled_path_lengths(rows: Rows, targets: Peers) -> PathLengths:
    """Estimates from the distances to `targets`, distinct peers in random order.

    A target that is the peer itself is left out of its sample. reach is scaled up, the mean
    distance is that to the reached targets (both rounded to whole numbers), and its error that of
    a mean over a subpopulation (Cochran, Sampling Techniques, 1977, section 2.12),
    NaN if fewer than two targets are reached. eccentricity is the largest distance found, so at
    most the true one. All are exact if every peer is a target.
    """
    n, k = rows[0].size - 1, targets.size
    lane = np.full(n, -1, np.int32)
    lane[targets] = np.arange(k)
    groups = np.zeros((2, -(-k // TARGETS_A_WORD)), np.int64)
    lane_counts = np.minimum(TARGETS_A_WORD, k - TARGETS_A_WORD * np.arange(groups.shape[1]))
    groups[1] = lane_counts
    sums, seen, eccentricity = search_distances(*rows, _rows_of_lanes(rows, lane), lane, k, groups)
    sampled = np.maximum(k - (lane >= 0), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums[0] / seen
        spread = np.maximum(sums[1] - mean * sums[0], 0) / (seen - 1)
        error = np.sqrt(spread / seen * (1 - sampled / (n - 1)))
    reach = np.rint(seen * float(n - 1) / sampled)  # the product may exceed 32 bits
    distance_sum = np.rint(np.nan_to_num(mean) * reach)
    error[(seen > 0) & (k == n)] = 0
    return PathLengths(
        distance_sum.astype(np.int64),
        reach.astype(np.int32),
        eccentricity,
        error,
        _ratio_error(groups[0], groups[1] - lane_counts, k / n),
    )


def _rows_of_lanes(rows: Rows, lane: Int32s) -> Rows:
    """The rows with targets only, numbered by their lanes."""
    ptr, idx = rows
    lanes = lane[idx]
    is_target = lanes >= 0
    counts = np.append(0, np.cumsum(is_target))
    return counts[ptr], lanes[is_target].astype(np.uint32)


def _ratio_error(distance_sum: Int64s, pairs: Int64s, fraction: float) -> float:
    """Standard error of Σ distance_sum / Σ pairs over random groups that are a `fraction` of all.

    Wolter, Introduction to Variance Estimation, 2007, sections 2.4 (random groups) and 6.3
    (ratios, linearised); with Cochran's finite population correction.
    """
    count, total = pairs.size, float(pairs.sum())  # its square may exceed 64 bits
    if not total:
        return float("nan")
    residual = distance_sum - distance_sum.sum() / total * pairs
    variance = count / max(count - 1, 1) * (residual**2).sum() / total**2
    return float(np.sqrt(variance * (1 - fraction)))
