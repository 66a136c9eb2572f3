"""Chord in its network, judged by the ids of all peers that are up."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.chord.lookups import LookupAnswer
from vizpub.simulators.protocols.chord.overlay import ChordOverlay
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.chord.placing import place
from vizpub.simulators.protocols.routing import NOBODY, Upcalls

INTERVAL = 1_000_000
"""µs: the period of stabilization."""


class Truth:
    """Owners and neighbours by the ids alone, without any state of the protocol."""

    def __init__(self, overlay: ChordOverlay, peers: Sequence[int]) -> None:
        self.ids, self.bits = overlay.ring.ids, overlay.ring.bits
        self.order = sorted(peers, key=self.ids.__getitem__)
        self.places = [self.ids[peer] for peer in self.order]

    def owner(self, key: int) -> int:
        """The first peer from the key on."""
        return self.order[bisect_left(self.places, key) % len(self.order)]

    def fingers(self, peer: int) -> set[int]:
        """The peers that are the first from own + 2^i on, for any i."""
        own = self.ids[peer]
        starts = ((own + 2**i) % 2**self.bits for i in range(self.bits))
        return {self.owner(start) for start in starts} - {peer}


def faults(overlay: ChordOverlay, peers: Sequence[int], *, fingers: bool = True) -> list[str]:
    """What is wrong in the reported links and the successor lists of the peers."""
    truth, found = Truth(overlay, peers), []
    order = truth.order
    for at, peer in enumerate(order):
        after = [order[(at + step) % len(order)] for step in range(1, len(order))]
        links = {held.layer: list(held.peers) for held in overlay.links(peer)}
        checks = {
            "successor": links["successor"] == after[:1],
            "predecessor": links["predecessor"] == after[-1:],
            "list": overlay.nodes[peer].successors == after[: overlay.keeping.room],
        }
        if fingers:
            checks["finger"] = set(links["finger"]) == truth.fingers(peer)
        found += [f"{what} of {peer}" for what, is_right in checks.items() if not is_right]
    return found


class World:
    """An overlay in its network; peers come up within half an interval."""

    def __init__(
        self, size: int, seed: int = 1, loss: float = 0.0, latency_us: int = 10_000, **chosen: Any
    ) -> None:
        print(f"seed {seed}")
        self.net = Simulation(size, seed, lambda sender, to: latency_us, loss=loss)
        self.overlay = ChordOverlay(self.net, ChordParameters(**chosen), 0, Upcalls())
        self.random = random.Random(seed)

    def placed(self) -> World:
        """All peers are up, and the ring is made."""
        for peer in range(self.net.size):
            self.net.come_up(peer)
        place(self.overlay, self.net.present)
        return self

    def come_up(self, peers: Sequence[int]) -> None:
        """The peers join within half an interval."""
        for peer in peers:
            at = self.net.now + self.random.randrange(INTERVAL // 2)
            self.net.at(at, lambda peer=peer: (self.net.come_up(peer), self.overlay.join(peer)))

    def crash(self, peers: Sequence[int]) -> None:
        """The peers are down without notice."""
        for peer in peers:
            self.net.go_down(peer)
            self.overlay.go_down(peer)

    def leave(self, peers: Sequence[int]) -> None:
        """The peers leave with notice."""
        for peer in peers:
            self.overlay.leave(peer)
        self.crash(peers)

    def run(self, intervals: float) -> None:
        """Let time pass."""
        self.net.run(self.net.now + int(intervals * INTERVAL))

    def faults(self, *, fingers: bool = True) -> list[str]:
        """See `faults`."""
        return faults(self.overlay, self.net.present, fingers=fingers)

    def look_up(self, lookups: int, seconds: float = 100) -> list[tuple[LookupAnswer, int]]:
        """Lookups of random keys at random peers, with their true owners."""
        truth, drawn = Truth(self.overlay, self.net.present), self.random
        return self.answers(
            [(drawn.choice(truth.order), drawn.getrandbits(truth.bits)) for _ in range(lookups)],
            seconds,
        )

    def answers(
        self, asked: Sequence[tuple[int, int]], seconds: float = 100
    ) -> list[tuple[LookupAnswer, int]]:
        """The answers to questions (peer, key), with the true owners."""
        truth, got = Truth(self.overlay, self.net.present), []
        for peer, key in asked:

            def done(peer: int, found: LookupAnswer, key: int = key) -> None:
                got.append((found, truth.owner(key)))

            self.overlay.lookups.start(peer, key, done)
        self.run(seconds)
        assert len(got) == len(asked)
        return got


def wrong(answers: Sequence[tuple[LookupAnswer, int]]) -> Counter[str]:
    """How many failed, and how many name another owner than the true one."""
    return Counter(
        "failed" if found.owner == NOBODY else "wrong"
        for found, owner in answers
        if found.owner != owner
    )


def mean_hops(answers: Sequence[tuple[LookupAnswer, int]]) -> float:
    """Of lookups that all found the true owner."""
    assert not wrong(answers)
    return sum(found.hops for found, _ in answers) / len(answers)


STILL = {
    "stabilize_period": "1000h",
    "fingers_period": "1000h",
    "predecessor_period": "1000h",
    "merge_period": "1000h",
    "lookup_timeout": "60s",
}
"""Parameters by which nothing is repaired."""
