"""Sources that are read and folded: reader → fold → sink, in one job.

A source says what a split of a file holds, as rows (ingest.reader), and folds the rows of each
peer in order of time into tables (ingest.sink). What it can only say of the run as a whole it
counts on the way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ingest.reader import RECORDS, Kind, Read, Split, in_tasks
from ingest.sink import Fold
from ingest.sources.base import Description, InputFile, Observed, Source, SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tallies = Sequence[str | bytes]
"""What single tasks have counted, as JSON."""
Counted = Mapping[str, Any]
"""What was counted of a run, as JSON has it."""
CARRIED = "records"
"""The table of what a later record of a peer goes on from: peer, interval, record."""


class FoldedSource(Source):
    """What such a source does, beside to recognise its files."""

    tables: Mapping[str, pa.Schema]
    """What the fold makes, by name; `quarantine` and, where more can be appended, CARRIED are
    among them.
    """

    settled: bool = False
    """The spans of the observed tables are maximal, and within the presence of whoever tells."""

    @abstractmethod
    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """What is read by one task each."""

    @abstractmethod
    def reader(
        self, files: Sequence[InputFile], options: SourceOptions, tallies: Callable[[Read], Tallies]
    ) -> Read:
        """What reads a split. `tallies` reads all of the input for what its reader counts, where
        that must be known before.
        """

    @abstractmethod
    def fold(
        self, files: Sequence[InputFile], options: SourceOptions, counted: Counted | None
    ) -> Fold:
        """What makes `tables` of rows, and then tells what it counted. By what was `counted` of the
        run before; where nothing was, it may assume what `is_refuted` looks at.
        """

    def is_refuted(self, fold: Fold, counted: Counted, options: SourceOptions) -> bool:
        """Whether the fold assumed what is not so: the input is folded again."""
        del fold, counted, options
        return False

    @abstractmethod
    def tallied(self, told: Tallies) -> Counted:
        """What was counted by all tasks."""

    @abstractmethod
    def describe_run(
        self, counted: Counted, before: Counted | None, options: SourceOptions
    ) -> Description:
        """The run as a whole; `before` was counted of the run that is appended to.

        Raises: InputError, UseError.
        """

    @abstractmethod
    def observe_run(
        self, tables: Mapping[str, DataFrame], run: Description, options: SourceOptions
    ) -> Observed:
        """The observed tables, lazily: no job is run here."""


def rows_by_peer(
    spark: SparkSession,
    source: FoldedSource,
    files: Sequence[InputFile],
    options: SourceOptions,
    carried: DataFrame | None,
    small: bool,
) -> DataFrame:
    """All rows of the input and what is carried (as CARRIED), for `fold`: each peer's in one
    partition, in order of time. Lazily, unless the source has to count first.
    """
    from pyspark.sql import functions as F

    splits = source.splits(files)

    def tallies(read: Read) -> Tallies:
        rows = in_tasks(spark, splits, read, small).where(F.col("kind") == int(Kind.TALLY))
        return [row.record for row in rows.select("record").collect()]

    rows = in_tasks(spark, splits, source.reader(files, options, tallies), small)
    if carried is not None:
        told = {"kind": int(Kind.BEFORE), "rank": 0, "file": 0, "line": 0, "reason": None}
        before = carried.withColumns(
            {"time": F.col("interval"), **{name: F.lit(value) for name, value in told.items()}}
        )
        types = (column.split() for column in RECORDS.split(", "))
        rows = rows.unionAll(before.select(*(F.col(n).cast(t).alias(n) for n, t in types)))
    if small:
        gathered = rows.coalesce(1)
    else:
        tasks = max(spark.sparkContext.defaultParallelism, min(len(splits), 1000))
        gathered = rows.repartition(tasks, "peer")
    return gathered.sortWithinPartitions("peer", "time", "rank", "file", "line")
