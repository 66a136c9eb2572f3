"""What the paper leaves to future work: failures, load, energy, and centres that are near."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from vizpub.analytics.comparison.estimates import mean
from vizpub.experiments.cd_max.measuring import World
from vizpub.experiments.formatting import estimate_text, markdown
from vizpub.experiments.workers import workers
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, Overlay, construct
from vizpub.simulators.designs.nearer import move_nearer
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.engine.clock import stream

_NODES = 200
_SEEDS = {"small": 3, "full": 10}
_SHARES = (0.1, 0.3, 0.5)
_NEAR = " near"
_ACROSS = 100.0
"""ms from one side of the plane to the other."""


def measure(seed: int) -> dict[str, dict[str, float]]:
    """Every measure of every overlay, all on the subscriptions and places of one seed."""
    interests = World("nodes", _NODES, "uniform", seed).interests()
    numbers = np.random.default_rng(stream(seed, "places").getrandbits(64))
    places = numbers.random((_NODES, 2)) * _ACROSS
    delays = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    order = numbers.permutation(_NODES)
    overlays = {name: construct(Design(name), interests) for name in ALGORITHMS}
    for name in ("cd-max", "cd-max-ref"):
        stars = Design(name).stars(interests)
        move_nearer(stars, delays)
        overlays[name + _NEAR] = Overlay(stars.neighbours, stars.centres)
    return {
        name: _measures(overlay, interests, delays, order) for name, overlay in overlays.items()
    }


def _measures(
    overlay: Overlay, interests: Interests, delays: np.ndarray, order: np.ndarray
) -> dict[str, float]:
    matrix = _matrix(overlay)
    load = np.bincount(list(overlay.centres.values()), minlength=_NODES)
    links = matrix.nnz // 2
    found: dict[str, float] = {"maximum degree": float(max(map(len, overlay.neighbours)))}
    if overlay.centres:
        found |= {"most centres of a node": float(load.max()), "nodes that are centres":
                  float((load > 0).mean())}  # fmt: skip
    sent, late = [], []
    for topic, of_it in enumerate(interests.subscribers):
        if len(of_it) > 1:
            inside = matrix[of_it][:, of_it]
            copies = len(of_it) - 1 if overlay.centres else inside.nnz - len(of_it) + 1
            sent.append(copies)
            late.append(_delay(overlay, topic, of_it, inside, delays))
    found["copies of a publication"] = float(np.mean(sent))
    found["copies of one a topic + links"] = float(sum(sent) + links)
    found["ms to a subscriber"] = float(np.mean(late))
    for share in _SHARES:
        alive = np.ones(_NODES, dtype=bool)
        alive[order[: round(share * _NODES)]] = False
        found[f"connected after {share:.0%}"] = connected(matrix, interests, alive)
    return found


def _matrix(overlay: Overlay) -> csr_array:
    ends = [len(known) for known in overlay.neighbours]
    begins = np.concatenate([[0], np.cumsum(ends)])
    others = np.array([other for known in overlay.neighbours for other in known])
    return csr_array((np.ones(len(others)), others, begins), shape=(_NODES, _NODES))


def _delay(
    overlay: Overlay, topic: int, of_it: Sequence[int], inside: csr_array, delays: np.ndarray
) -> float:
    """Mean from one subscriber to another: by the centre, or where all pass it on, along the
    path that is the fastest.
    """
    between = delays[np.ix_(of_it, of_it)]
    pairs = len(of_it) * (len(of_it) - 1)
    centre = overlay.centres.get(topic)
    if centre is None:
        paths = dijkstra(inside.multiply(between).tocsr())
        return float(paths.sum() / pairs)
    from_it = between[of_it.index(centre)]
    through = from_it[:, None] + from_it[None]
    np.fill_diagonal(through, 0)
    return float(through.sum() / pairs)


def connected(matrix: csr_array, interests: Interests, alive: np.ndarray) -> float:
    """Share of the topics with two or more subscribers alive that these still connect."""
    told = []
    for of_it in interests.subscribers:
        left = [node for node in of_it if alive[node]]
        if len(left) > 1:
            told.append(connected_components(matrix[left][:, left])[0] == 1)
    return float(np.mean(told)) if told else 1.0


def beyond(scale: str, processes: int) -> list[Mapping[str, Mapping[str, float]]]:
    """All seeds of a scale."""
    with workers(processes) as pool:
        return list(pool.map(measure, range(1, _SEEDS[scale] + 1)))


def lines(found: Sequence[Mapping[str, Mapping[str, float]]]) -> Iterator[str]:
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
    measures = list(dict.fromkeys(name for of in found[0].values() for name in of))
    rows = [
        (algorithm, *(_text([of[algorithm].get(name) for of in found]) for name in measures))
        for algorithm in found[0]
    ]
    yield from markdown(("", *measures), rows)


def _text(values: Sequence[float | None]) -> str:
    return estimate_text(mean([value for value in values if value is not None]))
