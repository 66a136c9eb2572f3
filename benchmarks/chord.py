"""Time and memory of Chord: `python -m benchmarks.chord [--quick]`.

Prints a Markdown table: lookups of random keys by peers of a ring that is complete, without upkeep
and reports, and one ring that forms from nothing. Every line is a process of its own. Seconds are
processor time; peak memory includes some 60 MB of Python and numpy.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from random import Random

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.chord.lookups import Found
from vizpub.simulators.protocols.chord.overlay import Overlay
from vizpub.simulators.protocols.chord.parameters import ChordParameters, How
from vizpub.simulators.protocols.chord.placing import place
from vizpub.simulators.protocols.routing import Upcalls

LATENCY_US = 10_000
STILL = "1000h"
"""A period in which nothing happens."""


def looked_up(peers: int, lookups: int, how: How) -> tuple[float, float, float]:
    """(seconds, mean hops, peak MB) of lookups, a thousand at a time."""
    net = Simulation(peers, 1, lambda sender, to: LATENCY_US)
    upkeep = dict.fromkeys(
        ("stabilize_period", "fingers_period", "predecessor_period", "merge_period"), STILL
    )
    overlay = Overlay(net, ChordParameters(lookup=how, **upkeep), 0, Upcalls())  # type: ignore[arg-type]
    for peer in range(peers):
        net.come_up(peer)
    place(overlay, range(peers))
    random, hops = Random(1), 0

    def done(peer: int, found: Found) -> None:
        nonlocal hops
        hops += found.hops

    begun = time.process_time()
    for _ in range(lookups // 1000):
        for _ in range(1000):
            overlay.lookups.start(random.randrange(peers), random.getrandbits(160), done)
        net.run(net.now + 6_000_000)
    return time.process_time() - begun, hops / lookups, _peak()


def joined(peers: int, seconds: int) -> tuple[float, float, float]:
    """(seconds, share of right successors, peak MB) after that many virtual seconds; all peers join
    in the first half second.
    """
    net = Simulation(peers, 1, lambda sender, to: LATENCY_US)
    overlay = Overlay(net, ChordParameters(), 0, Upcalls())
    random = Random(1)

    def join(peer: int) -> None:
        net.come_up(peer)
        overlay.join(peer)

    for peer in range(peers):
        net.at(random.randrange(500_000), partial(join, peer))
    begun = time.process_time()
    net.run(seconds * 1_000_000)
    spent = time.process_time() - begun
    order = sorted(range(peers), key=overlay.ring.ids.__getitem__)
    right = sum(
        overlay.nodes[peer].successor == after
        for peer, after in zip(order, [*order[1:], order[0]], strict=True)
    )
    return spent, right / peers, _peak()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Measure and print, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer peers, fewer lookups")
    few = 10 if parser.parse_args().quick else 1
    peers, lookups = 10_000 // few, 100_000 // few
    lines = [
        (f"{lookups:,} lookups, recursive", partial(looked_up, peers, lookups, "recursive")),
        (f"{lookups:,} lookups, iterative", partial(looked_up, peers, lookups, "iterative")),
        (f"{peers // 10:,} peers, 30 s from nothing", partial(joined, peers // 10, 30)),
    ]
    print(f"| {peers:,} peers | s | hops, or right successors | peak MB |")
    print("| --- | --- | --- | --- |")
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for what, measure in lines:
            seconds, found, megabytes = pool.submit(measure).result()
            print(f"| {what} | {seconds:.1f} | {found:.3f} | {megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main()
