"""The pipeline: profiler, mapper, a scheduler for each channel, and clients.

`advance` runs it compiled. The system that reports (`system.py`) calls the same functions as plain
Python, one for each event, and sends what they transmit as messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.extending import register_jitable

from vizpub.machine.compiled import compiled, population
from vizpub.model.arrays import Int64s
from vizpub.simulators.channels.covers import cover
from vizpub.simulators.channels.state import (
    COMPLETE,
    DROP,
    DUPLICATES,
    FIFO,
    FREE_COPIES,
    FREE_UPDATES,
    INT,
    LWF,
    NEVER,
    NEXT_COPY,
    PASSED,
    PIPELINE,
    RECEPTIONS,
    TIMES,
    UNREACHED,
    UNWANTED,
    UPDATES,
    Pipeline,
)

_Part = TypeVar("_Part", bound=Callable[..., Any])


def _part(function: _Part) -> _Part:
    """Compile the function within `advance`: compiled on its own, it would take longer to get so
    many arrays than most of these functions run.
    """
    marked: _Part = register_jitable(function)
    return marked


@compiled(INT)
def bin_of(value: int) -> int:
    """The bin of a staleness: its first seven binary digits, and how many more there are."""
    digits = 0
    while value >> digits >= 128:
        digits += 1
    return digits * 64 + (value >> digits)


@_part
def is_full(pipeline: Pipeline) -> bool:
    """Return True if the pools lack room for an update, or for a copy on each channel."""
    numbers, channels = pipeline.state.numbers, len(pipeline.state.due)
    return bool(numbers[FREE_UPDATES] < 1 or numbers[FREE_COPIES] < channels + 1)


@_part
def _release(update: int, pipeline: Pipeline) -> None:
    """Count one copy of an update less; after its last one, the update is free."""
    pools, state, totals = pipeline.pools, pipeline.state, pipeline.counts.totals
    pools.copies[update] -= 1
    if pools.copies[update] == 0:
        if pools.missing[update] == 0:
            totals[COMPLETE] += 1
        else:
            totals[UNREACHED] += pools.missing[update]
        pools.free[state.numbers[FREE_UPDATES]] = update
        state.numbers[FREE_UPDATES] += 1


@_part
def _pass_time(channel: int, now: int, pipeline: Pipeline) -> None:
    """Count the waiting pages up to now."""
    state, counts = pipeline.state, pipeline.counts
    counts.queued[channel] += state.waiting[channel] * (now - state.since[channel])
    state.since[channel] = now


@_part
def _take(channel: int, page: int, pipeline: Pipeline) -> int:
    """Remove the oldest copy of a page; returns its update."""
    state, pools = pipeline.state, pipeline.pools
    copy = state.head[channel, page]
    state.head[channel, page] = pools.following[copy]
    state.held[channel, page] -= 1
    state.entered[channel, page] -= pools.arrived[copy]
    state.waiting[channel] -= 1
    if state.held[channel, page] == 0:
        last = state.distinct[channel] - 1
        moved, place = state.present[channel, last], state.place[channel, page]
        state.present[channel, place], state.place[channel, moved] = moved, place
        state.distinct[channel] = last
    pools.spare[state.numbers[FREE_COPIES]] = copy
    state.numbers[FREE_COPIES] += 1
    return int(pools.copy_of[copy])


@_part
def _next_page(channel: int, now: int, pipeline: Pipeline) -> int:
    """The page that the scheduler sends next: by its rule, then by R, then the oldest."""
    fixed, state, pools = pipeline.fixed, pipeline.state, pipeline.pools
    scheduler = pipeline.rules.scheduler
    chosen, best, best_r, best_number = -1, -1.0, 0, 0
    for place in range(state.distinct[channel]):
        page = state.present[channel, place]
        copy = state.head[channel, page]
        r, number = fixed.begins[page + 1] - fixed.begins[page], pools.number[copy]
        if scheduler == FIFO:
            r, value = 0, 0.0
        elif scheduler == LWF:
            total = float(state.held[channel, page]) * now - state.entered[channel, page]
            value = float(r) * total
        else:
            value = float(r) * (now - pools.arrived[copy])
        if chosen >= 0 and (value < best or (value == best and r < best_r)):
            continue
        if chosen < 0 or value > best or r > best_r or number < best_number:
            chosen, best, best_r, best_number = page, value, r, number
    return chosen


@_part
def _least_wanted(channel: int, pipeline: Pipeline) -> int:
    """The waiting page that the fewest clients want; of several the oldest."""
    fixed, state = pipeline.fixed, pipeline.state
    chosen, least, oldest = -1, 0, 0
    for place in range(state.distinct[channel]):
        page = state.present[channel, place]
        r = fixed.begins[page + 1] - fixed.begins[page]
        number = pipeline.pools.number[state.head[channel, page]]
        if chosen < 0 or r < least or (r == least and number < oldest):
            chosen, least, oldest = page, r, number
    return chosen


@_part
def _transmit(channel: int, update: int, now: int, pipeline: Pipeline) -> None:
    page = pipeline.pools.page[update]
    pipeline.state.sending[channel] = update
    pipeline.state.due[channel] = now + pipeline.fixed.transmission[page]


@_part
def _hear(channel: int, pipeline: Pipeline) -> None:
    """Let all listeners receive what a channel has transmitted."""
    fixed, state, pools, counts = pipeline.fixed, pipeline.state, pipeline.pools, pipeline.counts
    update = state.sending[channel]
    page, stale = pools.page[update], state.due[channel] - pools.updated[update]
    wants, listens, heard_bits = fixed.wants, fixed.listens, pools.heard
    heard, stales, bins = counts.heard, counts.stale, counts.bins
    first, place, apart = 0, bin_of(stale), int(len(bins) > 1)
    for word in range(wants.shape[1]):
        new = wants[page, word] & listens[channel, word] & ~heard_bits[update, word]
        heard_bits[update, word] |= new
        while new:
            below_lowest = ~new & (new - np.uint64(1))
            client = word * 64 + population(below_lowest)
            heard[client] += 1
            stales[client] += stale
            bins[client * apart, place] += 1
            first += 1
            new &= new - np.uint64(1)
    pools.missing[update] -= first
    reached, listeners = fixed.reach[page, channel], fixed.listeners[channel]
    counts.totals[DUPLICATES] += reached - first
    counts.totals[RECEPTIONS] += listeners
    counts.totals[UNWANTED] += listeners - reached


@_part
def finish(channel: int, pipeline: Pipeline) -> None:
    """End a transmission, and begin the next if a page waits."""
    state, counts = pipeline.state, pipeline.counts
    now, update = state.due[channel], state.sending[channel]
    page = pipeline.pools.page[update]
    counts.sent[channel] += 1
    counts.carried[channel, page] += 1
    counts.busy[channel] += pipeline.fixed.transmission[page]
    _release(update, pipeline)
    following = _next_page(channel, now, pipeline)
    if following < 0:
        state.due[channel] = NEVER
        return
    _pass_time(channel, now, pipeline)
    _transmit(channel, _take(channel, following, pipeline), now, pipeline)


@_part
def _append(channel: int, update: int, now: int, pipeline: Pipeline) -> None:
    """Put a copy into the queue of its page."""
    state, pools = pipeline.state, pipeline.pools
    page = pools.page[update]
    state.numbers[FREE_COPIES] -= 1
    copy = pools.spare[state.numbers[FREE_COPIES]]
    pools.copy_of[copy], pools.arrived[copy] = update, now
    pools.number[copy] = state.numbers[NEXT_COPY]
    state.numbers[NEXT_COPY] += 1
    if state.held[channel, page] == 0:
        place = state.distinct[channel]
        state.present[channel, place], state.place[channel, page] = page, place
        state.distinct[channel] += 1
        state.head[channel, page] = copy
    else:
        pools.following[state.tail[channel, page]] = copy
    state.tail[channel, page] = copy
    state.held[channel, page] += 1
    state.entered[channel, page] += now
    state.waiting[channel] += 1


@_part
def offer(channel: int, update: int, now: int, pipeline: Pipeline) -> None:
    """Bring a copy to a channel: it is transmitted, waits, replaces an older one or is lost."""
    rules, state, counts = pipeline.rules, pipeline.state, pipeline.counts
    page = pipeline.pools.page[update]
    counts.offered[channel] += 1
    if state.due[channel] == NEVER:
        _transmit(channel, update, now, pipeline)
        return
    if rules.coalesce and state.held[channel, page]:
        copy = state.head[channel, page]
        _release(pipeline.pools.copy_of[copy], pipeline)
        pipeline.pools.copy_of[copy] = update  # in the place of the older one
        counts.superseded[channel] += 1
        return
    if rules.buffer and state.waiting[channel] >= rules.buffer:
        counts.lost[channel] += 1
        _release(update, pipeline)
        return
    _pass_time(channel, now, pipeline)
    _append(channel, update, now, pipeline)
    if rules.scheduler == DROP and state.waiting[channel] > rules.drop_above:
        victim = _take(channel, _least_wanted(channel, pipeline), pipeline)
        counts.lost[channel] += 1
        _release(victim, pipeline)
    counts.longest[channel] = max(counts.longest[channel], state.waiting[channel])


@_part
def _map_page(page: int, pipeline: Pipeline) -> int:
    """Number of `state.chosen` channels for an update of a page."""
    mapping, fixed, state = pipeline.rules.mapping, pipeline.fixed, pipeline.state
    chosen = state.chosen
    if mapping >= 0:
        clients = fixed.clients[fixed.begins[page] : fixed.begins[page + 1]]
        busy = state.busy
        for channel in range(len(busy)):
            busy[channel] = state.waiting[channel] + (state.due[channel] < NEVER)
        reach = fixed.reach[page]
        return int(cover(mapping, clients, fixed.channels_of, reach, busy, state.draws, chosen))
    count = 0
    for channel in range(len(state.due)):
        if fixed.carried[page, channel]:
            chosen[count] = channel
            count += 1
    return count


@_part
def update_page(now: int, page: int, pipeline: Pipeline) -> tuple[int, int]:
    """Update a page on the server. Returns the number of the update and how many `state.chosen`
    channels get a copy: none if no client wants the page, so that the profiler drops the update.
    """
    fixed, state, pools = pipeline.fixed, pipeline.state, pipeline.pools
    pipeline.counts.totals[UPDATES] += 1
    wanted = fixed.begins[page + 1] - fixed.begins[page]
    if wanted == 0:
        return -1, 0
    pipeline.counts.totals[PASSED] += 1
    state.numbers[FREE_UPDATES] -= 1
    update = pools.free[state.numbers[FREE_UPDATES]]
    pools.updated[update], pools.page[update], pools.missing[update] = now, page, wanted
    pools.heard[update] = 0
    pools.copies[update] = count = _map_page(page, pipeline)
    return update, count


@compiled(TIMES, TIMES, INT, INT, PIPELINE, owns=False)
def advance(times: Int64s, pages: Int64s, begin: int, end: int, pipeline: Pipeline) -> int:
    """Process updates from number `begin` on, and after the last one all transmissions before the
    time `end`. Returns the number of the next update: less than all where the pools are full.
    """
    due, chosen = pipeline.state.due, pipeline.state.chosen
    channels = len(due)
    for number in range(begin, len(times) + 1):
        if is_full(pipeline):
            return number
        until = times[number] if number < len(times) else end - 1
        while True:
            first = 0
            for channel in range(1, channels):
                if due[channel] < due[first]:
                    first = channel
            if due[first] > until:
                break
            _hear(first, pipeline)
            finish(first, pipeline)
        if number < len(times):
            update, count = update_page(until, pages[number], pipeline)
            for place in range(count):
                offer(chosen[place], update, until, pipeline)
    for channel in range(channels):
        _pass_time(channel, end, pipeline)
    return len(times) + 1
