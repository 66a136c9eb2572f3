"""Trees against the ids of all, with networkx as the judge of what a tree is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from statistics import fmean

import networkx as nx
import pytest

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Publication
from vizpub.simulators.protocols.pastry.placing import place
from vizpub.simulators.protocols.routing import NOBODY
from vizpub.simulators.protocols.scribe.parameters import ScribeParameters
from vizpub.simulators.protocols.scribe.state import TreeParent
from vizpub.simulators.protocols.scribe.system import Scribe

INTERVAL = 1_000_000
"""µs; a heartbeat is three of them."""
TOPICS = 30


class World:
    """Scribe in its network: topic t has the subscribers that `wanted` says."""

    def __init__(self, size: int, seed: int = 1, loss: float = 0.0) -> None:
        print(f"seed {seed}")
        self.net = Simulation(size, seed, lambda sender, receiver: 10_000, loss=loss)
        self.scribe = Scribe(self.net, ScribeParameters(), TOPICS)
        self.trees, self.overlay = self.scribe.trees, self.scribe.routing
        self.random = random.Random(seed)
        shares = [0.5 / (topic + 1) + 0.01 for topic in range(TOPICS)]
        self.wanted = [
            [topic for topic, share in enumerate(shares) if self.random.random() < share]
            for _ in range(size)
        ]
        self.got: dict[int, list[int]] = {}
        self.net.observer = self

    def on_sent(self, peer: int, copy: Copy, targets: object) -> None:
        """See Observer."""

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        self.got.setdefault(copy.publication.message, []).append(peer)

    def placed(self) -> World:
        """Pastry as it will be; the trees grow by the protocol."""
        for peer in range(self.net.size):
            self.net.come_up(peer)
        place(self.overlay, range(self.net.size))
        for peer, topics in enumerate(self.wanted):
            for topic in topics:
                self.scribe.subscribe(peer, topic)
        self.run(10)
        return self

    def come_up(self, peer: int) -> None:
        self.net.come_up(peer)
        self.scribe.join(peer, self.wanted[peer])

    def come_up_soon(self, peers: list[int]) -> None:
        for peer in peers:
            at = self.net.now + self.random.randrange(INTERVAL // 2)
            self.net.at(at, lambda peer=peer: self.come_up(peer))

    def crash(self, peers: list[int]) -> None:
        for peer in peers:
            self.net.go_down(peer)
            self.scribe.go_down(peer)

    def run(self, intervals: int) -> None:
        self.net.run(self.net.now + intervals * INTERVAL)

    def subscribers(self, topic: int) -> set[int]:
        return {peer for peer in self.net.present if topic in self.wanted[peer]}

    def root(self, topic: int) -> int:
        """Who is closest of those who are up."""
        ring, ids = self.overlay.ring, self.overlay.ring.ids
        key = self.overlay.keys[topic]
        return min(self.net.present, key=lambda peer: ring.distance(ids[peer], key))

    def tree(self, topic: int) -> nx.DiGraph:
        return self.all_trees()[topic]

    def all_trees(self) -> list[nx.DiGraph]:
        """Links from child to parent, as they are reported, of all in each topic's tree."""
        graphs = [nx.DiGraph() for _ in range(TOPICS)]
        for peer in self.net.present:
            for topic in self.trees.members[peer].groups:
                graphs[topic].add_node(peer)
            for links in self.scribe.links(peer):
                if links.layer == "tree" and links.topic is not None:
                    graphs[links.topic].add_edges_from((peer, parent) for parent in links.peers)
        return graphs

    def lasting_faults(self) -> set[str]:
        """What is wrong with trees at four times in a row: a change of parents that is under way
        is no fault.
        """
        found = set(self.faults())
        for _ in range(3):
            self.net.run(self.net.now + INTERVAL // 2)
            found &= set(self.faults())
        return found

    def faults(self) -> Iterator[str]:
        """What is wrong with which tree now."""
        rendezvous = [
            (topic, peer)
            for peer in self.net.present
            for role, topic in self.scribe.roles(peer)
            if role == "rendezvous"
        ]
        for topic, graph in enumerate(self.all_trees()):
            wanted = self.subscribers(topic)
            if not wanted <= set(graph):
                yield f"{topic}: without some subscribers"
            if len(graph) and not nx.is_arborescence(graph.reverse()):
                yield f"{topic}: no tree"
            leaves = {peer for peer in graph if not graph.in_degree(peer)}
            if not leaves <= wanted | {self.root(topic)} or (graph and not wanted):
                yield f"{topic}: empty branches"
            roots = [peer for of, peer in rendezvous if of == topic]
            if roots != [self.root(topic)] * bool(wanted):
                yield f"{topic}: roots {roots}"
            children = {
                (child, peer)
                for peer in graph
                if (group := self.trees.members[peer].groups.get(topic))
                for child in group.children
            }
            if children != set(graph.edges):
                yield f"{topic}: parents and children differ"

    def hit_ratio(self, seconds: int = 3) -> float:
        """Over all topics, of publications by random subscribers; a copy must come in time."""
        self.got.clear()
        published = {}
        for topic in range(TOPICS):
            if wanted := sorted(self.subscribers(topic)):
                published[topic] = self.random.choice(wanted)
                publication = Publication(self.net.now + topic, topic, published[topic], 100)
                self.scribe.publish(published[topic], publication)
        now = self.net.now
        self.run(seconds)
        hits = eligible = 0
        for topic, publisher in published.items():
            others = self.subscribers(topic) - {publisher}
            eligible += len(others)
            hits += len(others & set(self.got.get(now + topic, ())))
        return hits / eligible


def test_topic_tree_is_rooted_at_the_closest_peer() -> None:
    world = World(200).placed()
    assert world.lasting_faults() == set()
    trees = world.all_trees()
    relays = sum(len(tree.nodes - world.subscribers(topic)) for topic, tree in enumerate(trees))
    assert relays > 0
    for graph in trees:
        assert graph.number_of_edges() == len(graph) - 1


@pytest.mark.parametrize(
    ("size", "seed"), [(150, 1), (150, 2), pytest.param(300, 2, marks=pytest.mark.long)]
)
def test_trees_of_peers_that_join_at_once_become_correct(size: int, seed: int) -> None:
    """Within 4 heartbeats (12 intervals)."""
    world = World(size, seed)
    world.come_up_soon(list(range(size)))
    world.run(12)
    assert world.lasting_faults() == set()


@pytest.mark.parametrize("size", [200, pytest.param(500, marks=pytest.mark.long)])
def test_trees_heal_after_many_peers_crash_at_once(size: int) -> None:
    """Above 0.99 again after 3 heartbeats (9 intervals); right after 10."""
    world = World(size).placed()
    assert world.hit_ratio() == 1
    world.crash(world.random.sample(range(size), size * 3 // 10))
    before = world.hit_ratio(seconds=1)
    world.run(8)
    after = world.hit_ratio()
    print(f"hit ratio {before:.3f}, after three heartbeats {after:.4f}")
    assert before < 0.8
    assert after > 0.99
    world.run(18)
    assert world.lasting_faults() == set()
    assert world.hit_ratio() == 1


def test_crashed_root_is_succeeded() -> None:
    world = World(150).placed()
    roots = sorted({world.root(topic) for topic in range(TOPICS)})
    world.crash(roots)
    world.run(15)
    assert world.lasting_faults() == set()
    assert world.hit_ratio() == 1


def test_root_steps_down_for_the_closer_peer_that_returns() -> None:
    world = World(150).placed()
    roots = sorted({world.root(topic) for topic in range(TOPICS)})
    for peer in roots:
        world.scribe.leave(peer)
    world.crash(roots)
    world.run(9)
    assert world.lasting_faults() == set()
    for peer in roots:
        world.come_up(peer)
    world.run(1)
    assert world.hit_ratio() > 0.99
    world.run(9)
    assert world.lasting_faults() == set()


def test_unsubscribed_peers_leave_no_empty_branch() -> None:
    world = World(150).placed()
    for peer in world.random.sample(range(150), 125):
        for topic in world.wanted[peer]:
            world.scribe.unsubscribe(peer, topic)
        world.wanted[peer] = []
    world.run(2)
    assert world.lasting_faults() == set()
    for peer in range(150):
        for topic in world.wanted[peer]:
            world.scribe.unsubscribe(peer, topic)
        world.wanted[peer] = []
    world.run(2)
    assert all(not member.groups and not member.children for member in world.trees.members)


def test_trees_follow_changing_subscriptions() -> None:
    world = World(200).placed()
    for _ in range(6):
        for peer in world.random.sample(range(200), 60):
            topic = world.random.randrange(TOPICS)
            if topic in world.wanted[peer]:
                world.wanted[peer].remove(topic)
                world.scribe.unsubscribe(peer, topic)
            else:
                world.wanted[peer].append(topic)
                world.scribe.subscribe(peer, topic)
        world.run(1)
    world.run(4)
    assert world.lasting_faults() == set()
    assert world.hit_ratio() == 1


@pytest.mark.parametrize("length", [2, 3, 5])
def test_loops_are_found_and_broken(length: int) -> None:
    """Of whatever make: parents are set to go round. A heartbeat for each peer of the loop."""
    world = World(200).placed()
    loop = [peer for peer in range(200) if 0 in world.trees.members[peer].groups][:length]
    assert world.root(0) not in loop
    for child, parent in zip(loop, loop[1:] + loop[:1], strict=True):
        link_by_force(world, child, parent)
    assert not nx.is_forest(world.tree(0))
    world.run(3 * (length + 3))
    assert world.lasting_faults() == set()


def link_by_force(world: World, child: int, parent: int) -> None:
    group = world.trees.members[child].groups[0]
    world.trees.members[group.parent].drop_child(0, child)
    world.trees.members[parent].add_child(0, child)
    group.parent = parent
    entry = world.trees.members[child].parents.setdefault(parent, TreeParent(world.net.now))
    entry.beat = None


def test_first_of_several_former_parents_serves_until_another_does() -> None:
    """The routes of a leaf of a tree change twice in less time than a message takes."""
    world = World(400).placed()
    members, ids = world.trees.members, world.overlay.ring.ids
    child, former = next(
        (peer, group.parent)
        for peer in sorted(world.subscribers(0))
        if (group := members[peer].groups[0]).parent not in world.overlay.nodes[peer].leaves
        and not group.children
    )
    node = world.overlay.nodes[child]
    slot = node.slot(world.overlay.keys[0])
    others = [peer for peer in range(400) if peer not in (child, former)]
    able = [peer for peer in others if node.slot(ids[peer]) == slot]

    def parents() -> list[int]:
        of_topic = [(peer, members[peer].groups.get(0)) for peer in (former, *able)]
        return [peer for peer, group in of_topic if group and child in group.children]

    for other in able[:2]:
        node.table[slot] = other
        members[child].routes = None
        world.trees.on_tick(child)
        world.net.run(world.net.now + 1000)
        assert parents() == [former]
    world.net.run(world.net.now + 300_000)
    assert parents() == able[1:2]


def test_trees_stay_attached_and_deliver_despite_lost_messages() -> None:
    world = World(120, loss=0.02)
    world.come_up_soon(list(range(120)))
    world.run(40)
    assert not any(
        group.parent == NOBODY for member in world.trees.members for group in member.groups.values()
    )
    assert fmean(world.hit_ratio() for _ in range(6)) > 0.98


def test_trees_deliver_most_copies_under_churn_and_heal_afterwards() -> None:
    world = World(200).placed()
    for _ in range(30):
        world.run(1)
        for peer in world.random.sample(range(200), 2):
            if world.net.up[peer]:
                world.crash([peer])
            else:
                world.come_up(peer)
    assert world.hit_ratio() > 0.8
    world.run(30)
    assert world.lasting_faults() == set()
    assert world.hit_ratio() == 1
