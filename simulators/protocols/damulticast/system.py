"""daMulticast: gossip among the subscribers of a topic, and up the hierarchy of topics.

Baehni, Eugster, Guerraoui, Data-Aware Multicast, DSN 2004. Topics form a hierarchy, and who
subscribes to a topic wants the publications on its subtopics too. Each topic has a group of its
subscribers. A publication is gossiped in the group of its topic; some members pass it on to members
of the supertopic, where it is gossiped in turn, up to the root. Nobody gets what it did not
subscribe to.

What is ours, as we could read the paper's abstract, and how others describe it:

- A member sends its first copy to ln S + c random members of its view, S being the size of the
  group, so that by Erdős and Rényi's limit all get it with probability exp(-exp(-c)). S and the
  members of the supertopic come from the bootstrap service, the view from sampling in the topic.
- With probability g/S a member sends to the supertopic: to each of z members that it draws with
  probability a/z. The nearest supertopic with subscribers counts.
- Topic number t is a subtopic of (t - 1) // arity. The world's subscriptions are not changed: a
  subscriber of a supertopic alone counts as a relay in the reports.
- A publisher outside sends the publication to z random subscribers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log

from vizpub.simulators.engine.network import Copy, Links, Network, Publication
from vizpub.simulators.protocols.damulticast.parameters import DaMulticastParameters
from vizpub.simulators.protocols.stan.sampling import TopicGossip


class DaMulticast(TopicGossip):
    """Groups of topics, and links to those above."""

    layers = ("group", "super")

    def __init__(self, net: Network, parameters: DaMulticastParameters, topics: int) -> None:
        super().__init__(net, parameters, topics)
        self.parameters = parameters
        self.sent_to: list[dict[int, list[int]]] = [{} for _ in range(net.size)]
        """By topic, to which members a peer sent from outside the group, last."""

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Join the groups."""
        self.sent_to[peer] = {}
        super().join(peer, topics)

    def publish(self, peer: int, publication: Publication) -> None:
        """Gossip in the group, or give it to members."""
        copy, topic = Copy(publication, 0), publication.topic
        self.held.add(peer, copy)
        to = []
        if topic not in self.sampling.of[peer]:
            to = self.sent_to[peer][topic] = self.sampling.draw(topic, peer, self.parameters.supers)
        self._gossip(peer, peer, copy, to)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Gossip the first copy."""
        if self.held.add(peer, copy):
            self._gossip(peer, sender, copy)

    def _gossip(self, peer: int, sender: int, copy: Copy, entries: Sequence[int] = ()) -> None:
        """Send to members of all groups of the peer on the way up, now and then to those above
        them, and to `entries`.
        """
        random, to = self.net.random, dict.fromkeys(entries)
        topic: int | None = copy.publication.topic
        while topic is not None:
            above, size = self._supertopic(topic), self.sampling.size(topic)
            view = self.sampling.of[peer].get(topic)
            if view is not None:
                others = [other for other in view if other != sender]
                fanout = min(ceil(log(size)) + self.parameters.more, len(others))
                to |= dict.fromkeys(random.sample(others, fanout))
                if above is not None and random.random() < self.parameters.upward / size:
                    known = self.sampling.draw(above, peer, self.parameters.supers)
                    share = self.parameters.reached / self.parameters.supers
                    self.sent_to[peer][above] = [one for one in known if random.random() < share]
                    to |= dict.fromkeys(self.sent_to[peer][above])
            topic = above
        to.pop(sender, None)
        if to or sender == peer:
            self.net.forward(self.copies, peer, [*to], copy)

    def _supertopic(self, topic: int) -> int | None:
        """The nearest topic above it that has subscribers; null = there is none."""
        while self.parameters.arity and topic:
            topic = (topic - 1) // self.parameters.arity
            if self.sampling.size(topic):
                return topic
        return None

    def links(self, peer: int) -> Iterator[Links]:
        """The views, and the members of other groups to which the peer sent last."""
        for topic, view in sorted(self.sampling.of[peer].items()):
            yield Links("group", topic, sorted(view))
        for topic, to in sorted(self.sent_to[peer].items()):
            yield Links("super", topic, to)
