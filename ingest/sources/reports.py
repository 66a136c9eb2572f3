"""Reports by the contract of `ingest.reports`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ingest.reports import Report, RunHeader, parse
from ingest.sources import reports_facts as facts
from ingest.sources import reports_observed as observed
from ingest.sources.base import Description, InputFile, Observed, Source, SourceOptions
from ingest.sources.lines import numbered, quarantine, read_lines
from ingest.sources.reports_carry import carried, go_on, together
from ingest.sources.reports_parquet import ENCODING, is_reports, of_rows, read_rows
from ingest.sources.reports_schema import REPORT_COLUMNS, read_records

_LOOK_AT = 50
"""Lines at the beginning of a file that are looked at to recognise it."""
_KEY = ("run", "peer", "interval")
_PLACE = ("file", "position")
_IS_REPORT = f"(format = '{Report.format}')"


class Reports(Source):
    """The source; see ingest.sources.base.Source for its four steps."""

    name = "reports"
    options = frozenset({"interval_us", "gap_tolerance", "only", "reporters_only"})
    appendable = True

    def recognises(self, path: str, head: bytes) -> str | None:
        """'ndjson', where one of the first lines is a record of the contract; 'parquet', where
        there are the columns peer and interval.
        """
        if is_reports(path, head):
            return ENCODING
        records = (parse(line)[0] for line in head.split(b"\n")[:_LOOK_AT])
        formats = (record.get("format") for record in records if isinstance(record, dict))
        return "ndjson" if any(str(name).startswith("vizpub.") for name in formats) else None

    def parse(
        self, spark: SparkSession, files: Sequence[InputFile], options: SourceOptions
    ) -> dict[str, DataFrame]:
        """`reports` (run, REPORT_COLUMNS; one per peer and interval), `headers` (run headers and
        ends: run, HEADER_COLUMNS), `counts` (what, name, records) and `quarantine`.
        """
        inputs = list(_inputs(spark, files))
        records = reduce(DataFrame.unionByName, (given.records for given in inputs))
        texts = reduce(DataFrame.unionByName, (given.texts for given in inputs))
        tables = staged_tables(records, texts, options.only)
        refused = tables.pop("refused")
        refusals = (given.quarantined(refused) for given in inputs)
        return {**tables, "quarantine": reduce(DataFrame.unionByName, refusals)}

    def describe(self, staged: Mapping[str, DataFrame], options: SourceOptions) -> Description:
        """One tick per interval.

        Raises: InputError where there is no report, the intervals lie too far apart or run
        headers contradict each other; UseError for several runs without `only`, and for an
        interval that is not the one of the header; UnknownName for an `only` that is not there.
        """
        return facts.describe(together(staged), options)

    def observe(
        self, staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
    ) -> Observed:
        """Lazily; what no report of the run has is unknown."""
        return go_on(observed.observe(together(staged), description, options), staged)

    def carry(
        self, staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
    ) -> dict[str, DataFrame]:
        """See reports_carry."""
        return carried(staged, description, options)


@dataclass(frozen=True)
class _Input:
    """The files of one encoding."""

    records: DataFrame
    texts: DataFrame
    """file, position, text of every record."""
    quarantined: Callable[[DataFrame], DataFrame]
    """Refused records → rows of the quarantine; those of other files are left out."""


def _inputs(spark: SparkSession, files: Sequence[InputFile]) -> Iterator[_Input]:
    if rows := [file for file in files if file.encoding == ENCODING]:
        yield _Input(*read_rows(spark, rows), lambda refused: numbered(of_rows(refused)))
    if others := [file for file in files if file.encoding != ENCODING]:
        lines = read_lines(spark, others)
        texts = lines.select(*_PLACE, "text")
        yield _Input(read_records(lines), texts, lambda refused: quarantine(refused, lines))


def staged_tables(records: DataFrame, texts: DataFrame, only: str | None) -> dict[str, DataFrame]:
    """Records as `read_records` gives them → `reports`, `headers`, `counts` and `refused`.

    `texts` has the text of every record by file and position, `only` names the run to take;
    `refused` has file, position, text and reason. Runs small jobs: what hardly any input has
    (several reports of one interval, records without a run, refused ones) costs others nothing.
    """
    # Every staged table is made from the records, and reading them is the dear part.
    records = records.persist(StorageLevel.DISK_ONLY)
    sound, refused = records.where("reason IS NULL"), records.where("reason IS NOT NULL")
    found = records.agg(
        F.count_if(F.expr("reason IS NULL AND run IS NULL")).alias("nameless"),
        F.count("reason").alias("refused"),
    ).first()
    assert found is not None  # an aggregate has one row
    if found["nameless"]:
        sound = _with_run(sound)
    every = sound.where(_IS_REPORT)
    chosen = every if only is None else every.where(F.col("run") == only)
    lost = _rare(_lost(chosen))
    conflicting = lost.where("what = 'conflicting_records'")
    return {
        "reports": chosen.join(lost, list(_PLACE), "left_anti").select("run", *REPORT_COLUMNS),
        "headers": sound.where(f"NOT {_IS_REPORT}").select("run", "header.*"),
        "counts": _counts(sound, lost, records),
        "refused": _refused(refused if found["refused"] else refused.limit(0), conflicting, texts),
    }


def _with_run(records: DataFrame) -> DataFrame:
    """A record that names no run is of the one that a header in its file names, else of the
    only one that the input names.
    """
    named = (
        records.where(f"format = '{RunHeader.format}' AND run IS NOT NULL")
        .groupBy("file")
        .agg(F.min("run").alias("run_of_file"))
    )
    only = records.agg(F.when(F.min("run") == F.max("run"), F.min("run")).alias("only_run"))
    return (
        records.join(F.broadcast(named), "file", "left")
        .crossJoin(F.broadcast(only))
        .withColumn("run", F.coalesce("run", "run_of_file", "only_run"))
    )


def _lost(reports: DataFrame) -> DataFrame:
    """file, position and what became of reports that give way to another of their interval.

    `superseded_records`: the other has a greater `seq`; `repeated_records`: it says the same;
    `conflicting_records`: it came first. Only reports that may share their peer and interval
    are moved; a small job tells which these are.
    """
    key = [F.coalesce(name, F.lit("")).alias(name) if name == "run" else name for name in _KEY]
    hashed = reports.withColumn("hash", F.xxhash64(*key))
    times = hashed.groupBy("hash").agg(F.count(F.lit(1)).alias("times"))
    shared = _rare(times.where("times > 1").select("hash"))
    # As JSON, which has what is absent, empty or of another field differ; a hash alone skips nulls.
    says = F.xxhash64(F.to_json(F.struct(*REPORT_COLUMNS)))
    slim = hashed.join(shared, "hash", "left_semi").select(
        *_PLACE, *key, F.coalesce("seq", F.lit(-1)).alias("seq"), says.alias("says")
    )
    best_first = Window.partitionBy(*_KEY).orderBy(F.desc("seq"), *_PLACE)
    ranked = slim.select(
        *_PLACE,
        F.row_number().over(best_first).alias("rank"),
        (F.col("seq") < F.first("seq").over(best_first)).alias("older"),
        (F.col("says") == F.first("says").over(best_first)).alias("same"),
    )
    what = F.when(F.col("older"), "superseded_records").when(F.col("same"), "repeated_records")
    return ranked.where("rank > 1").select(
        *_PLACE, what.otherwise("conflicting_records").alias("what")
    )


def _rare(rows: DataFrame) -> DataFrame:
    """The rows, looked for at once, as there are hardly ever any. Spark then knows how few they
    are, and what is joined with none costs nothing.
    """
    rows = rows.persist()
    return rows if rows.count() else rows.limit(0)


def _counts(sound: DataFrame, lost: DataFrame, records: DataFrame) -> DataFrame:
    """what, name, records: reports of each `run`, what was `lost`, each `unknown field`.

    A run that has a header alone has 0 reports.
    """
    one = F.lit(1)
    named = {
        "run": sound.select(F.col("run").alias("name"), F.expr(f"INT({_IS_REPORT})").alias("n")),
        "lost": lost.select(F.col("what").alias("name"), one),
        "unknown field": records.select(F.explode("unknown_fields").alias("name"), one),
    }
    parts = [frame.select(F.lit(what).alias("what"), "*") for what, frame in named.items()]
    every = reduce(DataFrame.unionAll, parts)
    return every.groupBy("what", "name").agg(F.sum("n").alias("records"))


def _refused(unsound: DataFrame, conflicting: DataFrame, all_texts: DataFrame) -> DataFrame:
    """file, position, text and reason of what goes to the quarantine."""
    columns: tuple[str | Column, ...] = (*_PLACE, "text")
    texts = all_texts.join(conflicting, list(_PLACE), "left_semi").select(*columns)
    return unsound.select(*columns, "reason").unionByName(
        texts.withColumn("reason", F.lit("conflicting report"))
    )
