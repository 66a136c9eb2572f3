"""Columns of Arrow tables as arrays, and back."""

from __future__ import annotations

import pyarrow as pa

from vizpub.analytics.messages.hops import UNKNOWN, Flags
from vizpub.analytics.messages.message_measures import MaskedValues
from vizpub.model.arrays import Int64s


def ints(rows: pa.Table, name: str) -> Int64s:
    """A column as int64; null becomes -1."""
    values: Int64s = rows[name].cast(pa.int64()).fill_null(UNKNOWN).to_numpy()
    return values


def flags(values: pa.ChunkedArray) -> Flags:
    """A column without nulls, as booleans."""
    booleans: Flags = values.to_numpy()
    return booleans


def nullable_flags(values: pa.ChunkedArray) -> MaskedValues:
    """Flags, some of which may be null."""
    return MaskedValues(flags(values.fill_null(False)), flags(values.is_valid()))


def nullable_column(rows: pa.Table, name: str) -> MaskedValues:
    """A column that may hold any number."""
    return MaskedValues(rows[name].fill_null(0).to_numpy(), flags(rows[name].is_valid()))


def record_batch(columns: dict[str, MaskedValues], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the schema; what is not known is null."""
    arrays = [
        pa.array(columns[field.name].values, mask=~columns[field.name].known) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
