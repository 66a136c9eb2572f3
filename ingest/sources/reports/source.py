"""The source: reports in lines of JSON, or in Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import Read, Rows, Split, line_splits
from vizpub.ingest.sources.base import (
    Description,
    Observed,
    Source,
    SourceOptions,
    Tallies,
    first_lines,
    most_are,
)
from vizpub.ingest.sources.folded import CARRIED
from vizpub.ingest.sources.reports.decoding import Chosen, LineReader, header_of_lines
from vizpub.ingest.sources.reports.facts import Tally, counters_are_totals, describe
from vizpub.ingest.sources.reports.fold import TABLES, ReportFold
from vizpub.ingest.sources.reports.observed import observe
from vizpub.ingest.sources.reports.parquet import (
    ENCODING,
    GroupReader,
    header_of_parquet,
    is_reports,
    splits_of,
)
from vizpub.ingest.sources.times import BELONGS, BELONGS_NOT, NO_OUTLIERS
from vizpub.ingest.tasks.fold import Counted
from vizpub.ingest.tasks.sink import Fold


@dataclass(frozen=True)
class ReportReader:
    """Reads files of either encoding."""

    in_parquet: frozenset[int]
    """Numbers of files."""
    chosen: Chosen
    max_line: int | None

    def __call__(self, split: Split) -> Iterator[Rows]:
        """The rows of a split."""
        if split.file in self.in_parquet:
            return GroupReader(self.chosen)(split)
        return LineReader(self.chosen, self.max_line)(split)


def _first_header(file: InputFile) -> dict[str, Any]:
    """The run header that a file begins with; empty if there is none."""
    read = header_of_parquet if file.encoding == ENCODING else header_of_lines
    return read(file.path)


def _is_record(line: bytes) -> bool:
    """Whether a line names a format of the contract, valid or not."""
    record = json.loads(line.decode("utf-8-sig"))
    return isinstance(record, dict) and str(record.get("format")).startswith("vizpub.")


class Reports(Source):
    """See vizpub.ingest.sources.base.Source."""

    name = "reports"
    options = frozenset(
        {"interval_us", "gap_tolerance", "only", "reporters_only", "message_window", "max_line"}
    )
    appendable = True
    tables = TABLES
    carried = (CARRIED, "publications", "receptions", "unreported")
    settled = True

    def recognises(self, path: str, head: bytes) -> str | None:
        """'ndjson', where lines name a format of the contract; 'parquet', where there are the
        columns peer and interval.
        """
        if is_reports(path, head):
            return ENCODING
        return "ndjson" if most_are(first_lines(head), _is_record) else None

    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """Ranges of lines, and row groups of Parquet.

        Raises: InputError where a column cannot be what the contract wants.
        """
        found = line_splits(files, leave_out={ENCODING})
        for number, file in enumerate(files):
            if file.encoding == ENCODING:
                found += splits_of(number, file)
        return found

    def reader(
        self,
        files: Sequence[InputFile],
        options: SourceOptions,
        tallies: Callable[[Read], Tallies],
        counted: Counted | None = None,
    ) -> Read:
        """Reports without a run belong to the run of the input, if it names just one."""
        del counted
        numbers = (n for n, file in enumerate(files) if file.encoding == ENCODING)
        read = ReportReader(frozenset(numbers), Chosen(options.only), options.max_line)
        if options.only is None:
            return read
        named = self._together(tallies(read)).runs
        return replace(read, chosen=Chosen(options.only, nameless=set(named) == {options.only}))

    def fold(
        self, files: Sequence[InputFile], options: SourceOptions, counted: Counted | None
    ) -> ReportFold:
        """Without earlier counts, a header in the first line of a file decides about counters."""
        if counted is not None:
            totals = counters_are_totals(Tally.of(counted), options.only)
        else:
            totals = any(_first_header(file).get("counters") == "total" for file in files)
        outliers = Tally.of(counted).outliers() if counted else NO_OUTLIERS
        paths = [file.path for file in files]
        return ReportFold(paths, options.gap_tolerance, outliers, totals=totals)

    def is_refuted(self, fold: Fold, counted: Counted, options: SourceOptions) -> bool:
        """Whether a later header contradicts the assumption about counters, or there are
        other outliers.
        """
        assert isinstance(fold, ReportFold)
        tally = Tally.of(counted)
        differ = fold.totals != counters_are_totals(tally, options.only)
        return differ or fold.outliers.reasons != tally.outliers().reasons

    def reverses(self, counted: Counted, before: Counted) -> str | None:
        """Where reports of the run belong to it no longer, or refused ones do."""
        now, then = Tally.of(counted).outliers(), Tally.of(before)
        outlying, reasons = then.outlying.parts, then.outliers()
        taken = next((part for part in then.times.parts if now.why(part.first)), None)
        refused = (part for part in outlying if now.why(part.first) != reasons.why(part.first))
        if (part := taken or next(refused, None)) is None:
            return None
        return f"{part.file}, line {part.line} {BELONGS_NOT if taken else BELONGS}"

    def tallied(self, tallies: Tallies) -> Counted:
        """The sum of the tallies."""
        return self._together(tallies).plain

    def _together(self, tallies: Tallies) -> Tally:
        tally = Tally()
        for one in tallies:
            tally.add(Tally.of(one))
        return tally

    def describe(
        self, counted: Counted, before: Counted | None, options: SourceOptions
    ) -> Description:
        """One tick per interval.

        Raises: InputError where there is no report, the intervals lie too far apart or run
        headers contradict each other; UseError for several runs without `only`, and for an
        interval that is not the one of the header; UnknownName for an `only` that is not there.
        """
        return describe(Tally.of(counted), Tally.of(before) if before else None, options)

    def observe(self, run: Description, options: SourceOptions) -> Observed:
        """Tables without any report are unknown."""
        return observe(run, options)
