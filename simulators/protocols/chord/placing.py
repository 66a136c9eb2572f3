"""A Chord overlay after all peers have joined, made from global knowledge."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from vizpub.simulators.protocols.chord.overlay import ChordOverlay


def place(overlay: ChordOverlay, peers: Sequence[int]) -> None:
    """Give these peers the state that they would have after joining; other peers are down.

    No message is sent. The peers are ready, but upcalls are not made.
    """
    ring = overlay.ring
    order = sorted(peers, key=ring.ids.__getitem__)
    ids = [ring.ids[peer] for peer in order]
    room = min(overlay.keeping.room, len(order) - 1)
    for at, peer in enumerate(order):
        node = overlay.keeping.reset(peer)
        node.is_placed = node.is_ready = True
        if len(order) == 1:
            return
        node.set_predecessor(order[at - 1], order[at - 2])
        node.successors = [order[(at + step) % len(order)] for step in range(1, room + 1)]
        for finger in node.needed_fingers():
            first_peer = order[bisect_left(ids, node.start(finger)) % len(order)]
            node.fingers[finger] = first_peer
