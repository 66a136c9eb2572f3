"""Bounds of the offset of each peer's clock, from the messages that peers passed on.

A message does not arrive before its sender had it. If it had it at `a` by its own clock, and the
message arrived at `b` by that of the receiver, then the receiver's clock is ahead by at most b - a.
Such bounds add up along chains of peers: the least upper bound is a shortest path from the
reference, the greatest lower bound one to it (as for difference constraints: Cormen et al.,
Introduction to Algorithms, 22.4). Where clocks did not run alike, bounds may contradict each other.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from vizpub.model.arrays import Floats, Int64s
from vizpub.model.run import PREVIOUS_HOPS, TIMES
from vizpub.questions.names import NamedRun, Where, values_of
from vizpub.questions.sql import read_answer

# For two peers, the least time from when the first had a message until it arrived at the second.
_HOPS = """
WITH chosen AS (
    FROM stored."publications"
    WHERE interval BETWEEN $first AND $last AND ($topic IS NULL OR topic = $topic)
), had AS (
    SELECT message, peer, time_us FROM stored."receptions" WHERE first
    UNION ALL
    SELECT message, publisher, time_us FROM chosen WHERE publication_known
)
SELECT had.peer AS src, r.peer AS dst, min(r.time_us::HUGEINT - had.time_us)::DOUBLE AS least
FROM stored."receptions" r SEMI JOIN chosen USING (message)
    JOIN had ON had.message = r.message AND had.peer = r.previous_hop
WHERE src <> dst GROUP BY ALL HAVING least IS NOT NULL ORDER BY ALL
"""


def bound_offsets(run: NamedRun, where: Where, reference: str | None = None) -> pa.Table:
    """peer, reference, offset_us_min, offset_us_max, contradictory: the time in µs by which a
    peer's clock is ahead of that of the reference, at least and at most. A bound is null if no
    chain of messages leads from one to the other; both are if they contradict each other.

    Without a `reference`, it is the peer that exchanged messages with most others. `where` selects
    messages by topic and interval of publication, and rows by peer.

    Raises: UnknownName, UseError where the run's source does not report times and previous hops.
    """
    run.facts.check_known("receptions", TIMES, PREVIOUS_HOPS)
    values = values_of(run, where)
    peer = values.pop("peer")
    hops = read_answer(run.stored, _HOPS, **values)
    src, dst, least = (hops[name].to_numpy() for name in ("src", "dst", "least"))
    count = run.stored.rows("peers")
    others = np.bincount(np.r_[src, dst], minlength=count)
    start = int(others.argmax()) if reference is None else run.peer_index(reference)
    highest = _shortest_paths(src, dst, least, start, count)
    lowest = -_shortest_paths(dst, src, least, start, count)
    is_contradictory = (highest == -np.inf) | (lowest == np.inf)
    rows = pa.table(
        {
            "peer": pa.array(np.arange(count), pa.int32()),
            "reference": pa.array([run.peers[start]] * count, pa.string()),
            **{
                name: pa.array(
                    # Beyond 64 bits, a bound says as little as none.
                    bound,
                    pa.int64(),
                    mask=(abs(bound) >= 2.0**63) | is_contradictory,
                    safe=False,
                )
                for name, bound in (("offset_us_min", lowest), ("offset_us_max", highest))
            },
            "contradictory": is_contradictory,
        }
    )
    return run.with_names(rows if peer is None else rows.slice(peer, 1))


def _shortest_paths(src: Int64s, dst: Int64s, length: Floats, start: int, count: int) -> Floats:
    """The lengths of the shortest paths from one of so many nodes: infinite where there is none,
    and -∞ behind a circle of negative length (Bellman and Ford, with the circles of parents).
    """
    distance = np.full(count, np.inf)
    distance[start] = 0
    parent = np.arange(count)
    while True:
        offer = distance[src] + length
        is_shorter = offer < distance[dst]
        if not is_shorter.any():
            return distance
        np.minimum.at(distance, dst[is_shorter], offer[is_shorter])
        is_chosen = is_shorter & (offer == distance[dst])
        parent[dst[is_chosen]] = src[is_chosen]
        ancestor = parent
        for _ in range(count.bit_length()):
            ancestor = ancestor[ancestor]
        distance[parent[ancestor] != ancestor] = -np.inf
