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
from vizpub.analytics.messages.columns import (
    flags,
    ints,
    nullable_column,
    nullable_flags,
    record_batch,
)
from vizpub.analytics.messages.hops import (
    UNKNOWN,
    Arrivals,
    Flags,
    chain_hops,
    flag_earliest,
    parents_of,
)
from vizpub.analytics.messages.message_measures import (
    MaskedValues,
    Publications,
    Receptions,
    count_by_message,
    count_eligible,
    count_hits,
    count_violations,
    delay_measures,
    hop_measures,
    missed_peers,
    ratio,
)
from vizpub.analytics.own import Message, OwnFunction
from vizpub.model.arrays import Int64s
from vizpub.model.columns import Table
from vizpub.model.metrics import METRICS_MESSAGES
from vizpub.model.own import with_own
from vizpub.model.run import AUDIENCE, CAPABILITIES, HOPS, PREVIOUS_HOPS, PUBLICATION_TIMES, TIMES
from vizpub.model.tables import COPY_FLAGS, MISSED, RECEPTIONS

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
        *((flag.name, pa.bool_()) for flag in COPY_FLAGS),
    ]
)
"""Input of the fold. `message` is null in rows that concern all messages. By `kind`:

    SUBSCRIPTION  peer, other (topic), tick (valid_from), time (valid_to)
    SILENCE       peer, interval: it did not report its receptions
    PUBLICATION   peer (publisher), other (topic), interval, tick, time, told (publication_known)
    ARRIVAL       peer, other (previous hop), interval, tick, time, arrival, told (first), hop,
                  subscribed (the peer at that time, if it reports it), and COPY_FLAGS
    REJECTION     the message only

Every message has one publication. Times are time_us.
"""

_CAPABILITY_OF = {
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
    own: tuple[OwnFunction, ...] = ()
    """Own metrics; those of messages are measured."""
    rejections_known: bool = True
    """Arrivals that a peer refused are reported."""
    _reported_columns: set[str] = field(default_factory=set, init=False)
    """Columns of `receptions` that are known in at least one row."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of `tables`, by their keys."""
        interest_and_silence: tuple[Interest, Silence] | None = None
        for rows in _whole_messages(batches, self.at_once):
            interest_and_silence = interest_and_silence or _interest_and_silence(rows)
            publications = _publications(_rows_of_kind(rows, PUBLICATION))
            receptions = self._match_arrivals(
                publications, _rows_of_kind(rows, ARRIVAL), *interest_and_silence
            )
            reception_rows = _reception_rows(publications, receptions)
            if receptions.at.size:
                self._reported_columns.update(
                    _CAPABILITY_OF.get(name, name)
                    for name in reception_rows.schema.names
                    if reception_rows[name].null_count < len(reception_rows)
                )
                if publications.time.known[receptions.at].any():
                    self._reported_columns.add(PUBLICATION_TIMES)
                yield RECEPTIONS.name, reception_rows
            if publications.message.size:
                columns = self._measure(publications, receptions, *interest_and_silence)
                yield from self._missed_rows(
                    publications, receptions, columns, *interest_and_silence
                )
                if self.rejections_known:
                    rejected = ints(_rows_of_kind(rows, REJECTION), "message")
                    columns["rejections"] = count_by_message(
                        publications, np.searchsorted(publications.message, rejected)
                    )
                columns |= self._measure_own(publications, receptions, reception_rows)
                size = columns["message"].values.size
                unknown = MaskedValues(np.zeros(size, np.int64), np.zeros(size, np.bool_))
                values = {name: columns.get(name, unknown) for name in self._metrics.names}
                yield METRICS_MESSAGES.name, record_batch(values, self._metrics.arrow)

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
        return json.dumps(
            sorted(self._reported_columns & {*CAPABILITIES}) if self._reported_columns else None
        )

    def _match_arrivals(
        self, publications: Publications, rows: pa.Table, interest: Interest, silence: Silence
    ) -> Receptions:
        """The arrivals with values that depend on the whole message: first, hop and interest."""
        keys = [ints(rows, name) for name in ("message", "peer", "other", "tick")]
        order = np.lexsort(keys[::-1])
        rows = rows.take(pa.array(order))
        message, peer, previous, tick = (key[order] for key in keys)
        at = np.searchsorted(publications.message, message)
        publisher, topic = publications.publisher[at], publications.topic[at]
        # The first is the earliest that is reported as first; without one, the earliest of all.
        is_first, not_denied = (flags(rows["told"].fill_null(unknown)) for unknown in (False, True))
        rank = np.where(is_first, 0, 1)
        is_earliest = flag_earliest(message, peer, rank, tick, ints(rows, "arrival"))
        # An arrival at the publisher is a duplicate.
        first = not_denied & is_earliest & (peer != publisher)
        arrivals = Arrivals(first, message, peer, previous, publisher, ints(rows, "hop"))
        parent = parents_of(arrivals)
        is_wanted = interest.is_subscribed(topic, peer, publications.tick[at]) & (peer != publisher)
        silent = silence.is_silent(publications.interval[at], peer)
        return Receptions(
            at=at,
            peer=peer,
            previous=previous,
            interval=ints(rows, "interval"),
            tick=tick,
            time=nullable_column(rows, "time"),
            first=first,
            hop=chain_hops(arrivals, parent),
            parent=parent,
            subscribed=self._flag_subscribed(
                nullable_flags(rows["subscribed"]), interest, topic, peer, tick
            ),
            eligible=MaskedValues(is_wanted & ~silent, self._audience_known(publications)[at]),
            passed_over=is_wanted & silent,
            copy_flags={of.name: nullable_flags(rows[of.name]) for of in COPY_FLAGS},
        )

    def _audience_known(self, publications: Publications) -> Flags:
        """Flag messages that are reported and whose subscribers at the publication are known."""
        return self._interest_known(publications.topic) & publications.reported

    def _missed_rows(
        self,
        publications: Publications,
        receptions: Receptions,
        columns: dict[str, MaskedValues],
        interest: Interest,
        silence: Silence,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows of `missed`. Eligible peers are listed only for messages that a peer missed."""
        if MISSED in self.tables:
            eligible, delivered = columns["eligible"], columns["delivered"]
            positions = np.flatnonzero(eligible.known & (eligible.values > delivered.values))
            at, peer = missed_peers(publications, positions, receptions, interest, silence)
            rows = pa.table({"message": publications.message[at], "peer": peer})
            yield from ((MISSED.name, part) for part in rows.cast(MISSED.arrow).to_batches())

    def _flag_subscribed(
        self, reported: MaskedValues, interest: Interest, topic: Int64s, peer: Int64s, tick: Int64s
    ) -> MaskedValues:
        """Subscription of the peer at each arrival: as it reports, else by its subscriptions.

        Unknown if a subscription began or ended in that interval: before or after the arrival?
        """
        is_known = self._interest_known(topic)
        if self.sampled_since is not None:
            is_known &= (tick <= self.sampled_since) | ~interest.is_changing(topic, peer, tick)
        values = np.where(
            reported.known, reported.values, interest.is_subscribed(topic, peer, tick)
        )
        return MaskedValues(values, reported.known | is_known)

    def _interest_known(self, topic: Int64s) -> Flags:
        """Flag messages whose topic is known, if subscriptions are."""
        return (topic >= 0) & self.subscriptions_known

    def _measure(
        self,
        publications: Publications,
        receptions: Receptions,
        interest: Interest,
        silence: Silence,
    ) -> dict[str, MaskedValues]:
        """The columns of metrics/messages but `rejections`, as far as they are known."""
        everywhere = np.ones(publications.message.size, np.bool_)
        columns = {"message": MaskedValues(publications.message, everywhere)}
        audience_known = self._audience_known(publications)
        eligible_counts = count_eligible(publications, interest, silence)
        columns["eligible"] = MaskedValues(eligible_counts, audience_known)
        if not self.receptions_known:
            return columns
        hits = count_hits(publications, receptions)
        columns |= {
            name: MaskedValues(column.values, column.known & audience_known)
            for name, column in hits.items()
        }
        columns["hit_ratio"] = ratio(hits["delivered"].values, eligible_counts, audience_known)
        arrivals = count_by_message(publications, receptions.at)
        firsts = count_by_message(publications, receptions.at[receptions.first]).values
        subscribed = receptions.subscribed
        relayed = count_by_message(
            publications, receptions.at[subscribed.known & ~subscribed.values]
        ).values
        undecided = count_by_message(publications, receptions.at[~subscribed.known]).values
        relays_known = (arrivals.values > 0) | self._interest_known(publications.topic)
        repeated = arrivals.values - firsts
        complete = everywhere & self.duplicates_known
        redundancy = ratio(arrivals.values, firsts, complete)
        return columns | {
            "receptions": MaskedValues(arrivals.values, complete),
            "first_receptions": MaskedValues(firsts, everywhere),
            "duplicates": MaskedValues(repeated, complete),
            "relay_receptions": MaskedValues(relayed, relays_known & (undecided == 0) & complete),
            "redundancy": MaskedValues(redundancy.values - 1, redundancy.known),
            **hop_measures(publications, receptions),
            **delay_measures(publications, receptions),
            "causality_violations": count_violations(publications, receptions),
        }

    def _measure_own(
        self, publications: Publications, receptions: Receptions, reception_rows: pa.RecordBatch
    ) -> dict[str, MaskedValues]:
        """The own metrics of messages; unknown without arrivals in the source."""
        own_functions = [own for own in self.own if own.metric.level == "message"]
        if not own_functions or not self.receptions_known:
            return {}
        rows = pa.Table.from_batches([reception_rows]).drop_columns("message")
        bounds = np.searchsorted(receptions.at, np.arange(publications.message.size + 1))
        messages = [
            Message(
                int(number),
                _index(publications.topic[at]),
                _index(publications.publisher[at]),
                int(publications.interval[at]),
                int(publications.tick[at]),
                int(publications.time.values[at]) if publications.time.known[at] else None,
                rows.slice(bounds[at], bounds[at + 1] - bounds[at]),
            )
            for at, number in enumerate(publications.message)
        ]
        values_by_name = {
            own.metric.name: np.array([own.of_message(message) for message in messages])
            for own in own_functions
        }
        return {
            name: MaskedValues(values, ~np.isnan(values)) for name, values in values_by_name.items()
        }


def _index(value: np.int64) -> int | None:
    return None if value == UNKNOWN else int(value)


def join_capabilities(capabilities: Iterable[Sequence[str] | None]) -> tuple[str, ...] | None:
    """The capabilities that any of several folds found."""
    reported = [one for one in capabilities if one is not None]
    return tuple(sorted({*chain.from_iterable(reported)})) if reported else None


def _whole_messages(batches: Iterable[pa.RecordBatch], at_once: int) -> Iterator[pa.Table]:
    """The rows in parts of whole messages, of about `at_once` rows."""
    pending: list[pa.RecordBatch] = []
    rows, last = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        message = batch["message"].fill_null(UNKNOWN).to_numpy()
        rows += batch.num_rows
        begins = np.flatnonzero(np.diff(message, prepend=message[0] if last is None else last))
        last = message[-1]
        if rows >= at_once and begins.size:
            yield pa.Table.from_batches([*pending, batch.slice(0, begins[-1])])
            pending = [batch.slice(begins[-1])]
            rows = pending[0].num_rows
        else:
            pending.append(batch)
    if pending:
        yield pa.Table.from_batches(pending)


def _interest_and_silence(rows: pa.Table) -> tuple[Interest, Silence]:
    """The subscriptions and silent peers, from the rows without a message."""
    subscriptions, silent = _rows_of_kind(rows, SUBSCRIPTION), _rows_of_kind(rows, SILENCE)
    return (
        Interest(*(ints(subscriptions, name) for name in ("other", "peer", "tick", "time"))),
        Silence(ints(silent, "interval"), ints(silent, "peer")),
    )


def _rows_of_kind(rows: pa.Table, kind: int) -> pa.Table:
    return rows.filter(pc.equal(rows["kind"], kind))


def _publications(rows: pa.Table) -> Publications:
    return Publications(
        message=ints(rows, "message"),
        publisher=ints(rows, "peer"),
        topic=ints(rows, "other"),
        interval=ints(rows, "interval"),
        tick=ints(rows, "tick"),
        time=nullable_column(rows, "time"),
        reported=flags(rows["told"]),
    )


def _reception_rows(publications: Publications, receptions: Receptions) -> pa.RecordBatch:
    """Rows of the table `receptions`."""
    everywhere = np.ones(receptions.at.size, np.bool_)
    columns = {
        "message": MaskedValues(publications.message[receptions.at], everywhere),
        "peer": MaskedValues(receptions.peer, everywhere),
        "previous_hop": MaskedValues(receptions.previous, receptions.previous >= 0),
        "time_us": receptions.time,
        "interval": MaskedValues(receptions.interval, everywhere),
        "tick": MaskedValues(receptions.tick, everywhere),
        "first": MaskedValues(receptions.first, everywhere),
        "hop": MaskedValues(receptions.hop, receptions.hop >= 0),
        "subscribed": receptions.subscribed,
        "eligible": receptions.eligible,
        **receptions.copy_flags,
    }
    return record_batch(columns, RECEPTIONS.arrow)
