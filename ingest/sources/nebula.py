"""The source: neighbours as the Nebula crawler found them, one crawl per file.

A line of `…_neighbors.ndjson` is what one peer's routing table holds:
`{"PeerID": "12D3…", "NeighborIDs": ["12D3…"], "ErrorBits": "0000000000000000"}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

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
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import InputError
from vizpub.reports.fields import Key
from vizpub.reports.records import OVERLAY

NO_TABLE = "no routing table could be read"
TWO_CRAWLS = "are two crawls"

_TABLES = {name: OBSERVED[name] for name in ("links", "presence", "names", "quarantine")}
_KEYS = {"PeerID", "NeighborIDs", "ErrorBits"}
_UNKNOWN = ("topics", "roles", "traffic", "messages")
_PARTIAL = "peers of which only a part of the routing table was read"


class Nebula(Source):
    """The source `nebula`. Its lines are folded by peer."""

    name = "nebula"
    every_layer = frozenset({OVERLAY})
    options = frozenset({"max_line"})
    tables = _TABLES

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'ndjson' by the content alone."""
        return "ndjson" if most_are(first_lines(head), _is_line) else None

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return ranges of lines. Raises: InputError for several crawls."""
        if len(files) > 1:
            raise InputError(
                f"{files[0].path} and {files[1].path} {TWO_CRAWLS}",
                "a run is one crawl: ingest each file as a run of its own",
            )
        return line_splits(files)

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader, which checks each line by itself."""
        return _LineReader(source_input.options.max_line)

    def make_fold(self, source_input: SourceInput) -> _TableFold:
        """Create the fold, which goes peer by peer."""
        return _TableFold(_TABLES, source_input.paths)

    def combine_tallies(self, tallies: Tallies) -> RunCounts:
        """Return the sums of the counts."""
        return {name: sum(one[name] for one in tallies) for name in ("peers", "partial")}

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run of one interval, the crawl. Raises: InputError if no line could be
        read.
        """
        del options
        if not counted["peers"]:
            raise InputError(NO_TABLE, NO_ROWS)
        notes = {_PARTIAL: counted["partial"]} if counted["partial"] else {}
        return RunDescription(Clock(1, None, 0, 0), unknown=_UNKNOWN, notes=notes)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables; peers with a routing table are reporters, and all peers are
        present.
        """
        del run, options
        return ObservedTables(
            peers="SELECT peer AS name FROM whole.presence",
            presence="SELECT DISTINCT name AS peer, 0 AS valid_from, open_end() AS valid_to "
            "FROM folded.names",
            links="FROM folded.links",
        )


def _is_line(line: bytes) -> bool:
    values = msgspec.json.decode(line)
    return isinstance(values, dict) and values.keys() >= _KEYS


@dataclass(frozen=True)
class _LineReader:
    """Reads the lines of a split."""

    max_line: int | None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield a row per peer: its neighbours, and whether they are only a part."""

        def rows_of(line: InputLine) -> list[InputRow]:
            peer, *neighbours = _parse_line(line.text)
            place, record = (split.file, line.number, None), msgspec.json.encode(neighbours)
            return [InputRow(RowKind.RECORD, peer, 0, 0, *place, record)]

        return rows_of_lines(split, self.max_line, rows_of)


def _parse_line(line: bytes) -> tuple[str, list[str], bool]:
    """Return the peer, its neighbours, and whether these are only a part. Raises: RecordRefused."""
    values = parse_object(line)
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
    """Makes links of the routing table of each peer; lines of one peer are taken together."""

    def start(self) -> None:
        """Reset the counts."""
        self._peers = self._partial = 0

    def total_counts(self) -> RunCounts:
        """Return the number of `peers` with a line, and of those with a `partial` routing table."""
        return {"peers": self._peers, "partial": self._partial}

    def begin(self, key: str) -> None:
        """Start a peer without links."""
        self._peer, self._neighbours, self._is_partial = key, dict[str, None](), False

    def take(self, row: InputRow) -> None:
        """Add neighbours."""
        neighbours, is_partial = msgspec.json.decode(row.record)
        self._neighbours |= dict.fromkeys(neighbours)
        self._is_partial |= is_partial

    def end(self) -> None:
        """Write the peer and its links."""
        self._peers += 1
        self._partial += self._is_partial
        self.rows["presence"].append((self._peer, 0, OPEN))
        self.rows["links"] += (
            (self._peer, dst, OVERLAY, None, 0, OPEN) for dst in self._neighbours
        )
