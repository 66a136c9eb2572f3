"""The dissemination of many events over one network, compiled: what Algorithm 1 counts, without
reports. All peers are up, and every copy takes the same time.

The counts are those of a full simulation with the same links, subscriptions and seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int32s, Int64s
from vizpub.simulators.protocols.gossip.coins import coin, event_key

Bools = npt.NDArray[np.bool_]


class Adjacency(NamedTuple):
    """The neighbours of each peer: `others[begins[i]:begins[i + 1]]`, ascending, each once."""

    begins: Int64s
    others: Int32s

    @property
    def peers(self) -> int:
        """Number of peers."""
        return self.begins.size - 1

    @property
    def degrees(self) -> Int64s:
        """Number of neighbours of each peer."""
        return np.diff(self.begins)


def adjacency(edges: Int64s, peers: int) -> Adjacency:
    """From edges of shape (edges, 2), which may come twice or both ways; loops do not count."""
    one, other = edges[edges[:, 0] != edges[:, 1]].T
    keys = np.concatenate([one * peers + other, other * peers + one])
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) > 0]
    begins = np.zeros(peers + 1, np.int64)
    np.cumsum(np.bincount(keys // max(peers, 1), minlength=peers), out=begins[1:])
    return Adjacency(begins, (keys % max(peers, 1)).astype(np.int32))


COUNTS = ("receivers", "subscribers", "sent", "offered", "passed", "hops")
"""Of an event: peers that got it and those of them that subscribe, both with the publisher; copies
sent; neighbours without the subscription that a coin was tossed for, and those of them that got a
copy; links of the longest way."""


class Spreading(NamedTuple):
    """How events spread: the probability gamma, the TTL, and the seed of the coins."""

    gamma: float
    ttl: int
    seed: int


@compiled(
    "void(int64[::1], int32[::1], boolean[::1], Tuple((float64, int64, int64)), int64[::1], "
    "int64[:, ::1])"
)
def _disseminate(
    begins: Int64s,
    others: Int32s,
    wants: Bools,
    spreading: tuple[float, int, int],
    publishers: Int64s,
    counts: Int64s,
) -> None:
    """Fill a row of COUNTS for each event; `spreading` as in Spreading.

    The queue has the peers that got the event in order of their first copies. Copies that arrive
    together count in the order in which they were sent.
    """
    gamma, ttl, seed = spreading
    peers = begins.size - 1
    seen = np.full(peers, -1, np.int64)
    queue, parents = np.empty(peers, np.int32), np.empty(peers, np.int32)
    hops = np.empty(peers, np.int32)
    for event in range(publishers.size):
        key = event_key(seed, event)
        queue[0], parents[0], hops[0] = publishers[event], -1, 0
        seen[publishers[event]] = event
        first, last, sent, offered, passed, subscribers = 0, 1, 0, 0, 0, 0
        while first < last:
            peer, parent, travelled = queue[first], parents[first], hops[first]
            first += 1
            subscribers += wants[peer]
            if travelled >= ttl:
                continue
            for place in range(begins[peer], begins[peer + 1]):
                neighbour = others[place]
                if neighbour == parent:
                    continue
                if not wants[neighbour]:
                    offered += 1
                    if coin(key, peer, neighbour) >= gamma:
                        continue
                    passed += 1
                sent += 1
                if seen[neighbour] != event:
                    seen[neighbour] = event
                    queue[last], parents[last], hops[last] = neighbour, peer, travelled + 1
                    last += 1
        counts[event, 0], counts[event, 1], counts[event, 2] = last, subscribers, sent
        counts[event, 3], counts[event, 4], counts[event, 5] = offered, passed, hops[last - 1]


def disseminate(
    network: Adjacency, wants: Bools, spreading: Spreading, publishers: Int64s
) -> dict[str, Int64s]:
    """The COUNTS of an event of each publisher, numbered from 0; `wants`: who subscribes."""
    counts = np.empty((publishers.size, len(COUNTS)), np.int64)
    _disseminate(
        network.begins,
        network.others,
        wants,
        (float(spreading.gamma), spreading.ttl, spreading.seed),
        publishers.astype(np.int64),
        counts,
    )
    return dict(zip(COUNTS, counts.T, strict=True))
