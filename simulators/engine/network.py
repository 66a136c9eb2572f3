"""What a protocol sees of the world, and what the world sees of a protocol.

A protocol is a plain class for *all* peers of an overlay: peers are the integers 0 … size − 1,
its state is indexed by them, and its handlers are told at which peer something happens. It
speaks to a `Network` and nothing else: it never learns who is up, what time a message will
take or who is looking.

    class Ping:
        def __init__(self, net: Network) -> None:
            self.net = net
            self.ping = net.kind("ping", self.on_ping, failed=self.on_lost)
            net.every(1_000_000, self.on_tick)

        def on_tick(self, peer: int) -> None: ...  # once a second
        def on_ping(self, peer: int, sender: int, payload: Any) -> None: ...
        def on_lost(self, peer: int, to: int, payload: Any) -> None: ...  # not acknowledged

A *system* is what can be simulated on its own: protocols under one roof that take
subscriptions and publications, and show their links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol

TRANSPORT_BYTES = 28
"""Of IP and UDP, in every message of any system."""
COPY_BYTES = TRANSPORT_BYTES + 20
"""Of a copy of a publication beside its content: the transport's, the message's number (8), its
topic (4) and its publisher (8). Hops are told for the sake of reports, and weigh nothing."""

Handler = Callable[[int, int, Any], None]
"""(peer, sender, payload): a message arrived at `peer`."""
Failed = Callable[[int, int, Any], None]
"""(peer, to, payload): what `peer` sent was not acknowledged in time."""


class Publication(NamedTuple):
    """A message that somebody published."""

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


class Kind:
    """A kind of message: who handles it, and how many of it there were."""

    __slots__ = ("bytes", "failed", "handler", "is_publication", "lost", "name", "received", "sent")

    def __init__(
        self, name: str, handler: Handler, failed: Failed | None, is_publication: bool
    ) -> None:
        self.name = name
        self.handler = handler
        self.failed = failed
        self.is_publication = is_publication
        """It carries publications; else it is control traffic."""
        self.sent = 0
        self.bytes = 0
        """Of those sent."""
        self.received = 0
        self.lost = 0
        """On the way, or sent to somebody who was down on arrival."""


class Links(NamedTuple):
    """Links that a peer holds, of one layer of its protocol and for one topic."""

    layer: str
    topic: int | None
    """The topic they serve; null = none in particular."""
    peers: Sequence[int]
    """Whom they lead to, each once."""


class Network(Protocol):
    """What a protocol may use. Times are µs of the run's virtual clock, sizes bytes."""

    size: int
    """There are the peers 0 … size − 1, up or not."""
    now: int
    random: Random
    """Seeded by the run; nothing else may be drawn from."""

    def kind(
        self,
        name: str,
        handler: Handler,
        *,
        failed: Failed | None = None,
        publication: bool = False,
    ) -> Kind:
        """A new kind of message. Where `failed` is given, messages of it are acknowledged: if
        one does not arrive (its addressee is down, or it was lost), the sender's `failed` is
        called once the time-out has passed. Without it, nobody ever knows.
        """

    def every(self, period_us: int, handler: Callable[[int], None]) -> None:
        """Call `handler(peer)` once in each period for every peer that is up, each at a phase
        of its own that was drawn at random.
        """

    def after(self, delay_us: int, peer: int, handler: Callable[..., None], *args: Any) -> None:
        """Call `handler(peer, *args)` in a while, unless the peer goes down before."""

    def send(self, kind: Kind, sender: int, to: int, payload: Any, size: int) -> None:
        """Send a message of `size` bytes; it arrives after the latency between the two."""

    def forward(self, kind: Kind, peer: int, targets: Sequence[int], copy: Copy) -> None:
        """Send a copy of a publication to each of the targets, and report that; `copy` is the
        one that `peer` holds, so a publisher gives one with hops 0 (once, though its targets
        be none). Its arrivals are reported too, and handled with a Copy of one hop more.
        """

    def received(self, peer: int, sender: int, copy: Copy) -> None:
        """Report an arrival of a publication that came by `send`, not by `forward`."""

    def contact(self, peer: int) -> int | None:
        """Somebody who is up and not `peer`, from the bootstrap service; null if there is none."""


class System(ABC):
    """An overlay that can be simulated on its own.

    Built from a network and the system's own parameters. What has to do with a peer that went
    down is forgotten by the time it joins again: it comes back with its id alone.
    """

    layers: ClassVar[Sequence[str]] = ("overlay",)
    """The layers of its links."""

    @abstractmethod
    def join(self, peer: int, topics: Sequence[int]) -> None:
        """The peer is up from now on and subscribes to `topics` (ascending, each once)."""

    def leave(self, peer: int) -> None:  # noqa: B027
        """The peer is about to go down with notice; what it sends here still goes out."""

    def gone(self, peer: int) -> None:  # noqa: B027
        """The peer is down, after `leave` or without it (a crash)."""

    def subscribe(self, peer: int, topic: int) -> None:  # noqa: B027
        """A peer that is up subscribes to one more topic."""

    def unsubscribe(self, peer: int, topic: int) -> None:  # noqa: B027
        """A peer that is up ends a subscription."""

    @abstractmethod
    def publish(self, peer: int, publication: Publication) -> None:
        """The peer publishes."""

    @abstractmethod
    def links(self, peer: int) -> Iterable[Links]:
        """The links the peer holds now; layer and topic of each are different."""

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """(role, topic) of what the peer plays now, such as ('rendezvous', 3)."""
        return ()
