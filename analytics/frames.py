"""Helpers for DataFrames that become tables of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from model.columns import Table

_SPARK_TYPES = {"int32": "int", "int64": "long", "double": "double", "string": "string"}


def conform(frame: DataFrame, table: Table, *more: str) -> DataFrame:
    """The table's columns, in its order and types; columns that the frame lacks are null (unknown).

    `more` names further columns of the frame to keep.
    """
    return frame.select(
        *more,
        *(
            (F.col(c.name) if c.name in frame.columns else F.lit(None))
            .cast(_SPARK_TYPES.get(c.type, "boolean"))
            .alias(c.name)
            for c in table
        ),
    )


def gathered(frame: DataFrame) -> DataFrame:
    """The same rows; where shuffles make one partition, as in a small run, they are one already.

    After unions, full joins and joins on another column, Spark would shuffle them to make it one.
    """
    partitions = frame.sparkSession.conf.get("spark.sql.shuffle.partitions")
    return frame.coalesce(1) if partitions == "1" else frame


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows, by the names of the columns."""
    return gathered(reduce(DataFrame.unionByName, frames)) if len(frames) > 1 else frames[0]


def join_all(frames: Sequence[DataFrame], keys: Sequence[str], how: str = "full") -> DataFrame:
    """Join the frames by their common keys."""
    return reduce(lambda left, right: gathered(left.join(right, list(keys), how)), frames)
