"""The metrics of tables made by hand, by the steps of an ingest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from vizpub.analytics import steps
from vizpub.analytics.options import Measures
from vizpub.analytics.steps import TaskContext
from vizpub.analytics.structure import STRUCTURE_SCHEMA, settled_schemas
from vizpub.ingest.tasks.staged import UNREPORTED
from vizpub.ingest.tasks.steps import cut_blocks
from vizpub.model.clock import Clock
from vizpub.model.tables import table

MADE = ("metrics/peers", "metrics/topics", "metrics/overlay")


def metrics_of(
    clock: Clock,
    tables: Mapping[str, pa.Table],
    *facts: str,
    tasks: int = 1,
    layers: tuple[str, ...] | None = None,
    since: int | None = None,
) -> dict[str, pa.Table]:
    """The metrics tables; what `tables` lacks is unknown. `facts`: duplicates.

    Metrics that are among `tables` are not made, but taken. `settled_peers` … are rows of metrics,
    of the intervals before `since`.
    """
    whole = TaskContext(
        clock.first, clock.last, clock.ticks_per_interval, frozenset({*tables, *facts}),
        clock.first if since is None else since, clock.first, layers=layers,
    )  # fmt: skip
    chosen = [one for one in (*steps.KERNELS, *steps.METRICS) if one.makes not in tables]
    staged = {"measured": STRUCTURE_SCHEMA, "unreported": UNREPORTED.arrow, **settled_schemas()}
    taken = {}
    for name in steps.input_names(chosen):
        schema = staged[name] if name in staged else table(name).arrow
        rows = tables.get(name, schema.empty_table())
        taken[name] = [rows.select(schema.names).cast(schema)]
    makes = [table(name) for name in MADE if name not in tables]
    made: dict[str, list[pa.RecordBatch]] = {of.name: [] for of in makes}
    for block in cut_blocks(whole, 1, tasks):
        for name, rows in steps.compute_tables(chosen, taken, makes, block):
            made[name].append(rows)
    return {of.name: pa.Table.from_batches(made[of.name], of.arrow) for of in makes}


def structure_of(
    clock: Clock, tables: Mapping[str, pa.Table], measures: Measures = Measures()
) -> pa.Table:
    """What the kernels measure of presence, links and subscriptions: vizpub.analytics.structure's
    rows."""
    found: list[pa.Table] = []

    def keep(versions: pa.Table, given: TaskContext) -> pa.Table:
        assert steps.KERNELS[1].function
        found.append(steps.KERNELS[1].function(versions, given))
        return found[-1]

    whole = TaskContext(
        clock.first, clock.last, clock.ticks_per_interval, frozenset(tables),
        clock.first, clock.first, measures,
    )  # fmt: skip
    chosen = (steps.KERNELS[0], replace(steps.KERNELS[1], function=keep))
    taken = {name: [tables[name]] for name in steps.input_names(chosen)}
    assert not [*steps.compute_tables(chosen, taken, (), whole)]
    return found[0]
