"""Overlays under churn: repaired at every event, and constructed anew at every interval."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from vizpub.analytics.comparison.estimates import mean
from vizpub.experiments.cd_max.measuring import World
from vizpub.experiments.formatting import estimate_text, markdown, number
from vizpub.experiments.workers import workers
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
class Way:
    """What one of the two ways costs, per event, and gives, as a mean over the intervals."""

    maximum: float
    average: float
    """Degrees; the average is over the nodes that are up."""
    changed: float
    """Edges that came or went, per event."""
    seconds: float
    """Processor time per event."""


@dataclass(frozen=True)
class Churned:
    """A run of events, in both ways."""

    nodes: int
    algorithm: str
    repaired: Way
    rebuilt: Way


def churned(given: tuple[int, str, int]) -> Churned:
    """The two ways with (nodes, algorithm, seed)."""
    nodes, algorithm, seed = given
    world = World("nodes", nodes, "uniform", seed)
    interests, random = world.interests(), stream(seed, "churn of topics")
    design = Design(algorithm)
    kept = Upkeep(design, interests)
    edges = _edges(kept.overlay.neighbours)
    spent, changed = [0.0, 0.0], [0, 0]
    degrees: tuple[list[list[int]], list[list[int]]] = ([], [])
    for event in range(1, _EVENTS + 1):
        node, topics = _event(interests, world, random)
        begun = time.process_time()
        changed[0] += kept.change(node, topics)
        spent[0] += time.process_time() - begun
        if event % _PER_INTERVAL == 0:
            begun = time.process_time()
            anew = design.stars(interests)
            spent[1] += time.process_time() - begun
            now = _edges(anew.neighbours)
            changed[1] += len(edges ^ now)
            edges = now
            up = [node for node, own in enumerate(interests.of) if own]
            degrees[0].append([kept.stars.degree(node) for node in up])
            degrees[1].append([anew.degree(node) for node in up])
    repaired, rebuilt = (_way(*one) for one in zip(degrees, changed, spent, strict=True))
    return Churned(nodes, algorithm, repaired, rebuilt)


def _event(interests: Interests, world: World, random: Random) -> tuple[int, set[int]]:
    """A node comes, goes, or changes one topic; it never gives up its last."""
    node = random.randrange(world.nodes)
    own = set(interests.of[node])
    if not own:
        return node, set(random.sample(range(world.topics), world.each))
    if random.random() < _AWAY:
        return node, set()
    return node, own ^ {random.randrange(world.topics)} or own


def _edges(neighbours: Sequence[Sequence[int]]) -> _Edges:
    return {(one, other) for one, known in enumerate(neighbours) for other in known if one < other}


def _way(degrees: Sequence[Sequence[int]], changed: int, seconds: float) -> Way:
    count = len(degrees)
    return Way(
        sum(map(max, degrees)) / count,
        sum(sum(one) / len(one) for one in degrees) / count,
        changed / _EVENTS,
        seconds / _EVENTS,
    )


def churn(scale: str, processes: int) -> list[Churned]:
    """All runs of a scale."""
    wanted = [
        (nodes, algorithm, seed)
        for nodes in _NODES[scale]
        for algorithm in _ALGORITHMS
        for seed in range(1, _SEEDS[scale] + 1)
    ]
    with workers(processes) as pool:
        return list(pool.map(churned, wanted))


def lines(found: Sequence[Churned]) -> Iterator[str]:
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
    for nodes, algorithm in dict.fromkeys((one.nodes, one.algorithm) for one in found):
        own = [one for one in found if (one.nodes, one.algorithm) == (nodes, algorithm)]
        for name in ("repaired", "rebuilt"):
            ways: list[Way] = [getattr(one, name) for one in own]
            texts = [
                estimate_text(mean([getattr(way, measure) * factor for way in ways]))
                for measure, factor in
                (("maximum", 1), ("average", 1), ("changed", 1), ("seconds", 1000))
            ]  # fmt: skip
            rows.append((number(nodes), algorithm, name, *texts))
    yield from markdown(heads, rows)
