"""The source: reports in lines of JSON, or in Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import InputSplit, RowOrBatch, SplitReader, line_splits
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    Source,
    SourceInput,
    SourceOptions,
    Tallies,
    first_lines,
    most_are,
)
from vizpub.ingest.sources.folded import CARRIED, NAMES_OF_REPORTERS, NO_REJECTIONS
from vizpub.ingest.sources.reports.decoding import LineReader, ReportFilter, header_of_lines
from vizpub.ingest.sources.reports.facts import (
    COUNTED,
    ReportTally,
    count_partly_listed,
    counters_are_totals,
    describe_run,
)
from vizpub.ingest.sources.reports.fold import TABLES, ReportFold
from vizpub.ingest.sources.reports.parquet import (
    ENCODING,
    GroupReader,
    header_of_parquet,
    is_reports,
    splits_of,
)
from vizpub.ingest.sources.times import BELONGS, BELONGS_NOT, NO_OUTLIERS
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.ingest.tasks.sink import Fold
from vizpub.model.run import DUPLICATES

ARRIVALS, REPEATED = "arrivals", "repeated arrivals"
"""Kinds of events that are counted, but that a list may lack (measured.sql)."""
ARE_TOTALS = "a new run header says that counters are totals, also those of earlier reports"


@dataclass(frozen=True)
class ReportSplitReader:
    """Reads files of either encoding."""

    in_parquet: frozenset[int]
    """Numbers of the files in Parquet."""
    chosen: ReportFilter
    max_line: int | None

    def __call__(self, split: InputSplit) -> Iterator[RowOrBatch]:
        """Yield the rows of a split."""
        if split.file in self.in_parquet:
            return GroupReader(self.chosen)(split)
        return LineReader(self.chosen, self.max_line)(split)


def fold_of_reports(source_input: SourceInput, *, totals: bool) -> ReportFold:
    """Create the fold of reports; `totals` = counters run from the source's start."""
    counted = source_input.counted
    outliers = ReportTally.of(counted).outliers() if counted else NO_OUTLIERS
    gap_tolerance = source_input.options.gap_tolerance
    return ReportFold(source_input.paths, gap_tolerance, outliers, totals=totals)


def _is_record(line: bytes) -> bool:
    """Return True for a line that names a format of the contract, valid or not."""
    record = json.loads(line.decode("utf-8-sig"))
    return isinstance(record, dict) and str(record.get("format")).startswith("vizpub.")


class Reports(Source):
    """The source `reports`."""

    name = "reports"
    options = frozenset(
        {"interval_us", "gap_tolerance", "only", "reporters_only", "message_window", "max_line"}
    )
    appendable = True
    tables = TABLES
    carried = (CARRIED, "publications", "receptions", "unreported")
    settled = True

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'ndjson' if lines name a format of the contract, 'parquet' for columns peer and
        interval.
        """
        if is_reports(path, head):
            return ENCODING
        return "ndjson" if most_are(first_lines(head), _is_record) else None

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return ranges of lines, and row groups of Parquet.

        Raises: InputError if the type of a column does not fit the contract.
        """
        splits = line_splits(files, leave_out={ENCODING})
        for number, file in enumerate(files):
            if file.encoding == ENCODING:
                splits += splits_of(number, file)
        return splits

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader. Reports without a run belong to that of the input, if it names just
        one.
        """
        options = source_input.options
        numbers = (n for n, file in enumerate(source_input.files) if file.encoding == ENCODING)
        split_reader = ReportSplitReader(
            frozenset(numbers), ReportFilter(options.only), options.max_line
        )
        if options.only is None:
            return split_reader
        run_names = ReportTally.together(source_input.count_first(split_reader)).runs
        return replace(
            split_reader,
            chosen=ReportFilter(options.only, nameless=set(run_names) == {options.only}),
        )

    def make_fold(self, source_input: SourceInput) -> ReportFold:
        """Create the fold. Without earlier counts, first lines that are headers decide on
        counters.
        """
        if (counted := source_input.counted) is not None:
            totals = counters_are_totals(ReportTally.of(counted), source_input.options.only)
        else:
            # The run header with which each file begins.
            headers = (
                (header_of_parquet if file.encoding == ENCODING else header_of_lines)(file.path)
                for file in source_input.files
            )
            totals = any(header.get("counters") == "total" for header in headers)
        return fold_of_reports(source_input, totals=totals)

    def is_refuted(self, fold: Fold, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if a later header contradicts the assumption about counters, or if there are
        other outliers.
        """
        assert isinstance(fold, ReportFold)
        tally = ReportTally.of(counted)
        differ = fold.totals != counters_are_totals(tally, options.only)
        return differ or fold.outliers.reasons != tally.outliers().reasons

    def find_reversal(
        self, counted: RunCounts, earlier: RunCounts, options: SourceOptions
    ) -> str | None:
        """Return a report of the run that no longer belongs to it, or a refused one that now does;
        or that counters were totals all the time.
        """
        if self.needs_old_states(counted, options) != self.needs_old_states(earlier, options):
            return ARE_TOTALS
        now, then = ReportTally.of(counted).outliers(), ReportTally.of(earlier)
        outlying, reasons = then.outlying.parts, then.outliers()
        expelled = next((part for part in then.times.parts if now.why(part.first)), None)
        admitted = (part for part in outlying if now.why(part.first) != reasons.why(part.first))
        if (part := expelled or next(admitted, None)) is None:
            return None
        return f"{part.file}, line {part.line} {BELONGS_NOT if expelled else BELONGS}"

    def needs_old_states(self, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if counters are totals: these go on across stays, all else within one."""
        return counters_are_totals(ReportTally.of(counted), options.only)

    def combine_tallies(self, tallies: Tallies) -> RunCounts:
        """Return the sum of the tallies."""
        return ReportTally.together(tallies).plain

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run of one tick per interval.

        Raises: InputError if there is no report, if the intervals lie too far apart or if run
        headers contradict each other; UseError for several runs without `only`, and for an
        interval that is not the one of the header; UnknownName for an `only` that is not there.
        """
        return describe_run(ReportTally.of(counted), options)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables; those that no report has are unknown."""
        unknown = set(run.unknown)
        arrivals = {"sent", "received"} - unknown
        observed = ObservedTables(
            peers="SELECT name FROM whole.peers",
            presence=_periods_text("presence"),
            links=None if "neighbors" in unknown else _periods_text("links"),
            subscriptions=None if "topics" in unknown else _periods_text("subscriptions"),
            roles=None if "roles" in unknown else _periods_text("roles"),
            attributes="FROM folded.attributes" if ReportTally.of(run.totals).attributes else None,
            traffic="FROM folded.traffic" if COUNTED.keys() - unknown else None,
            control="FROM folded.control" if ReportTally.of(run.totals).control_kinds else None,
            gauges="FROM folded.gauges" if ReportTally.of(run.totals).gauges else None,
            publications="FROM folded.publications" if arrivals else None,
            receptions="FROM folded.receptions" if "received" in arrivals else None,
            rejections=NO_REJECTIONS if arrivals else None,
            unreported=_unreported_text(run, options),
        )
        if options.reporters_only and observed.links:
            to_reporters = " WHERE dst IN (SELECT name FROM whole.peers)"
            names = NAMES_OF_REPORTERS.format(reporter="name")
            return replace(observed, links=observed.links + to_reporters, names=names)
        return observed


def _periods_text(table: str) -> str:
    return f"SELECT * REPLACE (open_at_end(valid_to) AS valid_to) FROM folded.{table}"


def _unreported_text(run: RunDescription, options: SourceOptions) -> str | None:
    """Return the SQL text of unreported: true for the fields that a report lacks and others have.

    A bridged missing report lacks receptions, and what the report before it lacks. A list that
    lacks arrivals counts as left out.
    Return null if all reports have the same fields, and lists are complete.
    """
    fields = {"receptions": "received", "subscriptions": "topics"}
    reported = {column: field for column, field in fields.items() if field not in run.unknown}
    counted = ReportTally.of(run.totals)
    partly = count_partly_listed(counted, options.only, run.unknown)
    complete = not partly and not any(counted.count_without(field) for field in reported.values())
    if complete and not (reported and options.gap_tolerance):
        return None
    lacking = [ARRIVALS] if DUPLICATES in run.unknown else [ARRIVALS, REPEATED]
    as_receptions = f"list_contains({lacking}, what)" if partly else "false"
    return f"""
        SELECT
            peer, interval,
            bool_or(what = 'receptions') AS receptions,
            bool_or(what = 'subscriptions') AS subscriptions
        FROM (
            SELECT
                peer, CASE WHEN {as_receptions} THEN 'receptions' ELSE what END AS what,
                unnest(range(valid_from, valid_to))::INTEGER AS interval
            FROM folded.unreported
        )
        WHERE list_contains({[*reported]}, what)
        GROUP BY peer, interval
    """
