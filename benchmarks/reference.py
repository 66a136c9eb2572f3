"""The kernels' results in some intervals, and whether other programs agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.sizes import Size
from vizpub.analytics.blocks import LinkPeriods, PresencePeriods, SubscriptionPeriods, measure_block
from vizpub.analytics.structure import structure_rows
from vizpub.model.errors import CheckFailed

_CLOSE = 1e-9
_SHOWN = 10


class Versions(NamedTuple):
    """The arguments of `measure_block`. A link that stays open ends with the run."""

    links: LinkPeriods
    presence: PresencePeriods
    subscriptions: SubscriptionPeriods


class Measured(NamedTuple):
    """The graph's columns of the metrics tables of these names."""

    peers: pa.Table
    topics: pa.Table
    overlay: pa.Table


def read_versions(folder: Path, intervals: int) -> Versions:
    """The versions that `benchmarks.inputs` made."""
    return Versions(
        LinkPeriods(*_columns(folder / "links.parquet", intervals)),
        PresencePeriods(*_columns(folder / "presence.parquet", intervals)),
        SubscriptionPeriods(*_columns(folder / "subscriptions.parquet", intervals)),
    )


def _columns(path: Path, intervals: int) -> list[np.ndarray]:
    rows = pq.read_table(path)
    ends = pc.min_element_wise(rows["valid_to"], intervals)
    rows = rows.set_column(rows.num_columns - 1, "valid_to", ends)
    return [column.cast(pa.int32()).to_numpy() for column in rows.columns]


def sample(size: Size, count: int) -> list[int]:
    """That many intervals from the first to the last, evenly spaced."""
    return sorted({*np.linspace(0, size.intervals - 1, count).round().astype(int).tolist()})


def reference(versions: Versions, intervals: Sequence[int]) -> Measured:
    """All results of those intervals, by the kernels."""
    rows = (structure_rows(measure_block(*versions, at, at)) for at in intervals)
    return parts_of(pa.concat_tables(rows))


def parts_of(structure: pa.Table) -> Measured:
    """The tables that rows of `vizpub.analytics.structure` hold."""
    inner = (
        pa.Table.from_batches(map(pa.RecordBatch.from_struct_array, lists.chunks))
        for lists in (pc.list_flatten(structure[name]) for name in ("topics", "overlay"))
    )
    return Measured(structure.drop_columns(["topics", "overlay"]), *inner)


def rows_of(folder: Path, intervals: Sequence[int]) -> pa.Table:
    """The rows of those intervals from a folder of Parquet files."""
    chosen = pc.field("interval").isin(list(intervals))
    return ds.dataset(folder, format="parquet").to_table(filter=chosen)


def require_same(who: str, ours: pa.Table, theirs: pa.Table, *keys: str) -> None:
    """Check that both have the same rows, and the same values in each shared column.

    Raises: CheckFailed naming columns and the first rows that differ.
    """
    order = [(key, "ascending") for key in keys]
    shared = [name for name in ours.column_names if name in theirs.column_names]
    ours, theirs = ours.select(shared).sort_by(order), theirs.select(shared).sort_by(order)
    if ours.num_rows != theirs.num_rows:
        raise CheckFailed(f"{who}: {theirs.num_rows} rows, {ours.num_rows} by the kernels")
    wrong = [line for name in shared for line in _differences(name, ours, theirs)]
    if wrong:
        raise CheckFailed(f"{who} does not agree with the kernels", wrong)


def _differences(name: str, ours: pa.Table, theirs: pa.Table) -> list[str]:
    a, b = (_comparable(rows[name]) for rows in (ours, theirs))
    if a.dtype == object:
        same = a == b
    else:
        same = np.isclose(a, b, rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
    return [f"{name}, row {row}: {b[row]}, not {a[row]}" for row in np.flatnonzero(~same)[:_SHOWN]]


def _comparable(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers as doubles, null = NaN; other values unchanged."""
    if pa.types.is_string(column.type):
        return np.array(column.to_pylist(), object)
    # The open end is no double, but the nearest one will do.
    values: np.ndarray = column.cast(pa.float64(), safe=False).to_numpy()
    return values
