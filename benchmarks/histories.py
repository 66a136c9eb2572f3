"""Runs of one overlay over histories of different lengths, as tables of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from benchmarks.dissemination import INTERVAL_US, messages
from benchmarks.overlay import history
from benchmarks.sizes import Size
from vizpub.analytics.interest import Interest
from vizpub.analytics.messages.hops import first_and_second, pairs
from vizpub.graphstore.load.reading import rows_since
from vizpub.model.arrays import Int64s
from vizpub.model.clock import OPEN, Clock
from vizpub.model.run import Boundary, RunFacts
from vizpub.model.tables import COPY_FLAGS, table

LENGTHS = (200, 1_000, 5_000)
"""Intervals of the runs."""
SIZE = Size("history", peers=50, intervals=0, links=8, topics=20)
"""All runs have the same number of peers, of links at a time, and of topics."""
_VISITORS = 50
"""Additional peers that come and go, and have no links."""
_PUBLISHING = 125
"""Every run has as many messages as are published in so many intervals."""
LAYER = "overlay"
"""Share of all links."""
_STAYS, _SUBSCRIPTIONS = 3, 4
"""Streams of the seed; see benchmarks.overlay and benchmarks.dissemination."""
_ROWS = 100_000


@dataclass(frozen=True)
class LongRun:
    """A run of that many intervals. One in twenty links is replaced from one interval to the next;
    a peer's subscriptions change every 50 intervals on average, and visitors stay for 20."""

    intervals: int
    like: Size = SIZE

    @property
    def facts(self) -> RunFacts:
        """The facts of the run."""
        clock = Clock(1, INTERVAL_US, 0, self.intervals - 1)
        return RunFacts(f"history-{self.intervals}", "synthetic", clock)

    def row_groups(self, name: str) -> Iterable[tuple[str, pa.RecordBatch]]:
        """A table, batch by batch."""
        if name not in self._rows:
            return []
        schema = table(name).arrow
        columns = [self._rows[name].column(c).cast(schema.field(c).type) for c in schema.names]
        batches = pa.table(columns, schema=schema).to_batches(_ROWS)
        return [(f"{name}-{i}", batch) for i, batch in enumerate(batches)]

    def rows_from(self, name: str, column: str, least: int) -> Iterable[pa.RecordBatch]:
        """Those whose `column` is `least` or more."""
        return rows_since(self.row_groups(name), column, least)

    def rows(self, name: str) -> int:
        """How many rows a table has."""
        return len(self._rows[name]) if name in self._rows else 0

    def boundary_since(self, tables: str) -> Boundary | None:
        """It was never anything else."""
        del tables
        return None

    def is_current(self) -> bool:
        """Always."""
        return True

    @property
    def size(self) -> Size:
        """Its dimensions."""
        return replace(self.like, intervals=self.intervals)

    def sample(self, kind: str, place: float) -> str:
        """The name of a permanent peer, a topic or a message, at a share of all."""
        counts = {
            "peer": self.like.peers,
            "topic": self.like.topics,
            "message": replace(self.like, intervals=_PUBLISHING).messages,
        }
        return f"{kind} {round(place * counts[kind])}"

    @cached_property
    def _rows(self) -> dict[str, pa.Table]:
        published, received = self._messages()
        subscriptions = self._subscriptions()
        received, missed = _judge_arrivals(published, received, subscriptions)
        return {
            "peers": _named_table("peer", self.like.peers + _VISITORS, is_reporter=True),
            "topics": _named_table("topic", self.like.topics),
            "presence": self._presence(),
            "subscriptions": subscriptions,
            "links": self._links(),
            "publications": published,
            "receptions": received,
            "missed": missed,
        }

    def _links(self) -> pa.Table:
        lives = pa.concat_tables(step.ended for step in history(self.size)).combine_chunks()
        unknown = pa.nulls(lives.num_rows, pa.int32())
        layers = pa.repeat(pa.scalar(LAYER), lives.num_rows)
        return lives.append_column("layer", layers).append_column("topic", unknown)

    def _presence(self) -> pa.Table:
        always = np.arange(self.like.peers)
        visitor, valid_from, valid_to = self._spells(_STAYS, _VISITORS, 20, 20)
        return pa.table(
            {
                "peer": np.concatenate((always, self.like.peers + visitor)),
                "valid_from": np.concatenate((np.zeros_like(always), valid_from)),
                "valid_to": np.concatenate((np.full_like(always, OPEN), valid_to)),
            }
        )

    def _subscriptions(self) -> pa.Table:
        pair, valid_from, valid_to = self._spells(
            _SUBSCRIPTIONS, self.like.peers * self.like.topics, 50, 150
        )
        peer, topic = np.divmod(pair, self.like.topics)
        return pa.table(
            {"peer": peer, "topic": topic, "valid_from": valid_from, "valid_to": valid_to}
        )

    def _spells(self, stream: int, things: int, on: int, off: int) -> tuple[Int64s, Int64s, Int64s]:
        """thing, valid_from, valid_to of things that come and go, for that long on average."""
        rng = np.random.default_rng([self.like.seed, stream])
        turns = 4 + 2 * self.intervals // (on + off)
        shape = (things, turns)
        spans, gaps = rng.geometric(1 / on, shape), rng.geometric(1 / off, shape)
        valid_to = np.cumsum(spans + gaps, axis=1) - rng.integers(off, size=(things, 1))
        valid_from = valid_to - spans
        thing = np.broadcast_to(np.arange(things)[:, None], shape)
        inside = (valid_to > 0) & (valid_from < self.intervals)
        return (
            thing[inside],
            valid_from[inside].clip(0),
            np.where(valid_to < self.intervals, valid_to, OPEN)[inside],
        )

    def _messages(self) -> tuple[pa.Table, pa.Table]:
        published, received = messages(replace(self.like, intervals=_PUBLISHING))
        slower = self.intervals / _PUBLISHING
        time_us = (published.time_us * slower).astype(np.int64)
        interval = time_us // INTERVAL_US
        message = np.arange(time_us.size)
        rows = pa.table(
            {
                "message": message,
                "name": pa.array([f"message {m}" for m in message]),
                "topic": published.topic,
                "publisher": published.publisher,
                "interval": interval,
                "time_us": time_us,
                "tick": interval,
                "publication_known": np.ones(message.size, bool),
                "bytes": pa.nulls(message.size, pa.int64()),
            }
        )
        of = received.message
        arrivals = pa.table(
            {
                "message": of,
                "peer": received.peer,
                "previous_hop": received.previous,
                "time_us": time_us[of] + received.time_us - published.time_us[of],
                "interval": interval[of],
                "tick": interval[of],
                "first": np.ones(of.size, bool),
                "hop": received.hop,
                "subscribed": received.peer % 2 == 0,
            }
        )
        return rows, arrivals


def _judge_arrivals(
    published: pa.Table, received: pa.Table, subscriptions: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """The arrivals with the eligible peers, and the peers that missed a message; messages are
    numbered by place."""
    topic, publisher, tick = (published[name].to_numpy() for name in ("topic", "publisher", "tick"))
    of, peer = received["message"].to_numpy(), received["peer"].to_numpy()
    names = ("topic", "peer", "valid_from", "valid_to")
    interest = Interest(*(subscriptions[name].to_numpy() for name in names))
    eligible = interest.is_subscribed(topic[of], peer, tick[of]) & (peer != publisher[of])
    reached = pairs(of, peer)
    both = np.concatenate([pairs(*part) for part in interest.subscribers(topic, tick, 1 << 20)])
    message, peer = first_and_second(both[~np.isin(both, reached)])
    is_other = peer != publisher[message]
    missed = pa.table({"message": message[is_other], "peer": peer[is_other]})
    received = received.append_column("eligible", pa.array(eligible))
    for flag in COPY_FLAGS:
        received = received.append_column(flag.name, pa.nulls(len(received), pa.bool_()))
    return received, missed


def _named_table(name: str, count: int, **more: object) -> pa.Table:
    keys = pa.array([f"{name} {id}" for id in range(count)])
    constants = {column: pa.array([value] * count) for column, value in more.items()}
    return pa.table({name: np.arange(count), "name": keys, **constants})
