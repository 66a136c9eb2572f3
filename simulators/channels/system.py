"""The channels as a system: peer 0 is the server, then the channels, then the clients.

Pages are topics, updates publications: the server sends a copy to each channel that the mapper
chooses, and a channel transmits it to all its listeners, whether they want it or not. Profiler,
mapper and queues are the functions of `pipeline.py`; here, copies are messages, which take time.

A client reports the links `listens` to its channels; the server `carries` to the channels of each
page if the mapping is static, otherwise `feeds` to all channels. A transmission counts as a message
to every listener.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import numpy as np

from vizpub.model.arrays import Int64s
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.parameters import ChannelParameters
from vizpub.simulators.channels.pipeline import finish, is_full, offer, update_page
from vizpub.simulators.channels.running import grow_pools, new_pipeline
from vizpub.simulators.channels.state import NEVER, PASSED, UPDATES
from vizpub.simulators.engine.network import Copy, Links, Network, Publication, System
from vizpub.simulators.world.churn import Setting
from vizpub.simulators.world.publications import PlannedPublication, publishing_span
from vizpub.simulators.world.subscriptions import Subscriptions

SERVER = 0


@dataclass(frozen=True)
class ChannelWorkload:
    """The clients' subscriptions, and the server's updates."""

    layout: ChannelLayout

    def subscriptions(self, peers: int, random: Random) -> Subscriptions:
        """Only clients subscribe; all is drawn from the seed of the layout."""
        layout = self.layout
        first = 1 + layout.parameters.channels
        pairs = ((first + client, page) for client, page in np.argwhere(layout.wants).tolist())
        return Subscriptions(peers, layout.database.pages, pairs, layout.database.names)

    def plan_publications(
        self, subscriptions: Subscriptions, setting: Setting, random: Random
    ) -> Iterator[PlannedPublication]:
        """The updates, also those of pages that nobody wants."""
        parameters, size = self.layout.parameters, self.layout.bytes.tolist()
        updates = self.layout.updates(
            publishing_span(parameters.first_update, parameters.last_update, setting)
        )
        for time_us, page in zip(updates.times.tolist(), updates.pages.tolist(), strict=True):
            yield PlannedPublication(time_us, page, SERVER, size[page])


class Channels(System):
    """A server, a profiler and a mapper, channels with schedulers, and their clients."""

    layers: ClassVar[Sequence[str]] = ("listens", "carries", "feeds")
    defaults: ClassVar[Mapping[str, Any]] = {"latency": "none"}

    def __init__(self, net: Network, parameters: ChannelParameters, topics: int) -> None:
        self._net, self._parameters = net, parameters
        self.layout = layout = ChannelLayout(
            parameters, net.size - 1 - parameters.channels, net.seed
        )
        self._pipeline = new_pipeline(layout)
        self._first = 1 + parameters.channels
        self._listeners = [
            [self._first + client for client in np.flatnonzero(column).tolist()]
            for column in layout.listens.T
        ]
        self._updated: list[int] = []
        """When each publication was made."""
        self._updates: list[int] = []
        """Its number in the pipeline, where another one has it after its last transmission."""
        self._publications: dict[int, Publication] = {}
        """By that number."""
        self._heard: list[set[int]] = [set() for _ in range(net.size)]
        self._counts: list[Counter[str]] = [Counter() for _ in range(net.size)]
        """What clients receive."""
        self._copies = net.kind("copy", self.on_copy, publication=True)

    @classmethod
    def workload(cls, parameters: ChannelParameters, peers: int, seed: int) -> ChannelWorkload:
        """See System.workload. Raises: UseError for too few peers."""
        return ChannelWorkload(ChannelLayout(parameters, peers - 1 - parameters.channels, seed))

    def header_facts(self) -> Mapping[str, Any]:
        """The rules that are our reading of a paper that lacks pages."""
        return {"our_reading": self._parameters.readings}

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join; all are up from the start."""

    def publish(self, peer: int, publication: Publication) -> None:
        """The server updates a page; the profiler drops it if no client wants it."""
        now, state = self._net.now, self._pipeline.state
        # A channel that ends now has room before the update comes.
        for channel in np.flatnonzero(state.due <= now).tolist():
            self._finish(channel)
        self._make_room()
        update, count = update_page(now, publication.topic, self._pipeline)
        self._updated.append(now)
        self._updates.append(update)
        self._publications[update] = publication
        self._net.forward(
            self._copies, peer, (state.chosen[:count] + 1).tolist(), Copy(publication, 0)
        )

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """A copy came to a channel, or what a channel transmitted to a client."""
        message = copy.publication.message
        if peer < self._first:
            is_idle = self._pipeline.state.due[peer - 1] == NEVER
            self._make_room()
            offer(peer - 1, self._updates[message], self._net.now, self._pipeline)
            if is_idle:
                self._await_end(peer - 1)
            return
        counts = self._counts[peer]
        counts["receptions"] += 1
        if not self.layout.wants[peer - self._first, copy.publication.topic]:
            counts["unwanted"] += 1
        elif message not in self._heard[peer]:
            self._heard[peer].add(message)
            counts["heard"] += 1
            counts["staleness_us"] += self._net.now - self._updated[message]

    def _make_room(self) -> None:
        if is_full(self._pipeline):
            self._pipeline = grow_pools(self._pipeline)

    def _await_end(self, channel: int) -> None:
        if (end := int(self._pipeline.state.due[channel])) < NEVER:
            self._net.after(end - self._net.now, 1 + channel, self._on_end, end)

    def _on_end(self, peer: int, end: int) -> None:
        if self._pipeline.state.due[peer - 1] == end:
            self._finish(peer - 1)

    def _finish(self, channel: int) -> None:
        """All listeners receive what was transmitted; the scheduler chooses the next copy."""
        publication = self._publications[int(self._pipeline.state.sending[channel])]
        listeners = self._listeners[channel]
        self._net.forward(self._copies, 1 + channel, listeners, Copy(publication, 1))
        finish(channel, self._pipeline)
        self._await_end(channel)

    def links(self, peer: int) -> Iterable[Links]:
        """See System.links."""
        if peer >= self._first:
            channels = self.layout.channels_of[peer - self._first] + 1
            yield Links("listens", None, channels.tolist())
        elif peer == SERVER and self.layout.static_mapping is not None:
            for page, row in enumerate(self.layout.static_mapping):
                yield Links("carries", page, (np.flatnonzero(row) + 1).tolist())
        elif peer == SERVER:
            yield Links("feeds", None, range(1, self._first))

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """See System.roles."""
        if peer < self._first:
            yield ("server" if peer == SERVER else "channel", None)

    def gauges(self, peer: int) -> Iterable[tuple[str, float]]:
        """Counts of the interval, zeros too, and the pages that wait in a channel now."""
        counts = self._pipeline.counts
        if peer >= self._first:
            of_client = self._counts[peer]
            yield from [
                (name, of_client[name])
                for name in ("receptions", "unwanted", "heard", "staleness_us")
            ]
            of_client.clear()
        elif peer == SERVER:
            yield "updates", _take_count(counts.totals, UPDATES)
            yield "passed", _take_count(counts.totals, PASSED)
        else:
            yield "queue", int(self._pipeline.state.waiting[peer - 1])
            for name in ("offered", "sent", "superseded", "lost"):
                yield name, _take_count(getattr(counts, name), peer - 1)


def _take_count(counts: Int64s, place: int) -> int:
    """Return a count, and reset it to 0."""
    count = int(counts[place])
    counts[place] = 0
    return count
