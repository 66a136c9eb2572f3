"""How many eligible peers a message could have reached: links lead to them from its publication on.

Messages pass links in either direction, as the protocol decides who sends; they wait at a peer for
any time, and a hop takes none. Links of other topics do not count. This is reachability along
time-respecting paths (Holme and Saramäki, Physics Reports 519 (2012) 97-125).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.arrays import Bools, Int64s
from vizpub.model.clock import OPEN
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import AUDIENCE
from vizpub.questions.names import NamedRun, Where, values_of
from vizpub.questions.sql import answer

NO_LENGTH = "the length of its intervals is unknown: leave out --within"
_NO_TOPIC = -1
_LINK = ("src", "dst", "topic", "valid_from", "valid_to")
_MESSAGE = ("message", "interval", "topic", "eligible", "publisher", "tick")
# Eligible peers with the tick at which they had the message: OPEN if they missed it.
_AUDIENCES = f"""
WITH audience AS (
    SELECT message, peer, tick AS arrived FROM stored."receptions" WHERE first AND eligible
    UNION ALL SELECT message, peer, {OPEN} FROM stored."missed"
)
SELECT {", ".join(_MESSAGE)}, peer, arrived
FROM stored."publications" JOIN stored."metrics/messages" USING (message)
    LEFT JOIN audience USING (message)
WHERE interval BETWEEN $first AND $last AND ($topic IS NULL OR topic = $topic)
    AND ($peer IS NULL OR publisher = $peer)
ORDER BY message
"""
_COUNTS = ("eligible", "delivered", "reachable", "reachable_missed", "unreachable_delivered")
_SCHEMA = pa.schema(
    [
        *(("message", pa.int64()), ("interval", pa.int32()), ("topic", pa.int32())),
        *((name, pa.int64()) for name in _COUNTS),
    ]
)
BY = ("message", "peer")
"""What the counts can be of."""


def count_reachable(
    run: NamedRun,
    where: Where,
    within_us: int | None = None,
    layers: Sequence[str] | None = None,
    by: str = "message",
) -> pa.Table:
    """message, interval and topic of its publication, eligible, and of the eligible peers:
    delivered, those that had it; reachable, those to which links of the layers (null = those that
    metrics count) led from the publisher, at its publication or later; reachable_missed, those of
    these that did not have it; unreachable_delivered, those that had it although no links led to
    them. By 'peer': peer, and the same of the messages for which it was eligible.

    All of them `within_us` of the publication; null = until the end of the run. The counts of a
    message are null where the eligible peers or the publisher are unknown.

    Raises: UnknownName, UseError where the run's source does not report links or eligible peers,
    or the length of its intervals.
    """
    if by not in BY:
        raise UnknownName("column to count by", by, BY)
    run.facts.check_known("receptions", "missed", "links", AUDIENCE)
    within = None if within_us is None else _ticks_of(run, within_us)
    counted = run.counted_layers(layers)
    names = pa.array(counted or (), pa.string())
    of_layers = None if counted is None else pc.field("layer").isin(names)
    links = _Links.of(run.stored.read("links", list(_LINK), of_layers), run.stored.rows("peers"))
    rows, of_peers = [], np.zeros((len(_COUNTS), links.peers), np.int64)
    for about, peers, arrived in _audiences(run, where):
        row = dict(zip(_MESSAGE, about, strict=True))
        if row["eligible"] is not None and row["publisher"] is not None:
            end = OPEN - 1 if within is None else min(row["tick"] + within, OPEN - 1)
            can = links.during(row["topic"], row["tick"], end).reach(row, peers)
            had = arrived <= end
            flags = np.array([had | True, had, can, can & ~had, had & ~can])
            row |= dict(zip(_COUNTS, flags.sum(axis=1).tolist(), strict=True))
            of_peers[:, peers] += flags
        rows.append(row)
    if by == "message":
        return run.with_names(pa.Table.from_pylist(rows, _SCHEMA))
    numbers = np.flatnonzero(of_peers[0])
    columns = dict(zip(_COUNTS, of_peers[:, numbers], strict=True))
    return run.with_names(pa.table({"peer": pa.array(numbers, pa.int32()), **columns}))


def _ticks_of(run: NamedRun, within_us: int) -> int:
    """Raises: UseError."""
    if run.clock.tick_us is None:
        raise UseError(f"run '{run.facts.name}': {NO_LENGTH}")
    return within_us // run.clock.tick_us


def _audiences(run: NamedRun, where: Where) -> Iterator[tuple[tuple[Any, ...], Int64s, Int64s]]:
    """Yield each message, by _MESSAGE, with its eligible peers and the ticks of their arrivals."""
    with answer(run.stored, _AUDIENCES, values_of(run, where)) as batches:
        columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
        rows = (row for of_batch in columns for row in zip(*of_batch, strict=True))
        for about, group in groupby(rows, key=lambda row: row[: len(_MESSAGE)]):
            pairs = [row[len(_MESSAGE) :] for row in group if row[-1] is not None]
            peers, arrived = np.array(pairs, np.int64).reshape(-1, 2).T
            yield about, peers, arrived


@dataclass(frozen=True)
class _Links:
    """Links in both directions, between so many peers."""

    peers: int
    src: Int64s
    dst: Int64s
    topic: Int64s
    valid_from: Int64s
    valid_to: Int64s

    @classmethod
    def of(cls, rows: pa.Table, peers: int) -> _Links:
        """The links of a table."""
        src, dst, *others = (pc.fill_null(rows[name], _NO_TOPIC).to_numpy() for name in _LINK)
        return cls(peers, np.r_[src, dst], np.r_[dst, src], *(np.tile(of, 2) for of in others))

    def during(self, topic: int | None, tick: int, end: int) -> _Links:
        """Those of a topic (null = of any), or of none, from a tick to another, inclusive."""
        chosen = (self.valid_to > tick) & (self.valid_from <= end)
        if topic is not None:
            chosen &= (self.topic == _NO_TOPIC) | (self.topic == topic)
        ends = np.minimum(self.valid_to, end + 1)
        columns = self.src, self.dst, self.topic, self.valid_from, ends
        return _Links(self.peers, *(of[chosen] for of in columns))

    def reach(self, message: Mapping[str, Any], wanted: Int64s) -> Bools:
        """Flag the `wanted` peers to which these links lead from the publisher of a message, from
        its tick on.

        Rounds of Bellman and Ford over the earliest arrivals, as many as there are hops.
        """
        arrival = np.full(self.peers, OPEN)
        arrival[message["publisher"]] = message["tick"]
        while (arrival[wanted] == OPEN).any():
            departure = np.maximum(arrival[self.src], self.valid_from)
            is_earlier = (departure < self.valid_to) & (departure < arrival[self.dst])
            if not is_earlier.any():
                break
            np.minimum.at(arrival, self.dst[is_earlier], departure[is_earlier])
        reached: Bools = arrival[wanted] < OPEN
        return reached
