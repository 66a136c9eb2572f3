"""From metrics tables back to the structure they were made of, which is not measured again."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from analytics.structure import STRUCTURE_SCHEMA


def restored(peers: DataFrame, topics: DataFrame, overlay: DataFrame) -> DataFrame:
    """Rows of `STRUCTURE_SCHEMA` from metrics/peers, metrics/topics and metrics/overlay."""
    here = peers.where("present")
    first = here.groupBy("interval").agg(F.min("peer").alias("peer"))
    beside = first.join(
        _listed(topics.where("subscribers > 0"), "topics"), "interval", "left"
    ).join(_listed(overlay, "overlay"), "interval", "left")
    rows = here.select(*(name for name in STRUCTURE_SCHEMA.names if name in here.columns))
    return rows.join(beside, ["interval", "peer"], "left").select(*STRUCTURE_SCHEMA.names)


def _listed(rows: DataFrame, name: str) -> DataFrame:
    """interval, and the rows of it as the structs that the schema has under that name."""
    kind = from_arrow_type(STRUCTURE_SCHEMA.field(name).type)
    columns = [field.name for field in STRUCTURE_SCHEMA.field(name).type.value_type]
    of_interval = rows.groupBy("interval").agg(F.collect_list(F.struct(*columns)).alias(name))
    return of_interval.withColumn(name, F.col(name).cast(kind))
