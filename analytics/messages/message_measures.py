"""Metrics of messages and their arrivals, from arrays: eligible peers, hits, hops, delays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vizpub.analytics.interest import Interest, Silence
from vizpub.analytics.messages.hops import Flags, first_and_second, pairs
from vizpub.model.arrays import Floats, Int64s

_SHARES = {"delay_us_p50": 0.5, "delay_us_p95": 0.95, "delay_us_p99": 0.99}
_AT_ONCE = 1 << 20
"""Pairs of a message and a peer in memory at once."""
_HALF = 31
"""Bits of the lower part of a number that is summed in two parts."""

_Values = npt.NDArray[Any]


class Known(NamedTuple):
    """Values, and a flag for each whether it is known."""

    values: _Values
    known: Flags


class Publications(NamedTuple):
    """A row per message, in ascending order."""

    message: Int64s
    publisher: Int64s
    topic: Int64s
    interval: Int64s
    tick: Int64s
    time: Known
    reported: Flags
    """The publisher reported it."""


class Receptions(NamedTuple):
    """A row per arrival, ordered by message, peer, previous hop and tick."""

    at: Int64s
    """Position of the message in the publications."""
    peer: Int64s
    previous: Int64s
    interval: Int64s
    tick: Int64s
    time: Known
    first: Flags
    hop: Int64s
    parent: Int64s
    """Row of the first reception at the previous hop; -1 where there is none."""
    subscribed: Known
    eligible: Known
    passed_over: Flags
    """The peer subscribed at the publication, but its receptions are unknown."""


def counted(published: Publications, places: Int64s) -> Known:
    """How often each message occurs; always known."""
    counts = np.bincount(places, minlength=published.message.size)
    return Known(counts, np.ones(counts.size, np.bool_))


def ratio(above: Int64s, below: Int64s, known: Flags) -> Known:
    """Quotient; unknown if `below` is 0."""
    known = known & (below > 0)
    return Known(np.divide(above, below, out=np.zeros(below.size), where=known), known)


def eligible(published: Publications, interest: Interest, silence: Silence) -> Int64s:
    """Number of peers that subscribed (and so were present) at the publication's tick, without the
    publisher and without peers that did not report their receptions then.
    """
    topic, tick = published.topic, published.tick
    found = interest.count(topic, tick) - interest.of(topic, published.publisher, tick)
    for at, peer in silence.in_each(published.interval, _AT_ONCE):
        counts = interest.of(topic[at], peer, tick[at]) & (peer != published.publisher[at])
        found -= np.bincount(at[counts], minlength=found.size)
    return found


def hits(published: Publications, received: Receptions) -> dict[str, Known]:
    """Per message: delivered, delivered_in_interval, late_deliveries; the last is unknown
    if it is unknown whether a peer that had not subscribed before did so at the arrival.
    """
    first = received.first
    at, asked = received.at[first], received.eligible.values[first]
    at_once = asked & (received.interval[first] == published.interval[at])
    subscribed, known = (part[first] for part in received.subscribed)
    after = ~asked & ~received.passed_over[first]
    late = counted(published, at[after & subscribed & known]).values
    unclear = counted(published, at[after & ~known]).values
    return {
        "delivered": counted(published, at[asked]),
        "delivered_in_interval": counted(published, at[at_once]),
        "late_deliveries": Known(late, unclear == 0),
    }


def missed(
    published: Publications,
    some: Int64s,
    received: Receptions,
    interest: Interest,
    silence: Silence,
) -> tuple[Int64s, Int64s]:
    """(positions, peers) of the eligible peers (see `eligible`) that never received the message, in
    ascending order, for the messages at the positions `some`.
    """
    reached = pairs(received.at[received.first], received.peer[received.first])
    found = [np.empty(0, np.int64)]
    for place, peer in interest.alive(published.topic[some], published.tick[some], _AT_ONCE):
        at = some[place]
        both = pairs(at, peer)
        out = (peer == published.publisher[at]) | silence.of(published.interval[at], peer)
        found.append(both[~out & ~np.isin(both, reached)])
    return first_and_second(np.sort(np.concatenate(found)))


def hops(published: Publications, received: Receptions) -> dict[str, Known]:
    """Mean and largest hop of first receptions."""
    chosen = received.first & (received.hop >= 0)
    at, hop = received.at[chosen], received.hop[chosen]
    counts = counted(published, at).values
    total = np.bincount(at, hop, counts.size).astype(np.int64)
    largest = np.zeros(counts.size, np.int64)
    np.maximum.at(largest, at, hop)
    some = counts > 0
    return {"hops_mean": ratio(total, counts, some), "hops_max": Known(largest, some)}


def delays(published: Publications, received: Receptions) -> dict[str, Known]:
    """Delays of first receptions, in µs; the mean is unknown if the sum exceeds 64 bits."""
    (time, known), sent = received.time, published.time
    published_us = sent.values[received.at]
    delay = time - published_us
    fits = ((time ^ published_us) & (time ^ delay)) >= 0
    chosen = received.first & known & sent.known[received.at] & fits
    at, delay = received.at[chosen], delay[chosen]
    order = np.lexsort((delay, at))
    at, delay = at[order], delay[order]
    counts = counted(published, at).values
    some, ends = counts > 0, np.cumsum(counts)
    found = {
        name: Known(_percentile(delay, ends - counts, counts, share), some)
        for name, share in _SHARES.items()
    }
    largest = np.zeros(counts.size)
    largest[some] = delay[ends[some] - 1]
    total = exact_sums(delay, at, counts.size)
    mean = ratio(total.values, counts, total.known)
    return found | {"delay_us_mean": mean, "delay_us_max": Known(largest, some)}


def _percentile(ordered: Int64s, begins: Int64s, counts: Int64s, share: float) -> Floats:
    """Percentile of each group of ascending values, interpolated; 0 for an empty group."""
    some = counts > 0
    position = (counts[some] - 1) * share
    below, above = np.floor(position), np.ceil(position)
    least, most = (
        ordered[begins[some] + place.astype(np.int64)].astype(np.float64)
        for place in (below, above)
    )
    found = np.zeros(counts.size)
    found[some] = least + (position - below) * (most - least)
    return found


def exact_sums(values: Int64s, at: Int64s, size: int) -> Known:
    """Sum of each group of integers, at most 2³¹ values; unknown if it exceeds 64 bits."""
    high, low = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(high, at, values >> _HALF)
    np.add.at(low, at, values & ((1 << _HALF) - 1))
    high += low >> _HALF
    low &= (1 << _HALF) - 1
    fits = (high >= -(1 << 32)) & (high < 1 << 32)
    return Known(high << _HALF | low, fits)


def violations(published: Publications, received: Receptions) -> Known:
    """Number of arrivals before the publication, or before the first arrival at their previous hop;
    unknown without times.
    """
    time, known = received.time
    causes = (
        Known(published.time.values[received.at], published.time.known[received.at]),
        Known(time[received.parent], known[received.parent] & (received.parent >= 0)),
    )
    before = np.zeros(time.size, np.bool_)
    for cause in causes:
        before |= known & cause.known & (time < cause.values)
    timed = counted(published, received.at[known]).values > 0
    return Known(counted(published, received.at[before]).values, timed)
