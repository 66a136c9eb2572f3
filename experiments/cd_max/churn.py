"""Overlays under churn: repaired at every event, and constructed anew at every interval."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from vizpub.analytics.comparison.estimates import mean
from vizpub.experiments.cd_max.measuring import OverlayCase
from vizpub.experiments.formatting import estimate_text, markdown_table, number_text
from vizpub.experiments.workers import map_in_processes
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.designs.upkeep import Upkeep
from vizpub.simulators.engine.clock import stream

_ALGORITHMS = ("cd-oda-ii", "cd-max", "cd-max-ref")
_EVENTS, _PER_INTERVAL = 1000, 50
_NODES = {"small": (200,), "full": (200, 1000)}
_SEEDS = {"small": 3, "full": 5}
_AWAY = 0.3
"""Share of the events at a node that is up in which it goes; otherwise it changes one topic."""

_Edges = set[tuple[int, int]]


@dataclass(frozen=True)
class StrategyCosts:
    """What one of the two ways costs, per event, and gives, as a mean over the intervals."""

    maximum: float
    average: float
    """Degrees; the average is over the nodes that are up."""
    changed: float
    """Edges that came or went, per event."""
    seconds: float
    """Processor time per event."""


@dataclass(frozen=True)
class ChurnRun:
    """A run of events, in both ways."""

    nodes: int
    algorithm: str
    repaired: StrategyCosts
    rebuilt: StrategyCosts


def simulate_churn(parameters: tuple[int, str, int]) -> ChurnRun:
    """The two ways with (nodes, algorithm, seed)."""
    nodes, algorithm, seed = parameters
    world = OverlayCase("nodes", nodes, "uniform", seed)
    interests, random = world.interests(), stream(seed, "churn of topics")
    design = Design(algorithm)
    upkeep = Upkeep(design, interests)
    edges = _edges(upkeep.overlay.neighbours)
    spent, changed = [0.0, 0.0], [0, 0]
    degrees: tuple[list[list[int]], list[list[int]]] = ([], [])
    for event in range(1, _EVENTS + 1):
        node, topics = _draw_event(interests, world, random)
        start = time.process_time()
        changed[0] += upkeep.change(node, topics)
        spent[0] += time.process_time() - start
        if event % _PER_INTERVAL == 0:
            start = time.process_time()
            rebuilt_stars = design.stars(interests)
            spent[1] += time.process_time() - start
            rebuilt_edges = _edges(rebuilt_stars.neighbours)
            changed[1] += len(edges ^ rebuilt_edges)
            edges = rebuilt_edges
            up = [node for node, node_topics in enumerate(interests.of) if node_topics]
            degrees[0].append([upkeep.stars.degree(node) for node in up])
            degrees[1].append([rebuilt_stars.degree(node) for node in up])
    repaired, rebuilt = (
        _strategy_costs(*args) for args in zip(degrees, changed, spent, strict=True)
    )
    return ChurnRun(nodes, algorithm, repaired, rebuilt)


def _draw_event(interests: Interests, world: OverlayCase, random: Random) -> tuple[int, set[int]]:
    """A node comes, goes, or changes one topic; it never gives up its last."""
    node = random.randrange(world.nodes)
    topics = set(interests.of[node])
    if not topics:
        return node, set(random.sample(range(world.topics), world.each))
    if random.random() < _AWAY:
        return node, set()
    return node, topics ^ {random.randrange(world.topics)} or topics


def _edges(neighbours: Sequence[Sequence[int]]) -> _Edges:
    return {(node, peer) for node, peers in enumerate(neighbours) for peer in peers if node < peer}


def _strategy_costs(
    degrees: Sequence[Sequence[int]], changed: int, seconds: float
) -> StrategyCosts:
    count = len(degrees)
    return StrategyCosts(
        sum(map(max, degrees)) / count,
        sum(sum(degrees_at) / len(degrees_at) for degrees_at in degrees) / count,
        changed / _EVENTS,
        seconds / _EVENTS,
    )


def measure_churn(scale: str, processes: int) -> list[ChurnRun]:
    """All runs of a scale."""
    parameters = [
        (nodes, algorithm, seed)
        for nodes in _NODES[scale]
        for algorithm in _ALGORITHMS
        for seed in range(1, _SEEDS[scale] + 1)
    ]
    return map_in_processes(simulate_churn, parameters, processes)


def report_lines(results: Sequence[ChurnRun]) -> Iterator[str]:
    """The section of the report."""
    yield (
        f"{_EVENTS:,} events at random nodes: one that is away comes with new topics; one that is "
        f"up goes ({_AWAY:.0%}) or takes or ends a subscription. Repaired at every event, or "
        f"constructed anew every {_PER_INTERVAL} events. Means over the seeds with Student's "
        "intervals of 95 %; degrees at the ends of the intervals."
    )
    yield ""
    heads = ("nodes", "algorithm", "", "maximum degree", "average degree", "edges changed an event",
             "ms an event")  # fmt: skip
    rows = []
    for nodes, algorithm in dict.fromkeys((result.nodes, result.algorithm) for result in results):
        matching = [
            result for result in results if (result.nodes, result.algorithm) == (nodes, algorithm)
        ]
        for name in ("repaired", "rebuilt"):
            costs: list[StrategyCosts] = [getattr(result, name) for result in matching]
            texts = [
                estimate_text(mean([getattr(cost, measure) * factor for cost in costs]))
                for measure, factor in
                (("maximum", 1), ("average", 1), ("changed", 1), ("seconds", 1000))
            ]  # fmt: skip
            rows.append((number_text(nodes), algorithm, name, *texts))
    yield from markdown_table(heads, rows)
