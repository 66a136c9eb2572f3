"""Tables of a run: as Spark would write them, made without it, or never written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vizpub.graphstore.load.reading import rows_since
from vizpub.model.run import Boundary
from vizpub.model.tables import LINKS, table
from vizpub.runstore.integrity import stored_schema
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.views import VIEWS
from vizpub.runstore.writer import RunWriter


@dataclass(frozen=True)
class Batches:
    """Tables as a load reads them, from plain rows; a value that a row does not have is null."""

    told: Mapping[str, Sequence[dict[str, Any]]]
    size: int = 37
    """Rows per Arrow batch: few, so that tables have several."""
    boundaries: Mapping[str, Boundary] = field(default_factory=dict)
    """Since when nothing changed before it, by the identity of the tables then."""
    current: bool = True
    """Whether the run still has them."""

    def row_groups(self, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        schema, rows = table(name).arrow, self.told.get(name, [])
        for start in range(0, len(rows), self.size):
            part = [
                {f: row.get(f) for f in schema.names} for row in rows[start : start + self.size]
            ]
            yield f"part-0.parquet#{start}", pa.RecordBatch.from_pylist(part, schema)

    __call__ = row_groups

    def rows_from(self, name: str, column: str, least: int) -> Iterator[pa.RecordBatch]:
        return rows_since(self.row_groups(name), column, least)

    def rows(self, name: str) -> int:
        return len(self.told.get(name, []))

    def boundary_since(self, tables: str) -> Boundary | None:
        return self.boundaries.get(tables)

    def is_current(self) -> bool:
        return self.current


EMPTY = Manifest("monday", "edges", (), {})


def links(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    topics = [None if draw < 0 else int(draw) for draw in rng.integers(-1, 3, count)]
    columns = {
        "src": rng.integers(0, 30, count),
        "dst": rng.integers(0, 30, count),
        "layer": rng.choice(["mesh", "overlay"], count),
        "topic": pa.array(topics, pa.int32()),
        "valid_from": (start := rng.integers(0, 50, count)),
        "valid_to": start + rng.integers(1, 9, count),
    }
    return pa.table(columns).cast(LINKS.arrow)


def write(writer: RunWriter, name: str, rows: pa.Table, files: int = 3, group: int = 7) -> Path:
    """A generation of a table, as Spark would write it: some files, some row groups."""
    directory = writer.fresh_directory(name)
    directory.mkdir(parents=True)
    (directory / "_SUCCESS").touch()
    rows = rows.cast(stored_schema(rows.schema))
    size = -(-len(rows) // files)
    for i in range(files):
        part = rows.slice(i * size, size)
        path = directory / f"part-{i:05}-{directory.name}.parquet"
        pq.write_table(part, path, row_group_size=group)
    return directory


def add(writer: RunWriter, stage: str, name: str, rows: pa.Table, **changes: object) -> None:
    assert writer.manifest is not None
    entry = writer.entry(write(writer, name, rows))
    writer.commit(writer.manifest.with_stage(stage, {name: entry}, **changes))


def everything(directory: Path) -> set[str]:
    """All files, without their further names in views."""
    found = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return {str(path) for path in found if VIEWS not in path.parts}
