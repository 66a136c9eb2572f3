"""Metrics as columns of numbers: of peers in blocks of intervals, of the overlay as curves.

NaN is unknown, or of a peer that has no row in an interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
    rows = _rows(run, name, within)
    exact = np.full((intervals, run.stored.rows("peers")), np.nan)
    exact[_ints(rows["interval"]) - first, _ints(rows["peer"])] = numbers(rows["value"])
    low, high = (ends.reduce(exact, axis=1, initial=np.nan) for ends in (np.fmin, np.fmax))
    return {"first": first}, {"low": low, "high": high, "values": exact.ravel()}


def extent(run: NamedRun, name: str) -> tuple[float | None, float | None]:
    """The least and the largest value of a column of peers in the run; null where all are unknown.

    Raises: UnknownName.
    """
    values = numbers(_rows(run, name, None)["value"])
    low, high = (float(ends.reduce(values, initial=np.nan)) for ends in (np.fmin, np.fmax))
    return (None, None) if np.isnan(low) else (low, high)


def of_one(run: NamedRun, name: str, peer: int) -> Floats:
    """A column of one peer: a value for each interval of the run. Raises: UnknownName."""
    rows = _rows(run, name, (pc.field("peer") == peer) & _in_run(run))
    return _by_interval(run, rows["interval"], rows["value"])


def of_topic(run: NamedRun, name: str, topic: int) -> Floats:
    """A column of one topic: a value for each interval of the run. Raises: UnknownName."""
    _check(run, _TOPICS, name)
    of_topic = (pc.field("topic") == topic) & _in_run(run)
    rows = run.stored.read(_TOPICS, ["interval", name], of_topic)
    return _by_interval(run, rows["interval"], rows[name])


def of_link(run: NamedRun, name: str, src: int, dst: int) -> Floats:
    """A column of the links between two peers: a value for each interval of the run.

    Raises: UnknownName for another column than those of `of_links`.
    """
    names = [column["name"] for column in of_links(run)]
    if name not in names:
        raise UnknownName("column of links", name, names)
    sender, receiver = pc.field("previous_hop"), pc.field("peer")
    over = ((sender == src) & (receiver == dst)) | ((sender == dst) & (receiver == src))
    if name == "first_copies":
        over &= pc.field("first")
    arrivals = run.stored.read("receptions", ["interval"], over & _in_run(run))
    intervals = _ints(arrivals["interval"])
    first, count = run.clock.first, run.clock.intervals
    values: Floats = np.bincount(intervals - first, minlength=count).astype(np.float64)
    return values


def _by_interval(run: NamedRun, intervals: pa.ChunkedArray, values: pa.ChunkedArray) -> Floats:
    by_interval = np.full(run.clock.intervals, np.nan)
    by_interval[_ints(intervals) - run.clock.first] = numbers(values)
    return by_interval


def curve(run: NamedRun, name: str) -> Floats:
    """A column of the overlay: a value for each interval of the run. Raises: UnknownName."""
    _check(run, _OVERLAY, name)
    rows = run.stored.read(_OVERLAY, ["interval", name], _in_run(run))
    return _by_interval(run, rows["interval"], rows[name])


def _in_run(run: NamedRun) -> pc.Expression:
    return (pc.field("interval") >= run.clock.first) & (pc.field("interval") <= run.clock.last)


def _rows(run: NamedRun, name: str, where: pc.Expression | None) -> pa.Table:
    """peer, interval, value."""
    columns = ["peer", "interval"]
    if name.startswith(GAUGE):
        gauge = name.removeprefix(GAUGE)
        checked_gauges(run.stored, [gauge])
        of_gauge = pc.field("gauge") == gauge
        where = of_gauge if where is None else of_gauge & where
        return run.stored.read_unordered("gauges", [*columns, "value"], where)
    _check(run, _PEERS, name)
    rows = run.stored.read_unordered(_PEERS, [*columns, name], where)
    return rows.rename_columns([*columns, "value"])


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
