"""simpy: the channels of `benchmarks.channels`, from the same updates and mapping.

    python by_simpy.py INPUT.npz UPDATES

A process for each channel, which waits while nothing waits for it; R·W over what waits. Prints
counts and seconds as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import simpy


class Channel:
    """A channel, its buffer, and what its listeners heard."""

    def __init__(self, env: Any, number: int, world: World) -> None:
        self.env, self.world = env, world
        self.waiting: list[tuple[int, int, int]] = []
        self.woken = env.event()
        self.listens = world.listens[:, number]
        self.listeners = int(self.listens.sum())
        env.process(self.transmit())

    def offer(self, copy: tuple[int, int, int]) -> None:
        """Take a copy: its update, its page and when it came."""
        self.waiting.append(copy)
        if not self.woken.triggered:
            self.woken.succeed()

    def transmit(self) -> Any:
        """Send one copy after the other."""
        wanted = self.world.wanted
        while True:
            if not self.waiting:
                self.woken = self.env.event()
                yield self.woken
            now = self.env.now
            best = max(
                self.waiting, key=lambda c: (wanted[c[1]] * (now - c[2]), wanted[c[1]], -c[0])
            )
            self.waiting.remove(best)
            yield self.env.timeout(int(self.world.took[best[1]]))
            self.world.receive(best[0], best[1], self)


class World:
    """The server, the static mapping and the clients."""

    def __init__(self, given: Any, updates: int) -> None:
        self.times, self.pages = given["times"][:updates], given["pages"][:updates]
        self.wants, self.listens, self.took = given["wants"], given["listens"], given["took"]
        self.wanted = self.wants.sum(axis=0).tolist()
        self.to = [np.flatnonzero(row).tolist() for row in given["carried"]]
        self.missing: dict[int, Any] = {}
        self.updated: dict[int, int] = {}
        self.sent = self.heard = self.stale = self.receptions = 0
        self.env = simpy.Environment()
        self.channels = [Channel(self.env, n, self) for n in range(self.listens.shape[1])]
        self.env.process(self.serve())

    def serve(self) -> Any:
        """Update pages."""
        for number, (at, page) in enumerate(
            zip(self.times.tolist(), self.pages.tolist(), strict=True)
        ):
            yield self.env.timeout(at - self.env.now)
            if self.wanted[page]:
                self.missing[number], self.updated[number] = self.wants[:, page].copy(), at
                for channel in self.to[page]:
                    self.channels[channel].offer((number, page, at))

    def receive(self, number: int, page: int, channel: Channel) -> None:
        """All listeners of a channel receive an update."""
        first = self.missing[number] & channel.listens
        self.missing[number] &= ~first
        heard = int(first.sum())
        self.sent += 1
        self.heard += heard
        self.stale += heard * (self.env.now - self.updated[number])
        self.receptions += channel.listeners


def main(file: str, updates: int) -> None:
    """Run, and say what came of it."""
    given = dict(np.load(file))
    begun = time.process_time()
    world = World(given, updates)
    world.env.run(until=int(world.times[-1]) + 1)
    seconds = time.process_time() - begun
    counts = {name: int(getattr(world, name)) for name in ("sent", "heard", "stale", "receptions")}
    print(json.dumps({**counts, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
