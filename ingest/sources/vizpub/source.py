"""Report directories of the VizPub tool of 2014, as reports of this one.

docs/sources.md describes what its numbers and lists mean, and what they do not report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import Damage, Read, Row, Split, refused
from vizpub.ingest.sources.base import Description, Observed, SourceOptions, Tallies
from vizpub.ingest.sources.reports import facts
from vizpub.ingest.sources.reports.decoding import Chosen, record_row, tally_row
from vizpub.ingest.sources.reports.facts import Tally
from vizpub.ingest.sources.reports.fold import ReportFold
from vizpub.ingest.sources.reports.source import Reports
from vizpub.ingest.sources.times import NO_OUTLIERS
from vizpub.ingest.sources.vizpub.files import MERGED, content_of, recognised, split
from vizpub.ingest.sources.vizpub.nodes import (
    BYTES,
    COUNTERS,
    as_report,
    header_of,
    judged,
    unknown_fields,
)
from vizpub.ingest.tasks.fold import Counted
from vizpub.model.errors import InputError
from vizpub.reports.records import OVERLAY

_WORDS = facts.Words("protocol", "files", "files without nodes")
_NO_BYTES = tuple(f"publication_bytes_{way}" for way in ("sent", "received"))


@dataclass(frozen=True)
class _NodeReader:
    """Reads VizPub's files; the line of a record is the number of its node."""

    chosen: Chosen

    def __call__(self, split_: Split) -> Iterator[Row]:
        """The rows of a file."""
        tally = Tally()
        content, damage = content_of(split_.path)
        if damage:
            yield refused(split_, 1, Damage(damage))
        found = split(content, damage)
        if found.fault is not None or found.run is None or found.interval is None:
            yield refused(split_, 1, found.fault or "", found.text or b"")
        else:
            tally.header(header_of(found.run))
            tally.unknown(found.unknown)
            for number, (key, text) in enumerate(found.nodes.items(), 1):
                node, wrong = judged(bytes(text), key)
                if wrong:
                    yield refused(split_, number, "; ".join(wrong), bytes(text))
                    continue
                tally.unknown(unknown_fields(node))
                tally.moved.update(name for name, theirs in COUNTERS.items() if node.get(theirs))
                if self.chosen.takes(found.run, tally):
                    record = msgspec.json.encode(as_report(node, found.run, found.interval))
                    of_peer = node["id"], found.interval, None
                    yield record_row(*of_peer, split_.file, number, record)
        yield tally_row(tally)


class Vizpub(Reports):
    """The source; a run is a protocol."""

    name = "vizpub"
    options = frozenset({"interval_us", "gap_tolerance", "only", "reporters_only"})
    appendable = False

    def recognises(self, path: str, head: bytes) -> str | None:
        """'json' by content or place; 'merged json' for what VizPub merged from several hosts."""
        return recognised(path, head)

    def layers(self, files: Sequence[InputFile]) -> frozenset[str]:
        """Neighbours are of one kind."""
        del files
        return frozenset({OVERLAY})

    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """A file each. Raises: InputError for files that VizPub merged."""
        _refuse_merged(files)
        return [Split(number, file.path) for number, file in enumerate(files)]

    def reader(
        self,
        files: Sequence[InputFile],
        options: SourceOptions,
        tallies: Callable[[Read], Tallies],
        counted: Counted | None = None,
    ) -> Read:
        """Every file names its protocol."""
        del files, tallies, counted
        return _NodeReader(Chosen(options.only))

    def fold(
        self, files: Sequence[InputFile], options: SourceOptions, counted: Counted | None
    ) -> ReportFold:
        """As reports whose counters run from the start."""
        outliers = Tally.of(counted).outliers() if counted else NO_OUTLIERS
        paths = [file.path for file in files]
        return ReportFold(paths, options.gap_tolerance, outliers, totals=True)

    def describe(
        self, counted: Counted, before: Counted | None, options: SourceOptions
    ) -> Description:
        """One tick per interval. Raises: as Reports.describe; a run is a protocol."""
        del before
        tally = Tally.of(counted)
        tally.forget([name for name in COUNTERS if not tally.moved[name]])
        description = facts.describe(tally, None, options, _WORDS)
        notes = {note: n for note, n in description.notes.items() if note != facts.lacking(BYTES)}
        return replace(description, notes=notes)

    def observe(self, run: Description, options: SourceOptions) -> Observed:
        """As reports, but for the traffic of publications."""
        seen = super().observe(run, options)
        moved = Tally.of(run.totals).moved
        return replace(seen, traffic=seen.traffic and _traffic(seen.traffic, moved))


def _traffic(counted: str, moved: Mapping[str, int]) -> str:
    """Received messages are the listed ones and their later copies, which are only counted.
    A counter that is 0 in every report was never set, as VizPub's Java cannot omit one.
    """
    never_set = "".join(f", NULL::BIGINT AS {name}" for name in COUNTERS if not moved.get(name))
    known = f"SELECT * REPLACE (peer AS peer{never_set}) FROM ({counted})"
    unknown = "".join(f", NULL::BIGINT AS {name}" for name in _NO_BYTES)
    # Unknown beyond 64 bits.
    copies = "try_cast(publication_messages_received::HUGEINT + duplicates AS BIGINT)"
    return f"SELECT * REPLACE ({copies} AS publication_messages_received{unknown}) FROM ({known})"


def _refuse_merged(files: Sequence[InputFile]) -> None:
    for file in files:
        if file.encoding == MERGED:
            raise InputError(
                f"{file.path} was merged by VizPub from the files of several hosts, "
                "which loses the interval and keeps peers that are gone",
                "ingest what the hosts wrote, for example: "
                "vizpub ingest reports/unprocessed --run NAME",
            )
