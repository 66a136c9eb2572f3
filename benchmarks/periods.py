"""The periods of links from reports, by DuckDB: the yardstick of the steps of an ingest.

python -m benchmarks.periods RECORD.json REPORTS OUT.parquet LAST
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from benchmarks.steps import Steps
from vizpub.model.clock import OPEN

_PERIODS = """COPY (
    SELECT peer::INTEGER AS src, neighbor::INTEGER AS dst, min("interval") AS valid_from,
        CASE WHEN max("interval") = $last THEN $open ELSE max("interval") + 1 END AS valid_to
    FROM (
        SELECT *, "interval" - row_number() OVER (
            PARTITION BY peer, neighbor ORDER BY "interval") AS stretch
        FROM (
            SELECT peer, "interval", unnest(neighbors) AS neighbor
            FROM read_ndjson($files, columns = {
                peer: 'VARCHAR', "interval": 'BIGINT', neighbors: 'VARCHAR[]'})
            WHERE peer IS NOT NULL))
    GROUP BY peer, neighbor, stretch
    ORDER BY src, dst, valid_from) TO '{out}' (FORMAT parquet)"""
"""Consecutive intervals have the same difference to their rank. Every peer reports in every
interval here, so a gap is the end of a link.
"""


def main() -> None:
    """Write the periods, as src, dst, valid_from and valid_to, sorted."""
    record, reports, out, last = sys.argv[1:]
    steps = Steps()
    with duckdb.connect() as connection, steps.step("periods"):
        connection.execute(
            _PERIODS.replace("{out}", out),
            {"files": f"{reports}/*.ndjson.gz", "last": int(last), "open": OPEN},
        )
    steps.write(Path(record), "duckdb")


if __name__ == "__main__":
    main()
