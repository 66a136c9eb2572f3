"""Example for `vizpub live collect`: the peers of a ring, rewired at random, report while they run.

    vizpub live collect ring --no-token --port 8600
    python -m vizpub_reporter.example http://127.0.0.1:8600/v1/runs/ring --peers 20

One reporter speaks for all peers here; each could have one of its own. Ctrl-C ends.
"""

from __future__ import annotations

import argparse
import random
import time

from .client import Reporter


def main() -> None:
    """Report the neighbours of all peers in every interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of the run, as `vizpub live collect` shows it")
    parser.add_argument("--token", help="the collector's token to report")
    parser.add_argument("--peers", type=int, default=10)
    parser.add_argument("--intervals", type=int, help="end after so many")
    arguments = parser.parse_args()
    names = [f"peer-{number}" for number in range(arguments.peers)]
    neighbors = {
        name: {successor} for name, successor in zip(names, names[1:] + names[:1], strict=True)
    }
    with Reporter(arguments.url, arguments.token) as reporter:
        # All peers count intervals from the run's epoch, so their numbers meet.
        header = reporter.header()
        interval_s = header["interval_us"] / 1_000_000
        first = interval = header["now_us"] // header["interval_us"]
        ahead = time.monotonic() + interval_s - header["now_us"] % header["interval_us"] / 1e6
        try:
            while arguments.intervals is None or interval < first + arguments.intervals:
                time.sleep(max(ahead + (interval - first) * interval_s - time.monotonic(), 0))
                first_peer, second_peer = random.sample(names, 2)
                neighbors[first_peer] ^= {second_peer}
                for name in names:
                    reporter.report(
                        {
                            "peer": name,
                            "interval": interval,
                            "neighbors": sorted(neighbors[name]),
                            "topics": ["news"],
                            "sent": [],
                            "received": [],
                        }
                    )
                interval += 1
        except KeyboardInterrupt:
            pass
    print(reporter.counts)


if __name__ == "__main__":
    main()
