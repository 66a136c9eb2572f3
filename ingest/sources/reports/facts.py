"""Counts over reports, and the description of the run from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from vizpub.ingest.sources.base import Description, SourceOptions
from vizpub.ingest.sources.times import GAP, Outliers, Times, check_length
from vizpub.ingest.tasks.fold import count, every_refused
from vizpub.model.clock import Clock
from vizpub.model.columns import TRAFFIC_COLUMNS
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.model.run import DUPLICATES
from vizpub.model.wording import amount
from vizpub.reports.fields import END, RUN

NO_REPORT = "no report could be read"

COUNTERS = (*TRAFFIC_COLUMNS, "duplicates", "rpcs_sent", "rpcs_received")
STATE = ("neighbors", "topics", "roles")
_FIELDS = (
    *(*STATE, "sent", "received"),
    *("control.messages", "control.bytes", "publication.messages", "publication.bytes"),
    *("duplicates", "rpcs"),
)
"""Optional fields of reports."""

_TIMES = ("times", "outlying")
_MOST_VALUES = 5
_OF_HEADERS = (RUN.fields.keys() | END.fields.keys()) - {"format", "run"}
DIFFERS = (
    "reports whose counters differ from the events they list; what only the list tells is unknown"
)
_LOST_HEADERS = "refused run headers, whose counters and times are ignored"
_NAMELESS = "reports left out because they name no run"


def _put(fields: dict[str, list[Any]], name: str, value: Any) -> None:
    """Add a value of a field: keep the greatest `last_interval`, and a few different values of
    other fields, enough to report a contradiction.
    """
    values = fields.setdefault(name, [])
    if name == "last_interval":
        values[:] = [max([value, *values])]
    elif value not in values and len(values) < _MOST_VALUES:
        values.append(value)


@dataclass
class Tally:
    """Counts over the records of a task, of several tasks, or of a whole run."""

    runs: Counter[str] = field(default_factory=Counter)
    """Reports by the run they name; a run that only a header names has 0."""
    nameless: int = 0
    """Reports that name no run."""
    headers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """Values of each field of run headers and ends, by run; '' = they name none."""
    unknown_fields: Counter[str] = field(default_factory=Counter)
    """Records by unknown field."""
    refused: Counter[str] = field(default_factory=Counter)
    """Refused records by reason."""
    lost: Counter[str] = field(default_factory=Counter)
    """Reports dropped for another one of the same peer and interval, by reason."""
    first: int | None = None
    last: int | None = None
    """The first and last interval of a report."""
    shapes: Counter[int] = field(default_factory=Counter)
    """Reports by the fields they have; see `shape_of`."""
    gauges: int = 0
    """Reports with numbers of the system's own."""
    moved: Counter[str] = field(default_factory=Counter)
    """Reports in which a counter is not 0, where a source asks."""
    differing: int = 0
    """Reports whose publication counters differ from their events."""
    repeating: int = 0
    """Reports that count more duplicates than they list arrivals, and do not differ else."""
    lost_headers: int = 0
    """Run headers and ends that were refused."""
    times: Times = field(default_factory=lambda: Times(GAP))
    """The intervals of reports."""
    outlying: Times = field(default_factory=lambda: Times(GAP))
    """Those of reports that were refused because no others are near."""

    def header(self, record: Mapping[str, Any]) -> None:
        """Count a run header or an end."""
        run = record.get("run")
        if run is not None:
            self.runs[run] += 0
        fields = self.headers.setdefault(run or "", {})
        for name in _OF_HEADERS & record.keys():
            if record[name] is not None:
                _put(fields, name, record[name])

    def unknown(self, names: Iterable[str]) -> None:
        """Count the unknown fields of a record."""
        for name in names:
            count(self.unknown_fields, name)

    def refuse(self, reason: str) -> None:
        """Count a refused record."""
        count(self.refused, reason)

    def extend(self, first: int, last: int) -> None:
        """Include reports of these intervals."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            if isinstance(mine, Counter):
                mine.update(theirs)
        self.nameless += other.nameless
        self.differing += other.differing
        self.repeating += other.repeating
        self.gauges += other.gauges
        self.lost_headers += other.lost_headers
        self.times.add(other.times)
        self.outlying.add(other.outlying)
        for run, fields in other.headers.items():
            here = self.headers.setdefault(run, {})
            for name, values in fields.items():
                for value in values:
                    _put(here, name, value)
        if other.first is not None and other.last is not None:
            self.extend(other.first, other.last)

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON values, for `of`."""
        named = {n: dict(v) if isinstance(v, Counter) else v for n, v in vars(self).items()}
        shapes = {str(shape): n for shape, n in self.shapes.items()}
        times = {name: getattr(self, name).plain for name in _TIMES}
        return {**named, "shapes": shapes, **times}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """A tally from its `plain` values."""
        made = cls()
        for name, value in vars(made).items():
            known = plain.get(name)  # earlier versions counted less
            if known is not None:
                is_counter = isinstance(value, Counter)
                kind = Times.of if name in _TIMES else Counter if is_counter else None
                setattr(made, name, kind(known) if kind else known)
        made.shapes = Counter({int(shape): n for shape, n in made.shapes.items()})
        return made

    def forget(self, counters: Collection[str]) -> None:
        """Treat these of COUNTERS as reported by no report."""
        bits = sum(_BIT[field] for field, names in COUNTED.items() if names <= set(counters))
        shapes, self.shapes = self.shapes, Counter()
        for shape, number in shapes.items():
            self.shapes[shape & ~bits] += number

    def outliers(self) -> Outliers:
        """The intervals that do not belong to the run, of all reports that were ever counted."""
        every = Times(GAP)
        every.add(self.times)
        every.add(self.outlying)
        return every.outliers(1)

    def known(self, name: str) -> int:
        """How many reports have a field."""
        return self._of_shape(lambda shape: bool(shape & _BIT[name]))

    def lacking(self, name: str) -> int:
        """How many reports lack a field; a peer that left has no state."""
        bits = _BIT[name] | (_LEFT if name in STATE else 0)
        return self._of_shape(lambda shape: not shape & bits)

    def _of_shape(self, is_counted: Callable[[int], bool]) -> int:
        return sum(number for shape, number in self.shapes.items() if is_counted(shape))


_BIT = {name: 1 << number for number, name in enumerate(_FIELDS)}
_LEFT = 1 << len(_FIELDS)
COUNTED = {
    **{
        f"{kind}.{what}": {f"{kind}_{what}_{way}" for way in ("sent", "received")}
        for kind in ("control", "publication")
        for what in ("messages", "bytes")
    },
    "duplicates": {"duplicates"},
    "rpcs": {"rpcs_sent", "rpcs_received"},
}
"""The optional fields that are counters, and their columns in COUNTERS."""


@dataclass(frozen=True)
class Words:
    """The words of a source of reports in messages to users."""

    run: str = "run"
    header: str = "a header"
    """What may name a run without a report."""
    headers: str = "run headers and ends"


def describe(
    tally: Tally, before: Tally | None, options: SourceOptions, words: Words = Words()
) -> Description:
    """See Reports.describe. `before` has the counts of the run that is appended to."""
    if before is not None:
        tally = _together(before, tally)
    run = _the_run(tally, options.only, words)
    header = _header(tally.headers, run)
    absent = [name for name in _FIELDS if not tally.known(name)]
    # If all arrivals are reported, duplicates can be derived from them.
    unknown = [name for name in absent if name != "duplicates" or "received" in absent]
    unknown = list(dict.fromkeys([*unknown, *header.get("unknown", ())]))
    differing = partly_listed(tally, options.only, unknown)
    return Description(
        clock=_clock(tally, header, options.interval_us),
        protocol=header.get("protocol"),
        parameters=header.get("parameters", {}),
        seed=header.get("seed"),
        epoch=header.get("epoch"),
        ended="last_interval" in header,
        unknown=tuple(unknown),
        notes={
            **{f"unknown field {name}": n for name, n in sorted(tally.unknown_fields.items())},
            **dict(sorted(tally.lost.items())),
            **({_NAMELESS: tally.nameless} if tally.nameless and options.only else {}),
            **{
                lacking(n): tally.lacking(n)
                for n in _FIELDS
                if n not in absent and tally.lacking(n)
            },
            **({DIFFERS: differing} if differing else {}),
            **({_LOST_HEADERS: tally.lost_headers} if tally.lost_headers else {}),
            **tally.times.empty(1),
        },
        totals=tally.plain,
    )


def counters_are_totals(tally: Tally, only: str | None) -> bool:
    """Whether a header of the run says that counters run from the source's start."""
    return _says(tally, only, "counters", "total")


def partly_listed(tally: Tally, only: str | None, unknown: Collection[str]) -> int:
    """The number of reports that list other events than they count. None does where a header says
    that lists are complete; and only duplicates may lack where the run does not know these.
    """
    if _says(tally, only, "lists", "complete"):
        return 0
    return tally.differing + (0 if DUPLICATES in unknown else tally.repeating)


def _says(tally: Tally, only: str | None, field: str, value: str) -> bool:
    mine = [fields for run, fields in tally.headers.items() if run in ("", only) or only is None]
    return any(value in fields.get(field, ()) for fields in mine)


def _together(before: Tally, now: Tally) -> Tally:
    """The counts of both."""
    both = Tally()
    both.add(before)
    both.add(now)
    return both


def _the_run(tally: Tally, only: str | None, words: Words) -> str | None:
    """The one run of the input; null if it has no name."""
    found = tally.runs
    if not any(found.values()) and not tally.nameless:
        raise InputError(
            NO_REPORT,
            f"all that could be read are {words.headers}"
            if found or tally.headers
            else every_refused(tally.refused),
        )
    named = sorted(found)
    if only is not None:
        if only not in named:
            raise UnknownName(words.run, only, named)
        if not found[only]:
            raise InputError(f"the input has {words.header} of {words.run} '{only}', but no report")
        return only
    if len(named) > 1:
        listing = ", ".join(f"{run} ({amount(found[run], 'report')})" for run in named)
        example = max(named, key=lambda run: found[run] > 0)
        raise UseError(
            f"the input holds several {words.run}s: {listing}; "
            f"pick one, for example: --input-run {example}"
        )
    return named[0] if named else None


def _header(headers: Mapping[str, dict[str, list[Any]]], run: str | None) -> dict[str, Any]:
    """The values of the headers and ends of the run, one per field.

    Raises: InputError where they contradict each other.
    """
    mine = Tally()
    for name in {"", run or ""}:
        mine.add(Tally(headers={"": headers.get(name, {})}))
    values = mine.headers.get("", {})
    ends = values.pop("last_interval", [])
    for name, several in values.items():
        if len(several) > 1:
            listing = " and ".join(sorted((_shown(value) for value in several), key=_by_value))
            raise InputError(
                f"run headers contradict each other: '{name}' is {listing}",
                "ingest the files of one run, or pick one with --input-run RUN",
            )
    found = {name: several[0] for name, several in values.items()}
    return {**found, "last_interval": max(ends)} if ends else found


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _by_value(text: str) -> tuple[int, str]:
    return len(text), text


def _clock(tally: Tally, header: Mapping[str, Any], asked_us: int | None) -> Clock:
    stated_us = header.get("interval_us")
    if None not in (asked_us, stated_us) and asked_us != stated_us:
        raise UseError(
            f"the reports' intervals are {stated_us} µs long, not {asked_us}: leave out --interval"
        )
    assert tally.first is not None  # there is a report
    assert tally.last is not None
    last = max(tally.last, header.get("last_interval", 0))
    clock = Clock(1, stated_us or asked_us, tally.first, last)
    check_length(tally.times, replace(clock, tick_us=None), "the reports")
    return clock


def lacking(name: str) -> str:
    """The note that counts reports without a field that others have."""
    return f"reports without {name}"
