"""Deliveries of messages as CSV or Parquet: `msg,node,prev_node,t_us`.

Each row is an arrival of message `msg` at peer `node` from `prev_node`, `t_us` microseconds
after the run's epoch; `prev_node` = `node` marks the publisher. Edge lists without times may stand
beside them: then the links, and all peers, are there over the whole run. Without them, presence and
links are unknown. Subscriptions always are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import InputRow, InputSplit
from vizpub.ingest.sources.base import ObservedTables, RunDescription, SourceInput, SourceOptions
from vizpub.ingest.sources.edges.source import WITHOUT_TIMES, Edges, times_of
from vizpub.ingest.sources.folded import NO_REJECTIONS, OBSERVED
from vizpub.ingest.sources.tables.delimited import (
    NO_ROWS,
    CountCombiner,
    PlacedRow,
    TableSource,
    columns_of,
)
from vizpub.ingest.sources.tables.rules import (
    Fields,
    Rule,
    check_key,
    check_whole_number,
    parse_number,
)
from vizpub.ingest.sources.tables.units import UNIX_EPOCH, UNIX_US, TimeScale
from vizpub.ingest.sources.times import GAP, NO_OUTLIERS, Outliers, RecordTimes, check_length
from vizpub.ingest.tasks.fold import KeyFold, RunCounts
from vizpub.ingest.tasks.sink import Fold
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import InputError
from vizpub.reports.fields import INT32
from vizpub.reports.records import OVERLAY

NO_DELIVERY = "no delivery could be read"

_INTERVAL_US = 1_000_000
_ADVICE = "t_us counts from the start of the run, or from 1970"
_HEADER = ("msg", "node", "prev_node", "t_us")
_TABLES = {
    name: OBSERVED[name] for name in ("publications", "receptions", "links", "names", "quarantine")
}
_OF_LINKS = ("presence", "links")
_UNKNOWN = ("topics", "roles", "traffic", "rejections")
_AHEAD = -1
"""The time of publications in the fold: before all arrivals."""
_LINK = -2
"""The time of links in the fold."""
_EDGES = Edges()


def _outliers(counted: RunCounts, interval_us: int) -> Outliers:
    return RecordTimes.of(counted["times"]).outliers(interval_us)


def _are_links(file: InputFile) -> bool:
    return "src" in columns_of(file.encoding)


class Deliveries(TableSource):
    """The source `deliveries`. Its rows are folded by message, those of links by `src` peer."""

    name = "deliveries"
    time_column = "t_us"
    joins = frozenset({_EDGES.name})
    tables = _TABLES
    headers: Collection[tuple[str, ...]] = (_HEADER,)
    rules: Mapping[str, Rule] = {
        **dict(zip(_HEADER, (check_key, check_key, check_key, check_whole_number), strict=True)),
        **{name: _EDGES.rules[name] for name in ("src", "dst", "layer", "topic")},
    }
    together: Mapping[str, CountCombiner] = {
        **{"latest": max, "repeated": sum, "linked": any},
        "times": RecordTimes.together,
    }

    def layers(self, files: Sequence[InputFile]) -> frozenset[str] | None:
        """Return the layers of the edge lists; none without edge lists."""
        links = [file for file in files if _are_links(file)]
        return _EDGES.layers(links) if links else frozenset()

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return the splits of all files. Raises: InputError for links with times."""
        for file in files:
            if _are_links(file) and (times := times_of(file)) != WITHOUT_TIMES:
                raise InputError(
                    f"{file.path} lists links {times}, and cannot be joined with deliveries",
                    "their times are in microseconds: give links without times, which hold for "
                    "the whole run (src,dst), or ingest the links as a run of their own",
                )
        return super().splits(files)

    def scale_of(self, file: InputFile, options: SourceOptions) -> TimeScale:
        """Return the scale: numbers are microseconds, without a unit."""
        del file
        return TimeScale(options.time_unit_us or 1)

    @staticmethod
    def place(row: Fields) -> PlacedRow:
        """Place a delivery by message and time, publications first, and a link by `src`."""
        if row["src"]:
            return PlacedRow(
                row["src"], _LINK, 0, (row["dst"], row["layer"] or OVERLAY, row["topic"])
            )
        message, peer, previous, text = (row[name] or "" for name in _HEADER)
        time = parse_number(text) or 0
        when = (_AHEAD, time) if peer == previous else (time, 0)
        return PlacedRow(message, *when, (peer, previous, text))

    def make_fold(self, source_input: SourceInput) -> _DeliveryFold:
        """Create the fold, which goes message by message."""
        options, counted = source_input.options, source_input.counted
        interval_us = options.interval_us or _INTERVAL_US
        outliers = _outliers(counted, interval_us) if counted else NO_OUTLIERS
        linked = any(map(_are_links, source_input.files))
        return _DeliveryFold(source_input.paths, interval_us, outliers, linked=linked)

    def is_refuted(self, fold: Fold, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if there are outliers."""
        return bool(_outliers(counted, options.interval_us or _INTERVAL_US))

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run with ticks of a microsecond, and intervals of a second by default.

        Raises: InputError where there is no delivery, or the deliveries lie too far apart.
        """
        if counted["latest"] is None:
            raise InputError(NO_DELIVERY, NO_ROWS)
        interval_us = options.interval_us or _INTERVAL_US
        times, last = RecordTimes.of(counted["times"]), counted["latest"] // interval_us
        is_unix = (earliest := times.parts[0].first) >= UNIX_US
        clock = Clock(interval_us, 1, earliest // interval_us if is_unix else 0, last)
        check_length(times, clock, "the deliveries", _ADVICE)
        repeated = counted["repeated"]
        notes = {"repeated_records": repeated} if repeated else {}
        notes |= times.empty(interval_us)
        unknown = _UNKNOWN if counted["linked"] else (*_OF_LINKS, *_UNKNOWN)
        return RunDescription(
            clock,
            epoch=UNIX_EPOCH if is_unix else None,
            unknown=unknown,
            notes=notes,
            totals=counted,
        )

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables; peers that publish, receive or have a link count as reporters."""
        del options
        linked, since = run.totals["linked"], run.clock.first * run.clock.ticks_per_interval
        ends = "('publications', 'publisher'), ('receptions', 'peer')"
        if linked:
            ends += ", ('links', 'src'), ('links', 'dst')"
        reporter_names = f'FROM folded.names WHERE ("table", "column") IN ({ends})'
        return ObservedTables(
            peers=f"SELECT name {reporter_names}",
            presence=f"SELECT DISTINCT name AS peer, {since} AS valid_from, open_end() AS valid_to "
            f"{reporter_names}"
            if linked
            else None,
            links=f"SELECT * REPLACE ({since} AS valid_from) FROM folded.links" if linked else None,
            publications="FROM folded.publications",
            receptions="FROM folded.receptions",
            rejections=NO_REJECTIONS,
        )


class _DeliveryFold(KeyFold):
    """Makes publications and receptions of the rows of each message, and links of the others.

    It holds the rows of the current time, and the first publication of the message.
    """

    def __init__(
        self, files: Sequence[str], interval_us: int, outliers: Outliers, *, linked: bool
    ) -> None:
        """Create the fold from the names of the files, the length of an interval, and the times
        that do not belong to the run; `linked` = links are known.
        """
        super().__init__(_TABLES, files)
        self._interval_us, self._outliers = interval_us, outliers
        self._linked = linked

    def start(self) -> None:
        """Reset the counts."""
        self._latest: int | None = None
        self._repeated = 0
        self._times = RecordTimes(GAP * self._interval_us)

    def total_counts(self) -> RunCounts:
        """Return the `latest` time of an accepted row, the number of `repeated` rows, `linked`, and
        the `times` of all deliveries.
        """
        counts = {"latest": self._latest, "repeated": self._repeated, "linked": self._linked}
        return {**counts, "times": self._times.plain}

    def begin(self, key: str) -> None:
        """Start a message, the `src` peer of links, or both."""
        self._message, self._arrivals = key, 0
        self._when: tuple[int, int] | None = None
        self._said: set[tuple[str, str]] = set()
        self._published: tuple[InputRow, Sequence[str]] | None = None

    def take(self, row: InputRow) -> None:
        """Take a delivery or a link."""
        record = msgspec.json.decode(row.record)
        if row.time == _LINK:
            self.rows["links"].append((row.peer, *record, 0, OPEN))
            return
        peer, previous, _ = record
        time = row.rank if row.time == _AHEAD else row.time
        if why := self._outliers.why(time):
            self.refuse(row, why, ",".join((self._message, *record)).encode())
            return
        self._times.see(time, None, self._files[row.file], row.line)
        if self._when != (row.time, row.rank):
            self._when = row.time, row.rank
            self._said.clear()
        if (peer, previous) in self._said:
            self._repeated += 1
            return
        self._said.add((peer, previous))
        if row.time == _AHEAD:
            # The first publication in the order of the files counts.
            publications = [one for one in (self._published, (row, record)) if one]
            self._published, *others = sorted(
                publications, key=lambda one: (one[0].file, one[0].line)
            )
            for refused, values in others:
                text = ",".join((self._message, *values)).encode()
                self.refuse(refused, "another publication of the message came first", text)
        else:
            at = self._at(row.time)
            who = self._message, None, None, peer, previous
            self.rows["receptions"].append((*who, *at, self._arrivals, None, None, None))
            self._arrivals += 1

    def end(self) -> None:
        """Write the publication."""
        if self._published:
            row, (peer, *_) = self._published
            time_us, interval, tick = self._at(row.rank)
            publication = self._message, None, peer, interval, time_us, tick, None
            self.rows["publications"].append(publication)

    def _at(self, time: int) -> tuple[int, int, int]:
        """Return time_us, interval and tick of a row; the interval is limited to 32 bits."""
        self._latest = time if self._latest is None else max(time, self._latest)
        return time, min(time // self._interval_us, INT32), time
