"""The arrays of the pipeline, in groups, and their types in compiled code. Times are µs.

A *copy* of an update waits in the buffer of a channel, in the queue of its page. What a client has
heard of an update that is on its way is one bit, so a transmission costs a word for every 64
clients, however many of them listen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from vizpub.model.arrays import Bools, Int64s, Words

FIFO, RXW, LWF, DROP = range(4)
NEVER = 2**62
"""When a channel ends that transmits nothing."""
BINS = 64 * 64
"""Staleness is counted by its first seven binary digits: quantiles are at most 1.6 % off."""


class FixedArrays(NamedTuple):
    """What does not change during a run."""

    wants: Words
    """[pages, words]: a bit for each client."""
    listens: Words
    """[channels, words]"""
    clients: Int64s
    """The clients of each page, one page after the other."""
    begins: Int64s
    """[pages + 1]: where those of a page begin."""
    channels_of: Int64s
    """[clients, listen]"""
    reach: Int64s
    """[pages, channels]: clients on the channel that want the page."""
    listeners: Int64s
    """[channels]"""
    transmission: Int64s
    """[pages]"""
    carried: Bools
    """[pages, channels]: the static mapping, if there is one."""


class Rules(NamedTuple):
    """How covers and queues are made."""

    mapping: int
    """Of `covers.RULES`; -1 = static."""
    scheduler: int
    buffer: int
    """Pages that may wait in a channel; 0 = no limit."""
    drop_above: int
    coalesce: bool


class PipelineState(NamedTuple):
    """The channels, and the updates and copies on their way."""

    due: Int64s
    """[channels]: end of the transmission."""
    sending: Int64s
    """[channels]: the update that is transmitted."""
    waiting: Int64s
    """[channels]: pages in the buffer."""
    present: Int64s
    """[channels, pages]: pages with waiting copies."""
    distinct: Int64s
    """[channels]: how many these are."""
    place: Int64s
    """[channels, pages]: where a page is in `present`."""
    head: Int64s
    """[channels, pages]: its oldest copy."""
    tail: Int64s
    held: Int64s
    """[channels, pages]: its waiting copies."""
    entered: Int64s
    """[channels, pages]: the sum of the times at which these entered."""
    since: Int64s
    """[channels]: the last change of the buffer."""
    busy: Int64s
    """[channels]: room for what the mapper is told: pages in the buffer or transmitted."""
    chosen: Int64s
    """[channels]: room for what it answers."""
    draws: Int64s
    numbers: Int64s
    """Free updates, free copies, and the number of the next copy."""


class Pools(NamedTuple):
    """Updates and copies on their way; they grow between two calls."""

    updated: Int64s
    """[updates]: its time."""
    page: Int64s
    missing: Int64s
    """[updates]: clients that want it and have not heard it."""
    copies: Int64s
    """[updates]: copies on their way."""
    heard: Words
    """[updates, words]"""
    free: Int64s
    """[updates]: the free ones."""
    copy_of: Int64s
    """[copies]: its update."""
    arrived: Int64s
    """[copies]: when it entered the buffer."""
    number: Int64s
    """[copies]: in the order of their arrival."""
    following: Int64s
    """[copies]: the next one of the same page."""
    spare: Int64s
    """[copies]: the free ones."""


class PipelineCounts(NamedTuple):
    """Counters of a run."""

    totals: Int64s
    """By `TOTALS`."""
    offered: Int64s
    """[channels]: copies from the mapper."""
    sent: Int64s
    superseded: Int64s
    """[channels]: copies replaced by a newer update."""
    lost: Int64s
    """[channels]: copies that found no room, or were dropped."""
    queued: Int64s
    """[channels]: waiting pages times µs."""
    longest: Int64s
    busy: Int64s
    """[channels]: µs of transmission."""
    carried: Int64s
    """[channels, pages]: transmissions."""
    heard: Int64s
    """[clients]: updates that it wanted and heard."""
    stale: Int64s
    """[clients]: the sum of their staleness, µs."""
    bins: Int64s
    """[clients or 1, BINS]: first receptions by staleness, of each client or of all."""


class Pipeline(NamedTuple):
    """All arrays of a run."""

    rules: Rules
    fixed: FixedArrays
    state: PipelineState
    pools: Pools
    counts: PipelineCounts


TOTALS = ("updates", "passed", "complete", "unreached", "duplicates", "receptions", "unwanted")
UPDATES, PASSED, COMPLETE, UNREACHED, DUPLICATES, RECEPTIONS, UNWANTED = range(len(TOTALS))
FREE_UPDATES, FREE_COPIES, NEXT_COPY = range(3)

_N, _M, _W, _B = (
    types.Array(t, d, "C")
    for t, d in ((types.int64, 1), (types.int64, 2), (types.uint64, 2), (types.boolean, 2))
)
_GROUP: Any = types.NamedTuple
PIPELINE = _GROUP(
    (
        _GROUP((types.int64,) * 4 + (types.boolean,), Rules),
        _GROUP((_W, _W, _N, _N, _M, _M, _N, _N, _B), FixedArrays),
        _GROUP((_N, _N, _N, _M, _N, _M, _M, _M, _M, _M, _N, _N, _N, _N, _N), PipelineState),
        _GROUP((_N, _N, _N, _N, _W, _N, _N, _N, _N, _N, _N), Pools),
        _GROUP((_N,) * 8 + (_M,) + (_N,) * 2 + (_M,), PipelineCounts),
    ),
    Pipeline,
)
INT, TIMES = types.int64, _N
