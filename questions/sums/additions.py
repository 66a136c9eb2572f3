"""Adds up what is counted per interval."""

from __future__ import annotations

import pyarrow as pa

from vizpub.model.columns import CONTROL_COLUMNS
from vizpub.model.errors import UseError
from vizpub.model.metrics import COUNTS
from vizpub.questions.churn.turnover import TURNOVER_COUNTS

PER_INTERVAL_ONLY = "only counts per interval can be added"

_OF = ("peer", "peer_name", "layer", "topic", "topic_name", "group", "kind")
"""What a row of totals is of."""


def add_intervals(rows: pa.Table) -> pa.Table:
    """Add up a metrics table over its intervals: a row per peer, topic or kind of control
    messages, or one of the overlay.

    `intervals` counts them; every column of `COUNTS` has the sum of the known values, null if
    none is known, or the sum has more than 64 bits.

    Raises: UseError if the table has no intervals, or no column that can be added.
    """
    added = {*COUNTS, *TURNOVER_COUNTS, *CONTROL_COLUMNS}
    counts = [name for name in rows.column_names if name in added]
    if "interval" not in rows.column_names or "message" in rows.column_names or not counts:
        raise UseError(
            f"{PER_INTERVAL_ONLY}: use control, overlay, peers, topics or turnover, with "
            f"columns of {', '.join(COUNTS)}"
        )
    of = [f'"{name}"' for name in _OF if name in rows.column_names]
    sums = [f'TRY_CAST(sum("{name}") AS BIGINT) AS "{name}"' for name in counts]
    columns = ", ".join([*of, "count(interval) AS intervals", *sums])
    import duckdb

    with duckdb.connect() as database:
        database.register("counted", rows)
        return database.sql(
            f"SELECT {columns} FROM counted GROUP BY ALL ORDER BY ALL"
        ).to_arrow_table()
