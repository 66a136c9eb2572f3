"""Adds up what is counted per interval."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.errors import UseError
from vizpub.model.metrics import COUNTS

PER_INTERVAL_ONLY = "only counts per interval can be added"

_OF = ("peer", "peer_name", "topic", "topic_name")
"""What a row of totals is of."""


def added(rows: pa.Table) -> pa.Table:
    """The totals of a metrics table over its intervals: a row for each peer or topic, or a single
    one of the overlay. `intervals` says of how many; every column of `COUNTS` has the sum of what
    is known, null where no interval is.

    Raises: UseError if the table has no intervals, or no column that can be added.
    """
    counts = [name for name in rows.column_names if name in COUNTS]
    if "interval" not in rows.column_names or "message" in rows.column_names or not counts:
        raise UseError(
            f"{PER_INTERVAL_ONLY}: use overlay, peers or topics, with "
            f"columns of {', '.join(COUNTS)}"
        )
    of = [name for name in _OF if name in rows.column_names]
    known = pc.ScalarAggregateOptions(min_count=1)
    sums = [("interval", "count"), *((name, "sum", known) for name in counts)]
    found = (
        rows.group_by(of)
        .aggregate(sums)
        .select([*of, "interval_count", *(f"{name}_sum" for name in counts)])
    )
    found = found.rename_columns([*of, "intervals", *counts])
    return found.sort_by([(of[0], "ascending")]) if of else found
