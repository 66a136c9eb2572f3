"""Checksums of relationships, of which there may be millions; cypher/verify computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.batches import Batch, levels
from graphstore.degrees import Ints
from graphstore.epochs import Epochs, copies

PRIME = 2**31 - 1
"""So that a square of a remainder, and a sum of 2^32 remainders, fit 63 bits."""

Integers = Callable[[Batch], list[Ints]]
"""The integers of the relationships that a table's rows become, column by column."""

CHECKED = {
    "links": "links",
    "presence": "presence",
    "subscriptions": "subscriptions",
    "plays": "roles",
    "published": "publications",
    "on": "publications",
    "hops": "receptions",
    "reached": "receptions",
    "link-copies": "links",
    "subscription-copies": "subscriptions",
}
"""The statements of cypher/verify that a checksum is for, and their tables."""
_ARRIVAL = ("message", "hop", "time_us", "first", "interested")


class Checksums:
    """How many relationships the rows of a run become, and the checksums of their integers."""

    def __init__(self, epochs: Epochs) -> None:
        """Takes the epochs that copies are made for."""
        self._epochs = epochs
        self.layers: dict[str, int] = {}
        """A number for each layer of links, which a checksum can hold."""
        self.roles: dict[str, int] = {}
        """Likewise for each role."""
        self._sums = dict.fromkeys(CHECKED, (0, 0))
        self._integers: dict[str, Integers] = {
            "links": self._links,
            "presence": lambda rows: [*_integers(rows, "peer", "vf", "vt"), levels(rows)],
            "subscriptions": _subscriptions,
            "plays": self._plays,
            "published": lambda rows: _where(rows, "publisher", "message", "publisher"),
            "on": lambda rows: _where(rows, "topic", "message", "topic"),
            "hops": lambda rows: _where(rows, "previous_hop", "previous_hop", "peer", *_ARRIVAL),
            "reached": _reached,
            "link-copies": lambda rows: self._copied(rows, self._links),
            "subscription-copies": lambda rows: self._copied(rows, _subscriptions),
        }

    def add(self, table: str, rows: Batch) -> None:
        """Rows of a table; of one that is not among CHECKED nothing is summed."""
        for statement in (name for name, of in CHECKED.items() if of == table):
            columns = self._integers[statement](rows)
            count, checksum = self._sums[statement]
            self._sums[statement] = count + len(columns[0]), checksum + checksum_of(columns)

    def of(self, statement: str) -> tuple[int, int]:
        """Number of relationships and checksum."""
        return self._sums[statement]

    def _links(self, rows: Batch) -> list[Ints]:
        spans = [*_integers(rows, "src", "dst", "topic", "vf", "vt"), levels(rows)]
        return [*spans, _numbers(rows["layer"], self.layers)]

    def _plays(self, rows: Batch) -> list[Ints]:
        spans = _integers(rows, "peer", "topic", "vf", "vt")
        return [*spans, _numbers(rows["role"], self.roles)]

    def _copied(self, rows: Batch, integers: Integers) -> list[Ints]:
        copied = copies(rows, self._epochs)
        return [*_integers(copied, "epoch"), *integers(copied)]


def _subscriptions(rows: Batch) -> list[Ints]:
    return [*_integers(rows, "peer", "topic", "vf", "vt"), levels(rows)]


def _reached(rows: Batch) -> list[Ints]:
    unknown = rows.filter(pc.is_null(rows["previous_hop"]))
    return _integers(unknown, "message", "peer", *_ARRIVAL)


def _where(rows: Batch, known: str, *names: str) -> list[Ints]:
    return _integers(rows.filter(pc.is_valid(rows[known])), *names)


def _integers(rows: Batch, *names: str) -> list[Ints]:
    return [pc.fill_null(rows[name].cast(pa.int64()), -1).to_numpy() for name in names]


def _numbers(words: pa.Array, numbers: dict[str, int]) -> Ints:
    """The numbers of words; one that is new is given the next."""
    for word in pc.unique(words).to_pylist():
        numbers.setdefault(word, len(numbers))
    return np.array([numbers[word] for word in words.to_pylist()], np.int64)


def checksum_of(columns: Sequence[Ints]) -> int:
    """Sum over the rows of h, where h = 1 and, column by column, h = (h² + x mod P) mod P.

    Remainders have the sign of the dividend, as in Cypher; -1 stands for null. The square
    makes a row's h depend on which values stand together, the sum on no order of rows.
    """
    h = np.ones(len(columns[0]), np.int64)
    for column in columns:
        h = np.fmod(h * h + np.fmod(column, PRIME), PRIME)
    return int(h.sum(dtype=np.int64))
