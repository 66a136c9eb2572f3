"""The metrics of tables made by hand, by the steps of an ingest."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from analytics import steps
from analytics.steps import UNREPORTED, Given
from analytics.structure import STRUCTURE_SCHEMA, settled_schemas
from ingest.steps import blocks
from model.clock import Clock
from model.tables import table

MADE = ("metrics/peers", "metrics/topics", "metrics/overlay")


def metrics_of(
    clock: Clock, tables: Mapping[str, pa.Table], *facts: str, tasks: int = 1
) -> dict[str, pa.Table]:
    """The metrics tables; what `tables` lacks is unknown. `facts`: links, duplicates.

    Metrics that are among `tables` are not made, but taken. `settled_peers` … are rows of metrics.
    """
    given = Given(clock.first, clock.last, clock.ticks_per_interval, frozenset({*tables, *facts}))
    chosen = [one for one in steps.METRICS if one.makes not in tables or one.makes == "structure"]
    staged = {"measured": STRUCTURE_SCHEMA, "unreported": UNREPORTED, **settled_schemas()}
    taken = {"measured": tables["structure"]} if "structure" in tables else {}
    for name in steps.inputs(chosen) - taken.keys():
        schema = staged[name] if name in staged else table(name).arrow
        rows = tables.get(name, schema.empty_table())
        taken[name] = rows.select(schema.names).cast(schema)
    makes = [table(name) for name in MADE if name not in tables]
    made: dict[str, list[pa.RecordBatch]] = {of.name: [] for of in makes}
    for block in blocks(given, 1, tasks):
        parts = {name: [rows] for name, rows in taken.items()}
        for name, rows in steps.compute(chosen, parts, makes, block):
            made[name].append(rows)
    return {of.name: pa.Table.from_batches(made[of.name], of.arrow) for of in makes}
