"""Arrivals of messages as arrays: which are first at a peer, and their number of hops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vizpub.model.arrays import Int64s

Flags = npt.NDArray[np.bool_]

UNKNOWN = -1
_MOST_HOPS = 2**31 - 1
"""Largest value of the column `hop`."""
_BITS = 32
"""Bits of the second number of a pair, an int32. The other bits suffice for all messages that
ingest.indexing can number."""
LARGEST = (1 << _BITS) - 1
"""Largest second number of a pair."""


class Arrivals(NamedTuple):
    """Receptions as arrays of one length; -1 is unknown."""

    first: Flags
    message: Int64s
    peer: Int64s
    previous: Int64s
    publisher: Int64s
    reported: Int64s
    """The hop, if the source reports it."""


def pairs(first: Int64s, second: Int64s) -> Int64s:
    """One number for both, in the same order; -1 where `other` is unknown."""
    return first << _BITS | second


def first_and_second(pairs_: Int64s) -> tuple[Int64s, Int64s]:
    """The two numbers of each pair; both must be known."""
    return pairs_ >> _BITS, pairs_ & LARGEST


def chain_hops(arrivals: Arrivals, parents: Int64s) -> Int64s:
    """Hop of every reception, -1 where it cannot be known. O(receptions · depth).

    The publisher is at hop 0, a reception one hop after its parent (`parents_of`). A chain that
    is incomplete or circular, or exceeds 32 bits, gives no hop.
    """
    direct = (arrivals.previous == arrivals.publisher) & (arrivals.previous >= 0)
    hops = np.where(arrivals.reported >= 0, arrivals.reported, np.where(direct, 1, UNKNOWN))
    while True:
        waiting = np.flatnonzero((hops < 0) & (parents >= 0))
        parent_hops = hops[parents[waiting]]
        resolved = waiting[(parent_hops >= 0) & (parent_hops < _MOST_HOPS)]
        if not resolved.size:
            return hops
        hops[resolved] = hops[parents[resolved]] + 1


def parents_of(arrivals: Arrivals) -> Int64s:
    """Row of the first reception at each row's previous hop; -1 where there is none."""
    firsts = np.flatnonzero(arrivals.first)
    keys = pairs(arrivals.message, arrivals.peer)[firsts]
    order = np.argsort(keys, kind="stable")  # fast if they are nearly in order
    previous_keys = pairs(arrivals.message, arrivals.previous)
    position = np.searchsorted(keys, previous_keys, sorter=order)
    rows = np.append(firsts[order], UNKNOWN)[position]
    exists = np.append(keys[order], UNKNOWN)[position] == previous_keys
    return np.where(exists, rows, UNKNOWN)


def flag_earliest(message: Int64s, peer: Int64s, *order: Int64s) -> Flags:
    """Which row of each message and peer is the first by the columns of `order`."""
    order_ = np.lexsort((*order[::-1], peer, message))
    ordered = message[order_], peer[order_]
    is_repeated = np.logical_and(*(np.diff(key, prepend=UNKNOWN) == 0 for key in ordered))
    is_earliest = np.zeros(order_.size, np.bool_)
    is_earliest[order_[~is_repeated]] = True
    return is_earliest
