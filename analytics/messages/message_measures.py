"""Metrics of messages and their arrivals, from arrays: eligible peers, hits, hops, delays."""

from __future__ import annotations

from collections.abc import Mapping
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


class MaskedValues(NamedTuple):
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
    time: MaskedValues
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
    time: MaskedValues
    first: Flags
    hop: Int64s
    parent: Int64s
    """Row of the first reception at the previous hop; -1 where there is none."""
    subscribed: MaskedValues
    eligible: MaskedValues
    passed_over: Flags
    """The peer subscribed at the publication, but its receptions are unknown."""
    copy_flags: Mapping[str, MaskedValues]
    """Columns of vizpub.model.tables.COPY_FLAGS."""


def count_by_message(publications: Publications, positions: Int64s) -> MaskedValues:
    """Count how often each message occurs; always known."""
    counts = np.bincount(positions, minlength=publications.message.size)
    return MaskedValues(counts, np.ones(counts.size, np.bool_))


def ratio(numerator: Int64s, denominator: Int64s, is_known: Flags) -> MaskedValues:
    """Quotient; unknown if the denominator is 0."""
    is_known = is_known & (denominator > 0)
    return MaskedValues(
        np.divide(numerator, denominator, out=np.zeros(denominator.size), where=is_known), is_known
    )


def count_eligible(publications: Publications, interest: Interest, silence: Silence) -> Int64s:
    """Number of peers that subscribed (and so were present) at the publication's tick, without the
    publisher and without peers that did not report their receptions then.
    """
    topic, tick = publications.topic, publications.tick
    totals = interest.count_subscribers(topic, tick) - interest.is_subscribed(
        topic, publications.publisher, tick
    )
    for at, peer in silence.silent_peers(publications.interval, _AT_ONCE):
        counts = interest.is_subscribed(topic[at], peer, tick[at]) & (
            peer != publications.publisher[at]
        )
        totals -= np.bincount(at[counts], minlength=totals.size)
    return totals


def count_hits(publications: Publications, receptions: Receptions) -> dict[str, MaskedValues]:
    """Per message: delivered, delivered_in_interval, late_deliveries; the last is unknown
    if it is unknown whether a peer that had not subscribed before did so at the arrival.
    """
    first = receptions.first
    at, is_eligible = receptions.at[first], receptions.eligible.values[first]
    at_once = is_eligible & (receptions.interval[first] == publications.interval[at])
    subscribed, is_known = (part[first] for part in receptions.subscribed)
    is_late = ~is_eligible & ~receptions.passed_over[first]
    late = count_by_message(publications, at[is_late & subscribed & is_known]).values
    undecided = count_by_message(publications, at[is_late & ~is_known]).values
    return {
        "delivered": count_by_message(publications, at[is_eligible]),
        "delivered_in_interval": count_by_message(publications, at[at_once]),
        "late_deliveries": MaskedValues(late, undecided == 0),
    }


def missed_peers(
    publications: Publications,
    positions: Int64s,
    receptions: Receptions,
    interest: Interest,
    silence: Silence,
) -> tuple[Int64s, Int64s]:
    """(positions, peers) of the eligible peers (see `eligible`) that never received the message, in
    ascending order, for the messages at the positions `some`.
    """
    reached = pairs(receptions.at[receptions.first], receptions.peer[receptions.first])
    parts = [np.empty(0, np.int64)]
    for indices, peer in interest.subscribers(
        publications.topic[positions], publications.tick[positions], _AT_ONCE
    ):
        at = positions[indices]
        keys = pairs(at, peer)
        is_excluded = (peer == publications.publisher[at]) | silence.is_silent(
            publications.interval[at], peer
        )
        parts.append(keys[~is_excluded & ~np.isin(keys, reached)])
    return first_and_second(np.sort(np.concatenate(parts)))


def hop_measures(publications: Publications, receptions: Receptions) -> dict[str, MaskedValues]:
    """Mean and largest hop of first receptions, and of how many it is known."""
    chosen = receptions.first & (receptions.hop >= 0)
    at, hop = receptions.at[chosen], receptions.hop[chosen]
    counts = count_by_message(publications, at).values
    total = np.bincount(at, hop, counts.size).astype(np.int64)
    largest = np.zeros(counts.size, np.int64)
    np.maximum.at(largest, at, hop)
    has_any = counts > 0
    return {
        "hops_mean": ratio(total, counts, has_any),
        "hops_max": MaskedValues(largest, has_any),
        "hops_known": MaskedValues(counts, has_any),
    }


def delay_measures(publications: Publications, receptions: Receptions) -> dict[str, MaskedValues]:
    """Delays of first receptions, in µs; the mean is unknown if the sum exceeds 64 bits."""
    (time, is_known), sent = receptions.time, publications.time
    published_us = sent.values[receptions.at]
    delay = time - published_us
    fits = ((time ^ published_us) & (time ^ delay)) >= 0
    chosen = receptions.first & is_known & sent.known[receptions.at] & fits
    at, delay = receptions.at[chosen], delay[chosen]
    order = np.lexsort((delay, at))
    at, delay = at[order], delay[order]
    counts = count_by_message(publications, at).values
    has_any, ends = counts > 0, np.cumsum(counts)
    percentiles = {
        name: MaskedValues(_percentile(delay, ends - counts, counts, share), has_any)
        for name, share in _SHARES.items()
    }
    largest = np.zeros(counts.size)
    largest[has_any] = delay[ends[has_any] - 1]
    total = exact_sums(delay, at, counts.size)
    mean = ratio(total.values, counts, total.known)
    return percentiles | {"delay_us_mean": mean, "delay_us_max": MaskedValues(largest, has_any)}


def _percentile(ordered: Int64s, begins: Int64s, counts: Int64s, share: float) -> Floats:
    """Percentile of each group of ascending values, interpolated; 0 for an empty group."""
    has_any = counts > 0
    position = (counts[has_any] - 1) * share
    below, above = np.floor(position), np.ceil(position)
    least, most = (
        ordered[begins[has_any] + place.astype(np.int64)].astype(np.float64)
        for place in (below, above)
    )
    result = np.zeros(counts.size)
    result[has_any] = least + (position - below) * (most - least)
    return result


def exact_sums(values: Int64s, at: Int64s, size: int) -> MaskedValues:
    """Sum of each group of integers, at most 2³¹ values; unknown if it exceeds 64 bits."""
    high, low = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(high, at, values >> _HALF)
    np.add.at(low, at, values & ((1 << _HALF) - 1))
    high += low >> _HALF
    low &= (1 << _HALF) - 1
    fits = (high >= -(1 << 32)) & (high < 1 << 32)
    return MaskedValues(high << _HALF | low, fits)


def count_violations(publications: Publications, receptions: Receptions) -> MaskedValues:
    """Number of arrivals before the publication, or before the first arrival at their previous hop;
    unknown without times.
    """
    time, is_known = receptions.time
    causes = (
        MaskedValues(
            publications.time.values[receptions.at], publications.time.known[receptions.at]
        ),
        MaskedValues(
            time[receptions.parent], is_known[receptions.parent] & (receptions.parent >= 0)
        ),
    )
    is_early = np.zeros(time.size, np.bool_)
    for cause in causes:
        is_early |= is_known & cause.known & (time < cause.values)
    timed = count_by_message(publications, receptions.at[is_known]).values > 0
    return MaskedValues(count_by_message(publications, receptions.at[is_early]).values, timed)
