"""Rows → versions in Spark's local mode, by what ingest makes versions with.

python -m benchmarks.coalesced TOLD.json VERSIONS ROWS.parquet TIMES
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.steps import Steps
from ingest.periods import coalesce
from ingest.spark.session import spark_session


def main() -> None:
    """Make versions from file to file, as often as requested."""
    told, made, rows, times = sys.argv[1:]
    steps = Steps()
    steps.at("session")
    with spark_session(Path(made).with_name(".spark")) as spark:
        steps.at("session")
        for _ in range(int(times)):
            with steps.step("islands"):
                spans = spark.read.parquet(rows).selectExpr(
                    "src", "dst", "interval AS valid_from", "interval + 1 AS valid_to"
                )
                coalesce(spans, ["src", "dst"]).write.mode("overwrite").parquet(made)
        steps.write(Path(told), "pyspark")


if __name__ == "__main__":
    main()
