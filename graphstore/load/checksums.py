"""Checksums of relationships, of which there may be millions; cypher/verify computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphstore.load.batches import Batch, levels
from graphstore.load.degrees import Ints
from graphstore.load.partitions import Partitions, copies

PRIMES = (2**31 - 1, 2**31 - 19)
"""So that a square of a remainder, and a sum of 2^32 remainders, fit 63 bits."""

Integers = Callable[[Batch], list[Ints]]
"""What the relationships that a table's rows become say, in integers, column by column: first how
many properties each has; the ends, numbers, flags and numbered words; -1 where one is unknown."""

CHECKED = {
    "links": "links",
    "presence": "presence",
    "subscriptions": "subscriptions",
    "roles": "roles",
    "published": "publications",
    "published-on": "publications",
    "hops": "receptions",
    "arrived-from-unknown": "receptions",
    "missed": "missed",
    "link-copies": "links",
    "subscription-copies": "subscriptions",
}
"""The statements of cypher/verify that a checksum is for, and their tables."""
_ARRIVAL = ("message", "hop", "time_us")


class Checksums:
    """How many relationships the rows of a run become, and the checksums of what they say."""

    def __init__(self, partitions: Partitions) -> None:
        """Takes the partitions that copies are made for."""
        self._partitions = partitions
        self.layers: dict[str, int] = {}
        """A number for each layer of links, which a checksum can hold."""
        self.roles: dict[str, int] = {}
        """Likewise for each role."""
        self.publishers: set[int] = set()
        """The peers that published."""
        self._sums: dict[str, list[int]] = {name: [0] * (1 + len(PRIMES)) for name in CHECKED}
        self._integers: dict[str, Integers] = {
            "links": self._links,
            "presence": lambda rows: _spans(rows, "peer"),
            "subscriptions": _subscriptions,
            "roles": self._roles,
            "published": self._published,
            "published-on": lambda rows: _described(_known(rows, "topic"), 0, "message", "topic"),
            "hops": lambda rows: _arrivals(_known(rows, "previous_hop"), "previous_hop"),
            "arrived-from-unknown": lambda rows: _arrivals(
                rows.filter(pc.is_null(rows["previous_hop"])), "message"
            ),
            "missed": lambda rows: _described(rows, 1, "message", "peer"),
            "link-copies": lambda rows: self._copied(rows, self._links),
            "subscription-copies": lambda rows: self._copied(rows, _subscriptions),
        }

    def add(self, table: str, rows: Batch) -> None:
        """Rows of a table; of one that is not among CHECKED nothing is summed."""
        for statement in (name for name, of in CHECKED.items() if of == table):
            columns = self._integers[statement](rows)
            found = [len(columns[0]), *checksums_of(columns)]
            sums = self._sums[statement]
            self._sums[statement] = [a + b for a, b in zip(sums, found, strict=True)]

    def of(self, statement: str) -> list[int]:
        """Number of relationships, and the checksum by each of PRIMES."""
        return self._sums[statement]

    def _links(self, rows: Batch) -> list[Ints]:
        properties: Ints = 5 + 2 * _flags(pc.is_valid(rows["topic"]))
        spans = _spans(rows, "src", "dst", "topic")[1:]
        return [properties, *spans, _numbers(rows["layer"], self.layers)]

    def _roles(self, rows: Batch) -> list[Ints]:
        spans = _described(rows, 4, "peer", "topic", "valid_from", "valid_to")
        return [*spans, _numbers(rows["role"], self.roles)]

    def _published(self, rows: Batch) -> list[Ints]:
        known = _known(rows, "publisher")
        self.publishers.update(known["publisher"].to_pylist())
        return _described(known, 1, "publisher", "message")

    def _copied(self, rows: Batch, integers: Integers) -> list[Ints]:
        copied = copies(rows, self._partitions)
        properties, *others = integers(copied)
        return [properties, *_integers(copied, "partition"), *others]


def _subscriptions(rows: Batch) -> list[Ints]:
    return _spans(rows, "peer", "topic")


def _spans(rows: Batch, *names: str) -> list[Ints]:
    """Of relationships with a run, a validity period and its class."""
    return [*_described(rows, 4, *names, "valid_from", "valid_to"), levels(rows)]


def _arrivals(rows: Batch, start: str) -> list[Ints]:
    known = [pc.is_valid(rows[name]) for name in ("hop", "time_us", "subscribed")]
    properties = sum(map(_flags, known), np.full(len(rows), 3))
    first, subscribed = _integers(rows, "first", "subscribed")
    return [properties, *_integers(rows, start, "peer", *_ARRIVAL), 3 * first + subscribed]


def _known(rows: Batch, name: str) -> Batch:
    return rows.filter(pc.is_valid(rows[name]))


def _described(rows: Batch, properties: int, *names: str) -> list[Ints]:
    """Of relationships that all have so many properties."""
    return [np.full(len(rows), properties), *_integers(rows, *names)]


def _integers(rows: Batch, *names: str) -> list[Ints]:
    return [pc.fill_null(rows[name].cast(pa.int64()), -1).to_numpy() for name in names]


def _flags(flags: pa.Array) -> Ints:
    ints: Ints = flags.cast(pa.int64()).to_numpy()
    return ints


def _numbers(words: pa.Array, numbers: dict[str, int]) -> Ints:
    """The numbers of words; one that is new is given the next."""
    encoded = words.dictionary_encode()
    of = [numbers.setdefault(word, len(numbers)) for word in encoded.dictionary.to_pylist()]
    numbered: Ints = np.array(of, np.int64)[encoded.indices.to_numpy()]
    return numbered


def checksums_of(columns: Sequence[Ints]) -> list[int]:
    """Of each of PRIMES P the sum over the rows of h² mod P, where h is the first column's, and,
    column by column, h = (h² + x mod P) mod P.

    Remainders have the sign of the dividend, as in Cypher. The squares make a row's h depend on
    which values stand together, those of the last column too; the sum depends on no order of rows.
    The first column's are counts: less than 2^31.
    """
    return [_checksum(columns, prime) for prime in PRIMES]


def _checksum(columns: Sequence[Ints], prime: int) -> int:
    h = columns[0]
    for column in columns[1:]:
        h = np.fmod(h * h + np.fmod(column, prime), prime)
    return int(np.fmod(h * h, prime).sum(dtype=np.int64))
