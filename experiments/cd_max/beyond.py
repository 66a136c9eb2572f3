"""What the paper leaves to future work: failures, load, energy, and centres that are near."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from vizpub.analytics.comparison.estimates import mean
from vizpub.experiments.cd_max.measuring import OverlayCase
from vizpub.experiments.formatting import estimate_text, markdown_table
from vizpub.experiments.workers import map_in_processes
from vizpub.simulators.designs.algorithms import ALGORITHMS, ConstructedOverlay, Design, construct
from vizpub.simulators.designs.nearer import move_nearer
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.engine.clock import stream

_NODES = 200
_SEEDS = {"small": 3, "full": 10}
_SHARES = (0.1, 0.3, 0.5)
_NEAR = " near"
_ACROSS = 100.0
"""ms from one side of the plane to the other."""


def measure_overlays(seed: int) -> dict[str, dict[str, float]]:
    """Every measure of every overlay, all on the subscriptions and places of one seed."""
    interests = OverlayCase("nodes", _NODES, "uniform", seed).interests()
    numbers = np.random.default_rng(stream(seed, "places").getrandbits(64))
    places = numbers.random((_NODES, 2)) * _ACROSS
    delays = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    order = numbers.permutation(_NODES)
    overlays = {name: construct(Design(name), interests) for name in ALGORITHMS}
    for name in ("cd-max", "cd-max-ref"):
        stars = Design(name).stars(interests)
        move_nearer(stars, delays)
        overlays[name + _NEAR] = ConstructedOverlay(stars.neighbours, stars.centres)
    return {
        name: _measure_overlay(overlay, interests, delays, order)
        for name, overlay in overlays.items()
    }


def _measure_overlay(
    overlay: ConstructedOverlay, interests: Interests, delays: np.ndarray, order: np.ndarray
) -> dict[str, float]:
    begins = np.cumsum([0, *map(len, overlay.neighbours)])
    ends = np.array([peer for peers in overlay.neighbours for peer in peers])
    matrix = csr_array((np.ones(len(ends)), ends, begins), shape=(_NODES, _NODES))
    load = np.bincount(list(overlay.centres.values()), minlength=_NODES)
    links = matrix.nnz // 2
    measures: dict[str, float] = {"maximum degree": float(max(map(len, overlay.neighbours)))}
    if overlay.centres:
        measures |= {"most centres of a node": float(load.max()), "nodes that are centres":
                  float((load > 0).mean())}  # fmt: skip
    sent, delays_ms = [], []
    for topic, subscribers in enumerate(interests.subscribers):
        if len(subscribers) > 1:
            inside = matrix[subscribers][:, subscribers]
            copies = len(subscribers) - 1 if overlay.centres else inside.nnz - len(subscribers) + 1
            sent.append(copies)
            delays_ms.append(_mean_delay(overlay, topic, subscribers, inside, delays))
    measures["copies of a publication"] = float(np.mean(sent))
    measures["copies of one a topic + links"] = float(sum(sent) + links)
    measures["ms to a subscriber"] = float(np.mean(delays_ms))
    for share in _SHARES:
        alive = np.ones(_NODES, dtype=bool)
        alive[order[: round(share * _NODES)]] = False
        measures[f"connected after {share:.0%}"] = connected_share(matrix, interests, alive)
    return measures


def _mean_delay(
    overlay: ConstructedOverlay,
    topic: int,
    subscribers: Sequence[int],
    inside: csr_array,
    delays: np.ndarray,
) -> float:
    """Mean from one subscriber to another: by the centre, or where all pass it on, along the
    path that is the fastest.
    """
    between = delays[np.ix_(subscribers, subscribers)]
    pairs = len(subscribers) * (len(subscribers) - 1)
    centre = overlay.centres.get(topic)
    if centre is None:
        paths = dijkstra(inside.multiply(between).tocsr())
        return float(paths.sum() / pairs)
    from_centre = between[subscribers.index(centre)]
    through = from_centre[:, None] + from_centre[None]
    np.fill_diagonal(through, 0)
    return float(through.sum() / pairs)


def connected_share(matrix: csr_array, interests: Interests, alive: np.ndarray) -> float:
    """Share of the topics with two or more subscribers alive that these still connect."""
    is_connected = []
    for subscribers in interests.subscribers:
        alive_nodes = [node for node in subscribers if alive[node]]
        if len(alive_nodes) > 1:
            is_connected.append(connected_components(matrix[alive_nodes][:, alive_nodes])[0] == 1)
    return float(np.mean(is_connected)) if is_connected else 1.0


def measure_beyond(scale: str, processes: int) -> list[Mapping[str, Mapping[str, float]]]:
    """All seeds of a scale."""
    return map_in_processes(measure_overlays, range(1, _SEEDS[scale] + 1), processes)


def report_lines(results: Sequence[Mapping[str, Mapping[str, float]]]) -> Iterator[str]:
    """The section of the report."""
    yield (
        f"{_NODES} nodes, 100 topics, 10 each, at random places of a plane that takes "
        f"{_ACROSS:g} ms to cross. *Near*: centres are then moved to where the total delay to the "
        "topic's subscribers is the least, unless the maximum degree would rise. *Connected*: "
        "share of the topics whose live subscribers are still one component after that share of "
        "the nodes failed at once. Energy is counted in messages: one publication on every "
        "topic, and one for every link that is kept. Means over the seeds with Student's "
        "intervals of 95 %."
    )
    yield ""
    measures = list(dict.fromkeys(name for result in results[0].values() for name in result))
    rows = []
    for algorithm in results[0]:
        by_seed = [result[algorithm] for result in results]
        estimates = [mean([of[name] for of in by_seed if name in of]) for name in measures]
        rows.append((algorithm, *map(estimate_text, estimates)))
    yield from markdown_table(("", *measures), rows)
