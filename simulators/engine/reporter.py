"""Writes the reports of simulated peers, in the format of `vizpub.reports.files`.

Large runs spend most time here, so lines are joined from parts that are JSON already; tests check
the lines against the contract.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from vizpub.model.errors import InputError
from vizpub.reports.fields import Numbers
from vizpub.reports.files import ReportWriter
from vizpub.reports.records import Counters, Report, RunHeader
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Links, System
from vizpub.simulators.world.subscriptions import Subscriptions

Content = Literal["complete", "structure", "dissemination"]
"""Everything; neighbours, topics, roles and counters; or topics, messages and counters."""

_FASTEST = 1
"""Compression level of the files: a third larger than the best, ten times as fast."""
BLOCK = 50
"""Intervals in a file."""
_PENDING = 4
"""Intervals that may be waiting for the compressor."""


@dataclass(frozen=True)
class Naming:
    """Names of peers and topics in the reports, as JSON strings."""

    peers: Sequence[str]
    topics: Sequence[str]

    @classmethod
    def of(cls, peers: int, topics: Iterable[str]) -> Self:
        """Peers by their index, topics as given."""
        return cls([f'"{peer}"' for peer in range(peers)], [json.dumps(name) for name in topics])


class ReportLines:
    """The lines of an interval, from the events in it.

    `layers` are the layers whose links are reported; null = all.
    """

    def __init__(
        self,
        content: Content,
        layers: Collection[str] | None,
        naming: Naming,
        world: Simulation,
        subscriptions: Subscriptions,
    ) -> None:
        self._structure = content != "dissemination"
        self._messages = content != "structure"
        self._layers = layers
        self._peers, self._topics = naming.peers, naming.topics
        self._openings = [f'{{"peer":{name}' for name in naming.peers]
        self._world, self._subscriptions = world, subscriptions
        self._sent: list[list[str]] = [[] for _ in naming.peers]
        self._received: list[list[str]] = [[] for _ in naming.peers]
        self._went: set[int] = set()

    # Events of the simulation: see vizpub.simulators.engine.clock.Observer.

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        """See Observer.on_sent."""
        # A peer that forwards a copy to no peer has sent nothing; a publisher has published.
        if self._messages and (targets or not copy.hops):
            to = ",".join([self._peers[target] for target in targets])
            self._sent[peer].append(f'{self._about(copy)},"to":[{to}]}}')

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        """See Observer.on_received."""
        if self._messages:
            wants = self._subscriptions.has(peer, copy.publication.topic)
            origin = f'"from":{self._peers[sender]},"subscribed":{"true" if wants else "false"}'
            self._received[peer].append(f"{self._about(copy)},{origin}}}")

    def on_down(self, peer: int) -> None:
        """The peer went down."""
        self._went.add(peer)

    def take(self, interval: int, system: System) -> Iterator[str]:
        """A report of each peer that is up or has left."""
        topics_of = self._subscriptions.of
        for peer in self._world.present:
            now = self._state(peer, system, topics_of(peer))
            gauges = self._gauges(peer, system.gauges(peer))
            yield f"{self._head(peer, interval)}{now}{gauges}}}\n"
        for peer in sorted(self._went):
            if not self._world.up[peer]:
                yield f'{self._head(peer, interval)},"left":true{self._gauges(peer)}}}\n'
        self._went.clear()

    def _head(self, peer: int, interval: int) -> str:
        control = _counters_json("control", self._world.control.take(peer))
        publication = _counters_json("publication", self._world.publication.take(peer))
        head = f'{{"format":"{Report.format}","peer":{self._peers[peer]},"interval":{interval}'
        kinds = f'"control_kinds":[{",".join(self._control_kinds(peer))}]'
        return f"{head},{control},{kinds},{publication}{self._message_lists(peer)}"

    def _control_kinds(self, peer: int) -> Iterator[str]:
        for kind in self._world.kinds:
            if kind.is_publication:
                continue
            counted = kind.traffic.take(peer)
            if counted.messages_sent or counted.messages_received:
                numbers = ",".join(f'"{name}":{number}' for name, number in vars(counted).items())
                yield f'{{"kind":{_as_json(kind.name)},{numbers}}}'

    def _gauges(self, peer: int, now: Iterable[tuple[str, float]] = ()) -> str:
        """The peer's counts of the interval and, if it is up, its present state, as JSON."""
        counted, state = self._world.gauges.take(peer), dict(now)
        if not counted and not state:
            return ""
        if both := sorted(counted.keys() & state.keys()):
            raise InputError(f"the gauge '{both[0]}' is counted, and also a state of the peer")
        numbers = {**counted, **state}
        if problem := next(Numbers().problems(numbers), None):
            raise InputError(f"peer {peer} cannot report this: {problem}")
        return f',"gauges":{json.dumps(numbers, separators=(",", ":"))}'

    def _message_lists(self, peer: int) -> str:
        if not self._messages:
            return ""
        sent, received = self._sent[peer], self._received[peer]
        text = f',"sent":[{",".join(sent)}],"received":[{",".join(received)}]'
        sent.clear()
        received.clear()
        return text

    def _state(self, peer: int, system: System, topics: Sequence[int]) -> str:
        wanted = f',"topics":[{",".join([self._topics[topic] for topic in topics])}]'
        if not self._structure:
            return wanted
        held = [links for links in system.links(peer) if links.peers]
        if self._layers is not None:
            held = [links for links in held if links.layer in self._layers]
        neighbours = ",".join([self._link_list(links) for links in held])
        roles = ",".join([self._role(role, topic) for role, topic in system.roles(peer)])
        return f'{wanted},"neighbors":[{neighbours}],"roles":[{roles}]'

    def _link_list(self, links: Links) -> str:
        of_topic = "" if links.topic is None else f',"topic":{self._topics[links.topic]}'
        closing = f',"layer":"{links.layer}"{of_topic}}}'
        openings = self._openings
        return f"{closing},".join([openings[peer] for peer in links.peers]) + closing

    def _role(self, role: str, topic: int | None) -> str:
        of_topic = "" if topic is None else f',"topic":{self._topics[topic]}'
        return f'{{"role":"{role}"{of_topic}}}'

    def _about(self, copy: Copy) -> str:
        message, topic, publisher, _ = copy.publication
        mark = ',"resent":true' if copy.resent else ""
        return (
            f'{{"message":"{message}","topic":{self._topics[topic]},'
            f'"publisher":{self._peers[publisher]},"hops":{copy.hops},'
            f'"time_us":{self._world.now},"bytes":{copy.bytes}{mark}'
        )


_as_json = cache(json.dumps)


def _counters_json(name: str, counted: Counters) -> str:
    return (
        f'"{name}":{{"sent":{{"messages":{counted.messages_sent},"bytes":{counted.bytes_sent}}},'
        f'"received":{{"messages":{counted.messages_received},"bytes":{counted.bytes_received}}}}}'
    )


class ReportFiles:
    """The files of a run, one for every `BLOCK` intervals. A file appears when it is complete.

    Compression runs in parallel with the simulation. At the end of the `with` block, also on an
    exception, all added intervals are written; the end of the run is marked if `finish` was called.
    """

    def __init__(self, folder: Path, header: RunHeader) -> None:
        self._folder, self._header = folder, header
        self._compressor = ThreadPoolExecutor(1, "compressor")
        self._pending: list[Future[None]] = []
        self._writer: ReportWriter | None = None
        self._finished = False
        self.intervals = 0

    def add(self, lines: Iterable[str]) -> None:
        """Add the reports of the next interval."""
        text = "".join(lines).encode()
        if len(self._pending) >= _PENDING:
            self._pending.pop(0).result()
        self._pending.append(self._compressor.submit(self._write, self.intervals, text))
        self.intervals += 1

    def finish(self) -> None:
        """Mark the end of the run after the added intervals."""
        self._finished = True

    def _write(self, interval: int, text: bytes) -> None:
        if interval % BLOCK == 0:
            self._close()
            name = f"reports-{interval:06}.ndjson.gz"
            self._writer = ReportWriter(self._folder / name, self._header, compression=_FASTEST)
        assert self._writer
        self._writer.write_lines(text)

    def _close(self) -> None:
        if self._writer:
            writer, self._writer = self._writer, None
            writer.close()

    def _end(self) -> None:
        if self._writer and self._finished:
            self._writer.end(self.intervals - 1)
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pending.append(self._compressor.submit(self._end))
        self._compressor.shutdown()
        for write in self._pending:
            write.result()
