"""Adds up what is counted per interval."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

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
    none is known.

    Raises: UseError if the table has no intervals, or no column that can be added.
    """
    added = {*COUNTS, *TURNOVER_COUNTS, *CONTROL_COLUMNS}
    counts = [name for name in rows.column_names if name in added]
    if "interval" not in rows.column_names or "message" in rows.column_names or not counts:
        raise UseError(
            f"{PER_INTERVAL_ONLY}: use control, overlay, peers, topics or turnover, with "
            f"columns of {', '.join(COUNTS)}"
        )
    of = [name for name in _OF if name in rows.column_names]
    options = pc.ScalarAggregateOptions(min_count=1)
    sums = [("interval", "count"), *((name, "sum", options) for name in counts)]
    totals = (
        rows.group_by(of)
        .aggregate(sums)
        .select([*of, "interval_count", *(f"{name}_sum" for name in counts)])
    )
    totals = totals.rename_columns([*of, "intervals", *counts])
    return totals.sort_by([(name, "ascending") for name in of]) if of else totals
