"""Tabular files: comma-separated text with a header, plain columns, Parquet; checked by column.

All values are read as text, so the same rules check all. The columns of a file are part of its
encoding: `csv(src,dst,valid_from,valid_to)`. Plain columns are text with blanks or tabs between
the values and without a header; lines that begin with # or % are comments.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Self

import msgspec
import pyarrow as pa

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    INVALID_UTF8,
    Kind,
    Read,
    Row,
    Split,
    line_splits,
    lines,
    refused,
)
from vizpub.ingest.sources.base import Source, SourceOptions, Tallies
from vizpub.ingest.sources.edges.comments import UNFIT
from vizpub.ingest.sources.tables import folders, row_groups, user_columns
from vizpub.ingest.sources.tables.joined import INTERVAL, Joined, as_period, joined
from vizpub.ingest.sources.tables.rules import Fields, Rule
from vizpub.ingest.tasks.fold import Counted
from vizpub.model.errors import InputError
from vizpub.reports.fields import LAST_INTERVAL

_PARQUET, _CSV = "parquet", "csv("
PLAIN, UNDIRECTED = "columns", "undirected columns"
"""The kinds of encoding of plain columns; in undirected ones a row is a link either way."""
_PAIR_OF_PEERS = ("src", "dst")
_PAIR = re.compile(rb"\s*([0-9]{1,18})\s+([0-9]{1,18})\s*")
_PEEK = 100
"""Lines that are compared with the first one of a file before all are counted."""
_MANY = 1 << 20
"""Rows of Parquet that are joined at a time."""

COLUMNS = "--columns"
SAY = "say which column is what"
_QUOTE = "a quote that is not around a whole field, or is not closed"
_COUNTS = "the number of peers and of links, not a link"

NO_ROWS = "the files have no rows, or all were refused: see the quarantine"

Together = Callable[[Iterable[Any]], Any]
"""Combines the counts of tasks."""


class Placed(NamedTuple):
    """A valid row for the fold."""

    key: str
    """Rows of one key are folded together, by time and rank."""
    time: int
    rank: int
    record: Sequence[Any]
    """The content of the row for the fold, as JSON values."""


def own_columns(encoding: str) -> tuple[str, ...]:
    """The columns of a recognised file, without those in the names of its folders."""
    return tuple(folders.without_folders(encoding)[0].partition("(")[2].rstrip(")").split(","))


def columns_of(encoding: str) -> tuple[str, ...]:
    """All columns of a recognised file."""
    return *own_columns(encoding), *folders.without_folders(encoding)[1]


@dataclass(frozen=True)
class _TableReader:
    """Reads CSV and Parquet files."""

    encodings: Sequence[str]
    """The encodings of the files, in order."""
    rules: Mapping[str, Rule]
    """By column; rules of columns that a file lacks do not apply."""
    place: Callable[[Fields], Placed]
    """Takes a valid row, with null for columns that its file lacks."""
    max_line: int | None
    joins_rows: bool
    """Whether Parquet rows of consecutive intervals are one record."""
    either_way: frozenset[int]
    """The numbers of files of which each row is a link either way."""
    counts: Mapping[int, int]
    """The number of the line of counts (`_line_of_counts`), by the number of its file."""
    headers: Mapping[int, int]
    """The number of the line of the header, where the user told the columns, likewise."""

    def __call__(self, split: Split) -> Iterator[Row]:
        """The rows of a split, without headers, comments and blank lines."""
        encoding = self.encodings[split.file]
        read = self._rows if encoding.startswith(_PARQUET) else self._lines
        in_folders = folders.without_folders(encoding)[1].items()
        given = {name: value.encode() for name, value in in_folders}
        return read(split, own_columns(encoding), given)

    def _lines(
        self, split: Split, columns: Sequence[str], given: Mapping[str, bytes]
    ) -> Iterator[Row]:
        encoding, header = self.encodings[split.file], ",".join(columns).encode()
        is_csv, separator = encoding.startswith(_CSV), user_columns.separator_of(encoding)
        for line in lines(split, self.max_line):
            text = line.text.removesuffix(b"\r")
            if line.fault:
                yield refused(split, line.number, line.fault, line.text)
            elif _is_header(text, header) if is_csv else user_columns.is_comment(text):
                continue
            elif line.number != self.headers.get(split.file):
                fields = user_columns.split_fields(text, b"," if is_csv else separator)
                if line.number == self.counts.get(split.file):
                    found: Sequence[Placed] | str = _COUNTS
                elif fields is None:
                    found = _QUOTE
                elif len(fields) != len(columns):
                    found = f"not {len(columns)} fields"
                else:
                    values = dict(zip(columns, fields, strict=True))
                    values.pop(user_columns.LEFT_OUT, None)
                    found = self._judged({**values, **given}, split)
                yield from _rows(split, line.number, found, line.text)

    def _rows(
        self, split: Split, columns: Sequence[str], given: Mapping[str, bytes]
    ) -> Iterator[Row]:
        joins = self.joins_rows and INTERVAL in columns

        def judged(batch: pa.RecordBatch, first: int) -> Iterator[Row]:
            numbers: Sequence[int] = range(len(batch))
            if joins and (runs := joined(batch, INTERVAL, LAST_INTERVAL, self._are_valid)):
                yield from self._periods(split, batch, first, runs, given)
                numbers = runs.others.tolist()
                batch = batch.take(pa.array(runs.others))
            for number, values in zip(numbers, _as_texts(batch), strict=True):
                found = self._judged({**values, **given}, split)
                text = _as_json(values) if isinstance(found, str) else b""
                yield from _rows(split, first + number, found, text)

        with row_groups.opened(split.path) as parquet:
            yield from row_groups.read_group(
                split, parquet, judged, columns, _MANY if joins else row_groups.BATCH
            )

    def _periods(
        self,
        split: Split,
        batch: pa.RecordBatch,
        first: int,
        runs: Joined,
        given: Mapping[str, bytes],
    ) -> Iterator[Row]:
        """A record for each run of rows, and how many rows there were more."""
        begun = _as_texts(batch.take(pa.array(runs.first)))
        until = batch[INTERVAL].take(pa.array(runs.last)).to_pylist()
        for number, values, last in zip(runs.first.tolist(), begun, until, strict=True):
            fields = as_period(self._decoded({**values, **given}), last)
            yield from _rows(split, first + number, self._places(fields, split), b"")
        more = len(batch) - len(runs.others) - len(runs.first)
        yield Row(Kind.TALLY, file=split.file, record=msgspec.json.encode(more))

    def _are_valid(self, column: str, values: pa.Array) -> pa.Array:
        """Which values a column may have."""
        texts = _as_text(values).to_pylist()
        return pa.array([not isinstance(self._checked({column: text}), str) for text in texts])

    def _judged(self, values: Mapping[str, bytes | None], split: Split) -> Sequence[Placed] | str:
        """A valid row, either way if it has no direction, or the reason for refusing it."""
        fields = self._checked(values)
        return fields if isinstance(fields, str) else self._places(fields, split)

    def _places(self, fields: Fields, split: Split) -> Sequence[Placed]:
        placed = self.place(fields)
        if split.file not in self.either_way or not fields["src"]:
            return (placed,)
        back = self.place({**fields, "src": fields["dst"], "dst": fields["src"]})
        return placed, back._replace(rank=1)

    def _checked(self, values: Mapping[str, bytes | None]) -> Fields | str:
        """The fields of a valid row, or the reason for refusing it."""
        try:
            fields = self._decoded(values)
        except UnicodeDecodeError:
            return INVALID_UTF8
        rules = ((name, rule) for name, rule in self.rules.items() if name in values)
        wrong = [problem for name, rule in rules if (problem := rule(fields, name))]
        return "; ".join(wrong) or fields

    def _decoded(self, values: Mapping[str, bytes | None]) -> dict[str, str | None]:
        """All fields, null where they are empty. Raises: UnicodeDecodeError."""
        known = {name: value.decode() for name, value in values.items() if value}
        return dict.fromkeys(self.rules) | known


def is_plain_text(encoding: str) -> bool:
    """Whether a recognised file has plain columns."""
    return encoding.partition("(")[0] in (PLAIN, UNDIRECTED)


def _is_header(text: bytes, header: bytes) -> bool:
    """Whether a line of CSV is blank, or the header."""
    return not text.strip(b" ") or text.replace(b'"', b"") == header


def _line_of_counts(number: int, path: str, max_line: int | None) -> int | None:
    """The number of a file's first line, if it is a pair n, m before m other lines, and n is above
    every number in some of them: some lists begin with how many peers and links they have.
    """
    told = (x for x in lines(Split(number, path), max_line) if not user_columns.is_comment(x.text))
    first = next(told, None)
    if first is None or not (pair := _PAIR.fullmatch(first.text)):
        return None
    peers, links = map(int, pair.groups())
    some = [_PAIR.fullmatch(line.text) for line in islice(told, _PEEK)]
    if any(found and max(map(int, found.groups())) >= peers for found in some):
        return None
    return first.number if len(some) + sum(1 for _ in told) == links else None


def _are_texts(schema: pa.Schema) -> bool:
    try:
        for field in schema:
            _as_text(pa.nulls(0, field.type))
    except pa.ArrowException:
        return False
    return True


def _as_text(values: pa.Array) -> pa.Array:
    """Values as bytes, which need not be UTF-8. Raises: ArrowException for nested types."""
    kind = values.type
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return (values if is_binary else values.cast(pa.string())).cast(pa.binary())


def _as_texts(batch: pa.RecordBatch) -> Iterator[dict[str, bytes | None]]:
    """The rows, as bytes by column."""
    names = batch.schema.names
    for row in zip(*(_as_text(batch[name]).to_pylist() for name in names), strict=True):
        yield dict(zip(names, row, strict=True))


def _as_json(values: Mapping[str, bytes | None]) -> bytes:
    """A row as JSON, without absent values."""
    known = {name: value for name, value in values.items() if value is not None}
    return msgspec.json.encode({n: value.decode("utf-8", "replace") for n, value in known.items()})


def _rows(split: Split, number: int, found: Sequence[Placed] | str, text: bytes) -> Iterator[Row]:
    if isinstance(found, str):
        yield refused(split, number, found, text)
        return
    for key, time, rank, record in found:
        encoded = msgspec.json.encode(record)
        yield Row(Kind.RECORD, key, time, rank, split.file, number, None, encoded)


class TableSource(Source):
    """A source of tabular files."""

    options = frozenset({"interval_us", "max_line", "undirected", "columns", "time_unit_us"})
    columns: tuple[str, ...] | None = None
    """As the user told them; null = the files tell."""
    headers: Collection[tuple[str, ...]]
    """The possible headers of a file."""
    rules: Mapping[str, Rule]
    """The rules of all columns."""
    together: Mapping[str, Together]
    """How to combine each count of the fold; null where no task has a value."""

    joins_rows = False
    """Whether a row may have `valid_from` and `valid_to` in place of consecutive values of
    `interval`; the fold then gets tallies of how many rows there were more.
    """

    @staticmethod
    @abstractmethod
    def place(row: Fields) -> Placed:
        """A valid row, with its key and time."""

    def recognises(self, path: str, head: bytes) -> str | None:
        """'csv(…)' or 'parquet(…)', if the columns of the file are one of the headers; the kind of
        separator where the user told the columns.
        """
        in_folders = self._in_folders(path)
        schema = row_groups.schema_of(path, head)
        if self.columns is not None:
            encoding = user_columns.encoding_of(self.columns, head) if schema is None else None
            return encoding and folders.with_folders(encoding, in_folders)
        if schema is not None:
            kind, columns = _PARQUET, tuple(schema.names) if _are_texts(schema) else ()
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
        """The columns of the source in the names of a file's folders."""
        return {name: of for name, of in folders.folder_columns(path).items() if name in self.rules}

    def told(self, columns: Sequence[str]) -> Self | None:
        """The source for files with these columns; null if they are none of its headers."""
        if not self.are_columns([name for name in columns if name != user_columns.LEFT_OUT]):
            return None
        made = type(self)()
        made.columns = tuple(columns)
        return made

    def are_columns(self, columns: Sequence[str]) -> bool:
        """Whether they are those of a header, in any order."""
        return any(sorted(columns) == sorted(header) for header in self.headers)

    def near_miss(self, path: str, head: bytes) -> str | None:
        """A header with the columns of one of ours, in another order, with others, or separated by
        something else; and how to say which column is what.
        """
        found = user_columns.guess(head)
        if self.columns is not None:
            has = f"it has {len(found.first)}: '{found.text}'" if found else "it has none"
            return f"it does not have the {len(self.columns)} columns of {COLUMNS}; {has}"
        if found is None:
            return None
        names = [name.lower() for name in found.first]
        in_folders = self._in_folders(path)
        if in_folders and {"src", "dst"} <= {*names}:
            return f"its columns are '{found.text}', and its folders repeat {', '.join(in_folders)}"
        almost = [header for header in self.headers if {*header} <= {*names}]
        if not almost:
            return None
        wanted = max(almost, key=len)
        told = ",".join(name if name in wanted else user_columns.LEFT_OUT for name in names)
        expected = f"its header is '{found.text}'; expected '{','.join(wanted)}'"
        return f"{expected}; {SAY}: {COLUMNS} {told}"

    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """Ranges of lines, and row groups of Parquet. Raises: InputError for what is no list."""
        for file in files:
            if why := UNFIT.get(file.encoding.removesuffix("()")):
                raise InputError(f"{file.path} {why}", "docs/sources.md describes the formats")
        folders.check_folders((file.path for file in files), self.rules)
        in_parquet = {file.encoding for file in files if file.encoding.startswith(_PARQUET)}
        found = line_splits(files, leave_out=in_parquet)
        for number, file in enumerate(files):
            if file.encoding in in_parquet:
                with row_groups.opened(file.path) as parquet:
                    found += row_groups.group_splits(number, file.path, parquet)
        return found

    def reader(
        self,
        files: Sequence[InputFile],
        options: SourceOptions,
        tallies: Callable[[Read], Tallies],
        counted: Counted | None = None,
    ) -> Read:
        """Reads CSV, plain columns and Parquet; checks each row by itself."""
        del tallies, counted
        encodings, limit = [file.encoding for file in files], options.max_line
        counts = {
            number: line
            for number, file in enumerate(files)
            if is_plain_text(file.encoding)
            and columns_of(file.encoding) == _PAIR_OF_PEERS
            and (line := _line_of_counts(number, file.path, limit))
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
        how = limit, self.joins_rows, either_way, counts, headers
        return _TableReader(encodings, self.rules, self.place, *how)

    def tallied(self, tallies: Tallies) -> Counted:
        """Combined by `together`."""
        known = {n: [one[n] for one in tallies if one[n] is not None] for n in self.together}
        return {n: put(known[n]) if known[n] else None for n, put in self.together.items()}
