"""Metrics as columns of numbers: of peers in blocks of intervals, of the overlay as curves.

NaN is unknown, or of a peer that has no row in an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.explorer import attributes
from vizpub.model.arrays import Floats
from vizpub.model.errors import UnknownName
from vizpub.model.run import DUPLICATES, PREVIOUS_HOPS
from vizpub.questions.gauges import checked_gauges
from vizpub.questions.names import NamedRun

GAUGE = "gauge:"
"""Begins the name of a column of a gauge."""
_PEERS, _OVERLAY, _TOPICS = "metrics/peers", "metrics/overlay", "metrics/topics"
_KEYS = ("peer", "interval", "present")
_COPIES = {
    "copies": "copies of messages that came over the link, in either direction",
    "first_copies": "those that were the first at the peer that they reached",
}
_BLOCK = 2**20
"""Values of a block at most."""


def of_peers(run: NamedRun) -> list[dict[str, str]]:
    """The columns of peers that the run has: name, meaning, unit."""
    described = list(_describe_columns(run, _PEERS, _KEYS))
    if run.stored.has("gauges"):
        gauges = (GAUGE + name for name in checked_gauges(run.stored, ()))
        described += [
            {"name": name, "meaning": "reported by the peers", "unit": ""} for name in gauges
        ]
    return described


def of_overlay(run: NamedRun) -> list[dict[str, str]]:
    """The columns of the whole overlay that the run has: name, meaning, unit."""
    return list(_describe_columns(run, _OVERLAY, ("interval",)))


def of_topics(run: NamedRun) -> list[dict[str, str]]:
    """The columns of topics that the run has: name, meaning, unit."""
    return list(_describe_columns(run, _TOPICS, ("topic", "interval")))


def of_links(run: NamedRun) -> list[dict[str, str]]:
    """The columns of links that can be counted in the run: name, meaning, unit."""
    if not (run.facts.knows("receptions") and run.facts.knows(PREVIOUS_HOPS)):
        return []
    names = list(_COPIES) if run.facts.knows(DUPLICATES) else ["first_copies"]
    return [{"name": name, "meaning": _COPIES[name], "unit": ""} for name in names]


def _describe_columns(
    run: NamedRun, table: str, left_out: tuple[str, ...]
) -> Iterator[dict[str, str]]:
    if not run.stored.has(table):
        return
    for column in run.stored.definition(table):
        if column.name not in left_out and column.type != "string":
            yield {"name": column.name, "meaning": column.meaning, "unit": column.unit}


def per_block(run: NamedRun) -> int:
    """Intervals of a block."""
    return max(_BLOCK // max(run.stored.rows("peers"), 1), 1)


def block(
    run: NamedRun, name: str, number: int
) -> tuple[dict[str, int], dict[str, npt.NDArray[Any]]]:
    """A column of peers in a block of intervals, which are numbered from 0: the `first` interval;
    `values` of all peers in each, and their ends `low` and `high`, NaN where all are unknown.

    Raises: UnknownName.
    """
    length = per_block(run)
    first = run.clock.first + number * length
    intervals = max(min(length, run.clock.last + 1 - first), 0)
    within = (pc.field("interval") >= first) & (pc.field("interval") < first + intervals)
    exact = np.full((intervals, run.stored.rows("peers")), np.nan)
    if _is_attribute(name):
        peer, interval, values = attributes.values_in(run, name, first, intervals)
    else:
        rows = _rows(run, name, within)
        peer, interval = _ints(rows["peer"]), _ints(rows["interval"])
        values = numbers(rows["value"])
    exact[interval - first, peer] = values
    low, high = (ends.reduce(exact, axis=1, initial=np.nan) for ends in (np.fmin, np.fmax))
    return {"first": first}, {"low": low, "high": high, "values": exact.ravel()}


def extent(run: NamedRun, name: str) -> tuple[float | None, float | None]:
    """The least and the largest value of a column of peers in the run; null where all are unknown.

    Raises: UnknownName.
    """
    if _is_attribute(name):
        values = attributes.numbers_of(run, name)
    else:
        values = numbers(_rows(run, name, None)["value"])
    low, high = (float(ends.reduce(values, initial=np.nan)) for ends in (np.fmin, np.fmax))
    return (None, None) if np.isnan(low) else (low, high)


def of_one(run: NamedRun, names: Sequence[str], peer: int) -> Floats:
    """Columns of one peer, each a value for each interval of the run. Raises: UnknownName."""
    of_peer = (pc.field("peer") == peer) & _in_run(run)
    values = np.full((len(names), run.clock.intervals), np.nan)
    gauges = {name.removeprefix(GAUGE): i for i, name in enumerate(names) if _is_gauge(name)}
    if gauges:
        checked_gauges(run.stored, list(gauges))
        is_wanted = of_peer & pc.field("gauge").isin(pa.array(gauges, pa.string()))
        rows = run.stored.read("gauges", ["gauge", "interval", "value"], is_wanted)
        places = [gauges[name] for name in rows["gauge"].to_pylist()]
        values[places, _ints(rows["interval"]) - run.clock.first] = numbers(rows["value"])
    for i, name in enumerate(names):
        if _is_attribute(name):
            of_run = run.clock.first, run.clock.intervals
            _, interval, of_attribute = attributes.values_in(run, name, *of_run, peer)
            values[i, interval - run.clock.first] = of_attribute
    plain = [i for i, name in enumerate(names) if not (_is_gauge(name) or _is_attribute(name))]
    values[plain] = _by_interval(run, _PEERS, [names[i] for i in plain], of_peer)
    return values


def of_topic(run: NamedRun, names: Sequence[str], topic: int) -> Floats:
    """Columns of one topic, each a value for each interval of the run. Raises: UnknownName."""
    return _by_interval(run, _TOPICS, names, (pc.field("topic") == topic) & _in_run(run))


def of_link(run: NamedRun, names: Sequence[str], src: int, dst: int) -> Floats:
    """Columns of the links between two peers, each a value for each interval of the run.

    Raises: UnknownName for other columns than those of `of_links`.
    """
    known = [column["name"] for column in of_links(run)]
    for name in names:
        if name not in known:
            raise UnknownName("column of links", name, known)
    sender, receiver = pc.field("previous_hop"), pc.field("peer")
    over = ((sender == src) & (receiver == dst)) | ((sender == dst) & (receiver == src))
    arrivals = run.stored.read("receptions", ["interval", "first"], over & _in_run(run))
    counts = {"copies": arrivals, "first_copies": arrivals.filter(arrivals["first"])}
    intervals = (_ints(counts[name]["interval"]) - run.clock.first for name in names)
    counted = [np.bincount(of, minlength=run.clock.intervals) for of in intervals]
    values: Floats = np.array(counted, np.float64)
    return values


def curve(run: NamedRun, name: str) -> Floats:
    """A column of the overlay: a value for each interval of the run. Raises: UnknownName."""
    values: Floats = _by_interval(run, _OVERLAY, [name], _in_run(run))[0]
    return values


def _by_interval(run: NamedRun, table: str, names: Sequence[str], where: pc.Expression) -> Floats:
    """Columns of a table, in which each interval has at most one row that is wanted."""
    values = np.full((len(names), run.clock.intervals), np.nan)
    for name in names:
        _check(run, table, name)
    if names:
        rows = run.stored.read(table, ["interval", *names], where)
        for of_name, name in zip(values, names, strict=True):
            of_name[_ints(rows["interval"]) - run.clock.first] = numbers(rows[name])
    return values


def _in_run(run: NamedRun) -> pc.Expression:
    return (pc.field("interval") >= run.clock.first) & (pc.field("interval") <= run.clock.last)


def _rows(run: NamedRun, name: str, where: pc.Expression | None) -> pa.Table:
    """peer, interval, value."""
    columns = ["peer", "interval"]
    if _is_gauge(name):
        gauge = name.removeprefix(GAUGE)
        checked_gauges(run.stored, [gauge])
        of_gauge = pc.field("gauge") == gauge
        where = of_gauge if where is None else of_gauge & where
        return run.stored.read_unordered("gauges", [*columns, "value"], where)
    _check(run, _PEERS, name)
    rows = run.stored.read_unordered(_PEERS, [*columns, name], where)
    return rows.rename_columns([*columns, "value"])


def _is_attribute(name: str) -> bool:
    return name.startswith(attributes.PREFIX)


def _is_gauge(name: str) -> bool:
    return name.startswith(GAUGE)


def _check(run: NamedRun, table: str, name: str) -> None:
    columns = run.stored.definition(table).names if run.stored.has(table) else []
    if name not in columns:
        raise UnknownName(f"{table} column", name, columns, f"vizpub runs tables {table}")


def numbers(column: pa.ChunkedArray) -> Floats:
    """Values as doubles; null is NaN, true is 1."""
    values: Floats = pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy()
    return values


def _ints(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = column.to_numpy()
    return values
