"""Views: compiled operations against sets and sorted lists."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from vizpub.model.arrays import Int32s
from vizpub.simulators.engine.network import HEADER_BYTES
from vizpub.simulators.protocols.poldercast.views import (
    AGE,
    ENTRY_BYTES,
    PEER,
    answer_shuffle,
    below,
    bytes_of,
    drop,
    empty_views,
    entries,
    entry_count,
    insert,
    merge_shuffle,
    open_shuffle,
    place_of,
    seed_state,
)
from vizpub.simulators.protocols.poldercast.views_overlay import (
    Capacities,
    OverlayState,
    known_entries,
)
from vizpub.simulators.protocols.poldercast.views_rings import learn
from vizpub.simulators.protocols.poldercast.views_targets import targets_of

SEEDS = range(20)
CAPACITY, PEERS = 6, 15


def message(*peers: int, age: int = 3) -> Int32s:
    return np.array([peers, [age] * len(peers)], np.int32).reshape(2, len(peers))


def view_of(*peers: int) -> Int32s:
    """Views of which the first has these entries, with their index as age."""
    views = empty_views(PEERS, CAPACITY)
    views[0, PEER, : len(peers)] = peers
    views[0, AGE, : len(peers)] = range(len(peers))
    return views


class TestRandomNumbers:
    def test_numbers_below_the_bound_are_equally_likely(self) -> None:
        draws = seed_state(Random(1))
        counts = Counter(below(draws, 10) for _ in range(50_000))
        assert sorted(counts) == list(range(10))
        assert sum((count - 5000) ** 2 / 5000 for count in counts.values()) < 27.9  # p = 0.001

    def test_successive_numbers_are_independent(self) -> None:
        draws = seed_state(Random(2))
        pairs = Counter(pairwise(below(draws, 4) for _ in range(50_000)))
        assert sum((count - 3125) ** 2 / 3125 for count in pairs.values()) < 37.7  # p = 0.001

    def test_numbers_follow_the_seed(self) -> None:
        first, again, other = (seed_state(Random(seed)) for seed in (3, 3, 4))
        drawn = [[below(draws, 1 << 30) for _ in range(5)] for draws in (first, again, other)]
        assert drawn[0] == drawn[1] != drawn[2]


class TestView:
    def test_last_entry_takes_the_place_of_a_dropped_one(self) -> None:
        view = view_of(5, 6, 7)[0]
        drop(view, 0)
        assert entries(view) == [7, 6]
        assert view[AGE, 0] == 2

    def test_full_view_has_no_end_mark(self) -> None:
        view = view_of(1, 2, 3, 4, 5, 6)[0]
        assert entry_count(view) == 6
        assert entries(view) == [1, 2, 3, 4, 5, 6]
        assert place_of(view, 4) == 3
        assert place_of(view, 9) == -1

    def test_known_peer_is_not_inserted_again(self) -> None:
        views = view_of(1, 2)
        for other in (2, 0, 3, 4, 5, 6, 7):
            insert(views, 0, other)
        assert entries(views[0]) == [1, 2, 3, 4, 5, 6]

    def test_message_bytes_are_header_plus_entries(self) -> None:
        weights = np.array([10, 20, 30], np.int32)
        assert bytes_of(weights, message(0, 2)) == HEADER_BYTES + 40


class TestShuffle:
    def test_oldest_entry_leaves_and_the_sender_stands_first(self) -> None:
        views, weights = view_of(5, 6, 7), np.full(PEERS, ENTRY_BYTES, np.int32)
        lent = np.zeros(PEERS, np.int32)
        target, sent, size = open_shuffle(views, lent, seed_state(Random(1)), weights, 0, 3)
        assert target == 7
        assert sent[:, 0].tolist() == [0, 0]
        assert set(sent[PEER, 1:].tolist()) == {5, 6}
        assert set(sent[AGE, 1:].tolist()) == {1, 2}
        assert size == HEADER_BYTES + 3 * ENTRY_BYTES
        assert set(entries(views[0])) == {5, 6}
        assert lent[0] == 2

    def test_peer_with_an_empty_view_asks_no_peer(self) -> None:
        weights, lent = np.full(PEERS, ENTRY_BYTES, np.int32), np.zeros(PEERS, np.int32)
        assert open_shuffle(view_of(), lent, seed_state(Random(1)), weights, 0, 3)[0] == -1

    def test_new_entries_go_into_free_places_first(self) -> None:
        views = view_of(1, 2, 3, 4)
        merge_shuffle(views, 0, message(8, 1, 0, 9), message(2, 3), 0)
        assert entries(views[0]) == [1, 2, 3, 4, 8, 9]

    def test_new_entries_replace_sent_ones_in_a_full_view(self) -> None:
        views = view_of(1, 2, 3, 4, 5, 6)
        merge_shuffle(views, 0, message(8, 9, 10), message(0, 3, 5), 0)
        assert entries(views[0]) == [1, 2, 8, 4, 9, 6]

    def test_peer_that_waits_for_an_answer_gives_no_entry_twice(self) -> None:
        """Who answers another meanwhile; the answer to its own shuffle finds all in place."""
        views, weights = view_of(5, 6, 7, 8, 9, 10), np.full(PEERS, ENTRY_BYTES, np.int32)
        lent, draws = np.zeros(PEERS, np.int32), seed_state(Random(1))
        _, sent, _ = open_shuffle(views, lent, draws, weights, 0, 4)
        given = answer_shuffle(views, lent, draws, 0, message(1, 2, 3, 4), 4)
        lent_peers, given_peers = set(sent[PEER, 1:].tolist()), set(given[PEER].tolist())
        assert not lent_peers & given_peers
        assert {1, 2} | lent_peers == set(entries(views[0]))
        merge_shuffle(views, 0, message(11, 12, 13, 14), sent, 0)
        assert set(entries(views[0])) == {1, 2, 11, 12, 13, 14}

    @pytest.mark.parametrize("seed", SEEDS)
    def test_views_stay_sets_of_other_peers_under_random_shuffles(self, seed: int) -> None:
        random = Random(seed)
        draws, weights = seed_state(random), np.full(PEERS, ENTRY_BYTES, np.int32)
        views, lent = empty_views(PEERS, CAPACITY), np.zeros(PEERS, np.int32)
        for _ in range(200):
            peer, other = random.sample(range(PEERS), 2)
            insert(views, peer, other)
            before = set(entries(views[peer]))
            target, sent, _ = open_shuffle(views, lent, draws, weights, peer, 4)
            assert set(sent[PEER, 1:].tolist()) <= before - {target}
            answer = answer_shuffle(views, lent, draws, target, sent, 4)
            merge_shuffle(views, peer, answer, sent, 0)
            lent[peer] = 0
            assert set(entries(views[peer])) <= before | set(answer[PEER].tolist())
            for owner in (peer, target):
                held = entries(views[owner])
                assert len(held) == len(set(held))
                assert owner not in held
                assert -1 not in held


def overlay_of(random: Random, peers: int = PEERS, topics: int = 70) -> OverlayState:
    """An overlay where everybody subscribes to five topics and knows some by every layer."""
    overlay = OverlayState(peers, topics, Capacities(4, 5, 2), random)
    for peer in range(peers):
        overlay.join(peer, sorted(random.sample(range(topics), 5)))
    for peer in range(peers):
        for views in (overlay.cyclon, overlay.vicinity):
            for other in random.sample(range(peers), 3):
                insert(views, peer, other)
                place = place_of(views[peer], other)
                if place >= 0:
                    views[peer, AGE, place] = random.randrange(9)
        learn(overlay.packed, peer, message(*random.sample(range(peers), 8)))
    return overlay


class TestOverlay:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_rings_stay_with_their_topics(self, seed: int) -> None:
        """Against dicts, through any order of joins and changes of subscriptions."""
        random = Random(seed)
        overlay = OverlayState(PEERS, 100, Capacities(2, 2, 1), random)
        model: dict[int, dict[int, int]] = {}
        for mark in range(150):
            peer, topic = random.randrange(PEERS), random.randrange(100)
            match random.choice(["join", "add", "remove", "mark"]):
                case "join":
                    topics = sorted(random.sample(range(100), random.randrange(8)))
                    overlay.join(peer, topics)
                    model[peer] = dict.fromkeys(topics, -1)
                case "add":
                    overlay.subscribe(peer, topic)
                    model.setdefault(peer, {}).setdefault(topic, -1)
                case "remove":
                    overlay.unsubscribe(peer, topic)
                    model.setdefault(peer, {}).pop(topic, None)
                case _ if overlay.topics[peer]:
                    chosen = random.choice(overlay.topics[peer])
                    overlay.rings_of(peer)[overlay.topics[peer].index(chosen)] = mark
                    model[peer][chosen] = mark
            for owner, marks in model.items():
                assert overlay.topics[owner] == sorted(marks)
                rows = overlay.rings_of(owner)
                assert rows[:, PEER, 0].tolist() == [marks[t] for t in sorted(marks)]
                bits = [
                    t for t in range(100) if int(overlay.profiles[owner, t // 64]) >> t % 64 & 1
                ]
                assert bits == sorted(marks)

    def test_rejoining_peer_has_empty_views_and_rings(self) -> None:
        overlay = overlay_of(Random(1))
        overlay.join(3, [1, 2])
        assert entries(overlay.cyclon[3]) == entries(overlay.vicinity[3]) == []
        assert (overlay.rings_of(3) == -1).all()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_known_peers_are_listed_once_with_their_lowest_age(self, seed: int) -> None:
        overlay = overlay_of(Random(seed))
        received = message(3, 9, 14, age=1)
        for peer in range(PEERS):
            ages: dict[int, int] = {}
            rows = [received, overlay.cyclon[peer], overlay.vicinity[peer], *overlay.rings_of(peer)]
            for row in rows:
                for other, age in zip(*row.tolist(), strict=True):
                    if other not in (-1, peer):
                        ages[other] = min(age, ages.get(other, age))
            found = known_entries(overlay.packed, peer, received)
            assert dict(zip(*found.tolist(), strict=True)) == ages
            assert found.shape[1] == len(ages)
        assert (overlay.place == -1).all()

    def test_forgotten_peer_is_in_no_view(self) -> None:
        overlay = overlay_of(Random(2))
        for peer in range(PEERS):
            for other in range(0, PEERS, 2):
                overlay.forget(peer, other)
            left = known_entries(overlay.packed, peer, message())[PEER].tolist()
            assert not {*range(0, PEERS, 2)} & {*left}
            for ring in overlay.rings_of(peer)[:, PEER].tolist():
                for side in (ring[:2], ring[2:]):
                    assert side == sorted(side, key=lambda other: other == -1)

    def test_ring_positions_do_not_follow_peer_numbers(self) -> None:
        position = OverlayState(1000, 1, Capacities(), Random(1)).position
        assert sorted(position.tolist()) == list(range(1000))
        assert abs(np.corrcoef(np.arange(1000), position)[0, 1]) < 0.1


class TestTargets:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_targets_are_distinct_subscribers_in_rule_order(self, seed: int) -> None:
        random = Random(seed)
        overlay = overlay_of(random, topics=10)
        for _ in range(100):
            peer, sender = random.randrange(PEERS), random.randrange(PEERS)
            topic, onward, both = random.choice(overlay.topics[peer]), 2, 1
            targets = targets_of(overlay.packed, peer, sender, topic, onward, both).tolist()
            ring = overlay.rings_of(peer)[overlay.topics[peer].index(topic), PEER].tolist()
            neighbours = [ring[0], ring[2]]
            first = [other for other in dict.fromkeys(neighbours) if other not in (-1, sender)]
            assert targets[: len(first)] == first
            assert len(set(targets)) == len(targets)
            assert not {peer, sender, -1} & {*targets}
            assert all(topic in overlay.topics[other] for other in targets)
            wanted = onward if sender != peer and sender in neighbours else both
            everybody = known_entries(overlay.packed, peer, message())[PEER].tolist()
            pool = {x for x in everybody if topic in overlay.topics[x]} - {*first, sender}
            assert len(targets) - len(first) == min(wanted, len(pool))
            near = pool & {*entries(overlay.vicinity[peer])}
            assert len(near & {*targets}) == min(wanted, len(near))
        assert (overlay.place == -1).all()

    def test_non_subscriber_forwards_only_its_own_publication(self) -> None:
        overlay = overlay_of(Random(1), topics=10)
        peer = 4
        topic = next(t for t in range(10) if t not in overlay.topics[peer])
        assert targets_of(overlay.packed, peer, 5, topic, 3, 3).tolist() == []
        assert targets_of(overlay.packed, peer, peer, topic, 3, 3).tolist() != []
