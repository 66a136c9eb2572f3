"""Tabular files: comma-separated text with a header, plain columns, Parquet; checked by column.

All values are read as text, so the same rules check all. The columns of a file are part of its
encoding: `csv(src,dst,valid_from,valid_to)`. Plain columns are text with blanks or tabs between
the values and without a header; lines that begin with # or % are comments.
"""

from __future__ import annotations

from abc import abstractmethod
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import msgspec
import pyarrow as pa

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    INVALID_UTF8,
    InputRow,
    InputSplit,
    RowKind,
    SplitReader,
    as_one_record,
    line_splits,
    lines,
    refusal_row,
)
from vizpub.ingest.sources.base import SEE_FORMATS, Source, SourceInput, SourceOptions, Tallies
from vizpub.ingest.sources.edges.comments import UNFIT
from vizpub.ingest.sources.tables import folders, row_groups, user_columns
from vizpub.ingest.sources.tables.joined import INTERVAL, JoinedRows, join_intervals, period_fields
from vizpub.ingest.sources.tables.rules import Fields, Rule
from vizpub.ingest.sources.tables.units import TimeScale
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.model.errors import InputError
from vizpub.reports.fields import LAST_INTERVAL

_PARQUET, _CSV = "parquet", "csv("
PLAIN, UNDIRECTED = "columns", "undirected columns"
"""The kinds of encoding of plain columns; in undirected ones a row is a link either way."""
_PAIR_OF_PEERS = ("src", "dst")
_MANY = 1 << 20
"""Rows of Parquet that are joined at a time."""

COLUMNS = "--columns"
SAY = "say which column is what"
_QUOTE = "a quote that is not around a whole field, or is not closed"
_COUNTS = "the number of peers and of links, not a link"

NO_ROWS = "the files have no rows, or all were refused: see the quarantine"

CountCombiner = Callable[[Iterable[Any]], Any]
"""A function that combines the counts of tasks."""


class PlacedRow(NamedTuple):
    """A valid row with its place in the fold."""

    key: str
    """Rows of one key are folded together, by time and rank."""
    time: int
    rank: int
    record: Sequence[Any]
    """The content of the row for the fold, as JSON values."""


def own_columns(encoding: str) -> tuple[str, ...]:
    """Return the columns of a recognised file, without those in the names of its folders."""
    return tuple(folders.without_folders(encoding)[0].partition("(")[2].rstrip(")").split(","))


def columns_of(encoding: str) -> tuple[str, ...]:
    """Return all columns of a recognised file."""
    return *own_columns(encoding), *folders.without_folders(encoding)[1]


@dataclass(frozen=True)
class _TableReader:
    """Reads CSV and Parquet files."""

    encodings: Sequence[str]
    """The encodings of the files, in order."""
    rules: Mapping[str, Rule]
    """By column; rules of columns that a file lacks do not apply."""
    place: Callable[[Fields], PlacedRow]
    """Places a valid row, with null for columns that its file lacks."""
    scales: Sequence[TimeScale]
    """Of the times of each file, likewise."""
    names: Mapping[str, str]
    """The columns by their names in Parquet files, where the user gave these."""
    max_line: int | None
    joins_rows: bool
    """True if Parquet rows of consecutive intervals are one record."""
    either_way: frozenset[int]
    """The numbers of files of which each row is a link either way."""
    counts: Mapping[int, int]
    """The number of the line of counts (`line_of_counts`), by the number of its file."""
    headers: Mapping[int, int]
    """The number of the line of the header, where the user told the columns, likewise."""

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split, without headers, comments and blank lines."""
        encoding = self.encodings[split.file]
        read_rows = self._rows if encoding.startswith(_PARQUET) else self._lines
        in_folders = folders.without_folders(encoding)[1].items()
        in_path = {name: value.encode() for name, value in in_folders}
        return read_rows(split, own_columns(encoding), in_path)

    def _lines(
        self, split: InputSplit, columns: Sequence[str], in_path: Mapping[str, bytes]
    ) -> Iterator[InputRow]:
        encoding, header = self.encodings[split.file], ",".join(columns).encode()
        is_csv, separator = encoding.startswith(_CSV), user_columns.separator_of(encoding)
        for line in lines(split, self.max_line):
            text = line.text.removesuffix(b"\r")
            if line.fault:
                yield refusal_row(split, line.number, line.fault, line.text)
                continue
            is_header = not text.strip(b" ") or text.replace(b'"', b"") == header
            if is_header if is_csv else user_columns.is_comment(text):
                continue
            if line.number != self.headers.get(split.file):
                fields = user_columns.split_fields(text, b"," if is_csv else separator)
                if line.number == self.counts.get(split.file):
                    placed: Sequence[PlacedRow] | str = _COUNTS
                elif fields is None:
                    placed = _QUOTE
                elif len(fields) != len(columns):
                    placed = f"not {len(columns)} fields"
                else:
                    values = dict(zip(columns, fields, strict=True))
                    values.pop(user_columns.LEFT_OUT, None)
                    placed = self._check_row({**values, **in_path}, split)
                yield from _rows_of_line(split, line.number, placed, line.text)

    def _rows(
        self, split: InputSplit, columns: Sequence[str], in_path: Mapping[str, bytes]
    ) -> Iterator[InputRow]:
        joins = self.joins_rows and INTERVAL in columns
        named = {column: name for name, column in self.names.items()}

        def check_rows(batch: pa.RecordBatch, first: int) -> Iterator[InputRow]:
            batch = batch.rename_columns([self.names.get(n, n) for n in batch.schema.names])
            numbers: Sequence[int] = range(len(batch))
            if joins and (runs := join_intervals(batch, INTERVAL, LAST_INTERVAL, self._are_valid)):
                yield from self._periods(split, batch, first, runs, in_path)
                numbers = runs.others.tolist()
                batch = batch.take(pa.array(runs.others))
            for number, values in zip(numbers, row_groups.rows_as_bytes(batch), strict=True):
                placed = self._check_row({**values, **in_path}, split)
                text = row_groups.row_as_json(values) if isinstance(placed, str) else b""
                yield from _rows_of_line(split, first + number, placed, text)

        with row_groups.open_parquet(split.path) as parquet:
            yield from row_groups.read_group(
                split,
                parquet,
                check_rows,
                [named.get(column, column) for column in columns],
                _MANY if joins else row_groups.BATCH,
            )

    def _periods(
        self,
        split: InputSplit,
        batch: pa.RecordBatch,
        first: int,
        runs: JoinedRows,
        in_path: Mapping[str, bytes],
    ) -> Iterator[InputRow]:
        """Yield a record for each run of rows, and the number of further rows."""
        first_rows = row_groups.rows_as_bytes(batch.take(pa.array(runs.first)))
        until = batch[INTERVAL].take(pa.array(runs.last)).to_pylist()
        for number, values, last in zip(runs.first.tolist(), first_rows, until, strict=True):
            period = period_fields(self._decode_fields({**values, **in_path}), last)
            fields = self.scales[split.file].convert(period)
            yield from _rows_of_line(split, first + number, self._places(fields, split), b"")
        more = len(batch) - len(runs.others) - len(runs.first)
        yield InputRow(RowKind.TALLY, file=split.file, record=msgspec.json.encode(more))

    def _are_valid(self, column: str, values: pa.Array) -> pa.Array:
        """Return a mask of the values that a column may have."""
        texts = row_groups.array_as_bytes(values).to_pylist()
        return pa.array([not isinstance(self._check_fields({column: text}), str) for text in texts])

    def _check_row(
        self, values: Mapping[str, bytes | None], split: InputSplit
    ) -> Sequence[PlacedRow] | str:
        """Place a valid row, both ways if undirected, or return the reason to refuse it."""
        fields = self._check_fields(values, self.scales[split.file])
        return fields if isinstance(fields, str) else self._places(fields, split)

    def _places(self, fields: Fields, split: InputSplit) -> Sequence[PlacedRow]:
        placed = self.place(fields)
        if split.file not in self.either_way or not fields["src"]:
            return (placed,)
        back = self.place({**fields, "src": fields["dst"], "dst": fields["src"]})
        return placed, back._replace(rank=1)

    def _check_fields(
        self, values: Mapping[str, bytes | None], scale: TimeScale | None = None
    ) -> Fields | str:
        """Return the fields of a valid row, or the reason to refuse it."""
        try:
            fields = self._decode_fields(values)
            if scale is not None:
                fields = scale.convert(fields)
        except UnicodeDecodeError:
            return INVALID_UTF8
        rules = ((name, rule) for name, rule in self.rules.items() if name in values)
        wrong = [problem for name, rule in rules if (problem := rule(fields, name))]
        return "; ".join(wrong) or fields

    def _decode_fields(self, values: Mapping[str, bytes | None]) -> dict[str, str | None]:
        """Decode all fields; empty ones are null. Raises: UnicodeDecodeError."""
        texts = {name: value.decode() for name, value in values.items() if value}
        return dict.fromkeys(self.rules) | texts


def is_plain_text(encoding: str) -> bool:
    """Return True for a recognised file with plain columns."""
    return encoding.partition("(")[0] in (PLAIN, UNDIRECTED)


def _rows_of_line(
    split: InputSplit, number: int, placed: Sequence[PlacedRow] | str, text: bytes
) -> Iterator[InputRow]:
    if isinstance(placed, str):
        yield refusal_row(split, number, placed, text)
        return
    place = split.file, number, None
    yield from as_one_record(
        InputRow(RowKind.RECORD, key, time, rank, *place, msgspec.json.encode(record))
        for key, time, rank, record in placed
    )


class TableSource(Source):
    """A source of tabular files."""

    options = frozenset({"interval_us", "max_line", "undirected", "columns", "time_unit_us"})
    columns: tuple[str, ...] | None = None
    """Columns that the user gave, in the order of the file; null = those of the files."""
    names: Mapping[str, str] | None = None
    """Columns by the names that the user gave instead; null = those of the files."""
    time_column: str
    """The column that the user may also call `time`."""
    headers: Collection[tuple[str, ...]]
    """The possible headers of a file."""
    rules: Mapping[str, Rule]
    """The rules of all columns."""
    together: Mapping[str, CountCombiner]
    """Function that combines each count of the fold; the result is null if no task has a value."""

    joins_rows = False
    """True if a row may have `valid_from` and `valid_to` in place of consecutive values of
    `interval`; the fold then gets tallies of the further rows.
    """

    @staticmethod
    @abstractmethod
    def place(row: Fields) -> PlacedRow:
        """Place a valid row: give it its key, time and rank."""

    @abstractmethod
    def scale_of(self, file: InputFile, options: SourceOptions) -> TimeScale:
        """Return the scale of the times in a file."""

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'csv(…)' or 'parquet(…)' if the columns of the file are one of the headers; the
        kind of separator if the user gave the columns.
        """
        in_folders = self._in_folders(path)
        schema = row_groups.schema_of(path, head)
        if self.columns is not None:
            encoding = user_columns.encoding_of(self.columns, head) if schema is None else None
            return encoding and folders.with_folders(encoding, in_folders)
        if self.names is not None:
            encoding = user_columns.encoding_by_names(self.names, head)
            if schema is not None and {*self.names} <= {*schema.names}:
                encoding = f"{_PARQUET}({','.join(self.names.values())})"
            return encoding and folders.with_folders(encoding, in_folders)
        if schema is not None:
            kind, columns = _PARQUET, tuple(schema.names) if row_groups.are_texts(schema) else ()
        else:
            first = head.partition(b"\n")[0].removeprefix(BOM_UTF8).rstrip(b"\r")
            kind, names = "csv", first.decode("utf-8", "replace").replace('"', "")
            columns = tuple(names.split(","))
        if not (
            self.are_columns((*columns, *in_folders)) if in_folders else columns in self.headers
        ):
            return None
        return folders.with_folders(f"{kind}({','.join(columns)})", in_folders)

    def _in_folders(self, path: str) -> dict[str, str]:
        """Return the columns of the source in the names of a file's folders."""
        return {name: of for name, of in folders.folder_columns(path).items() if name in self.rules}

    def with_columns(self, text: str) -> Self | None:
        """Return the source for files with the columns that the user gave; null if they are none of
        its headers.
        """
        columns, names = user_columns.parse_columns(text, self.time_column)
        if not self.are_columns([name for name in columns if name != user_columns.LEFT_OUT]):
            return None
        source = type(self)()
        source.columns, source.names = (None, names) if names else (tuple(columns), None)
        return source

    def are_columns(self, columns: Sequence[str]) -> bool:
        """Return True if they are those of a header, in any order."""
        return any(sorted(columns) == sorted(header) for header in self.headers)

    def near_miss(self, path: str, head: bytes) -> str | None:
        """Describe a header with the columns of one of ours that are in another order, among others
        or separated differently, and say how to name the columns; null for other files.
        """
        guessed = user_columns.guess_columns(head)
        if self.names is not None:
            has = f"its columns are '{guessed.text}'" if guessed else "it has none"
            return f"it does not have the columns {', '.join(self.names)} of {COLUMNS}; {has}"
        if self.columns is not None:
            has = f"it has {len(guessed.first)}: '{guessed.text}'" if guessed else "it has none"
            return f"it does not have the {len(self.columns)} columns of {COLUMNS}; {has}"
        if guessed is None:
            return None
        names = [name.lower() for name in guessed.first]
        in_folders = self._in_folders(path)
        if in_folders and {"src", "dst"} <= {*names}:
            return (
                f"its columns are '{guessed.text}', and its folders repeat {', '.join(in_folders)}"
            )
        almost = [header for header in self.headers if {*header} <= {*names}]
        if not almost:
            return None
        wanted = max(almost, key=len)
        columns = ",".join(name if name in wanted else user_columns.LEFT_OUT for name in names)
        expected = f"its header is '{guessed.text}'; expected '{','.join(wanted)}'"
        return f"{expected}; {SAY}: {COLUMNS} {columns}"

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return ranges of lines, and row groups of Parquet. Raises: InputError for unfit files."""
        for file in files:
            if why := UNFIT.get(file.encoding.removesuffix("()")):
                raise InputError(f"{file.path} {why}", SEE_FORMATS)
        folders.check_folders((file.path for file in files), self.rules)
        in_parquet = [
            (n, file) for n, file in enumerate(files) if file.encoding.startswith(_PARQUET)
        ]
        of_text = line_splits(files, leave_out={file.encoding for _, file in in_parquet})
        return of_text + row_groups.splits_by_group(in_parquet)

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of CSV, plain columns and Parquet, which checks each row by itself."""
        files, options = source_input.files, source_input.options
        encodings, limit = [file.encoding for file in files], options.max_line
        counts = {
            number: line
            for number, file in enumerate(files)
            if is_plain_text(file.encoding)
            and columns_of(file.encoding) == _PAIR_OF_PEERS
            and (line := user_columns.line_of_counts(number, file.path, limit))
        }
        either_way = frozenset(
            number
            for number, encoding in enumerate(encodings)
            if options.undirected or encoding.startswith(UNDIRECTED)
        )
        headers = {
            number: line
            for number, file in enumerate(files)
            if (line := user_columns.header_line(number, file.path, file.encoding, limit))
        }
        return _TableReader(
            encodings,
            self.rules,
            self.place,
            scales=[self.scale_of(file, options) for file in files],
            names=user_columns.parse_columns(options.columns or "", self.time_column)[1],
            max_line=limit,
            joins_rows=self.joins_rows,
            either_way=either_way,
            counts=counts,
            headers=headers,
        )

    def combine_tallies(self, tallies: Tallies) -> RunCounts:
        """Combine the counts by the functions in `together`."""
        values = {n: [one[n] for one in tallies if one[n] is not None] for n in self.together}
        return {
            n: combine(values[n]) if values[n] else None for n, combine in self.together.items()
        }
