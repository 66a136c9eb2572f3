"""Overlays under churn: repaired at every event, and constructed again at every interval."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from vizpub.experiments.cd_max.measuring import OverlayCase
from vizpub.experiments.formatting import markdown_table, number_text
from vizpub.experiments.measured import rows_of_means
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
STRATEGIES = ("repaired", "rebuilt")


@dataclass(frozen=True)
class ChurnCosts:
    """What one of the two ways costs, and gives as a mean over the intervals."""

    nodes: int
    algorithm: str
    strategy: str
    seed: int
    maximum: float
    average: float
    """Degrees; the average is over the nodes that are up."""
    changed: float
    """Edges that came or went, per event."""
    milliseconds: float
    """Processor time per event."""


def simulate_churn(parameters: tuple[int, str, int]) -> list[ChurnCosts]:
    """Repair and rebuild an overlay on the same events, with (nodes, algorithm, seed)."""
    nodes, algorithm, seed = parameters
    case = OverlayCase("nodes", nodes, "uniform", seed)
    interests, random = case.interests(), stream(seed, "churn of topics")
    design = Design(algorithm)
    upkeep = Upkeep(design, interests)
    edges = _edges(upkeep.overlay.neighbours)
    seconds, changed = dict.fromkeys(STRATEGIES, 0.0), dict.fromkeys(STRATEGIES, 0)
    degrees: dict[str, list[list[int]]] = {strategy: [] for strategy in STRATEGIES}
    for event in range(1, _EVENTS + 1):
        node, topics = _draw_event(interests, case, random)
        start = time.process_time()
        changed["repaired"] += upkeep.change(node, topics)
        seconds["repaired"] += time.process_time() - start
        if event % _PER_INTERVAL == 0:
            start = time.process_time()
            rebuilt_stars = design.stars(interests)
            seconds["rebuilt"] += time.process_time() - start
            rebuilt_edges = _edges(rebuilt_stars.neighbours)
            changed["rebuilt"] += len(edges ^ rebuilt_edges)
            edges = rebuilt_edges
            up = [node for node, node_topics in enumerate(interests.of) if node_topics]
            for strategy, stars in zip(STRATEGIES, (upkeep.stars, rebuilt_stars), strict=True):
                degrees[strategy].append([stars.degree(node) for node in up])
    return [
        ChurnCosts(
            nodes,
            algorithm,
            strategy,
            seed,
            maximum=fmean(map(max, degrees[strategy])),
            average=fmean(map(fmean, degrees[strategy])),
            changed=changed[strategy] / _EVENTS,
            milliseconds=1000 * seconds[strategy] / _EVENTS,
        )
        for strategy in STRATEGIES
    ]


def _draw_event(interests: Interests, case: OverlayCase, random: Random) -> tuple[int, set[int]]:
    """A node comes, goes, or changes one topic; it never gives up its last."""
    node = random.randrange(case.nodes)
    topics = set(interests.of[node])
    if not topics:
        return node, set(random.sample(range(case.topics), case.each))
    if random.random() < _AWAY:
        return node, set()
    return node, topics ^ {random.randrange(case.topics)} or topics


def _edges(neighbours: Sequence[Sequence[int]]) -> _Edges:
    return {(node, peer) for node, peers in enumerate(neighbours) for peer in peers if node < peer}


def measure_churn(scale: str, processes: int) -> list[ChurnCosts]:
    """All runs of a scale."""
    parameters = [
        (nodes, algorithm, seed)
        for nodes in _NODES[scale]
        for algorithm in _ALGORITHMS
        for seed in range(1, _SEEDS[scale] + 1)
    ]
    costs = map_in_processes(simulate_churn, parameters, processes)
    return [cost for costs_of_run in costs for cost in costs_of_run]


def report_lines(results: Sequence[ChurnCosts]) -> Iterator[str]:
    """The section of the report."""
    yield (
        f"{_EVENTS:,} events at random nodes: one that is away comes with new topics; one that is "
        f"up goes ({_AWAY:.0%}) or takes or ends a subscription. Repaired at every event, or "
        f"constructed again every {_PER_INTERVAL} events. Means over the seeds with Student's "
        "intervals of 95 %; degrees at the ends of the intervals."
    )
    yield ""
    heads = ("nodes", "algorithm", "", "maximum degree", "average degree", "edges changed an event",
             "ms an event")  # fmt: skip
    groups: dict[tuple[str, ...], list[ChurnCosts]] = {}
    for costs in results:
        group = (number_text(costs.nodes), costs.algorithm, costs.strategy)
        groups.setdefault(group, []).append(costs)
    measures = ("maximum", "average", "changed", "milliseconds")
    yield from markdown_table(heads, rows_of_means(groups, measures))
