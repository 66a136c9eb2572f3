"""Attributes of peers as columns of numbers: of texts, the places of their values among groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.arrays import Floats, Integers
from vizpub.model.errors import UnknownName
from vizpub.model.tables import ATTRIBUTES
from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import alive

PREFIX = "attribute:"
"""Begins the name of a column of an attribute."""
MOST_GROUPS = 7
"""Values of an attribute that have a colour each: people tell no more apart."""


@dataclass(frozen=True)
class Attribute:
    """An attribute that the run has."""

    key: str
    groups: tuple[str, ...] | None
    """The values of most peers, most first; others are one group together. Null = all values are
    numbers."""

    def describe(self) -> dict[str, Any]:
        """Name, meaning and unit of its column, and its groups if it has any."""
        meaning = {"name": PREFIX + self.key, "meaning": "attribute of the peers", "unit": ""}
        return meaning if self.groups is None else meaning | {"groups": self.groups}


def find_attributes(run: NamedRun) -> Iterator[Attribute]:
    """All attributes of the run, by their keys."""
    if run.stored.has(ATTRIBUTES.name):
        columns = ["key", "value", "number", "peer"]
        yield from _attributes_of(run.stored.read_unordered(ATTRIBUTES.name, columns))


def _attributes_of(rows: pa.Table) -> Iterator[Attribute]:
    """The attributes in rows of the table, by their keys."""
    counted = rows.group_by(["key", "value"]).aggregate(
        [("peer", "count_distinct"), ("number", "min")]
    )
    order = [("key", "ascending"), ("peer_count_distinct", "descending"), ("value", "ascending")]
    for of, values in groupby(counted.sort_by(order).to_pylist(), itemgetter("key")):
        found = list(values)
        is_number = all(row["number_min"] is not None for row in found)
        groups = tuple(row["value"] for row in found[:MOST_GROUPS])
        yield Attribute(of, None if is_number else groups)


def values_in(
    run: NamedRun, name: str, first: int, count: int, peer: int | None = None
) -> tuple[Integers, Integers, Floats]:
    """The peers, intervals and values of a column, of so many intervals and of one peer or all:
    of each peer and interval at whose end it has a value (vizpub.model.clock.Clock.sampled).

    Raises: UnknownName.
    """
    attribute, rows = _find(run, name)
    if peer is not None:
        rows = rows.filter(pc.field("peer") == peer)
    ticks = run.clock.ticks_per_interval
    begin = np.maximum(rows["valid_from"].to_numpy() // ticks, first)
    end = np.minimum(rows["valid_to"].to_numpy() // ticks, first + count)
    lengths = np.maximum(end - begin, 0)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = rows["number"]
    if attribute.groups is not None:
        places = pc.index_in(rows["value"], pa.array(attribute.groups, pa.string()))
        values = pc.fill_null(places, MOST_GROUPS).cast(pa.float64())
    return (
        np.repeat(rows["peer"].to_numpy(), lengths),
        np.repeat(begin, lengths) + within,
        np.repeat(values.to_numpy(), lengths),
    )


def numbers_of(run: NamedRun, name: str) -> Floats:
    """All numbers of a column that is no group. Raises: UnknownName."""
    _, rows = _find(run, name)
    numbers: Floats = rows["number"].to_numpy()
    return numbers


def attributes_at(run: NamedRun, peer: int, tick: int) -> list[tuple[str, str]]:
    """The keys and values of a peer's attributes at a tick, by key."""
    if not run.stored.has(ATTRIBUTES.name):
        return []
    of_peer = (pc.field("peer") == peer) & alive(tick)
    rows = run.stored.read(ATTRIBUTES.name, ["key", "value"], of_peer).to_pylist()
    return sorted((row["key"], row["value"]) for row in rows)


def _find(run: NamedRun, name: str) -> tuple[Attribute, pa.Table]:
    """The attribute of a column, and its rows. Raises: UnknownName."""
    key = name.removeprefix(PREFIX)
    if run.stored.has(ATTRIBUTES.name):
        rows = run.stored.read(ATTRIBUTES.name, where=pc.field("key") == key)
        for attribute in _attributes_of(rows):
            return attribute, rows
    raise UnknownName("attribute", key, [attribute.key for attribute in find_attributes(run)])
