"""The stage of an ingest that measures every interval, by the steps of vizpub.analytics.steps: a
task of Spark does a block of intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from vizpub.analytics import engines, steps, structure
from vizpub.analytics.steps import Given, Step
from vizpub.analytics.structure import Versions, chosen_layers
from vizpub.ingest.job import Job
from vizpub.ingest.tasks.sink import AsTheyAre
from vizpub.ingest.tasks.staged import UNREPORTED
from vizpub.ingest.tasks.steps import Block, Taken, blocks
from vizpub.model.run import DUPLICATES
from vizpub.model.tables import PRESENCE
from vizpub.runstore.manifest import Part
from vizpub.runstore.store import StoredTable

_MAKES = ("metrics/overlay", "metrics/peers", "metrics/topics")


def measure(job: Job) -> None:
    """Periods, traffic and messages → metrics/peers, metrics/topics and metrics/overlay; from the
    boundary on, with what stays of earlier appends.
    """
    since = max(job.plan.since, job.clock.first)
    chosen = _steps(job, since)
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
    parts = blocks(whole, job.most_peers, job.parallelism)
    if len(parts) > 1 and job.small:  # perhaps only because the peers are not numbered yet
        job.flush()
        parts = blocks(whole, job.most_peers, 1)
    makes = [job.manifest.definition(name) for name in _MAKES]
    tables = _inputs(job, chosen)
    job.make(chosen, makes, [Block(part, tables) for part in parts])
    job.flush(last=True)


def _steps(job: Job, since: int) -> tuple[Step, ...]:
    """The steps with the engine's own ones; an engine of Spark's frames measures right away."""
    if PRESENCE.name not in job.tables:  # unknown
        return (*steps.KERNELS, *steps.METRICS)
    clock, asked = replace(job.clock, first=since), job.measuring.engine
    versions = _Versions(job)
    choice = engines.engine_for(asked, job.most_peers, versions, clock)
    job.update(engines={"structure": choice.description})
    if choice.engine == "kernels":
        return (*steps.KERNELS, *steps.METRICS)
    rows = engines.by_graphframes(versions(), clock, job.measuring.measures)
    job.write(rows, AsTheyAre(_MEASURED), {_MEASURED: structure.STRUCTURE_SCHEMA})
    return steps.METRICS


@dataclass(frozen=True)
class _Versions:
    """The periods that the intervals from the boundary on need, as frames of Spark."""

    job: Job

    def __call__(self) -> Versions:
        presence, links, subscriptions = map(self._frame, ("presence", "links", "subscriptions"))
        return Versions(presence, chosen_layers(links, self.job.measuring.layers), subscriptions)

    def _frame(self, name: str) -> DataFrame:
        (older, since), entry = self.job.plan.stays(name), self.job.manifest.tables.get(name)
        newest = self.job.rows_of(name, [entry.newest] if entry else [])
        return newest.unionAll(self.job.rows_of(name, older, since)) if older else newest


_MEASURED = "staged/measured"


def _known(job: Job) -> frozenset[str]:
    """What the steps may ask for."""
    facts = {"duplicates"} if job.is_known(DUPLICATES) else set()
    return job.tables | facts


def _inputs(job: Job, chosen: Sequence[Step]) -> dict[str, list[Taken]]:
    """The tables that steps take."""
    own = job.manifest.own
    staged = {"unreported": UNREPORTED.arrow, "measured": structure.structure_schema(own)}
    settled = structure.settled_schemas(own)
    return {
        name: _settled(job, name.replace("settled_", "metrics/"), settled[name])
        if name in settled
        else job.stored(f"staged/{name}", staged[name])
        if name in staged
        else job.needed(name)
        for name in steps.inputs(chosen)
    }


def _settled(job: Job, name: str, schema: pa.Schema) -> list[Taken]:
    """Columns of a metrics table in the settled intervals from the boundary on."""
    before = pc.field("interval") < job.plan.since
    return [
        Taken(rows, before if where is None else where & before)
        for rows, where in job.taken(name, job.plan.settled(name), schema)
    ]


def measured_by(job: Job, engine: str) -> dict[str, str]:
    """As vizpub.analytics.engines.measured_by, of the whole run. An append counts earlier intervals
    again only where some were sampled.
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
