"""Checksums of what the rows of tables become, part by part; cypher/verify computes the same.

They are sums over the rows, so those of a part of a table can be added, and taken away again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.graphstore.load.batches import CLOCK, Batch, levels
from vizpub.graphstore.load.degrees import Ints
from vizpub.graphstore.load.partitions import Partitions, copies

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
"""The statements of cypher/verify that check relationships, and their tables."""
NODES = {
    "peers": "peers",
    "topics": "topics",
    "intervals": CLOCK,
    "interval-metrics": "metrics/overlay",
    "messages": "publications",
    "message-metrics": "metrics/messages",
}
"""The steps that make nodes, or add to them, and their tables."""
Sums = list[int]
"""Of relationships their number and the checksum by each of PRIMES; of nodes, behind their number,
how many properties they have."""
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
        self.names: dict[str, list[str]] = {}
        """The properties that the checksums of nodes are about, by statement."""
        self.publishers: set[int] = set()
        """The peers that published."""
        self._sums: dict[str, dict[str, Sums]] = {name: {} for name in (*CHECKED, *NODES)}
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

    def add(self, table: str, rows: Batch, part: str = "") -> None:
        """Rows of a part of a table; of a table that is not among CHECKED nothing is summed."""
        for statement in (name for name, of in CHECKED.items() if of == table):
            columns = self._integers[statement](rows)
            self.put(statement, part, [len(columns[0]), *checksums_of(columns)])

    def add_nodes(self, statement: str, ids: pa.Array, nodes: Batch, part: str = "") -> None:
        """What rows with these ids become likewise: a column for each property."""
        named = [name for name in nodes.schema.names if name not in ("key", "run")]
        self.names[statement] = named
        columns = _described_nodes(ids, nodes.select(named))
        values = sum(len(column) - column.null_count for column in nodes.columns)
        # A step that adds to nodes repeats their key.
        added = len(nodes) if "run" not in nodes.schema.names else 0
        sums = [len(columns[0]), values - added, *checksums_of(columns)]
        self.put(statement, part, sums)

    def put(self, statement: str, part: str, sums: Sums) -> None:
        """Sums that were made before."""
        there = self._sums[statement].get(part, [0] * len(sums))
        self._sums[statement][part] = [a + b for a, b in zip(there, sums, strict=True)]

    def of(self, statement: str) -> Sums:
        """Those of all parts."""
        return total(statement, self._sums[statement].values())

    def of_part(self, statement: str, part: str) -> Sums:
        """Those of one."""
        return total(statement, [s for name, s in self._sums[statement].items() if name == part])

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


def total(statement: str, sums: Iterable[Sums]) -> Sums:
    """The sum of sums of a statement, or of none."""
    none = [0] * (len(PRIMES) + (2 if statement in NODES else 1))
    return [sum(column) for column in zip(none, *sums, strict=True)]


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
    """The numbers of words, which are the same in every run, so that sums can be added."""
    encoded = words.dictionary_encode()
    of = [numbers.setdefault(word, number(word)) for word in encoded.dictionary.to_pylist()]
    numbered: Ints = np.array(of, np.int64)[encoded.indices.to_numpy()]
    return numbered


def number(word: str) -> int:
    """The number of a word."""
    return crc32(word.encode())


def checksums_of_ids(ids: Iterable[int]) -> Sums:
    """How many peers there are of a label, and the checksums of their ids."""
    columns = np.array(sorted(ids), np.int64)
    return [len(columns), *checksums_of([np.ones_like(columns), columns])]


def _described_nodes(ids: pa.Array, nodes: Batch) -> list[Ints]:
    """Of nodes that have any of these properties: how many, their ids, and what they are."""
    known = sum((_flags(pc.is_valid(c)) for c in nodes.columns), np.zeros(len(ids), np.int64))
    columns = [
        known,
        ids.cast(pa.int64()).to_numpy(),
        *chain.from_iterable(map(_pair, nodes.columns)),
    ]
    return [column[known > 0] for column in columns]


def _pair(values: pa.Array) -> list[Ints]:
    """Each value as two integers, of which the second also tells its type. Of a text only its
    length counts, as Cypher does not compute with letters.
    """
    type = values.type
    if pa.types.is_floating(type):
        first, second = _parts_of(values.cast(pa.float64()).fill_null(0).to_numpy())
    elif pa.types.is_string(type):
        first, second = _filled(pc.utf8_length(values)), np.full(len(values), 2)
    else:
        first = _filled(values)
        second = np.full(len(values), int(pa.types.is_boolean(type)))
    unknown = _flags(pc.is_null(values)) == 1
    return [np.where(unknown, -1, first), np.where(unknown, -1, second)]


def _parts_of(numbers: np.ndarray) -> tuple[Ints, Ints]:
    """Of floats below 2^42 all down to 2^-60; others are not told apart."""
    fit = np.abs(numbers) < 2.0**42
    scaled = np.where(fit, numbers, 0) * 2.0**20
    whole = np.trunc(scaled)
    rest = np.trunc((scaled - whole) * 2.0**40)
    return whole.astype(np.int64), np.where(fit, 3 + rest.astype(np.int64), -3)


def _filled(values: pa.Array) -> Ints:
    ints: Ints = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return ints


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
