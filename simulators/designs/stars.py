"""Star overlays: every topic has a centre, one of its subscribers, that all others link to.

The rules are those of Onus and Richa (CD-ODA, INFOCOM 2009; 2D-ODA, ToN 2016) and of the paper on
CD-MAX (PeerJ Computer Science 7:e538, 2021). Of a node u and its topics without a centre, n_u
counts the other nodes that share one of them, S_u is the sum of their numbers of subscribers, and
its density is S_u / (n_u + 1).

Readings, where the papers leave something open:

- Ties go to the node with the fewest topics, of several to that of the lowest index (Example 3 of
  that paper takes node 6 of five that tie); ties of topics to the lowest index.
- A topic with a single subscriber needs no centre and counts for nothing.
- CD-ODA-I, whose rule is not in that paper, takes the largest S_u.
- 2D-ODA takes the topic with the most subscribers, then the densest of them, which becomes the
  centre of all its topics that have none.
- All numbers are of the topics that are left: they change with every centre.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

Centres = dict[int, int]
"""The centre of every topic with two or more subscribers, in the order in which they were fixed."""


class Interests:
    """The topics of each node; nodes and topics are dense indexes. A node may have none."""

    def __init__(self, topics_of: Sequence[Collection[int]], topics: int) -> None:
        self.of = [sorted(topics_of_node) for topics_of_node in topics_of]
        self.subscribers: list[list[int]] = [[] for _ in range(topics)]
        """Of each topic, ascending."""
        for node, topics_of_node in enumerate(self.of):
            for topic in topics_of_node:
                self.subscribers[topic].append(node)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.of)

    def add(self, node: int, topic: int) -> None:
        """Add a subscription that does not exist."""
        insort(self.of[node], topic)
        insort(self.subscribers[topic], node)

    def remove(self, node: int, topic: int) -> None:
        """End a subscription that exists."""
        self.of[node].remove(topic)
        self.subscribers[topic].remove(node)

    def shared_topics(self) -> list[int]:
        """The topics that need a centre."""
        return [topic for topic, of_it in enumerate(self.subscribers) if len(of_it) > 1]


_Key = Callable[[int, int], tuple[float, ...]]
"""(n_u, S_u) → what the next centre has least of. Quotients of integers below 2^26 differ as
floats wherever they differ, and are equal wherever they are equal."""

_LEAST: Mapping[str, _Key] = {
    "cd-oda": lambda reached, counted: (-reached,),
    "cd-oda-i": lambda reached, counted: (-counted,),
    "cd-oda-ii": lambda reached, counted: (-counted / (reached + 1),),
    "cd-max": lambda reached, counted: (reached, -counted / (reached + 1)),
}


class _Left:
    """What is left of the topics of each node while centres are fixed."""

    def __init__(self, interests: Interests, key: _Key) -> None:
        self._key, self._interests, self._subscribers = key, interests, interests.subscribers
        shared = set(interests.shared_topics())
        self.topics = [shared.intersection(topics_of_node) for topics_of_node in interests.of]
        # A set of nodes is an integer with a bit for each: their union takes one step for 64 nodes.
        self._bits = [sum(1 << node for node in of_it) for of_it in interests.subscribers]
        self.keys = {
            node: self._of(node)
            for node, topics_of_node in enumerate(self.topics)
            if topics_of_node
        }
        """Of the nodes that have topics without a centre; no two are equal."""

    def _of(self, node: int) -> tuple[float, ...]:
        reached, counted = 0, 0
        for topic in self.topics[node]:
            reached |= self._bits[topic]
            counted += len(self._subscribers[topic])
        key = self._key(reached.bit_count() - 1, counted)
        return (*key, len(self._interests.of[node]), node)

    def take(self, node: int) -> list[int]:
        """Fix the node as the centre of all its topics that have none; returns them."""
        topics = set(self.topics[node])
        for subscriber in {
            subscriber for topic in topics for subscriber in self._subscribers[topic]
        }:
            self.topics[subscriber] -= topics
            if self.topics[subscriber]:
                self.keys[subscriber] = self._of(subscriber)
            else:
                del self.keys[subscriber]
        return sorted(topics)


def _by_node(interests: Interests, key: _Key) -> Centres:
    """The next centre is the node with the least key."""
    open_topics, centres = _Left(interests, key), Centres()
    while open_topics.keys:
        node = min(open_topics.keys, key=open_topics.keys.__getitem__)
        centres |= dict.fromkeys(open_topics.take(node), node)
    return centres


def _by_topic(interests: Interests) -> Centres:
    """The next centre is the densest subscriber of the largest topic."""
    open_topics, centres = _Left(interests, _LEAST["cd-oda-ii"]), Centres()
    subscribers = interests.subscribers
    for topic in sorted(interests.shared_topics(), key=lambda one: (-len(subscribers[one]), one)):
        if topic not in centres:
            node = min(subscribers[topic], key=open_topics.keys.__getitem__)
            centres |= dict.fromkeys(open_topics.take(node), node)
    return centres


RULES: Mapping[str, Callable[[Interests], Centres]] = {
    **{
        name: lambda interests, key=key: _by_node(interests, key)  # type: ignore[misc]
        for name, key in _LEAST.items()
    },
    "2d-oda": _by_topic,
}
"""How centres are chosen, by the name of the algorithm."""


class Stars:
    """A star overlay that can change: each edge with the number of topics that it serves."""

    def __init__(self, interests: Interests, centres: Mapping[int, int] | None = None) -> None:
        self.interests = interests
        self.centres: Centres = {}
        self.links: list[Counter[int]] = [Counter() for _ in interests.of]
        """Of each node: its neighbours, and how many topics the edge serves."""
        self._changed: set[tuple[int, int]] = set()
        for topic, node in (centres or {}).items():
            self.place(topic, node)

    def place(self, topic: int, node: int) -> None:
        """Make the node the centre of a topic that has none."""
        self.centres[topic] = node
        for subscriber in self.interests.subscribers[topic]:
            if subscriber != node:
                self.join(node, subscriber)

    def lift(self, topic: int) -> int:
        """Take the centre from a topic; an edge goes with its last topic. Returns that node."""
        node = self.centres.pop(topic)
        for subscriber in self.interests.subscribers[topic]:
            if subscriber != node:
                self.part(node, subscriber)
        return node

    def join(self, one: int, other: int) -> None:
        """Let the edge serve one more topic."""
        if other not in self.links[one]:
            self._toggle(one, other)
        self.links[one][other] += 1
        self.links[other][one] += 1

    def part(self, one: int, other: int) -> None:
        """Let the edge serve one topic less."""
        for node, peer in ((one, other), (other, one)):
            self.links[node][peer] -= 1
            if not self.links[node][peer]:
                del self.links[node][peer]
        if other not in self.links[one]:
            self._toggle(one, other)

    def _toggle(self, one: int, other: int) -> None:
        # An edge that goes and comes back has not changed.
        self._changed ^= {(min(one, other), max(one, other))}

    def take_changes(self) -> int:
        """Number of edges that came or went since the last call."""
        count = len(self._changed)
        self._changed.clear()
        return count

    def degree(self, node: int) -> int:
        """Number of neighbours."""
        return len(self.links[node])

    def degree_as_centre(self, node: int, topic: int) -> int:
        """The degree of the node if it were the centre of one more of its topics. The edge to the
        present centre, which may serve no other topic, stays.
        """
        neighbours = self.links[node]
        return len(neighbours) + sum(
            subscriber not in neighbours
            for subscriber in self.interests.subscribers[topic]
            if subscriber != node
        )

    def relieve(self, node: int, most: float = 0) -> bool:
        """Move topics away from the node while its degree is above `most`, each to its subscriber
        of least degree, if that then has a smaller degree than this node now. Returns whether any
        was moved.
        """
        moved = False
        centred = [topic for topic in self.interests.of[node] if self.centres.get(topic) == node]
        for topic in centred:
            if self.degree(node) <= most:
                break
            least = min(self.interests.subscribers[topic], key=lambda one: (self.degree(one), one))
            if least != node and self.degree_as_centre(least, topic) < self.degree(node):
                self.lift(topic)
                self.place(topic, least)
                moved = True
        return moved

    @property
    def neighbours(self) -> list[list[int]]:
        """Of each node, ascending."""
        return [sorted(peers) for peers in self.links]


def refine_stars(stars: Stars) -> None:
    """CD-MAX-Ref: take the nodes by falling degree, and move the centres of their topics."""
    nodes = range(stars.interests.nodes)
    for node in sorted(nodes, key=lambda one: (-stars.degree(one), one)):
        stars.relieve(node)
