"""Presence of the peers of a trace.

The file of a failed peer just ends; only the end of other peers' streams to it shows when it
failed. A peer without a file is present while a present peer holds a stream to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.clock import OPEN


def find_stays(reporters: pa.Table) -> pa.Table:
    """Return the presence of each reporter, and the time of its `last` own event: peer, valid_from,
    valid_to, last. `reporters` is the table `peers` of `fold.TABLES`.

    A peer stays from its first own event to the first closing of a stream to it by another peer
    at or after its last own event, provided no stream to it stays open from a peer that is
    itself still present; else its stay is open.
    """
    is_silent = reporters["end"].is_valid()
    silent = reporters.filter(is_silent)
    holders = zip(silent["peer"].to_pylist(), silent["holders"].to_pylist(), strict=True)
    is_held = pc.is_in(reporters["peer"], pa.array(sorted(find_held(dict(holders))), pa.string()))
    end = pc.max_element_wise(reporters["end"], pc.add(reporters["valid_from"], 1))
    valid_to = pc.if_else(pc.and_not(is_silent, is_held), end, pa.scalar(OPEN, pa.int64()))
    return pa.table(
        {
            "peer": reporters["peer"],
            "valid_from": reporters["valid_from"],
            "valid_to": valid_to,
            "last": reporters["last"],
        }
    )


def find_held(silent: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the silent peers to which a present peer holds a stream. `silent` maps each to its
    holders.

    A peer that is held counts as present, and so holds others. First all silent peers count as
    gone, then those that a present peer holds come back, until no more do.
    """
    onward: defaultdict[str, list[str]] = defaultdict(list)
    reached: list[str] = []
    for peer, holders in silent.items():
        for holder in holders:
            (onward[holder] if holder in silent else reached).append(peer)
    held = set(reached)
    while reached:
        new = set(onward[reached.pop()]) - held
        held |= new
        reached.extend(new)
    return held
