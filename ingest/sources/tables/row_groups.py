"""Reading of Parquet files by row group, so that damage to one leaves the others readable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from vizpub.ingest.inputs.files import InputFile, locate
from vizpub.ingest.inputs.reader import InputRow, InputSplit, refusal_row

_MAGIC = b"PAR1"
BATCH = 4096


def schema_of(path: str, head: bytes) -> pa.Schema | None:
    """Return the schema of a file that begins with `head`; null if it is not valid Parquet."""
    if not head.startswith(_MAGIC):
        return None
    try:
        with open_parquet(path) as parquet:
            return parquet.schema_arrow
    except (OSError, pa.ArrowException):
        return None


@contextmanager
def open_parquet(path: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for the block; its pages must fit their checksums, if they have any.

    Raises: OSError, ArrowException.
    """
    filesystem, inside = locate(path)
    with (
        filesystem.open_input_file(inside) as file,
        pq.ParquetFile(file, page_checksum_verification=True) as parquet,
    ):
        yield parquet


def group_splits(number: int, path: str, parquet: pq.ParquetFile) -> Iterator[InputSplit]:
    """Yield a split for each row group; its `line` is the number of its first row."""
    first = 1
    for group in range(parquet.num_row_groups):
        yield InputSplit(number, path, group, group + 1, first)
        first += parquet.metadata.row_group(group).num_rows
    if not parquet.num_row_groups:
        yield InputSplit(number, path, 0, 0, first)


def splits_by_group(files: Iterable[tuple[int, InputFile]]) -> list[InputSplit]:
    """Return a split for each row group of numbered files."""
    splits: list[InputSplit] = []
    for number, file in files:
        with open_parquet(file.path) as parquet:
            splits += group_splits(number, file.path, parquet)
    return splits


def read_group(
    split: InputSplit,
    parquet: pq.ParquetFile,
    check: Callable[[pa.RecordBatch, int], Iterator[InputRow]],
    columns: Sequence[str] | None = None,
    size: int = BATCH,
) -> Iterator[InputRow]:
    """Apply `check` to each batch of a row group, of up to `size` rows, and the number of its first
    row. It converts all values before it yields or counts a row; a row whose values cannot be
    converted is refused. If the rest cannot be read, the last row is a refusal with the reason;
    small batches then save more of the rows before it.
    """

    def check_convertible(batch: pa.RecordBatch, first: int) -> Iterator[InputRow]:
        try:
            rows = check(batch, first)
            head = [*islice(rows, 1)]
        except (pa.ArrowException, UnicodeDecodeError) as error:
            if len(batch) == 1:
                yield refusal_row(split, first, f"cannot be converted: {error}")
                return
            half = len(batch) // 2
            yield from check_convertible(batch.slice(0, half), first)
            yield from check_convertible(batch.slice(half), first + half)
            return
        yield from head
        yield from rows

    number, groups = split.line, range(split.start, split.stop or 0)
    checked_to = number
    for rows in (size, BATCH) if size > BATCH else (size,):
        number = split.line
        try:
            for batch in parquet.iter_batches(rows, row_groups=groups, columns=columns):
                new = batch.slice(max(checked_to - number, 0))
                if len(new):
                    yield from check_convertible(new, number + len(batch) - len(new))
                number += len(batch)
                checked_to = max(checked_to, number)
            return
        except (OSError, pa.ArrowException) as error:
            reason = f"cannot be read from here on: {error}"
    yield refusal_row(split, number, reason)


def are_texts(schema: pa.Schema) -> bool:
    """Return True if all columns of a schema can be read as text."""
    try:
        for field in schema:
            array_as_bytes(pa.nulls(0, field.type))
    except pa.ArrowException:
        return False
    return True


def array_as_bytes(values: pa.Array) -> pa.Array:
    """Cast values to bytes, which need not be UTF-8. Raises: ArrowException for nested types."""
    kind = values.type
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return (values if is_binary else values.cast(pa.string())).cast(pa.binary())


def rows_as_bytes(batch: pa.RecordBatch) -> Iterator[dict[str, bytes | None]]:
    """Yield the rows, as bytes by column."""
    names = batch.schema.names
    for row in zip(*(array_as_bytes(batch[name]).to_pylist() for name in names), strict=True):
        yield dict(zip(names, row, strict=True))


def row_as_json(values: Mapping[str, bytes | None]) -> bytes:
    """Encode a row as JSON, without absent values."""
    present = {n: v.decode("utf-8", "replace") for n, v in values.items() if v is not None}
    return msgspec.json.encode(present)
