"""Pastry as a system: publications are routed to their topics' keys."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Publication
from vizpub.simulators.protocols.pastry.parameters import PastryParameters
from vizpub.simulators.protocols.pastry.placing import place
from vizpub.simulators.protocols.pastry.system import Pastry

SIZE, TOPICS = 300, 40


class Routes:
    """Who received each message, in order, and how often it was published."""

    def __init__(self) -> None:
        self.passed: dict[int, list[tuple[int, int]]] = {}
        self.published: list[int] = []

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        if copy.hops == 0:
            self.published.append(copy.publication.message)

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        self.passed.setdefault(copy.publication.message, []).append((peer, copy.hops))


def made() -> tuple[Simulation, Pastry, Routes]:
    net = Simulation(SIZE, 3, lambda sender, receiver: 10_000)
    pastry = Pastry(net, PastryParameters(), TOPICS)
    for peer in range(SIZE):
        net.come_up(peer)
    place(pastry.routing, range(SIZE))
    routes = Routes()
    net.observer = routes
    return net, pastry, routes


def owner(pastry: Pastry, net: Simulation, topic: int) -> int:
    overlay = pastry.routing
    key, ids = overlay.keys[topic], overlay.ring.ids
    return min(net.present, key=lambda peer: overlay.ring.distance(ids[peer], key))


def test_publications_go_to_the_owner_of_their_topic() -> None:
    net, pastry, routes = made()
    for topic in range(TOPICS):
        pastry.publish(topic, Publication(topic, topic, topic, 100))
    net.run(1_000_000)
    assert routes.published == list(range(TOPICS))
    for topic in range(TOPICS):
        passed = routes.passed.get(topic, [(topic, 0)])
        assert passed[-1][0] == owner(pastry, net, topic)
        assert [hops for _, hops in passed] == list(range(passed[0][1], len(passed) + passed[0][1]))
        assert len(passed) <= 4


def test_route_is_counted_at_the_owner_and_has_no_hops_where_it_begins() -> None:
    net, pastry, routes = made()
    for topic in range(TOPICS):
        pastry.publish(topic, Publication(topic, topic, topic, 100))
    at_home = owner(pastry, net, 7)
    pastry.publish(at_home, Publication(TOPICS, 7, at_home, 100))
    net.run(1_000_000)
    counted: Counter[str] = Counter()
    for peer in net.present:
        counted.update(net.gauges.take(peer))
    longest = [max(hops for _, hops in passed) for passed in routes.passed.values()]
    assert counted == {"routes": TOPICS + 1, "route_hops": sum(longest)}
    assert TOPICS not in routes.passed


def test_publications_are_routed_around_dead_peers() -> None:
    net, pastry, routes = made()
    for peer in random.Random(1).sample(range(SIZE), 90):
        net.go_down(peer)
        pastry.go_down(peer)
    publishers = list(net.present)[:TOPICS]
    for topic, peer in enumerate(publishers):
        pastry.publish(peer, Publication(topic, topic, peer, 100))
    net.run(15_000_000)
    for topic, peer in enumerate(publishers):
        assert routes.passed.get(topic, [(peer, 0)])[-1][0] == owner(pastry, net, topic)


def test_subscriptions_add_no_links_and_no_roles() -> None:
    net, pastry, _ = made()
    pastry.subscribe(0, 1)
    pastry.unsubscribe(0, 1)
    pastry.leave(0)
    net.go_down(0)
    pastry.go_down(0)
    net.come_up(0)
    pastry.join(0, [1, 2])
    net.run(5_000_000)
    assert pastry.routing.nodes[0].is_ready
    assert [links.layer for links in pastry.links(0)] == ["leafset", "routing", "neighbourhood"]
    assert list(pastry.roles(0)) == []
