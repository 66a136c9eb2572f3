"""The kernels of vizpub alone, in one process, on the snapshots in memory: what Spark surrounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from benchmarks.reference import Versions
from benchmarks.snapshots.given import COLUMNS, Given, Snapshot, run
from vizpub.analytics.blocks import LinkPeriods, PresencePeriods, SubscriptionPeriods, measure_block
from vizpub.analytics.structure import structure_rows


def measure(given: Given) -> pa.Table:
    """Fifteen metrics of each day."""
    return pa.concat_tables(map(measure_snapshot, given.snapshots()))


def _integers(*columns: Sequence[int] | np.ndarray) -> list[np.ndarray]:
    return [np.asarray(column, np.int32) for column in columns]


def measure_snapshot(snapshot: Snapshot) -> pa.Table:
    """All metrics of the peers of a snapshot."""
    peers = list(range(len(snapshot.peers)))
    begin, end = [0] * len(peers), [1] * len(peers)
    links = len(snapshot.links[0])
    versions = Versions(
        LinkPeriods(*_integers(*snapshot.links, [0] * links, [1] * links)),
        PresencePeriods(*_integers(peers, begin, end)),
        SubscriptionPeriods(*_integers([], [], [], [])),
    )
    rows = structure_rows(measure_block(*versions, 0, 0)).sort_by("peer")
    return snapshot.row({name: rows[name].to_numpy() for name in COLUMNS})


if __name__ == "__main__":
    run("numba", {"metrics": (measure, measure_snapshot)})
