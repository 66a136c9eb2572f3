"""Compare vizpub with other programs: `python -m benchmarks --size S`, see benchmarks/README.md."""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks import results
from benchmarks.appended import append
from benchmarks.growth import growth
from benchmarks.history import history
from benchmarks.page import write_page
from benchmarks.parts import Bench, Part, ingest_part, kernels, one_by_one, periods, spark
from benchmarks.sizes import SIZES
from vizpub.model.errors import VizpubError

USUAL: dict[str, Part] = {
    "kernels": kernels,
    "spark": spark,
    "periods": periods,
    "ingest": ingest_part("ingest", "none"),
    "ingest-exact": ingest_part("ingest-exact", "exact"),
    "igraph": one_by_one("igraph", 10),
    "networkx": one_by_one("networkx", 2),
    "raphtory": one_by_one("raphtory", 2),
}
MORE: dict[str, Part] = {"growth": growth, "append": append, "history": history}
"""Measured only on request: they take as long as all others together."""


def main() -> None:
    """Run the requested parts, keep their outcomes, and write the page from all outcomes."""
    parts = {**USUAL, **MORE}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="S")
    parser.add_argument("--only", nargs="*", choices=parts, default=list(USUAL), metavar="PART")
    parser.add_argument(
        "--full", action="store_true", help="measure every interval with the other programs"
    )
    options = parser.parse_args()
    bench = Bench(SIZES[options.size], options.full)
    for name in options.only:
        start, load = time.monotonic(), results.load()
        print(f"{options.size} {name} …", end=" ", flush=True)
        results.keep(options.size, name, parts[name](bench), load)
        print(f"{time.monotonic() - start:.0f} s", flush=True)
    write_page()


if __name__ == "__main__":
    try:
        main()
    except VizpubError as error:
        sys.exit(f"\n{error}")
