"""Time and memory of Scribe: `python -m benchmarks.scribe [--quick] [--chord] [--largest]`.

On Pastry, or on Chord. Prints a Markdown table. Every line is a process of its own, with default
periods and without publications and reports; peers join within the first half interval. Processor
time is given for the whole run, and per peer and interval, and per message, for the intervals after
the first 20, in which the overlay has settled. Peak memory includes some 60 MB of Python and numpy.
`--largest` measures 2,000 peers in 1,000 intervals alone.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from random import Random
from typing import NamedTuple

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.scribe.on_chord import ScribeChord
from vizpub.simulators.protocols.scribe.parameters import ScribeChordParameters, ScribeParameters
from vizpub.simulators.protocols.scribe.system import Multicast, Scribe
from vizpub.simulators.world.subscriptions import Zipf

TOPICS = 200
LATENCY_US = 10_000
INTERVAL_US = 1_000_000
SETTLED = 20
"""Intervals after which peers have joined and trees have grown."""


class Measured(NamedTuple):
    """What a simulation took."""

    seconds: float
    each_us: float
    """µs per peer and interval when settled."""
    message_us: float
    """µs per message when settled."""
    messages: int
    """Messages when settled."""
    megabytes: float


def measured(peers: int, intervals: int, subscriptions: int, *, on_chord: bool) -> Measured:
    """Time, messages and memory of a simulation."""
    net = Simulation(peers, 1, lambda sender, to: LATENCY_US)
    scribe: Multicast = (
        ScribeChord(net, ScribeChordParameters(), TOPICS)
        if on_chord
        else Scribe(net, ScribeParameters(), TOPICS)
    )
    random = Random(1)
    wanted = Zipf(TOPICS, subscriptions).subscriptions(peers, random)

    def join(peer: int) -> None:
        net.come_up(peer)
        scribe.join(peer, wanted.of(peer))

    for peer in range(peers):
        net.at(random.randrange(INTERVAL_US // 2), partial(join, peer))
    begun = time.process_time()
    net.run(SETTLED * INTERVAL_US)
    settled, before = time.process_time(), _sent(net)
    net.run(intervals * INTERVAL_US)
    ended, messages = time.process_time(), _sent(net) - before
    spent_us = (ended - settled) * 1e6
    return Measured(
        ended - begun,
        spent_us / peers / (intervals - SETTLED),
        spent_us / messages,
        messages,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    )


def _sent(net: Simulation) -> int:
    return sum(kind.sent for kind in net.kinds)


def main() -> None:
    """Measure and print, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer intervals, fewer peers")
    parser.add_argument("--chord", action="store_true", help="on Chord")
    parser.add_argument("--largest", action="store_true", help="2,000 peers, 1,000 intervals only")
    given = parser.parse_args()
    quick = given.quick
    first = (2_000, 100 if quick else 1_000, 20)
    lines = (
        [first]
        if given.largest
        else [
            first,
            *((peers, 60, 20) for peers in (500, 1_000, 2_000, 5_000)),
            *(() if quick else ((10_000, 60, 20),)),
            *((2_000, 60, subscriptions) for subscriptions in (5, 10, 40, 80)),
        ]
    )
    print(
        "| peers | intervals | subscriptions | s | µs a peer and interval | µs a message |", end=""
    )
    print(" messages | peak MB |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for peers, intervals, subscriptions in lines:
            found = pool.submit(
                measured, peers, intervals, subscriptions, on_chord=given.chord
            ).result()
            case = f"{peers:,} | {intervals:,} | {subscriptions}"
            spent = f"{found.seconds:.1f} | {found.each_us:.1f} | {found.message_us:.2f}"
            print(f"| {case} | {spent} | {found.messages:,} | {found.megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main()
