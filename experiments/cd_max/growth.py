"""An overlay that grows to a million nodes under churn, while topics come and go: repaired at every
event, beside overlays that are constructed anew now and then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from vizpub.experiments.formatting import markdown_table, number_text, size_text
from vizpub.experiments.measured import rows_of_means
from vizpub.experiments.workers import map_in_processes
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.growing import FlatUpkeep
from vizpub.simulators.designs.kernels import centres_of, edges_of
from vizpub.simulators.engine.clock import stream

_FIRST = 1_000
_SIZES = {"small": (1_000, 3_000, 10_000), "full": (1_000, 10_000, 100_000, 1_000_000)}
"""Nodes at which the overlay is looked at."""
_TOPICS = {"small": 1_000, "full": 10_000}
"""Topics that are there at a time."""
_SEEDS = {"small": 2, "full": 1}
_EACH = 10
_ALGORITHM = "cd-max-ref"
_CHURN = 0.5
"""Events of churn for each node that comes for the first time."""
_GONE = 0.02
"""Share of the topics that go from one size to the next."""


@dataclass(frozen=True)
class GrownOverlay:
    """An overlay at one size, repaired so far, beside one that is constructed anew."""

    nodes: int
    seed: int
    events: int
    """Since the size before."""
    maximum: int
    average: float
    """Degrees; the average is over the nodes that are up."""
    maximum_anew: int
    average_anew: float
    least_maximum: int
    """Below which no star overlay is: the subscribers of the largest topic but one."""
    changed: float
    """Edges that came or went, per event."""
    microseconds: float
    """Processor time of an event."""
    seconds_anew: float
    """Processor time of a construction."""
    bytes: int
    """Memory of the repaired overlay."""


class _Growth:
    """The overlay, and the topics that are there: a window that moves on, one by one."""

    def __init__(self, scale: str, seed: int) -> None:
        self.random: Random = stream(seed, "growth")
        self.there = range(_TOPICS[scale])
        steps = len(_SIZES[scale]) - 1
        self.gone = round(_GONE * len(self.there))
        first = FlatInterests.draw(_FIRST, len(self.there), _EACH, seed)
        topics = len(self.there) + self.gone * steps
        self.overlay = FlatUpkeep(Design(_ALGORITHM), first, _SIZES[scale][-1], topics)
        self.nodes, self.events, self.changed, self.seconds = _FIRST, 0, 0, 0.0

    def grow(self, nodes: int) -> None:
        """Let nodes come until there are so many, with churn and topics that go in between."""
        self.events, self.changed, self.seconds = 0, 0, 0.0
        left = nodes - self.nodes
        gone = {self.nodes + left * (at + 1) // (self.gone + 1) for at in range(self.gone)}
        while self.nodes < nodes:
            self.nodes += 1
            self._change(self.nodes - 1, self._draw(_EACH))
            if self.random.random() < _CHURN:
                self._churn(self.random.randrange(self.nodes))
            if self.nodes in gone:
                self._replace_topic()

    def _draw(self, number: int) -> set[int]:
        return set(self.random.sample(self.there, number))

    def _own(self, node: int) -> set[int]:
        return {topic for topic in self.overlay.own[node].tolist() if topic >= 0}

    def _churn(self, node: int) -> None:
        """A node that is away comes back with other topics; one that is up goes, or exchanges a
        topic.
        """
        own = self._own(node)
        if not own:
            self._change(node, self._draw(_EACH))
        elif self.random.random() < 0.5:
            self._change(node, set())
        else:
            self._exchange(node, self.random.choice(sorted(own)))

    def _exchange(self, node: int, topic: int) -> None:
        own = self._own(node)
        others = iter(lambda: self.random.choice(self.there), None)
        self._change(node, own - {topic} | {next(other for other in others if other not in own)})

    def _replace_topic(self) -> None:
        """The oldest topic goes, whose subscribers take others, and a new one comes."""
        oldest = self.there[0]
        self.there = range(oldest + 1, self.there.stop + 1)
        for node in sorted(self.overlay.subscribers(oldest).tolist()):
            self._exchange(node, oldest)

    def _change(self, node: int, topics: set[int]) -> None:
        start = time.process_time()
        self.changed += self.overlay.change(node, topics)
        self.seconds += time.process_time() - start
        self.events += 1


def grow(parameters: tuple[str, int]) -> list[GrownOverlay]:
    """Grow an overlay through the sizes of a scale, with (scale, seed)."""
    scale, seed = parameters
    growth, grown = _Growth(scale, seed), []
    for nodes in _SIZES[scale][1:]:
        growth.grow(nodes)
        overlay, interests = growth.overlay, growth.overlay.interests()
        start = time.process_time()
        anew = edges_of(interests, centres_of(interests, "cd-max", refined=True))
        seconds_anew = time.process_time() - start
        degrees = np.bincount(anew.ravel(), minlength=interests.nodes)
        up = int((np.diff(interests.begins) > 0).sum())
        grown.append(
            GrownOverlay(
                nodes,
                seed,
                growth.events,
                int(overlay.degrees.max()),
                float(overlay.degrees.sum() / up),
                int(degrees.max()),
                float(degrees.sum() / up),
                int(np.diff(interests.firsts).max()) - 1,
                growth.changed / growth.events,
                1e6 * growth.seconds / growth.events,
                seconds_anew,
                overlay.bytes,
            )
        )
    return grown


def measure_growth(scale: str, processes: int) -> list[GrownOverlay]:
    """All runs of a scale."""
    parameters = [(scale, seed) for seed in range(1, _SEEDS[scale] + 1)]
    return [one for run in map_in_processes(grow, parameters, processes) for one in run]


def report_lines(results: Sequence[GrownOverlay]) -> Iterator[str]:
    """The section of the report."""
    yield (
        f"{_ALGORITHM} from {_FIRST:,} nodes on, {_EACH} topics each. For each node that comes "
        f"there are {_CHURN} events of churn: a node goes, comes back with other topics, or "
        f"exchanges a topic. From one size to the next {_GONE:.0%} of the topics go, whose "
        "subscribers take others, and as many new ones come. Repaired at every event, beside an "
        "overlay that is constructed anew; an edge that comes back in the same event counts twice. "
        f"It is all in memory, {size_text(max(one.bytes for one in results))} at most."
    )
    yield ""
    heads = ("nodes", "events", "maximum degree", "… anew", "… of stars at least", "average degree",
             "… anew", "edges changed an event", "µs an event", "s anew")  # fmt: skip
    groups: dict[tuple[str, ...], list[GrownOverlay]] = {}
    for one in results:
        groups.setdefault((number_text(one.nodes),), []).append(one)
    measures = ("events", "maximum", "maximum_anew", "least_maximum", "average", "average_anew",
                "changed", "microseconds", "seconds_anew")  # fmt: skip
    yield from markdown_table(heads, rows_of_means(groups, measures))
