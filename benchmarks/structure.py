"""The structure stage in Spark's local mode, from versions to Parquet, and on to metrics tables.

python -m benchmarks.structure TOLD.json VERSIONS INTERVALS OUT [VARIANT...]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from analytics import steps
from analytics.options import Measures
from analytics.steps import UNREPORTED, Given
from analytics.structure import (
    STRUCTURE_SCHEMA,
    Versions,
    folded_by_kernels,
    settled_schemas,
)
from benchmarks.steps import Steps
from benchmarks.variants import TIMES, VARIANTS
from ingest.sink import Place, write
from ingest.spark.session import spark_session
from ingest.steps import StepFold, Taken, blocks
from model.clock import Clock
from model.metrics import METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from model.tables import table
from runstore.intact import dataset


def _read(spark: SparkSession, folder: Path) -> Versions:
    tables = {path.stem: spark.read.parquet(str(path)) for path in folder.glob("*.parquet")}
    return Versions(**tables, peers=tables["presence"].count(), begins=None)


def _measure(versions: Versions, clock: Clock, measures: Measures, out: Path) -> None:
    """As ingest measures a large run: the tasks that have the rows write them."""
    rows, fold = folded_by_kernels(versions, clock, measures)
    shutil.rmtree(out, ignore_errors=True)
    write([(rows, fold)], {fold.table: Place(out, STRUCTURE_SCHEMA)})


def _write_metrics(spark: SparkSession, structure: Path, peers: int, clock: Clock) -> None:
    """Write the metrics tables of a run whose source reports only its overlay and subscriptions."""
    known = frozenset({"structure", "subscriptions", "links", "duplicates"})
    whole = Given(clock.first, clock.last, clock.ticks_per_interval, known)
    numbers = pa.array(range(peers), pa.int32())
    tables = {
        "measured": dataset(sorted(structure.glob("*.parquet")), STRUCTURE_SCHEMA),
        "peers": pa.table({"peer": numbers, "is_reporter": pa.repeat(True, peers)}),
    }
    others = {"unreported": UNREPORTED, **settled_schemas()}
    for name in steps.inputs(steps.METRICS) - tables.keys():
        schema = others[name] if name in others else table(name).arrow
        tables[name] = schema.empty_table()
    makes = (METRICS_PEERS, METRICS_TOPICS, METRICS_OVERLAY)
    parts = blocks(whole, peers, spark.sparkContext.defaultParallelism)
    taken = {name: [Taken(rows)] for name, rows in tables.items()}
    fold = StepFold(steps.METRICS, taken, makes, parts)
    rows = spark.range(0, len(parts), 1, len(parts))
    write([(rows, fold)], {of.name: Place(structure.parent / of.name, of.arrow) for of in makes})


def main() -> None:
    """Measure the variants, the first of them also in the cold session."""
    told, folder, intervals, out, *chosen = sys.argv[1:]
    times, clock = Steps(), Clock(last=int(intervals) - 1)
    times.at("session")
    with spark_session(Path(out) / ".spark") as spark:
        versions = _read(spark, Path(folder))
        times.at("session")
        for name in chosen or VARIANTS:
            for _ in range(TIMES[name]):
                with times.step(name):
                    _measure(versions, clock, VARIANTS[name], Path(out) / name)
        with times.step("metrics tables"):
            _write_metrics(spark, Path(out) / name, versions.peers, clock)
        times.write(Path(told), "pyspark", "pyarrow", cores=spark.sparkContext.defaultParallelism)


if __name__ == "__main__":
    main()
