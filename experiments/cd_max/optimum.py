"""A few nodes, for which integer programming finds the best overlay that there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vizpub.analytics.comparison.estimates import mean
from vizpub.experiments.formatting import UNKNOWN, estimate_text, markdown_table
from vizpub.experiments.workers import map_in_processes
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, construct
from vizpub.simulators.designs.bounds import (
    fewest_edges,
    least_edges,
    least_maximum_of_stars,
    smallest_maximum_of_stars,
)
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.world.subscriptions import UniformWorkload

_NODES, _TOPICS, _EACH = 12, 10, 3
_SEEDS = {"small": 3, "full": 10}
BOUND, BEST = "lower bound", "optimum"


@dataclass(frozen=True)
class SmallOverlays:
    """Edges and maximum degree of everything on the subscriptions of one seed, by name.

    The optima are two overlays: one of any kind has the fewest edges, a star overlay the
    smallest maximum degree.
    """

    edges: dict[str, int]
    maximum: dict[str, int]


def measure_overlays(seed: int) -> SmallOverlays:
    """The bounds, the optima and every algorithm."""
    subscriptions = UniformWorkload(_TOPICS, _EACH).subscriptions(_NODES, stream(seed, "workload"))
    interests = Interests([subscriptions.of(node) for node in range(_NODES)], _TOPICS)
    degrees = {
        name: [len(peers) for peers in construct(Design(name), interests).neighbours]
        for name in ALGORITHMS
    }
    return SmallOverlays(
        {BOUND: least_edges(interests), BEST: fewest_edges(interests)}
        | {name: sum(overlay_degrees) // 2 for name, overlay_degrees in degrees.items()},
        {BOUND: least_maximum_of_stars(interests), BEST: smallest_maximum_of_stars(interests)}
        | {name: max(overlay_degrees) for name, overlay_degrees in degrees.items()},
    )


def measure_optimum(scale: str, processes: int) -> list[SmallOverlays]:
    """All seeds of a scale."""
    return map_in_processes(measure_overlays, range(1, _SEEDS[scale] + 1), processes)


def report_lines(results: Sequence[SmallOverlays]) -> Iterator[str]:
    """The section of the report."""
    yield (
        f"{_NODES} nodes, {_TOPICS} topics, {_EACH} each. The optimum, by integer programming, is "
        "the fewest edges of any overlay in which every topic is connected, and the smallest "
        "maximum degree of any star overlay (GM builds none). Means over the seeds with Student's "
        "intervals of 95 %; in brackets, the difference from the optimum."
    )
    yield ""
    rows = []
    for name in results[0].edges:
        edges = _beside_optimum([result.edges for result in results], name)
        maximum = (
            UNKNOWN
            if name == "gm"
            else _beside_optimum([result.maximum for result in results], name)
        )
        rows.append((name, edges, maximum))
    yield from markdown_table(("", "edges", "maximum degree of stars"), rows)


def _beside_optimum(values: Sequence[dict[str, int]], name: str) -> str:
    text = estimate_text(mean([float(values_of_seed[name]) for values_of_seed in values]))
    excess = (
        sum(values_of_seed[name] for values_of_seed in values)
        / sum(values_of_seed[BEST] for values_of_seed in values)
        - 1
    )
    return text if name == BEST else f"{text} ({excess:+.0%})"
