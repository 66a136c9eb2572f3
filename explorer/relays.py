"""Peers that have to do with a topic, subscribed or not: those with links for it, and those that
receive or forward its messages. They are its relays while they do not subscribe.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.arrays import Int64s
from vizpub.questions.names import NamedRun


class Activity(NamedTuple):
    """Times in which peers have to do with topics: a row for each, in ticks."""

    topic: Int64s
    peer: Int64s
    begin: Int64s
    end: Int64s


def ends_of_links(links: pa.Table) -> Activity:
    """Both ends of each link that is for a topic, as long as it lasts."""
    of_topic = links.filter(pc.field("topic").is_valid())
    topic, begin, end = (_ints(of_topic, name) for name in ("topic", "valid_from", "valid_to"))
    peer = np.concatenate([_ints(of_topic, name) for name in ("src", "dst")])
    return Activity(np.tile(topic, 2), peer, np.tile(begin, 2), np.tile(end, 2))


def arrivals(run: NamedRun) -> Activity:
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
    return Activity(topic, peer, tick, tick + 1)


def _ints(rows: pa.Table, column: str) -> Int64s:
    values: Int64s = rows[column].to_numpy().astype(np.int64)
    return values
