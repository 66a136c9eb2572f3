"""The presence of the peers of a trace.

The file of a failed peer just ends; only the end of other peers' streams to it shows when it
failed. A peer without a file is present while a present peer holds a stream to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.clock import OPEN


def stays(reporters: pa.Table) -> pa.Table:
    """All peers that a fold made (`fold.TABLES`) → the presence of each reporter, and the time of
    its `last` own event: peer, valid_from, valid_to, last.

    A peer stays from its first own event to the first closing of a stream to it by another peer
    at or after its last own event, provided no stream to it stays open from a peer that is
    itself still present; else its stay is open.
    """
    is_silent = reporters["end"].is_valid()
    silent = reporters.filter(is_silent)
    holders = zip(silent["peer"].to_pylist(), silent["holders"].to_pylist(), strict=True)
    is_held = pc.is_in(reporters["peer"], pa.array(sorted(held(dict(holders))), pa.string()))
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


def held(silent: Mapping[str, Sequence[str]]) -> set[str]:
    """The silent peers to which a present peer holds a stream. `silent` maps each to its holders.

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
