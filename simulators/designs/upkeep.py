"""Repairs a star overlay where nodes and subscriptions come and go.

A node that subscribes links to the topic's centre. A topic whose centre goes gets its subscriber of
least degree. Then the node of the highest degree is relieved of topics, again and again: until it
cannot be if the algorithm refines, otherwise until no node has a higher degree than at the
construction, in proportion to the nodes that are up.
"""

from __future__ import annotations

from collections.abc import Collection

from vizpub.simulators.designs.algorithms import ConstructedOverlay, Design
from vizpub.simulators.designs.stars import Interests


class Upkeep:
    """An overlay that is repaired. It begins as the algorithm constructs it."""

    def __init__(self, design: Design, interests: Interests) -> None:
        """Raises: UseError if the algorithm builds no stars."""
        self.interests = interests
        self.stars = design.stars(interests)
        self.stars.take_changes()
        highest = max(map(self.stars.degree, range(interests.nodes)), default=0)
        self._share = 0.0 if design.refines else highest / max(self._up(), 1)
        """Of the nodes that are up, how many a node may be linked to before it is relieved."""

    def change(self, node: int, topics: Collection[int]) -> int:
        """Give the node these topics; one that is down has none. Returns the number of edges that
        came or went.
        """
        old_topics = set(self.interests.of[node])
        for topic in sorted(old_topics.difference(topics)):
            self._end(node, topic)
        for topic in sorted(set(topics) - old_topics):
            self._begin(node, topic)
        nodes, most = range(self.interests.nodes), self._share * self._up()
        for _ in nodes:  # what one is relieved of may make another the highest, but not for ever
            highest = max(nodes, key=lambda n: (self.stars.degree(n), -n))
            if not self.stars.relieve(highest, most):
                break
        return self.stars.take_changes()

    def _begin(self, node: int, topic: int) -> None:
        self.interests.add(node, topic)
        centre = self.stars.centres.get(topic)
        if centre is not None:
            self.stars.join(centre, node)
        else:
            self._place(topic)

    def _end(self, node: int, topic: int) -> None:
        # All edges of a star are of its subscribers: it is taken away before one is.
        centre = self.stars.centres.get(topic)
        if centre == node or len(self.interests.subscribers[topic]) == 2:
            self.stars.lift(topic)
            self.interests.remove(node, topic)
            self._place(topic)
        else:
            self.interests.remove(node, topic)
            if centre is not None:
                self.stars.part(centre, node)

    def _place(self, topic: int) -> None:
        subscribers = self.interests.subscribers[topic]
        if len(subscribers) > 1:
            self.stars.place(topic, min(subscribers, key=lambda n: (self.stars.degree(n), n)))

    def _up(self) -> int:
        return sum(1 for topics in self.interests.of if topics)

    @property
    def overlay(self) -> ConstructedOverlay:
        """The overlay now."""
        return ConstructedOverlay(self.stars.neighbours, dict(self.stars.centres))
