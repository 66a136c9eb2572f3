"""Report directories of the VizPub tool of 2014, as reports of this one.

What its numbers and lists mean, and what they cannot tell, is in docs/sources.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.sources import reports_facts as facts
from ingest.sources import reports_observed as observed
from ingest.sources.base import Description, InputFile, Observed, Source, SourceOptions
from ingest.sources.lines import numbered
from ingest.sources.reports import staged_tables
from ingest.sources.vizpub_files import MERGED, read_nodes, recognised
from ingest.sources.vizpub_nodes import BYTES, COUNTERS, node_records
from model.errors import InputError

_WORDS = facts.Words("protocol", "files", "files without nodes")
_NO_BYTES = tuple(f"publication_bytes_{way}" for way in ("sent", "received"))


class Vizpub(Source):
    """The source; see ingest.sources.base.Source for its four steps."""

    name = "vizpub"
    options = frozenset({"interval_us", "gap_tolerance", "only", "reporters_only"})

    def recognises(self, path: str, head: bytes) -> str | None:
        """'json' by content or place; 'merged json' for what VizPub merged from several hosts."""
        return recognised(path, head)

    def parse(
        self, spark: SparkSession, files: Sequence[InputFile], options: SourceOptions
    ) -> dict[str, DataFrame]:
        """The tables of `Reports.parse`; a run is a protocol.

        Raises: InputError for files that VizPub merged.
        """
        _refuse_merged(files)
        nodes = read_nodes(spark, files)
        tables = staged_tables(node_records(nodes), nodes, options.only)
        refused = tables.pop("refused")
        return {
            **tables,
            "reports": _without_unset(tables["reports"]),
            "quarantine": numbered(refused),
        }

    def describe(self, staged: Mapping[str, DataFrame], options: SourceOptions) -> Description:
        """One tick per interval. Raises: as Reports.describe; a run is a protocol."""
        told = facts.describe(staged, options, _WORDS)
        notes = {note: n for note, n in told.notes.items() if note != facts.lacking(BYTES)}
        return replace(told, notes=notes)

    def observe(
        self, staged: Mapping[str, DataFrame], description: Description, options: SourceOptions
    ) -> Observed:
        """Lazily, as reports, but for the traffic of publications."""
        seen = observed.observe(staged, description, options)
        return replace(seen, traffic=seen.traffic and _traffic(seen.traffic))


def _traffic(counted: DataFrame) -> DataFrame:
    """What was received are the messages listed and their later copies, which are only counted."""
    copies = F.try_add("publication_messages_received", "duplicates")  # unknown beyond 64 bits
    unknown = dict.fromkeys(_NO_BYTES, F.lit(None).cast("bigint"))
    return counted.withColumns({"publication_messages_received": copies, **unknown})


def _refuse_merged(files: Sequence[InputFile]) -> None:
    for file in files:
        if file.encoding == MERGED:
            raise InputError(
                f"{file.path} was merged by VizPub from the files of several hosts, "
                "which loses the interval and keeps peers that are gone",
                "ingest what the hosts wrote, for example: "
                "vizpub ingest reports/unprocessed --run NAME",
            )


def _without_unset(reports: DataFrame) -> DataFrame:
    """A counter that is 0 in every report was never set, as its Java cannot leave one out."""
    largest = reports.agg(*(F.max(name).alias(f"largest_{name}") for name in COUNTERS))
    told = {name: F.when(F.col(f"largest_{name}") > 0, F.col(name)) for name in COUNTERS}
    beside = reports.crossJoin(F.broadcast(largest))
    return beside.withColumns(told).select(*reports.columns)
