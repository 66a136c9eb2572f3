"""Counts the events of each network, and keeps what was counted."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from vizpub.analytics.prediction.message_passing import LinkGraph, predict_spread
from vizpub.analytics.prediction.percolation import expected_spread as spread_of
from vizpub.experiments.gossip.points import (
    EVENTS,
    HUBS,
    GossipPoint,
    NetworkCase,
    degrees_of,
    network_cases,
    points_above,
)
from vizpub.experiments.measured import MeasuredFile, MeasuringRequest
from vizpub.model.arrays import Int64s
from vizpub.runstore.leftovers import SCRATCH
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.engine.costs import Costs
from vizpub.simulators.protocols.broadcast.topologies import join_ends
from vizpub.simulators.protocols.gossip.events import (
    Spreading,
    adjacency,
    disseminate,
)

_PEER_S, _COPY_S = 5e-8, 6.5e-9
"""Processor time of a peer at a point, and of an end of a link in an event above the threshold,
measured with 1,000 to 100,000 peers of four topologies.
"""
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

    @property
    def percolated_share(self) -> float:
        """Share of the events that percolated."""
        return (self.percolated or 0) / EVENTS


Rows = list[NetworkMeasures]


def measure_network(case: NetworkCase) -> Rows:
    """All points of a network; the same publishers, and the same coins, at each. The TTL never
    ends an event, as in the formulas.
    """
    numbers = np.random.default_rng(stream(case.seed, case.topology).getrandbits(64))
    degrees = case.graph.degrees(case.peers, numbers)
    network = adjacency(join_ends(degrees, numbers), case.peers)
    publishers = numbers.integers(0, case.peers, EVENTS)
    draws = numbers.random(case.peers)
    ones = np.ones(network.others.size, np.int8)
    links = csr_array((ones, network.others, network.begins), shape=(network.peers, network.peers))
    _, component = connected_components(links, directed=False)
    sizes = np.bincount(component)[component]
    about: dict[str, Any] = {
        "topology": case.topology,
        "peers": case.peers,
        "seed": case.seed,
        "component": float(sizes[publishers].mean()),
        "ends": int(degrees.sum()),
        "largest": int(degrees.max()),
    }
    measures = []
    for point in case.points:
        wants = draws < point.sigma
        start = time.process_time()
        counts = disseminate(
            network, wants, Spreading(point.gamma, case.peers, case.seed), publishers
        )
        about["seconds"] = time.process_time() - start
        predicted = None
        if case.topology == HUBS and case.seed == 1:
            src = np.repeat(np.arange(network.peers), network.degrees)
            graph = LinkGraph(network.peers, src, network.others.astype(np.int64))
            spread = predict_spread(graph, wants.astype(np.float64), point.gamma)
            predicted = float(spread.receivers.mean())
        values = _summarize(case, point, counts, int(np.count_nonzero(wants)))
        measures.append(NetworkMeasures(**about, **point._asdict(), **values, predicted=predicted))
    return measures


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
        "cascades": tuple(np.bincount(reached[reached <= SIZES]).tolist()),
    }


def measured_file(request: MeasuringRequest) -> MeasuredFile[NetworkCase, NetworkMeasures]:
    """The file of the networks that were measured."""
    return MeasuredFile(request.out / "networks.jsonl", NetworkCase, NetworkMeasures)


def estimate(request: MeasuringRequest) -> Costs:
    """Estimate the networks that are missing; what takes time are events that percolate."""
    above, seconds = {*points_above()}, 0.0
    cases = network_cases(request.scale, request.seeds)
    for case in measured_file(request).list_missing(cases, request):
        copies = EVENTS * len(above & {*case.points}) * degrees_of(case.topology).mean
        seconds += case.peers * (len(case.points) * _PEER_S + copies * _COPY_S)
    return request.costs(seconds)


def measure_networks(
    cases: Sequence[NetworkCase], request: MeasuringRequest
) -> list[NetworkMeasures]:
    """Measure the networks that were not measured before, a Spark task each. An interruption loses
    those of one topology and size.
    """
    from vizpub.ingest.spark.tasks import run_in_tasks

    def measure(missing: Sequence[NetworkCase]) -> Generator[tuple[NetworkCase, Rows]]:
        scratch = request.out / "workspace" / SCRATCH
        for _, alike in groupby(missing, lambda case: (case.topology, case.peers)):
            batch = list(alike)
            rows = run_in_tasks(
                measure_network, batch, step="networks", scratch=scratch, master=request.master
            )
            yield from zip(batch, rows, strict=True)

    return measured_file(request).complete(
        cases, measure, lambda case: f"{case.topology}, {case.peers:,} peers", request
    )
