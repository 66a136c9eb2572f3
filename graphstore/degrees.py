"""What the labels of peers and the summary of a run need of its links, by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.batches import OPEN_LEVEL, Tables, sampled_spans
from model.clock import OPEN, Clock

Ints = np.ndarray[Any, np.dtype[np.int64]]

_COUNTED = {
    "peers": "peers",
    "topics": "topics",
    "messages": "publications",
    "links": "links",
    "receptions": "receptions",
}
_POWERS = 1 << np.arange(OPEN_LEVEL, dtype=np.int64)
DEGREE_CLASSES = {low: f"Degree{low}" for low in (0, 1, 2, 4, 8, 16, 32, 64)}
"""Labels of peers by the lowest mean degree of the class."""


def run_summary(tables: Tables) -> dict[str, Any]:
    """Counts of a run, the layers of its links, and the levels of its closed spans."""
    layers: set[str] = set()
    levels: set[int] = set()
    for _, batch in tables("links"):
        layers.update(pc.unique(batch["layer"]).to_pylist())
        levels.update(_closed_levels(batch))
    for table in ("presence", "subscriptions"):
        for _, batch in tables(table):
            levels.update(_closed_levels(batch))
    return {
        **{name: _count(tables, table) for name, table in _COUNTED.items()},
        "link_layers": sorted(layers),
        "levels": sorted(levels),
    }


def peer_labels(tables: Tables, clock: Clock) -> dict[str, list[int]]:
    """The peers of each label that is not told by a relationship; a label of none is left out."""
    degrees = summed_degrees(tables, clock)
    labels = {
        "Rendezvous": rendezvous_peers(tables),
        "Hub": hub_peers(degrees),
        **degree_classes(degrees, clock.intervals),
    }
    return {label: peers for label, peers in labels.items() if peers}


def hub_peers(degrees: Ints) -> list[int]:
    """The top 1 % of the peers by `summed_degrees`, at least one; none without links."""
    ranked: list[int] = np.argsort(-degrees, kind="stable")[: np.count_nonzero(degrees)].tolist()
    return ranked[: max(1, len(degrees) // 100)]


def degree_classes(degrees: Ints, intervals: int) -> dict[str, list[int]]:
    """The peers of each class of mean degree over the run; no classes without links.

    `degrees` are `summed_degrees`. Classes are powers of two, so that they mean the same in
    every run: DEGREE_CLASSES[8] has the means from 8 to below 16, the last one all from 64 on.
    """
    if not degrees.any():
        return {}
    lowest = np.array(list(DEGREE_CLASSES))
    classes = lowest[np.searchsorted(lowest, degrees // intervals, side="right") - 1]
    return {label: np.flatnonzero(classes == low).tolist() for low, label in DEGREE_CLASSES.items()}


def rendezvous_peers(tables: Tables) -> list[int]:
    """The peers in the role of a rendezvous, else the roots of the topics' trees.

    A root is linked to by its children in the layer `tree` and never links to a parent there.
    """
    told = {
        peer
        for _, batch in tables("roles")
        for peer, role in zip(batch["peer"].to_pylist(), batch["role"].to_pylist(), strict=True)
        if role == "rendezvous"
    }
    return sorted(told or _tree_roots(tables))


def _tree_roots(tables: Tables) -> set[int]:
    children: set[tuple[int | None, int]] = set()
    parents: set[tuple[int | None, int]] = set()
    for _, batch in tables("links"):
        tree = batch.filter(pc.equal(batch["layer"], "tree"))
        topics = tree["topic"].to_pylist()
        children.update(zip(topics, tree["src"].to_pylist(), strict=True))
        parents.update(zip(topics, tree["dst"].to_pylist(), strict=True))
    return {peer for _, peer in parents - children}


def summed_degrees(tables: Tables, clock: Clock) -> Ints:
    """The degree of each peer by its dense index, summed over the run's intervals.

    The degree of an interval is the number of distinct peers linked either way.
    """
    peers = _count(tables, "peers")
    batches = [batch.select(["src", "dst", "vf", "vt"]) for _, batch in tables("links")]
    if not batches:
        return np.zeros(peers, np.int64)
    links = pa.Table.from_batches(batches)
    src, dst = (links[name].to_numpy().astype(np.int64) for name in ("src", "dst"))
    first, last = sampled_spans(links["vf"].to_numpy(), links["vt"].to_numpy(), clock)
    kept = first <= last
    low, high = np.minimum(src, dst)[kept], np.maximum(src, dst)[kept]
    low, high, intervals = _covered(low, high, first[kept], last[kept])
    ends = np.concatenate((low, high))
    # Sums of whole numbers, exact in doubles.
    return np.bincount(ends, np.tile(intervals, 2), peers).astype(np.int64)


def _covered(low: Ints, high: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct pairs and in how many intervals any of a pair's spans holds."""
    order = np.lexsort((first, high, low))
    low, high, first, last = low[order], high[order], first[order], last[order]
    new = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))[: len(low)]
    # A pair's spans stand one after the other, each pair on a stretch of its own,
    # so that one running maximum tells for all how far the spans before reach.
    stretch = (np.cumsum(new) - 1) * (int(last.max(initial=0)) + 2)
    reach = np.maximum.accumulate(stretch + last + 1)
    before = np.append(0, reach[:-1])[: len(low)]
    added = np.maximum(0, stretch + last + 1 - np.maximum(before, stretch + first))
    starts = np.flatnonzero(new)
    return low[starts], high[starts], np.add.reduceat(added, starts) if len(starts) else added


def _closed_levels(batch: pa.RecordBatch) -> list[int]:
    vf, vt = batch["vf"].to_numpy(), batch["vt"].to_numpy()
    lengths = np.unique((vt - vf)[vt != OPEN])
    levels: list[int] = np.unique(np.searchsorted(_POWERS, lengths, side="right") - 1).tolist()
    return levels


def _count(tables: Tables, table: str) -> int:
    return sum(batch.num_rows for _, batch in tables(table))
