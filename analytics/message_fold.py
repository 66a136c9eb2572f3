"""What became of each message, in one pass: first arrivals, hops, interest, deliveries, delays.

Rows of several kinds in, rows of the tables `receptions` and `metrics/messages` out (model.tables);
all by dense indices. Held at once are the subscriptions and some messages with all their arrivals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.hops import UNKNOWN, Arrivals, Flags, chain_hops, earliest, parents_of
from analytics.interest import Interest, Silence
from model.compiled import Floats, Int64s
from model.metrics import METRICS_MESSAGES
from model.tables import RECEPTIONS

SUBSCRIPTION, SILENCE, PUBLICATION, ARRIVAL, REJECTION = range(5)
ROWS = pa.schema(
    [
        ("message", pa.int64()),
        ("kind", pa.int8()),
        ("peer", pa.int32()),
        ("other", pa.int32()),
        ("interval", pa.int32()),
        ("tick", pa.int64()),
        ("time", pa.int64()),
        ("arrival", pa.int64()),
        ("told", pa.bool_()),
        ("hop", pa.int32()),
    ]
)
"""What the fold takes. `message` is null in what concerns all messages. By `kind`:

    SUBSCRIPTION  peer, other (topic), tick (vf), time (vt)
    SILENCE       peer, interval: it left open what it received
    PUBLICATION   peer (publisher), other (topic), interval, tick, time, told (publication_known)
    ARRIVAL       peer, other (previous hop), interval, tick, time, arrival, told (first), hop
    REJECTION     the message alone

Every message has one publication. Times are time_us.
"""

_SHARES = {"delay_us_p50": 0.5, "delay_us_p95": 0.95, "delay_us_p99": 0.99}
_SILENT_AT_ONCE = 1 << 20
"""Pairs of a message and a peer that are held at once."""
_HALF = 31
"""Bits of the lower part of a number that is summed in two."""

Values = npt.NDArray[Any]


class Known(NamedTuple):
    """Values of one length, and which of them are known."""

    values: Values
    known: Flags


class Publications(NamedTuple):
    """A row per message, ascending."""

    message: Int64s
    publisher: Int64s
    topic: Int64s
    interval: Int64s
    tick: Int64s
    time: Known
    told: Flags
    """The publisher reported it."""


class Receptions(NamedTuple):
    """A row per arrival, by message, peer, previous hop and tick."""

    at: Int64s
    """Place of the message among the publications."""
    peer: Int64s
    previous: Int64s
    interval: Int64s
    tick: Int64s
    time: Known
    first: Flags
    hop: Int64s
    parent: Int64s
    """Row of the first reception at the previous hop; -1 where there is none."""
    interested: Known


@dataclass(frozen=True)
class MessageFold:
    """The fold (ingest.sink.Fold). Takes `ROWS` by message, what has none first."""

    receptions_known: bool
    subscriptions_known: bool
    duplicates_known: bool = True
    """All arrivals are told, not the first ones alone."""
    at_once: int = 1 << 18
    """Rows after which no further message is held."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of `receptions`, where they are known, and `metrics/messages`, by their keys."""
        common: tuple[Interest, Silence] | None = None
        for rows in _whole_messages(batches, self.at_once):
            common = common or _common(rows)
            published = _publications(_of(rows, PUBLICATION))
            received = self._judged(published, _of(rows, ARRIVAL), common[0])
            if received.at.size:
                yield RECEPTIONS.name, _reception_rows(published, received)
            if published.message.size:
                refused = _ints(_of(rows, REJECTION), "message")
                columns = self._measured(published, received, *common)
                columns["rejections"] = _counted(
                    published, np.searchsorted(published.message, refused)
                )
                yield METRICS_MESSAGES.name, _message_rows(columns)

    def told(self) -> str:
        """Nothing: all is in the rows."""
        return ""

    def _judged(self, published: Publications, rows: pa.Table, interest: Interest) -> Receptions:
        """The arrivals with what follows from all of a message: first, hop and interest."""
        keys = [_ints(rows, name) for name in ("message", "peer", "other", "tick")]
        order = np.lexsort(keys[::-1])
        rows = rows.take(pa.array(order))
        message, peer, previous, tick = (key[order] for key in keys)
        at = np.searchsorted(published.message, message)
        publisher, topic = published.publisher[at], published.topic[at]
        # What comes back to its publisher is a copy of what it had.
        first = _firsts(rows, message, peer, tick) & (peer != publisher)
        arrivals = Arrivals(first, message, peer, previous, publisher, _ints(rows, "hop"))
        parent = parents_of(arrivals)
        return Receptions(
            at=at,
            peer=peer,
            previous=previous,
            interval=_ints(rows, "interval"),
            tick=tick,
            time=_known(rows, "time"),
            first=first,
            hop=chain_hops(arrivals, parent),
            parent=parent,
            interested=Known(interest.of(topic, peer, tick), self._interest_known(topic)),
        )

    def _interest_known(self, topic: Int64s) -> Flags:
        """Somebody told of subscriptions and of the message's topic."""
        return (topic >= 0) & self.subscriptions_known

    def _measured(
        self, published: Publications, received: Receptions, interest: Interest, silence: Silence
    ) -> dict[str, Known]:
        """The columns of metrics/messages but `rejections`, as far as they are known."""
        everywhere = np.ones(published.message.size, np.bool_)
        columns = {"message": Known(published.message, everywhere)}
        # When nobody told of the publication, who subscribed at its time is not known.
        told = self._interest_known(published.topic) & published.told
        eligible = _eligible(published, interest, silence)
        columns["eligible"] = Known(eligible, told)
        if not self.receptions_known:
            return columns
        hits = _hits(published, received, interest, silence)
        columns |= {name: Known(counts, told) for name, counts in hits.items()}
        columns["hit_ratio"] = _ratio(hits["delivered"], eligible, told)
        every = _counted(published, received.at)
        firsts = _counted(published, received.at[received.first]).values
        outside = received.at[received.interested.known & ~received.interested.values]
        relayed = _counted(published, outside).values
        repeated = every.values - firsts
        all_told = everywhere & self.duplicates_known
        redundancy = _ratio(every.values, firsts, all_told)
        return columns | {
            "receptions": every,
            "first_receptions": Known(firsts, everywhere),
            "duplicates": Known(repeated, all_told),
            "relay_receptions": Known(relayed, self._interest_known(published.topic)),
            "redundancy": Known(redundancy.values - 1, redundancy.known),
            **_hops(published, received),
            **_delays(published, received),
            "causality_violations": _violations(published, received),
        }


def _whole_messages(batches: Iterable[pa.RecordBatch], at_once: int) -> Iterator[pa.Table]:
    """The rows in parts that cut no message, of `at_once` rows or what one message has."""
    held: list[pa.RecordBatch] = []
    rows, last = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        message = batch["message"].fill_null(UNKNOWN).to_numpy()
        rows += batch.num_rows
        begins = np.flatnonzero(np.diff(message, prepend=message[0] if last is None else last))
        last = message[-1]
        if rows >= at_once and begins.size:
            yield pa.Table.from_batches([*held, batch.slice(0, begins[-1])])
            held = [batch.slice(begins[-1])]
            rows = held[0].num_rows
        else:
            held.append(batch)
    if held:
        yield pa.Table.from_batches(held)


def _common(rows: pa.Table) -> tuple[Interest, Silence]:
    """What concerns all messages, from the rows before them."""
    taken, silent = _of(rows, SUBSCRIPTION), _of(rows, SILENCE)
    return (
        Interest(*(_ints(taken, name) for name in ("other", "peer", "tick", "time"))),
        Silence(_ints(silent, "interval"), _ints(silent, "peer")),
    )


def _of(rows: pa.Table, kind: int) -> pa.Table:
    return rows.filter(pc.equal(rows["kind"], kind))


def _ints(rows: pa.Table, name: str) -> Int64s:
    """A column as int64; null becomes -1."""
    values: Int64s = rows[name].cast(pa.int64()).fill_null(UNKNOWN).to_numpy()
    return values


def _flags(values: pa.ChunkedArray) -> Flags:
    flags: Flags = values.to_numpy()
    return flags


def _known(rows: pa.Table, name: str) -> Known:
    """A column that may hold any number."""
    return Known(rows[name].fill_null(0).to_numpy(), _flags(rows[name].is_valid()))


def _publications(rows: pa.Table) -> Publications:
    return Publications(
        message=_ints(rows, "message"),
        publisher=_ints(rows, "peer"),
        topic=_ints(rows, "other"),
        interval=_ints(rows, "interval"),
        tick=_ints(rows, "tick"),
        time=_known(rows, "time"),
        told=_flags(rows["told"]),
    )


def _firsts(rows: pa.Table, message: Int64s, peer: Int64s, tick: Int64s) -> Flags:
    """Who is told to be first is, the earliest of them; where nobody is, the earliest of all."""
    told, not_denied = (_flags(rows["told"].fill_null(unsaid)) for unsaid in (False, True))
    by_word = np.where(told, 0, 1)
    return not_denied & earliest(message, peer, by_word, tick, _ints(rows, "arrival"))


def _reception_rows(published: Publications, received: Receptions) -> pa.RecordBatch:
    """Rows of the table `receptions`."""
    everywhere = np.ones(received.at.size, np.bool_)
    columns = {
        "message": Known(published.message[received.at], everywhere),
        "peer": Known(received.peer, everywhere),
        "previous_hop": Known(received.previous, received.previous >= 0),
        "time_us": received.time,
        "interval": Known(received.interval, everywhere),
        "tick": Known(received.tick, everywhere),
        "first": Known(received.first, everywhere),
        "hop": Known(received.hop, received.hop >= 0),
        "interested": received.interested,
    }
    return _record_batch(columns, RECEPTIONS.arrow)


def _message_rows(columns: dict[str, Known]) -> pa.RecordBatch:
    """Rows of metrics/messages; a column that is not there is unknown."""
    size = columns["message"].values.size
    unknown = Known(np.zeros(size, np.int64), np.zeros(size, np.bool_))
    return _record_batch(
        {name: columns.get(name, unknown) for name in METRICS_MESSAGES.names},
        METRICS_MESSAGES.arrow,
    )


def _record_batch(columns: dict[str, Known], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        pa.array(columns[field.name].values, mask=~columns[field.name].known) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _counted(published: Publications, places: Int64s) -> Known:
    """How often each message is there; 0 is known, too."""
    counts = np.bincount(places, minlength=published.message.size)
    return Known(counts, np.ones(counts.size, np.bool_))


def _ratio(above: Int64s, below: Int64s, known: Flags) -> Known:
    """Unknown where it is of nothing, too."""
    known = known & (below > 0)
    return Known(np.divide(above, below, out=np.zeros(below.size), where=known), known)


def _eligible(published: Publications, interest: Interest, silence: Silence) -> Int64s:
    """How many peers subscribed (and so were present) at the publication's tick, without the
    publisher and whoever left open what it received then.
    """
    topic, tick = published.topic, published.tick
    found = interest.count(topic, tick) - interest.of(topic, published.publisher, tick)
    for at, peer in silence.in_each(published.interval, _SILENT_AT_ONCE):
        counts = interest.of(topic[at], peer, tick[at]) & (peer != published.publisher[at])
        found -= np.bincount(at[counts], minlength=found.size)
    return found


def _hits(
    published: Publications, received: Receptions, interest: Interest, silence: Silence
) -> dict[str, Int64s]:
    """Per message: delivered, delivered_in_interval, late_deliveries."""
    at, peer = received.at[received.first], received.peer[received.first]
    interval = published.interval[at]
    eligible = interest.of(published.topic[at], peer, published.tick[at])
    eligible &= ~silence.of(interval, peer)  # no first reception is at the publisher
    at_once = eligible & (received.interval[received.first] == interval)
    late = ~eligible & received.interested.values[received.first]
    counted = {"delivered": eligible, "delivered_in_interval": at_once, "late_deliveries": late}
    return {name: _counted(published, at[chosen]).values for name, chosen in counted.items()}


def _hops(published: Publications, received: Receptions) -> dict[str, Known]:
    chosen = received.first & (received.hop >= 0)
    at, hop = received.at[chosen], received.hop[chosen]
    counts = _counted(published, at).values
    total = np.bincount(at, hop, counts.size).astype(np.int64)
    largest = np.zeros(counts.size, np.int64)
    np.maximum.at(largest, at, hop)
    some = counts > 0
    return {"hops_mean": _ratio(total, counts, some), "hops_max": Known(largest, some)}


def _delays(published: Publications, received: Receptions) -> dict[str, Known]:
    """Of first receptions, in µs; the mean is unknown where the sum leaves 64 bits."""
    (time, known), sent = received.time, published.time
    published_us = sent.values[received.at]
    delay = time - published_us
    fits = ((time ^ published_us) & (time ^ delay)) >= 0
    chosen = received.first & known & sent.known[received.at] & fits
    at, delay = received.at[chosen], delay[chosen]
    order = np.lexsort((delay, at))
    at, delay = at[order], delay[order]
    counts = _counted(published, at).values
    some, ends = counts > 0, np.cumsum(counts)
    found = {
        name: Known(_percentile(delay, ends - counts, counts, share), some)
        for name, share in _SHARES.items()
    }
    largest = np.zeros(counts.size)
    largest[some] = delay[ends[some] - 1]
    total = exact_sums(delay, at, counts.size)
    mean = _ratio(total.values, counts, total.known)
    return found | {"delay_us_mean": mean, "delay_us_max": Known(largest, some)}


def _percentile(ordered: Int64s, begins: Int64s, counts: Int64s, share: float) -> Floats:
    """Of each group of ascending values, between the two that are next to it; 0 of none."""
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
    """Sum of each group of integers; unknown where it leaves 64 bits. Of at most 2³¹ values."""
    high, low = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(high, at, values >> _HALF)
    np.add.at(low, at, values & ((1 << _HALF) - 1))
    high += low >> _HALF
    low &= (1 << _HALF) - 1
    fits = (high >= -(1 << 32)) & (high < 1 << 32)
    return Known(high << _HALF | low, fits)


def _violations(published: Publications, received: Receptions) -> Known:
    """Arrivals before the publication, or before the first one at their previous hop; unknown
    where no times are.
    """
    time, known = received.time
    causes = (
        Known(published.time.values[received.at], published.time.known[received.at]),
        Known(time[received.parent], known[received.parent] & (received.parent >= 0)),
    )
    before = np.zeros(time.size, np.bool_)
    for cause in causes:
        before |= known & cause.known & (time < cause.values)
    timed = _counted(published, received.at[known]).values > 0
    return Known(_counted(published, received.at[before]).values, timed)
