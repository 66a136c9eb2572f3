"""Report directories of the VizPub tool of 2014, as reports of this one.

docs/sources.md describes what its numbers and lists mean, and what they do not report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    DamageReason,
    InputRow,
    InputSplit,
    SplitReader,
    refusal_row,
    tally_row,
)
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
)
from vizpub.ingest.sources.reports import facts
from vizpub.ingest.sources.reports.decoding import ReportFilter, record_row
from vizpub.ingest.sources.reports.facts import ReportTally
from vizpub.ingest.sources.reports.fold import ReportFold
from vizpub.ingest.sources.reports.source import Reports, fold_of_reports
from vizpub.ingest.sources.vizpub.files import MERGED, read_content, recognise, split_nodes
from vizpub.ingest.sources.vizpub.nodes import (
    BYTES,
    COUNTERS,
    as_report,
    check_node,
    header_of,
    unknown_fields,
)
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.model.errors import InputError
from vizpub.reports.records import OVERLAY

_WORDS = facts.ReportWords("protocol", "files", "files without nodes")
_NO_BYTES = tuple(f"publication_bytes_{way}" for way in ("sent", "received"))


@dataclass(frozen=True)
class _NodeReader:
    """Reads VizPub's files; the line of a record is the number of its node."""

    chosen: ReportFilter

    def __call__(self, split_: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a file."""
        tally = ReportTally()
        content, damage = read_content(split_.path)
        if damage:
            yield refusal_row(split_, 1, DamageReason(damage))
        checkpoint = split_nodes(content, damage)
        if checkpoint.fault is not None or checkpoint.run is None or checkpoint.interval is None:
            yield refusal_row(split_, 1, checkpoint.fault or "", checkpoint.text or b"")
        else:
            tally.count_header(header_of(checkpoint.run))
            tally.count_unknown(checkpoint.unknown)
            for number, (key, text) in enumerate(checkpoint.nodes.items(), 1):
                node, wrong = check_node(bytes(text), key)
                if wrong:
                    yield refusal_row(split_, number, "; ".join(wrong), bytes(text))
                    continue
                tally.count_unknown(unknown_fields(node))
                if self.chosen.takes(checkpoint.run, tally):
                    moved = (name for name, theirs in COUNTERS.items() if node.get(theirs))
                    tally.moved.update(moved)
                    record = msgspec.json.encode(
                        as_report(node, checkpoint.run, checkpoint.interval)
                    )
                    of_peer = node["id"], checkpoint.interval, None
                    yield record_row(*of_peer, split_.file, number, record)
        yield tally_row(tally.plain)


class Vizpub(Reports):
    """The source `vizpub`; a run is a protocol."""

    name = "vizpub"
    every_layer = frozenset({OVERLAY})
    options = frozenset({"interval_us", "gap_tolerance", "only", "reporters_only"})
    appendable = False

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'json' by content or path, or 'merged json' for files merged from several
        hosts.
        """
        return recognise(path, head)

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return a split for each file. Raises: InputError for files that VizPub merged."""
        for file in files:
            if file.encoding == MERGED:
                raise InputError(
                    f"{file.path} was merged by VizPub from the files of several hosts, "
                    "which loses the interval and keeps peers that are gone",
                    "ingest what the hosts wrote, for example: "
                    "vizpub ingest reports/unprocessed --run NAME",
                )
        return [InputSplit(number, file.path) for number, file in enumerate(files)]

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader; every file names its protocol."""
        return _NodeReader(ReportFilter(source_input.options.only))

    def make_fold(self, source_input: SourceInput) -> ReportFold:
        """Create the fold of reports whose counters run from the start."""
        return fold_of_reports(source_input, totals=True)

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run of one tick per interval. Raises: the errors of Reports.describe."""
        tally = ReportTally.of(counted)
        tally.forget([name for name in COUNTERS if not tally.moved[name]])
        description = facts.describe_run(tally, options, _WORDS)
        notes = {
            note: n for note, n in description.notes.items() if note != facts.lacking_note(BYTES)
        }
        return replace(description, notes=notes)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of reports, with the traffic of publications corrected."""
        seen = super().observe(run, options)
        moved = ReportTally.of(run.totals).moved
        return replace(seen, traffic=seen.traffic and _traffic_text(seen.traffic, moved))


def _traffic_text(counted: str, moved: Mapping[str, int]) -> str:
    """Return the SQL text of traffic: received messages are the listed ones and their later copies,
    which are only counted. A counter that is 0 in every report was never set, as VizPub's Java
    cannot omit one.
    """
    never_set = "".join(f", NULL::BIGINT AS {name}" for name in COUNTERS if not moved.get(name))
    corrected = f"SELECT * REPLACE (peer AS peer{never_set}) FROM ({counted})"
    unknown = "".join(f", NULL::BIGINT AS {name}" for name in _NO_BYTES)
    # Unknown beyond 64 bits.
    copies = "try_cast(publication_messages_received::HUGEINT + duplicates AS BIGINT)"
    return (
        f"SELECT * REPLACE ({copies} AS publication_messages_received{unknown}) FROM ({corrected})"
    )
