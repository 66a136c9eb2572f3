"""Who lookups find, and in how many hops, against the ids of all and published figures."""

from __future__ import annotations

import pytest

from tests.support.rings import STILL, World, mean_hops, wrong

HOW = ("recursive", "iterative")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("successors", "hops"), [(1, 5.80), (20, 3.83)])
def test_mean_hops_to_the_owner_equal_the_computed_ones(
    how: str, successors: int, hops: float
) -> None:
    """At 1,000 peers: without a list, and straight from any peer that has the owner in its list."""
    world = World(1_000, successors=successors, lookup=how, **STILL).placed()
    mean = mean_hops(world.look_up(3_000, 10))
    print(f"{mean:.3f} hops")
    assert mean == pytest.approx(hops, abs=0.1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "hops", "within"),
    [(10, 2.12, 0.25), (30, 3.18, 0.25), (100, 4.09, 0.1), (256, 4.85, 0.1), (4_096, 6.86, 0.1)],
)
def test_mean_hops_grow_as_the_computed_ones(size: int, hops: float, within: float) -> None:
    """Means over five seeds, as rings of ten differ."""
    worlds = [World(size, seed, successors=1, **STILL).placed() for seed in range(1, 6)]
    means = [mean_hops(world.look_up(2_000, 10)) for world in worlds]
    assert sum(means) / 5 == pytest.approx(hops, abs=within)


@pytest.mark.parametrize("how", HOW)
def test_lookups_after_half_of_the_peers_crash_find_live_owners(how: str) -> None:
    """Before any stabilization, by a list of 20. Hops as published: 5.09; each time-out is one
    peer that was met and is down.
    """
    world = World(1_000, successors=20, lookup=how, **STILL).placed()
    world.crash(world.random.sample(range(1_000), 500))
    answers = world.look_up(1_000)
    assert sum(wrong(answers).values()) <= 1
    right = [one for one in answers if one[0].owner == one[1]]
    assert mean_hops(right) == pytest.approx(5.09, abs=0.4)
    assert 2 < sum(found.timeouts for found, _ in answers) / 1_000 < 6


@pytest.mark.parametrize("how", HOW)
def test_lookups_find_owners_in_every_small_ring(how: str) -> None:
    for size in (1, 2, 3, 9):
        for bits in (9, 160):
            world = World(size, seed=size, bits=bits, successors=2, lookup=how).placed()
            world.run(1)
            assert not wrong(world.look_up(40, 3))


@pytest.mark.parametrize("how", HOW)
def test_lookup_at_the_owner_has_no_hops(how: str) -> None:
    world = World(50, lookup=how).placed()
    ids = world.overlay.ring.ids
    for peer in range(50):
        (own, _), (next_, _) = world.answers([(peer, ids[peer]), (peer, ids[peer] + 1)], 1)
        assert own[:3] == (peer, 0, 0)
        assert next_.hops == 1


@pytest.mark.parametrize("how", HOW)
def test_lookup_that_nobody_answers_fails_in_time(how: str) -> None:
    world = World(30, loss=1.0, lookup=how, lookup_timeout="2s", retries=1_000).placed()
    ids = world.overlay.ring.ids
    found, _ = world.answers([(0, (ids[0] + 1) % 2**160)], 2.1)[0]
    assert found.owner == -1


def test_hops_of_both_ways_are_equal() -> None:
    """The same links are travelled, whoever asks."""
    hops = []
    for how in HOW:
        world = World(300, lookup=how, **STILL).placed()
        hops.append(mean_hops(world.look_up(500, 10)))
    assert hops[0] == hops[1]
