"""What an append to a run costs, after few appends and after many: `python -m benchmarks.fed`.

A run is fed interval by interval in one session. Times are processor seconds of this process and
those it started; ratios are of one run of the benchmark, so a busy machine changes them little.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from pyspark.sql import SparkSession

from ingest.pipeline import IngestRequest, ingest_in
from ingest.spark.session import spark_session
from runstore.manifest import FILE
from runstore.writer import writing

_REPLACED = 0.05
"""Share of the links that an interval replaces."""


class System:
    """Peers with links, some of which each interval replaces."""

    def __init__(self, peers: int, links: int) -> None:
        self._rng = random.Random(0)
        self._links = [self._rng.choices(range(peers), k=links) for _ in range(peers)]

    def interval(self, number: int) -> Iterator[dict[str, Any]]:
        """The reports of the next interval; one peer publishes, another received."""
        rng, peers = self._rng, len(self._links)
        for peer, links in enumerate(self._links):
            for place, _ in enumerate(links):
                if rng.random() < _REPLACED:
                    links[place] = rng.randrange(peers)
            sent = {"message": f"m{number}", "topic": "news", "hops": 0, "to": ["p0"]}
            came = {"message": f"m{number - 1}", "topic": "news", "from": "p0", "hops": 1}
            yield {
                "format": "vizpub.report/1",
                "peer": f"p{peer}",
                "interval": number,
                "neighbors": [f"p{other}" for other in sorted({*links} - {peer})],
                "topics": ["news"],
                "sent": [sent] if peer == number % peers else [],
                "received": [came] if number and peer == (number + 1) % peers else [],
            }


def fed(spark: SparkSession, folder: Path, system: System, appends: int) -> list[float]:
    """Processor seconds of each append; the first one makes the run."""
    seconds = []
    for number in range(appends + 1):
        path = folder / f"{number}.ndjson"
        path.write_text("".join(json.dumps(record) + "\n" for record in system.interval(number)))
        before = _processor_seconds()
        request = IngestRequest((str(path),), "fed", folder, append=True)
        with writing(folder, "fed") as writer:
            ingest_in(spark, writer, request)
        seconds.append(_processor_seconds() - before)
    return seconds[1:]


def _processor_seconds() -> float:
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(of.user + of.system for of in times)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=500)
    parser.add_argument("--peers", type=int, default=50)
    parser.add_argument("--links", type=int, default=5)
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="vizpub-fed-") as name:
        folder, system = Path(name), System(asked.peers, asked.links)
        with spark_session(folder / "spark", quick=True) as spark:
            seconds = fed(spark, folder, system, asked.appends)
        size = (folder / "runs/fed" / FILE).stat().st_size
    tenth = max(1, asked.appends // 10)
    early, late = median(seconds[tenth : 2 * tenth]), median(seconds[-tenth:])
    told = {
        "appends": asked.appends,
        "early": round(early, 2),
        "late": round(late, 2),
        "late/early": round(late / early, 2),
        "slowest/median": round(max(seconds) / median(seconds), 2),
        "run.json": size,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
