"""Subscriptions and the paths of messages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.sizes import Size
from vizpub.model.arrays import Int64s

INTERVAL_US = 1_000_000
FANOUT = 4
"""Peers to which each peer of a tree sends the message on."""
_HOP_US = 20_000
_SUBSCRIPTIONS, _MESSAGES = 1, 2
"""Streams of the seed; see benchmarks.overlay."""


class Subscriptions(NamedTuple):
    """Subscriptions that hold for the whole run; by peer and topic."""

    peer: Int64s
    topic: Int64s


class Messages(NamedTuple):
    """A row per message, in the order of publication."""

    topic: Int64s
    publisher: Int64s
    time_us: Int64s


class Receptions(NamedTuple):
    """A row per first arrival; by message."""

    message: Int64s
    peer: Int64s
    previous: Int64s
    hop: Int64s
    time_us: Int64s


def _weights(size: Size) -> np.ndarray:
    """Zipf's law: the k-th topic has a share in proportion to 1/k."""
    weights: np.ndarray = 1 / np.arange(1, size.topics + 1)
    weights /= weights.sum()
    return weights


def subscriptions(size: Size) -> Subscriptions:
    """Different topics for each peer, drawn without replacement by weight.

    The largest values of log-weight plus Gumbel noise: Efraimidis and Spirakis, Weighted random
    sampling with a reservoir, 2006.
    """
    rng = np.random.default_rng([size.seed, _SUBSCRIPTIONS])
    keys = np.log(_weights(size)) + rng.gumbel(size=(size.peers, size.topics))
    topics = np.sort(np.argsort(-keys, axis=1)[:, : size.subscriptions], axis=1)
    return Subscriptions(np.repeat(np.arange(size.peers), topics.shape[1]), topics.ravel())


def messages(size: Size) -> tuple[Messages, Receptions]:
    """Each message goes down a tree, to subscribers of its topic first, within its interval."""
    rng = np.random.default_rng([size.seed, _MESSAGES])
    count = size.messages
    interval = np.arange(count) * size.intervals // count
    time_us = np.sort(interval * INTERVAL_US + rng.integers(INTERVAL_US // 2, size=count))
    topic = rng.choice(size.topics, count, p=_weights(size))
    reached = _receivers(size, topic, rng)
    position = np.arange(1, size.receivers + 1)
    hop = _depth(position)
    delays = hop * _HOP_US + rng.integers(_HOP_US, size=(count, size.receivers))
    received = Receptions(
        message=np.repeat(np.arange(count), size.receivers),
        peer=reached[:, 1:].ravel(),
        previous=reached[:, (position - 1) // FANOUT].ravel(),
        hop=np.tile(hop, count),
        time_us=(time_us[:, None] + delays).ravel(),
    )
    return Messages(topic, reached[:, 0], time_us), received


def _depth(position: Int64s) -> Int64s:
    """The hop of each place in a tree that is filled hop by hop; the root is 0."""
    first, depth = 0, np.zeros_like(position)
    while (first := first * FANOUT + 1) <= position.max():
        depth += position >= first
    return depth


def _receivers(size: Size, topic: Int64s, rng: np.random.Generator) -> Int64s:
    """[messages, 1 + receivers]: the publisher and the peers that the message reaches, in this
    order."""
    pairs = subscriptions(size)
    subscribed = np.zeros((size.topics, size.peers), bool)
    subscribed[pairs.topic, pairs.peer] = True
    keys = rng.random((topic.size, size.peers)) + ~subscribed[topic]
    return np.argsort(keys, axis=1)[:, : size.receivers + 1]
