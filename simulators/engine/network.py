"""The interface between protocols and the simulator.

A protocol is a plain class for *all* peers of an overlay: peers are the integers 0 … size − 1,
its state is indexed by them, and its handlers get the peer at which an event happens. It uses
only a `Network`: it does not know which peers are up, how long a message will take or what is
observed.

    class Ping:
        def __init__(self, net: Network) -> None:
            self.net = net
            self.ping = net.kind("ping", self.on_ping, failed=self.on_lost)
            net.every(1_000_000, self.on_tick)

        def on_tick(self, peer: int) -> None: ...  # once a second
        def on_ping(self, peer: int, sender: int, payload: Any) -> None: ...
        def on_lost(self, peer: int, to: int, payload: Any) -> None: ...  # not acknowledged

A *system* can be simulated on its own: one or more protocols that take subscriptions and
publications, and report their links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from vizpub.reports.records import Counters

if TYPE_CHECKING:
    from vizpub.simulators.world.own import OwnWorkload

TRANSPORT_BYTES = 28
"""Bytes of IP and UDP headers in every message of any system."""
HEADER_BYTES = TRANSPORT_BYTES + 16
"""Bytes of any message of gossip and broadcasts: the transport's, kind and flags (2), entries (2),
sender (8), checksum (4)."""
COPY_BYTES = TRANSPORT_BYTES + 20
"""Bytes of a copy of a publication besides its content: the transport's, the message's number (8),
its topic (4) and its publisher (8). Hops are for reports only and count no bytes."""

Handler = Callable[[int, int, Any], None]
"""(peer, sender, payload): a message arrived at `peer`."""
Failed = Callable[[int, int, Any], None]
"""(peer, to, payload): what `peer` sent was not acknowledged in time."""
Lost = Callable[[int, int], None]
"""(peer, other): the connection that `peer` held to `other` is broken."""


class Publication(NamedTuple):
    """A published message."""

    message: int
    """Its number in the run, from 0."""
    topic: int
    publisher: int
    size: int
    """Bytes of its content."""


class Copy(NamedTuple):
    """A copy of a publication as a peer holds or receives it."""

    publication: Publication
    hops: int
    """Links travelled to that peer; 0 at the publisher."""
    resent: bool = False
    """Whether it is sent to a peer that came too late for the first ones."""
    note: tuple[int, ...] = ()
    """What a protocol sends along with it, such as steps left: 8 bytes each."""

    @property
    def bytes(self) -> int:
        """Its size on the wire."""
        return COPY_BYTES + self.publication.size + 8 * len(self.note)


class Traffic:
    """Messages and bytes in each direction, by peer."""

    __slots__ = ("bytes_received", "bytes_sent", "messages_received", "messages_sent")

    def __init__(self, peers: int) -> None:
        self.messages_sent = [0] * peers
        self.bytes_sent = [0] * peers
        self.messages_received = [0] * peers
        self.bytes_received = [0] * peers

    def take(self, peer: int) -> Counters:
        """The counts of a peer since the last call."""
        counted = Counters(
            self.messages_sent[peer],
            self.bytes_sent[peer],
            self.messages_received[peer],
            self.bytes_received[peer],
        )
        self.messages_sent[peer] = self.bytes_sent[peer] = 0
        self.messages_received[peer] = self.bytes_received[peer] = 0
        return counted


class MessageKind:
    """A kind of message: its handlers and counters."""

    __slots__ = (
        *("bytes", "failed", "handler", "is_publication", "lost", "name"),
        *("received", "sent", "traffic"),
    )

    def __init__(
        self, name: str, handler: Handler, failed: Failed | None, is_publication: bool, peers: int
    ) -> None:
        self.name = name
        self.handler = handler
        self.failed = failed
        self.is_publication = is_publication
        """Whether it carries publications; otherwise it is control traffic."""
        self.sent = 0
        self.bytes = 0
        """Bytes of the sent messages."""
        self.received = 0
        self.lost = 0
        """In transit, or sent to a peer that was down on arrival."""
        self.traffic = Traffic(peers)
        """Of each peer since its last report."""


class Links(NamedTuple):
    """Links that a peer holds, of one layer of its protocol and for one topic."""

    layer: str
    topic: int | None
    """The topic they serve; null = no particular topic."""
    peers: Sequence[int]
    """The peers they lead to, each once."""


class Network(Protocol):
    """What a protocol may use. Times are µs of the run's virtual clock, sizes bytes."""

    size: int
    """Number of peers: 0 … size − 1, up or down."""
    now: int
    seed: int
    """The run's seed, to be a part of names that are hashed."""
    random: Random
    """Seeded by the run; the only permitted source of randomness."""

    def topic_name(self, topic: int) -> str:
        """The name of a topic in the reports."""

    def supertopic(self, topic: int) -> int | None:
        """The topic right above it in the world's hierarchy; null = there is none. Who subscribes
        to a topic subscribes to all below it.
        """

    def kind(
        self,
        name: str,
        handler: Handler,
        *,
        failed: Failed | None = None,
        publication: bool = False,
    ) -> MessageKind:
        """A new kind of message. If `failed` is given, messages of it are acknowledged: if
        one does not arrive (its receiver is down, or it was lost), the sender's `failed` is
        called after the timeout. Without it, nothing happens.
        """

    def every(self, period_us: int, handler: Callable[[int], None]) -> None:
        """Call `handler(peer)` once per period for every peer that is up, each at a random
        phase of its own.
        """

    def after(self, delay_us: int, peer: int, handler: Callable[..., None], *args: Any) -> None:
        """Call `handler(peer, *args)` after `delay_us`, unless the peer goes down first."""

    def send(self, kind: MessageKind, sender: int, to: int, payload: Any, size: int) -> None:
        """Send a message of `size` bytes; it arrives after the latency between the two."""

    def delay(self, sender: int, to: int) -> int | None:
        """µs that each message from one peer to the other takes; null if they differ."""

    def forward(self, kind: MessageKind, peer: int, targets: Sequence[int], copy: Copy) -> None:
        """Send a copy of a publication to each of the targets, and report that; `copy` is the
        one that `peer` holds, so a publisher gives one with hops 0 (once, even without
        targets). Its arrivals are reported too, and handled with a Copy of one hop more.
        """

    def watch(self, peer: int, other: int, lost: Lost) -> None:
        """Hold a connection to another peer: `lost(peer, other)` is called once, one latency after
        `other` goes down, or a round trip from now if it is down already. There is one connection
        to a peer: a later call replaces an earlier one. `lost` may still come after `unwatch`.
        """

    def unwatch(self, peer: int, other: int) -> None:
        """Give up the connection to another peer, if there is one."""

    def gauge(self, peer: int, name: str, value: float) -> None:
        """Add to a number of the system's own that the peer reports, such as lookups or hops: the
        values of an interval add up, and the next interval starts without any. A name that a
        peer adds nothing to is unknown, so add 0 for a measured zero. What is added for a peer
        that is down is not counted: it reports nothing. Names and values are those of the report
        contract (vizpub.reports.fields.Numbers); others end the run with an InputError.
        """

    def contact(self, peer: int) -> int | None:
        """A peer that is up and not `peer`, from the bootstrap service; null if there is none."""


class System(ABC):
    """An overlay that can be simulated on its own.

    Built from a network and the system's own parameters. The state of a peer that went down
    must be reset by the time it joins again: it returns with only its id.
    """

    layers: ClassVar[Sequence[str]] = ("overlay",)
    """The layers of its links."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Parameters of the world that have another default for it."""
    growth: ClassVar[float] = 1
    """The power of the number of peers that its time grows with, for estimates."""

    @classmethod
    def workload(cls, parameters: Any, peers: int, seed: int) -> OwnWorkload | None:
        """Subscriptions and publications that the system brings instead of the world's; its peers
        are then up from the start and keep their subscriptions. Null = the world's.

        Raises: UseError for a number of peers that it cannot have.
        """
        return None

    def header_facts(self) -> Mapping[str, Any]:
        """Facts for the header of the reports beside the parameters, such as how ids are made. They
        follow from parameters and seed.
        """
        return {}

    @abstractmethod
    def join(self, peer: int, topics: Sequence[int]) -> None:
        """The peer is up from now on and subscribes to `topics` (ascending, each once)."""

    def leave(self, peer: int) -> None:  # noqa: B027
        """The peer is about to go down with notice; what it sends here still goes out."""

    def go_down(self, peer: int) -> None:  # noqa: B027
        """The peer is down, after `leave` or without it (a crash)."""

    def subscribe(self, peer: int, topic: int) -> None:  # noqa: B027
        """A peer that is up subscribes to one more topic; of a hierarchy, after those above it."""

    def unsubscribe(self, peer: int, topic: int) -> None:  # noqa: B027
        """A peer that is up ends a subscription; of a hierarchy, before those above it."""

    @abstractmethod
    def publish(self, peer: int, publication: Publication) -> None:
        """The peer publishes."""

    @abstractmethod
    def links(self, peer: int) -> Iterable[Links]:
        """The links the peer holds now; layer and topic of each are different."""

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """The peer's current roles as (role, topic), such as ('rendezvous', 3)."""
        return ()

    def gauges(self, peer: int) -> Iterable[tuple[str, float]]:
        """Numbers that describe the peer now, as (name, value), such as ('queue', 3). What happened
        in the interval is counted by `Network.gauge`, under other names.
        """
        return ()
