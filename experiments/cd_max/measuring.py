"""Constructs the overlays of the paper's experiments, and measures them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from vizpub.experiments.workers import worker_pool
from vizpub.model.progress import Progress, silent
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, construct
from vizpub.simulators.designs.bounds import least_edges, least_maximum_of_stars
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.world.subscriptions import Uniform, Workload, Zipf

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
        """Draw the subscriptions as `vizpub construct --workload` does with this seed."""
        law: Workload = Uniform(self.topics, self.each)
        if self.law == "zipf":
            law = Zipf(self.topics, self.each, _EXPONENT)
        subscriptions = law.subscriptions(self.nodes, stream(self.seed, "workload"))
        return Interests([subscriptions.of(node) for node in range(self.nodes)], self.topics)


@dataclass(frozen=True)
class OverlayMeasures:
    """An overlay, and the bounds that hold for its subscriptions."""

    axis: Axis
    x: int
    law: Law
    seed: int
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
    def world(self) -> OverlayCase:
        """Its subscriptions."""
        return OverlayCase(self.axis, self.x, self.law, self.seed)


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


def measure_case(world: OverlayCase) -> list[OverlayMeasures]:
    """Every algorithm on the same subscriptions."""
    interests = world.interests()
    least = 2 * least_edges(interests) / world.nodes
    highest = least_maximum_of_stars(interests)
    construct(Design("gm"), Interests([[0], [0]], 1))  # loads compiled code
    measures = []
    for algorithm in ALGORITHMS:
        start = time.process_time()
        overlay = construct(Design(algorithm), interests)
        seconds = time.process_time() - start
        degrees = [len(peers) for peers in overlay.neighbours]
        average = sum(degrees) / world.nodes
        measures.append(
            OverlayMeasures(
                **asdict(world),
                algorithm=algorithm,
                average=average,
                maximum=max(degrees),
                seconds=seconds,
                least_average=least,
                least_maximum=highest,
            )
        )
    return measures


def measure_cases(
    cases: Sequence[OverlayCase], path: Path, processes: int, progress: Progress = silent
) -> list[OverlayMeasures]:
    """Measure all worlds, or take from the file `kept` what was measured before; an interruption
    loses nothing that is finished.
    """
    measures_by_case: dict[OverlayCase, list[OverlayMeasures]] = {}
    for row in _read_measures(path):
        measures_by_case.setdefault(row.world, []).append(row)
    missing = [world for world in cases if world not in measures_by_case]
    with worker_pool(processes) as pool, path.open("a", encoding="utf-8") as stream_out:
        running = [pool.submit(measure_case, world) for world in missing]
        for done, future in enumerate(as_completed(running), 1):
            rows = future.result()
            measures_by_case[rows[0].world] = rows
            stream_out.write(json.dumps([asdict(row) for row in rows]) + "\n")
            stream_out.flush()
            progress("construct", done, len(missing), f"{rows[0].world.nodes:,} nodes")
    return [row for world in cases for row in measures_by_case[world]]


def _read_measures(path: Path) -> Iterator[OverlayMeasures]:
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines():
        try:
            rows = json.loads(line)
        except ValueError:  # the last line of a run that was killed
            continue
        yield from (OverlayMeasures(**row) for row in rows)
