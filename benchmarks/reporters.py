"""A thousand reporters and the whole collector: `python -m benchmarks.reporters`.

Each reporter has a connection and posts one report per interval to `vizpub live collect`, which
makes the run meanwhile. Prints the percentiles of the answers, from the time at which a request was
due, how far the run was behind, and whether anything was lost. Any answer but 202 ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from benchmarks.intake import PEERS, Load
from benchmarks.live import collecting
from vizpub.runstore.store import open_run


async def post_reports(load: Load, options: argparse.Namespace) -> None:
    """Requests at an even rate."""
    await load.run(60 * options.minutes, PEERS / options.interval)


def main() -> None:
    """Load a collector, and print how it did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument("--links", type=int, default=20)
    parser.set_defaults(neo4j=False)
    options = parser.parse_args()
    with TemporaryDirectory() as folder, collecting(Path(folder), options) as (_, collector):
        load = Load(urlsplit(collector.url).port or 0, options.links, PEERS)
        asyncio.run(post_reports(load, options))
        sent = len(load.seconds)
        progress = collector.get()["progress"]
        print(f"{sent:,} sent, {progress['reports']:,} in the log, {progress['refused']} refused")
        print(f"POST p50 {load.percentile(0.5):.0f} ms, p99 {load.percentile(0.99):.0f} ms")
        print(f"lag {progress['lag_s']} s, append {progress['append_s']} s")
        while progress["in_run"] != progress["closed"]:
            time.sleep(0.5)
            progress = collector.get()["progress"]
        clock = open_run(Path(folder), "lab").manifest.clock
        in_run = clock.last + 1 if clock else 0
        print(f"intervals closed {progress['closed'] + 1}, in the run {in_run}")


if __name__ == "__main__":
    main()
