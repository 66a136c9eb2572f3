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
from vizpub.graphstore.load.steps import COPY_STEPS, NODE_STEPS, RELATIONSHIP_STEPS, NodeStep

PRIMES = (2**31 - 1, 2**31 - 19)
"""So that a square of a remainder, and a sum of 2^32 remainders, fit 63 bits."""

NODES = {step.statement: step.table for step in NODE_STEPS}
"""The steps that make nodes, or add to them, and their tables."""
CHECKED = {step.statement: step.table for step in (*RELATIONSHIP_STEPS, *COPY_STEPS)}
"""The statements of cypher/verify that check relationships, and their tables."""
TABLES = tuple(dict.fromkeys((*NODES.values(), *CHECKED.values())))
WHOLE = ("peers", "topics", "roles", CLOCK)
"""Tables that are always summed in full: they are small, and a peer's node has its first and last
interval, which its row has not."""

Sums = list[int]
"""The number of relationships and their checksum for each of PRIMES; for nodes, the number of their
properties comes second."""
PartSums = dict[str, Sums]
"""The sums of a part of a table, by statement."""


def number(word: str) -> int:
    """Return the number of a word: the same in every run, so that sums can be added."""
    return crc32(word.encode())


def number_by_letters(text: str) -> int:
    """Return a number that Cypher can compute, too, if it is given the code of each letter."""
    h = len(text)
    for letter in text:
        h = (h * 31 + ord(letter)) % PRIMES[0]
    return h


class Checksums:
    """Numbers and checksums of the nodes and relationships that the rows of a run become."""

    def __init__(self, partitions: Partitions) -> None:
        """Start with no rows; copies are made for these partitions."""
        self._partitions = partitions
        self.names: dict[str, list[str]] = {}
        """The properties in the checksums of nodes, by statement."""
        self.tables: dict[str, dict[str, PartSums]] = {table: {} for table in TABLES}
        """The sums of each part of each table; a table of WHOLE is one part without a name."""

    def part(self, table: str, name: str) -> PartSums:
        """Return the sums of a part of a table, which may have no rows yet."""
        statements = [of for of, its in (*NODES.items(), *CHECKED.items()) if its == table]
        none = {of: add_up(of, []) for of in statements}
        return self.tables[table].setdefault("" if table in WHOLE else name, none)

    def add(self, table: str, rows: Batch, part: str) -> None:
        """Add the relationships of rows of a part of a table."""
        for statement in self.part(table, part):
            if statement in _COPIES:
                copied_rows = copies(rows, self._partitions)
                properties, *columns = _DESCRIPTIONS[_COPIES[statement]](copied_rows)
                columns = [properties, *_integers(copied_rows, "partition"), *columns]
            elif statement in CHECKED:
                columns = _DESCRIPTIONS[statement](rows)
            else:
                continue
            self._put(table, part, statement, [len(columns[0]), *checksums_of(columns)])

    def add_nodes(self, step: NodeStep, rows: Batch, nodes: Batch, part: str) -> None:
        """Add the nodes that a step made of rows of a part: a column for each property."""
        names = [name for name in nodes.schema.names if name not in ("key", "run")]
        self.names[step.statement] = names
        node_columns = nodes.select(names).columns
        counts = sum(
            (_flags(pc.is_valid(column)) for column in node_columns), np.zeros(len(nodes), np.int64)
        )
        ids = rows[step.key].cast(pa.int64()).to_numpy()
        columns = [counts, ids, *chain.from_iterable(map(_pair, node_columns))]
        # A node without any of these properties is not counted.
        columns = [column[counts > 0] for column in columns]
        values = sum(len(column) - column.null_count for column in nodes.columns)
        # A step that adds to nodes repeats their key.
        values -= 0 if step.creates else len(nodes)
        sums = [len(columns[0]), values, *checksums_of(columns)]
        self._put(step.table, part, step.statement, sums)

    def _put(self, table: str, part: str, statement: str, sums: Sums) -> None:
        part_sums = self.part(table, part)
        part_sums[statement] = add_up(statement, [part_sums[statement], sums])


def add_up(statement: str, sums: Iterable[Sums]) -> Sums:
    """Add up sums of a statement, or none."""
    none = [0] * (len(PRIMES) + (2 if statement in NODES else 1))
    return [sum(column) for column in zip(none, *sums, strict=True)]


def _describe_links(rows: Batch) -> list[Ints]:
    _, *columns = _describe_spans(rows, "src", "dst", "topic")
    properties: Ints = 5 + 2 * _flags(pc.is_valid(rows["topic"]))
    return [properties, *columns, _number_words(rows["layer"])]


def _describe_spans(rows: Batch, *names: str) -> list[Ints]:
    """Describe relationships that have a run, a validity period and its class."""
    return [*_describe(rows, 4, *names, "valid_from", "valid_to"), levels(rows)]


def _describe_attributes(rows: Batch) -> list[Ints]:
    properties: Ints = 6 + _flags(pc.is_valid(rows["number"]))
    _, *columns = _describe_spans(rows, "peer")
    texts = [_number_words(rows["key"]), _number_words(rows["value"], number_by_letters)]
    return [properties, *columns, *texts, *_pair(rows["number"])]


def _describe_arrivals(rows: Batch, start: str) -> list[Ints]:
    flags = [pc.is_valid(rows[name]) for name in ("hop", "time_us", "subscribed")]
    properties = sum(map(_flags, flags), np.full(len(rows), 3))
    first, subscribed = _integers(rows, "first", "subscribed")
    columns = _integers(rows, start, "peer", "message", "hop", "time_us")
    return [properties, *columns, 3 * first + subscribed]


def _with_known(rows: Batch, name: str) -> Batch:
    return rows.filter(pc.is_valid(rows[name]))


def _describe(rows: Batch, properties: int, *names: str) -> list[Ints]:
    """Describe relationships that all have the same number of properties."""
    return [np.full(len(rows), properties), *_integers(rows, *names)]


_COPIES = {"link-copies": "links", "subscription-copies": "subscriptions"}
"""The statements of copies, and those of the relationships that are copied."""
_DESCRIPTIONS: dict[str, Callable[[Batch], list[Ints]]] = {
    "links": _describe_links,
    "presence": lambda rows: _describe_spans(rows, "peer"),
    "subscriptions": lambda rows: _describe_spans(rows, "peer", "topic"),
    "roles": lambda rows: [
        *_describe(rows, 4, "peer", "topic", "valid_from", "valid_to"),
        _number_words(rows["role"]),
    ],
    "attributes": _describe_attributes,
    "published": lambda rows: _describe(_with_known(rows, "publisher"), 1, "publisher", "message"),
    "published-on": lambda rows: _describe(_with_known(rows, "topic"), 0, "message", "topic"),
    "hops": lambda rows: _describe_arrivals(_with_known(rows, "previous_hop"), "previous_hop"),
    "arrived-from-unknown": lambda rows: _describe_arrivals(
        rows.filter(pc.is_null(rows["previous_hop"])), "message"
    ),
    "missed": lambda rows: _describe(rows, 1, "message", "peer"),
}
"""Columns of integers that describe the relationships of a table's rows: the number of their
properties, then ends, numbers, flags and numbered words; -1 = unknown."""


def _integers(rows: Batch, *names: str) -> list[Ints]:
    return [pc.fill_null(rows[name].cast(pa.int64()), -1).to_numpy() for name in names]


def _flags(flags: pa.Array) -> Ints:
    ints: Ints = flags.cast(pa.int64()).to_numpy()
    return ints


def _number_words(words: pa.Array, number: Callable[[str], int] = number) -> Ints:
    encoded = words.dictionary_encode()
    codes = np.array([number(word) for word in encoded.dictionary.to_pylist()], np.int64)
    numbered: Ints = codes[encoded.indices.to_numpy()]
    return numbered


def checksums_of_ids(ids: Iterable[int]) -> Sums:
    """Return the number of peers with a label, and the checksums of their ids."""
    columns = np.array(sorted(ids), np.int64)
    return [len(columns), *checksums_of([np.ones_like(columns), columns])]


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
    sums = []
    for prime in PRIMES:
        h = columns[0]
        for column in columns[1:]:
            h = np.fmod(h * h + np.fmod(column, prime), prime)
        sums.append(int(np.fmod(h * h, prime).sum(dtype=np.int64)))
    return sums
