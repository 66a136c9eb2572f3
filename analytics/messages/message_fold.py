"""The dissemination of each message, in one pass: arrivals, hops, interest, deliveries, delays.

Rows of several kinds in, rows of the tables `receptions`, `missed` and `metrics/messages` out
(vizpub.model.tables); all by dense indices. Memory holds the subscriptions, and some messages with
all their arrivals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.interest import Interest, Silence
from vizpub.analytics.messages.hops import (
    UNKNOWN,
    Arrivals,
    Flags,
    chain_hops,
    earliest,
    parents_of,
)
from vizpub.analytics.messages.message_measures import (
    Known,
    Publications,
    Receptions,
    counted,
    delays,
    eligible,
    hits,
    hops,
    missed,
    ratio,
    violations,
)
from vizpub.analytics.own import Message, Own
from vizpub.model.arrays import Int64s
from vizpub.model.columns import Table
from vizpub.model.metrics import METRICS_MESSAGES
from vizpub.model.own import with_own
from vizpub.model.run import AUDIENCE, CAPABILITIES, HOPS, PREVIOUS_HOPS, PUBLICATION_TIMES, TIMES
from vizpub.model.tables import MISSED, RECEPTIONS

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
        ("subscribed", pa.bool_()),
    ]
)
"""Input of the fold. `message` is null in rows that concern all messages. By `kind`:

    SUBSCRIPTION  peer, other (topic), tick (valid_from), time (valid_to)
    SILENCE       peer, interval: it did not report its receptions
    PUBLICATION   peer (publisher), other (topic), interval, tick, time, told (publication_known)
    ARRIVAL       peer, other (previous hop), interval, tick, time, arrival, told (first), hop,
                  subscribed (the peer at that time, if it reports it)
    REJECTION     the message only

Every message has one publication. Times are time_us.
"""

_TOLD_BY = {
    "previous_hop": PREVIOUS_HOPS,
    "hop": HOPS,
    "time_us": TIMES,
    "eligible": AUDIENCE,
}
"""The column of `receptions` that each of vizpub.model.run.CAPABILITIES depends on."""


@dataclass(frozen=True)
class MessageFold:
    """A fold (vizpub.ingest.tasks.sink.Fold) of `ROWS` by message, those without one first."""

    receptions_known: bool
    subscriptions_known: bool
    duplicates_known: bool = True
    """All arrivals are reported, not only the first ones."""
    at_once: int = 1 << 18
    """Number of rows after which messages in memory are written."""
    sampled_since: int | None = None
    """The run's first tick if ticks are intervals and subscriptions are the state at their ends;
    null if subscriptions have times of their own.
    """
    own: tuple[Own, ...] = ()
    """Own metrics; those of messages are measured."""
    rejections_known: bool = True
    """Arrivals that a peer refused are reported."""
    _told: set[str] = field(default_factory=set, init=False)
    """Columns of `receptions` that are known in at least one row."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of `tables`, by their keys."""
        common: tuple[Interest, Silence] | None = None
        for rows in _whole_messages(batches, self.at_once):
            common = common or _common(rows)
            published = _publications(_of(rows, PUBLICATION))
            received = self._judged(published, _of(rows, ARRIVAL), *common)
            arrived = _reception_rows(published, received)
            if received.at.size:
                self._told.update(
                    _TOLD_BY.get(name, name)
                    for name in arrived.schema.names
                    if arrived[name].null_count < len(arrived)
                )
                if published.time.known[received.at].any():
                    self._told.add(PUBLICATION_TIMES)
                yield RECEPTIONS.name, arrived
            if published.message.size:
                columns = self._measured(published, received, *common)
                yield from self._missed(published, received, columns, *common)
                if self.rejections_known:
                    refused = _ints(_of(rows, REJECTION), "message")
                    columns["rejections"] = counted(
                        published, np.searchsorted(published.message, refused)
                    )
                columns |= self._measured_by_own(published, received, arrived)
                yield METRICS_MESSAGES.name, _message_rows(columns, self._metrics)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that it makes."""
        if not self.receptions_known:
            return (self._metrics,)
        audience = (MISSED,) if self.subscriptions_known else ()
        return (RECEPTIONS, *audience, self._metrics)

    @property
    def _metrics(self) -> Table:
        return with_own(METRICS_MESSAGES, (own.metric for own in self.own))

    def summary(self) -> str:
        """The vizpub.model.run.CAPABILITIES that some arrival has, as JSON; null without
        arrivals."""
        return json.dumps(sorted(self._told & {*CAPABILITIES}) if self._told else None)

    def _judged(
        self, published: Publications, rows: pa.Table, interest: Interest, silence: Silence
    ) -> Receptions:
        """The arrivals with values that depend on the whole message: first, hop and interest."""
        keys = [_ints(rows, name) for name in ("message", "peer", "other", "tick")]
        order = np.lexsort(keys[::-1])
        rows = rows.take(pa.array(order))
        message, peer, previous, tick = (key[order] for key in keys)
        at = np.searchsorted(published.message, message)
        publisher, topic = published.publisher[at], published.topic[at]
        # An arrival at the publisher is a duplicate.
        first = _firsts(rows, message, peer, tick) & (peer != publisher)
        arrivals = Arrivals(first, message, peer, previous, publisher, _ints(rows, "hop"))
        parent = parents_of(arrivals)
        asked = interest.of(topic, peer, published.tick[at]) & (peer != publisher)
        silent = silence.of(published.interval[at], peer)
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
            subscribed=self._interested(_told(rows["subscribed"]), interest, topic, peer, tick),
            eligible=Known(asked & ~silent, self._audience_known(published)[at]),
            passed_over=asked & silent,
        )

    def _audience_known(self, published: Publications) -> Flags:
        """Whether the subscribers at the publication are known; not if it was not reported."""
        return self._interest_known(published.topic) & published.reported

    def _missed(
        self,
        published: Publications,
        received: Receptions,
        columns: dict[str, Known],
        interest: Interest,
        silence: Silence,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of `missed`. Eligible peers are listed only for messages that a peer missed."""
        if MISSED in self.tables:
            asked, delivered = columns["eligible"], columns["delivered"]
            some = np.flatnonzero(asked.known & (asked.values > delivered.values))
            at, peer = missed(published, some, received, interest, silence)
            rows = pa.table({"message": published.message[at], "peer": peer})
            yield from ((MISSED.name, part) for part in rows.cast(MISSED.arrow).to_batches())

    def _interested(
        self, reported: Known, interest: Interest, topic: Int64s, peer: Int64s, tick: Int64s
    ) -> Known:
        """Whether the peer subscribed at each arrival: as it reports, else by its subscriptions.

        Unknown if a subscription began or ended in that interval: before or after the arrival?
        """
        known = self._interest_known(topic)
        if self.sampled_since is not None:
            known &= (tick <= self.sampled_since) | ~interest.turned(topic, peer, tick)
        values = np.where(reported.known, reported.values, interest.of(topic, peer, tick))
        return Known(values, reported.known | known)

    def _interest_known(self, topic: Int64s) -> Flags:
        """Whether subscriptions and the message's topic are known."""
        return (topic >= 0) & self.subscriptions_known

    def _measured(
        self, published: Publications, received: Receptions, interest: Interest, silence: Silence
    ) -> dict[str, Known]:
        """The columns of metrics/messages but `rejections`, as far as they are known."""
        everywhere = np.ones(published.message.size, np.bool_)
        columns = {"message": Known(published.message, everywhere)}
        asked_known = self._audience_known(published)
        asked = eligible(published, interest, silence)
        columns["eligible"] = Known(asked, asked_known)
        if not self.receptions_known:
            return columns
        reached = hits(published, received)
        columns |= {
            name: Known(found.values, found.known & asked_known) for name, found in reached.items()
        }
        columns["hit_ratio"] = ratio(reached["delivered"].values, asked, asked_known)
        every = counted(published, received.at)
        firsts = counted(published, received.at[received.first]).values
        subscribed = received.subscribed
        relayed = counted(published, received.at[subscribed.known & ~subscribed.values]).values
        unclear = counted(published, received.at[~subscribed.known]).values
        relays_known = (every.values > 0) | self._interest_known(published.topic)
        repeated = every.values - firsts
        all_told = everywhere & self.duplicates_known
        redundancy = ratio(every.values, firsts, all_told)
        return columns | {
            "receptions": Known(every.values, all_told),
            "first_receptions": Known(firsts, everywhere),
            "duplicates": Known(repeated, all_told),
            "relay_receptions": Known(relayed, relays_known & (unclear == 0) & all_told),
            "redundancy": Known(redundancy.values - 1, redundancy.known),
            **hops(published, received),
            **delays(published, received),
            "causality_violations": violations(published, received),
        }

    def _measured_by_own(
        self, published: Publications, received: Receptions, arrived: pa.RecordBatch
    ) -> dict[str, Known]:
        """The own metrics of messages; unknown without arrivals in the source."""
        chosen = [own for own in self.own if own.metric.level == "message"]
        if not chosen or not self.receptions_known:
            return {}
        rows = pa.Table.from_batches([arrived]).drop_columns("message")
        bounds = np.searchsorted(received.at, np.arange(published.message.size + 1))
        messages = [
            Message(
                int(number),
                _index(published.topic[at]),
                _index(published.publisher[at]),
                int(published.interval[at]),
                int(published.tick[at]),
                int(published.time.values[at]) if published.time.known[at] else None,
                rows.slice(bounds[at], bounds[at + 1] - bounds[at]),
            )
            for at, number in enumerate(published.message)
        ]
        found = {
            own.metric.name: np.array([own.of_message(message) for message in messages])
            for own in chosen
        }
        return {name: Known(values, ~np.isnan(values)) for name, values in found.items()}


def _index(value: np.int64) -> int | None:
    return None if value == UNKNOWN else int(value)


def together(found: Iterable[Sequence[str] | None]) -> tuple[str, ...] | None:
    """The capabilities that any of several folds found."""
    known = [one for one in found if one is not None]
    return tuple(sorted({*chain.from_iterable(known)})) if known else None


def _whole_messages(batches: Iterable[pa.RecordBatch], at_once: int) -> Iterator[pa.Table]:
    """The rows in parts of whole messages, of about `at_once` rows."""
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
    """The subscriptions and silent peers, from the rows without a message."""
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


def _told(values: pa.ChunkedArray) -> Known:
    """Flags, some of which may be null."""
    return Known(_flags(values.fill_null(False)), _flags(values.is_valid()))


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
        reported=_flags(rows["told"]),
    )


def _firsts(rows: pa.Table, message: Int64s, peer: Int64s, tick: Int64s) -> Flags:
    """The earliest arrival that is reported as first; without one, the earliest of all."""
    first, not_denied = (_flags(rows["told"].fill_null(unknown)) for unknown in (False, True))
    by_word = np.where(first, 0, 1)
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
        "subscribed": received.subscribed,
        "eligible": received.eligible,
    }
    return _record_batch(columns, RECEPTIONS.arrow)


def _message_rows(columns: dict[str, Known], meant: Table) -> pa.RecordBatch:
    """Rows of metrics/messages; a missing column is unknown."""
    size = columns["message"].values.size
    unknown = Known(np.zeros(size, np.int64), np.zeros(size, np.bool_))
    return _record_batch({name: columns.get(name, unknown) for name in meant.names}, meant.arrow)


def _record_batch(columns: dict[str, Known], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        pa.array(columns[field.name].values, mask=~columns[field.name].known) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
