"""Counts the events of each network, and keeps what was counted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from vizpub.analytics.prediction.message_passing import LinkGraph, predict_spread
from vizpub.analytics.prediction.percolation import expected_spread as spread_of
from vizpub.experiments.gossip.points import EVENTS, HUBS, GossipPoint, NetworkCase, degrees_of
from vizpub.ingest.spark.tasks import run_in_tasks
from vizpub.model.arrays import Int64s
from vizpub.model.progress import Progress, silent
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.protocols.broadcast.topologies import join_ends
from vizpub.simulators.protocols.gossip.events import (
    Adjacency,
    Bools,
    Spreading,
    adjacency,
    disseminate,
)

SIZES = 200
"""Cascades up to this size are counted one by one."""


@dataclass(frozen=True)
class NetworkMeasures:
    """The events of a network at a point."""

    topology: str
    peers: int
    seed: int
    sigma: float
    gamma: float
    receivers: float
    """Mean, with the publisher."""
    receivers_sd: float
    """Standard deviation over the events."""
    subscribers: float
    """Mean of those among them that subscribe."""
    percolated: int | None
    """Events that reached more than half of what a percolating one should; null below the
    threshold."""
    receivers_then: float | None
    """Mean of those; null without any."""
    subscribers_then: float | None
    """Share of all subscribers that those reached, as a mean."""
    sent: float
    """Mean copies of an event."""
    offered: int
    passed: int
    """Coins for copies to those that do not subscribe, and how many let a copy through."""
    component: float
    """Mean peers in the component of the publisher."""
    ends: int
    """Ends of links that were drawn, before loops and double links were erased."""
    largest: int
    """The largest degree that was drawn."""
    hops: int
    """Links of the longest way of an event."""
    seconds: float
    """Processor time of the events."""
    predicted: float | None
    """Mean receivers by message passing on this network; null where it was not computed."""
    cascades: tuple[int, ...]
    """Events that reached 0, 1, … peers."""

    @property
    def point(self) -> GossipPoint:
        """Sigma and gamma."""
        return GossipPoint(self.sigma, self.gamma)


def measure_network(world: NetworkCase) -> list[NetworkMeasures]:
    """All points of a network; the same publishers, and the same coins, at each. The TTL never
    ends an event, as in the formulas.
    """
    numbers = np.random.default_rng(stream(world.seed, world.topology).getrandbits(64))
    degrees = world.graph.degrees(world.peers, numbers)
    network = adjacency(join_ends(degrees, numbers), world.peers)
    publishers = numbers.integers(0, world.peers, EVENTS)
    draws = numbers.random(world.peers)
    about: dict[str, Any] = {
        "topology": world.topology,
        "peers": world.peers,
        "seed": world.seed,
        "component": float(_component_sizes(network)[publishers].mean()),
        "ends": int(degrees.sum()),
        "largest": int(degrees.max()),
    }
    measures = []
    for point in world.points:
        spreading = Spreading(point.gamma, world.peers, world.seed)
        counts = _counted(network, draws < point.sigma, spreading, publishers)
        predicted = None
        if world.topology == HUBS and world.seed == 1:
            predicted = _predict_receivers(network, draws < point.sigma, point.gamma)
        values = _summarize(world, point, counts, int(np.count_nonzero(draws < point.sigma)))
        measures.append(NetworkMeasures(**about, **point._asdict(), **values, predicted=predicted))
    return measures


def _component_sizes(network: Adjacency) -> Int64s:
    """The number of peers in the component of each."""
    ones = np.ones(network.others.size, np.int8)
    links = csr_array((ones, network.others, network.begins), shape=(network.peers, network.peers))
    _, component = connected_components(links, directed=False)
    sizes: Int64s = np.bincount(component)[component]
    return sizes


def _counted(
    network: Adjacency, wants: Bools, spreading: Spreading, publishers: Int64s
) -> dict[str, Int64s]:
    start = time.process_time()
    counts = disseminate(network, wants, spreading, publishers)
    return counts | {"seconds": np.array([time.process_time() - start])}


def _predict_receivers(network: Adjacency, wants: Bools, gamma: float) -> float:
    src = np.repeat(np.arange(network.peers), network.degrees)
    overlay = LinkGraph(network.peers, src, network.others.astype(np.int64))
    return float(predict_spread(overlay, wants.astype(np.float64), gamma).receivers.mean())


def _summarize(
    case: NetworkCase, point: GossipPoint, counts: dict[str, Int64s], subscribers: int
) -> dict[str, Any]:
    reached, wanted = counts["receivers"], counts["subscribers"]
    expected = spread_of(degrees_of(case.topology, case.peers), *point).receivers
    large = reached > expected * case.peers / 2
    any_large = expected > 0 and bool(large.any())
    return {
        "receivers": float(reached.mean()),
        "receivers_sd": float(reached.std(ddof=1)),
        "subscribers": float(wanted.mean()),
        "percolated": int(np.count_nonzero(large)) if expected else None,
        "receivers_then": float(reached[large].mean()) if any_large else None,
        "subscribers_then": (
            float(wanted[large].mean() / subscribers) if any_large and subscribers else None
        ),
        "sent": float(counts["sent"].mean()),
        "offered": int(counts["offered"].sum()),
        "passed": int(counts["passed"].sum()),
        "hops": int(counts["hops"].max()),
        "seconds": float(counts["seconds"][0]),
        "cascades": tuple(np.bincount(reached[reached <= SIZES]).tolist()),
    }


def measure_networks(
    cases: Sequence[NetworkCase],
    path: Path,
    scratch: Path,
    *,
    master: str | None = None,
    progress: Progress = silent,
) -> list[NetworkMeasures]:
    """Measure all networks, a Spark task each, or take from the file `kept` what was measured
    before; an interruption loses the networks of one topology and size.
    """
    measures = _read_measures(path, cases)
    batches: dict[tuple[str, int], list[NetworkCase]] = {}
    for world in cases:
        if world not in measures:
            batches.setdefault((world.topology, world.peers), []).append(world)
    for place, (about, batch) in enumerate(batches.items()):
        progress("networks", place, len(batches), f"{about[0]}, {about[1]:,} peers")
        rows = run_in_tasks(measure_network, batch, step="networks", scratch=scratch, master=master)
        with path.open("a", encoding="utf-8") as stream_out:
            for world, of_world in zip(batch, rows, strict=True):
                measures[world] = of_world
                line = {"points": world.points, "rows": [asdict(row) for row in of_world]}
                stream_out.write(json.dumps(line) + "\n")
    return [row for world in cases for row in measures[world]]


def _read_measures(
    path: Path, cases: Sequence[NetworkCase]
) -> dict[NetworkCase, list[NetworkMeasures]]:
    measures = {world: rows for rows, world in _read_networks(path)}
    return {world: measures[world] for world in cases if world in measures}


def _read_networks(path: Path) -> Iterator[tuple[list[NetworkMeasures], NetworkCase]]:
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # the last line of a run that was killed
            continue
        rows = [
            NetworkMeasures(**{**row, "cascades": tuple(row["cascades"])}) for row in record["rows"]
        ]
        points = tuple(GossipPoint(*point) for point in record["points"])
        yield rows, NetworkCase(rows[0].topology, rows[0].peers, rows[0].seed, points)
