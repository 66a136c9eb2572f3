"""What it costs that a run outlasts a power cut: `python -m benchmarks.durability`.

    sync     a commit of as many files as a small run has, with and without their CRCs, against
             bare fsyncs of those files and all their directories, and of the files alone
    read     a table with the checksums of its pages looked at, against without

All of a part are taken in turn in the same run: the least and the median of so many, in seconds,
and as multiples of the last.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.watched import ROOT
from vizpub.model.tables import TABLES
from vizpub.runstore import durable
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.writer import RunWriter, writing

FILES = 39
"""As many files as a small run has."""
_BYTES = 20_000
_ROWS = 2_000_000

Parts = dict[str, Callable[[Path], float]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durability", description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="of each pair (default: 7)")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="vizpub-durability-", dir=ROOT) as folder:
        place = Path(folder)
        print_times("sync", in_turn(place, _commit_parts(), options.runs))
        print_times("read", in_turn(place, _reading_parts(place), options.runs))


def print_times(part: str, seconds: dict[str, list[float]]) -> None:
    """A line for each, with the ratio to the last."""
    *_, last = seconds.values()
    for name, took in seconds.items():
        for statistic in (min, median):
            ratio = statistic(took) / statistic(last)
            print(f"{part:8}{name:32}{statistic.__name__:8}{statistic(took):9.4f} s{ratio:8.2f}")


def in_turn(place: Path, measured: Parts, runs: int) -> dict[str, list[float]]:
    """The seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in measured}
    for number in range(runs):
        for name, measure in measured.items():
            times[name].append(measure(place / f"{name}-{number}"))
    return times


def _commit_parts() -> Parts:
    return {
        "commit and CRCs": partial(_time_commit, bare=None),
        "commit": partial(_time_commit, bare=None, listed=True),
        "bare, files and directories": partial(_time_commit, bare="*"),
        "bare, files": partial(_time_commit, bare="*.parquet"),
    }


def _time_commit(place: Path, bare: str | None, listed: bool = False) -> float:
    """Newly written files made into a run; or only synced, one after another."""
    with writing(place, "run") as new:
        new.begin(manifest := Manifest("run", "edges", (), {}))
        rows = pa.table({"a": np.random.default_rng(1).integers(0, 2**62, _BYTES // 8)})
        directories = [_write_table(new, TABLES[i % len(TABLES)].name, rows) for i in range(FILES)]
        start = time.perf_counter()
        if bare:
            for path in new.directory.rglob(bare):
                durable.sync_file(path)
            return time.perf_counter() - start
        entries = {f"staged/parsed.{i}": new.entry(path) for i, path in enumerate(directories)}
        start = time.perf_counter() if listed else start
        new.commit(manifest.with_stage("all", entries))
        return time.perf_counter() - start


def _write_table(new: RunWriter, name: str, rows: pa.Table) -> Path:
    directory = new.fresh_directory(name)
    directory.mkdir(parents=True)
    pq.write_table(rows, directory / "part-0.parquet", write_page_checksum=True)
    return directory


def _reading_parts(place: Path) -> Parts:
    rng, path = np.random.default_rng(1), place / "read.parquet"
    columns: dict[str, Any] = {
        "src": rng.integers(0, 2000, _ROWS),
        "valid_from": np.sort(rng.integers(0, 1000, _ROWS)),
        "valid_to": rng.integers(0, 2**40, _ROWS),
        "x": rng.random(_ROWS),
    }
    pq.write_table(pa.table(columns), path, write_page_checksum=True)

    def read(_: Path, *, checked: bool) -> float:
        start = time.perf_counter()
        with pq.ParquetFile(path, page_checksum_verification=checked) as file:
            file.read(use_threads=False)
        return time.perf_counter() - start

    return {"checked": partial(read, checked=True), "unchecked": partial(read, checked=False)}


if __name__ == "__main__":
    main()
