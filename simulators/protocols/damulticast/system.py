"""daMulticast: gossip among the subscribers of a topic, and up the hierarchy of topics.

Baehni, Eugster, Guerraoui, Data-Aware Multicast, DSN 2004. Topics form a hierarchy, and who
subscribes to a topic wants the publications on its subtopics too. Each topic has a group of its
subscribers. A publication is gossiped in the group of its topic; some members pass it on to members
of the supertopic, where it is gossiped in turn, up to the root. Nobody gets what it did not
subscribe to.

What is ours, as we could read the paper's abstract, and how others describe it:

- A peer is only in the groups of its topmost topics: those below bring it nothing else. So it has
  one group at most on the way from a topic to the root.
- A member sends its first copy to ln S + c random members of its view, S being the size of the
  group, so that by Erdős and Rényi's limit all get it with probability exp(-exp(-c)). S and the
  members of the supertopic come from the bootstrap service, the view from sampling in the topic.
- With probability g/S a member sends to the supertopic: to each of the z members that it knows with
  probability a/z. The nearest supertopic with members counts. Members that left are replaced
  once a period.
- A publisher outside the lowest group with members on that way sends the publication to z of them.
- Without a hierarchy in the world (workload `hierarchy`), topics are groups with nothing above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log

from vizpub.simulators.engine.network import Copy, Links, Network, Publication
from vizpub.simulators.protocols.damulticast.parameters import DaMulticastParameters
from vizpub.simulators.protocols.stan.sampling import TopicGossip


class DaMulticast(TopicGossip):
    """Groups of topics, and links to those above."""

    layers = ("group", "super", "entry")

    def __init__(self, net: Network, parameters: DaMulticastParameters, topics: int) -> None:
        super().__init__(net, parameters, topics)
        self.parameters = parameters
        self.wanted: list[set[int]] = [set() for _ in range(net.size)]
        """The topics of each peer; its groups are those with a view."""
        self.supers: list[dict[int, list[int]]] = [{} for _ in range(net.size)]
        """By topic above a group of the peer, the members that it knows."""
        self.entries: list[dict[int, list[int]]] = [{} for _ in range(net.size)]
        """By topic, to which members a peer sent what it published from outside, last."""

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Join the groups of the topmost topics."""
        self.wanted[peer], self.supers[peer], self.entries[peer] = {*topics}, {}, {}
        super().join(peer, self._topmost(peer))

    def subscribe(self, peer: int, topic: int) -> None:
        """Join its group, if it is a topmost topic; those below it are none any more."""
        self.wanted[peer].add(topic)
        self._regroup(peer)

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Leave its group; what the peer still wants below it may be topmost now."""
        self.wanted[peer].discard(topic)
        self._regroup(peer)

    def _topmost(self, peer: int) -> list[int]:
        wanted = self.wanted[peer]
        return [topic for topic in sorted(wanted) if self.net.supertopic(topic) not in wanted]

    def _regroup(self, peer: int) -> None:
        topmost, groups = self._topmost(peer), [*self.sampling.of[peer]]
        for topic in (topic for topic in groups if topic not in topmost):
            self.sampling.leave(peer, topic)
        for topic in (topic for topic in topmost if topic not in groups):
            self.sampling.join(peer, topic)

    # Supertopics.

    def on_tick(self, peer: int) -> None:
        """Gossip, and know members of the supertopics."""
        super().on_tick(peer)
        above = (self._above(topic) for topic in self.sampling.of[peer])
        self.supers[peer] = {
            topic: self._known(peer, topic) for topic in above if topic is not None
        }

    def _known(self, peer: int, topic: int) -> list[int]:
        """The members of a supertopic that a peer knows; others if one has left."""
        known = self.supers[peer].get(topic, [])
        if len(known) == self.parameters.supers and all(
            topic in self.sampling.of[other] for other in known
        ):
            return known
        return self.sampling.draw(topic, peer, self.parameters.supers)

    def _above(self, topic: int) -> int | None:
        """The nearest supertopic with members."""
        _, *above = self._way_up(topic)
        return next(filter(self.sampling.size, above), None)

    def _way_up(self, topic: int | None) -> Iterator[int]:
        while topic is not None:
            yield topic
            topic = self.net.supertopic(topic)

    # Publications.

    def publish(self, peer: int, publication: Publication) -> None:
        """Gossip in the peer's group, if it wants the topic, and give it to members of the lowest
        group.
        """
        copy, topic, to = Copy(publication, 0), publication.topic, list[int]()
        self.held.add(peer, copy)
        lowest = next(filter(self.sampling.size, self._way_up(topic)), None)
        if lowest is not None and lowest not in self.sampling.of[peer]:
            to = self.entries[peer][topic] = self.sampling.draw(
                lowest, peer, self.parameters.supers
            )
        self._gossip(peer, peer, copy, to)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Gossip the first copy."""
        if self.held.add(peer, copy):
            self._gossip(peer, sender, copy)

    def _gossip(self, peer: int, sender: int, copy: Copy, entries: Sequence[int] = ()) -> None:
        """Send to members of the group that the peer has on the way up, now and then to those above
        it, and to `entries`.
        """
        to, views = dict.fromkeys(entries), self.sampling.of[peer]
        group = next((one for one in self._way_up(copy.publication.topic) if one in views), None)
        if group is not None:
            others, size = [one for one in views[group] if one != sender], self.sampling.size(group)
            fanout = min(ceil(log(size)) + self.parameters.more, len(others))
            to |= dict.fromkeys(self.net.random.sample(others, fanout))
            to |= dict.fromkeys(self._upward(peer, group, size))
        to.pop(sender, None)
        if to or sender == peer:
            self.net.forward(self.copies, peer, [*to], copy)

    def _upward(self, peer: int, group: int, size: int) -> list[int]:
        """The members above that a member of a group sends to."""
        random, above = self.net.random, self._above(group)
        if above is None or random.random() >= self.parameters.upward / size:
            return []
        known = self.supers[peer][above] = self._known(peer, above)
        share = self.parameters.reached / self.parameters.supers
        return [one for one in known if random.random() < share]

    def links(self, peer: int) -> Iterator[Links]:
        """The views, and the members of other groups that the peer sends to."""
        for topic, view in sorted(self.sampling.of[peer].items()):
            yield Links("group", topic, sorted(view))
        for topic, known in sorted(self.supers[peer].items()):
            yield Links("super", topic, known)
        for topic, to in sorted(self.entries[peer].items()):
            yield Links("entry", topic, to)
