"""The pipeline, compiled: profiler, mapper, a scheduler for each channel, and clients."""

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
    COUNTS,
    DROP,
    DUPLICATES,
    FIFO,
    FIXED,
    FREE_COPIES,
    FREE_UPDATES,
    INT,
    LWF,
    NEVER,
    NEXT_COPY,
    PASSED,
    POOLS,
    RECEPTIONS,
    RULES,
    STATE,
    TIMES,
    UNREACHED,
    UNWANTED,
    UPDATES,
    Fixed,
    PipelineCounts,
    Pools,
    Rules,
    State,
)

_Part = TypeVar("_Part", bound=Callable[..., Any])


def _part(function: _Part) -> _Part:
    """Compiled within `advance`: compiled on its own, it would take longer to get so many arrays
    than most of these functions run.
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
def _let_go(update: int, pools: Pools, state: State, counts: PipelineCounts) -> None:
    """A copy of an update is on its way no more."""
    pools.copies[update] -= 1
    if pools.copies[update] == 0:
        if pools.missing[update] == 0:
            counts.totals[COMPLETE] += 1
        else:
            counts.totals[UNREACHED] += pools.missing[update]
        pools.free[state.numbers[FREE_UPDATES]] = update
        state.numbers[FREE_UPDATES] += 1


@_part
def _pass_time(channel: int, now: int, state: State, counts: PipelineCounts) -> None:
    """Count the waiting pages up to now."""
    counts.queued[channel] += state.waiting[channel] * (now - state.since[channel])
    state.since[channel] = now


@_part
def _take(channel: int, page: int, state: State, pools: Pools) -> int:
    """Remove the oldest copy of a page; returns its update."""
    copy = state.head[channel, page]
    state.head[channel, page] = pools.after[copy]
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
def _next_page(
    channel: int, now: int, scheduler: int, fixed: Fixed, state: State, pools: Pools
) -> int:
    """The page that the scheduler sends next: by its rule, then by R, then the oldest."""
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
def _least_wanted(channel: int, fixed: Fixed, state: State, pools: Pools) -> int:
    """The waiting page that the fewest clients want; of several the oldest."""
    chosen, least, oldest = -1, 0, 0
    for place in range(state.distinct[channel]):
        page = state.present[channel, place]
        r = fixed.begins[page + 1] - fixed.begins[page]
        number = pools.number[state.head[channel, page]]
        if chosen < 0 or r < least or (r == least and number < oldest):
            chosen, least, oldest = page, r, number
    return chosen


@_part
def _transmit(
    channel: int, update: int, now: int, fixed: Fixed, state: State, pools: Pools
) -> None:
    state.sending[channel] = update
    state.due[channel] = now + fixed.transmission[pools.page[update]]


@_part
def _hear(channel: int, fixed: Fixed, state: State, pools: Pools, counts: PipelineCounts) -> None:
    """All listeners receive what a channel has transmitted."""
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
    counts.sent[channel] += 1
    counts.carried[channel, page] += 1
    counts.busy[channel] += fixed.transmission[page]
    _let_go(update, pools, state, counts)


@_part
def _finish(
    channel: int, scheduler: int, fixed: Fixed, state: State, pools: Pools, counts: PipelineCounts
) -> None:
    """End a transmission, and begin the next."""
    now = state.due[channel]
    _hear(channel, fixed, state, pools, counts)
    page = _next_page(channel, now, scheduler, fixed, state, pools)
    if page < 0:
        state.due[channel] = NEVER
        return
    _pass_time(channel, now, state, counts)
    _transmit(channel, _take(channel, page, state, pools), now, fixed, state, pools)


@_part
def _append(channel: int, update: int, now: int, state: State, pools: Pools) -> None:
    """Put a copy into the queue of its page."""
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
        pools.after[state.tail[channel, page]] = copy
    state.tail[channel, page] = copy
    state.held[channel, page] += 1
    state.entered[channel, page] += now
    state.waiting[channel] += 1


@_part
def _offer(  # noqa: PLR0913, PLR0917
    channel: int,
    update: int,
    now: int,
    rules: Rules,
    fixed: Fixed,
    state: State,
    pools: Pools,
    counts: PipelineCounts,
) -> None:
    """A copy comes to a channel."""
    page = pools.page[update]
    counts.offered[channel] += 1
    if state.due[channel] == NEVER:
        _transmit(channel, update, now, fixed, state, pools)
        return
    if rules.coalesce and state.held[channel, page]:
        copy = state.head[channel, page]
        _let_go(pools.copy_of[copy], pools, state, counts)
        pools.copy_of[copy] = update  # in the place of the older one
        counts.superseded[channel] += 1
        return
    if rules.buffer and state.waiting[channel] >= rules.buffer:
        counts.lost[channel] += 1
        _let_go(update, pools, state, counts)
        return
    _pass_time(channel, now, state, counts)
    _append(channel, update, now, state, pools)
    if rules.scheduler == DROP and state.waiting[channel] > rules.drop_above:
        victim = _take(channel, _least_wanted(channel, fixed, state, pools), state, pools)
        counts.lost[channel] += 1
        _let_go(victim, pools, state, counts)
    counts.longest[channel] = max(counts.longest[channel], state.waiting[channel])


@_part
def _map_page(page: int, mapping: int, fixed: Fixed, state: State) -> int:
    """Number of `state.chosen` channels for an update of a page."""
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
def _update(  # noqa: PLR0913, PLR0917
    now: int,
    page: int,
    rules: Rules,
    fixed: Fixed,
    state: State,
    pools: Pools,
    counts: PipelineCounts,
) -> None:
    """The server updates a page; the profiler lets it through if a client wants it."""
    counts.totals[UPDATES] += 1
    wanted = fixed.begins[page + 1] - fixed.begins[page]
    if wanted == 0:
        return
    counts.totals[PASSED] += 1
    state.numbers[FREE_UPDATES] -= 1
    update = pools.free[state.numbers[FREE_UPDATES]]
    pools.updated[update], pools.page[update], pools.missing[update] = now, page, wanted
    pools.heard[update] = 0
    count = _map_page(page, rules.mapping, fixed, state)
    pools.copies[update] = count
    for place in range(count):
        _offer(state.chosen[place], update, now, rules, fixed, state, pools, counts)


@compiled(TIMES, TIMES, INT, INT, RULES, FIXED, STATE, POOLS, COUNTS, owns=False)
def advance(  # noqa: PLR0913, PLR0917
    times: Int64s,
    pages: Int64s,
    begin: int,
    end: int,
    rules: Rules,
    fixed: Fixed,
    state: State,
    pools: Pools,
    counts: PipelineCounts,
) -> int:
    """Process updates from number `begin` on, and after the last one all transmissions before the
    time `end`. Returns the number of the next update: less than all where the pools are full.
    """
    due, channels = state.due, len(state.due)
    for number in range(begin, len(times) + 1):
        if state.numbers[FREE_UPDATES] < 1 or state.numbers[FREE_COPIES] < channels + 1:
            return number
        until = times[number] if number < len(times) else end - 1
        while True:
            first = 0
            for channel in range(1, channels):
                if due[channel] < due[first]:
                    first = channel
            if due[first] > until:
                break
            _finish(first, rules.scheduler, fixed, state, pools, counts)
        if number < len(times):
            _update(until, pages[number], rules, fixed, state, pools, counts)
    for channel in range(channels):
        _pass_time(channel, end, state, counts)
    return len(times) + 1
