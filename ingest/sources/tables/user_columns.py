"""Tables whose columns the user gives: `--columns src,dst,-,interval`, in the order of the file, or
`--columns src=from,dst=to,time=ts`, by their names in it.

The separator is the one that divides most of the first lines into as many fields. The first line
is a header if it has no number in the place of one, or names both ends of a link.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from vizpub.ingest.inputs.reader import BELOW_HEADER, InputSplit, lines
from vizpub.ingest.sources.base import LOOK_AT, first_lines
from vizpub.ingest.sources.tables.units import is_time

LEFT_OUT = "-"
"""In place of a column that is not read."""
SEPARATORS = {"commas": b",", "semicolons": b";", "tabs": b"\t", "bars": b"|", "blanks": None}
"""By the kind of encoding."""
COMMENT = re.compile(rb"\s*(?:[#%]|\Z)")
_NUMBERS = frozenset({"interval", "valid_from", "valid_to", "vf", "vt", "t_us"})
_ENDS = (
    *("src", "dst", "source", "target", "from", "to", "sender", "receiver", "origin", "u", "v"),
    *("destination", "node", "prev_node", "node1", "node2", "peer1", "peer2", "sourceid"),
    *("targetid", "source_id", "target_id", "fromnodeid", "tonodeid"),
)
"""Names of the ends of a link in headers."""
_MOST_COLUMNS = 20
_PAIR = re.compile(rb"\s*([0-9]{1,18})\s+([0-9]{1,18})\s*")
_PEEK = 100
"""Lines that are compared with the first one of a file before all are counted."""
_SHOWN = 80


def parse_columns(text: str, time: str) -> tuple[list[str], dict[str, str]]:
    """Return the columns that a user gave, and these by their names in the file if the user gave
    any. One called `time` is the column `time` of the source.
    """
    parts = [part.strip().partition("=") for part in text.split(",")]
    columns = [time if own == "time" else own for own, _, _ in parts]
    if not any(is_named for _, is_named, _ in parts):
        return columns, {}
    theirs = [name if is_named else own for own, is_named, name in parts]
    return columns, dict(zip(theirs, columns, strict=True))


def encoding_by_names(names: Mapping[str, str], head: bytes) -> str | None:
    """Return the encoding of a text whose header has columns of these names; otherwise null."""
    first = _sample_rows(head)[0]
    for separator in SEPARATORS.values():
        fields = [text.decode("utf-8", "replace") for text in split_fields(first, separator) or ()]
        header = [field.strip() for field in fields]
        if {*names} <= {*header}:
            return encoding_of([names.get(name, LEFT_OUT) for name in header], head, below=True)
    return None


def encoding_of(columns: Sequence[str], head: bytes, *, below: bool = False) -> str | None:
    """Return the encoding of a text that begins with `head` and has these columns, `below` a
    header; otherwise null.
    """
    rows = _sample_rows(head)
    for kind, separator in SEPARATORS.items():
        each = [split_fields(row, separator) for row in rows]
        if 2 * sum(len(fields or ()) == len(columns) for fields in each) > len(rows):
            is_below = below or _is_header(each[0] or [], columns)
            return f"{kind}{BELOW_HEADER if is_below else ''}({','.join(columns)})"
    return None


class ColumnGuess(NamedTuple):
    """The apparent format of a text with columns."""

    kind: str
    """One of SEPARATORS."""
    first: Sequence[str]
    """The fields of its first line."""
    text: str
    """The beginning of that line."""


def guess_columns(head: bytes) -> ColumnGuess | None:
    """Guess the format of a text whose first lines have equally many fields; null for other
    texts.
    """
    rows = _sample_rows(head)
    text = rows[0].decode("utf-8", "replace").strip()
    for kind, separator in SEPARATORS.items():
        each = [split_fields(row, separator) or [] for row in rows]
        ((width, count),) = Counter(map(len, each)).most_common(1)
        if 1 < width <= _MOST_COLUMNS and count == len(rows):
            first = [field.decode("utf-8", "replace").strip() for field in each[0]]
            return ColumnGuess(kind, first, text[:_SHOWN])
    return None


def likely_ends(names: Sequence[str]) -> list[str]:
    """Return the two names that most likely are those of the ends of a link, in order."""
    places = sorted(range(len(names)), key=lambda place: not is_end(names[place]))[:2]
    return [names[place] for place in sorted(places)]


def is_end(name: str) -> bool:
    """Return True for a usual name of an end of a link."""
    return name.lower() in _ENDS


def line_of_counts(number: int, path: str, max_line: int | None) -> int | None:
    """Return the number of a file's first line if it has the numbers of peers and links: n and m
    before m other lines, with n above every number in some of these; otherwise null.
    """
    rows = (x for x in lines(InputSplit(number, path), max_line) if not is_comment(x.text))
    first = next(rows, None)
    if first is None or not (pair := _PAIR.fullmatch(first.text)):
        return None
    peers, links = map(int, pair.groups())
    some = [_PAIR.fullmatch(line.text) for line in islice(rows, _PEEK)]
    if any(match and max(map(int, match.groups())) >= peers for match in some):
        return None
    return first.number if len(some) + sum(1 for _ in rows) == links else None


def separator_of(encoding: str) -> bytes | None:
    """Return the separator of fields; null = blanks."""
    return SEPARATORS.get(_kind(encoding).removesuffix(BELOW_HEADER))


def header_line(number: int, path: str, encoding: str, max_line: int | None) -> int | None:
    """Return the number of the header line of a file; null if it has none."""
    if not _kind(encoding).endswith(BELOW_HEADER):
        return None
    numbers = (
        one.number for one in lines(InputSplit(number, path), max_line) if not is_comment(one.text)
    )
    return next(numbers, None)


def is_comment(text: bytes) -> bool:
    """Return True for a line that is blank, or begins with # or %."""
    return bool(COMMENT.match(text))


def split_fields(text: bytes, separator: bytes | None) -> list[bytes] | None:
    """Split a row into fields, quoted as in RFC 4180; null if its quotes are invalid.

    Without a separator, blanks and tabs separate fields, and quotes are characters.
    """
    if separator is None:
        return text.split()
    if b'"' not in text:
        return text.split(separator)
    row_pattern, field_pattern = _patterns(separator)
    if not row_pattern.fullmatch(text):
        return None
    fields = field_pattern.findall(text + separator)[:-1]
    return [f[1:-1].replace(b'""', b'"') if f.startswith(b'"') else f for f in fields]


@cache
def _patterns(separator: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    by = re.escape(separator)
    field = rb'("(?:[^"]|"")*+"|[^"%s]*+)' % by
    row_pattern = re.compile(rb"%s(?:%s%s)*+" % (field, by, field))
    return row_pattern, re.compile(rb"%s(?:%s|\Z)" % (field, by))


def _sample_rows(head: bytes) -> list[bytes]:
    rows = (line.removesuffix(b"\r") for line in first_lines(head))
    return list(islice((row for row in rows if not is_comment(row)), LOOK_AT)) or [b""]


def _kind(encoding: str) -> str:
    return encoding.partition("(")[0]


def _is_header(first: Sequence[bytes], columns: Sequence[str]) -> bool:
    fields = dict(zip(columns, (field.strip() for field in first), strict=False))
    times = [text.decode("utf-8", "replace") for name, text in fields.items() if name in _NUMBERS]
    if any(text and not is_time(text) for text in times):
        return True
    ends = [text for name, text in fields.items() if name in ("src", "dst", "node", "prev_node")]
    return all(is_end(text.decode("utf-8", "replace")) for text in ends)
