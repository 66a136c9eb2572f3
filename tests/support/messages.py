"""The tables of messages, made in one process by the fold that an ingest uses."""

from __future__ import annotations

import pyarrow as pa

from analytics.message_fold import ROWS, MessageFold
from ingest.messages import MessageTables, rows_by_message


def message_tables(told: MessageTables) -> dict[str, pa.Table]:
    """The tables by name; all arrivals are reported, not only the first ones."""
    fold = MessageFold(
        told.receptions is not None,
        told.subscriptions is not None,
        rejections_known=told.rejections is not None,
    )
    found: dict[str, list[pa.RecordBatch]] = {table.name: [] for table in fold.tables}
    for name, rows in fold(rows_by_message(told, 1).toArrow().cast(ROWS).to_batches()):
        found[name].append(rows)
    schemas = {table.name: table.arrow for table in fold.tables}
    return {name: pa.Table.from_batches(rows, schemas[name]) for name, rows in found.items()}
