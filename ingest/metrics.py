"""The stage of an ingest that measures every interval, by the steps of analytics.steps: a task of
Spark does a block of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from analytics import engines, steps, structure
from analytics.steps import Given, Step
from analytics.structure import Versions
from ingest.job import Job
from ingest.sink import AsTheyAre
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


def measure(job: Job, overlay: Versions | None) -> OfIntervals:
    """Periods, traffic and messages → metrics/peers, metrics/topics and metrics/overlay; from the
    boundary on, with what stays of earlier appends. `overlay` is null where presence is unknown.
    """
    since = max(job.plan.since, job.clock.first)
    chosen, tasks = _steps(job, overlay, since), 1 if job.small else job.parallelism
    whole = Given(
        max(job.plan.boundary.interval, job.clock.first),
        job.clock.last,
        job.clock.ticks_per_interval,
        _known(job),
        since,
        job.clock.first,
        job.measuring.measures,
        job.measuring.layers,
    )
    parts = blocks(whole, job.rows("peers"), tasks)
    makes = [job.manifest.definition(name) for name in sorted(names_of(OfIntervals))]
    fold = StepFold(chosen, _inputs(job, chosen), makes, parts)
    numbers = job.spark.range(0, len(parts), 1, len(parts))
    job.write_rows(numbers, fold, {table.name: table.arrow for table in makes})
    return OfIntervals()


def _steps(job: Job, overlay: Versions | None, since: int) -> tuple[Step, ...]:
    """The steps with the engine's own ones; an engine of Spark's frames measures right away."""
    if overlay is None:
        return (*steps.KERNELS, *steps.METRICS)
    clock = replace(job.clock, first=since)
    choice = engines.engine_for(job.measuring.engine, overlay, clock)
    job.update(engines={"structure": choice.description})
    if choice.engine == "kernels":
        return (*steps.KERNELS, *steps.METRICS)
    rows = engines.by_graphframes(overlay, clock, job.measuring.measures)
    job.write_rows(rows, AsTheyAre(_MEASURED), {_MEASURED: structure.STRUCTURE_SCHEMA})
    return steps.METRICS


_MEASURED = "staged/measured"


def _known(job: Job) -> frozenset[str]:
    """What the steps may ask for."""
    facts = {"duplicates"} if job.is_known(DUPLICATES) else set()
    return frozenset(job.manifest.tables.keys() | job.here | facts)


def _inputs(job: Job, chosen: Sequence[Step]) -> dict[str, list[Taken]]:
    """The tables that steps take."""
    own = job.manifest.own
    staged = {"unreported": steps.UNREPORTED, "measured": structure.structure_schema(own)}
    settled = structure.settled_schemas(own)
    return {
        name: _settled(job, name.replace("settled_", "metrics/"), settled[name])
        if name in settled
        else _taken(job, f"staged/{name}", staged[name])
        if name in staged
        else _taken(job, name, job.manifest.definition(name).arrow)
        for name in steps.inputs(chosen)
    }


def _taken(job: Job, name: str, schema: pa.Schema) -> list[Taken]:
    """The rows of a table that the intervals from the boundary on need; none if it is unknown."""
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
