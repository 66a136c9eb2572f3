"""Side files of attributes: facts about peers that their reports or traces lack.

Comma-separated text or Parquet, also compressed, with a row per value: `peer,key,value`; or a row
per peer, with a column per key: `peer,client,country`. `from` and `to` limit the time in which the
values hold: interval numbers, times since the start such as 12.5s, or wall-clock times.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import isnan
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from vizpub.ingest.inputs.files import UNREADABLE, find_files, locate
from vizpub.ingest.inputs.reader import INVALID_UTF8
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import InputError, UseError
from vizpub.model.wording import amount
from vizpub.reports.compressed import packing_fault, without_query
from vizpub.reports.fields import Key

COLUMNS_WANTED = (
    "give a header with the columns peer,key,value, or peer and a column for each key such as "
    "peer,client,country; from and to may follow"
)
NEW_ATTRIBUTES = "its files of attributes differ"
CHANGED_SINCE = "has changed since the run was made from it"
_TIMES = ("from", "to")
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_PARQUET = b"PAR1"
_SHOWN = 5
_CHECK = Key()
SIDE = pa.schema(
    [
        *((name, pa.string()) for name in ("peer", "key", "value")),
        *((name, pa.int64()) for name in ("valid_from", "valid_to")),
    ]
)
"""Columns of the values that side files state, in ticks."""


class StatedValue(NamedTuple):
    """A value that a line of a side file states."""

    line: int
    peer: str
    key: str
    value: str
    since: str | None
    """The time from which it holds, as text; null = from the beginning."""
    until: str | None
    """The time before which it holds, as text; null = until the next one."""


class AttributeFile(NamedTuple):
    """A side file that has been read."""

    path: str
    sha256: str
    values: list[StatedValue]

    @property
    def manifest_entry(self) -> dict[str, str]:
        """The file in the options of run.json."""
        return {"path": self.path, "sha256": self.sha256}


def read_attribute_files(paths: Iterable[str]) -> list[AttributeFile]:
    """Read side files. Raises: InputError for a file that cannot be read or has other columns, and
    for lines that are no values.
    """
    return [_read_file(path) for resolved in find_files(paths).values() for path in resolved.files]


def read_again(entries: Iterable[Mapping[str, str]]) -> list[AttributeFile]:
    """Read the side files that run.json names. Raises: InputError, also for one that changed."""
    files = []
    for entry in entries:
        files += read_attribute_files([entry["path"]])
        if files[-1].sha256 != entry["sha256"]:
            raise InputError(
                f"{entry['path']} {CHANGED_SINCE}",
                "restore it, or ingest all files of the run with --replace",
            )
    return files


def _read_file(path: str) -> AttributeFile:
    filesystem, inside = locate(path)
    try:
        with filesystem.open_input_file(inside) as stream:
            content = stream.read()
        digest = hashlib.sha256(content).hexdigest()
        if why := packing_fault(path, content):
            raise InputError(f"{path} {UNREADABLE}: {why}", COLUMNS_WANTED)
        suffix = next((end for end in _COMPRESSED if without_query(path).endswith(end)), None)
        if suffix:
            raw = pa.BufferReader(content)
            content = pa.CompressedInputStream(raw, _COMPRESSED[suffix]).read()
        rows = _parquet_rows(content) if content.startswith(_PARQUET) else _text_rows(content)
        return AttributeFile(path, digest, [*_stated_values(path, rows)])
    except UnicodeDecodeError as error:
        raise InputError(f"{path} {UNREADABLE}: {INVALID_UTF8}", "save it as UTF-8") from error
    except (OSError, pa.ArrowException, csv.Error) as error:
        raise InputError(f"{path} {UNREADABLE}: {error}", COLUMNS_WANTED) from error


_Rows = Iterator[tuple[int, Sequence[str | None]]]
"""The header, and then the values of each row, with its line."""


def _text_rows(content: bytes) -> _Rows:
    """Yield rows of delimited text; the header shows the delimiter."""
    text = content.decode("utf-8-sig")
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    for row in reader:
        if any(cell.strip() for cell in row):
            yield reader.line_num, row


def _parquet_rows(content: bytes) -> _Rows:
    table = pq.read_table(pa.BufferReader(content))
    yield 0, table.column_names
    for number, row in enumerate(zip(*(column.to_pylist() for column in table), strict=True), 1):
        yield number, [_as_text(value) for value in row]


def _as_text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and isnan(value)):
        return None
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _stated_values(path: str, rows: _Rows) -> Iterator[StatedValue]:
    """Yield the values of the rows below the header. Raises: InputError."""
    header = [str(name).strip() for name in next(rows, (0, ()))[1]]
    keys = [name for name in header if name not in ("peer", *_TIMES)]
    is_long = {"key", "value"} == {*keys}
    if (
        "peer" not in header
        or not keys
        or len({*header}) < len(header)
        or "" in header
        or (not is_long and {"key", "value"} & {*keys})
    ):
        raise InputError(f"{path}: its columns are {', '.join(header) or 'none'}", COLUMNS_WANTED)
    problems = []
    for line, cells in rows:
        if len(cells) != len(header):
            text = f"{amount(len(cells), 'field')}, and the header has {len(header)}"
            problems.append(f"line {line}: {text}")
            continue
        row = dict(zip(header, cells, strict=True))
        pairs = [(row["key"], row["value"])] if is_long else [(key, row[key]) for key in keys]
        for key, value in pairs:
            if not is_long and not value:
                continue  # unknown
            fields = {"peer": row["peer"], "key": key, "value": value}
            wrong = [
                text for at, cell in fields.items() for text in _CHECK.problems(cell or "", at)
            ]
            problems += (f"line {line}: {text}" for text in wrong)
            if not wrong:
                times = (row.get(name) or None for name in _TIMES)
                yield StatedValue(line, str(row["peer"]), str(key), str(value), *times)
    _raise_problems(path, problems)


def _raise_problems(path: str, problems: Sequence[str]) -> None:
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InputError(f"{path}: {'; '.join(problems[:_SHOWN])}{more}", "correct these lines")


class _StatedPeriod(NamedTuple):
    """When a file says that a peer has a value."""

    since: int
    until: int
    value: str
    line: int
    has_end: bool


def side_table(files: Iterable[AttributeFile], clock: Clock, epoch: str | None) -> pa.Table:
    """Return the values that side files state, in ticks of the run: a table of SIDE. What a later
    file says of a peer's key replaces what an earlier one says.

    Raises: InputError for times that are none, and values of a peer's key at the same time.
    """
    of_pairs: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for file in files:
        of_pairs.update(_periods(file, clock, epoch))
    rows = [(*pair, value, *period) for pair, of in of_pairs.items() for *period, value in of]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in SIDE]
    return pa.Table.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, SIDE.types, strict=True)],
        schema=SIDE,
    )


def _periods(
    file: AttributeFile, clock: Clock, epoch: str | None
) -> dict[tuple[str, str], list[tuple[int, int, str]]]:
    """Return valid_from, valid_to and value by peer and key, in order of time, of one file."""
    start = clock.first * clock.ticks_per_interval
    problems, of_pairs = list[str](), defaultdict[tuple[str, str], list[_StatedPeriod]](list)
    for value in file.values:
        try:
            since = clock.begin_of(value.since, epoch) if value.since else start
            until = clock.begin_of(value.until, epoch) if value.until else OPEN
        except UseError as error:
            problems.append(f"line {value.line}: {error}")
            continue
        if until <= since:
            problems.append(f"line {value.line}: it ends before it begins, or at once")
        stated = _StatedPeriod(since, until, value.value, value.line, bool(value.until))
        of_pairs[value.peer, value.key].append(stated)
    for (peer, key), periods in of_pairs.items():
        periods.sort(key=lambda period: (period.since, period.line))
        for earlier, later in pairwise(periods):
            is_same = later.since == earlier.since
            if is_same or (earlier.has_end and later.since < earlier.until):
                text = f"'{key}' of peer '{peer}' has a value at this time in line {earlier.line}"
                problems.append(f"line {later.line}: {text}")
    _raise_problems(file.path, problems)
    return {pair: _end_at_the_next(periods, start) for pair, periods in of_pairs.items()}


def _end_at_the_next(periods: Sequence[_StatedPeriod], start: int) -> list[tuple[int, int, str]]:
    """End each value where the next one begins, and leave out those that end before the run."""
    nexts = [*(period.since for period in periods[1:]), OPEN]
    return [
        (max(one.since, start), until, one.value)
        for one, following in zip(periods, nexts, strict=True)
        if start < (until := min(one.until, following)) and one.since < until
    ]
