"""How long `Reporter.report` keeps its peer: `python -m benchmarks.reporter`.

A peer reports at a fixed rate to a collector in a process of its own, and then to none: the queue
fills, and the oldest reports are dropped or go to a spool. Every call is timed. Prints percentiles,
and their ratio to the same report encoded and appended to a list.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing as mp
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.intake import intake, serve
from vizpub.reports.client import Reporter
from vizpub.reports.records import Neighbor, Report

_NOBODY = "http://127.0.0.1:1/v1/runs/lab"
_SHARES = (0.5, 0.99, 0.999)


def as_object(peer: int, interval: int, links: int) -> dict[str, Any]:
    """A report as a peer in Python would make it."""
    return {
        "peer": f"p{peer}",
        "interval": interval,
        "neighbors": [f"p{peer + n}" for n in range(1, links + 1)],
        "topics": ["news"],
        "sent": [],
        "received": [],
    }


def as_record(peer: int, interval: int, links: int) -> Report:
    """The same, as a record of the contract."""
    neighbors = tuple(Neighbor(f"p{peer + n}") for n in range(1, links + 1))
    return Report(
        peer=f"p{peer}",
        interval=interval,
        neighbors=neighbors,
        topics=("news",),
        sent=(),
        received=(),
    )


def timed(call: Callable[[Any], object], make: Callable[..., Any], asked: Any) -> list[float]:
    """Microseconds of each call, at the rate, in ascending order."""
    count = int(asked.seconds * asked.rate)
    found, began = [], time.perf_counter()
    for number in range(count):
        record = make(number % asked.peers, number // asked.peers, asked.links)
        time.sleep(max(began + number / asked.rate - time.perf_counter(), 0))
        before = time.perf_counter()
        call(record)
        found.append(1e6 * (time.perf_counter() - before))
    return sorted(found)


def shown(name: str, found: list[float], base: list[float]) -> None:
    """A line of the answer."""
    each = [found[int(share * (len(found) - 1))] for share in _SHARES]
    bare = [base[int(share * (len(base) - 1))] for share in _SHARES]
    told = ", ".join(
        f"p{100 * share:g} {mine:.0f} µs ({mine / theirs:.1f} ×)"
        for share, mine, theirs in zip(_SHARES, each, bare, strict=True)
    )
    print(f"{name:24} {told}")


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--peers", type=int, default=100)
    parser.add_argument("--links", type=int, default=20)
    asked = parser.parse_args()
    gc.freeze()
    kept: list[bytes] = []
    base = timed(lambda told: kept.append(json.dumps(told).encode()), as_object, asked)
    shown("encoded and kept", base, base)
    ours, theirs = mp.get_context("spawn").Pipe()
    with TemporaryDirectory() as folder:
        process = mp.get_context("spawn").Process(target=serve, args=(intake, Path(folder), theirs))
        process.start()
        there = f"http://127.0.0.1:{ours.recv()}/v1/runs/lab"
        try:
            for name, make in (("objects", as_object), ("records", as_record)):
                with Reporter(there) as reporter:
                    shown(f"{name}, collector up", timed(reporter.report, make, asked), base)
                assert not reporter.counts.refused, reporter.last_problem
        finally:
            process.kill()
            process.join()
        for name, spool in (("dropped", None), ("spooled", Path(folder) / "spool")):
            reporter = Reporter(_NOBODY, memory=100_000, spool=spool)
            shown(f"objects, {name}", timed(reporter.report, as_object, asked), base)
            reporter.close(0)


if __name__ == "__main__":
    main()
