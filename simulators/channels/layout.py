"""What does not change during a run: pages, clients, channels, and who listens to what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vizpub.model.arrays import Bools, Floats, Int64s
from vizpub.model.errors import InputError, UseError
from vizpub.model.wording import amount
from vizpub.simulators.channels.assigning import assign_channels
from vizpub.simulators.channels.covers import RULES, cover, smallest
from vizpub.simulators.channels.laws import FilePages, PageDatabase, page_of, rows
from vizpub.simulators.channels.parameters import ChannelParameters, Scheduler
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.engine.files import is_whole_number, not_understood
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.poldercast.views import seed_state

STANDARD = 512
"""Bytes of the page whose time of transmission is given."""


@dataclass(frozen=True)
class PageUpdates:
    """Updates of pages in order of time."""

    times: Int64s
    """µs"""
    pages: Int64s


@dataclass(frozen=True, eq=False)
class ChannelLayout:
    """The server's pages, the clients' profiles, and the channels of both."""

    parameters: ChannelParameters
    clients: int
    seed: int

    def __post_init__(self) -> None:
        """Raises: UseError without a client, InputError for a file that does not fit."""
        if self.clients < 1:
            need = 2 + self.parameters.channels
            raise UseError(
                f"a server, {amount(self.parameters.channels, 'channel')} and a client are "
                f"{need} peers: give at least --peers {need}"
            )

    @cached_property
    def database(self) -> PageDatabase:
        """The pages."""
        law = self.parameters.get_pages()
        if isinstance(law, FilePages):
            names, _ = law.read_pages()
            return PageDatabase(1, len(names), names)
        return PageDatabase(self.parameters.sources, self.parameters.items)

    @cached_property
    def probability(self) -> Floats:
        """Of an update being of each page; all sources update as often."""
        database = self.database
        weights = np.tile(self.parameters.get_pages().weights(database.items), database.sources)
        if isinstance(self.parameters.get_pages(), FilePages):
            return weights  # rounded as printed
        if not weights.sum():
            raise UseError("all pages have a probability of 0: give a lower mean, or more --items")
        probabilities: Floats = weights / weights.sum()
        return probabilities

    @cached_property
    def wants(self) -> Bools:
        """bool[clients, pages]: the profiles of the run."""
        profile = self.parameters.get_profile()
        return profile.wants(self.clients, self.database, self._numbers("profiles"))

    @cached_property
    def listens(self) -> Bools:
        """bool[clients, channels]: assigned by the start-up profiles, if there are any."""
        wants, first = self.wants, self.parameters.get_startup_profile()
        if first is not None:
            wants = first.wants(self.clients, self.database, self._numbers("startup"))
        room = self.parameters.channels, self.parameters.listen
        rule = self.parameters.assignment
        return assign_channels(rule, wants, self.probability, room, self._numbers("assignment"))

    @cached_property
    def channels_of(self) -> Int64s:
        """int64[clients, listen]: the channels of each client, ascending."""
        return np.nonzero(self.listens)[1].reshape(self.clients, -1).astype(np.int64)

    @cached_property
    def reach(self) -> Int64s:
        """int64[pages, channels]: clients on the channel that want the page."""
        return self.wants.T.astype(np.int64) @ self.listens.astype(np.int64)

    @cached_property
    def bytes(self) -> Int64s:
        """Of each page."""
        low, high = self.parameters.page_bytes, self.parameters.page_bytes_high
        drawn = self._numbers("sizes").integers(low, max(low, high) + 1, self.database.pages)
        return drawn.astype(np.int64)

    @cached_property
    def transmission(self) -> Int64s:
        """µs that each page takes: in proportion to its size."""
        each = us(self.parameters.transmission) * self.bytes / STANDARD
        return np.maximum(1, np.rint(each)).astype(np.int64)

    @cached_property
    def static_mapping(self) -> Bools | None:
        """bool[pages, channels]: the static mapping; null = the mapping is made on the fly.

        Raises: InputError where a file leaves a client without a page that it wants.
        """
        rule = self.parameters.mapping
        if not self.parameters.is_static:
            return None
        if rule.startswith("file:"):
            return self._from_file(rule.removeprefix("file:"))
        mapping = np.zeros(self.reach.shape, dtype=bool)
        chosen, draws = np.empty(self.parameters.channels, np.int64), self.draws()
        idle = np.zeros(self.parameters.channels, np.int64)
        for page in range(self.database.pages):
            clients = np.flatnonzero(self.wants[:, page])
            if rule == "perfect-c":
                mapping[page, smallest(self.listens[clients])] = True
            else:
                reach = self.reach[page]
                count = cover(RULES["c"], clients, self.channels_of, reach, idle, draws, chosen)
                mapping[page, chosen[:count]] = True
        return mapping

    def with_scheduler(self, scheduler: Scheduler) -> ChannelLayout:
        """The same with another scheduler, on which none of it depends."""
        copy = replace(self, parameters=replace(self.parameters, scheduler=scheduler))
        computed = {name: value for name, value in vars(self).items() if name not in vars(copy)}
        vars(copy).update(computed)  # the covers take longer to find than a run
        return copy

    def draws(self) -> Int64s:
        """The generator of covers at the beginning of a run."""
        return seed_state(stream(self.seed, "covers"))

    def updates(self, span: tuple[int, int]) -> PageUpdates:
        """The updates in [start, end) µs."""
        start, end = span
        gap = us(self.parameters.gap)
        numbers, times = self._numbers("gaps"), [np.array([start], np.int64)]
        while (last := times[-1][-1]) < end:
            steps = numbers.exponential(gap, 1 + int((end - last) / gap * 1.1))
            # No two updates at the same time, for an order that nobody needs to define.
            steps_us = np.maximum(1, np.rint(steps)).astype(np.int64)
            times.append(last + np.cumsum(steps_us))
        all_times = np.concatenate(times[1:]) if times[1:] else times[0]
        update_times = all_times[all_times < end]
        return PageUpdates(update_times, self._draw_pages(len(update_times)))

    def draw_updates(self, count: int, gap: float) -> PageUpdates:
        """Draw `count` updates with a mean gap in µs; another gap only scales their times."""
        steps = self._numbers("gaps").exponential(1.0, count)
        times = np.cumsum(np.maximum(1, np.rint(steps * gap)).astype(np.int64))
        return PageUpdates(times, self._draw_pages(count))

    def _draw_pages(self, count: int) -> Int64s:
        edges = np.cumsum(self.probability) / self.probability.sum()
        drawn = np.searchsorted(edges, self._numbers("updates").random(count), side="right")
        # The last edge may be rounded to less than 1, and a number be above it.
        return np.minimum(drawn, self.database.pages - 1).astype(np.int64)

    def _from_file(self, file: str) -> Bools:
        mapping, numbers = np.zeros(self.reach.shape, dtype=bool), self.database.numbers
        for number, (page, channel) in rows(file, ("page", "channel")):
            if not is_whole_number(channel) or int(channel) >= self.parameters.channels:
                why = f"'{channel}' is no channel: there are 0 to {self.parameters.channels - 1}"
                raise not_understood(file, number, why)
            mapping[page_of(file, number, page, numbers), int(channel)] = True
        heard = (mapping.astype(np.int64) @ self.listens.T.astype(np.int64)) > 0
        client, page_ = next(zip(*np.nonzero(self.wants & ~heard.T), strict=True), (None, 0))
        if client is not None:
            name = next(name for name, at in numbers.items() if at == page_)
            raise InputError(
                f"{file}: client {client} wants page '{name}', but listens to none of its channels",
                "let clients listen to more channels (--listen), or map the page to more",
            )
        return mapping

    def _numbers(self, part: str) -> np.random.Generator:
        """The parts draw independently, so runs of one seed share all that does not differ."""
        return np.random.default_rng(stream(self.seed, f"channels/{part}").getrandbits(64))
