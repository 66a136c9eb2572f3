"""Compiled repair beside the plain one, event by event."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.support.designs import equal
from vizpub.simulators.designs.algorithms import Design
from vizpub.simulators.designs.flat import FlatInterests
from vizpub.simulators.designs.growing import FlatUpkeep
from vizpub.simulators.designs.kernels import edges_of
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.designs.upkeep import Upkeep
from vizpub.simulators.protocols.broadcast.topologies import neighbours_in

_FIRST, _NODES, _TOPICS, _EACH = 30, 60, 14, 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", ["cd-oda-ii", "cd-max", "cd-max-ref"])
def test_compiled_repair_is_the_plain_one_after_every_event(algorithm: str, seed: int) -> None:
    """Nodes come and go, also new ones, and change topics, also to new ones."""
    print(f"seed {seed}")
    random, design = Random(seed), Design(algorithm)
    first = equal(_FIRST, _TOPICS - 4, _EACH, seed)
    plain = Upkeep(design, Interests([*first.of, *[[]] * (_NODES - _FIRST)], _TOPICS))
    flat = FlatUpkeep(design, FlatInterests.of(first), _NODES, _TOPICS)
    for _ in range(300):
        node, few = random.randrange(_NODES), random.choice([0, _EACH, _EACH, 2])
        topics = set(random.sample(range(_TOPICS), few))
        changed = plain.change(node, topics)
        assert (flat.change(node, topics) - changed) % 2 == 0  # it counts what came back twice
        centres = {t: centre for t, centre in enumerate(flat.centres.tolist()) if centre >= 0}
        assert centres == plain.stars.centres
        assert flat.degrees.tolist() == [*map(len, plain.stars.neighbours)]
    interests = flat.interests()
    assert [own.tolist() for own in np.split(interests.topics, interests.begins[1:-1])] == (
        plain.interests.of
    )
    for topic, subscribers in enumerate(plain.interests.subscribers):
        assert sorted(flat.subscribers(topic).tolist()) == subscribers
    edges = [tuple(sorted(edge)) for edge in edges_of(interests, flat.centres.astype(int)).tolist()]
    assert neighbours_in(edges, _NODES) == plain.overlay.neighbours


def test_more_topics_than_there_is_room_for_are_refused() -> None:
    flat = FlatUpkeep(Design("cd-max"), FlatInterests.of(equal(4, 9, 2, 1)), 4, 9)
    with pytest.raises(ValueError, match="2"):
        flat.change(0, {1, 2, 3})
