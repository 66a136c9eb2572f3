"""DataFrames in the shape of a table of the run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from model.columns import Table

_SPARK_TYPES = {"int32": "int", "int64": "long", "double": "double", "string": "string"}


def conform(frame: DataFrame, table: Table, *more: str) -> DataFrame:
    """The table's columns, in its order and types; one that the frame lacks is null (unknown).

    `more` names columns of the frame that stay beside them.
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


def join_all(frames: Sequence[DataFrame], keys: Sequence[str], how: str = "full") -> DataFrame:
    """The frames side by side, by their common keys."""
    return reduce(lambda left, right: left.join(right, list(keys), how), frames)


def count_if(condition: Column) -> Column:
    """How many rows hold the condition; unknown does not. 0 where none does."""
    return F.coalesce(F.count_if(condition), F.lit(0))


def if_known(column: str, value: Column) -> Column:
    """An aggregate, or null where the column is null in every row of the group."""
    return F.when(F.count(column) > 0, value)


def mean_in_order(values: Column) -> Column:
    """The mean of a group's values that are known, summed from the smallest: the same to the last
    digit however the rows are spread. For groups that fit into a row.
    """
    known = F.array_sort(F.collect_list(values))
    total = F.aggregate(known, F.lit(0.0), lambda total, value: total + value)
    return total / F.nullif(F.size(known), F.lit(0))
