"""A run's overlay through time as arrays: peers, subscribers, and pairs with a link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.explorer.periods import (
    MOST_RANKS,
    RankedPeriods,
    TooManyTimes,
    common,
    distinct,
    extend_periods,
    intersect,
    join_periods,
    ranks,
    subtract,
    unite,
)
from vizpub.model.arrays import Int32s, Int64s
from vizpub.model.clock import Clock
from vizpub.model.errors import OutOfRange
from vizpub.questions.names import NamedRun
from vizpub.runstore.manifest import Since

_COLUMNS = {
    "presence": ["peer"],
    "links": ["src", "dst", "layer", "topic"],
    "subscriptions": ["peer", "topic"],
}
"""The columns that are read of each table, beside the period."""
_PERIOD = ["valid_from", "valid_to"]
Periods = tuple[Int64s, Int32s, Int32s]
"""Keys, begins and ends in ranks, in any order."""
MOST_PAIRS = 1_000_000
"""Validity periods of pairs that a page draws; of more, it draws none, and leads to parts."""


class Pairs(NamedTuple):
    """Validity periods of distinct links from peer to peer; a row for each."""

    src: Int32s
    dst: Int32s
    begin: Int32s
    end: Int32s


class _Activity(NamedTuple):
    """Times in which peers have links for topics, or receive or forward their messages: a row for
    each, in ticks. Peers are relays of the topics while they do not subscribe.
    """

    topic: Int64s
    peer: Int64s
    begin: Int64s
    end: Int64s


@dataclass(frozen=True)
class OverlayPart:
    """The part of an overlay to show: null layers = those that the metrics count."""

    layers: tuple[str, ...] | None = None
    topics: tuple[int, ...] = ()
    """No topics = the whole overlay."""
    every: bool = False
    """With several topics: subscribers of all of them, not of any."""
    relays: bool = False
    """With topics: also the peers that relay them."""


@dataclass(frozen=True, repr=False)
class _RunInWindow(NamedRun):
    window: Clock

    @property
    def clock(self) -> Clock:
        return self.window


def clip_run(run: NamedRun, window: tuple[int, int] | None) -> NamedRun:
    """The run as if it had only the intervals from a first to a last one; null = all.

    Raises: OutOfRange where it has none of them.
    """
    if window is None:
        return run
    first, last = run.clock.clip(*window)
    if first > last:
        raise OutOfRange("window", "{} to {}".format(*window), run.clock.describe_range())
    return _RunInWindow(run.stored, replace(run.clock, first=first, last=last))


class History:
    """The arrays of one run; each table is read once."""

    def __init__(self, run: NamedRun) -> None:
        self.run = run
        # Now: once a run has grown, its older files may be gone.
        self.peer_names: list[str] = run.peers
        self.topic_names: list[str] = run.topics if run.stored.has("topics") else []
        self._pairs_of_layers: dict[tuple[str, ...] | None, RankedPeriods] = {}
        self.overlays: dict[OverlayPart, dict[str, npt.NDArray[Any]]] = {}
        """The answer of `overlay` for the part that was asked for last."""

    @cached_property
    def size(self) -> int:
        """Number of peers of the run."""
        return self.run.stored.rows("peers")

    @cached_property
    def times(self) -> Int64s:
        """The ticks at which something or an interval begins or ends. A rank is a place among them.

        Raises: TooManyTimes.
        """
        times = self._find_times(self._presence, self._links, self._subscriptions)
        if times.size >= MOST_RANKS:
            raise TooManyTimes(
                f"the run changes at {times.size:,} times, the page shows {MOST_RANKS - 1:,} at "
                f"most: vizpub explore {self.run.facts.name} --from TIME --to TIME"
            )
        return times

    def overlay(self, chosen: OverlayPart) -> dict[str, npt.NDArray[Any]]:
        """`times` (ticks), and the periods of peers and pairs, in ranks among them.

        With relays, also those of subscribers; without pairs where links are unknown. In the place
        of too many pairs, `left_out` has their number, how many can be drawn, and how many
        intervals would leave no more of them, wherever these begin (0 = not even one).

        Raises: as `peers`.
        """
        arrays = self.overlays.get(chosen)  # once: another thread may replace it
        if arrays is None:
            arrays = {"times": self.times.astype(np.float64)}
            arrays |= _columns("peer", self.peers(chosen))
            if chosen.topics and chosen.relays:
                arrays |= _columns("subscriber", self.peers(replace(chosen, relays=False)))
            if self.run.stored.has("links"):
                src, dst, begin, end = self.pairs(chosen)
                if src.size > MOST_PAIRS:
                    numbers = [src.size, MOST_PAIRS, self._drawable_intervals(begin, end)]
                    arrays["left_out"] = np.array(numbers, np.uint32)
                else:
                    arrays |= {"src": src, "dst": dst, "pair_begin": begin, "pair_end": end}
            self.overlays = {chosen: arrays}
        return arrays

    def _drawable_intervals(self, begin: Int32s, end: Int32s) -> int:
        clock, begins, ends = self.run.clock, np.sort(begin), np.sort(end)
        ticks = np.arange(clock.first, clock.last + 2, dtype=np.int64) * clock.ticks_per_interval
        at = ranks(self.times, ticks)
        begun, ended = np.searchsorted(begins, at), np.searchsorted(ends, at, side="right")
        length = clock.intervals
        while length and (begun[length:] - ended[:-length]).max() > MOST_PAIRS:
            length //= 2
        return length

    def peers(self, chosen: OverlayPart) -> RankedPeriods:
        """Presence of peers; with topics, their subscriptions, and when peers relay them. Raises:
        UnknownName, UseError.
        """
        return self._members_of(chosen) if chosen.topics else self._present

    def pairs(self, chosen: OverlayPart) -> Pairs:
        """The union over the layers of the links from peer to peer; with topics, while both ends
        subscribe to (or relay) one of them (or all). A link of a peer to itself is none.

        Raises: as `peers`.
        """
        pairs = self._of_layers(self.run.counted_layers(chosen.layers))
        if chosen.topics and chosen.every:
            pairs = self._within(pairs, self._members_of(chosen))
        elif chosen.topics:
            members = (self._members(topic, chosen) for topic in chosen.topics)
            pairs = unite([self._within(pairs, of_topic) for of_topic in members])
        return Pairs(
            (pairs.key // self.size).astype(np.int32),
            (pairs.key % self.size).astype(np.int32),
            pairs.begin,
            pairs.end,
        )

    @cached_property
    def subscriptions(self) -> RankedPeriods:
        """When peers subscribe to topics; a key is topic × size + peer. Raises: UseError."""
        self.run.facts.check_known("subscriptions")
        return join_periods(*self._subscription_rows(self._subscriptions))

    def _subscription_rows(self, rows: pa.Table) -> Periods:
        return self._ranked(_ints(rows, "topic") * self.size + _ints(rows, "peer"), rows)

    @cached_property
    def relays(self) -> RankedPeriods:
        """When peers relay topics; a key is as in `subscriptions`. They do not subscribe but have a
        link for the topic, or received or forwarded a message of it in the interval.

        Raises: UseError.
        """
        topic, peer, *period = _ends_of_links(self._links)
        ends = (ranks(self.times, ticks) for ticks in period)
        parts = [join_periods(topic * self.size + peer, *ends)]
        if self.run.stored.has("receptions"):
            parts.append(self._intervals_of_arrivals())
        without = subtract(unite(parts), self.subscriptions)
        _, relays = common(without, self._present, without.key % self.size)
        return relays

    @cached_property
    def knows_relays(self) -> bool:
        """True if links or receptions say which peers relay topics."""
        return self._knows_relays_by(self.run.stored.read_unordered("links", ["topic"]))

    def _knows_relays_by(self, links: pa.Table) -> bool:
        facts, topics = self.run.facts, links["topic"]
        has_links = topics.null_count < len(topics)
        return facts.knows("subscriptions") and (has_links or facts.knows("receptions"))

    def _intervals_of_arrivals(self) -> RankedPeriods:
        """The intervals in which peers received or forwarded messages without a subscription."""
        clock, all_arrivals = self.run.clock, _arrivals(self.run)
        key = all_arrivals.topic * self.size + all_arrivals.peer
        rank = (np.searchsorted(self.times, all_arrivals.begin, side="right") - 1).astype(np.int32)
        at_tick = RankedPeriods(key, rank, rank + 1)
        subscribed, _ = common(at_tick, self.subscriptions, key)
        interval = all_arrivals.begin // clock.ticks_per_interval
        is_relayed = (interval >= clock.first) & (interval <= clock.last)
        is_relayed[subscribed] = False
        start = interval[is_relayed] * clock.ticks_per_interval
        begin, end = (ranks(self.times, at) for at in (start, start + clock.ticks_per_interval))
        return join_periods(key[is_relayed], begin, end)

    @cached_property
    def layers(self) -> list[str]:
        """The layers of the links; those of the metrics first."""
        return self._sort_layers(self.run.stored.read_unordered("links", ["layer"]))

    def _sort_layers(self, links: pa.Table) -> list[str]:
        first = self.run.facts.layers or ()
        return sorted(pc.unique(links["layer"]).to_pylist(), key=lambda n: (n not in first, n))

    def _of_layers(self, layers: Sequence[str] | None) -> RankedPeriods:
        if (key := None if layers is None else tuple(layers)) not in self._pairs_of_layers:
            pairs = join_periods(*self._pair_rows(self._links, layers))
            self._pairs_of_layers = {key: pairs}
        return self._pairs_of_layers[key]

    def _pair_rows(self, links: pa.Table, layers: Sequence[str] | None) -> Periods:
        if layers is not None:
            links = links.filter(pc.is_in(links["layer"], pa.array(layers, pa.string())))
        links = links.filter(pc.not_equal(links["src"], links["dst"]))
        return self._ranked(_ints(links, "src") * self.size + _ints(links, "dst"), links)

    def _ranked(self, key: Int64s, rows: pa.Table) -> Periods:
        """The periods of rows in ranks."""
        begin, end = (ranks(self.times, _ints(rows, name)) for name in _PERIOD)
        return key, begin, end

    def _within(self, pairs: RankedPeriods, subscribed: RankedPeriods) -> RankedPeriods:
        """The parts in which both ends subscribe."""
        _, pairs = common(pairs, subscribed, pairs.key // self.size)
        _, pairs = common(pairs, subscribed, pairs.key % self.size)
        return pairs

    def _members_of(self, chosen: OverlayPart) -> RankedPeriods:
        of_each = [self._members(topic, chosen) for topic in chosen.topics]
        return intersect(of_each) if chosen.every else unite(of_each)

    def _members(self, topic: int, chosen: OverlayPart) -> RankedPeriods:
        """When peers subscribe to a topic, or relay it if relays are chosen."""
        subscribers = self._of_topic(self.subscriptions, topic)
        if not chosen.relays:
            return subscribers
        return unite([subscribers, self._of_topic(self.relays, topic)])

    def _of_topic(self, periods: RankedPeriods, topic: int) -> RankedPeriods:
        keys = [topic * self.size, (topic + 1) * self.size]
        first, last = np.searchsorted(periods.key, keys)
        rows = slice(first, last)
        return RankedPeriods(periods.key[rows] % self.size, periods.begin[rows], periods.end[rows])

    @cached_property
    def _present(self) -> RankedPeriods:
        self.run.facts.check_known("presence")
        return join_periods(*self._ranked(_ints(self._presence, "peer"), self._presence))

    @cached_property
    def _presence(self) -> pa.Table:
        return self._read("presence")

    @cached_property
    def _links(self) -> pa.Table:
        return self._read("links")

    @cached_property
    def _subscriptions(self) -> pa.Table:
        return self._read("subscriptions")

    def _read(self, table: str, since: Since | None = None) -> pa.Table:
        """The rows that hold at some time of the run, or of its window."""
        clock, where = self.run.clock, None
        if clock != self.run.facts.clock:
            first, last = clock.first * clock.ticks_per_interval, clock.sampling_tick(clock.last)
            where = (pc.field("valid_from") <= last) & (pc.field("valid_to") > first)
        return self.run.stored.read_unordered(table, [*_COLUMNS[table], *_PERIOD], where, since)

    def _find_times(self, *tables: pa.Table) -> Int64s:
        """The ticks at which rows, or intervals, begin and end."""
        clock = self.run.clock
        starts = np.arange(clock.first, clock.last + 2, dtype=np.int64) * clock.ticks_per_interval
        return distinct(starts, *(_ints(rows, name) for rows in tables for name in _PERIOD))

    def grow_from(self, older: History) -> None:
        """Take over what `older`, of the same run before it has grown, was asked for: only the rows
        that changed since are read. Nothing is taken over where it is unknown which these are.
        """
        boundary = self.run.stored.boundary_since(older.run.facts.tables)
        known = vars(older)
        if (
            boundary is None
            or "times" not in known
            or older.run.clock.first != self.run.clock.first
        ):
            return
        tick = boundary.period
        rank = int(np.searchsorted(older.times, tick))
        changed_rows = (self._read(name, Since("valid_to", tick)) for name in _COLUMNS)
        presence, links, subscriptions = changed_rows
        recent = self._find_times(presence, links, subscriptions)
        times = np.concatenate([older.times[:rank], recent[recent >= tick]])
        if times.size >= MOST_RANKS:
            return
        self.times = times

        def extend(periods: RankedPeriods, changed: Periods) -> RankedPeriods:
            key = periods.key // older.size * self.size + periods.key % older.size
            return extend_periods(replace(periods, key=key), rank, changed)

        if "layers" in known:
            both = {"layer": [*older.layers, *links["layer"].to_pylist()]}
            self.layers = self._sort_layers(pa.table(both))
        if "knows_relays" in known:
            self.knows_relays = older.knows_relays or self._knows_relays_by(links)
        if "_present" in known:
            changed = self._ranked(_ints(presence, "peer"), presence)
            self._present = extend_periods(older._present, rank, changed)
        if "subscriptions" in known:
            self.subscriptions = extend(older.subscriptions, self._subscription_rows(subscriptions))
        self._pairs_of_layers = {
            layers: extend(pairs, self._pair_rows(links, layers))
            for layers, pairs in older._pairs_of_layers.items()
        }


def _ends_of_links(links: pa.Table) -> _Activity:
    """Both ends of each link that is for a topic, as long as it lasts."""
    of_topic = links.filter(pc.field("topic").is_valid())
    topic, begin, end = (_ints(of_topic, name) for name in ("topic", "valid_from", "valid_to"))
    peer = np.concatenate([_ints(of_topic, name) for name in ("src", "dst")])
    return _Activity(np.tile(topic, 2), peer, np.tile(begin, 2), np.tile(end, 2))


def _arrivals(run: NamedRun) -> _Activity:
    """The receiver and the previous hop of each copy of a message, at the tick of the arrival. Left
    out are its publisher, and receivers of which it is unknown whether they subscribed then.
    """
    columns = ["message", "peer", "previous_hop", "tick", "subscribed"]
    rows = run.stored.read_unordered("receptions", columns)
    published = run.stored.read("publications", ["message", "topic", "publisher"])
    rows = rows.join(published, "message", join_type="inner").filter(pc.field("topic").is_valid())
    parts = []
    for end in ("peer", "previous_hop"):
        publishes = pc.fill_null(pc.equal(rows[end], rows["publisher"]), False)
        part = rows.filter(pc.and_(pc.is_valid(rows[end]), pc.invert(publishes)))
        if end == "peer":
            part = part.filter(pc.field("subscribed").is_valid())
        parts.append(part.select([end, "topic", "tick"]).rename_columns(["peer", "topic", "tick"]))
    distinct = pa.concat_tables(parts).group_by(["peer", "topic", "tick"]).aggregate([])
    peer, topic, tick = (_ints(distinct, name) for name in ("peer", "topic", "tick"))
    return _Activity(topic, peer, tick, tick + 1)


def _ints(rows: pa.Table, column: str) -> Int64s:
    values: Int64s = rows[column].to_numpy().astype(np.int64)
    return values


def _columns(name: str, periods: RankedPeriods) -> dict[str, npt.NDArray[Any]]:
    key = periods.key.astype(np.int32)
    return {name: key, f"{name}_begin": periods.begin, f"{name}_end": periods.end}
