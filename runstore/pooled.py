"""Measures of a run pooled over all its messages, from the store only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow.compute as pc

from runstore.store import StoredRun


@dataclass(frozen=True)
class Pooled:
    """Counts over the messages of a run. Null is unknown.

    `eligible`, `delivered`, `hit_ratio_mean` and `late` leave out messages that a peer
    refused; `refused` counts these.
    """

    messages: int
    unreported: int
    """Messages without a reported publication; known from their arrivals."""
    refused: int
    eligible: int | None
    delivered: int | None
    hit_ratio_mean: float | None
    late: int | None
    hops: dict[int | None, int]
    """Number of first receptions by hops travelled; null = unknown."""

    @property
    def hit_ratio(self) -> float | None:
        """delivered / eligible; null where no peer was eligible."""
        if not self.eligible or self.delivered is None:
            return None
        return self.delivered / self.eligible


def pooled(run: StoredRun) -> Pooled | None:
    """The figures of a complete run; null where messages are unknown."""
    if not run.has("metrics/messages"):
        return None
    measured = run.read("metrics/messages")
    counted = measured.filter(pc.equal(measured["rejections"], 0))
    sums = {name: pc.sum(counted[name]).as_py() for name in ("eligible", "delivered")}
    known = run.read("publications", ["publication_known"])["publication_known"]
    return Pooled(
        messages=measured.num_rows,
        unreported=measured.num_rows - (pc.sum(known).as_py() or 0),
        refused=measured.num_rows - counted.num_rows,
        hit_ratio_mean=pc.mean(counted["hit_ratio"]).as_py(),
        late=pc.sum(counted["late_deliveries"]).as_py(),
        hops=_hops(run),
        **sums,
    )


def reporting(run: StoredRun) -> int:
    """The number of reporters; other peers are only named by them."""
    return pc.sum(run.read("peers", ["is_reporter"])["is_reporter"]).as_py() or 0


def _hops(run: StoredRun) -> dict[int | None, int]:
    counts: Counter[int | None] = Counter()
    for batch in run.scan("receptions", ["hop"], pc.field("first")):
        for hop in pc.value_counts(batch["hop"]).to_pylist():
            counts[hop["values"]] += hop["counts"]
    return dict(sorted(counts.items(), key=lambda item: (item[0] is None, item[0] or 0)))
