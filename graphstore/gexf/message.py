"""One message's dissemination as a GEXF graph: its time is the hop.

Rows in, nodes and edges out. A peer appears at the hop of its first reception (the
publisher at 0), a transmission at its own hop, and both stay: the file plays the message
spreading. A peer whose hop is unknown appears with the last known hop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from vizpub.graphstore.gexf.overlay import COLOURS, circle_position
from vizpub.graphstore.gexf.rows import ArrivalRow
from vizpub.graphstore.gexf.writer import Attribute, Edge, Head, Node, Value
from vizpub.model.naming import captions


@dataclass(frozen=True)
class MessageRows:
    """The rows of one message."""

    names: Mapping[int, str]
    """Name of each peer of the run."""
    publisher: int | None
    time_us: int | None
    arrivals: Sequence[ArrivalRow]
    missed: Collection[int] = ()
    """Peers that subscribed at the publication and never received it."""


_AT = (Attribute("hop", "integer"), Attribute("time_us", "long"))
_COUNTED = (Attribute("receptions", "integer"), Attribute("duplicates", "integer"))
"""Columns for sources that report all arrivals, not only the first ones."""
FIRST_COLOUR, DUPLICATE_COLOUR = "#333333", "#BDC3C7"


@dataclass(frozen=True)
class MessageGraph:
    """The nodes and edges of one message's dissemination."""

    rows: MessageRows
    counts: bool = True
    """All arrivals are reported, not the first ones alone."""

    def head(self, message: str, run: str) -> Head:
        """Return the head of the file, with the names of the message and the run."""
        title = f"the dissemination of message '{message}' in run '{run}'"
        counted = _COUNTED if self.counts else ()
        return Head(
            f"{title}; time is the hop, 0 to {self.last}",
            (*_AT, *counted, Attribute("name", "string"), Attribute("role", "string")),
            (*_AT, Attribute("first", "boolean"), *counted[:1]),
        )

    @cached_property
    def last(self) -> int:
        """The largest hop: where the time axis ends."""
        hops = [arrival.hop for arrival in self.rows.arrivals if arrival.hop is not None]
        return max(hops, default=0)

    @cached_property
    def start(self) -> dict[int, int]:
        """The hop at which each peer appears."""
        starts = dict.fromkeys(self.rows.missed, 0)
        for peer, arrivals in _by_peer(self.rows.arrivals).items():
            starts[peer] = self._step(_earliest(arrivals).hop)
        for arrival in self.rows.arrivals:
            if arrival.previous_hop is not None:
                # Known only as the previous hop of others.
                starts.setdefault(arrival.previous_hop, max(self._step(arrival.hop) - 1, 0))
        if self.rows.publisher is not None:
            starts[self.rows.publisher] = 0
        return starts

    def nodes(self) -> Iterator[Node]:
        """Yield the publisher, the peers that received or relayed it, and those that missed it."""
        receptions = _by_peer(self.rows.arrivals)
        missed = frozenset(self.rows.missed)
        names = self.rows.names
        size = max(names, default=0) + 1
        labels = dict(zip(names, captions(list(names.values())), strict=True))
        for peer in sorted(self.start):
            arrivals = receptions.get(peer, [])
            role = self._role(peer, arrivals, missed)
            yield Node(
                id=peer,
                label=labels[peer],
                spells=[(self.start[peer], self.last)],
                position=circle_position(peer, size),
                colour=COLOURS[role],
                values=[*self._node_values(peer, arrivals), ("name", names[peer]), ("role", role)],
            )

    def edges(self) -> Iterator[Edge]:
        """Yield one edge for each pair a copy travelled between, the first copy's hop as its label.

        A duplicate that travelled fewer hops than the first reception of its receiver
        appears with the receiver: no edge is shown without its ends.
        """
        pairs: dict[tuple[int, int], list[ArrivalRow]] = {}
        for arrival in self.rows.arrivals:
            if arrival.previous_hop is not None:
                pairs.setdefault((arrival.previous_hop, arrival.peer), []).append(arrival)
        for (source, target), arrivals in sorted(pairs.items()):
            hop = _earliest(arrivals).hop
            first = any(arrival.first for arrival in arrivals)
            start = max(self._step(hop), self.start[source], self.start[target])
            yield Edge(
                source,
                target,
                [(start, self.last)],
                values=[
                    *_reception_values(_earliest(arrivals)),
                    ("first", first),
                    *([("receptions", len(arrivals))] if self.counts else []),
                ],
                label="?" if hop is None else str(hop),
                colour=FIRST_COLOUR if first else DUPLICATE_COLOUR,
            )

    def _step(self, hop: int | None) -> int:
        return self.last if hop is None else hop

    def _role(self, peer: int, arrivals: Sequence[ArrivalRow], missed: frozenset[int]) -> str:
        if peer == self.rows.publisher:
            return "publisher"
        if not arrivals:
            return "missed" if peer in missed else "peer"
        subscribed = _earliest(arrivals).subscribed
        if subscribed is None:
            return "peer"
        return "subscriber" if subscribed else "relay"

    def _node_values(
        self, peer: int, arrivals: Sequence[ArrivalRow]
    ) -> Iterator[tuple[str, Value]]:
        if peer == self.rows.publisher:
            yield "hop", 0
            if self.rows.time_us is not None:
                yield "time_us", self.rows.time_us
        elif arrivals:
            yield from _reception_values(_earliest(arrivals))
        if self.counts:
            yield "receptions", len(arrivals)
            yield "duplicates", sum(not arrival.first for arrival in arrivals)


def _by_peer(arrivals: Iterable[ArrivalRow]) -> dict[int, list[ArrivalRow]]:
    receptions: dict[int, list[ArrivalRow]] = {}
    for arrival in arrivals:
        receptions.setdefault(arrival.peer, []).append(arrival)
    return receptions


def _earliest(arrivals: Sequence[ArrivalRow]) -> ArrivalRow:
    """Return the first reception if it is among them, else the earliest one."""
    return min(arrivals, key=lambda a: (not a.first, a.time_us is None, a.time_us or 0))


def _reception_values(arrival: ArrivalRow) -> Iterator[tuple[str, Value]]:
    if arrival.hop is not None:
        yield "hop", arrival.hop
    if arrival.time_us is not None:
        yield "time_us", arrival.time_us
