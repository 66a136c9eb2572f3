"""The stage of an ingest that measures every interval, by the steps of vizpub.analytics.steps: a
task of Spark does a block of intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from vizpub.analytics import engines, steps, structure
from vizpub.analytics.steps import Step, TaskContext
from vizpub.analytics.structure import Versions, select_layers
from vizpub.ingest.job import Job
from vizpub.ingest.measures.choice import NO_FRAMES
from vizpub.ingest.tasks.frames import frame_of_files
from vizpub.ingest.tasks.sink import PassThrough
from vizpub.ingest.tasks.staged import UNREPORTED
from vizpub.ingest.tasks.steps import StepInput, TaskBlock, cut_blocks
from vizpub.model.errors import UseError
from vizpub.model.run import DUPLICATES, SAMPLED
from vizpub.model.tables import PRESENCE
from vizpub.runstore.store import StoredTable

_MAKES = ("metrics/overlay", "metrics/peers", "metrics/topics")


def measure(job: Job) -> None:
    """Make metrics/peers, metrics/topics and metrics/overlay from periods, traffic and messages.

    An append measures from its boundary on, and keeps earlier metrics.
    """
    since = max(job.plan.since, job.clock.first)
    chosen = _choose_steps(job, since)
    constants = TaskContext(
        first=max(job.plan.boundary.interval, job.clock.first),
        last=job.clock.last,
        ticks=job.clock.ticks_per_interval,
        known=job.tables
        | ({"duplicates"} if job.is_known(DUPLICATES) else set())
        | (set() if job.is_known(SAMPLED) else {"sample"}),
        since=since,
        begins=job.clock.first,
        measures=job.measuring.measures,
        layers=job.measuring.layers,
    )
    parts = cut_blocks(constants, job.most_peers, job.parallelism)
    if len(parts) > 1 and job.small:  # perhaps only because the peers are not numbered yet
        job.flush()
        parts = cut_blocks(constants, job.most_peers, 1)
    makes = [job.manifest.definition(name) for name in _MAKES]
    own_metrics = job.manifest.own
    staged = {"unreported": UNREPORTED.arrow, "measured": structure.structure_schema(own_metrics)}
    settled = structure.settled_schemas(own_metrics)

    def rows_of(name: str) -> list[StepInput]:
        if name in settled:
            return _settled_rows(job, name.replace("settled_", "metrics/"), settled[name])
        if name in staged:
            return job.written_rows(f"staged/{name}", staged[name])
        return job.needed_rows(name)

    tables = {name: rows_of(name) for name in steps.input_names(chosen)}
    job.make_tables(chosen, makes, [TaskBlock(part, tables) for part in parts])
    job.flush(last=True)


def _choose_steps(job: Job, since: int) -> tuple[Step, ...]:
    """Return the steps of the chosen engine; GraphFrames measures right away."""
    if PRESENCE.name not in job.tables:  # unknown
        return (*steps.KERNELS, *steps.METRICS)
    if job.small:  # a task that read the input can measure it, and nothing is counted beforehand
        job.update(engines={"structure": "kernels"})
        return (*steps.KERNELS, *steps.METRICS)
    clock, engine = replace(job.clock, first=since), job.measuring.engine
    versions = _VersionsReader(job)
    choice = engines.choose_engine(engine, job.most_peers, versions, clock)
    job.update(engines={"structure": choice.description})
    if choice.engine == "kernels":
        return (*steps.KERNELS, *steps.METRICS)
    rows = engines.measure_with_graphframes(versions(), clock, job.measuring.measures)
    job.write(rows, PassThrough(_MEASURED), {_MEASURED: structure.STRUCTURE_SCHEMA})
    return steps.METRICS


@dataclass(frozen=True)
class _VersionsReader:
    """Reads the periods that intervals from the boundary on need, as Spark frames."""

    job: Job

    def __call__(self) -> Versions:
        presence, links, subscriptions = map(self._frame, ("presence", "links", "subscriptions"))
        return Versions(presence, select_layers(links, self.job.measuring.layers), subscriptions)

    def _frame(self, name: str) -> DataFrame:
        job = self.job
        if job.writer.place.store:
            raise UseError(NO_FRAMES)
        (older, since), entry = job.plan.needed_parts(name), job.manifest.tables.get(name)
        place, schema = (job.writer.directory, name), job.manifest.definition(name).arrow
        parts = (entry.newest,) if entry else ()
        newest = frame_of_files(job.spark, StoredTable(*place, parts, schema))
        if not older:
            return newest
        return newest.unionAll(frame_of_files(job.spark, StoredTable(*place, older, schema), since))


_MEASURED = "staged/measured"


def _settled_rows(job: Job, name: str, schema: pa.Schema) -> list[StepInput]:
    """Return the rows of a metrics table for settled intervals after the boundary."""
    is_settled = pc.field("interval") < job.plan.since
    return [
        StepInput(rows, is_settled if where is None else where & is_settled)
        for rows, where in job.rows_of_parts(name, job.plan.settled_parts(name), schema)
    ]


def engines_used(job: Job, engine: str) -> dict[str, str]:
    """Return the engine of each measure of the run, and how many intervals were sampled.

    An append counts earlier intervals again only if some were sampled.
    """

    def of_parts(*, newest: bool) -> dict[str, str]:
        def stored(name: str) -> StoredTable:
            entry, schema = job.manifest.tables[name], job.manifest.definition(name).arrow
            parts = (entry.newest,) if newest else entry.parts
            return StoredTable(job.writer.directory, name, parts, schema)

        is_sampled = pc.field("topic_average_path_length_error") > 0
        return engines.engine_by_part(
            *(engine, job.measuring.measures, stored("metrics/overlay").scan()),
            stored("metrics/topics").scan(["interval"], is_sampled),
        )

    now = of_parts(newest=True)
    if job.base is None or (
        now == job.base.engines and not any("sampled" in by for by in now.values())
    ):
        return now
    return of_parts(newest=False)
