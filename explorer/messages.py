"""The messages of a run as a table of which a page shows a part, and how they reached peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.explorer.columns import numbers
from vizpub.model.arrays import Int64s
from vizpub.model.errors import OutOfRange, UnknownName
from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import COVERAGE_NEEDS, coverage

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
ALONG = {"delay": "delay_us", "hop": "hop"}
"""Ways to show coverage, with the column of each."""
Meta = dict[str, Any]
Arrays = Mapping[str, npt.NDArray[Any]]
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class MessageFilter:
    """Which messages: of a topic, of a publisher, with this in their names; null = all."""

    topic: int | None = None
    publisher: int | None = None
    text: str = ""
    window: tuple[int, int] | None = None
    """First and last interval of the publication."""


@dataclass(frozen=True)
class MessageOrder:
    """Where a part of them begins, and by what they are sorted; unknown values come last."""

    by: str = "message"
    down: bool = False
    first: int = 0


def part(
    run: NamedRun, wanted: MessageFilter, order: MessageOrder, most: int | None = PART
) -> tuple[Meta, Arrays]:
    """At most so many of the messages (null = all): `total`, the number of those that are wanted,
    `first` and `names`; and the columns SORTED, in which NaN is unknown.

    Raises: UnknownName for a column to sort by, UseError where the run has no messages.
    """
    if order.by not in SORTED:
        raise UnknownName("column of messages", order.by, SORTED)
    rows = _with_figures(run, _read_publications(run, wanted))
    down = "descending" if order.down else "ascending"
    keys = [(order.by, down), *([("message", "ascending")] if order.by != "message" else [])]
    place = pc.sort_indices(rows, keys)
    shown = rows.take(place[order.first :][:most])
    meta = {"total": len(rows), "first": order.first, "names": shown["name"].to_pylist()}
    return meta, {name: numbers(shown[name]) for name in SORTED}


def _read_publications(run: NamedRun, wanted: MessageFilter) -> pa.Table:
    run.facts.check_known("publications")
    where = pc.scalar(True)
    if wanted.topic is not None:
        where &= pc.field("topic") == wanted.topic
    if wanted.publisher is not None:
        where &= pc.field("publisher") == wanted.publisher
    if wanted.window is not None:
        where &= pc.field("interval") >= wanted.window[0]
        where &= pc.field("interval") <= wanted.window[1]
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


def explain_unknown_coverage(run: NamedRun) -> dict[str, str | None]:
    """Say why the coverage along each way is unknown; null if it is known."""
    return {
        along: run.facts.explain_missing(*COVERAGE_NEEDS[column]) for along, column in ALONG.items()
    }


def measure_coverage(run: NamedRun, wanted: MessageFilter, along: str) -> tuple[Meta, Arrays]:
    """The shares of eligible peers that messages reached, along `delay` (µs) or `hop`.

    Of the messages, `messages` count: those with eligible peers and known times, which nobody
    refused; others are `left_out`. The `quantiles` are of the `sampled` ones, at the same places
    `at`; they have a row for each of `shares`. Lines of single messages have `names`; they come
    one after the other in `line_at` and `line_share`, each from its `start` on. There are none
    of more than MOST_LINES messages.

    Raises: UseError where it is unknown, UnknownName for another way.
    """
    from vizpub.analytics.coverage import lines_of, quantiles

    if along not in ALONG:
        raise UnknownName("way to show coverage", along, list(ALONG))
    requested: Int64s = _read_publications(run, wanted)["message"].to_numpy()
    column = ALONG[along]
    sample, count = _spread(coverage(run, along=column, among=requested), MOST)
    sampled = list(lines_of(sample, column))
    empty = np.empty(0)
    at, edges = quantiles([line for _, line in sampled], SHARES) if sampled else (empty, empty)
    lines = sampled if count <= MOST_LINES else []
    meta = {
        "messages": count,
        "left_out": requested.size - count,
        "sampled": len(sampled),
        "shares": SHARES,
        "names": [name for name, _ in lines],
    }
    return meta, {
        "at": at,
        "quantiles": edges.ravel(),
        "start": np.cumsum([0, *(places.size for _, (places, _) in lines)]).astype(np.int32),
        "line_at": np.concatenate([empty, *(places for _, (places, _) in lines)]),
        "line_share": np.concatenate([empty, *(shares for _, (_, shares) in lines)]),
    }


def _spread(rows: pa.Table, most: int) -> tuple[pa.Table, int]:
    """The rows of at most so many messages, evenly spread, and the number of all messages."""
    messages = np.unique(rows["message"].to_numpy())
    if messages.size <= most:
        return rows, messages.size
    chosen = messages[np.linspace(0, messages.size - 1, most).round().astype(np.int64)]
    return rows.filter(pc.is_in(rows["message"], pa.array(chosen))), messages.size


def check_message(run: NamedRun, message: int) -> int:
    """The number itself. Raises: UseError where messages are unknown, OutOfRange."""
    run.facts.check_known("publications")
    last = run.stored.rows("publications") - 1
    if not 0 <= message <= last:
        raise OutOfRange("message", str(message), f"0 to {last}")
    return message
