"""Scribe on Chord: deliveries and trees against owners recomputed from ids; and the errors of the
report's pseudo-code, each of which one of these checks finds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import log2
from typing import Any

import networkx as nx
import pytest

from tests.support.chord_trees import TOPICS, World
from tests.support.rings import INTERVAL, Truth
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Publication
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.chord.placing import place
from vizpub.simulators.protocols.chord.system import Chord
from vizpub.simulators.protocols.routing import NOBODY, Routed
from vizpub.simulators.protocols.scribe.on_chord import ScribeChord
from vizpub.simulators.protocols.scribe.state import RecentMessages
from vizpub.simulators.protocols.scribe.system import Multicast
from vizpub.simulators.protocols.scribe.trees import ScribeTrees


@pytest.mark.parametrize("both_ways", [False, True])
def test_trees_end_at_owners_and_deliver_once(both_ways: bool) -> None:
    world = World(both_ways=both_ways).placed()
    world.check_trees()
    world.check_deliveries()
    longest = max(hops for got in world.got.values() for _, hops in got)
    assert longest <= 2 * log2(60)


@pytest.mark.parametrize(
    ("seed", "longest_ms"), [(1, 50), pytest.param(2, 300, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("both_ways", [False, True])
def test_subscriber_gets_one_copy_at_random_latencies(
    seed: int, longest_ms: int, both_ways: bool
) -> None:
    drawn = random.Random(seed)
    rows = [[drawn.randrange(1000, longest_ms * 1000) for _ in range(50)] for _ in range(50)]
    world = World(50, seed, lambda sender, to: rows[sender][to], both_ways=both_ways)
    for peer in range(50):
        world.net.at(drawn.randrange(INTERVAL // 2), partial(world.join, peer))
    world.run(25 + longest_ms // 20)
    world.check_trees()
    world.check_deliveries()


def test_crash_of_a_tenth_with_roots_is_mended_within_ten_heartbeats() -> None:
    world = World(80).placed()
    roots = {peer for peer in range(80) if list(world.scribe.roles(peer))}
    dead = {*sorted(roots)[:4], *world.random.sample(range(80), 4)}
    assert len(dead & roots) >= 4
    for peer in sorted(dead):
        world.net.go_down(peer)
        world.scribe.go_down(peer)
    world.run(30)
    world.check_trees()
    world.check_deliveries()


def test_messages_both_ways_are_fewer_by_the_route_to_the_root() -> None:
    """From a subscriber: one copy over each link of the tree, and none on a route."""
    counts = {}
    for both_ways in (False, True):
        world = World(both_ways=both_ways).placed()
        world.check_deliveries(strangers=False)
        counts[both_ways] = Counter({kind.name: kind.sent for kind in world.net.kinds})
    links = sum(len(world.tree(topic)) - 1 for topic in range(TOPICS))
    assert counts[True]["multicast"] == links
    assert counts[True]["to root"] == 0 < counts[False]["to root"]


def test_sizes_follow_the_width_of_ids() -> None:
    bytes_ = {}
    for bits in (64, 160, 256):
        world = World(bits=bits).placed()
        join = next(kind for kind in world.net.kinds if kind.name == "tree join")
        bytes_[bits] = join.bytes / join.sent
    assert bytes_ == {64: 28 + 8 + 2 * 8, 160: 28 + 8 + 2 * 20, 256: 28 + 8 + 2 * 32}


def test_header_tells_how_ids_and_owners_are_computed() -> None:
    world = World(seed=5)
    assert world.scribe.header_facts() == {"id_hash": "sha1", "id_salt": "5/"}


# The errors of the report's pseudo-code (its 2.4.3), and the checks that find them.


def check_routed_publications_arrive() -> None:
    net = Simulation(40, 1, lambda sender, to: 10_000)
    chord, got = Chord(net, ChordParameters(successors=2), 5), set()
    for peer in range(40):
        net.come_up(peer)
    place(chord.routing, range(40))

    class Seen:
        def on_sent(self, *told: object) -> None:
            """See Observer."""

        def on_received(self, peer: int, sender: int, copy: Copy) -> None:
            got.add((copy.publication.topic, peer))

    net.observer = Seen()
    truth = Truth(chord.routing, range(40))
    for topic, key in enumerate(chord.routing.keys):
        publisher = truth.order[truth.order.index(truth.owner(key)) - 20]
        chord.publish(publisher, Publication(topic, topic, publisher, 10))
    net.run(INTERVAL)
    assert all((topic, truth.owner(key)) in got for topic, key in enumerate(chord.routing.keys))


def check_deliveries() -> None:
    World(40).placed().check_deliveries()


def check_abandoned_trees_vanish() -> None:
    world = World(40).placed()
    for topic, peers in enumerate(world.subscribers):
        for peer in sorted(peers):
            world.scribe.unsubscribe(peer, topic)
    world.run(0.5)
    assert not any(member.children for member in world.trees.members)


def check_subscribers_outlast_their_children() -> None:
    world = World(40, successors=2).placed()
    trees = [world.tree(topic) for topic in range(TOPICS)]
    topic, inner = next(
        (topic, peer)
        for topic, tree in enumerate(trees)
        for peer in sorted(world.subscribers[topic])
        if tree.in_degree(peer) and tree.out_degree(peer)
    )
    for peer in sorted(nx.ancestors(trees[topic], inner) & world.subscribers[topic]):
        world.scribe.unsubscribe(peer, topic)
    world.run(1)
    publisher = next(peer for peer in range(40) if peer not in world.tree(topic))
    assert world.came_down[world.publish(topic, publisher).message][inner] == 1


def check_second_copy_goes_no_farther() -> None:
    world = World(40).placed()
    made = world.publish(0, min(world.subscribers[0]))
    root = next(peer for peer in range(40) if ("rendezvous", 0) in world.scribe.roles(peer))
    world.scribe.on_up(root, made.publisher, Copy(made, 1))
    world.run(1)
    assert {*world.came_down[made.message].values()} == {1}


def check_tree_takes_one_join_per_link() -> None:
    world = World(40).placed()
    links = sum(len(world.tree(topic)) - 1 for topic in range(TOPICS))
    join = next(kind for kind in world.net.kinds if kind.name == "tree join")
    assert links <= join.sent < 1.5 * links  # some are repeated, as heartbeats cross them


Patch = Callable[[pytest.MonkeyPatch], None]


def replaced(owner: type, name: str, new: Any) -> Patch:
    return lambda patching: patching.setattr(owner, name, new)


on_join, join, prune, enter = (
    ScribeTrees.on_join,
    ScribeTrees._join,
    ScribeTrees._leave_unused,
    ScribeTrees.enter,
)


def join_that_is_not_routed_on(self: ScribeTrees, peer: int, sender: int, topic: int) -> None:
    self.members[peer].group(topic)
    self.members[peer].add_child(topic, sender)


def owner_that_forgets_the_child(self: ScribeTrees, peer: int, sender: int, topic: int) -> None:
    on_join(self, peer, sender, topic)
    if self.routing.next_hop(peer, self.keys[topic]) == peer:
        self.members[peer].drop_child(topic, sender)


def forwarder_without_parent(self: ScribeTrees, peer: int, sender: int, topic: int) -> None:
    is_new = topic not in self.members[peer].groups
    on_join(self, peer, sender, topic)
    group = self.members[peer].groups[topic]
    if is_new and group.parent != peer:
        group.parent = NOBODY


def publish_as_subscription(self: ScribeChord, peer: int, publication: Publication) -> None:
    if publication.topic not in self.trees.members[peer].groups:
        self.trees.enter(peer, publication.topic)
    else:
        Multicast.publish(self, peer, publication)


def prune_without_destination(self: ScribeTrees, peer: int, topic: int) -> None:
    group = self.members[peer].groups[topic]
    if not group.is_subscribed and not group.children:
        del self.members[peer].groups[topic]


def prune_subscribers_too(self: ScribeTrees, peer: int, topic: int) -> None:
    if not self.members[peer].groups[topic].children:
        self.members[peer].groups[topic].is_subscribed = False
    prune(self, peer, topic)


def enter_without_subscription(self: ScribeTrees, peer: int, topic: int) -> None:
    is_new = topic not in self.members[peer].groups
    enter(self, peer, topic)
    self.members[peer].groups[topic].is_subscribed = not is_new


def join_twice(self: ScribeTrees, peer: int, topic: int, to: int) -> None:
    join(self, peer, topic, to)
    if to != peer:
        join(self, peer, topic, to)


def root_in_place_of_children(self: Multicast, peer: int, topic: int) -> list[int]:
    parent = self.trees.members[peer].groups[topic].parent
    return [] if parent in (peer, NOBODY) else [parent]


ERRORS: dict[str, tuple[Patch, Callable[[], None]]] = {
    "5 routed messages are not passed on": (
        replaced(Routed, "on_routed", lambda self, peer, sender, copy: None),
        check_routed_publications_arrive,
    ),
    "5 joins are not passed on": (
        replaced(ScribeTrees, "on_join", join_that_is_not_routed_on),
        check_deliveries,
    ),
    "8 root in place of children": (
        replaced(Multicast, "receivers", root_in_place_of_children),
        check_deliveries,
    ),
    "9 publications sent as subscriptions": (
        replaced(ScribeChord, "publish", publish_as_subscription),
        check_deliveries,
    ),
    "9 publications end at the owner": (
        replaced(Multicast, "_pass_down", lambda self, peer, sender, copy: None),
        check_deliveries,
    ),
    "10 owner forgets the child": (
        replaced(ScribeTrees, "on_join", owner_that_forgets_the_child),
        check_deliveries,
    ),
    "11 forwarder has no parent": (
        replaced(ScribeTrees, "on_join", forwarder_without_parent),
        check_deliveries,
    ),
    "12 departure without destination": (
        replaced(ScribeTrees, "_leave_unused", prune_without_destination),
        check_abandoned_trees_vanish,
    ),
    "12 subscribers are removed": (
        replaced(ScribeTrees, "_leave_unused", prune_subscribers_too),
        check_subscribers_outlast_their_children,
    ),
    "13 no memory of messages": (
        replaced(RecentMessages, "is_new", lambda self, message: True),
        check_second_copy_goes_no_farther,
    ),
    "14 first subscription is not noted": (
        replaced(ScribeTrees, "enter", enter_without_subscription),
        check_subscribers_outlast_their_children,
    ),
    "15 join is sent twice": (
        replaced(ScribeTrees, "_join", join_twice),
        check_tree_takes_one_join_per_link,
    ),
}
"""Number in the list of corrections → the error, and the check."""


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in ERRORS.values()))
def test_check_passes_without_the_printed_errors(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("name", ERRORS)
def test_printed_error_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, check = ERRORS[name]
    make(monkeypatch)
    with pytest.raises(AssertionError):
        check()
