"""What it costs that a run outlasts a power cut: `python -m benchmarks.durability`.

    sync     a commit of as many files as a small run has, against bare fsyncs of as many files, all
             one after another, and as many at a time
    read     a table with the checksums of its pages looked at, against without
    ingest   the demo's, in one session: as it is, against without syncing, CRCs, checksums of pages

Each pair is taken in turn in the same run; the least of so many counts, in seconds, and the ratio.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.watched import ROOT
from ingest import durable, intact, job
from ingest.manifest import Manifest
from ingest.pipeline import IngestRequest, ingest_in
from ingest.session import spark_session
from ingest.writer import RunWriter, writing
from model.tables import TABLES

FILES = 39
"""As many as a small run has."""
_BYTES = 20_000
_ROWS = 2_000_000
_AT_ONCE = 8

Pair = dict[str, Callable[[Path], float]]


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durability", description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="of each pair (default: 7)")
    parser.add_argument("--ingests", type=int, default=3, help="of the demo's (default: 3)")
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="vizpub-durability-", dir=ROOT) as folder:
        place = Path(folder)
        told("sync", least(place, _syncing(), asked.runs))
        told("read", least(place, _reading(place), asked.runs))
        with spark_session(place / ".spark", quick=True) as spark:
            pair: Pair = {
                "as it is": partial(_ingested, spark),
                "without": lambda where: _without(partial(_ingested, spark, where)),
            }
            _ingested(spark, place / "first")
            told("ingest", least(place, pair, asked.ingests))


def told(what: str, seconds: dict[str, float]) -> None:
    """A line for each, and how many times the last it took."""
    *_, least_of_last = seconds.values()
    for name, took in seconds.items():
        print(f"{what:8}{name:28}{took:9.4f} s{took / least_of_last:8.2f}")


def least(place: Path, measured: Pair, runs: int) -> dict[str, float]:
    """The least seconds of each, taken in turn."""
    found: dict[str, list[float]] = {name: [] for name in measured}
    for number in range(runs):
        for name, measure in measured.items():
            found[name].append(measure(place / f"{name}-{number}"))
    return {name: min(of) for name, of in found.items()}


def _syncing() -> Pair:
    return {
        "commit": _committed,
        "commit, CRCs apart": partial(_committed, apart=True),
        "bare, at once": partial(_bare, at_once=_AT_ONCE),
        "bare, one by one": partial(_bare, at_once=1),
    }


def _committed(place: Path, apart: bool = False) -> float:
    """Files of a run that were just written, made a run."""
    with writing(place, "run") as writer:
        writer.begin(manifest := Manifest("run", "edges", (), {}))
        names = [meant.name for meant in TABLES]
        rows = pa.table({"a": np.random.default_rng(1).integers(0, 2**62, _BYTES // 8)})
        made = [_written(writer, names[i % len(names)], rows) for i in range(FILES)]
        begun = time.perf_counter()
        entries = {f"staged/parsed.{i}": writer.entry(path) for i, path in enumerate(made)}
        listed = time.perf_counter()
        writer.commit(manifest.with_stage("all", entries))
        return time.perf_counter() - (listed if apart else begun)


def _written(writer: RunWriter, name: str, rows: pa.Table) -> Path:
    directory = writer.fresh_directory(name)
    directory.mkdir(parents=True)
    pq.write_table(rows, directory / "part-0.parquet", write_page_checksum=True)
    return directory


def _bare(place: Path, at_once: int) -> float:
    place.mkdir()
    paths = [place / str(number) for number in range(FILES)]
    for path in paths:
        path.write_bytes(os.urandom(_BYTES))
    begun = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(durable.sync_file, paths))
    return time.perf_counter() - begun


def _reading(place: Path) -> Pair:
    rng, path = np.random.default_rng(1), place / "read.parquet"
    columns: dict[str, Any] = {
        "src": rng.integers(0, 2000, _ROWS),
        "vf": np.sort(rng.integers(0, 1000, _ROWS)),
        "vt": rng.integers(0, 2**40, _ROWS),
        "x": rng.random(_ROWS),
    }
    pq.write_table(pa.table(columns), path, write_page_checksum=True)

    def read(_: Path, *, checked: bool) -> float:
        begun = time.perf_counter()
        with pq.ParquetFile(path, page_checksum_verification=checked) as file:
            file.read(use_threads=False)
        return time.perf_counter() - begun

    return {"checked": partial(read, checked=True), "unchecked": partial(read, checked=False)}


def _ingested(spark: Any, place: Path) -> float:
    request = IngestRequest((str(ROOT / "examples/gossipsub"),), "demo", place)
    begun = time.perf_counter()
    with writing(place, "demo") as writer:
        ingest_in(spark, writer, request)
    seconds = time.perf_counter() - begun
    rmtree(place)
    return seconds


def _without(measure: Callable[[], float]) -> float:
    """Measure with nothing synced, and no checksum made or looked at."""
    nothing: dict[str, Any] = {"sync_file": lambda _: None, "sync_directory": lambda _: None}
    unchecked = {"parquet.page.write-checksum.enabled": "false"}
    written = {**vars(job)["_WRITTEN"], **unchecked}
    with (
        patch.multiple(durable, **nothing),
        patch.multiple(intact, _crc=lambda *_: 0),
        patch.multiple(job, _WRITTEN=written, _READ={}),
    ):
        return measure()


if __name__ == "__main__":
    main()
