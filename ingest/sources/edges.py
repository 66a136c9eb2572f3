"""Temporal edge lists: only the structure of an overlay.

CSV or Parquet with the columns `interval,src,dst` (a link exists in that interval) or
`src,dst,valid_from,valid_to` (from interval valid_from until before valid_to; no valid_to = open;
`vf,vt` are accepted as well), both optionally with `layer`, `topic` or both at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.files import InputFile
from ingest.fold import Counted, KeyFold
from ingest.periods import open_at
from ingest.reader import Row, Split
from ingest.reports.fields import INT32, LAST_INTERVAL
from ingest.reports.records import OVERLAY
from ingest.sources.base import Description, Observed, SourceOptions
from ingest.sources.delimited import (
    NO_ROWS,
    Fields,
    Placed,
    Rule,
    TableSource,
    Together,
    columns_of,
    key,
    number_of,
    optional_key,
    whole,
)
from ingest.sources.folded import OBSERVED
from model.clock import OPEN, Clock
from model.errors import InputError

_MOST_INTERVALS = 10_000_000
_KINDS = (
    ("interval", "src", "dst"),
    ("src", "dst", "valid_from", "valid_to"),
    ("src", "dst", "vf", "vt"),
)
_EXTRAS = ((), ("layer",), ("topic",), ("layer", "topic"))
_TABLES = {name: OBSERVED[name] for name in ("links", "names", "quarantine")}
_UNKNOWN = ("topics", "roles", "traffic", "messages")


def _is_listed(file: InputFile) -> bool:
    """Whether each row names one interval."""
    return "interval" in columns_of(file.encoding)


def _end(row: Fields, name: str) -> str | None:
    """An end after the start, or no end."""
    text = row[name]
    if not text:
        return None
    end, begin = number_of(text), number_of(row["valid_from"] or row["vf"] or "")
    if end is None:
        return whole(row, name)
    if end > INT32 and text != str(OPEN):
        return f"'{name}' is too large"
    return "the end is not after the beginning" if begin is not None and end <= begin else None


class Edges(TableSource):
    """The source. Its rows are folded by the `src` peer of the link."""

    name = "edges"
    tables = _TABLES
    settled = True
    headers = frozenset((*kind, *extra) for kind in _KINDS for extra in _EXTRAS)
    rules: Mapping[str, Rule] = {
        "src": key,
        "dst": key,
        "interval": partial(whole, most=LAST_INTERVAL),
        "valid_from": partial(whole, most=LAST_INTERVAL),
        "valid_to": _end,
        "vf": partial(whole, most=LAST_INTERVAL),
        "vt": _end,
        "layer": optional_key,
        "topic": optional_key,
    }
    together: Mapping[str, Together] = {"listed": any, "first": min, "last": max, "end": max}

    @staticmethod
    def place(row: Fields) -> Placed:
        """By `src` peer and time."""
        begin = number_of(row["interval"] or row["valid_from"] or row["vf"] or "") or 0
        end = begin + 1 if row["interval"] else number_of(row["valid_to"] or row["vt"] or str(OPEN))
        link = row["dst"], row["layer"] or OVERLAY, row["topic"]
        return Placed(row["src"] or "", begin, 0, (*link, end))

    def layers(self, files: Sequence[InputFile]) -> frozenset[str] | None:
        """One layer, if no file has a column `layer`."""
        has_layers = any("layer" in columns_of(file.encoding) for file in files)
        return None if has_layers else frozenset({OVERLAY})

    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """As TableSource. Raises: InputError for a mixture of both kinds."""
        if len({_is_listed(file) for file in files}) > 1:
            raise InputError(
                "some files list links by interval, others by period (valid_from, valid_to)",
                "the two differ in when a peer is present: ingest one kind",
            )
        return super().splits(files)

    def fold(
        self, files: Sequence[InputFile], options: SourceOptions, counted: Counted | None
    ) -> _LinkFold:
        """Peer by peer."""
        del options, counted
        return _LinkFold([file.path for file in files], listed=any(map(_is_listed, files)))

    def describe(
        self, counted: Counted, before: Counted | None, options: SourceOptions
    ) -> Description:
        """One tick per interval. Periods that all have an end mark the end of the run.

        Raises: InputError where there is no link, or the intervals lie too far apart.
        """
        del before
        first, last = counted["first"], counted["last"]
        if first is None:
            raise InputError("no link could be read", NO_ROWS)
        if last - first >= _MOST_INTERVALS:
            raise InputError(
                f"the links reach from interval {first} to {last}",
                f"more than {_MOST_INTERVALS:,} intervals: one of them is probably wrong",
            )
        return Description(
            clock=Clock(1, options.interval_us, first, last),
            ended=not counted["listed"] and counted["end"] < OPEN,
            unknown=_UNKNOWN,
            totals=counted,
        )

    def observe(
        self, tables: Mapping[str, DataFrame], run: Description, options: SourceOptions
    ) -> Observed:
        """Every peer in the list counts as a reporter.

        If links have periods, a peer is present in the whole run; if they are listed by interval,
        it is present from the first to the last interval in which it has a link.
        """
        del options
        links, listed = tables["links"], run.totals["listed"]
        if listed:
            links = open_at(links, run.clock.last + 1)
        since = F.lit(run.clock.first).cast("bigint")
        here = F.min("valid_from") if listed else since
        gone = F.max("valid_to") if listed else F.lit(OPEN)
        ends = F.explode(F.array("src", "dst"))
        presence = links.select(ends.alias("peer"), "valid_from", "valid_to").groupBy("peer")
        stays = presence.agg(here.alias("valid_from"), gone.alias("valid_to"))
        return Observed(
            peers=stays.select(F.col("peer").alias("name"), F.lit(True).alias("is_reporter")),
            names=tables["names"] if listed else tables["names"].withColumn("valid_from", since),
            presence=stays,
            links=links,
        )


class _LinkFold(KeyFold):
    """Makes maximal periods of the links of each peer."""

    def __init__(self, files: Sequence[str], *, listed: bool) -> None:
        """Takes the names of the files; `listed` = their rows name one interval each."""
        super().__init__(_TABLES, files)
        self._listed = listed

    def start(self) -> None:
        """Nothing is counted."""
        self._first: int | None = None
        self._last = self._end = -1

    def counted(self) -> Counted:
        """`listed`; the `first` and the `last` interval with a link, and the greatest `end` of a
        link (OPEN = it has none).
        """
        bounds = {"first": self._first, "last": self._last, "end": self._end}
        return {"listed": self._listed, **bounds}

    def begin(self, key: str) -> None:
        """Start a peer without links."""
        self._src = key
        self._held: dict[tuple[str, ...], tuple[int, int]] = {}

    def take(self, row: Row) -> None:
        """Add a period, or extend the last one of the link."""
        *ends, valid_to = msgspec.json.decode(row.record)
        link, valid_from = tuple(ends), row.time
        self._first = valid_from if self._first is None else min(valid_from, self._first)
        self._last = max(valid_to - 1 if valid_to < OPEN else valid_from, self._last)
        self._end = max(valid_to, self._end)
        since, until = self._held.get(link, (valid_from, valid_from))
        if valid_from > until:
            self._add(link, since, until)
            since = valid_from
        self._held[link] = since, max(valid_to, until)

    def end(self) -> None:
        """The last periods stand."""
        for link, period in self._held.items():
            self._add(link, *period)

    def _add(self, link: tuple[str, ...], valid_from: int, valid_to: int) -> None:
        self.rows["links"].append((self._src, *link, valid_from, valid_to))
