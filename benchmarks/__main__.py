"""Compare vizpub with other programs: `python -m benchmarks --size S`, see benchmarks/README.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping

from benchmarks import results
from benchmarks.appended import append
from benchmarks.estimates import ingest_sampled
from benchmarks.growth import growth
from benchmarks.history import history
from benchmarks.inputs import REWRITERS
from benchmarks.page import EXPLORER, write_page
from benchmarks.parts import Bench, Part, ingest_part, kernels, one_by_one, periods, spark
from benchmarks.sizes import SIZES
from benchmarks.stored import stored, stored_demo
from benchmarks.watched import ROOT
from vizpub.model.errors import VizpubError

USUAL: dict[str, Part] = {
    "kernels": kernels,
    "spark": spark,
    "periods": periods,
    "ingest": ingest_part("ingest", "none"),
    "ingest-exact": ingest_part("ingest-exact", "exact"),
    "igraph": one_by_one("igraph", 10),
    "networkit": one_by_one("networkit", 10),
    "networkx": one_by_one("networkx", 2),
    "raphtory": one_by_one("raphtory", 2),
}
MORE: dict[str, Part] = {
    **{f"ingest-{how}": ingest_part(f"ingest-{how}", "none", how) for how in REWRITERS},
    "growth": growth,
    "append": append,
    "history": history,
    "ingest-sampled": ingest_sampled,
    "stored": stored,
    "stored-demo": stored_demo,
}
"""Measured only on request: they take as long as all others together."""
ALL: dict[str, tuple[str, ...]] = {
    "S": (*USUAL, "history", "stored-demo"),
    "L": (
        *("kernels", "spark", "periods", "ingest", "ingest-reordered", "ingest-escaped"),
        *("igraph", "networkit", "networkx", "growth", "append", "stored"),
    ),
    "XL": ("periods", "ingest-sampled"),
}
"""What the page shows, by size; beside it the explorer and the snapshots."""


def main() -> None:
    """Run the requested parts, keep their outcomes, and write the page from all outcomes."""
    parts = {**USUAL, **MORE}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="S")
    parser.add_argument("--only", nargs="*", choices=parts, default=list(USUAL), metavar="PART")
    parser.add_argument(
        "--full", action="store_true", help="measure every interval with the other programs"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="measure all that the page shows and this commit has not measured",
    )
    options = parser.parse_args()
    if options.all:
        measure_all(parts, options.full)
        return
    measure_parts(Bench(SIZES[options.size], options.full), {n: parts[n] for n in options.only})
    write_page()


def measure_parts(bench: Bench, parts: Mapping[str, Part]) -> None:
    """Run parts, and keep their outcomes."""
    for name, part in parts.items():
        start, load = time.monotonic(), results.load()
        print(f"{bench.size.name} {name} …", end=" ", flush=True)
        results.keep(bench.size.name, name, part(bench), load)
        print(f"{time.monotonic() - start:.0f} s", flush=True)


def measure_all(parts: Mapping[str, Part], full: bool) -> None:
    """Measure what this commit has not measured; the page is written after each size."""
    for size, names in ALL.items():
        places = {name: results.place_of(size, name) for name in names}
        old = {name: parts[name] for name in names if not results.is_current(places[name])}
        measure_parts(Bench(SIZES[size], full), old)
        write_page()
    if not results.is_current(results.place_of(EXPLORER, "figures")):
        has_demo = (ROOT / "vizpub-data/runs/gossipsub").exists()
        demo = ["--demo", "vizpub-data", "gossipsub"] if has_demo else []
        subprocess.run([sys.executable, "-m", "benchmarks.explore", *demo], check=True)
    subprocess.run([sys.executable, "-m", "benchmarks.snapshots", "--resume"], check=True)


if __name__ == "__main__":
    try:
        main()
    except VizpubError as error:
        sys.exit(f"\n{error}")
