"""Edge lists, with times and without: only the structure of an overlay.

CSV or Parquet with the columns `interval,src,dst` (a link exists in that interval),
`src,dst,valid_from,valid_to` (from interval valid_from until before valid_to; no valid_to = open;
`vf,vt` are accepted as well) or `src,dst` (in the whole run), each optionally with `layer`, `topic`
or both at the end. Or plain columns: `src dst`, `src dst interval`, `src dst valid_from valid_to`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import InputRow, InputSplit
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
    first_lines,
)
from vizpub.ingest.sources.edges.comments import UNFIT, WEIGHT, read_comments
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.sources.tables.delimited import (
    COLUMNS,
    NO_ROWS,
    PLAIN,
    SAY,
    UNDIRECTED,
    CountCombiner,
    PlacedRow,
    TableSource,
    columns_of,
    is_plain_text,
    own_columns,
)
from vizpub.ingest.sources.tables.folders import with_folders
from vizpub.ingest.sources.tables.row_groups import schema_of
from vizpub.ingest.sources.tables.rules import (
    Fields,
    Rule,
    check_key,
    check_optional_key,
    check_whole_number,
    parse_number,
)
from vizpub.ingest.sources.tables.units import SECOND_US, UNIX_EPOCH, UNIX_US, TimeScale
from vizpub.ingest.sources.tables.user_columns import LEFT_OUT, guess_columns, is_end, likely_ends
from vizpub.ingest.sources.times import GAP, NO_OUTLIERS, Outliers, RecordTimes, check_length
from vizpub.ingest.tasks.fold import KeyFold, RunCounts
from vizpub.ingest.tasks.sink import Fold
from vizpub.model.clock import OPEN, Clock, duration
from vizpub.model.errors import InputError, UseError
from vizpub.reports.records import OVERLAY

TIME_UNIT = "times are numbers of --time-unit"
WHOLE_SECONDS = "times in plain columns are seconds"
NO_LINK = "no link could be read"

_KINDS = (
    ("interval", "src", "dst"),
    ("src", "dst", "valid_from", "valid_to"),
    ("src", "dst", "vf", "vt"),
    ("src", "dst"),
)
_EXTRAS = ((), ("layer",), ("topic",), ("layer", "topic"))
_TABLES = {name: OBSERVED[name] for name in ("links", "names", "quarantine")}
_UNKNOWN = ("topics", "roles", "traffic", "messages")


_PLAIN_COLUMNS = {
    2: ("src", "dst"),
    3: ("src", "dst", "interval"),
    4: ("src", "dst", "valid_from", "valid_to"),
}
# Two words are no links: many texts have two words on a line, none of these numbers or times.
_NAME = rb"(?=[^\s\d]*\d)[\w.:/@+-]*\w"
_PLAIN_LINE = re.compile(rb"\s*(?:\d+\s+\d+|%s\s+%s(?:\s+\d+){1,2})\s*" % (_NAME, _NAME))
_DESCRIBED_LINE = re.compile(rb"\s*%s\s+%s(?:\s+[-+]?[\d.]+(?:[eE][-+]?\d+)?)*\s*" % (_NAME, _NAME))
_LOOK_AT = 50
_LISTED, _IN_PERIODS = "by interval", "by period (valid_from, valid_to)"
WITHOUT_TIMES = "without times"


def times_of(file: InputFile) -> str:
    """Return the way in which the rows of a file give times, as text for users."""
    columns = columns_of(file.encoding)
    if "interval" in columns:
        return _LISTED
    return _IN_PERIODS if {"valid_from", "vf"} & set(columns) else WITHOUT_TIMES


def _plain_encoding(head: bytes) -> str | None:
    """Return the encoding of plain columns if most of the first lines have equally many and look
    like links; comments may name the columns. Otherwise null.
    """
    lines = first_lines(head)
    rows = [line for line in lines if line.lstrip()[:1] not in (b"#", b"%")][:_LOOK_AT]
    described = read_comments([line for line in lines if line.lstrip()[:1] in (b"#", b"%")])
    columns, kind = _PLAIN_COLUMNS, UNDIRECTED if described.is_undirected else PLAIN
    if described.unfit:
        return f"{described.unfit}()"
    width = _width(rows, _PLAIN_LINE)
    if described.more:
        names = ("src", "dst", *described.more)
        columns = {n: names[:n] for n in range(2, len(names) + 1)}
        width = _width(rows, _DESCRIBED_LINE)
    return f"{kind}({','.join(columns[width])})" if width in columns else None


def _width(lines: Sequence[bytes], form: re.Pattern[bytes]) -> int:
    """Return the number of words of most lines, if they have that form; otherwise 0."""
    widths = Counter(len(line.split()) for line in lines if form.fullmatch(line))
    width, count = max(widths.items(), key=lambda item: item[1], default=(0, 0))
    return width if 2 * count > len(lines) else 0


def _length_of(options: SourceOptions) -> int:
    """Return the length of an interval in µs: a second, or the unit of times, if it is longer."""
    return options.interval_us or max(options.time_unit_us or 0, SECOND_US)


def _check_end(row: Fields, name: str) -> str | None:
    """Check the end of a period: it is absent, or after the start."""
    text = row[name]
    if not text:
        return None
    end, begin = parse_number(text), parse_number(row["valid_from"] or row["vf"] or "")
    if end is None:
        return check_whole_number(row, name)
    return "the end is not after the beginning" if begin is not None and end <= begin else None


class Edges(TableSource):
    """The source `edges`. Its rows are folded by the `src` peer of the link."""

    name = "edges"
    tables = _TABLES
    settled = True
    joins_rows = True
    time_column = "interval"
    vague = frozenset({PLAIN, UNDIRECTED, *UNFIT})
    headers = frozenset((*kind, *extra) for kind in _KINDS for extra in _EXTRAS)
    rules: Mapping[str, Rule] = {
        "src": check_key,
        "dst": check_key,
        "interval": check_whole_number,
        "valid_from": check_whole_number,
        "valid_to": _check_end,
        "vf": check_whole_number,
        "vt": _check_end,
        "layer": check_optional_key,
        "topic": check_optional_key,
    }
    together: Mapping[str, CountCombiner] = {
        **{"listed": any, "first": min, "last": max, "end": max},
        "times": RecordTimes.together,
    }

    @staticmethod
    def place(row: Fields) -> PlacedRow:
        """Place a link by its `src` peer and time."""
        begin = parse_number(row["interval"] or row["valid_from"] or row["vf"] or "") or 0
        end = (
            begin + 1
            if row["interval"]
            else parse_number(row["valid_to"] or row["vt"] or str(OPEN))
        )
        link = row["dst"], row["layer"] or OVERLAY, row["topic"]
        return PlacedRow(row["src"] or "", begin, 0, (*link, end))

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return the encoding like TableSource, or that of plain columns by the content alone."""
        of_header = super().recognises(path, head)
        if of_header or self.columns is not None or self.names is not None:
            return of_header
        encoding, folders = _plain_encoding(head), self._in_folders(path)
        if not encoding or not folders or encoding.removesuffix("()") in UNFIT:
            return encoding
        own_names = [name for name in own_columns(encoding) if name != WEIGHT]
        return with_folders(encoding, folders) if self.are_columns((*own_names, *folders)) else None

    def near_miss(self, path: str, head: bytes) -> str | None:
        """Describe the difference like TableSource, or say how to name the columns of any table."""
        why = super().near_miss(path, head)
        if self.names is None and (schema := schema_of(path, head)) and len(schema.names) > 1:
            src, dst = likely_ends(schema.names)
            return (
                f"its columns are {', '.join(schema.names)}; {SAY}: {COLUMNS} src={src},dst={dst}"
            )
        if why or (guessed := guess_columns(head)) is None:
            return why
        src, dst = likely_ends(guessed.first)
        if is_end(src) and is_end(dst):
            example = f"src={src},dst={dst}"
        else:
            example = ",".join(("src", "dst", *[LEFT_OUT] * (len(guessed.first) - 2)))
        appearance = f"it has {guessed.kind} between {len(guessed.first)} columns, and begins with"
        return f"{appearance} '{guessed.text}'; {SAY}, for example: {COLUMNS} {example}"

    def layers(self, files: Sequence[InputFile]) -> frozenset[str] | None:
        """Return the one layer, if no file has a column `layer`; otherwise null."""
        has_layers = any("layer" in columns_of(file.encoding) for file in files)
        return None if has_layers else frozenset({OVERLAY})

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return the splits of all files. Raises: InputError for a mixture of kinds."""
        one, *others = sorted({times_of(file) for file in files})
        if others:
            raise InputError(
                f"some files list links {one}, others {others[0]}",
                "they differ in when a peer is present: ingest one kind",
            )
        return super().splits(files)

    def scale_of(self, file: InputFile, options: SourceOptions) -> TimeScale:
        """Return the scale: numbers are those of intervals, without a unit."""
        unit_us = options.time_unit_us
        if unit_us is None and options.interval_us is not None and is_plain_text(file.encoding):
            unit_us = SECOND_US
        length_us = _length_of(options)
        return TimeScale(unit_us or length_us, length_us, is_of_intervals=unit_us is None)

    def make_fold(self, source_input: SourceInput) -> _LinkFold:
        """Create the fold, which goes peer by peer. Raises: UseError for intervals that are no
        whole units of the files' times.
        """
        files, options, counted = source_input.files, source_input.options, source_input.counted
        length_us = _length_of(options)
        for file in files:
            unit_us = self.scale_of(file, options).unit_us
            if length_us % unit_us and times_of(file) != WITHOUT_TIMES:
                why = WHOLE_SECONDS if options.time_unit_us is None else TIME_UNIT
                raise UseError(f"{why}: give --interval in whole {duration(unit_us)}")
        outliers = RecordTimes.of(counted["times"]).outliers(1) if counted else NO_OUTLIERS
        listed = any(times_of(file) == _LISTED for file in files)
        return _LinkFold(source_input.paths, length_us, outliers, listed=listed)

    def is_refuted(self, fold: Fold, counted: RunCounts, options: SourceOptions) -> bool:
        """Return True if there are outliers."""
        return bool(RecordTimes.of(counted["times"]).outliers(1))

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe a run of one tick per interval, which has ended if all periods have an end.

        Raises: InputError where there is no link, or the intervals lie too far apart.
        """
        first, last = counted["first"], counted["last"]
        if first is None:
            raise InputError(NO_LINK, NO_ROWS)
        length_us = _length_of(options)
        is_unix = first * length_us >= UNIX_US
        is_known = is_unix or options.interval_us is not None or options.time_unit_us is not None
        clock = Clock(1, length_us if is_known else None, first, last)
        times = RecordTimes.of(counted["times"])
        in_seconds = replace(clock, tick_us=length_us)
        check_length(times, in_seconds, "the links", WHOLE_SECONDS)
        return RunDescription(
            clock=clock,
            epoch=UNIX_EPOCH if is_unix else None,
            ended=not counted["listed"] and counted["end"] < OPEN,
            unknown=_UNKNOWN,
            notes=times.empty(1) if counted["listed"] else {},
            totals=counted,
        )

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables; every peer in the list counts as a reporter.

        If links have periods, a peer is present in the whole run; if they are listed by interval,
        it is present from the first to the last interval in which it has a link.
        """
        del options
        listed, since = run.totals["listed"], run.clock.first
        validity = (
            "open_at_end(max(valid_to)) AS valid_to, min(valid_from) AS valid_from"
            if listed
            else f"{since} AS valid_from, open_end() AS valid_to"
        )
        to = "open_at_end(valid_to)" if listed else "valid_to"
        return ObservedTables(
            peers="SELECT name FROM folded.names WHERE kind = 'peer'",
            names="FROM folded.names"
            if listed
            else f"SELECT * REPLACE ({since} AS valid_from) FROM folded.names",
            presence=f"SELECT name AS peer, {validity} FROM folded.names WHERE kind = 'peer' "
            "GROUP BY name",
            links=f"SELECT * REPLACE ({to} AS valid_to) FROM folded.links",
        )


class _LinkFold(KeyFold):
    """Makes maximal periods of the links of each peer."""

    def __init__(
        self, files: Sequence[str], length_us: int, outliers: Outliers, *, listed: bool
    ) -> None:
        """Create the fold from the names of the files, the length of an interval, and the intervals
        that do not belong to the run; `listed` = each row names one interval.
        """
        super().__init__(_TABLES, files)
        self._length_us, self._outliers, self._listed = length_us, outliers, listed

    def start(self) -> None:
        """Reset the counts."""
        self._first: int | None = None
        self._last = self._end = -1
        self._times = RecordTimes(GAP)

    def total_counts(self) -> RunCounts:
        """Return `listed`, the `first` and the `last` interval with a link, the greatest `end` of a
        link (OPEN = none), and the `times` of all, in intervals.
        """
        bounds = {"first": self._first, "last": self._last, "end": self._end}
        return {"listed": self._listed, **bounds, "times": self._times.plain}

    def add(self, tally: bytes) -> None:
        """Count rows that were joined with others: they are records too."""
        self.count_records(msgspec.json.decode(tally))

    def begin(self, key: str) -> None:
        """Start a peer without links."""
        self._src = key
        self._held: dict[tuple[str, ...], tuple[int, int]] = {}

    def take(self, row: InputRow) -> None:
        """Add a period, or extend the last one of the link."""
        *ends, valid_to = msgspec.json.decode(row.record)
        link, length = tuple(ends), self._length_us
        valid_from = row.time // length
        if valid_to < OPEN:
            valid_to = -(-valid_to // length)
        last = valid_to - 1 if valid_to < OPEN else valid_from
        is_way_back = row.rank > 0  # of a link without direction, whose row was counted
        if why := self._outliers.why(valid_from) or self._outliers.why(last):
            if not is_way_back:
                text = ",".join((self._src, *filter(None, link), str(valid_from)))
                self.refuse(row, why, text.encode())
            return
        # In a listed link no stretch is empty, however many rows were joined to one.
        step = GAP if self._listed else max(last - valid_from, 1)
        for time in () if is_way_back else (*range(valid_from, last, step), last):
            count = min(step, last - time) if self._listed else 1
            self._times.see(time, None, self._files[row.file], row.line, max(count, 1))
        self._first = valid_from if self._first is None else min(valid_from, self._first)
        self._last = max(last, self._last)
        self._end = max(valid_to, self._end)
        since, until = self._held.get(link, (valid_from, valid_from))
        if valid_from > until:
            self._add(link, since, until)
            since = valid_from
        self._held[link] = since, max(valid_to, until)

    def end(self) -> None:
        """Write the last periods of the peer."""
        for link, period in self._held.items():
            self._add(link, *period)

    def _add(self, link: tuple[str, ...], valid_from: int, valid_to: int) -> None:
        self.rows["links"].append((self._src, *link, valid_from, valid_to))
