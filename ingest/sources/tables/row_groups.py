"""Reads Parquet files by row group, so damage to one leaves the others readable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from vizpub.ingest.inputs.reader import Row, Split, refused

_MAGIC = b"PAR1"
BATCH = 4096


def schema_of(path: str, head: bytes) -> pa.Schema | None:
    """The schema of a file that begins with `head`; null if it is not valid Parquet."""
    if not head.startswith(_MAGIC):
        return None
    try:
        return pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return None


@contextmanager
def opened(path: str) -> Iterator[pq.ParquetFile]:
    """The file; its pages must fit their checksums, if they have any. Raises: OSError,
    ArrowException.
    """
    filesystem, inside = fs.FileSystem.from_uri(path)
    with (
        filesystem.open_input_file(inside) as file,
        pq.ParquetFile(file, page_checksum_verification=True) as parquet,
    ):
        yield parquet


def group_splits(number: int, path: str, parquet: pq.ParquetFile) -> Iterator[Split]:
    """A split for each row group of the file of that number; `line` is that of its first row."""
    first = 1
    for group in range(parquet.num_row_groups):
        yield Split(number, path, group, group + 1, first)
        first += parquet.metadata.row_group(group).num_rows
    if not parquet.num_row_groups:
        yield Split(number, path, 0, 0, first)


def read_group(
    split: Split,
    parquet: pq.ParquetFile,
    judged: Callable[[pa.RecordBatch, int], Iterator[Row]],
    columns: Sequence[str] | None = None,
    size: int = BATCH,
) -> Iterator[Row]:
    """Apply `judged` to the batches of a row group, of up to `size` rows, and the numbers of their
    first rows. If the rest cannot be read, the last row is a refusal with the reason; small batches
    then save more of the rows before.
    """
    number, groups = split.line, range(split.start, split.stop or 0)
    judged_to = number
    for rows in (size, BATCH) if size > BATCH else (size,):
        number = split.line
        try:
            for batch in parquet.iter_batches(rows, row_groups=groups, columns=columns):
                new = batch.slice(max(judged_to - number, 0))
                if len(new):
                    yield from judged(new, number + len(batch) - len(new))
                number += len(batch)
                judged_to = max(judged_to, number)
            return
        except (OSError, pa.ArrowException) as error:
            reason = f"cannot be read from here on: {error}"
    yield refused(split, number, reason)
