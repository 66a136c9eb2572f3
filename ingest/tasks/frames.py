"""Stored tables as frames of Spark, for GraphFrames."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from vizpub.runstore.integrity import files_of
from vizpub.runstore.manifest import Since
from vizpub.runstore.store import StoredTable

_READ = {"parquet.page.verify-checksum.enabled": "true"}


def frame_of_files(
    spark: SparkSession, stored: StoredTable, since: Since | None = None
) -> DataFrame:
    """Return a Spark frame of the parts' rows, or of those that `since` selects; only files that
    may have such rows are opened.
    """
    shape = from_arrow_schema(stored.schema)
    parts = (part.reaching(since) if since else part for part in stored.parts)
    # Hadoop's configuration may say that a path without a scheme is elsewhere; readers take globs.
    files = [
        "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.absolute()))
        for part in parts
        for path in files_of(stored.directory, part, stored.name)
    ]
    frame = (
        spark.read.schema(shape).options(**_READ).parquet(*files)
        if files
        else spark.createDataFrame([], shape)
    )
    return frame.where(F.col(since.column) >= since.least) if since else frame
