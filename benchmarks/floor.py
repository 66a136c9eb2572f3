"""What Spark itself costs: a session, and twenty small tables written one after another.

`python -m benchmarks.floor`, with Spark's defaults and two cores. Each table is read back and
grouped to make the next; every third goes through Python. No code of vizpub takes part.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from tempfile import TemporaryDirectory

import pyarrow as pa

TABLES = 20


def _through(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main() -> None:
    """Write the tables."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    rows = spark.range(0, 10_000, 1, 2).select("id", (F.col("id") % 30).alias("a"))
    rows = rows.withColumn("b", F.col("id") % 110)
    schema = rows.schema
    with TemporaryDirectory() as folder:
        for number in range(TABLES):
            if number % 3 == 0:
                rows = rows.mapInArrow(_through, schema)
            rows.write.parquet(f"{folder}/{number}")
            stored = spark.read.schema(schema).parquet(f"{folder}/{number}")
            rows = stored.groupBy("a", "b").agg(F.min("id").alias("id")).select("id", "a", "b")
    spark.stop()


if __name__ == "__main__":
    main()
