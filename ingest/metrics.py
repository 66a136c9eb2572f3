"""The stage of an ingest that makes the metrics of peers, topics and the overlay, by steps that are
texts (analytics.steps): a Spark task does a block of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from analytics import engines, steps, structure
from analytics.steps import Given
from ingest.job import Job
from ingest.stage import kept_as, names_of
from ingest.steps import StepFold, Taken, blocks
from model.run import DUPLICATES
from runstore.manifest import Part, Since
from runstore.store import StoredTable


@dataclass(frozen=True)
class OfIntervals:
    """The metrics of every interval."""

    peers: DataFrame | None = kept_as("metrics/peers")
    topics: DataFrame | None = kept_as("metrics/topics")
    overlay: DataFrame | None = kept_as("metrics/overlay")


def measure(job: Job) -> OfIntervals:
    """Structure, traffic and messages → metrics/peers, metrics/topics and metrics/overlay; from the
    boundary on, with what stays of earlier appends.
    """
    clock = job.clock
    made = {name.removeprefix("staged/") for name in job.manifest.tables.keys() | job.here}
    whole = Given(
        max(job.plan.boundary.interval, clock.first),
        clock.last,
        clock.ticks_per_interval,
        frozenset({*made, *({"duplicates"} if job.is_known(DUPLICATES) else ())}),
        job.measuring.layers,
    )
    parts = blocks(whole, job.rows("peers"), 1 if job.small else job.parallelism)
    makes = [job.manifest.definition(name) for name in sorted(names_of(OfIntervals))]
    fold = StepFold(steps.METRICS, _inputs(job), makes, parts)
    numbers = job.spark.range(0, len(parts), 1, len(parts))
    job.write_rows(numbers, fold, {table.name: table.arrow for table in makes})
    return OfIntervals()


def _inputs(job: Job) -> dict[str, list[Taken]]:
    """The tables that the metrics' steps take."""
    of_structure = structure.structure_schema(job.manifest.own)
    staged = {"structure": of_structure, "unreported": steps.UNREPORTED}
    taken = {name: _taken(job, f"staged/{name}", schema) for name, schema in staged.items()}
    taken["measured"] = taken.pop("structure")
    for name, schema in structure.settled_schemas(job.manifest.own).items():
        taken[name] = _settled(job, name.replace("settled_", "metrics/"), schema)
    others = steps.inputs(steps.METRICS) - taken.keys()
    return taken | {name: _taken(job, name) for name in others}


def _taken(job: Job, name: str, schema: pa.Schema | None = None) -> list[Taken]:
    """The rows of a table that the intervals from the boundary on need; none if it is unknown.
    `schema` where model.tables lacks the table.
    """
    schema = schema or job.manifest.definition(name).arrow
    parts, since = job.plan.stays(name)
    older = _stored(job, name, parts, schema, since)
    if name in job.here:
        return [Taken(job.here[name]), *older]
    if entry := job.manifest.tables.get(name):
        older += _stored(job, name, [entry.newest], schema)
    return older or [Taken(schema.empty_table())]


def _settled(job: Job, name: str, schema: pa.Schema) -> list[Taken]:
    """Columns of a metrics table in the settled intervals from the boundary on."""
    before = pc.field("interval") < job.plan.since
    found = _stored(job, name, job.plan.settled(name), schema)
    kept = [Taken(rows, before if where is None else where & before) for rows, where in found]
    return kept or [Taken(schema.empty_table())]


def _stored(
    job: Job, name: str, parts: Sequence[Part], schema: pa.Schema, since: Since | None = None
) -> list[Taken]:
    stored = StoredTable(job.writer.directory, name, tuple(parts), schema)
    return [Taken(*found) for found in stored.datasets(since)]


def measured_by(job: Job, engine: str) -> dict[str, str]:
    """As analytics.engines.measured_by, of the whole run. An append counts earlier intervals again
    only where some were sampled.
    """
    name = "metrics/overlay"
    overlay = job.manifest.tables[name]

    def of_parts(*parts: Part) -> dict[str, str]:
        stored = StoredTable(job.writer.directory, name, parts, job.manifest.definition(name).arrow)
        return engines.measured_by(engine, job.measuring.measures, stored.scan())

    now = of_parts(overlay.newest)
    if job.base is None or (
        now == job.base.engines and not any("sampled" in by for by in now.values())
    ):
        return now
    return of_parts(*overlay.parts)
