"""Runs of one table, written as Spark would write them, without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingest.manifest import Manifest
from ingest.writer import RunWriter
from model.tables import LINKS

EMPTY = Manifest("monday", "edges", (), {})


def links(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    topics = [None if draw < 0 else int(draw) for draw in rng.integers(-1, 3, count)]
    columns = {
        "src": rng.integers(0, 30, count),
        "dst": rng.integers(0, 30, count),
        "layer": rng.choice(["mesh", "overlay"], count),
        "topic": pa.array(topics, pa.int32()),
        "vf": (start := rng.integers(0, 50, count)),
        "vt": start + rng.integers(1, 9, count),
    }
    return pa.table(columns).cast(LINKS.arrow)


def write(writer: RunWriter, name: str, rows: pa.Table, files: int = 3, group: int = 7) -> Path:
    """A generation of a table, as Spark would write it: some files, some row groups."""
    directory = writer.fresh_directory(name)
    directory.mkdir(parents=True)
    (directory / "_SUCCESS").touch()
    size = -(-len(rows) // files)
    for i in range(files):
        part = rows.slice(i * size, size)
        pq.write_table(part, directory / f"part-{i:05}.parquet", row_group_size=group)
    return directory


def add(writer: RunWriter, stage: str, name: str, rows: pa.Table, **changes: object) -> None:
    assert writer.manifest is not None
    entry = writer.entry(write(writer, name, rows))
    writer.commit(writer.manifest.with_stage(stage, {name: entry}, **changes))


def everything(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}
