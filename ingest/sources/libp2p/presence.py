"""When a peer of a trace was there.

A peer that dies says nothing more: its file just ends, and only the others' closing of
their streams to it shows when. A peer that has no file is there while others that are
there hold a stream to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from model.clock import OPEN

STAYS = "peer string, valid_from bigint, valid_to bigint, last bigint"
"""The stay of each peer that reports, and when its last own event was."""


def stays(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All peers that a fold made (`fold.TABLES`) → STAYS.

    A peer stays from its first own event to the first closing of a stream to it by another peer
    at or after its last own event, provided no stream to it stays open from a peer that is
    itself still present; else its stay is open.
    """
    peers = [batch for batch in batches if batch.num_rows]
    if not peers:
        return
    told = pa.Table.from_batches(peers)
    is_silent = told["end"].is_valid()
    silent = told.filter(is_silent)
    holders = zip(silent["peer"].to_pylist(), silent["holders"].to_pylist(), strict=True)
    is_held = pc.is_in(told["peer"], pa.array(sorted(held(dict(holders))), pa.string()))
    end = pc.max_element_wise(told["end"], pc.add(told["valid_from"], 1))
    valid_to = pc.if_else(pc.and_not(is_silent, is_held), end, pa.scalar(OPEN, pa.int64()))
    yield from pa.table(
        {
            "peer": told["peer"],
            "valid_from": told["valid_from"],
            "valid_to": valid_to,
            "last": told["last"],
        }
    ).to_batches()


def held(silent: Mapping[str, Sequence[str]]) -> set[str]:
    """The silent peers, given with who holds a stream to each, to which a present peer does.

    The greatest fixed point: all silent peers count as gone, those come back that a
    present peer holds a stream to, and these hold others.
    """
    onward: defaultdict[str, list[str]] = defaultdict(list)
    reached: list[str] = []
    for peer, holders in silent.items():
        for holder in holders:
            (onward[holder] if holder in silent else reached).append(peer)
    found = set(reached)
    while reached:
        new = set(onward[reached.pop()]) - found
        found |= new
        reached.extend(new)
    return found
