"""Discrete-event simulation: a clock, a heap of events, and the peers that are up.

`Simulation` is the `Network` of the protocols that run in it. All events are entries of one heap,
ordered by time, then by the order in which they were planned. Each part of the world has a seeded
generator of its own, so the same seed gives the same run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Protocol

from vizpub.simulators.engine.network import (
    Copy,
    Failed,
    Handler,
    Lost,
    MessageKind,
    Traffic,
)

_Delay = Callable[[int, int], int]
"""(sender, receiver) → transit time of a message in µs."""
_Sent = tuple[Any, int, int]
"""Payload and bytes of a message, and the number of the sender's session."""


class Observer(Protocol):
    """Observes the copies of publications."""

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        """The peer sent the copy it holds to each of the targets."""

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        """A copy arrived."""


class _Unobserved:
    """An observer that does nothing."""

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        """See Observer."""

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        """See Observer."""


def stream(seed: int, name: str) -> Random:
    """The generator of one part of a run. It is independent of the other parts, so runs of one seed
    share churn, workload and latencies for any system.
    """
    return Random(f"vizpub/{seed}/{name}")


class Gauges:
    """Numbers of the system's own, by peer and name."""

    __slots__ = ("_of",)

    def __init__(self, peers: int) -> None:
        self._of: list[dict[str, float]] = [{} for _ in range(peers)]

    def add(self, peer: int, name: str, value: float) -> None:
        """Add to a number, which begins as 0."""
        held = self._of[peer]
        held[name] = held.get(name, 0) + value

    def take(self, peer: int) -> dict[str, float]:
        """The numbers of a peer since the last call."""
        if gauges := self._of[peer]:
            self._of[peer] = {}
        return gauges


class Simulation:
    """A network of `size` peers, all down at time 0.

    `delay` gives the latencies; each message is lost with probability `loss`; a message that
    is to be acknowledged fails `timeout_us` after its expected arrival. `upload` is the rate of
    each peer in bytes/s (null = no limit), for which messages queue.
    """

    def __init__(  # what a world is made of
        self,
        size: int,
        seed: int,
        delay: _Delay,
        *,
        loss: float = 0.0,
        timeout_us: int = 500_000,
        upload: Sequence[float] | None = None,
    ) -> None:
        self.size, self.seed = size, seed
        self.topic_names: Sequence[str] = ()
        """Names of the topics in the reports; none = their numbers."""
        self.supertopics: Mapping[int, int] = {}
        """The topic above each topic of a hierarchy; empty = topics are flat."""
        self.has_fixed_delays = False
        """Whether all messages from one peer to another take the same time."""
        self.now = 0
        self.random = stream(seed, "protocol")
        self.observer: Observer = _Unobserved()
        self.kinds: list[MessageKind] = []
        self.control, self.publication = Traffic(size), Traffic(size)
        self.gauges = Gauges(size)
        self.up = bytearray(size)
        """1 for each peer that is up."""
        self.sessions = [0] * size
        """Number of sessions of each peer so far; timers of earlier sessions are void."""
        self._present: list[int] = []
        self._watched: dict[int, dict[int, tuple[int, Lost]]] = {}
        """By the peer that is watched: the watchers, their sessions and handlers."""
        self._heap: list[tuple[int, int, MessageKind | None, int, int, Any]] = []
        self._lines: dict[int, _Line] = {}
        """The timers that wait, by their length."""
        self._next = count().__next__
        self._delay = delay
        self._loss, self._timeout_us = loss, timeout_us
        self._fate = stream(seed, "loss").random
        self._contacts = stream(seed, "contacts")
        self._phases = stream(seed, "phases")
        self._upload = upload
        self._idle_from = [0] * size if upload else []

    # What protocols use: see vizpub.simulators.engine.network.Network.

    def kind(
        self,
        name: str,
        handler: Handler,
        *,
        failed: Failed | None = None,
        publication: bool = False,
    ) -> MessageKind:
        """See Network.kind."""
        new_kind = MessageKind(name, handler, failed, publication, self.size)
        self.kinds.append(new_kind)
        return new_kind

    def every(self, period_us: int, handler: Callable[[int], None]) -> None:
        """See Network.every."""
        phases = [self._phases.randrange(period_us) for _ in range(self.size)]
        if self.size:
            _Wheel(self, period_us, phases, handler).start()

    def delay(self, sender: int, to: int) -> int | None:
        """See Network.delay."""
        return self._delay(sender, to) if self.has_fixed_delays else None

    def after(self, delay_us: int, peer: int, handler: Callable[..., None], *args: Any) -> None:
        """See Network.after."""
        line = self._lines.get(delay_us)
        if line is None:
            line = self._lines[delay_us] = _Line(self._heap, partial(self._lines.pop, delay_us))
        timer = partial(self._fire, peer, self.sessions[peer], handler, args)
        line.add(self.now + delay_us, self._next(), timer)

    def send(self, kind: MessageKind, sender: int, to: int, payload: Any, size: int) -> None:
        """See Network.send."""
        traffic = self.publication if kind.is_publication else self.control
        traffic.messages_sent[sender] += 1
        traffic.bytes_sent[sender] += size
        kind.sent += 1
        kind.bytes += size
        kind.traffic.messages_sent[sender] += 1
        kind.traffic.bytes_sent[sender] += size
        arrival = self.now + self._delay(sender, to)
        if self._upload:
            # Its bytes leave after those of the sender's earlier messages.
            begin = max(self.now, self._idle_from[sender])
            self._idle_from[sender] = begin + round(size * 1e6 / self._upload[sender])
            arrival += self._idle_from[sender] - self.now
        sent = (payload, size, self.sessions[sender])
        if self._loss and self._fate() < self._loss:
            kind.lost += 1
            self._fail(kind, sender, to, sent, arrival)
        else:
            heappush(self._heap, (arrival, self._next(), kind, to, sender, sent))

    def forward(self, kind: MessageKind, peer: int, targets: Sequence[int], copy: Copy) -> None:
        """See Network.forward."""
        self.observer.on_sent(peer, copy, targets)
        onward = Copy(copy.publication, copy.hops + 1, copy.resent, copy.note)
        size = copy.bytes
        for to in targets:
            self.send(kind, peer, to, onward, size)

    def watch(self, peer: int, other: int, lost: Lost) -> None:
        """See Network.watch."""
        if self.up[other]:
            self._watched.setdefault(other, {})[peer] = (self.sessions[peer], lost)
        else:
            refused_us = self._delay(peer, other) + self._delay(other, peer)
            self.after(refused_us, peer, lost, other)

    def unwatch(self, peer: int, other: int) -> None:
        """See Network.unwatch."""
        self._watched.get(other, {}).pop(peer, None)

    def topic_name(self, topic: int) -> str:
        """See Network.topic_name."""
        return self.topic_names[topic] if self.topic_names else str(topic)

    def supertopic(self, topic: int) -> int | None:
        """See Network.supertopic."""
        return self.supertopics.get(topic)

    def gauge(self, peer: int, name: str, value: float) -> None:
        """See Network.gauge."""
        if self.up[peer]:
            self.gauges.add(peer, name, value)

    def contact(self, peer: int) -> int | None:
        """See Network.contact."""
        others = len(self._present) - self.up[peer]
        if others < 1:
            return None
        place = self._contacts.randrange(others)
        # The last one replaces the peer itself.
        chosen = self._present[place]
        return chosen if chosen != peer else self._present[-1]

    # For the plan of the run.

    def at(self, time_us: int, step: Callable[[], None]) -> None:
        """Call `step` at a time that is not in the past."""
        heappush(self._heap, (time_us, self._next(), None, 0, 0, step))

    def come_up(self, peer: int) -> None:
        """Start a session of a peer that is down."""
        self.up[peer] = 1
        self.sessions[peer] += 1
        if self._upload:
            # Messages queued in an earlier session do not delay this one.
            self._idle_from[peer] = self.now
        self._present.insert(bisect_left(self._present, peer), peer)

    def go_down(self, peer: int) -> None:
        """End the session of a peer that is up. Its messages in transit still arrive."""
        self.up[peer] = 0
        del self._present[bisect_left(self._present, peer)]
        for watcher, (session, lost) in self._watched.pop(peer, {}).items():
            notice = partial(self._fire, watcher, session, lost, (peer,))
            self.at(self.now + self._delay(peer, watcher), notice)

    @property
    def present(self) -> Sequence[int]:
        """The peers that are up, in ascending order."""
        return self._present

    def run(self, until_us: int) -> None:
        """Process all events before a time, and set the clock to it."""
        heap, up = self._heap, self.up
        while heap and heap[0][0] < until_us:
            self.now, _, kind, to, sender, sent = heappop(heap)
            if kind is None:
                sent()
            elif up[to]:
                self._arrive(kind, to, sender, sent)
            else:
                kind.lost += 1
                self._fail(kind, sender, to, sent, self.now)
        self.now = until_us

    def _arrive(self, kind: MessageKind, peer: int, sender: int, sent: _Sent) -> None:
        payload, size, _ = sent
        kind.received += 1
        kind.traffic.messages_received[peer] += 1
        kind.traffic.bytes_received[peer] += size
        if kind.is_publication:
            traffic = self.publication
            if payload.__class__ is Copy:
                self.observer.on_received(peer, sender, payload)
        else:
            traffic = self.control
        traffic.messages_received[peer] += 1
        traffic.bytes_received[peer] += size
        kind.handler(peer, sender, payload)

    def _fail(self, kind: MessageKind, sender: int, to: int, sent: _Sent, arrival_us: int) -> None:
        """Notify the sender, if it expects acknowledgements and its session has not ended."""
        if kind.failed is not None:
            payload, _, session = sent
            notice = partial(self._fire, sender, session, kind.failed, (to, payload))
            self.at(arrival_us + self._timeout_us, notice)

    def _fire(
        self, peer: int, session: int, handler: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        if self.up[peer] and self.sessions[peer] == session:
            handler(peer, *args)


class _Wheel:
    """Periodic ticks of all peers in the order of their phases; a single entry of the heap."""

    def __init__(
        self, world: Simulation, period_us: int, phases: list[int], handler: Callable[[int], None]
    ) -> None:
        self._world, self._handler = world, handler
        self._due = self._times(period_us, phases)

    @staticmethod
    def _times(period_us: int, phases: list[int]) -> Iterator[tuple[int, int]]:
        order = sorted((phase, peer) for peer, phase in enumerate(phases))
        for begin in count(0, period_us):
            for phase, peer in order:
                yield begin + phase, peer

    def start(self) -> None:
        time_us, self._peer = next(self._due)
        self._world.at(time_us, self)

    def __call__(self) -> None:
        peer = self._peer
        time_us, self._peer = next(self._due)
        self._world.at(time_us, self)
        if self._world.up[peer]:
            self._handler(peer)


class _Line:
    """Timers of one length, which end in the order in which they begin; a single entry of the heap,
    so that the many which nobody needs in the end, as time-outs, do not make it deep.
    """

    __slots__ = ("_empty", "_heap", "_waiting")

    def __init__(
        self,
        heap: list[tuple[int, int, MessageKind | None, int, int, Any]],
        empty: Callable[[], object],
    ) -> None:
        self._heap, self._empty = heap, empty
        self._waiting: deque[tuple[int, int, Callable[[], None]]] = deque()

    def add(self, time_us: int, number: int, timer: Callable[[], None]) -> None:
        """Add a timer; `number` is its place among the events of that time."""
        self._waiting.append((time_us, number, timer))
        if len(self._waiting) == 1:
            self._plan()

    def _plan(self) -> None:
        time_us, number, _ = self._waiting[0]
        heappush(self._heap, (time_us, number, None, 0, 0, self))

    def __call__(self) -> None:
        _, _, timer = self._waiting.popleft()
        if self._waiting:
            self._plan()
        else:
            self._empty()
        timer()
