"""Rows (vizpub.ingest.inputs.reader) on their way from the tasks that read to those that fold, in
packs; and in order for the fold.

For Spark, a pack of many rows is one row. To move two million reports by themselves, and to let
Spark sort them, took 8 s of processor time more than packs take, of 87 s for their whole ingest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from vizpub.analytics.step_profile import at_work, follow
from vizpub.analytics.steps import open_database
from vizpub.ingest.inputs.reader import ROWS, BatchTransform
from vizpub.ingest.tasks.sink import Fold

PACKS = "part int, rows binary"
"""Columns of packs: rows of one part, as an Arrow stream."""
_FORMAT = pa.ipc.IpcWriteOptions(compression="lz4")
_AT_ONCE = 1 << 13
_FOLD = "ingest/tasks/fold.py"
_PACK, _SORT = ("ingest/tasks/packs.py:" + name for name in ("pack_rows", "OrderedFold"))


def pack_rows(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    """Pack rows (RECORDS) by the part to which their key belongs."""
    return iter(
        follow(_PACK, _pack_batches(follow(_PACK, batches, makes=False, taker=_PACK), parts))
    )


def _pack_batches(batches: Iterable[pa.RecordBatch], parts: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        keys = batch["peer"].dictionary_encode()
        hashes = [crc32((key or "").encode()) % parts for key in keys.dictionary.to_pylist()]
        part = np.array([*hashes, 0], np.int32)[keys.indices.fill_null(len(hashes)).to_numpy()]
        order = np.argsort(part, kind="stable")
        ordered, part = batch.take(pa.array(order)), part[order]
        numbers, begins = np.unique(part, return_index=True)
        ends = [*begins[1:].tolist(), len(part)]
        streams = [
            _stream(ordered.slice(begin, end - begin))
            for begin, end in zip(begins.tolist(), ends, strict=True)
        ]
        yield pa.record_batch({"part": numbers, "rows": pa.array(streams, pa.binary())})


def _stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_FORMAT) as writer:
        writer.write_batch(rows)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def unpack_rows(packs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of packs."""
    for batch in packs:
        for rows in batch["rows"]:
            yield from pa.ipc.open_stream(rows.as_buffer())


class OrderedFold(NamedTuple):
    """A fold that sorts rows by key, time, rank, file and line, and gives them to another fold."""

    fold: Fold
    rows: BatchTransform = unpack_rows
    """Function from a task's batches to the rows."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (table name, rows) pairs."""
        with open_database() as database:
            rows = follow(_SORT, self.rows(batches), makes=False, taker=_SORT)
            database.register("rows", pa.RecordBatchReader.from_batches(ROWS, rows))
            with at_work(_SORT):
                ordered = database.sql("FROM rows ORDER BY peer, time, rank, file, line")
                reader = ordered.to_arrow_reader(_AT_ONCE)
            yield from follow(_FOLD, self.fold(follow(_SORT, reader, taker=_FOLD)))

    def summary(self) -> str | None:
        """Return the summary of the fold."""
        return self.fold.summary()
