"""The tables of messages, made by the steps that an ingest uses."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tests.support.texts import given, made_tables
from vizpub.analytics.messages.message_fold import MessageFold
from vizpub.analytics.steps import Step
from vizpub.ingest.tasks.staged import ARRIVALS, UNREPORTED, ingest_step

ROWS = ingest_step("message_rows")


def message_tables(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Receptions, missed and metrics/messages of publications, receptions, subscriptions,
    rejections and unreported; what `tables` lacks is not known. All arrivals are reported, not only
    the first ones.
    """
    staged = {
        of.name: _shaped(tables[name], of.arrow)
        for name, of in (("receptions", ARRIVALS), ("unreported", UNREPORTED))
        if name in tables
    }
    fold = MessageFold(
        "receptions" in tables,
        "subscriptions" in tables,
        rejections_known="rejections" in tables,
    )
    follow = Step("messages", "", "", whole=("message_rows",), fold=fold)
    found = made_tables([ROWS, follow], {**tables, **staged}, (), given(messages=(0, 1 << 40)))
    return {table.name: found.get(table.name, table.arrow.empty_table()) for table in fold.tables}


def _shaped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema; those that the rows lack are null."""
    nothing = pa.nulls(len(rows))
    columns = [rows[of.name] if of.name in rows.column_names else nothing for of in schema]
    nullable = pa.schema([of.with_nullable(True) for of in schema])
    return pa.table(columns, schema.names).cast(nullable)
