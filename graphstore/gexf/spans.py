"""Validity periods and values over the steps of a GEXF file: merged, cut and run-length encoded.

A *span* is the first and last step of something, both inclusive; a step is an interval
of the run or a hop. Nothing here knows ticks, Neo4j or XML.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from vizpub.model.errors import UnknownName

if TYPE_CHECKING:
    import pyarrow as pa

Span = tuple[int, int]
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MetricRun = tuple[int, str, int, int, float]
"""(peer, attribute, first interval, last interval, value)."""


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Merge spans into maximal ones, disjoint and in order; `…3` and `4…` become one."""
    result: list[Span] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            if last > result[-1][1]:
                result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return result


def common_spans(a: Sequence[Span], b: Sequence[Span]) -> list[Span]:
    """Return the steps that two lists of maximal spans share."""
    result = []
    i = j = 0
    while i < len(a) and j < len(b):
        first, last = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if first <= last:
            result.append((first, last))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return result


def sets_over(
    spans: Mapping[Key, Sequence[Span]], periods: Sequence[Span]
) -> list[tuple[int, int, frozenset[Key]]]:
    """Return the sets of keys alive over periods: (first, last, keys), maximal and disjoint.

    `spans` and `periods` hold maximal spans. A set that is the same on both sides of a gap
    between two periods holds through the gap, where it is not shown: one value instead of two.
    """
    changes: dict[int, set[Key]] = {}
    for key, alive in spans.items():
        for first, last in alive:
            changes.setdefault(first, set()).symmetric_difference_update((key,))
            changes.setdefault(last + 1, set()).symmetric_difference_update((key,))
    cuts = sorted(changes)
    result: list[tuple[int, int, frozenset[Key]]] = []
    now: frozenset[Key] = frozenset()
    at = 0
    for first, last in periods:
        start = first
        while at < len(cuts) and cuts[at] <= last:
            if cuts[at] > start:
                _extend(result, start, cuts[at] - 1, now)
                start = cuts[at]
            now ^= changes[cuts[at]]
            at += 1
        _extend(result, start, last, now)
    return result


def _extend(result: list[tuple[int, int, Value]], first: int, last: int, now: Value) -> None:
    if result and result[-1][2] == now:
        first = result.pop()[0]
    result.append((first, last, now))


def shared_sets(
    a: Mapping[Key, Sequence[Span]], b: Mapping[Key, Sequence[Span]], periods: Sequence[Span]
) -> list[tuple[int, int, frozenset[Key]]]:
    """Return the keys that both ends have, over the periods of their edge: as `sets_over`."""
    shared = {key: common_spans(a[key], b[key]) for key in a.keys() & b.keys()}
    return sets_over(shared, periods)


def counts_of(sets: Iterable[tuple[int, int, frozenset[Key]]]) -> list[tuple[int, int, int]]:
    """Return the sizes of sets, in order: (first, last, count), equal ones joined."""
    result: list[tuple[int, int, int]] = []
    for first, last, keys in sets:
        _extend(result, first, last, len(keys))
    return result


def run_lengths(
    batches: Iterable[pa.RecordBatch], attributes: Sequence[str]
) -> Iterator[MetricRun]:
    """Run-length encode columns of metrics/peers: (peer, attribute, first, last, value).

    Takes batches with columns `peer`, `interval` (int32) and the attributes (numbers, null =
    unknown), in any order of rows. Gives, by ascending peer, one row for each maximal run
    of consecutive intervals with one value; unknown values (and NaN) are left out.

        peer  interval  degree            17  degree  3  4  12
        17    3         12         →      17  degree  5  5  11
        17    4         12
        17    5         11

    Raises: UnknownName for an attribute that is no column.
    """
    import pyarrow as pa

    rows = list(batches)
    if not rows:
        return
    table = pa.Table.from_batches(rows)
    for name in attributes:
        if name not in table.column_names:
            raise UnknownName("attribute", name, table.column_names, "vizpub runs tables")
    table = table.select(["peer", "interval", *attributes])
    table = table.sort_by([("peer", "ascending"), ("interval", "ascending")])
    columns = [_Runs(table, name) for name in attributes]
    for peer in table["peer"].unique().to_pylist():
        for column in columns:
            yield from column.of(peer)


class _Runs:
    """The runs of one column, found by peer."""

    def __init__(self, table: pa.Table, attribute: str) -> None:
        import numpy as np
        import pyarrow.compute as pc

        table = table.filter(pc.invert(pc.is_null(table[attribute], nan_is_null=True)))
        peer, interval, value = (table[name].to_numpy() for name in ("peer", "interval", attribute))
        new = np.ones(len(peer), dtype=bool)
        new[1:] = (
            (peer[1:] != peer[:-1])
            | (interval[1:] != interval[:-1] + 1)
            | (value[1:] != value[:-1])
        )
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(peer)) - 1
        self.attribute = attribute
        self.peers: Any = peer[starts]
        self.first, self.last = interval[starts], interval[ends[: len(starts)]]
        self.value = value[starts]

    def of(self, peer: int) -> Iterator[MetricRun]:
        low, high = self.peers.searchsorted(peer), self.peers.searchsorted(peer, "right")
        rows = slice(int(low), int(high))
        firsts, lasts = self.first[rows].tolist(), self.last[rows].tolist()
        for first, last, value in zip(firsts, lasts, self.value[rows].tolist(), strict=True):
            yield peer, self.attribute, first, last, value
