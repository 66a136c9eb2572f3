"""Broadcast or tree: what owners count, answer, and what it costs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import pytest

from tests.support.chord_trees import TOPICS, World
from vizpub.simulators.protocols.scribe.parameters import PopularityParameters
from vizpub.simulators.protocols.scribe.popularity import BroadcastOrTree


class Popular(World):
    """Topic t has 5 (t + 1) subscribers; from 15 on it is popular."""

    THRESHOLD = 15

    def __init__(self, **chosen: Any) -> None:
        super().__init__(60, **{"threshold": self.THRESHOLD, **chosen})
        self.subscribers = [
            set(self.random.sample(range(60), 5 * (topic + 1))) for topic in range(TOPICS)
        ]
        self.gauges: Counter[str] = Counter()

    def system(self, **chosen: Any) -> BroadcastOrTree:
        """The system, with those parameters."""
        return BroadcastOrTree(self.net, PopularityParameters(**chosen), TOPICS)

    def placed(self) -> World:
        """The peers of the other overlay join one after the other, five latencies apart."""
        assert isinstance(self.scribe, BroadcastOrTree)
        super().placed()
        for peer in range(self.net.size):
            self.scribe.membership.join(peer)
            self.run(0.05)
        return self

    def active(self) -> nx.DiGraph:
        """The reported links of active views."""
        links = [(peer, held) for peer in self.net.present for held in self.scribe.links(peer)]
        return nx.DiGraph(
            (peer, to) for peer, held in links if held.layer == "active" for to in held.peers
        )

    def counted(self) -> Counter[str]:
        """All that peers have counted so far."""
        for peer in self.net.present:
            self.gauges.update(self.net.gauges.take(peer))
        return self.gauges

    def sent_of(self, name: str) -> int:
        return next(kind.sent for kind in self.net.kinds if kind.name == name)


def grown(**chosen: Any) -> Popular:
    world = Popular(**chosen)
    world.placed()
    world.run(15)
    return world


def test_owner_counts_the_subscribers_of_its_tree() -> None:
    world = grown()
    assert isinstance(world.scribe, BroadcastOrTree)
    for topic, peers in enumerate(world.subscribers):
        root = next(peer for peer in range(60) if ("rendezvous", topic) in world.scribe.roles(peer))
        assert world.scribe.subscribers(root, topic) == len(peers)
    for peer in sorted(world.subscribers[5])[:9]:
        world.scribe.unsubscribe(peer, 5)
    world.run(20)
    root = next(peer for peer in range(60) if ("rendezvous", 5) in world.scribe.roles(peer))
    assert world.scribe.subscribers(root, 5) == 30 - 9


@pytest.mark.parametrize("broadcasts", ["hyparview", "chord"])
def test_popular_topics_are_broadcast_and_others_use_the_tree(broadcasts: str) -> None:
    world = grown(broadcasts=broadcasts)
    for topic, peers in enumerate(world.subscribers):
        before = world.sent_of("broadcast"), world.sent_of("multicast")
        made = world.publish(topic, min(peers))
        copies = world.copies(made)
        assert {*copies} >= peers - {made.publisher}
        broadcast, multicast = (
            world.sent_of(name) - count
            for name, count in zip(("broadcast", "multicast"), before, strict=True)
        )
        if len(peers) >= Popular.THRESHOLD:
            assert ({*copies} | {made.publisher}, multicast) == ({*range(60)}, 0)
            assert broadcast == sum(copies.values()) <= 5 * 60
        else:
            assert (broadcast, {*world.came_down[made.message].values()}) == (0, {1})
            assert multicast == len(world.tree(topic)) - 1


def test_broadcast_floods_the_active_views() -> None:
    """m - n + 1 copies over m directed links, and on the shortest ways."""
    world = grown()
    publisher = min(world.subscribers[5])
    world.publish(5, publisher)  # has the answer from now on
    graph = world.active()
    made = world.publish(5, publisher)
    assert nx.is_strongly_connected(graph)
    assert max(degree for _, degree in graph.out_degree) <= 5
    assert sum(world.copies(made).values()) == graph.number_of_edges() - 60 + 1
    hops = {publisher: 0}
    for peer, count in world.got[made.message]:
        hops[peer] = min(count, hops.get(peer, count))
    assert hops == nx.single_source_shortest_path_length(graph, publisher)


def test_broadcast_reaches_all_after_crashes_and_returns() -> None:
    world = grown()
    for peer in world.random.sample(sorted(world.net.present), 12):
        world.net.go_down(peer)
        world.scribe.go_down(peer)
    world.run(5)
    back = next(peer for peer in range(60) if peer not in world.net.present)
    world.join(back)
    world.run(5)
    publisher = min(world.subscribers[5] & {*world.net.present})
    made = world.publish(5, publisher, seconds=8)
    assert {*world.copies(made)} | {publisher} == {*world.net.present}
    assert world.sent_of("broadcast") > 0


def test_broadcast_on_chord_takes_its_links_and_makes_no_views() -> None:
    world = grown(broadcasts="chord")
    layers = {held.layer for peer in range(60) for held in world.scribe.links(peer)}
    assert layers == {"tree", "successor", "successors", "predecessor", "finger"}


def test_peers_without_subscription_filter_broadcasts() -> None:
    world = grown()
    world.counted()
    world.gauges.clear()
    made = world.publish(5, min(world.subscribers[5]))
    assert world.counted()["filtered"] == 60 - len(world.subscribers[5])
    assert world.gauges["broadcasts"] == 1
    assert world.copies(made)


def test_answer_is_asked_for_once_while_it_is_kept() -> None:
    world = grown(answer_period="10s")
    asked = world.sent_of("ask how"), world.sent_of("answer how")
    assert asked == (0, 0)
    publisher = next(
        peer
        for peer in sorted(world.subscribers[5])
        if ("rendezvous", 5) not in world.scribe.roles(peer)
    )
    for _ in range(4):
        world.publish(5, publisher)
    assert world.counted()["questions"] == 1
    assert world.sent_of("answer how") == 1
    assert world.sent_of("ask how") >= 1
    world.run(10)
    world.publish(5, publisher)
    assert world.counted()["questions"] == 2


def test_publications_of_a_moment_wait_for_one_answer() -> None:
    world = grown()
    made = [world.publish(0, min(world.subscribers[0]), seconds=0.0) for _ in range(3)]
    world.run(2)
    assert world.counted()["questions"] == 1
    for one in made:
        assert {*world.copies(one)} >= world.subscribers[0] - {one.publisher}


def test_publication_without_an_answer_uses_the_tree() -> None:
    world = grown(lookup_timeout="1s")
    answer = next(kind for kind in world.net.kinds if kind.name == "answer how")
    answer.handler = lambda *told: None
    publisher = next(
        peer
        for peer in sorted(world.subscribers[5])
        if ("rendezvous", 5) not in world.scribe.roles(peer)
    )
    made = world.publish(5, publisher, seconds=3)
    assert world.counted()["by_tree"] == 1
    assert {*world.copies(made)} >= world.subscribers[5] - {publisher}


@pytest.mark.parametrize("both_ways", [False, True])
def test_publications_are_reported_when_they_are_made(both_ways: bool) -> None:
    """Before the answer comes; what they are sent with is reported once more."""
    world = grown(both_ways=both_ways)
    published: dict[int, list[int]] = {}

    def sent(peer: int, copy: Any, targets: Any) -> None:
        if not copy.hops:
            published.setdefault(copy.publication.message, []).append(world.net.now)

    world.on_sent = sent  # type: ignore[method-assign]
    for topic, peers in enumerate(world.subscribers):
        for publisher in (min(peers), min({*range(60)} - peers)):
            began = world.net.now
            made = world.publish(topic, publisher)
            assert {*world.copies(made)} >= peers - {publisher}
            assert published[made.message][0] == began
    assert max(map(len, published.values())) <= 2
    assert len(published) == 2 * TOPICS
