"""A few nodes, for which integer programming finds the best overlay that there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vizpub.analytics.comparison.estimates import mean
from vizpub.experiments.formatting import UNKNOWN, estimate_text, markdown
from vizpub.experiments.workers import workers
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, construct
from vizpub.simulators.designs.bounds import (
    fewest_edges,
    least_edges,
    least_maximum_of_stars,
    smallest_maximum_of_stars,
)
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.world.subscriptions import Uniform

_NODES, _TOPICS, _EACH = 12, 10, 3
_SEEDS = {"small": 3, "full": 10}
BOUND, BEST = "lower bound", "optimum"


@dataclass(frozen=True)
class Small:
    """Edges and maximum degree of everything on the subscriptions of one seed, by name.

    The optima are two overlays: one of any kind has the fewest edges, a star overlay the
    smallest maximum degree.
    """

    edges: dict[str, int]
    maximum: dict[str, int]


def measure(seed: int) -> Small:
    """The bounds, the optima and every algorithm."""
    drawn = Uniform(_TOPICS, _EACH).subscriptions(_NODES, stream(seed, "workload"))
    interests = Interests([drawn.of(node) for node in range(_NODES)], _TOPICS)
    degrees = {
        name: [len(known) for known in construct(Design(name), interests).neighbours]
        for name in ALGORITHMS
    }
    return Small(
        {BOUND: least_edges(interests), BEST: fewest_edges(interests)}
        | {name: sum(own) // 2 for name, own in degrees.items()},
        {BOUND: least_maximum_of_stars(interests), BEST: smallest_maximum_of_stars(interests)}
        | {name: max(own) for name, own in degrees.items()},
    )


def optimum(scale: str, processes: int) -> list[Small]:
    """All seeds of a scale."""
    with workers(processes) as pool:
        return list(pool.map(measure, range(1, _SEEDS[scale] + 1)))


def lines(found: Sequence[Small]) -> Iterator[str]:
    """The section of the report."""
    yield (
        f"{_NODES} nodes, {_TOPICS} topics, {_EACH} each. The optimum, by integer programming, is "
        "the fewest edges of any overlay in which every topic is connected, and the smallest "
        "maximum degree of any star overlay (GM builds none). Means over the seeds with Student's "
        "intervals of 95 %; in brackets, the difference from the optimum."
    )
    yield ""
    rows = []
    for name in found[0].edges:
        edges = _beside([one.edges for one in found], name)
        maximum = UNKNOWN if name == "gm" else _beside([one.maximum for one in found], name)
        rows.append((name, edges, maximum))
    yield from markdown(("", "edges", "maximum degree of stars"), rows)


def _beside(values: Sequence[dict[str, int]], name: str) -> str:
    text = estimate_text(mean([float(one[name]) for one in values]))
    away = sum(one[name] for one in values) / sum(one[BEST] for one in values) - 1
    return text if name == BEST else f"{text} ({away:+.0%})"
