"""Checksums of nodes and relationships, from tables part by part; cypher/verify computes them too.

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
"""Columns of integers that describe the relationships of a table's rows: the number of their
properties, then ends, numbers, flags and numbered words; -1 = unknown."""

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
"""The number of relationships and their checksum for each of PRIMES; for nodes, the number of their
properties comes second."""
_ARRIVAL = ("message", "hop", "time_us")


class Checksums:
    """Numbers and checksums of the nodes and relationships that the rows of a run become."""

    def __init__(self, partitions: Partitions) -> None:
        """Start with no rows; copies are made for these partitions."""
        self._partitions = partitions
        self.layers: dict[str, int] = {}
        """A number for each layer of links, which a checksum can hold."""
        self.roles: dict[str, int] = {}
        """A number for each role."""
        self.names: dict[str, list[str]] = {}
        """The properties in the checksums of nodes, by statement."""
        self.publishers: set[int] = set()
        """The peers that published."""
        self._sums: dict[str, dict[str, Sums]] = {name: {} for name in (*CHECKED, *NODES)}
        self._integers: dict[str, Integers] = {
            "links": self._links,
            "presence": lambda rows: _spans(rows, "peer"),
            "subscriptions": _subscriptions,
            "roles": self._roles,
            "published": self._publications,
            "published-on": lambda rows: _describe(
                _with_known(rows, "topic"), 0, "message", "topic"
            ),
            "hops": lambda rows: _arrivals(_with_known(rows, "previous_hop"), "previous_hop"),
            "arrived-from-unknown": lambda rows: _arrivals(
                rows.filter(pc.is_null(rows["previous_hop"])), "message"
            ),
            "missed": lambda rows: _describe(rows, 1, "message", "peer"),
            "link-copies": lambda rows: self._copies(rows, self._links),
            "subscription-copies": lambda rows: self._copies(rows, _subscriptions),
        }

    def add(self, table: str, rows: Batch, part: str = "") -> None:
        """Add rows of a part of a table; tables that are not among CHECKED are ignored."""
        for statement in (name for name, of in CHECKED.items() if of == table):
            columns = self._integers[statement](rows)
            self.put(statement, part, [len(columns[0]), *checksums_of(columns)])

    def add_nodes(self, statement: str, ids: pa.Array, nodes: Batch, part: str = "") -> None:
        """Add the nodes of rows with these ids: a column for each property."""
        names = [name for name in nodes.schema.names if name not in ("key", "run")]
        self.names[statement] = names
        columns = _describe_nodes(ids, nodes.select(names))
        values = sum(len(column) - column.null_count for column in nodes.columns)
        # A step that adds to nodes repeats their key.
        repeated_keys = len(nodes) if "run" not in nodes.schema.names else 0
        sums = [len(columns[0]), values - repeated_keys, *checksums_of(columns)]
        self.put(statement, part, sums)

    def put(self, statement: str, part: str, sums: Sums) -> None:
        """Add sums that were computed before."""
        earlier = self._sums[statement].get(part, [0] * len(sums))
        self._sums[statement][part] = [a + b for a, b in zip(earlier, sums, strict=True)]

    def of(self, statement: str) -> Sums:
        """Return the sums of all parts."""
        return total(statement, self._sums[statement].values())

    def of_part(self, statement: str, part: str) -> Sums:
        """Return the sums of one part."""
        return total(statement, [s for name, s in self._sums[statement].items() if name == part])

    def _links(self, rows: Batch) -> list[Ints]:
        properties: Ints = 5 + 2 * _flags(pc.is_valid(rows["topic"]))
        spans = _spans(rows, "src", "dst", "topic")[1:]
        return [properties, *spans, _numbers(rows["layer"], self.layers)]

    def _roles(self, rows: Batch) -> list[Ints]:
        spans = _describe(rows, 4, "peer", "topic", "valid_from", "valid_to")
        return [*spans, _numbers(rows["role"], self.roles)]

    def _publications(self, rows: Batch) -> list[Ints]:
        publications = _with_known(rows, "publisher")
        self.publishers.update(publications["publisher"].to_pylist())
        return _describe(publications, 1, "publisher", "message")

    def _copies(self, rows: Batch, integers: Integers) -> list[Ints]:
        copied_rows = copies(rows, self._partitions)
        properties, *columns = integers(copied_rows)
        return [properties, *_integers(copied_rows, "partition"), *columns]


def total(statement: str, sums: Iterable[Sums]) -> Sums:
    """Add up sums of a statement, or none."""
    none = [0] * (len(PRIMES) + (2 if statement in NODES else 1))
    return [sum(column) for column in zip(none, *sums, strict=True)]


def _subscriptions(rows: Batch) -> list[Ints]:
    return _spans(rows, "peer", "topic")


def _spans(rows: Batch, *names: str) -> list[Ints]:
    """Describe relationships that have a run, a validity period and its class."""
    return [*_describe(rows, 4, *names, "valid_from", "valid_to"), levels(rows)]


def _arrivals(rows: Batch, start: str) -> list[Ints]:
    flags = [pc.is_valid(rows[name]) for name in ("hop", "time_us", "subscribed")]
    properties = sum(map(_flags, flags), np.full(len(rows), 3))
    first, subscribed = _integers(rows, "first", "subscribed")
    return [properties, *_integers(rows, start, "peer", *_ARRIVAL), 3 * first + subscribed]


def _with_known(rows: Batch, name: str) -> Batch:
    return rows.filter(pc.is_valid(rows[name]))


def _describe(rows: Batch, properties: int, *names: str) -> list[Ints]:
    """Describe relationships that all have the same number of properties."""
    return [np.full(len(rows), properties), *_integers(rows, *names)]


def _integers(rows: Batch, *names: str) -> list[Ints]:
    return [pc.fill_null(rows[name].cast(pa.int64()), -1).to_numpy() for name in names]


def _flags(flags: pa.Array) -> Ints:
    ints: Ints = flags.cast(pa.int64()).to_numpy()
    return ints


def _numbers(words: pa.Array, numbers: dict[str, int]) -> Ints:
    """Return the numbers of words, which are the same in every run, so that sums can be added."""
    encoded = words.dictionary_encode()
    codes = [numbers.setdefault(word, number(word)) for word in encoded.dictionary.to_pylist()]
    numbered: Ints = np.array(codes, np.int64)[encoded.indices.to_numpy()]
    return numbered


def number(word: str) -> int:
    """Return the number of a word."""
    return crc32(word.encode())


def checksums_of_ids(ids: Iterable[int]) -> Sums:
    """Return the number of peers with a label, and the checksums of their ids."""
    columns = np.array(sorted(ids), np.int64)
    return [len(columns), *checksums_of([np.ones_like(columns), columns])]


def _describe_nodes(ids: pa.Array, nodes: Batch) -> list[Ints]:
    """Describe nodes with any of these properties: their number, the id, the values."""
    properties = sum((_flags(pc.is_valid(c)) for c in nodes.columns), np.zeros(len(ids), np.int64))
    columns = [
        properties,
        ids.cast(pa.int64()).to_numpy(),
        *chain.from_iterable(map(_pair, nodes.columns)),
    ]
    return [column[properties > 0] for column in columns]


def _pair(values: pa.Array) -> list[Ints]:
    """Return each value as two integers, of which the second also tells its type.

    Of a text only the length counts, because Cypher does not compute with letters.
    """
    type = values.type
    if pa.types.is_floating(type):
        first, second = _split_floats(values.cast(pa.float64()).fill_null(0).to_numpy())
    elif pa.types.is_string(type):
        first, second = _fill_nulls(pc.utf8_length(values)), np.full(len(values), 2)
    else:
        first = _fill_nulls(values)
        second = np.full(len(values), int(pa.types.is_boolean(type)))
    unknown = _flags(pc.is_null(values)) == 1
    return [np.where(unknown, -1, first), np.where(unknown, -1, second)]


def _split_floats(numbers: np.ndarray) -> tuple[Ints, Ints]:
    """Split floats below 2^42 exactly down to 2^-60; all others are equal."""
    fit = np.abs(numbers) < 2.0**42
    scaled = np.where(fit, numbers, 0) * 2.0**20
    high = np.trunc(scaled)
    low = np.trunc((scaled - high) * 2.0**40)
    return high.astype(np.int64), np.where(fit, 3 + low.astype(np.int64), -3)


def _fill_nulls(values: pa.Array) -> Ints:
    ints: Ints = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return ints


def checksums_of(columns: Sequence[Ints]) -> list[int]:
    """Return for each of PRIMES P the sum over the rows of h² mod P.

    h starts as the first column's value; then, column by column, h = (h² + x mod P) mod P.
    Remainders have the sign of the dividend, as in Cypher. The squares make a row's h depend on
    which values stand together, those of the last column too; the sum does not depend on the order
    of rows. The first column has counts: less than 2^31.
    """
    return [_checksum(columns, prime) for prime in PRIMES]


def _checksum(columns: Sequence[Ints], prime: int) -> int:
    h = columns[0]
    for column in columns[1:]:
        h = np.fmod(h * h + np.fmod(column, prime), prime)
    return int(np.fmod(h * h, prime).sum(dtype=np.int64))
