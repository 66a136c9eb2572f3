"""Counts over reports, and the description of the run from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from vizpub.ingest.sources.base import RunDescription, SourceOptions
from vizpub.ingest.sources.tallies import RecordTally
from vizpub.ingest.sources.times import GAP, Outliers, RecordTimes, check_length
from vizpub.ingest.tasks.fold import count_name, every_refused
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

_MOST_VALUES = 5
_OF_HEADERS = (RUN.fields.keys() | END.fields.keys()) - {"format", "run"}
DIFFERS = (
    "reports whose counters differ from the events they list; what only the list tells is unknown"
)
_LOST_HEADERS = "refused run headers, whose counters and times are ignored"
_NAMELESS = "reports left out because they name no run"


def _put(fields: dict[str, list[Any]], name: str, value: Any) -> None:
    """Add a value of a field.

    Keep the greatest `last_interval`, and a few different values of other fields, enough to report
    a contradiction.
    """
    values = fields.setdefault(name, [])
    if name == "last_interval":
        values[:] = [max([value, *values])]
    elif value not in values and len(values) < _MOST_VALUES:
        values.append(value)


@dataclass
class ReportTally(RecordTally):
    """Counts over records of the contract; their times are intervals."""

    runs: Counter[str] = field(default_factory=Counter)
    """Reports by the run they name; a run that only a header names has 0."""
    nameless: int = 0
    """Reports that name no run."""
    headers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """Values of each field of run headers and ends, by run; '' = they name none."""
    unknown_fields: Counter[str] = field(default_factory=Counter)
    """Records by unknown field."""
    lost: Counter[str] = field(default_factory=Counter)
    """Reports dropped for another one of the same peer and interval, by reason."""
    shapes: Counter[int] = field(default_factory=Counter)
    """Reports by the fields they have; see `shape_of`."""
    gauges: int = 0
    """Reports with numbers of the system's own."""
    attributes: int = 0
    """Reports with attributes of their peers."""
    control_kinds: int = 0
    """Reports that count control messages by kind."""
    moved: Counter[str] = field(default_factory=Counter)
    """Reports in which a counter is not 0, by counter; only some sources count them."""
    differing: int = 0
    """Reports whose publication counters differ from their events."""
    repeating: int = 0
    """Reports that count more duplicates than they list arrivals, and do not differ else."""
    lost_headers: int = 0
    """Run headers and ends that were refused."""
    times: RecordTimes = field(default_factory=lambda: RecordTimes(GAP))
    """The intervals of reports."""
    outlying: RecordTimes = field(default_factory=lambda: RecordTimes(GAP))
    """Intervals of reports that were refused because no others are near."""

    def count_header(self, record: Mapping[str, Any]) -> None:
        """Count a run header or an end."""
        run = record.get("run")
        if run is not None:
            self.runs[run] += 0
        fields = self.headers.setdefault(run or "", {})
        for name in _OF_HEADERS & record.keys():
            if record[name] is not None:
                _put(fields, name, record[name])

    def count_unknown(self, names: Iterable[str]) -> None:
        """Count the unknown fields of a record."""
        for name in names:
            count_name(self.unknown_fields, name)

    def add(self, tally: Self) -> None:
        """Add the counts of another tally."""
        super().add(tally)
        for run, fields in tally.headers.items():
            merged = self.headers.setdefault(run, {})
            for name, values in fields.items():
                for value in values:
                    _put(merged, name, value)

    @property
    def plain(self) -> dict[str, Any]:
        """JSON values from which `of` restores it."""
        return {**super().plain, "shapes": {str(shape): n for shape, n in self.shapes.items()}}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Restore a tally from its `plain` values."""
        tally = super().of(plain)
        tally.shapes = Counter({int(shape): n for shape, n in tally.shapes.items()})
        return tally

    def forget(self, counters: Collection[str]) -> None:
        """Treat these of COUNTERS as reported by no report."""
        bits = sum(_BIT[field] for field, names in COUNTED.items() if names <= set(counters))
        shapes, self.shapes = self.shapes, Counter()
        for shape, number in shapes.items():
            self.shapes[shape & ~bits] += number

    def outliers(self) -> Outliers:
        """Find the intervals that do not belong to the run, among all reports ever counted."""
        every = RecordTimes(GAP)
        every.add(self.times)
        every.add(self.outlying)
        return every.outliers(1)

    def count_with(self, name: str) -> int:
        """Count the reports that have a field."""
        return self._count_shapes(lambda shape: bool(shape & _BIT[name]))

    def count_without(self, name: str) -> int:
        """Count the reports that lack a field; those of a peer that left have no state."""
        bits = _BIT[name] | (_LEFT if name in STATE else 0)
        return self._count_shapes(lambda shape: not shape & bits)

    def _count_shapes(self, is_counted: Callable[[int], bool]) -> int:
        return sum(number for shape, number in self.shapes.items() if is_counted(shape))


_BIT = {name: 1 << number for number, name in enumerate(_FIELDS)}
_LEFT = 1 << len(_FIELDS)
COUNTED = {
    **{
        f"{kind}.{unit}": {f"{kind}_{unit}_{direction}" for direction in ("sent", "received")}
        for kind in ("control", "publication")
        for unit in ("messages", "bytes")
    },
    "duplicates": {"duplicates"},
    "rpcs": {"rpcs_sent", "rpcs_received"},
}
"""Optional fields that are counters, with their columns in COUNTERS."""


@dataclass(frozen=True)
class ReportWords:
    """Words of a source of reports in messages to users."""

    run: str = "run"
    header: str = "a header"
    """Record that may name a run without a report."""
    headers: str = "run headers and ends"


def describe_run(
    tally: ReportTally, options: SourceOptions, words: ReportWords = ReportWords()
) -> RunDescription:
    """Describe the run; see Reports.describe."""
    run = _choose_run(tally, options.only, words)
    header = _merge_headers(tally.headers, run)
    absent = [name for name in _FIELDS if not tally.count_with(name)]
    # If all arrivals are reported, duplicates can be derived from them.
    unknown = [name for name in absent if name != "duplicates" or "received" in absent]
    unknown = list(dict.fromkeys([*unknown, *header.get("unknown", ())]))
    differing = count_partly_listed(tally, options.only, unknown)
    return RunDescription(
        clock=_make_clock(tally, header, options.interval_us),
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
                lacking_note(n): tally.count_without(n)
                for n in _FIELDS
                if n not in absent and tally.count_without(n)
            },
            **({DIFFERS: differing} if differing else {}),
            **({_LOST_HEADERS: tally.lost_headers} if tally.lost_headers else {}),
            **tally.times.empty(1),
        },
        totals=tally.plain,
    )


def counters_are_totals(tally: ReportTally, only: str | None) -> bool:
    """Return True if a header of the run says that counters run from the source's start."""
    return _says(tally, only, "counters", "total")


def count_partly_listed(tally: ReportTally, only: str | None, unknown: Collection[str]) -> int:
    """Count the reports that list other events than they count.

    None does if a header says that lists are complete. If duplicates are unknown, lists may lack
    these.
    """
    if _says(tally, only, "lists", "complete"):
        return 0
    return tally.differing + (0 if DUPLICATES in unknown else tally.repeating)


def _says(tally: ReportTally, only: str | None, field: str, value: str) -> bool:
    mine = [fields for run, fields in tally.headers.items() if run in ("", only) or only is None]
    return any(value in fields.get(field, ()) for fields in mine)


def _choose_run(tally: ReportTally, only: str | None, words: ReportWords) -> str | None:
    """Return the one run of the input; null if it has no name. Raises: InputError, UnknownName,
    UseError.
    """
    runs = tally.runs
    if not any(runs.values()) and not tally.nameless:
        raise InputError(
            NO_REPORT,
            f"all that could be read are {words.headers}"
            if runs or tally.headers
            else every_refused(tally.refused),
        )
    names = sorted(runs)
    if only is not None:
        if only not in names:
            raise UnknownName(words.run, only, names)
        if not runs[only]:
            raise InputError(f"the input has {words.header} of {words.run} '{only}', but no report")
        return only
    if len(names) > 1:
        listing = ", ".join(f"{run} ({amount(runs[run], 'report')})" for run in names)
        example = max(names, key=lambda run: runs[run] > 0)
        raise UseError(
            f"the input holds several {words.run}s: {listing}; "
            f"pick one, for example: --input-run {example}"
        )
    return names[0] if names else None


def _merge_headers(headers: Mapping[str, dict[str, list[Any]]], run: str | None) -> dict[str, Any]:
    """Return the values of the headers and ends of the run, one per field.

    Raises: InputError if they contradict each other.
    """
    mine = ReportTally()
    for name in {"", run or ""}:
        mine.add(ReportTally(headers={"": headers.get(name, {})}))
    values = mine.headers.get("", {})
    ends = values.pop("last_interval", [])
    for name, several in values.items():
        if len(several) > 1:
            texts = [value if isinstance(value, str) else json.dumps(value) for value in several]
            listing = " and ".join(sorted(texts, key=lambda text: (len(text), text)))
            raise InputError(
                f"run headers contradict each other: '{name}' is {listing}",
                "ingest the files of one run, or pick one with --input-run RUN",
            )
    header = {name: several[0] for name, several in values.items()}
    return {**header, "last_interval": max(ends)} if ends else header


def _make_clock(tally: ReportTally, header: Mapping[str, Any], asked_us: int | None) -> Clock:
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


def lacking_note(name: str) -> str:
    """Return the note that counts reports without a field that others have."""
    return f"reports without {name}"
