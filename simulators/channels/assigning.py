"""Which channels each client listens to (chapter 4, A.11 and A.13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from vizpub.model.arrays import Bools, Floats
from vizpub.simulators.channels.parameters import Assignment

_ROUNDING = 12
"""Digits of an overlap: sums of the same probabilities in another order are ties."""


class ListenerTable:
    """The channels that clients listen to so far: bool[clients, channels], at most `quota` each."""

    def __init__(self, clients: int, channels: int, quota: int) -> None:
        self.taken = np.zeros((clients, channels), dtype=bool)
        self.left = np.full(clients, quota)
        """Channels that each client may still get."""

    def add(self, client: int, channel: int) -> bool:
        """Add a channel; return False if the client has it already, or no room for it."""
        if not self.left[client] or self.taken[client, channel]:
            return False
        self.taken[client, channel] = True
        self.left[client] -= 1
        return True

    def able(self, channel: int) -> np.ndarray:
        """The clients that may get the channel."""
        return np.flatnonzero((self.left > 0) & ~self.taken[:, channel])

    def fill(self, random: np.random.Generator) -> None:
        """Give the clients that have room random channels that they do not have."""
        for client in np.flatnonzero(self.left).tolist():
            free = np.flatnonzero(~self.taken[client])
            for channel in random.permutation(free)[: self.left[client]].tolist():
                self.add(client, channel)


_Assign = Callable[[ListenerTable, Bools, Floats, np.random.Generator], None]


def assign_channels(
    rule: Assignment,
    wants: Bools,
    probability: Floats,
    room: tuple[int, int],
    random: np.random.Generator,
) -> Bools:
    """Assign channels to clients: bool[clients, channels] is true where a client listens.

    `wants` is bool[clients, pages], `probability` of an update being of a page; `room` is the
    number of channels and how many of them each client gets.
    """
    listening = ListenerTable(len(wants), *room)
    _RULES[rule](listening, wants, probability, random)
    return listening.taken


def _random(
    listening: ListenerTable, wants: Bools, probability: Floats, random: np.random.Generator
) -> None:
    """Each client draws its channels."""
    listening.fill(random)


def _in_turn(
    listening: ListenerTable, wants: Bools, probability: Floats, random: np.random.Generator
) -> None:
    """The channels are dealt to the clients in turn (our reading: the text is missing)."""
    clients, channels = listening.taken.shape
    card = 0
    for client in range(clients):
        for _ in range(int(listening.left[client])):
            listening.add(client, card % channels)
            card += 1


def _by_pages(
    listening: ListenerTable, wants: Bools, probability: Floats, random: np.random.Generator
) -> None:
    """The next page has the largest product of its probability and its clients; it goes to the
    channel of the least summed probability, and that channel to its clients (A.13).
    """
    load = np.zeros(listening.taken.shape[1])
    interest = probability * wants.sum(axis=0)
    for page in np.argsort(-interest, kind="stable").tolist():
        if not interest[page] or not listening.left.any():
            break
        channel = int(np.argmin(load))
        load[channel] += probability[page]
        for client in np.flatnonzero(wants[:, page]).tolist():
            listening.add(client, channel)
    listening.fill(random)


def _by_likeness(
    listening: ListenerTable, wants: Bools, probability: Floats, random: np.random.Generator
) -> None:
    """Each channel gets one random client. Then the channels take turns: each takes the client
    whose pages most overlap those that its clients want, weighted by probability (section 4.2).
    """
    clients, channels = listening.taken.shape
    weighted = wants * probability
    overlap = np.zeros((channels, clients))
    union = np.zeros((channels, wants.shape[1]), dtype=bool)

    def join(channel: int, client: int) -> None:
        listening.add(client, channel)
        new = wants[client] & ~union[channel]
        union[channel] |= new
        overlap[channel] = np.round(overlap[channel] + weighted[:, new].sum(axis=1), _ROUNDING)

    for channel in range(channels):
        able = listening.able(channel)
        if len(able):
            join(channel, int(random.choice(able)))
    skipped = channel = 0
    while skipped < channels:
        able = listening.able(channel)
        skipped = skipped + 1 if not len(able) else 0
        if len(able):
            best = able[overlap[channel, able] == overlap[channel, able].max()]
            join(channel, int(random.choice(best)))
        channel = (channel + 1) % channels


_RULES: Mapping[Assignment, _Assign] = {
    "random": _random,
    "rr": _in_turn,
    "pc": _by_pages,
    "lc": _by_likeness,
}
