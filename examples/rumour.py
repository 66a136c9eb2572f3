"""A system of one's own: each subscriber passes a message on to a few other subscribers, once.

vizpub lab simulate examples/rumour.py:Rumour --fanout 3 --ingest rumour
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from vizpub import Copy, Links, Network, System


@dataclass(frozen=True)
class RumourParameters:
    """Parameters of Rumour."""

    fanout: Annotated[int, Meta(ge=1, description="Copies that a peer forwards.")] = 3
    view: Annotated[int, Meta(ge=1, description="Subscribers that a peer knows, per topic.")] = 8


class Rumour(System):
    """Rumours among the subscribers of a topic.

    Once a second, a peer tells a random peer its topics (24 bytes, and 4 for each topic). A
    peer that shares some of them adds the sender to its view of these topics and answers. The
    first copy of a message goes on to `fanout` random peers of the view; later ones end.
    """

    layers = ("rumour",)

    def __init__(self, net: Network, parameters: RumourParameters, topics: int) -> None:
        self.net, self.fanout, self.size = net, parameters.fanout, parameters.view
        self.views: list[dict[int, list[int]]] = [{} for _ in range(net.size)]
        self.heard: list[set[int]] = [set() for _ in range(net.size)]
        self.hello = net.kind("hello", self.on_hello)
        self.answer = net.kind("answer", self.on_answer)
        self.rumour = net.kind("rumour", self.on_copy, failed=self.on_lost, publication=True)
        net.every(1_000_000, self.on_tick)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Begin without a view: what the peer knew before is gone."""
        self.views[peer] = {topic: [] for topic in topics}
        self.heard[peer].clear()
        self.on_tick(peer)

    def on_tick(self, peer: int) -> None:
        """Tell a random peer the topics, once a second."""
        contact = self.net.contact(peer)
        if contact is not None:
            self.tell_topics(self.hello, peer, contact)

    def tell_topics(self, kind: Any, peer: int, to: int) -> None:
        """Send the topics of a peer."""
        topics = sorted(self.views[peer])
        self.net.send(kind, peer, to, topics, size=24 + 4 * len(topics))

    def on_hello(self, peer: int, sender: int, topics: Sequence[int]) -> None:
        """Answer a peer that shares a topic."""
        if self.on_answer(peer, sender, topics):
            self.tell_topics(self.answer, peer, sender)

    def on_answer(self, peer: int, sender: int, topics: Sequence[int]) -> bool:
        """Add the sender to the views of common topics; whether there are any."""
        common = [topic for topic in topics if topic in self.views[peer]]
        for topic in common:
            others = [other for other in self.views[peer][topic] if other != sender]
            self.views[peer][topic] = [sender, *others][: self.size]
        return bool(common)

    def publish(self, peer: int, publication: Any) -> None:
        """Take the message for one that arrived over no link."""
        self.on_copy(peer, peer, Copy(publication, hops=0))

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Pass the first copy on."""
        message, topic = copy.publication.message, copy.publication.topic
        if message not in self.heard[peer]:
            self.heard[peer].add(message)
            others = [other for other in self.views[peer].get(topic, ()) if other != sender]
            chosen = self.net.random.sample(others, min(self.fanout, len(others)))
            self.net.forward(self.rumour, peer, chosen, copy)

    def on_lost(self, peer: int, to: int, copy: Copy) -> None:
        """Forget a peer that did not answer."""
        for view in self.views[peer].values():
            if to in view:
                view.remove(to)

    def links(self, peer: int) -> Iterator[Links]:
        """Report the view of each topic as links."""
        for topic, view in sorted(self.views[peer].items()):
            yield Links("rumour", topic, sorted(view))
