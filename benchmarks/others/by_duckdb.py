"""DuckDB: rows → versions."""

from __future__ import annotations

import duckdb

from benchmarks.others.islands import run

_ISLANDS = """
    COPY (
        SELECT src, dst, min("interval") AS valid_from, max("interval") + 1 AS valid_to
        FROM (
            SELECT *, "interval" - row_number() OVER (
                PARTITION BY src, dst ORDER BY "interval"
            ) AS island
            FROM read_parquet('{rows}')
        )
        GROUP BY src, dst, island
    ) TO '{made}' (FORMAT parquet)
"""


def islands(rows: str, made: str) -> None:
    """Within an island, the interval and its place among the link's rows grow alike."""
    duckdb.sql(_ISLANDS.format(rows=rows, made=made))


if __name__ == "__main__":
    run("duckdb", islands)
