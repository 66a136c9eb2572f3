"""Constructs the overlays of the paper's experiments, and measures them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vizpub.experiments.measured import MeasuredFile, MeasuringRequest
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, construct
from vizpub.simulators.designs.bounds import least_edges, least_maximum_of_stars
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.engine.costs import Costs
from vizpub.simulators.world.subscriptions import UniformWorkload, Workload, ZipfWorkload

Axis = Literal["nodes", "topics", "subscription_size"]
"""What the paper varies."""
Law = Literal["uniform", "zipf"]
LAWS: tuple[Law, ...] = ("uniform", "zipf")
_EXPONENT = 0.5
"""What the paper says that it took."""
_POINTS: dict[str, dict[Axis, tuple[int, ...]]] = {
    "small": {"nodes": (200, 500), "topics": (200, 400), "subscription_size": (15, 25, 35)},
    "full": {
        "nodes": (200, 300, 400, 500, 750, 1000, 2500, 5000),
        "topics": (200, 250, 300, 350, 400),
        "subscription_size": (15, 20, 25, 30, 35),
    },
}
_SEEDS = {"small": 5, "full": 10}
_NODE_S, _PAIR_S = 2e-4, 1.5e-7
"""Processor time of a case for a node and for two nodes, measured with 200 to 5,000."""
_BEYOND_S = {"small": 6.0, "full": 120.0}
_BEYOND_BYTES = {"small": 0, "full": 700_000_000}
"""Of churn, growth, failures and the optimum, measured: most is one overlay's, which grows."""


@dataclass(frozen=True, order=True)
class OverlayCase:
    """The subscriptions of one overlay."""

    axis: Axis
    x: int
    law: Law
    seed: int

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return {"nodes": self.x, "topics": 100, "subscription_size": 200}[self.axis]

    @property
    def topics(self) -> int:
        """Number of topics."""
        return self.x if self.axis == "topics" else 100

    @property
    def each(self) -> int:
        """Topics of each node."""
        return self.x if self.axis == "subscription_size" else 10

    def interests(self) -> Interests:
        """Draw the subscriptions as `vizpub lab construct --workload` does with this seed."""
        law: Workload = UniformWorkload(self.topics, self.each)
        if self.law == "zipf":
            law = ZipfWorkload(self.topics, self.each, _EXPONENT)
        subscriptions = law.subscriptions(self.nodes, stream(self.seed, "workload"))
        return Interests([subscriptions.of(node) for node in range(self.nodes)], self.topics)


@dataclass(frozen=True)
class OverlayMeasures:
    """An overlay, and the bounds that hold for its subscriptions."""

    case: OverlayCase
    algorithm: str
    average: float
    """Average degree."""
    maximum: int
    """Maximum degree."""
    seconds: float
    """Processor time of the construction."""
    least_average: float
    """Below which no topic-connected overlay is."""
    least_maximum: int
    """Below which no star overlay is."""

    @property
    def seed(self) -> int:
        """The seed of the subscriptions."""
        return self.case.seed


def overlay_cases(scale: str, seeds: int | None = None) -> list[OverlayCase]:
    """All subscriptions of a scale, those of few nodes first."""
    numbers = range(1, 1 + (_SEEDS[scale] if seeds is None else seeds))
    cases = [
        OverlayCase(axis, x, law, seed)
        for axis, places in _POINTS[scale].items()
        for x in places
        for law in LAWS
        for seed in numbers
    ]
    return sorted(cases, key=lambda case: (case.nodes, case))


def measure_case(case: OverlayCase) -> list[OverlayMeasures]:
    """Every algorithm on the same subscriptions."""
    interests = case.interests()
    bounds = 2 * least_edges(interests) / case.nodes, least_maximum_of_stars(interests)
    construct(Design("gm"), Interests([[0], [0]], 1))  # loads compiled code
    measures = []
    for algorithm in ALGORITHMS:
        start = time.process_time()
        overlay = construct(Design(algorithm), interests)
        seconds = time.process_time() - start
        degrees = [len(peers) for peers in overlay.neighbours]
        average = sum(degrees) / case.nodes
        measures.append(OverlayMeasures(case, algorithm, average, max(degrees), seconds, *bounds))
    return measures


def measured_file(request: MeasuringRequest) -> MeasuredFile[OverlayCase, OverlayMeasures]:
    """The file of the cases that were measured."""
    return MeasuredFile(request.out / "constructed.jsonl", OverlayCase, OverlayMeasures)


def estimate(request: MeasuringRequest) -> Costs:
    """Estimate the overlays that are missing, and what goes beyond the paper, in processes."""
    cases = overlay_cases(request.scale, request.seeds)
    missing = measured_file(request).list_missing(cases, request)
    seconds = sum(case.nodes * _NODE_S + case.nodes**2 * _PAIR_S for case in missing)
    return request.costs(seconds, _BEYOND_S[request.scale], _BEYOND_BYTES[request.scale])


def measure_cases(cases: Sequence[OverlayCase], request: MeasuringRequest) -> list[OverlayMeasures]:
    """Measure the cases that were not measured before, in processes."""
    return measured_file(request).complete_in_processes(
        cases, measure_case, lambda case: f"{case.nodes:,} nodes", request
    )
