"""One run with hubs, stage by stage: `python -m benchmarks.skew --peers 100000 --intervals 10`.

Prints a Markdown table of the stages of an ingest, and some results. Peers link to others with a
probability that falls with a power of their rank, as in the static model of Goh, Kahng and Kim
(2001): of 100,000 peers with five links each, the first has some 10,000. In every interval a share
of the links is drawn again. Betweenness is left out; metrics that exceed `--max-edge-visits` are
sampled.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.steps import Steps
from benchmarks.watched import Program, measure
from vizpub.analytics.options import Measures
from vizpub.ingest.measures.choice import MeasurementOptions
from vizpub.ingest.pipeline import IngestRequest, ingest
from vizpub.runstore.store import open_run

RUN = "skew"
EXPONENT = 0.8
FILES = 8
SHOWN = (
    "diameter",
    "average_path_length",
    "clustering_mean",
    "weak_components",
    "strong_components",
)


@dataclass(frozen=True)
class Skewed:
    """An overlay's history with hubs."""

    peers: int
    intervals: int
    links: int = 5
    """Links of each peer, in every interval."""
    churn: float = 0.05
    """Share of the links that are drawn again in an interval."""
    seed: int = 1

    def versions(self) -> Iterator[pa.Table]:
        """src, dst, valid_from, valid_to (null = still there), by the interval they end in."""
        rng = np.random.default_rng(self.seed)
        src = np.repeat(np.arange(self.peers), self.links)
        dst, since = self._drawn(src, rng), np.zeros(src.size, np.int64)
        for interval in range(1, self.intervals):
            places = rng.choice(src.size, round(src.size * self.churn), replace=False)
            ends = np.full(places.size, interval)
            yield pa.table(
                {
                    "src": src[places],
                    "dst": dst[places],
                    "valid_from": since[places],
                    "valid_to": ends,
                }
            )
            dst[places], since[places] = self._drawn(src[places], rng), interval
        still = pa.nulls(src.size, pa.int64())
        yield pa.table({"src": src, "dst": dst, "valid_from": since, "valid_to": still})

    def _drawn(self, src: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """The peer that each links to, never itself. Hubs are spread over the numbers."""
        weights = np.cumsum(np.arange(1, self.peers + 1) ** -EXPONENT)
        ranks = np.searchsorted(weights, rng.random(src.size) * weights[-1])
        dst: npt.NDArray[np.int64]
        dst = np.random.default_rng(self.seed).permutation(self.peers)[ranks]
        dst[dst == src] = (dst[dst == src] + 1) % self.peers
        return dst

    def write(self, folder: Path) -> list[Path]:
        """Parquet for the source `edges`, in files that are read in parallel."""
        rows = pa.concat_tables(self.versions())
        paths = [folder / f"{number}.parquet" for number in range(FILES)]
        for number, path in enumerate(paths):
            pq.write_table(
                rows.filter(pc.equal(pc.bit_wise_and(rows["src"], FILES - 1), number)), path
            )
        return paths


def measured(told: Path, workspace: Path, max_edge_visits: float, paths: list[str]) -> None:
    """The measured process: an ingest, with a step for each of its stages."""
    steps = Steps()

    measuring = MeasurementOptions(
        measures=Measures(betweenness=False, max_edge_visits=max_edge_visits)
    )
    steps.at("session")
    ingest(IngestRequest(tuple(paths), RUN, workspace, measuring=measuring), steps.progress)
    steps.write(told, "pyspark")


def report(skewed: Skewed, max_edge_visits: float) -> None:
    """Generate, ingest and print."""
    with tempfile.TemporaryDirectory(prefix="vizpub-skew-") as folder:
        workspace = Path(folder)
        paths = map(str, skewed.write(workspace))
        arguments = ["--workspace", folder, "--max-edge-visits", str(max_edge_visits), *paths]
        told = measure(Program("benchmarks.skew", arguments))
        print(f"{skewed}\n\n| stage | s | processor s | peak MB |\n| --- | --- | --- | --- |")
        for name, step in told["steps"].items():
            numbers = f"{step['first']:.1f} | {step['cpu_mean']:.1f} | {step['peak_mb']:,}"
            print(f"| {name} | {numbers} |")
        print(f"\nall processes together at most {told['peak_mb']:,} MB")
        run = open_run(workspace, RUN)
        degrees = run.read("metrics/peers", ["interval", "peer", "degree"])["degree"]
        print(f"largest degree {pc.max(degrees)}; last interval:")
        last = run.read("metrics/overlay").slice(skewed.intervals - 1).to_pylist()[0]
        for name, value in last.items():
            if value is not None and name.startswith(SHOWN):
                print(f"{name} {value:.6g}")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=int, default=100_000)
    parser.add_argument("--intervals", type=int, default=10)
    parser.add_argument(
        "--max-edge-visits", type=float, default=1e8, help="links walked per interval"
    )
    parser.add_argument("--workspace", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    told = parser.parse_intermixed_args()
    if told.workspace:
        measured(Path(told.files[0]), told.workspace, told.max_edge_visits, told.files[1:])
    else:
        report(Skewed(told.peers, told.intervals), told.max_edge_visits)


if __name__ == "__main__":
    main()
