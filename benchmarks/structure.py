"""The stage of metrics in Spark's local mode, from versions to Parquet.

python -m benchmarks.structure TOLD.json VERSIONS INTERVALS OUT [VARIANT...]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.steps import Steps
from benchmarks.variants import TIMES, VARIANTS
from vizpub.analytics import steps
from vizpub.analytics.options import Measures
from vizpub.analytics.steps import TaskContext
from vizpub.analytics.structure import (
    settled_schemas,
)
from vizpub.ingest.spark.session import spark_session
from vizpub.ingest.tasks.sink import OutputTable, write_tables
from vizpub.ingest.tasks.staged import UNREPORTED
from vizpub.ingest.tasks.steps import BlockFold, StepInput, TaskBlock, cut_blocks
from vizpub.model.clock import Clock
from vizpub.model.metrics import METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from vizpub.model.tables import table
from vizpub.runstore.integrity import dataset
from vizpub.runstore.stores.place import RunPlace


def _measure(
    spark: SparkSession, versions: Path, clock: Clock, measures: Measures, out: Path
) -> None:
    """As ingest measures a run whose source reports only its overlay and subscriptions."""
    shutil.rmtree(out, ignore_errors=True)
    periods = {
        path.stem: dataset([path], table(path.stem).arrow) for path in versions.glob("*.parquet")
    }
    peers = periods["presence"].count_rows()
    numbers = pa.array(range(peers), pa.int32())
    tables = periods | {"peers": pa.table({"peer": numbers, "is_reporter": pa.repeat(True, peers)})}
    others = {"unreported": UNREPORTED.arrow, **settled_schemas()}
    chosen = (*steps.KERNELS, *steps.METRICS)
    for name in steps.input_names(chosen) - tables.keys():
        schema = others[name] if name in others else table(name).arrow
        tables[name] = schema.empty_table()
    reported = frozenset({*periods, "duplicates"})
    context = TaskContext(
        clock.first,
        clock.last,
        clock.ticks_per_interval,
        reported,
        clock.first,
        clock.first,
        measures,
    )
    parts = cut_blocks(context, peers, spark.sparkContext.defaultParallelism)
    makes = (METRICS_PEERS, METRICS_TOPICS, METRICS_OVERLAY)
    inputs = {name: [StepInput(rows)] for name, rows in tables.items()}
    rows = spark.range(0, len(parts), 1, len(parts))
    fold = BlockFold(chosen, inputs, makes, [TaskBlock(part) for part in parts])
    places = {of.name: OutputTable(out / of.name, of.arrow) for of in makes}
    write_tables(rows, fold, RunPlace(out, None), places)


def main() -> None:
    """Measure the variants, the first of them also in the cold session."""
    record, folder, intervals, out, *chosen = sys.argv[1:]
    times, clock = Steps(), Clock(last=int(intervals) - 1)
    times.at("session")
    with spark_session(Path(out) / ".spark") as spark:
        times.at("session")
        for name in chosen or VARIANTS:
            for _ in range(TIMES[name]):
                with times.step(name):
                    _measure(spark, Path(folder), clock, VARIANTS[name], Path(out) / name)
        times.write(Path(record), "pyspark", "pyarrow", cores=spark.sparkContext.defaultParallelism)


if __name__ == "__main__":
    main()
