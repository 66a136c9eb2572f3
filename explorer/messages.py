"""The messages of a run as a table of which a page shows a part, and how they reached peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.explorer.columns import numbers
from vizpub.model.arrays import Floats, Int64s
from vizpub.model.errors import OutOfRange, UnknownName
from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import coverage

PART = 100
"""Messages that a page shows at once."""
FIGURES = (
    "eligible", "delivered", "hit_ratio", "hops_max", "delay_us_p50", "delay_us_p95",
    "delay_us_max", "duplicates", "rejections",
)  # fmt: skip
"""Columns of metrics/messages beside each."""
SORTED = ("message", "topic", "publisher", "time_us", *FIGURES)
MOST_LINES = 100
"""More messages than this are shown by quantiles only."""
MOST = 2_000
"""Messages whose quantiles are taken; of more, as many that are evenly spread."""
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Wanted:
    """Which messages: of a topic, of a publisher, with this in their names; null = all."""

    topic: int | None = None
    publisher: int | None = None
    text: str = ""


@dataclass(frozen=True)
class Order:
    """Where a part of them begins, and by what they are sorted; unknown values come last."""

    by: str = "message"
    down: bool = False
    first: int = 0


@dataclass(frozen=True)
class Part:
    """Some messages in order, of `total` that are wanted."""

    total: int
    names: list[str]
    columns: dict[str, Floats]
    """A value for each, by the names of SORTED; NaN = unknown."""


def part(run: NamedRun, wanted: Wanted, order: Order) -> Part:
    """At most PART of the messages. Raises: UnknownName for a column to sort by, UseError where the
    run has no messages.
    """
    if order.by not in SORTED:
        raise UnknownName("column of messages", order.by, SORTED)
    rows = _with_figures(run, _read_publications(run, wanted))
    down = "descending" if order.down else "ascending"
    keys = [(order.by, down), *([("message", "ascending")] if order.by != "message" else [])]
    place = pc.sort_indices(rows, keys)
    shown = rows.take(place[order.first : order.first + PART])
    columns = {name: numbers(shown[name]) for name in SORTED}
    return Part(len(rows), shown["name"].to_pylist(), columns)


def _read_publications(run: NamedRun, wanted: Wanted) -> pa.Table:
    run.facts.check_known("publications")
    where = pc.scalar(True)
    if wanted.topic is not None:
        where &= pc.field("topic") == wanted.topic
    if wanted.publisher is not None:
        where &= pc.field("publisher") == wanted.publisher
    columns = ["message", "name", "topic", "publisher", "time_us"]
    rows = run.stored.read("publications", columns, where)
    if wanted.text:
        rows = rows.filter(pc.match_substring(rows["name"], wanted.text, ignore_case=True))
    return rows


def _with_figures(run: NamedRun, published: pa.Table) -> pa.Table:
    if not run.stored.has("metrics/messages"):
        none = pa.nulls(len(published), pa.float64())
        for name in FIGURES:
            published = published.append_column(name, none)
        return published
    measured = run.stored.read("metrics/messages", ["message", *FIGURES])
    return published.join(measured, "message")


@dataclass(frozen=True)
class Covered:
    """How messages reached their eligible peers, along delays (µs) or hops."""

    messages: int
    """Those that count: with eligible peers and known times, which nobody refused."""
    left_out: int
    """Others of the wanted ones."""
    sampled: int
    """Those of `messages` that the quantiles are of."""
    at: Floats
    quantiles: Floats
    """A row for each of SHARES."""
    lines: list[tuple[str, tuple[Floats, Floats]]]
    """Name, and where each share is reached, of each message; none of more than MOST_LINES."""


def measure_coverage(run: NamedRun, wanted: Wanted, along: str) -> Covered:
    """Along `delay` or `hop`. Raises: UseError where it is unknown, UnknownName for another."""
    from vizpub.analytics.coverage import lines_of, quantiles

    if along not in ("delay", "hop"):
        raise UnknownName("way to show coverage", along, ("delay", "hop"))
    requested: Int64s = _read_publications(run, wanted)["message"].to_numpy()
    column = "delay_us" if along == "delay" else "hop"
    rows = coverage(run, along=column, among=requested)
    some, count = _spread(rows, MOST)
    lines_by_name = list(lines_of(some, column))
    if not lines_by_name:
        none = np.empty(0)
        return Covered(0, requested.size, 0, none, np.empty((len(SHARES), 0)), [])
    at, edges = quantiles([line for _, line in lines_by_name], SHARES)
    lines = lines_by_name if count <= MOST_LINES else []
    return Covered(count, requested.size - count, len(lines_by_name), at, edges, lines)


def _spread(rows: pa.Table, most: int) -> tuple[pa.Table, int]:
    """The rows of at most so many messages, evenly spread, and the number of all messages."""
    messages = np.unique(rows["message"].to_numpy())
    if messages.size <= most:
        return rows, messages.size
    chosen = messages[np.linspace(0, messages.size - 1, most).round().astype(np.int64)]
    return rows.filter(pc.is_in(rows["message"], pa.array(chosen))), messages.size


def pack_coverage(covered: Covered) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Meta and arrays of it: lines one after the other, `start` has where each begins."""
    sizes = [at.size for _, (at, _) in covered.lines]
    empty = np.empty(0)
    meta = {
        "messages": covered.messages,
        "left_out": covered.left_out,
        "sampled": covered.sampled,
        "shares": SHARES,
        "names": [name for name, _ in covered.lines],
    }
    return meta, {
        "at": covered.at,
        "quantiles": covered.quantiles.ravel(),
        "start": np.cumsum([0, *sizes]).astype(np.int32),
        "line_at": np.concatenate([empty, *(at for _, (at, _) in covered.lines)]),
        "line_share": np.concatenate([empty, *(share for _, (_, share) in covered.lines)]),
    }


def check_message(run: NamedRun, message: int) -> int:
    """The number itself. Raises: UseError where messages are unknown, OutOfRange."""
    run.facts.check_known("publications")
    last = run.stored.rows("publications") - 1
    if not 0 <= message <= last:
        raise OutOfRange("message", str(message), f"0 to {last}")
    return message
