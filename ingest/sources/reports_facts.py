"""What reports tell of their run as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from ingest.sources.base import BEFORE, Description, SourceOptions
from ingest.sources.reports_traffic import count_differing, traffic_known
from model.clock import Clock
from model.errors import InputError, UnknownName, UseError

_MOST_INTERVALS = 10_000_000
_STATE = ("neighbors", "topics", "roles")
_STATE_AND_EVENTS = (*_STATE, "sent", "received")
_EDGES = ("first", "last")
_DIFFERS = "reports whose publication counters differ from their events"
_NAMELESS = "reports left out as they name no run"
_NOTED = {"lost": "{}", "unknown field": "unknown field {}"}


@dataclass(frozen=True)
class Words:
    """How a source of reports calls things to people."""

    run: str = "run"
    header: str = "a header"
    """What may name one without a report of it."""
    headers: str = "run headers and ends"


def describe(
    staged: Mapping[str, DataFrame], options: SourceOptions, words: Words = Words()
) -> Description:
    """See Reports.describe."""
    counted = staged["counts"].orderBy("name").collect()
    found = {row.name: row.records for row in counted if row.what == "run"}
    run = _the_run(found, options.only, words)
    header = _header(staged["headers"], run)
    counts = _totals(staged)
    absent = [name for name in _fields() if not counts[name]]
    # Where every arrival is told, nobody has to count those that were not the first.
    unknown = [name for name in absent if name != "duplicates" or "received" in absent]
    counts["differing"] = _differing(staged, absent, options.only) + counts.get("differing", 0)
    return Description(
        clock=_clock(counts, header, options.interval_us),
        protocol=header.get("protocol"),
        parameters=json.loads(header.get("parameters", "{}")),
        seed=header.get("seed"),
        epoch=header.get("epoch"),
        ended="last_interval" in header,
        unknown=tuple(dict.fromkeys([*unknown, *header.get("unknown", ())])),
        notes={
            **_noted(counted, options.only),
            **_incomplete(counts, absent),
            **({_DIFFERS: counts["differing"]} if counts["differing"] else {}),
        },
        totals=counts,
    )


def _totals(staged: Mapping[str, DataFrame]) -> dict[str, int]:
    """`_counts` of this input and of all before it. Raises: UseError where that is not before."""
    now = _counts(staged.get("new", staged["reports"]))
    if f"{BEFORE}totals" not in staged:
        return now.asDict()
    row = staged[f"{BEFORE}totals"].first()
    assert row is not None  # the table has one row
    before = row.asDict()
    if now["all"] and now["first"] <= before["last"]:
        raise UseError(
            f"the new files have reports of interval {now['first']}, and the run holds all up to "
            f"interval {before['last']}; ingest all files of the run anew with --replace"
        )
    sums = {name: before[name] + now[name] for name in now.asDict() if name not in _EDGES}
    return {**before, **sums, "last": now["last"] if now["all"] else before["last"]}


def _the_run(found: Mapping[str | None, int], only: str | None, words: Words) -> str | None:
    """The one run of the input; null if it has no name. `found` is how many reports each has."""
    if not any(found.values()):
        raise InputError(
            "no report could be read",
            f"all that could be read are {words.headers}"
            if found
            else "every record was refused; see the quarantine",
        )
    named = sorted(run for run in found if run is not None)
    if only is not None:
        if only not in named:
            raise UnknownName(words.run, only, named)
        if not found[only]:
            raise InputError(f"the input has {words.header} of {words.run} '{only}', but no report")
        return only
    if len(named) > 1:
        told = ", ".join(f"{run} ({found[run]} reports)" for run in named)
        example = max(named, key=lambda run: found[run] > 0)
        raise UseError(
            f"the input holds several {words.run}s: {told}; pick one, for example: --only {example}"
        )
    return named[0] if named else None


def _noted(counted: Sequence[Row], only: str | None) -> dict[str, int]:
    """What became of records: given way to others, with unknown fields, of no run."""
    found = {
        _NOTED[row.what].format(row.name): row.records for row in counted if row.what in _NOTED
    }
    nameless = sum(row.records for row in counted if row.what == "run" and row.name is None)
    return {**found, _NAMELESS: nameless} if nameless and only is not None else found


def _header(headers: DataFrame, run: str | None) -> dict[str, Any]:
    """What the headers and ends of the run say, one value a field.

    Raises: InputError where they contradict each other.
    """
    mine = headers.where(F.col("run").isNull() | (F.col("run") == F.lit(run)))
    names = [name for name in headers.columns if name != "run"]
    row = mine.agg(*(F.sort_array(F.collect_set(name)).alias(name) for name in names)).first()
    assert row is not None  # an aggregate has one row
    values = {name: row[name] for name in names}
    ends = values.pop("last_interval")
    for name, several in values.items():
        if len(several) > 1:
            raise InputError(
                f"run headers contradict each other: '{name}' is {' and '.join(map(str, several))}",
                "ingest the files of one run, or pick one with --only RUN",
            )
    found = {name: several[0] for name, several in values.items() if several}
    return {**found, "last_interval": max(ends)} if ends else found


def _fields() -> dict[str, Column]:
    """What reports may leave out, each with a column that is null where one does."""
    return {**{name: F.col(name) for name in _STATE_AND_EVENTS}, **traffic_known()}


def _counts(reports: DataFrame) -> Row:
    """How many reports have each field and how many lack it, and the intervals they are of.

    A peer that left has no state to tell.
    """
    fields = _fields()
    open_ = {name: told.isNull() for name, told in fields.items()}
    open_ |= {name: open_[name] & ~F.col("left") for name in _STATE}
    row = reports.agg(
        F.min("interval").alias("first"),
        F.max("interval").alias("last"),
        F.count(F.lit(1)).alias("all"),
        F.count_if("left").alias("left"),
        *(F.count(told).alias(name) for name, told in fields.items()),
        *(F.count_if(is_open).alias(lacking(name)) for name, is_open in open_.items()),
    ).first()
    assert row is not None  # an aggregate has one row
    return row


def _clock(counts: Mapping[str, int], header: Mapping[str, Any], asked_us: int | None) -> Clock:
    told_us = header.get("interval_us")
    if None not in (asked_us, told_us) and asked_us != told_us:
        raise UseError(
            f"the reports' intervals are {told_us} µs long, not {asked_us}: leave out --interval"
        )
    last = max(counts["last"], header.get("last_interval", 0))
    if last - counts["first"] >= _MOST_INTERVALS:
        raise InputError(
            f"the reports reach from interval {counts['first']} to {last}",
            f"more than {_MOST_INTERVALS:,} intervals are surely a mistake in one of them",
        )
    return Clock(1, told_us or asked_us, counts["first"], last)


def _incomplete(counts: Mapping[str, int], absent: Sequence[str]) -> dict[str, int]:
    """How many reports lack what others of the run have."""
    notes = (lacking(name) for name in _fields() if name not in absent)
    return {note: counts[note] for note in notes if counts[note]}


def lacking(name: str) -> str:
    """The note on how many reports lack what others of the run have."""
    return f"reports without {name}"


def _differing(staged: Mapping[str, DataFrame], absent: Sequence[str], only: str | None) -> int:
    """How many reports count other publication traffic than their events tell."""
    return 0 if {"sent", "received"} <= set(absent) else count_differing(staged, only)
