"""Vitis: rendezvous routing on an unstructured overlay.

Rahimian, Girdzijauskas, Payberah, Haridi, Vitis: A Gossip-based Hybrid Overlay for Internet-scale
Publish/Subscribe Enabling Rendezvous Routing in Unstructured Overlay Networks, IPDPS 2011. Peers
have a bounded routing table, filled by gossip: places on a ring, small-world links, and friends of
like interests. The subscribers of a topic fall into clusters of neighbours. Each cluster elects
gateways, which open relay paths to the topic's rendezvous, so that the clusters are joined. A
publication floods the clusters, and follows the relay paths between them.

What is ours, as we could read the paper's abstract, and how others describe it:

- Peer sampling is that of SpiderCast here (NEWSCAST's rule). Tables are exchanged with a random
  peer of the table, and chosen anew of all that is known. All topics weigh the same in the utility.
- Neighbours are the peers of the table, and those that have the peer in theirs: they tell each
  other their topics and gateways once a period, and a publication floods in both directions.
- A peer takes from its neighbours, topic by topic, the gateway that is nearest to the topic's key
  and not more than `depth` hops away; one that knows no nearer one than itself is a gateway.
- A gateway renews its relay path once a period: each peer on the way remembers the next and the
  previous hop until `expiry`. The rendezvous is the peer that knows nobody nearer to the key.
- A publisher outside the topic sends the publication towards the rendezvous.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vizpub.simulators.engine.network import (
    HEADER_BYTES,
    Copy,
    Links,
    MessageKind,
    Network,
    Publication,
    System,
)
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.broadcast.held import FirstCopies
from vizpub.simulators.protocols.spidercast.views import Description, InterestViews
from vizpub.simulators.protocols.vitis.parameters import VitisParameters
from vizpub.simulators.protocols.vitis.table import RoutingTables


class Gateway(NamedTuple):
    """Who a peer takes for the gateway of its cluster: 18 bytes in a message."""

    peer: int
    parent: int
    """The neighbour it has that from; itself if it is the gateway."""
    hops: int


_GATEWAY_BYTES = 8 + 8 + 2


class Profile(NamedTuple):
    """What a peer tells its neighbours of itself."""

    description: Description
    gateways: dict[int, Gateway]
    """By topic."""


class Vitis(System):
    """Clusters, gateways and relays."""

    layers = ("table", "relay")

    def __init__(self, net: Network, parameters: VitisParameters, topics: int) -> None:
        self.net, self.depth = net, parameters.depth
        self.expiry_us = us(parameters.expiry)
        self.views = InterestViews(net, parameters)
        self.tables = RoutingTables(net, parameters.table, parameters.long, topics)
        self.near: list[dict[int, Profile]] = [{} for _ in range(net.size)]
        """The latest profile of each neighbour, in either direction."""
        self.gateways: list[dict[int, Gateway]] = [{} for _ in range(net.size)]
        self.relays: list[dict[int, dict[int, int]]] = [{} for _ in range(net.size)]
        """By topic: the neighbours on relay paths, each with the time of its expiry."""
        self.held = FirstCopies(net, us(parameters.memory))
        self.tell = net.kind("profile", self.on_profile, failed=self.on_lost)
        self.answer = net.kind("profile reply", self.on_answer)
        self.request = net.kind("table request", self.on_request, failed=self.on_lost)
        self.reply = net.kind("table reply", self.on_reply)
        self.relay = net.kind("relay", self.on_relay, failed=self.on_lost)
        self.copies = net.kind("publication", self.on_copy, failed=self.on_lost, publication=True)
        net.every(us(parameters.period), self.on_tick)

    # Sessions and subscriptions.

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """Begin with empty tables."""
        self.held.clear(peer)
        self.tables.reset(peer)
        self.views.topics[peer], self.views.of[peer] = frozenset(topics), {}
        self.near[peer], self.gateways[peer], self.relays[peer] = {}, {}, {}
        self.views.exchange(peer)

    def subscribe(self, peer: int, topic: int) -> None:
        """Neighbours hear of it with the next profile."""
        self.views.topics[peer] |= {topic}

    def unsubscribe(self, peer: int, topic: int) -> None:
        """Neighbours hear of it with the next profile."""
        self.views.topics[peer] -= {topic}

    def on_lost(self, peer: int, to: int, message: object) -> None:
        """Forget a peer that does not answer."""
        self.views.on_lost(peer, to, message)
        self.tables.of[peer].pop(to, None)
        self.near[peer].pop(to, None)
        for others in self.relays[peer].values():
            others.pop(to, None)

    # Gossip.

    def on_tick(self, peer: int) -> None:
        """Gossip, choose neighbours and gateways, and tell of them."""
        now, oldest = self.net.now, self.net.now - self.expiry_us
        self.views.exchange(peer)
        profiles = self.near[peer].items()
        self.near[peer] = {o: p for o, p in profiles if p.description.made_us >= oldest}
        self._learn(peer, (profile.description for profile in self.near[peer].values()))
        table = self.tables.of[peer]
        if table:
            self._send_table(self.request, peer, self.net.random.choice([*table]))
        self.gateways[peer] = {t: self._elect(peer, t) for t in sorted(self.views.topics[peer])}
        for other in table:
            self._send_profile(self.tell, peer, other)
        for topic, others in list(self.relays[peer].items()):
            alive = {other: until for other, until in others.items() if until > now}
            self.relays[peer][topic] = alive
            if not alive:
                del self.relays[peer][topic]
        for topic, gateway in self.gateways[peer].items():
            if gateway.peer == peer:
                self._extend(peer, topic)

    def _learn(self, peer: int, described: Iterable[Description]) -> None:
        candidates = (*self.views.of[peer].values(), *described)
        oldest = self.net.now - self.expiry_us
        self.tables.choose(peer, self.views.topics[peer], candidates, oldest)

    def _send_table(self, kind: MessageKind, peer: int, to: int) -> None:
        message = (self.views.describe(peer), *self.tables.of[peer].values())
        self.net.send(kind, peer, to, message, HEADER_BYTES + sum(one.size for one in message))

    def on_request(self, peer: int, sender: int, message: tuple[Description, ...]) -> None:
        """Answer with the own table."""
        self._send_table(self.reply, peer, sender)
        self._learn(peer, message)

    def on_reply(self, peer: int, sender: int, message: tuple[Description, ...]) -> None:
        """Learn from it."""
        self._learn(peer, message)

    def _send_profile(self, kind: MessageKind, peer: int, to: int) -> None:
        profile = Profile(self.views.describe(peer), self.gateways[peer])
        size = profile.description.size + _GATEWAY_BYTES * len(profile.gateways)
        self.net.send(kind, peer, to, profile, HEADER_BYTES + size)

    def on_profile(self, peer: int, sender: int, profile: Profile) -> None:
        """A peer has this one in its table."""
        self.near[peer][sender] = profile
        self._send_profile(self.answer, peer, sender)

    def on_answer(self, peer: int, sender: int, profile: Profile) -> None:
        """A peer of the table is up."""
        self.near[peer][sender] = profile
        if sender in self.tables.of[peer]:
            self.tables.of[peer][sender] = profile.description

    # Gateways and relays.

    def _elect(self, peer: int, topic: int) -> Gateway:
        """The nearest gateway to the topic's key of those that neighbours know."""
        key, best = self.tables.keys[topic], Gateway(peer, peer, 0)
        nearest = self.tables.distance(peer, key)
        for other in sorted(self.near[peer]):
            theirs = self.near[peer][other].gateways.get(topic)
            if theirs is None or theirs.parent == peer or theirs.hops >= self.depth:
                continue
            apart = self.tables.distance(theirs.peer, key)
            if apart < nearest or (theirs.peer == best.peer and theirs.hops + 1 < best.hops):
                best, nearest = Gateway(theirs.peer, other, theirs.hops + 1), apart
        return best

    def _extend(self, peer: int, topic: int) -> None:
        """Lead the relay path one hop on towards the rendezvous."""
        to = self.tables.next_hop(peer, topic)
        if to is not None:
            self._join_relays(peer, topic, to)
            self.net.send(self.relay, peer, to, topic, HEADER_BYTES + 4)

    def _join_relays(self, peer: int, topic: int, other: int) -> None:
        self.relays[peer].setdefault(topic, {})[other] = self.net.now + self.expiry_us

    def on_relay(self, peer: int, sender: int, topic: int) -> None:
        """Be a part of a relay path."""
        self._join_relays(peer, topic, sender)
        self._extend(peer, topic)

    # Publications.

    def publish(self, peer: int, publication: Publication) -> None:
        """Begin to flood, or send it towards the rendezvous."""
        copy = Copy(publication, 0)
        self.held.add(peer, copy)
        self._spread(peer, peer, copy)

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """Send the first copy on."""
        if self.held.add(peer, copy):
            self._spread(peer, sender, copy)

    def _spread(self, peer: int, sender: int, copy: Copy) -> None:
        topic, to = copy.publication.topic, dict[int, None]()
        if topic in self.views.topics[peer]:
            profiles = self.near[peer].items()
            to |= dict.fromkeys(o for o, p in profiles if topic in p.description.topics)
        to |= dict.fromkeys(self.relays[peer].get(topic, ()))
        if not to and (hop := self.tables.next_hop(peer, topic)) is not None:
            to[hop] = None
        to.pop(sender, None)
        if to or sender == peer:
            self.net.forward(self.copies, peer, [*to], copy)

    def links(self, peer: int) -> Iterator[Links]:
        """The table, and the neighbours on relay paths."""
        yield Links("table", None, sorted(self.tables.of[peer]))
        for topic in sorted(self.relays[peer]):
            yield Links("relay", topic, sorted(self.relays[peer][topic]))

    def roles(self, peer: int) -> Iterator[tuple[str, int | None]]:
        """Gateways, and the rendezvous of topics: the ends of relay paths."""
        for topic, gateway in self.gateways[peer].items():
            if gateway.peer == peer:
                yield "gateway", topic
        for topic in sorted(self.relays[peer]):
            if self.tables.next_hop(peer, topic) is None:
                yield "rendezvous", topic
