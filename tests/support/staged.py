"""Many small cases taken through a source at once: parsing is dear however little there is.

Each case is a run of its own (a protocol, in the words of VizPub) with files in a folder of its
own; they are parsed together, and what is staged of each is judged apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ingest.sources.base import Description, InputFile, Observed, Source, SourceOptions
from model.tables import QUARANTINE

Staged = dict[str, DataFrame]


def parsed(
    source: Source,
    spark: SparkSession,
    folder: Path,
    files: Sequence[InputFile],
    options: SourceOptions,
) -> Staged:
    """What the source stages, by way of Parquet as in the pipeline."""
    staged = source.parse(spark, files, options)
    with ThreadPoolExecutor(len(staged)) as pool:
        list(pool.map(lambda name: staged[name].write.parquet(str(folder / name)), staged))
    spark.catalog.clearCache()
    return {
        name: spark.read.schema(frame.schema).parquet(str(folder / name))
        for name, frame in staged.items()
    }


class Taken:
    """What a source made of staged tables."""

    def __init__(self, source: Source, staged: Staged, options: SourceOptions) -> None:
        self.staged = staged
        self.told: Description = source.describe(staged, options)
        self.seen: Observed = source.observe(staged, self.told, options)

    def rows(self, table: str, *columns: str) -> set[tuple[Any, ...]]:
        frame = getattr(self.seen, table)
        return {tuple(row) for row in frame.select(*(columns or frame.columns)).collect()}

    def quarantine(self) -> list[tuple[str, int, str, str]]:
        return refused(self.staged)


def refused(staged: Staged) -> list[tuple[str, int, str, str]]:
    """File, line, reason and text of the quarantine."""
    rows = staged["quarantine"].select(*QUARANTINE.names).collect()
    return sorted((Path(row.file).name, row.line, row.reason, row.text) for row in rows)


class Cases:
    """Staged tables of many cases."""

    def __init__(
        self,
        spark: SparkSession,
        staged: Staged,
        folders: Mapping[str, Path],
        counted: Mapping[str, str],
    ) -> None:
        """Takes the cases' folders; and what is counted without saying of which run, with the
        one case that has it.
        """
        self.spark, self.folders, self.counted = spark, folders, counted
        self.schemas = {name: frame.schema for name, frame in staged.items()}
        self.tables = {name: frame.toArrow() for name, frame in staged.items()}

    def of(self, case: str, *others: str) -> Staged:
        """As if the files of the case, or of several, were all there is."""
        runs = pa.array([case, *others], pa.string())
        what, name = self.tables["counts"]["what"], self.tables["counts"]["name"]
        kinds = [kind for kind, of in self.counted.items() if of == case]
        of_all = pc.is_in(what, pa.array(kinds, pa.string()))
        of_run = pc.and_(pc.equal(what, "run"), pc.is_in(name, runs))
        files = self.tables["quarantine"]["file"]
        mine = {
            "reports": pc.is_in(self.tables["reports"]["run"], runs),
            "headers": pc.is_in(self.tables["headers"]["run"], runs),
            "counts": pc.or_kleene(of_all, of_run),
            "quarantine": pc.match_substring(files, f"{self.folders[case]}/"),
        }
        return {name: self._frame(name, rows) for name, rows in mine.items()}

    def _frame(self, name: str, rows: pa.Array) -> DataFrame:
        found = self.tables[name].filter(rows)
        # Spark makes no frame of an Arrow table with structs and without rows.
        return self.spark.createDataFrame(found if len(found) else [], self.schemas[name])
