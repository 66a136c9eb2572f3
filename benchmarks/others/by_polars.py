"""polars: rows → versions."""

from __future__ import annotations

import polars as pl

from benchmarks.others.islands import run

_ROOM = 2**20
"""More than the number of intervals, or of peers."""


def islands(rows: str, made: str) -> None:
    """Source, target and interval as one number, sorted: in an island each number follows the one
    before. Five times as fast as sorting by three columns and comparing each of them."""
    link = pl.col("src").cast(pl.Int64) * _ROOM + pl.col("dst")
    numbers = (
        pl.scan_parquet(rows)
        .select((link * _ROOM + pl.col("interval")).alias("number"))
        .collect()["number"]
        .sort()
    )
    begins = (numbers.diff() != 1).fill_null(True)
    ends = begins.shift(-1).fill_null(True)
    spans = pl.DataFrame({"first": numbers.filter(begins), "last": numbers.filter(ends)})
    spans.select(
        (pl.col("first") // _ROOM**2).cast(pl.Int32).alias("src"),
        (pl.col("first") // _ROOM % _ROOM).cast(pl.Int32).alias("dst"),
        (pl.col("first") % _ROOM).alias("valid_from"),
        (pl.col("last") % _ROOM + 1).alias("valid_to"),
    ).write_parquet(made)


if __name__ == "__main__":
    run("polars", islands)
