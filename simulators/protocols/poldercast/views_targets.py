"""The peers to which a peer forwards a publication."""

from __future__ import annotations

import numpy as np
from numba.core.types import int64

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Int32s
from vizpub.simulators.protocols.poldercast.views import NUMBERS, PEER, VIEW, below
from vizpub.simulators.protocols.poldercast.views_overlay import PACKED, OverlayState
from vizpub.simulators.protocols.poldercast.views_rings import rank


@compiled(PACKED, int64, int64)
def _subscribes(overlay: OverlayState, peer: int, topic: int) -> bool:
    """Return True if the peer's profile has the topic."""
    bit = np.uint64(1) << np.uint64(topic % 64)
    return bool(overlay.profiles[peer, topic // 64] & bit)


@compiled(PACKED, int64, VIEW, NUMBERS, int64)
def _add_subscribers(
    overlay: OverlayState, topic: int, view: Int32s, pool: Int32s, count: int
) -> int:
    """Add and mark the unmarked peers of a view that subscribe to the topic."""
    for k in range(view.shape[1]):
        candidate = view[PEER, k]
        if (
            candidate >= 0
            and overlay.place[candidate] < 0
            and _subscribes(overlay, candidate, topic)
        ):
            overlay.place[candidate] = 0
            pool[count] = candidate
            count += 1
    return count


@compiled(PACKED, NUMBERS, int64, int64, int64)
def _draw(overlay: OverlayState, pool: Int32s, begin: int, end: int, wanted: int) -> int:
    """Move `wanted` random peers of pool[begin:end] to its front; returns where they end."""
    chosen = begin
    while chosen < end and wanted > 0:
        k = chosen + below(overlay.draws, end - chosen)
        value = pool[k]
        pool[k] = pool[chosen]
        pool[chosen] = value
        chosen, wanted = chosen + 1, wanted - 1
    return chosen


@compiled(PACKED, int64, int64, NUMBERS, int64, int64)
def _draw_subscribers(
    overlay: OverlayState, peer: int, topic: int, pool: Int32s, begin: int, wanted: int
) -> int:
    """Draw random subscribers into pool[begin:]: from VICINITY, then CYCLON, then the rings.
    Returns where they end.
    """
    first, end, seen = overlay.first[peer], begin, begin
    for layer in range(3):
        if end - begin < wanted:
            # All of the earlier layers are drawn by now.
            if layer == 0:
                seen = _add_subscribers(overlay, topic, overlay.vicinity[peer], pool, seen)
            elif layer == 1:
                seen = _add_subscribers(overlay, topic, overlay.cyclon[peer], pool, seen)
            else:
                for row in range(first, first + overlay.held[peer]):
                    seen = _add_subscribers(overlay, topic, overlay.rings[row], pool, seen)
            end = _draw(overlay, pool, end, seen, wanted - (end - begin))
    for k in range(begin, seen):  # remove the marks
        overlay.place[pool[k]] = -1
    return end


@compiled(PACKED, int64, int64, int64, int64, int64)
def targets_of(
    overlay: OverlayState, peer: int, sender: int, topic: int, onward: int, both: int
) -> Int32s:
    """The peers to which a peer forwards a copy from `sender` (itself for its own publications).

    A copy from a ring neighbour goes to the other one and to `onward` random subscribers of the
    topic, other copies to both ring neighbours and to `both` random subscribers; to each peer
    once. A peer that does not subscribe can only publish, to `both` random subscribers.
    """
    place, rings = overlay.place, overlay.rings
    first, held = overlay.first[peer], overlay.held[peer]
    room = overlay.vicinity.shape[2] + overlay.cyclon.shape[2] + held * rings.shape[2]
    pool, count, wanted = np.empty(2 + room, np.int32), 0, both
    is_member = _subscribes(overlay, peer, topic)
    if not is_member and sender != peer:
        return pool[:0].copy()
    place[peer] = place[sender] = 0
    if is_member:
        ring = rings[first + rank(overlay.profiles[peer], topic)]
        for side in (0, ring.shape[1] // 2):
            neighbour = ring[PEER, side]
            if neighbour == sender and sender != peer:
                wanted = onward
            elif neighbour >= 0 and place[neighbour] < 0:
                place[neighbour] = 0
                pool[count] = neighbour
                count += 1
    end = _draw_subscribers(overlay, peer, topic, pool, count, wanted)
    place[peer] = place[sender] = -1
    for k in range(count):
        place[pool[k]] = -1
    return pool[:end].copy()
