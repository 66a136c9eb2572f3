"""Time and memory of broadcasts: `python -m benchmarks.broadcast [--quick]`.

Prints a Markdown table. Every line is a process of its own, without reports: 10,000 peers join one
after the other, five latencies apart, and maintain their views for 30 periods; then 50 peers
publish, one every 200 ms. Time is processor time; that of the broadcasts includes the overlay's
maintenance meanwhile. Peak memory includes some 130 MB of Python, numpy and numba.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Publication
from vizpub.simulators.protocols.broadcast.cyclon import BroadcastCyclon, BroadcastCyclonParameters
from vizpub.simulators.protocols.broadcast.system import BroadcastSystem
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters
from vizpub.simulators.protocols.hyparview.system import HyParView

LATENCY_US = 1_000
GAP_US = 5 * LATENCY_US
PERIOD_US = 1_000_000
BROADCASTS = 50
BETWEEN_US = 200_000


def made(membership: str, broadcast: str, net: Simulation) -> BroadcastSystem:
    """The system in a simulation."""
    if membership == "CYCLON 35/14":
        return BroadcastCyclon(net, BroadcastCyclonParameters(broadcast))
    return HyParView(net, HyParViewParameters(broadcast))


def measured(membership: str, broadcast: str, peers: int) -> tuple[float, float, int, int, float]:
    """(seconds until all have views, seconds of the broadcasts, messages of all kinds, received
    copies, peak MB).
    """
    net = Simulation(peers, 1, lambda sender, to: LATENCY_US)
    system = made(membership, broadcast, net)

    def join(peer: int) -> None:
        net.come_up(peer)
        system.join(peer, ())

    begun = time.process_time()
    for peer in range(peers):
        net.at(peer * GAP_US, partial(join, peer))
    net.run(peers * GAP_US + 30 * PERIOD_US)
    grown = time.process_time()
    for message in range(BROADCASTS):
        publisher = message * 997 % peers
        system.publish(publisher, Publication(message, 0, publisher, 512))
        net.run(net.now + BETWEEN_US)
    done = time.process_time()
    messages = sum(kind.sent for kind in net.kinds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return grown - begun, done - grown, messages, system.broadcast.copies.received, peak


def main() -> None:
    """Measure and print, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the peers")
    peers = 1_000 if parser.parse_args().quick else 10_000
    print(f"{peers:,} peers, {BROADCASTS} broadcasts")
    print("| membership | broadcast | s to grow | s | copies | messages | µs each | peak MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    lines = [
        ("HyParView", "flood"),
        ("HyParView", "plumtree"),
        ("CYCLON 35/14", "fanout:4"),
    ]
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for membership, broadcast in lines:
            found = pool.submit(measured, membership, broadcast, peers).result()
            grow, spread, messages, copies, peak = found
            each = (grow + spread) / messages * 1e6
            numbers = f"{grow:.1f} | {spread:.1f} | {copies:,} | {messages:,} | {each:.2f}"
            print(f"| {membership} | {broadcast} | {numbers} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
