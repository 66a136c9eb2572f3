"""Temporal edge lists: the structure of an overlay, and nothing else.

CSV or Parquet with the columns `interval,src,dst` (a link is there in that interval) or
`src,dst,vf,vt` (it is there from interval vf until before vt; no vt = still there), either
with `layer`, `topic` or both at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.report_fields import INT32, LAST_INTERVAL
from ingest.report_records import OVERLAY
from ingest.sources.base import Description, InputFile, Observed, ParsedSource, SourceOptions
from ingest.sources.delimited import NO_ROWS, key, optional_key, read_table, recognised, whole
from model.clock import OPEN, Clock
from model.errors import InputError

_MOST_INTERVALS = 10_000_000
_KINDS = (("interval", "src", "dst"), ("src", "dst", "vf", "vt"))
_EXTRAS = ((), ("layer",), ("topic",), ("layer", "topic"))
_HEADERS = {(*kind, *extra) for kind in _KINDS for extra in _EXTRAS}
_UNKNOWN = ("topics", "roles", "traffic", "messages")


class Edges(ParsedSource):
    """The source; see ingest.sources.base.Source for its four steps."""

    name = "edges"
    options = frozenset({"interval_us", "max_line"})

    def recognises(self, path: str, head: bytes) -> str | None:
        """'csv(…)' or 'parquet(…)' with the columns."""
        return recognised(path, head, _HEADERS)

    def parse(
        self, spark: SparkSession, files: Sequence[InputFile], options: SourceOptions
    ) -> dict[str, DataFrame]:
        """`links` (src, dst, layer, topic, vf, vt, listed) and `quarantine`.

        `listed` = the row names one interval. Raises: InputError for both kinds at once.
        """
        listed = {"interval" in file.encoding for file in files}
        if len(listed) > 1:
            raise InputError(
                "some files list links by interval, others by span of life (vf, vt)",
                "the two say different things of when a peer is there: ingest one kind",
            )
        rows, refused = read_table(
            spark,
            files,
            {
                "src": key,
                "dst": key,
                "interval": whole(LAST_INTERVAL),
                "vf": whole(LAST_INTERVAL),
                "vt": _end,
                "layer": optional_key,
                "topic": optional_key,
            },
            options.max_line,
        )
        return {"links": _links(rows), "quarantine": refused}

    def describe(self, staged: Mapping[str, DataFrame], options: SourceOptions) -> Description:
        """One tick per interval. Spans that all have an end mark the end of the run.

        Raises: InputError where there is no link, or the intervals lie too far apart.
        """
        links = staged["links"]
        row = links.agg(
            F.min("vf").alias("first"),
            F.max(F.when(F.col("vt") < OPEN, F.col("vt") - 1).otherwise(F.col("vf"))).alias("last"),
            F.max("vt").alias("end"),
            F.bool_or("listed").alias("listed"),
        ).first()
        assert row is not None  # an aggregate has one row
        if row["first"] is None:
            raise InputError("no link could be read", NO_ROWS)
        if row["last"] - row["first"] >= _MOST_INTERVALS:
            raise InputError(
                f"the links reach from interval {row['first']} to {row['last']}",
                f"more than {_MOST_INTERVALS:,} intervals are surely a mistake in one of them",
            )
        return Description(
            clock=Clock(1, options.interval_us, row["first"], row["last"]),
            ended=not row["listed"] and row["end"] < OPEN,
            unknown=_UNKNOWN,
        )

    def observe(
        self, staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
    ) -> Observed:
        """Lazily. The list speaks for every peer it names.

        Where links have spans, a peer is there over the whole run; where they are listed by
        interval, from the first to the last interval that has a link of it.
        """
        del options
        clock = description.clock
        links = staged["links"].withColumn(
            "vt", F.when(F.col("listed"), _open_at_the_end("vt", clock)).otherwise(F.col("vt"))
        )
        ends = F.array(F.col("src"), F.col("dst"))
        peers = (
            links.select(F.explode(ends).alias("peer"), "vf", "vt", "listed")
            .groupBy("peer")
            .agg(
                F.min("vf").alias("vf"),
                F.max("vt").alias("vt"),
                F.any_value("listed").alias("listed"),
            )
        )
        here = F.when(F.col("listed"), F.col("vf")).otherwise(F.lit(clock.first)).cast("bigint")
        gone = F.when(F.col("listed"), F.col("vt")).otherwise(F.lit(OPEN))
        return Observed(
            peers=peers.select(F.col("peer").alias("key"), F.lit(True).alias("reports")),
            presence=peers.select("peer", here.alias("vf"), gone.alias("vt")),
            links=links.drop("listed"),
        )


def _links(rows: DataFrame) -> DataFrame:
    interval = F.col("interval").cast("bigint")
    return rows.select(
        "src",
        "dst",
        F.coalesce("layer", F.lit(OVERLAY)).alias("layer"),
        "topic",
        F.coalesce(interval, F.col("vf").cast("bigint")).alias("vf"),
        F.coalesce(interval + 1, F.col("vt").cast("bigint"), F.lit(OPEN)).alias("vt"),
        interval.isNotNull().alias("listed"),
    )


def _end(name: str) -> Column:
    """An end after the beginning, or none yet."""
    wrong = whole()(name)
    after = F.col(name).try_cast("bigint") > F.col("vf").try_cast("bigint")
    too_late = (F.col(name).try_cast("bigint") > INT32) & (F.col(name) != str(OPEN))
    return (
        F.when(F.col(name).isNull(), F.lit(None).cast("string"))
        .when(wrong.isNotNull(), wrong)
        .when(too_late, F.lit(f"'{name}' is too large"))
        .when(~after, F.lit("'vt' is not after 'vf'"))
    )


def _open_at_the_end(name: str, clock: Clock) -> Column:
    return F.when(F.col(name) > clock.last, F.lit(OPEN)).otherwise(F.col(name))
