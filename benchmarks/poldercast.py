"""Time and memory of PolderCast and CYCLON: `python -m benchmarks.poldercast [--quick]`.

Prints a Markdown table. Every line is a process of its own: gossip without publications and
reports. Peak memory includes some 130 MB of Python, numpy and numba. Time is processor time, and
starts when all peers have joined.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from random import Random

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import System
from vizpub.simulators.protocols.poldercast.cyclon import Cyclon, CyclonParameters
from vizpub.simulators.protocols.poldercast.system import PolderCast, PolderCastParameters

TOPICS = 200
LATENCY_US = 5_000
PERIOD_US = 1_000_000


def zipf(peers: int, subscriptions: int) -> list[list[int]]:
    """Different topics for each peer, the k-th with a weight of k^-0.5."""
    random = Random(1)
    weights = [(topic + 1) ** -0.5 for topic in range(TOPICS)]
    found = []
    for _ in range(peers):
        chosen: set[int] = set()
        while len(chosen) < subscriptions:
            chosen |= {*random.choices(range(TOPICS), weights)}
        found.append(sorted(chosen))
    return found


def poldercast(net: Simulation) -> System:
    """CYCLON 20/8, VICINITY 20/10, RINGS 2 + 2."""
    return PolderCast(net, PolderCastParameters(), TOPICS)


def cyclon(view: int, gossip: int, net: Simulation) -> System:
    """CYCLON alone."""
    return Cyclon(net, CyclonParameters(view, gossip))


def measured(
    make: Callable[[Simulation], System], peers: int, cycles: int, subscriptions: int
) -> tuple[float, float]:
    """(seconds, peak MB) of a simulation."""
    net = Simulation(peers, 1, lambda sender, to: LATENCY_US)
    system = make(net)
    for peer, topics in enumerate(zipf(peers, subscriptions)):
        net.come_up(peer)
        system.join(peer, topics)
    begun = time.process_time()
    net.run(cycles * PERIOD_US)
    seconds = time.process_time() - begun
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Measure and print, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the cycles")
    part = 10 if parser.parse_args().quick else 1
    lines: list[tuple[str, Callable[[Simulation], System], int, int, int]] = [
        ("PolderCast", poldercast, 2_000, 1_000, 20),
        *(("PolderCast", poldercast, peers, 100, 20) for peers in (500, 1_000, 2_000, 5_000)),
        ("PolderCast", poldercast, 10_000, 100, 20),
        *(("PolderCast", poldercast, 2_000, 100, topics) for topics in (5, 10, 40, 80)),
        ("CYCLON 20/8", partial(cyclon, 20, 8), 10_000, 50, 0),
        ("CYCLON 35/14", partial(cyclon, 35, 14), 10_000, 50, 0),
    ]
    print("| system | peers | cycles | subscriptions | s | µs per peer and cycle | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for name, make, peers, all_cycles, topics in lines:
            cycles = all_cycles // part
            seconds, megabytes = pool.submit(measured, make, peers, cycles, topics).result()
            each = seconds / peers / cycles * 1e6
            numbers = f"{peers:,} | {cycles:,} | {topics} | {seconds:.1f} | {each:.1f}"
            print(f"| {name} | {numbers} | {megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main()
