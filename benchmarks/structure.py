"""The structure stage in Spark's local mode, from versions to Parquet, and on to metrics tables.

python -m benchmarks.structure TOLD.json VERSIONS INTERVALS OUT [VARIANT...]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from analytics.options import Measures
from analytics.structure import STRUCTURE_SCHEMA, BlockFold, Versions, folded_by_kernels
from analytics.summaries import Metrics, Seen, overlay_table, peers_table, topics_table
from benchmarks.steps import Steps
from benchmarks.variants import TIMES, VARIANTS
from ingest.sink import AsTheyAre, Place, write
from ingest.spark.session import spark_session
from model.clock import Clock


def _read(spark: SparkSession, folder: Path) -> Versions:
    tables = {path.stem: spark.read.parquet(str(path)) for path in folder.glob("*.parquet")}
    return Versions(**tables, peers=tables["presence"].count(), begins=None)


def _measure(versions: Versions, clock: Clock, measures: Measures, out: Path) -> DataFrame:
    """As ingest measures a large run: the tasks that have the rows write them."""
    rows, fold = folded_by_kernels(versions, clock, measures)
    return _written(rows, fold, STRUCTURE_SCHEMA, out)


def _write(frame: DataFrame, out: Path) -> DataFrame:
    return _written(frame, AsTheyAre(out.name), to_arrow_schema(frame.schema), out)


def _written(
    rows: DataFrame, fold: AsTheyAre | BlockFold, schema: pa.Schema, out: Path
) -> DataFrame:
    shutil.rmtree(out, ignore_errors=True)
    write([(rows, fold)], {fold.table: Place(out, schema)})
    return rows.sparkSession.read.parquet(str(out))


def _write_metrics(structure: DataFrame, versions: Versions, clock: Clock, out: Path) -> None:
    """Write the metrics tables of a run whose source reports only its overlay and subscriptions."""
    peers = versions.presence.select("peer", F.col("peer").cast("string").alias("name"))
    seen = Seen(
        clock,
        peers.withColumn("is_reporter", F.lit(True)),
        structure,
        versions.subscriptions,
        traffic=None,
        publications=None,
        receptions=None,
    )
    rows = _write(peers_table(seen), out / "peers")
    _write(topics_table(seen, None), out / "topics")
    rest = Metrics(clock, rows, structure, None, None, None, False, True)
    _write(overlay_table(rest), out / "overlay")


def main() -> None:
    """Measure the variants, the first of them also in the cold session."""
    told, folder, intervals, out, *chosen = sys.argv[1:]
    steps, clock = Steps(), Clock(last=int(intervals) - 1)
    steps.at("session")
    with spark_session(Path(out) / ".spark") as spark:
        versions = _read(spark, Path(folder))
        steps.at("session")
        for name in chosen or VARIANTS:
            for _ in range(TIMES[name]):
                with steps.step(name):
                    rows = _measure(versions, clock, VARIANTS[name], Path(out) / name)
        with steps.step("metrics tables"):
            _write_metrics(rows, versions, clock, Path(out) / "metrics")
        steps.write(Path(told), "pyspark", "pyarrow", cores=spark.sparkContext.defaultParallelism)


if __name__ == "__main__":
    main()
