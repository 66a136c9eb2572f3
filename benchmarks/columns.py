"""The reports of benchmarks.reports as columns: Parquet, with most names as numbers."""

from __future__ import annotations

import json
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dissemination import FANOUT, INTERVAL_US, messages, subscriptions
from benchmarks.overlay import Step, history
from benchmarks.reports import CONTROL_BYTES, FILE_INTERVALS, HEADER, MESSAGE_BYTES
from benchmarks.sizes import Size
from vizpub.model.arrays import Int64s


class Trees(NamedTuple):
    """A row per message, a column per place in its tree: the publisher, then the receivers."""

    peer: Int64s
    hop: Int64s
    time_us: Int64s
    topic: Int64s
    """The message's topic."""


def write_columns(size: Size, folder: Path) -> None:
    """A file of reports for each `FILE_INTERVALS` intervals, with the run header beside them."""
    beside = {"vizpub.run": json.dumps(HEADER.to_json())}
    trees = _trees(size)
    edges = np.arange(size.intervals + 1) * INTERVAL_US
    of_interval = pairwise(np.searchsorted(trees.time_us[:, 0], edges))
    told = zip(history(size), of_interval, strict=True)
    topics = _lists(subscriptions(size).topic, np.full(size.peers, size.subscriptions))
    for first in range(0, size.intervals, FILE_INTERVALS):
        parts = [
            _reports(step, topics, np.arange(*stretch), trees)
            for step, stretch in islice(told, FILE_INTERVALS)
        ]
        rows = pa.concat_tables(parts).replace_schema_metadata(beside)
        pq.write_table(rows, folder / f"from-{first:05}.parquet")


def _trees(size: Size) -> Trees:
    published, arrivals = messages(size)
    peer, hop, time_us = (
        np.column_stack([root, column.reshape(size.messages, size.receivers)])
        for root, column in (
            (published.publisher, arrivals.peer),
            (np.zeros(size.messages, np.int64), arrivals.hop),
            (published.time_us, arrivals.time_us),
        )
    )
    return Trees(peer, hop, time_us, published.topic)


def _reports(step: Step, topics: pa.Array, chosen: Int64s, trees: Trees) -> pa.Table:
    """A row per peer; `chosen` are the messages of the interval."""
    peers, links = step.targets.shape
    out = np.full(peers, links)
    into = np.bincount(step.targets.ravel(), minlength=peers)
    return pa.table(
        {
            "peer": np.arange(peers, dtype=np.int32),
            "interval": np.full(peers, step.interval, np.int32),
            "neighbors": _lists(step.targets.ravel(), out),
            "topics": topics,
            "control": _struct({"sent": _control(out), "received": _control(into)}),
            "sent": _sent(peers, chosen, trees),
            "received": _received(peers, chosen, trees),
        }
    )


def _control(count: Int64s) -> pa.Array:
    return _struct({"messages": count, "bytes": CONTROL_BYTES * count})


def _sent(peers: int, chosen: Int64s, trees: Trees) -> pa.Array:
    """What each peer sent of those messages, and to whom."""
    receivers = trees.peer.shape[1] - 1
    senders = -(-receivers // FANOUT)
    sizes = np.full(senders, FANOUT)
    sizes[-1] = receivers - FANOUT * (senders - 1)
    to = _lists(trees.peer[chosen, 1:].ravel(), np.tile(sizes, chosen.size))
    return _by_peer(peers, chosen, np.arange(senders), trees, {"to": to})


def _received(peers: int, chosen: Int64s, trees: Trees) -> pa.Array:
    """What each peer received of those messages, and from which peer."""
    places = np.arange(1, trees.peer.shape[1])
    before = trees.peer[chosen[:, None], (places - 1) // FANOUT].ravel()
    return _by_peer(peers, chosen, places, trees, {"from": pa.array(before)})


def _by_peer(
    peers: int, chosen: Int64s, places: Int64s, trees: Trees, more: dict[str, pa.Array]
) -> pa.Array:
    """Lists of entries, for those places in those messages' trees; `more` has further columns."""
    there = chosen[:, None], places
    peer = trees.peer[there].ravel()
    message = np.repeat(chosen, places.size)
    entries = _struct(
        {
            "message": np.char.zfill(message.astype(str), 6),
            "topic": trees.topic[message],
            "publisher": trees.peer[message, 0],
            **more,
            "hops": trees.hop[there].ravel(),
            "time_us": trees.time_us[there].ravel(),
            "bytes": np.full(message.size, MESSAGE_BYTES),
        }
    )
    order = pa.array(np.argsort(peer, kind="stable"))
    return _lists(entries.take(order), np.bincount(peer, minlength=peers))


def _struct(columns: dict[str, Any]) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(c) for c in columns.values()], list(columns))


def _lists(values: Any, counts: Int64s) -> pa.Array:
    """Lists of the values, with those lengths."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
