"""The channels as a system: peer 0 is the server, then the channels, then the clients.

Pages are topics, updates publications: the server sends a copy to each channel that the mapper
chooses, and a channel transmits it to all its listeners, whether they want it or not. It does what
`vizpub.simulators.channels.pipeline` does, with lists and messages; both take updates, profiles,
channels and covers from a `Layout`, so that their counts are equal.

A client reports the links `listens` to its channels; the server `carries` to the channels of each
page if the mapping is static, otherwise `feeds` to all channels. A transmission counts as a message
to every listener.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vizpub.simulators.channels.covers import RULES, cover
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.parameters import ChannelParameters
from vizpub.simulators.engine.network import Copy, Links, Network, Publication, System
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.publications import PlannedPublication, publishing_span
from vizpub.simulators.world.subscriptions import Subscriptions

SERVER = 0


@dataclass(frozen=True)
class Profiles:
    """The clients' subscriptions, and the server's updates."""

    layout: ChannelLayout

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Only clients subscribe; all is drawn from the seed of the layout."""
        layout = self.layout
        first = 1 + layout.parameters.channels
        pairs = ((first + client, page) for client, page in np.argwhere(layout.wants).tolist())
        return Subscriptions(peers, layout.database.pages, pairs, layout.database.names)

    def planned(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """The updates, also those of pages that nobody wants."""
        parameters, size = self.layout.parameters, self.layout.bytes.tolist()
        updates = self.layout.updates(
            publishing_span(parameters.first_update, parameters.last_update, setting)
        )
        for time_us, page in zip(updates.times.tolist(), updates.pages.tolist(), strict=True):
            yield PlannedPublication(time_us, page, SERVER, size[page])


class WaitingCopy(NamedTuple):
    """A copy that waits in a channel."""

    copy: Copy
    arrived: int
    number: int
    """In the order of arrival."""

    @property
    def page(self) -> int:
        """The page it is an update of."""
        return self.copy.publication.topic


class Channels(System):
    """A server, a profiler and a mapper, channels with schedulers, and their clients."""

    layers: ClassVar[Sequence[str]] = ("listens", "carries", "feeds")
    defaults: ClassVar[Mapping[str, Any]] = {"latency": "none"}

    def __init__(self, net: Network, parameters: ChannelParameters, topics: int) -> None:
        self._net, self._given = net, parameters
        self.layout = layout = ChannelLayout(
            parameters, net.size - 1 - parameters.channels, net.seed
        )
        self._first = 1 + parameters.channels
        self._wanted: list[int] = layout.wants.sum(axis=0).tolist()
        """R: the clients that want each page."""
        self._listeners = [
            [self._first + client for client in np.flatnonzero(column).tolist()]
            for column in layout.listens.T
        ]
        self._draws = layout.draws()
        self._waiting: list[list[WaitingCopy]] = [[] for _ in range(parameters.channels)]
        self._sending: list[tuple[int, Copy] | None] = [None] * parameters.channels
        """The end of each channel's transmission, and what it transmits."""
        self._number = 0
        self._updated: list[int] = []
        """When each publication was made."""
        self._heard: list[set[int]] = [set() for _ in range(net.size)]
        self._counted: list[Counter[str]] = [Counter() for _ in range(net.size)]
        self._copies = net.kind("copy", self.on_copy, publication=True)

    @classmethod
    def workload(cls, parameters: ChannelParameters, peers: int, seed: int) -> Profiles:
        """See System.workload. Raises: UseError for too few peers."""
        return Profiles(ChannelLayout(parameters, peers - 1 - parameters.channels, seed))

    def described(self) -> Mapping[str, Any]:
        """Rules that are our reading of a paper that lacks pages."""
        return {"our_reading": self._given.readings}

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join; all are up from the start."""

    def publish(self, peer: int, publication: Publication) -> None:
        """The server updates a page; the profiler drops it if no client wants it."""
        # A channel that ends now has room before the update comes.
        for channel, sending in enumerate(self._sending):
            if sending is not None and sending[0] <= self._net.now:
                self._finish(channel, sending[0])
        page = publication.topic
        self._updated.append(self._net.now)
        wanted = self._wanted[page] > 0
        self._counted[SERVER].update(updates=1, passed=int(wanted))
        to = [1 + channel for channel in self._map_page(page)] if wanted else []
        self._net.forward(self._copies, peer, to, Copy(publication, 0))

    def _map_page(self, page: int) -> list[int]:
        layout = self.layout
        if layout.carried is not None:
            return np.flatnonzero(layout.carried[page]).tolist()
        chosen = np.empty(self._given.channels, np.int64)
        busy = [
            len(waiting) + (sending is not None)
            for waiting, sending in zip(self._waiting, self._sending, strict=True)
        ]
        count = cover(
            RULES[self._given.mapping],
            np.flatnonzero(layout.wants[:, page]),
            layout.channels_of,
            layout.reach[page],
            np.array(busy, np.int64),
            self._draws,
            chosen,
        )
        channels: list[int] = chosen[:count].tolist()
        return channels

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """A copy came to a channel, or what a channel transmitted to a client."""
        if peer < self._first:
            self._offer(peer - 1, copy)
            return
        page, message = copy.publication.topic, copy.publication.message
        counted = self._counted[peer]
        counted["receptions"] += 1
        if not self.layout.wants[peer - self._first, page]:
            counted["unwanted"] += 1
        elif message not in self._heard[peer]:
            self._heard[peer].add(message)
            counted["heard"] += 1
            counted["staleness_us"] += self._net.now - self._updated[message]

    def _offer(self, channel: int, copy: Copy) -> None:
        parameters, waiting, page = self._given, self._waiting[channel], copy.publication.topic
        counted = self._counted[1 + channel]
        counted["offered"] += 1
        if self._sending[channel] is None:
            self._transmit(channel, copy)
            return
        same = next((place for place, held in enumerate(waiting) if held.page == page), None)
        if parameters.coalesce and same is not None:
            waiting[same] = waiting[same]._replace(copy=copy)
            counted["superseded"] += 1
        elif parameters.buffer and len(waiting) >= parameters.buffer:
            counted["lost"] += 1
        else:
            self._number += 1
            waiting.append(WaitingCopy(copy, self._net.now, self._number))
            if parameters.scheduler == "drop" and len(waiting) > parameters.drop_above:
                waiting.remove(
                    min(waiting, key=lambda held: (self._wanted[held.page], held.number))
                )
                counted["lost"] += 1

    def _transmit(self, channel: int, copy: Copy) -> None:
        took = int(self.layout.transmission[copy.publication.topic])
        end = self._net.now + took
        self._sending[channel] = (end, copy)
        self._net.after(took, 1 + channel, self._due, end)

    def _due(self, peer: int, end: int) -> None:
        sending = self._sending[peer - 1]
        if sending is not None and sending[0] == end:
            self._finish(peer - 1, end)

    def _finish(self, channel: int, now: int) -> None:
        """All listeners receive what was transmitted; the scheduler chooses the next copy."""
        sending = self._sending[channel]
        assert sending is not None
        self._counted[1 + channel]["sent"] += 1
        self._net.forward(self._copies, 1 + channel, self._listeners[channel], sending[1])
        self._sending[channel] = None
        if waiting := self._waiting[channel]:
            chosen = self._chosen(waiting, now)
            waiting.remove(chosen)
            self._transmit(channel, chosen.copy)

    def _chosen(self, waiting: Sequence[WaitingCopy], now: int) -> WaitingCopy:
        """The copy that is sent next: the oldest of several that are as good."""
        rule = self._given.scheduler
        if rule == "fifo":
            return min(waiting, key=lambda held: held.number)

        of_page: Counter[int] = Counter()
        for held in waiting:
            of_page[held.page] += now - held.arrived

        def worth(held: WaitingCopy) -> tuple[float, int, int]:
            wanted = self._wanted[held.page]
            wait = of_page[held.page] if rule == "lwf" else now - held.arrived
            return float(wanted) * wait, wanted, -held.number

        return max(waiting, key=worth)

    def links(self, peer: int) -> Iterable[Links]:
        """See System.links."""
        if peer >= self._first:
            channels = self.layout.channels_of[peer - self._first] + 1
            yield Links("listens", None, channels.tolist())
        elif peer == SERVER and self.layout.carried is not None:
            for page, row in enumerate(self.layout.carried):
                yield Links("carries", page, (np.flatnonzero(row) + 1).tolist())
        elif peer == SERVER:
            yield Links("feeds", None, range(1, self._first))

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """See System.roles."""
        if peer < self._first:
            yield ("server" if peer == SERVER else "channel", None)

    def gauges(self, peer: int) -> Iterable[tuple[str, float]]:
        """Counts of the interval, zeros too, and the pages that wait in a channel now."""
        kind = "client"
        if peer < self._first:
            kind = "server" if peer == SERVER else "channel"
        if kind == "channel":
            yield "queue", len(self._waiting[peer - 1])
        counted = self._counted[peer]
        yield from [(name, counted[name]) for name in _COUNTED[kind]]
        counted.clear()


_COUNTED: Mapping[str, Sequence[str]] = {
    "server": ("updates", "passed"),
    "channel": ("offered", "sent", "superseded", "lost"),
    "client": ("receptions", "unwanted", "heard", "staleness_us"),
}
"""Gauges by kind of peer."""
