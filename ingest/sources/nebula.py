"""The source: neighbours as the Nebula crawler found them, and its visits of one crawl.

A line of `…_neighbors.ndjson` is what one peer's routing table holds:
`{"PeerID": "12D3…", "NeighborIDs": ["12D3…"], "ErrorBits": "0000000000000000"}`. A line
of `…_visits.ndjson` gives attributes of a peer: `{"PeerID": "12D3…", "AgentVersion": "kubo/0.36.0",
"Protocols": ["/ipfs/kad/1.0.0"], "ConnectErrorStr": "", …}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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

_TABLES = {
    name: OBSERVED[name] for name in ("links", "presence", "attributes", "names", "quarantine")
}
_KEYS = {"PeerID", "NeighborIDs", "ErrorBits"}
_OF_VISITS = {"PeerID", "AgentVersion", "Protocols"}
NEIGHBORS, VISITS = "ndjson(neighbors)", "ndjson(visits)"
"""The encodings of the files of a crawl."""
_UNKNOWN = ("topics", "roles", "traffic", "messages")
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

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return ranges of lines. Raises: InputError for several crawls."""
        for encoding in (NEIGHBORS, VISITS):
            paths = [file.path for file in files if file.encoding == encoding]
            if len(paths) > 1:
                raise InputError(
                    f"{paths[0]} and {paths[1]} {TWO_CRAWLS}",
                    "a run is one crawl: ingest each crawl as a run of its own",
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
        return {name: sum(one[name] for one in tallies) for name in ("peers", "partial", "visits")}

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run of one interval, the crawl. Raises: InputError if no line could be
        read.
        """
        del options
        if not counted["peers"]:
            raise InputError(NO_TABLE, NO_ROWS)
        notes = {_PARTIAL: counted["partial"]} if counted["partial"] else {}
        return RunDescription(Clock(1, None, 0, 0), unknown=_UNKNOWN, notes=notes, totals=counted)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables; peers with a routing table are reporters, and all peers are
        present.
        """
        del options
        return ObservedTables(
            peers="SELECT peer AS name FROM whole.presence",
            presence="SELECT DISTINCT name AS peer, 0 AS valid_from, open_end() AS valid_to "
            "FROM folded.names",
            links="FROM folded.links",
            attributes="FROM folded.attributes" if run.totals.get("visits") else None,
        )


def _has_keys(keys: set[str], line: bytes) -> bool:
    values = msgspec.json.decode(line)
    return isinstance(values, dict) and values.keys() >= keys


@dataclass(frozen=True)
class _LineReader:
    """Reads the lines of a split."""

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
            return [InputRow(RowKind.RECORD, peer, 0, 0, *place, record)]

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
    """Makes links of the routing table of each peer; lines of one peer are taken together."""

    def start(self) -> None:
        """Reset the counts."""
        self._peers = self._partial = self._visits = 0

    def total_counts(self) -> RunCounts:
        """Return the number of `peers` with a routing table, of those with a `partial` one, and of
        those with `visits`.
        """
        return {"peers": self._peers, "partial": self._partial, "visits": self._visits}

    def begin(self, key: str) -> None:
        """Start a peer without links."""
        self._peer, self._neighbours, self._is_partial = key, dict[str, None](), False
        self._has_table, self._attributes = False, dict[str, str]()

    def take(self, row: InputRow) -> None:
        """Add neighbours, or attributes."""
        content = msgspec.json.decode(row.record)
        if len(content) == 1:
            self._attributes |= content[0]
            return
        neighbours, is_partial = content
        self._has_table = True
        self._neighbours |= dict.fromkeys(neighbours)
        self._is_partial |= is_partial

    def end(self) -> None:
        """Write the peer, its attributes and its links."""
        self._visits += bool(self._attributes)
        self.rows["attributes"] += (
            (self._peer, key, value, 0) for key, value in self._attributes.items()
        )
        if not self._has_table:
            return
        self._peers += 1
        self._partial += self._is_partial
        self.rows["presence"].append((self._peer, 0, OPEN))
        self.rows["links"] += (
            (self._peer, dst, OVERLAY, None, 0, OPEN) for dst in self._neighbours
        )
