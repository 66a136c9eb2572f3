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
from vizpub.ingest.inputs.reader import Row, Split, refused
from vizpub.ingest.sources.reports.columns import (
    reports_of,
    unfit_columns,
    unknown_columns,
    values_of,
)
from vizpub.ingest.sources.reports.decoding import Chosen, record_row, tally_row
from vizpub.ingest.sources.reports.facts import Tally
from vizpub.ingest.sources.tables.row_groups import group_splits, opened, read_group, schema_of
from vizpub.model.errors import InputError
from vizpub.reports.files import parse

ENCODING = "parquet"

_RENAME = "one of them would count and the others would not: leave them out, or rename them"
_AFTERWORDS = (b"vizpub.run", b"vizpub.end")
"""Keys of the file metadata with a run header and an end."""


def is_reports(path: str, head: bytes) -> bool:
    """Whether the file is Parquet with the columns peer and interval."""
    schema = schema_of(path, head)
    return schema is not None and {"peer", "interval"} <= set(schema.names)


def splits_of(number: int, file: InputFile) -> Iterator[Split]:
    """A split for each row group.

    Raises: InputError where a column cannot be what the contract wants.
    """
    with opened(file.path) as parquet:
        names = Counter(parquet.schema_arrow.names)
        for name in (name for name, count in names.items() if count > 1):
            raise InputError(f"{file.path}: {names[name]} columns are called '{name}'", _RENAME)
        for name, found, wanted in unfit_columns(parquet.schema_arrow):
            raise InputError(
                f"{file.path}: column '{name}' is {found}",
                f"of reports it is {wanted}; see docs/sources.md",
            )
        yield from group_splits(number, file.path, parquet)


@dataclass(frozen=True)
class GroupReader:
    """Reads a row group."""

    chosen: Chosen

    def __call__(self, split: Split) -> Iterator[Row]:
        """The rows of a split; a refusal at the end if the rest cannot be read."""
        tally = Tally()
        with opened(split.path) as parquet:
            of_file = _header(parquet).get("run"), unknown_columns(parquet.schema_arrow)
            if split.start == 0:
                yield from _afterwords(parquet, split, tally)

            def judged(batch: pa.RecordBatch, first: int) -> Iterator[Row]:
                return self._judged(batch, split, first, of_file, tally)

            yield from read_group(split, parquet, judged)
        yield tally_row(tally)

    def _judged(
        self,
        batch: pa.RecordBatch,
        split: Split,
        first: int,
        of_file: tuple[str | None, Sequence[str]],
        tally: Tally,
    ) -> Iterator[Row]:
        run, unknown = of_file
        shaped, wrong = reports_of(batch)
        for row, report in enumerate(values_of(shaped)):
            if row in wrong:
                yield refused(split, first + row, "; ".join(wrong[row]), _as_text(batch, row))
                continue
            tally.unknown(unknown)
            if self.chosen.takes(report["run"] or run, tally):
                known = {name: value for name, value in report.items() if value is not None}
                text = msgspec.json.encode(known)
                of_peer = report["peer"], report["interval"], report["seq"]
                yield record_row(*of_peer, split.file, first + row, text)


def header_of_parquet(path: str) -> dict[str, Any]:
    """The run header in the metadata of a file; empty if there is none."""
    with opened(path) as parquet:
        return _header(parquet)


def _header(parquet: pq.ParquetFile) -> dict[str, Any]:
    text = (parquet.schema_arrow.metadata or {}).get(_AFTERWORDS[0], b"")
    header, wrong = parse(text)
    return {} if wrong else header


def _afterwords(parquet: pq.ParquetFile, split: Split, tally: Tally) -> Iterator[Row]:
    """The run header and the end in a file's metadata."""
    metadata = parquet.schema_arrow.metadata or {}
    for text in (metadata[key] for key in _AFTERWORDS if key in metadata):
        value, wrong = parse(text)
        if wrong:
            tally.lost_headers += 1
            yield refused(split, 1, "; ".join(wrong), text)
        else:
            tally.header({**value, "run": value.get("run") or _header(parquet).get("run")})


def _as_text(batch: pa.RecordBatch, row: int) -> bytes:
    """A row as JSON, without absent values."""
    (values,) = batch.slice(row, 1).to_pylist()
    known = {name: value for name, value in values.items() if value is not None}
    return json.dumps(known, ensure_ascii=False, default=str).encode("utf-8", "replace")
