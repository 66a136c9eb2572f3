"""Pattern files: named regular expressions that find events in lines of a log.

time_unit = "ns"                     # of times that are numbers
file = '(?P<peer>[^/]+)\\.log$'       # what the path of a file says; others are left out

[lines.received]
kind = "deliver"
pattern = 'Received (?P<message>\\w+) at (?P<time>\\d+)'
topic = "test"                       # where the expression finds none
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vizpub.ingest.inputs.reader import RecordRefused
from vizpub.ingest.sources.libp2p.events import CONTROL_CHARACTER, EventType
from vizpub.ingest.sources.libp2p.interop import parse_time
from vizpub.machine.files import text_of
from vizpub.model.errors import InputError, cause_of
from vizpub.reports.compressed import plain_path
from vizpub.reports.fields import INT64

_MESSAGE = {"message": True, "topic": False}
_COPY = {**_MESSAGE, "other": False}
_ARRIVAL = {**_COPY, "published": False}
_MESH = {"other": True, "topic": True}


class EventKind(NamedTuple):
    """The event that a line becomes, and what its expression must name."""

    type: EventType
    groups: Mapping[str, bool]
    """The groups that an expression may have besides `time` and `peer`; true = it must."""


# An RPC stands for a copy of a message: the fold knows whether the peer had another one.
KINDS: Mapping[str, EventKind] = {
    "publish": EventKind(EventType.PUBLISH, _MESSAGE),
    "deliver": EventKind(EventType.DELIVER, _ARRIVAL),
    "duplicate": EventKind(EventType.DUPLICATE, _ARRIVAL),
    "receive": EventKind(EventType.RECV_RPC, _ARRIVAL),
    "send": EventKind(EventType.SEND_RPC, _COPY),
    "reject": EventKind(EventType.REJECT, {**_COPY, "reason": False}),
    "join": EventKind(EventType.JOIN, {"topic": True}),
    "leave": EventKind(EventType.LEAVE, {"topic": True}),
    "graft": EventKind(EventType.GRAFT, _MESH),
    "prune": EventKind(EventType.PRUNE, _MESH),
    "connect": EventKind(EventType.STREAM_OPENED, {"other": True}),
    "disconnect": EventKind(EventType.STREAM_CLOSED, {"other": True}),
}
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_ZONE = re.compile(r"(?:Z|[+-]\d\d:\d\d)$", re.ASCII)
_SUFFIX = ".toml"
_HELP = "the page Sources describes pattern files: vizpub docs"


class _LineTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table `lines.NAME` of the file."""

    kind: str
    pattern: str
    topic: str | None = None


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    lines: dict[str, Any]
    file: str | None = None
    time_unit: str | None = None
    protocol: str | None = None


class LineMatch(NamedTuple):
    """The event that a line reports."""

    kind: EventKind
    time: int
    """Nanoseconds of Unix time."""
    values: Mapping[str, str | None]
    """By group."""
    published: int | None
    """Nanoseconds of Unix time, by the clock of the publisher."""


class _LinePattern(NamedTuple):
    kind: EventKind
    expression: re.Pattern[str]
    topic: str | None


@dataclass(frozen=True)
class LinePatterns:
    """The patterns of a file."""

    lines: Mapping[str, _LinePattern]
    """By name, in the order in which they are tried."""
    kinds: frozenset[str]
    file: re.Pattern[str] | None
    unit_ns: int | None
    """Nanoseconds in a unit of times that are numbers; null = not stated."""
    protocol: str | None

    @classmethod
    def parse(cls, text: str, path: str = "") -> LinePatterns:
        """Parse the content of a file. Raises: InputError, with its place in the file."""
        try:
            content = _convert(tomllib.loads(text), _Content)
            unit_ns = None if content.time_unit is None else _UNITS.get(content.time_unit)
            if content.time_unit is not None and unit_ns is None:
                raise ValueError(f"time_unit: give one of {', '.join(_UNITS)}")
            file = None if content.file is None else _compile("file", content.file)
            if file and (odd := file.groupindex.keys() - {"peer"}):
                raise ValueError(f"file: it has a group '{min(odd)}', and may only have 'peer'")
            names_peer = file is not None and "peer" in file.groupindex
            tables = {
                name: _convert(table, _LineTable, f"lines.{name}")
                for name, table in content.lines.items()
            }
            if not tables:
                raise ValueError("lines: it has no table such as [lines.received]")
            lines = {n: _make_pattern(n, table, names_peer) for n, table in tables.items()}
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: {error}" if path else str(error), _HELP) from error
        kinds = frozenset(table.kind for table in tables.values())
        return cls(lines, kinds, file, unit_ns, content.protocol)

    def peer_of_file(self, path: str) -> str | None:
        """Return the peer that the path of a file names; null if it names none."""
        match = self.file.search(plain_path(path)) if self.file else None
        return match.groupdict().get("peer") if match else None

    def match(self, line: str, peer: str | None) -> LineMatch | None:
        """Return the event of a line in a file of a peer; null if no expression matches.

        Raises: RecordRefused for a value that is missing or not valid.
        """
        for kind, expression, topic in self.lines.values():
            if match := expression.search(line):
                values = match.groupdict()
                values["peer"] = values.get("peer") or peer
                values["topic"] = values.get("topic") or topic
                needed = {"time": True, "peer": True, **kind.groups}
                for name, is_needed in needed.items():
                    if is_needed and not values.get(name):
                        raise RecordRefused(f"no value: {name}")
                    if CONTROL_CHARACTER.search(values.get(name) or ""):
                        raise RecordRefused(f"control character in {name}")
                times = {
                    name: self._time_ns(text)
                    for name in ("time", "published")
                    if (text := values.get(name))
                }
                return LineMatch(kind, times["time"], values, times.get("published"))
        return None

    def _time_ns(self, text: str) -> int:
        """Return nanoseconds of Unix time. Raises: RecordRefused."""
        if not _NUMBER.fullmatch(text):
            date = text.strip().replace(" ", "T", 1).replace(",", ".")
            return parse_time(date if _ZONE.search(date) else f"{date}Z")
        if self.unit_ns is None:
            raise RecordRefused("its time is a number, and the patterns have no time_unit")
        if (time := int(Decimal(text) * self.unit_ns)) > INT64:
            raise RecordRefused("time too large")
        return time


def read_patterns(name: str) -> str:
    """Return the content of a pattern file, or of a shipped one of that name.

    Raises: InputError for a file that cannot be read, or for invalid content.
    """
    shipped = {
        file.name.removesuffix(_SUFFIX): file
        for file in files(__package__).iterdir()
        if file.name.endswith(_SUFFIX)
    }
    try:
        text = shipped[name].read_text("utf-8") if name in shipped else text_of(Path(name))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{name} cannot be read: {cause_of(error)}",
            f"give a pattern file, or the name of a shipped one: {', '.join(sorted(shipped))}",
        ) from error
    LinePatterns.parse(text, name)
    return text


def _convert(value: Any, kind: Any, place: str = "") -> Any:
    """Convert a table. Raises: ValueError with the place in the file."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, inside = str(error).partition(" - at `$")
        where = f"{place}{inside.rstrip('`')}".strip(".")
        raise ValueError(f"{where}: {message}" if where else message) from error


def _compile(place: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{place}: not a regular expression: {error}") from error


def _make_pattern(name: str, table: _LineTable, file_names_peer: bool) -> _LinePattern:
    """Check the expression of a table. Raises: ValueError."""
    place = f"lines.{name}"
    if (kind := KINDS.get(table.kind)) is None:
        raise ValueError(f"{place}.kind: no kind '{table.kind}'; there are: {', '.join(KINDS)}")
    expression = _compile(f"{place}.pattern", table.pattern)
    groups = {"time": True, "peer": not file_names_peer, **kind.groups}
    if table.topic is not None:
        if "topic" not in groups:
            raise ValueError(f"{place}.topic: lines of kind {table.kind} have none")
        groups["topic"] = False
    if odd := sorted(expression.groupindex.keys() - groups):
        raise ValueError(
            f"{place}.pattern: lines of kind {table.kind} have no group '{odd[0]}'; "
            f"there are: {', '.join(groups)}"
        )
    for group, is_needed in groups.items():
        if is_needed and group not in expression.groupindex:
            raise ValueError(
                f"{place}.pattern: lines of kind {table.kind} need a group (?P<{group}>…)"
                + (", here or in 'file'" if group == "peer" else "")
                + (f", or {place}.topic" if group == "topic" else "")
            )
    return _LinePattern(kind, expression, table.topic)
