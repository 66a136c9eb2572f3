"""The source: lines of any log, by patterns that the user gives.

They are folded like traces of go-libp2p-pubsub; what no pattern finds is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vizpub.ingest.inputs.reader import (
    InputLine,
    InputRow,
    InputSplit,
    SplitReader,
    rows_of_lines,
    tally_row,
)
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
)
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent, rows_of_event
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.ingest.sources.libp2p.fold import EventFold
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.lines.patterns import LinePatterns
from vizpub.ingest.tasks.fold import RunCounts, count_name, every_refused
from vizpub.model.errors import InputError
from vizpub.model.run import DUPLICATES
from vizpub.reports.compressed import plain_path

NO_MATCH = "lines that match no pattern"
EARLY = "arrivals before their publication, by the two clocks"

_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_LINKS = frozenset({"graft", "prune", "connect", "disconnect"})
_PUBLICATIONS = frozenset({"publish", "send"})
_ARRIVALS = frozenset({"deliver", "duplicate", "receive"})


class _LineFold(EventFold):
    """An EventFold for lines that name a copy of a message, and not whether it is the first."""

    def begin(self, key: str) -> None:
        """Start a peer."""
        super().begin(key)
        self._copies: set[str] = set()
        self._own: set[str] = set()
        """Messages that it published, and did not deliver to itself yet."""

    def event_of(self, row: InputRow) -> TraceEvent:
        """Return the event of a row; the first copy that a peer has decides what it is.

        A received copy is a delivery, or a duplicate; of an own message, the first one without a
        sender is that of the peer to itself. A peer that sends a message that it never had
        publishes it.
        """
        event = super().event_of(row)
        if event.message is None:
            return event
        is_new = event.message not in self._copies
        self._copies.add(event.message)
        if event.type == EventType.RECV_RPC:
            is_own = event.other is None and event.message in self._own
            event.type = EventType.DELIVER if is_new or is_own else EventType.DUPLICATE
            self._own.discard(event.message)
            self._tally.see(event)
        elif event.type == EventType.SEND_RPC and is_new:
            event.type = EventType.PUBLISH
        if event.type == EventType.PUBLISH:
            self._own.add(event.message)
        return event


class Lines(Libp2p):
    """The source `lines`: a Libp2p whose reader takes lines that match a pattern."""

    name = "lines"
    names_messages = False
    files_overlap = True
    fold = _LineFold
    options = frozenset({"interval_us", "reporters_only", "max_line", "pattern"})

    def __init__(self, patterns: LinePatterns | None = None) -> None:
        """Create it from the patterns by which it recognises files; without, it knows none."""
        self._patterns = patterns

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'text' for text in a file whose path the patterns accept."""
        if self._patterns is None or b"\0" in head:
            return None
        file = self._patterns.file
        return "text" if file is None or file.search(plain_path(path)) else None

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of lines."""
        options = source_input.options
        judge = TraceJudge.of(source_input)
        return _LineReader(judge, LinePatterns.parse(options.pattern or ""), options.max_line)

    def read_name(self, path: str) -> str | None:
        """Return the peer that the path names."""
        return self._patterns.peer_of_file(path) if self._patterns else None

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe the run like Libp2p; unknown is what no pattern finds.

        Raises: InputError if no line matches.
        """
        tally, patterns = TraceTally.of(counted), LinePatterns.parse(options.pattern or "")
        if tally.first is None:
            unmatched = f"{tally.unknown[NO_MATCH]:,} {NO_MATCH}"
            why = every_refused(tally.refused) if tally.refused else unmatched
            raise InputError("no line of the input is an event", why)
        description = super().describe(counted, options)
        kinds = patterns.kinds
        unknown = {
            "links": not kinds & _LINKS,
            "topics": "join" not in kinds,
            "traffic": True,
            "publications": not kinds & _PUBLICATIONS,
            "previous hops, so hops and dissemination trees": not tally.with_previous_hop,
            # A log that has none of any message does not log them.
            DUPLICATES: "duplicate" not in kinds and not tally.duplicates,
            "rejections": "reject" not in kinds,
        }
        return replace(
            description,
            protocol=patterns.protocol,
            unknown=tuple(fact for fact, is_unknown in unknown.items() if is_unknown),
        )

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of Libp2p without those of which no pattern finds events."""
        observed = super().observe(run, options)
        kinds = LinePatterns.parse(options.pattern or "").kinds
        has_messages = bool(kinds & (_PUBLICATIONS | _ARRIVALS))
        return replace(
            observed,
            links=observed.links if kinds & _LINKS else None,
            subscriptions=observed.subscriptions if "join" in kinds else None,
            traffic=None,
            control=None,
            publications=observed.publications if has_messages else None,
            receptions=observed.receptions if kinds & _ARRIVALS else None,
            rejections=observed.rejections if has_messages else None,
        )


@dataclass(frozen=True)
class _LineReader:
    """Reads lines into events like those of vizpub.ingest.sources.libp2p.reader."""

    judge: TraceJudge
    patterns: LinePatterns
    max_line: int | None = None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split; lines that match no pattern are counted."""
        tally, peer = self.judge.tally(), self.patterns.peer_of_file(split.path)

        def rows_of(line: InputLine) -> Iterator[InputRow]:
            text = _COLOURS.sub("", line.text.decode()).removesuffix("\r")
            match = self.patterns.match(text, peer)
            if match is None:
                count_name(tally.unknown, NO_MATCH)
                return
            values = match.values
            event = TraceEvent(
                match.kind.type,
                str(values["peer"]),
                match.time,
                values.get("other"),
                values.get("topic"),
                values.get("message"),
                values.get("reason"),
            )
            self.judge.count(event, tally, split, line.number)
            if match.published is not None and match.time < match.published:
                count_name(tally.unknown, EARLY)
            yield from rows_of_event(event, split.file, line.number)

        yield from rows_of_lines(split, self.max_line, rows_of)
        yield tally_row(tally.plain)
