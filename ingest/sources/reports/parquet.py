"""Reports in Parquet → rows, by row group; the line of a record is its row number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import InputRow, InputSplit, refusal_row, tally_row
from vizpub.ingest.sources.reports.columns import (
    reports_of,
    unfit_columns,
    unknown_columns,
    values_of,
)
from vizpub.ingest.sources.reports.decoding import ReportFilter, record_row
from vizpub.ingest.sources.reports.facts import ReportTally
from vizpub.ingest.sources.tables.row_groups import (
    group_splits,
    open_parquet,
    read_group,
    schema_of,
)
from vizpub.model.errors import InputError
from vizpub.reports.files import parse

ENCODING = "parquet"

_RENAME = "one of them would count and the others would not: leave them out, or rename them"
_AFTERWORDS = (b"vizpub.run", b"vizpub.end")
"""Keys of the file metadata with a run header and an end."""


def is_reports(path: str, head: bytes) -> bool:
    """Return True for Parquet with the columns peer and interval."""
    schema = schema_of(path, head)
    return schema is not None and {"peer", "interval"} <= set(schema.names)


def splits_of(number: int, file: InputFile) -> Iterator[InputSplit]:
    """Yield a split for each row group.

    Raises: InputError if a column occurs twice, or its type does not fit the contract.
    """
    with open_parquet(file.path) as parquet:
        names = Counter(parquet.schema_arrow.names)
        for name in (name for name, count in names.items() if count > 1):
            raise InputError(f"{file.path}: {names[name]} columns are called '{name}'", _RENAME)
        for name, actual, wanted in unfit_columns(parquet.schema_arrow):
            raise InputError(
                f"{file.path}: column '{name}' is {actual}",
                f"of reports it is {wanted}; see vizpub docs: Sources",
            )
        yield from group_splits(number, file.path, parquet)


@dataclass(frozen=True)
class GroupReader:
    """Reads a row group of reports."""

    chosen: ReportFilter

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split, with a refusal at the end if the rest cannot be read."""
        tally = ReportTally()
        with open_parquet(split.path) as parquet:
            run = _header_of_metadata(parquet).get("run")
            of_file = run, unknown_columns(parquet.schema_arrow)
            if split.start == 0:
                metadata = parquet.schema_arrow.metadata or {}
                for text in (metadata[key] for key in _AFTERWORDS if key in metadata):
                    value, wrong = parse(text)
                    if wrong:
                        tally.lost_headers += 1
                        yield refusal_row(split, 1, "; ".join(wrong), text)
                    else:
                        tally.count_header({**value, "run": value.get("run") or run})

            def check_rows(batch: pa.RecordBatch, first: int) -> Iterator[InputRow]:
                return self._check_batch(batch, split, first, of_file, tally)

            yield from read_group(split, parquet, check_rows)
        yield tally_row(tally.plain)

    def _check_batch(
        self,
        batch: pa.RecordBatch,
        split: InputSplit,
        first: int,
        of_file: tuple[str | None, Sequence[str]],
        tally: ReportTally,
    ) -> Iterator[InputRow]:
        run, unknown = of_file
        shaped, wrong = reports_of(batch)
        for row, report in enumerate(values_of(shaped)):
            if row in wrong:
                (cells,) = batch.slice(row, 1).to_pylist()
                present = {name: value for name, value in cells.items() if value is not None}
                row_text = json.dumps(present, ensure_ascii=False, default=str)
                content = row_text.encode("utf-8", "replace")
                yield refusal_row(split, first + row, "; ".join(wrong[row]), content)
                continue
            tally.count_unknown(unknown)
            if self.chosen.takes(report["run"] or run, tally):
                values = {name: value for name, value in report.items() if value is not None}
                text = msgspec.json.encode(values)
                of_peer = report["peer"], report["interval"], report["seq"]
                yield record_row(*of_peer, split.file, first + row, text)


def header_of_parquet(path: str) -> dict[str, Any]:
    """Return the run header in the metadata of a file; empty if there is none."""
    with open_parquet(path) as parquet:
        return _header_of_metadata(parquet)


def _header_of_metadata(parquet: pq.ParquetFile) -> dict[str, Any]:
    text = (parquet.schema_arrow.metadata or {}).get(_AFTERWORDS[0], b"")
    header, wrong = parse(text)
    return {} if wrong else header
