"""Overlays that are repaired, beside those that are constructed anew."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.designs import check_overlay, drawn, equal, graph
from tests.support.few import few
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.stars import Interests, Stars
from vizpub.simulators.designs.upkeep import Upkeep


def changes(kept: Upkeep, topics: int, each: int, random: Random) -> tuple[int, set[int]]:
    """An event: a node goes, comes with new topics, or exchanges one."""
    node = random.randrange(kept.interests.nodes)
    own = set(kept.interests.of[node])
    if not own:
        return node, set(random.sample(range(topics), each))
    if random.random() < 0.3:
        return node, set()
    return node, own ^ {random.randrange(topics)}


@pytest.mark.parametrize("seed", few(range(6), range(2)))
@pytest.mark.parametrize("algorithm", ["cd-oda-ii", "cd-max", "cd-max-ref"])
def test_repaired_overlay_is_a_star_overlay_after_every_event(algorithm: str, seed: int) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    kept = Upkeep(Design(algorithm), drawn(25, 9, 4, seed))
    for _ in range(60):
        edges = {frozenset(edge) for edge in graph(kept.overlay.neighbours).edges}
        changed = kept.change(*changes(kept, 9, 3, random))
        overlay, interests = kept.overlay, kept.interests
        check_overlay(overlay.neighbours, interests, stars=True)
        now = {frozenset(edge) for edge in graph(overlay.neighbours).edges}
        assert changed == len(edges ^ now)
        assert set(overlay.centres) == set(interests.shared_topics())
        assert kept.stars.links == Stars(interests, overlay.centres).links
        assert interests.subscribers == Interests(interests.of, 9).subscribers


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("algorithm", ["cd-oda-ii", "cd-max", "cd-max-ref"])
def test_maximum_degree_stays_near_that_of_an_overlay_built_anew(algorithm: str, seed: int) -> None:
    print(f"seed {seed}")
    random = Random(seed)
    kept = Upkeep(Design(algorithm), equal(200, 100, 10, seed))
    for _ in range(1000):
        kept.change(*changes(kept, 100, 10, random))
    ours = max(map(len, kept.overlay.neighbours))
    anew = Design(algorithm).stars(kept.interests)
    print(f"{ours} repaired, {max(map(len, anew.neighbours))} built anew")
    assert ours <= 1.2 * max(map(len, anew.neighbours))
