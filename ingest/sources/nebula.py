"""The source: crawls of the Nebula crawler: neighbours that it found, and its visits.

A line of `…_neighbors.ndjson` is what one peer's routing table holds:
`{"PeerID": "12D3…", "NeighborIDs": ["12D3…"], "ErrorBits": "0000000000000000"}`. A line
of `…_visits.ndjson` gives attributes of a peer: `{"PeerID": "12D3…", "AgentVersion": "kubo/0.36.0",
"Protocols": ["/ipfs/kad/1.0.0"], "ConnectErrorStr": "", …}`. The names of files begin with the time
of their crawl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    InputLine,
    InputRow,
    InputSplit,
    RecordRefused,
    RowKind,
    SplitReader,
    line_splits,
    parse_object,
    rows_of_lines,
)
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
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.sources.tables.delimited import NO_ROWS
from vizpub.ingest.tasks.fold import KeyFold, RunCounts
from vizpub.model.clock import Clock
from vizpub.model.errors import InputError
from vizpub.reports.compressed import plain_path
from vizpub.reports.fields import Key
from vizpub.reports.records import OVERLAY

NO_TABLE = "no routing table could be read"
TWO_CRAWLS = "are two crawls"

_TABLES = {
    "reporters": pa.schema([("peer", pa.string())]),
    **{name: OBSERVED[name] for name in ("links", "presence", "attributes", "names", "quarantine")},
}
_PERIODS = "open_at_end(valid_to) AS valid_to FROM folded"
_KEYS = {"PeerID", "NeighborIDs", "ErrorBits"}
_OF_VISITS = {"PeerID", "AgentVersion", "Protocols"}
NEIGHBORS, VISITS = "ndjson(neighbors)", "ndjson(visits)"
"""The encodings of the files of a crawl."""
_UNKNOWN = ("topics", "roles", "traffic", "messages")
# A copy may have a further name behind these words, such as "_neighbors (1)".
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d\D?\d\d[^/]*(?=_(?:neighbors|visits))")
_NAME = re.compile(rf"{_TIME.pattern}(?=_[a-z]+\.)")
_PARTIAL = "peers of which only a part of the routing table was read"


class Nebula(Source):
    """The source `nebula`. Its lines are folded by peer."""

    name = "nebula"
    every_layer = frozenset({OVERLAY})
    options = frozenset({"max_line"})
    tables = _TABLES

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return NEIGHBORS or VISITS by the content alone."""
        lines = first_lines(head)
        if most_are(lines, partial(_has_keys, _KEYS)):
            return NEIGHBORS
        return VISITS if most_are(lines, partial(_has_keys, _OF_VISITS)) else None

    def read_name(self, path: str) -> str | None:
        """Return the time of the crawl."""
        match = _TIME.search(plain_path(path))
        return match and match[0]

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return ranges of lines. Raises: InputError for several crawls without their times."""
        number_crawls(files)
        return line_splits(files)

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader, which checks each line by itself."""
        crawls = number_crawls(source_input.files)
        return _LineReader(tuple(crawls), source_input.options.max_line)

    def make_fold(self, source_input: SourceInput) -> _TableFold:
        """Create the fold, which goes peer by peer."""
        return _TableFold(source_input.paths, 1 + max(number_crawls(source_input.files)))

    def combine_tallies(self, tallies: Tallies) -> RunCounts:
        """Return the sums of the counts, and the number of crawls."""
        sums = {name: sum(one[name] for one in tallies) for name in ("peers", "partial", "visits")}
        return {**sums, "crawls": max(one["crawls"] for one in tallies)}

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run with an interval for each crawl. Raises: InputError if no line could be
        read.
        """
        del options
        if not counted["peers"] and not counted["visits"]:
            raise InputError(NO_TABLE, NO_ROWS)
        notes = {_PARTIAL: counted["partial"]} if counted["partial"] else {}
        unknown = _UNKNOWN if counted["peers"] else ("links", *_UNKNOWN)
        clock = Clock(1, None, 0, counted["crawls"] - 1)
        return RunDescription(clock, unknown=unknown, notes=notes, totals=counted)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables; peers with a routing table are reporters, and peers are present in
        the crawls in which they are in a table, have one, or could be dialled.
        """
        del options
        return ObservedTables(
            peers="SELECT peer AS name FROM whole.reporters",
            presence=f"SELECT peer, valid_from, {_PERIODS}.presence "
            f"UNION SELECT dst, valid_from, {_PERIODS}.links",
            links=f"SELECT * EXCLUDE (valid_to), {_PERIODS}.links" if run.totals["peers"] else None,
            attributes="FROM folded.attributes" if run.totals.get("visits") else None,
        )


def number_crawls(files: Sequence[InputFile]) -> list[int]:
    """Return the number of each file's crawl, in order of their times. One file of neighbours and
    one of visits are one crawl, whatever their names.

    Raises: InputError for several crawls without their times in the names.
    """
    paths = [plain_path(file.path) for file in files]
    names = [match[0] if (match := _NAME.search(path)) else None for path in paths]
    if len({file.encoding for file in files}) == len(files):
        return [0] * len(files)
    if unnamed := [file.path for file, name in zip(files, names, strict=True) if name is None]:
        others = (file.path for file in files if file.path != unnamed[0])
        raise InputError(
            f"{unnamed[0]} and {next(others)} {TWO_CRAWLS}",
            "of several crawls, keep the names that Nebula gives, such as "
            "2026-08-21T12:00_neighbors.ndjson",
        )
    crawls = [
        (name or "", path.rpartition("/")[0]) for path, name in zip(paths, names, strict=True)
    ]
    ordered = sorted(set(crawls))
    return [ordered.index(crawl) for crawl in crawls]


def _has_keys(keys: set[str], line: bytes) -> bool:
    values = msgspec.json.decode(line)
    return isinstance(values, dict) and values.keys() >= keys


@dataclass(frozen=True)
class _LineReader:
    """Reads the lines of a split."""

    crawls: tuple[int, ...]
    """The crawl of each file."""
    max_line: int | None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield a row per line: a peer's neighbours and whether they are only a part, or its
        attributes.
        """

        def rows_of(line: InputLine) -> list[InputRow]:
            values = parse_object(line.text)
            is_visit = "NeighborIDs" not in values and "AgentVersion" in values
            peer, *content = _parse_visit(values) if is_visit else _parse_neighbors(values)
            place, record = (split.file, line.number, None), msgspec.json.encode(content)
            return [InputRow(RowKind.RECORD, peer, self.crawls[split.file], 0, *place, record)]

        return rows_of_lines(split, self.max_line, rows_of)


def _parse_visit(values: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the peer and the attributes that a visit found out. Raises: RecordRefused.

    `client` is the name at the beginning of the agent version; `protocols` are in order, with
    blanks between them; `dialable` is 'true' or 'false'.
    """
    peer, agent = values.get("PeerID"), values.get("AgentVersion") or ""
    protocols, error = values.get("Protocols") or [], values.get("ConnectErrorStr")
    for name, text in (("PeerID", peer), *(("AgentVersion", agent),) * bool(agent)):
        for problem in Key().problems(text, name):
            raise RecordRefused(problem)
    if not isinstance(protocols, list) or any([*Key().problems(p, "")] for p in protocols):
        raise RecordRefused("Protocols is not a list of names")
    attributes = {
        "agent": agent,
        "client": agent.partition("/")[0],
        "protocols": " ".join(sorted(protocols)),
        "dialable": {True: "true", False: "false"}[not error] if isinstance(error, str) else "",
    }
    return str(peer), {key: value for key, value in attributes.items() if value}


def _parse_neighbors(values: dict[str, Any]) -> tuple[str, list[str], bool]:
    """Return the peer, its neighbours, and whether these are only a part. Raises: RecordRefused."""
    for name in sorted(_KEYS - values.keys()):
        raise RecordRefused(f"missing key: {name}")
    peer, neighbours, errors = (values[name] for name in ("PeerID", "NeighborIDs", "ErrorBits"))
    neighbours = [] if neighbours is None else neighbours  # how Go writes an empty list
    if not isinstance(neighbours, list):
        raise RecordRefused("NeighborIDs is not a list")
    if not isinstance(errors, str) or not errors or set(errors) - {"0", "1"}:
        raise RecordRefused("ErrorBits is not a text of bits")
    for name, names in (("PeerID", [peer]), ("NeighborIDs", neighbours)):
        for one in names:
            for problem in Key().problems(one, name):
                raise RecordRefused(problem)
    return peer, neighbours, "1" in errors


class _TableFold(KeyFold):
    """Makes links of the routing tables of each peer; its lines of one crawl are taken together."""

    def __init__(self, files: Sequence[str], crawls: int) -> None:
        """Create the fold from the names of the files, and the number of crawls."""
        super().__init__(_TABLES, files)
        self._crawls = crawls

    def start(self) -> None:
        """Reset the counts."""
        self._peers = self._partial = self._visits = 0

    def total_counts(self) -> RunCounts:
        """Return the number of `peers` with a routing table, of those with a `partial` one, of
        those with `visits`, and of `crawls`.
        """
        counts = {"peers": self._peers, "partial": self._partial, "visits": self._visits}
        return {**counts, "crawls": self._crawls}

    def begin(self, key: str) -> None:
        """Start a peer without links."""
        self._peer, self._attributes, self._visited = key, dict[str, str](), dict[str, str]()
        self._crawl, self._neighbours = 0, dict[str, None]()
        self._is_present = self._has_table = self._is_partial = False

    def take(self, row: InputRow) -> None:
        """Add neighbours, or attributes."""
        if row.time != self._crawl:
            self._end_crawl()
            self._crawl = row.time
        content = msgspec.json.decode(row.record)
        if len(content) == 1:
            self._visited |= content[0]
            return
        neighbours, is_partial = content
        self._is_present = self._has_table = True
        self._neighbours |= dict.fromkeys(neighbours)
        self._is_partial |= is_partial

    def _end_crawl(self) -> None:
        """Write what a crawl says of the peer; of attributes those that are new or have changed."""
        period, said = (self._crawl, self._crawl + 1), self._attributes.items()
        changed = dict(self._visited.items() - said)
        self.rows["attributes"] += (
            (self._peer, key, value, self._crawl) for key, value in changed.items()
        )
        if self._is_present or self._visited.get("dialable") == "true":
            self.rows["presence"].append((self._peer, *period))
        self.rows["links"] += (
            (self._peer, dst, OVERLAY, None, *period) for dst in self._neighbours
        )
        self._attributes |= self._visited
        self._is_present = False
        self._neighbours.clear()
        self._visited.clear()

    def end(self) -> None:
        """Write the last crawl of the peer, and count it."""
        self._end_crawl()
        self._visits += bool(self._attributes)
        self._peers += self._has_table
        self._partial += self._is_partial
        if self._has_table:
            self.rows["reporters"].append((self._peer,))
