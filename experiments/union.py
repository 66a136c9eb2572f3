"""The union graph of a run: all peers and links of a window as one static graph.

Gephi's statistics are of this graph unless a part of the timeline is selected. Beside it, path
lengths of the overlay at a time whose links can be walked both ways, as papers on peer sampling
measure them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.experiments.groups import Share, interval_range
from vizpub.questions.run import Run


@dataclass(frozen=True)
class UnionGraph:
    """Metrics of the graph of all peers and links that existed at some time in a window."""

    nodes: int
    links: int
    degree: float
    """Outgoing links per peer: E/N."""
    density: float
    clustering: float
    """Of the undirected graph; peers of degree < 2 count as 0."""
    diameter: float
    average_path_length: float
    """Mean hops over the connected ordered pairs; NaN if there are none."""
    weak_components: int
    strong_components: int


def union_graph(run: Run, during: Share) -> UnionGraph:
    """The union graph of a run, of the layers that its metrics count."""
    (first, last), k = interval_range(run.clock, during), run.clock.ticks_per_interval
    peers, src, dst = _existing(run, first * k, (last + 1) * k)
    measures = _measure_graph(peers, src, dst)
    pairs, distances = measures["reachable_peers"].sum(), measures["distance_sum"].sum()
    n = peers.size
    degree = float(measures["out_degree"].mean())
    return UnionGraph(
        nodes=n,
        links=int(measures["out_degree"].sum()),
        degree=degree,
        density=degree / (n - 1) if n > 1 else float("nan"),
        clustering=float(measures["clustering"].mean()),
        diameter=float(measures["eccentricity"].max()),
        average_path_length=float(distances / pairs) if pairs else float("nan"),
        weak_components=np.unique(measures["component"]).size,
        strong_components=np.unique(measures["strong_component"]).size,
    )


def undirected_path_length(run: Run, during: Share) -> float:
    """Mean hops over the connected pairs at the end of the window, along links of the layers that
    the metrics count, in either direction; NaN if no pair is connected.
    """
    tick = run.clock.sampling_tick(interval_range(run.clock, during)[1])
    peers, src, dst = _existing(run, tick, tick + 1)
    ends = np.concatenate([src, dst]), np.concatenate([dst, src])
    pairs = np.unique(np.stack(ends), axis=1)
    measures = _measure_graph(peers, pairs[0], pairs[1])
    reached = measures["reachable_peers"].sum()
    return float(measures["distance_sum"].sum() / reached) if reached else float("nan")


def _measure_graph(peers: np.ndarray, src: np.ndarray, dst: np.ndarray) -> dict[str, np.ndarray]:
    """The measures of the peers of a graph, by vizpub.analytics.blocks."""
    from vizpub.analytics.blocks import (
        LinkPeriods,
        PresencePeriods,
        SubscriptionPeriods,
        measure_block,
    )
    from vizpub.analytics.options import Measures

    none = np.empty(0, np.int32)
    begin, end = np.zeros_like, np.ones_like
    return measure_block(
        LinkPeriods(src, dst, begin(src), end(src)),
        PresencePeriods(peers, begin(peers), end(peers)),
        SubscriptionPeriods(none, none, none, none),
        0,
        0,
        Measures(betweenness=False, topics=False),
    ).peers


def _existing(run: Run, start: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The peers and the ends of the links that existed in the ticks `[start, end)`."""
    alive = (pc.field("valid_from") < end) & (pc.field("valid_to") > start)
    layers = run.facts.layers
    counted = alive if layers is None else alive & pc.field("layer").isin(layers)
    presence = run.stored.read("presence", ["peer"], alive)["peer"]
    links: pa.Table = run.stored.read("links", ["src", "dst"], counted)
    links = links.group_by(["src", "dst"]).aggregate([])
    return np.unique(presence.to_numpy()), links["src"].to_numpy(), links["dst"].to_numpy()
