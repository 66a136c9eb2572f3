"""Time and memory of Scribe: `python -m benchmarks.scribe [--quick] [--chord]`, on Pastry or Chord.

Prints a Markdown table. Every line is a process of its own, with default periods and without
publications and reports; peers join within the first half interval. Processor time is given for the
whole run, and as µs per peer and interval for the intervals after the first 20, in which the
overlay has settled. Peak memory includes some 60 MB of Python and numpy.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from random import Random

from simulators.engine.clock import Simulation
from simulators.protocols.scribe.on_chord import ScribeChord
from simulators.protocols.scribe.parameters import ScribeChordParameters, ScribeParameters
from simulators.protocols.scribe.system import Multicast, Scribe
from simulators.world.subscriptions import Zipf

TOPICS = 200
LATENCY_US = 10_000
INTERVAL_US = 1_000_000
SETTLED = 20
"""Intervals after which peers have joined and trees have grown."""


def measured(
    peers: int, intervals: int, subscriptions: int, *, on_chord: bool
) -> tuple[float, float, float]:
    """(seconds, µs per peer and interval when settled, peak MB) of a simulation."""
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
    settled = time.process_time()
    net.run(intervals * INTERVAL_US)
    ended = time.process_time()
    each = (ended - settled) / peers / (intervals - SETTLED) * 1e6
    return ended - begun, each, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Measure and print, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer intervals, fewer peers")
    parser.add_argument("--chord", action="store_true", help="on Chord")
    given = parser.parse_args()
    quick = given.quick
    lines = [
        (2_000, 100 if quick else 1_000, 20),
        *((peers, 60, 20) for peers in (500, 1_000, 2_000, 5_000)),
        *(() if quick else ((10_000, 60, 20),)),
        *((2_000, 60, subscriptions) for subscriptions in (5, 10, 40, 80)),
    ]
    print("| peers | intervals | subscriptions | s | µs per peer and interval | peak MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for peers, intervals, subscriptions in lines:
            found = pool.submit(
                measured, peers, intervals, subscriptions, on_chord=given.chord
            ).result()
            seconds, each, megabytes = found
            numbers = f"{peers:,} | {intervals:,} | {subscriptions} | {seconds:.1f} | {each:.1f}"
            print(f"| {numbers} | {megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main()
