"""Runs the pipeline: from a layout and its updates to what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vizpub.model.arrays import Bools, Floats, Int64s, Words
from vizpub.simulators.channels.covers import RULES
from vizpub.simulators.channels.layout import ChannelLayout, PageUpdates
from vizpub.simulators.channels.pipeline import advance
from vizpub.simulators.channels.state import (
    BINS,
    COMPLETE,
    DROP,
    FIFO,
    FREE_COPIES,
    FREE_UPDATES,
    LWF,
    NEVER,
    PASSED,
    RXW,
    TOTALS,
    FixedArrays,
    Pipeline,
    PipelineCounts,
    PipelineState,
    Pools,
    Rules,
)

_SCHEDULERS = {"fifo": FIFO, "rxw": RXW, "lwf": LWF, "drop": DROP}
_BEGIN = 1024
"""Updates and copies on their way for which there is room at first."""


@dataclass(frozen=True, eq=False)
class ChannelMeasurement:
    """What came of a run. Times are µs; what divides by nothing is null."""

    layout: ChannelLayout
    duration: int
    counts: PipelineCounts
    backlog: int
    """Copies on their way at the end."""
    overdue: int
    """Updates that some client had not heard at the end, those on their way among them."""

    @cached_property
    def totals(self) -> dict[str, int]:
        """Numbers by name: `updates`, those that `passed` the profiler, those `complete` (heard by
        all that want them), `unreached` (clients times updates that are lost to them), `duplicates`
        (wanted, but heard before), `receptions`, and `unwanted` ones.
        """
        return dict(zip(TOTALS, self.counts.totals.tolist(), strict=True))

    @property
    def sdfr(self) -> float | None:
        """Updates that some client has not heard, per second (SDFR)."""
        return _ratio(self.overdue * 1e6, self.duration)

    @property
    def gdfr(self) -> float | None:
        """Copies that channels get less those they send, per second, over all channels (GDFR).
        Those that newer updates replaced did not stay; those that are lost count as not sent.
        """
        counts = self.counts
        late = counts.offered.sum() - counts.sent.sum() - counts.superseded.sum()
        return _ratio(float(late) * 1e6, self.duration)

    @property
    def flow_rate(self) -> float | None:
        """Updates that pass the profiler, per second."""
        return _ratio(self.totals["passed"] * 1e6, self.duration)

    @property
    def fluff(self) -> float | None:
        """Share of receptions that the client did not want."""
        return _ratio(self.totals["unwanted"], self.totals["receptions"])

    @property
    def complete_share(self) -> float | None:
        """Share of the passed updates that all clients heard that want them."""
        return _ratio(self.totals["complete"], self.totals["passed"])

    @property
    def staleness(self) -> Floats:
        """Average staleness of each client's first receptions, NaN where it heard nothing."""
        heard = self.counts.heard.astype(float)
        averages: Floats = np.divide(
            self.counts.stale, heard, out=np.full(len(heard), np.nan), where=heard > 0
        )
        return averages

    @property
    def global_staleness(self) -> float | None:
        """The mean of the clients' averages."""
        averages = self.staleness[~np.isnan(self.staleness)]
        return float(averages.mean()) if len(averages) else None

    @property
    def weighted_staleness(self) -> float | None:
        """The mean over all first receptions: clients that hear more weigh more."""
        return _ratio(float(self.counts.stale.sum()), float(self.counts.heard.sum()))

    def quantile(self, share: float) -> float | None:
        """Of the staleness of first receptions, at most 1.6 % off."""
        return _quantile(self.counts.bins.sum(axis=0), share)

    def client_quantiles(self, share: float) -> list[float | None]:
        """The same of each client, of a run that kept its clients `apart`."""
        return [_quantile(bins, share) for bins in self.counts.bins]

    @property
    def queue(self) -> Floats:
        """Pages that wait in each channel on average, without the one that is transmitted."""
        waiting: Floats = self.counts.queued / self.duration
        return waiting

    @property
    def load(self) -> Floats:
        """Share of the time in which each channel transmits."""
        share: Floats = self.counts.busy / self.duration
        return share


def _ratio(part: float, of: float) -> float | None:
    return part / of if of else None


def _quantile(bins: Int64s, share: float) -> float | None:
    """Of what `bin_of` counted."""
    if not bins.any():
        return None
    place = int(np.searchsorted(np.cumsum(bins), share * bins.sum()))
    digits = max(0, place // 64 - 1)
    return float(((place - 64 * digits) + 0.5) * 2**digits if digits else place)


def run(
    layout: ChannelLayout,
    updates: PageUpdates,
    end: int | None = None,
    begin: int = 0,
    *,
    apart: bool = False,
) -> ChannelMeasurement:
    """Run the updates from `begin` to before `end` (µs); null = to the last update. With `apart`,
    there are quantiles of each client, which take up to 32 KB.
    """
    stop = int(updates.times[-1]) + 1 if end is None else end
    pipeline, number = new_pipeline(layout, begin, apart=apart), 0
    while True:
        number = advance(updates.times, updates.pages, number, stop, pipeline)
        if number > len(updates.times):
            break
        pipeline = grow_pools(pipeline)
    state, pools, counts = pipeline.state, pipeline.pools, pipeline.counts
    used = np.ones(len(pools.free), dtype=bool)
    used[pools.free[: state.numbers[FREE_UPDATES]]] = False
    overdue = int((pools.missing[used] > 0).sum())
    passed, complete = int(counts.totals[PASSED]), int(counts.totals[COMPLETE])
    overdue = passed - complete - int(used.sum()) + overdue
    backlog = int(state.waiting.sum() + (state.due < NEVER).sum())
    return ChannelMeasurement(layout, stop - begin, counts, backlog, overdue)


def new_pipeline(layout: ChannelLayout, begin: int = 0, *, apart: bool = False) -> Pipeline:
    """A pipeline at the time `begin`, with room for the first updates; `apart` as in `run`."""
    fixed, none = _fixed_arrays(layout), np.zeros(0, np.int64)
    heard = np.zeros((0, fixed.wants.shape[1]), np.uint64)
    pools = Pools(none, none, none, none, heard, none, none, none, none, none, none)
    return grow_pools(
        Pipeline(_rules(layout), fixed, _state(layout, begin), pools, _counts(layout, apart))
    )


def bits(flags: Bools) -> Words:
    """Rows of flags as bits of words: flag 0 is the lowest bit of the first word."""
    padded = np.zeros((len(flags), -(-flags.shape[1] // 64) * 64), dtype=bool)
    padded[:, : flags.shape[1]] = flags
    packed = np.packbits(padded, axis=1, bitorder="little")
    return np.ascontiguousarray(packed.view("<u8").astype(np.uint64))


def _rules(layout: ChannelLayout) -> Rules:
    parameters = layout.parameters
    mapping = -1 if parameters.is_static else RULES[parameters.mapping]
    scheduler = _SCHEDULERS[parameters.scheduler]
    return Rules(mapping, scheduler, parameters.buffer, parameters.drop_above, parameters.coalesce)


def _fixed_arrays(layout: ChannelLayout) -> FixedArrays:
    pages, clients = np.nonzero(layout.wants.T)
    begins = np.searchsorted(pages, np.arange(layout.database.pages + 1)).astype(np.int64)
    static = layout.static_mapping
    return FixedArrays(
        bits(layout.wants.T),
        bits(layout.listens.T),
        clients.astype(np.int64),
        begins,
        layout.channels_of,
        layout.reach,
        layout.listens.sum(axis=0).astype(np.int64),
        layout.transmission,
        np.zeros((0, 0), dtype=bool) if static is None else static,
    )


def _state(layout: ChannelLayout, begin: int) -> PipelineState:
    channels, pages = layout.parameters.channels, layout.database.pages

    def each() -> Int64s:
        return np.zeros((channels, pages), np.int64)

    return PipelineState(
        due=np.full(channels, NEVER),
        sending=np.zeros(channels, np.int64),
        waiting=np.zeros(channels, np.int64),
        present=each(),
        distinct=np.zeros(channels, np.int64),
        place=each(),
        head=each(),
        tail=each(),
        held=each(),
        entered=each(),
        since=np.full(channels, begin),
        busy=np.zeros(channels, np.int64),
        chosen=np.zeros(channels, np.int64),
        draws=layout.draws(),
        numbers=np.zeros(3, np.int64),
    )


def _counts(layout: ChannelLayout, apart: bool) -> PipelineCounts:
    channels, clients = layout.parameters.channels, layout.clients

    def zeros(*shape: int) -> Int64s:
        return np.zeros(shape, np.int64)

    return PipelineCounts(
        totals=zeros(len(TOTALS)),
        offered=zeros(channels),
        sent=zeros(channels),
        superseded=zeros(channels),
        lost=zeros(channels),
        queued=zeros(channels),
        longest=zeros(channels),
        busy=zeros(channels),
        carried=zeros(channels, layout.database.pages),
        heard=zeros(clients),
        stale=zeros(clients),
        bins=zeros(clients if apart else 1, BINS),
    )


def grow_pools(pipeline: Pipeline) -> Pipeline:
    """Double the room for what has hardly any, or make the first room."""
    pools, numbers = pipeline.pools, pipeline.state.numbers
    channels, updates, copies = len(pipeline.state.due), len(pools.updated), len(pools.copy_of)
    more = max(updates, _BEGIN) if numbers[FREE_UPDATES] < 1 else 0
    pools = pools._replace(
        updated=_longer(pools.updated, more),
        page=_longer(pools.page, more),
        missing=_longer(pools.missing, more),
        copies=_longer(pools.copies, more),
        heard=np.concatenate([pools.heard, np.zeros((more, pools.heard.shape[1]), np.uint64)]),
        free=_extend_free(pools.free, more, numbers, FREE_UPDATES),
    )
    more = max(copies, _BEGIN, 2 * channels) if numbers[FREE_COPIES] < channels + 1 else 0
    return pipeline._replace(
        pools=pools._replace(
            copy_of=_longer(pools.copy_of, more),
            arrived=_longer(pools.arrived, more),
            number=_longer(pools.number, more),
            following=_longer(pools.following, more),
            spare=_extend_free(pools.spare, more, numbers, FREE_COPIES),
        )
    )


def _longer(old: Int64s, more: int) -> Int64s:
    return np.concatenate([old, np.zeros(more, np.int64)])


def _extend_free(old: Int64s, more: int, numbers: Int64s, place: int) -> Int64s:
    """The free ones, with the new ones among them."""
    free = _longer(old, more)
    begin = numbers[place]
    free[begin : begin + more] = np.arange(len(old), len(old) + more)
    numbers[place] += more
    return free
