"""The rows of the run store as nodes and relationships of the graph.

Pure functions from Arrow to Arrow. A batch of nodes has a column for each property, a null where a
node has none. A batch of relationships has the nodes at their ends (`start`, `end`) before
their properties; a node is identified by its `number`, which says its label and its dense index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.graphstore.ask.periods import OPEN_CLASS
from vizpub.graphstore.load.partitions import COPIED, NONE, Partitions, copies, copy_types
from vizpub.model.clock import OPEN, Clock
from vizpub.model.run import Boundary

Batch: TypeAlias = pa.RecordBatch
Rows = list[Any]


class RunTables(Protocol):
    """The tables of a run."""

    def row_groups(self, name: str) -> Iterable[tuple[str, Batch]]:
        """Yield the batches of a table, as (label, batch). A label always names the same rows."""

    def rows_from(self, name: str, column: str, least: int) -> Iterable[Batch]:
        """Yield the rows of a table whose `column` is `least` or more.

        Opens only files with such rows, if it knows them.
        """

    def rows(self, name: str) -> int:
        """Return the number of rows of a table, 0 if there is none, without reading them."""

    def boundary_since(self, tables: str) -> Boundary | None:
        """Return the boundary before which no row has changed since the tables had this identity.

        None if it is unknown.
        """

    def is_current(self) -> bool:
        """Return True if the run still has these tables: no append, no replacement."""


@runtime_checkable
class PartedTables(Protocol):
    """RunTables whose parts have names: a name always stands for the same rows.

    The label of a batch begins with the name of its part and a slash.
    """

    def parts(self, name: str) -> Collection[str]:
        """Return the names of the parts of a table."""

    def part_rows(self, name: str, part: str) -> Iterable[Batch]:
        """Yield the rows of a part."""


def part_of(label: str) -> str:
    """Return the name of the part to which a batch with this label belongs."""
    return label.partition("/")[0]


CLOCK = "clock"
"""The name of a table that no file holds: the run's intervals, from its clock."""
LINK, SUBSCRIBES = COPIED
_LONGEST_CAPTIONS = {"Peer": 6, "Topic": 12, "Message": 6}
"""Length of the longest names that fit into the circle of a node in Neo4j Browser."""
_POWERS = 1 << np.arange(OPEN_CLASS, dtype=np.int64)

LABELS = ("Run", "Peer", "Topic", "Message", "Interval")
RUN, PEER, TOPIC, MESSAGE, INTERVAL = range(len(LABELS))
"""The labels as parts of a node's number."""


def level(valid_from: int, valid_to: int) -> int:
    """Return the `length_class` of a period: bit length of its length minus 1; 63 = open end."""
    return OPEN_CLASS if valid_to == OPEN else (valid_to - valid_from).bit_length() - 1


def levels(batch: Batch) -> np.ndarray:
    """Return the `length_class` of the periods in the columns valid_from and valid_to (int64)."""
    valid_from, valid_to = batch["valid_from"].to_numpy(), batch["valid_to"].to_numpy()
    closed = np.searchsorted(_POWERS, valid_to - valid_from, side="right") - 1
    return np.where(valid_to == OPEN, OPEN_CLASS, closed)


def closed_levels(batch: Batch) -> list[int]:
    """Return the distinct `length_class` values of the closed periods."""
    valid_from, valid_to = batch["valid_from"].to_numpy(), batch["valid_to"].to_numpy()
    lengths = np.unique((valid_to - valid_from)[valid_to != OPEN])
    classes: list[int] = np.unique(np.searchsorted(_POWERS, lengths, side="right") - 1).tolist()
    return classes


def sampled_spans(
    valid_from: np.ndarray, valid_to: np.ndarray, clock: Clock
) -> tuple[np.ndarray, np.ndarray]:
    """Return first and last sampled interval of each period (int64); none if last < first."""
    k = clock.ticks_per_interval
    end = np.where(valid_to == OPEN, clock.last, valid_to // k - 1)
    return np.maximum(valid_from // k, clock.first), np.minimum(end, clock.last)


def numbers(label: int, ids: pa.Array) -> pa.Array:
    """Return the numbers of a labelled nodes with these dense indices (int64, null for null)."""
    return pc.add(pc.multiply(ids.cast(pa.int64()), len(LABELS)), label)


@dataclass(frozen=True)
class RunRows:
    """Converts rows of a run to nodes and relationships."""

    run: str
    clock: Clock
    topics: tuple[str, ...]
    """Topic names by dense index."""
    sampled: dict[int, tuple[int, int]]
    """First and last sampled interval of each peer that was ever sampled."""
    partitions: Partitions = NONE
    """The time partitions that links and subscriptions are copied into."""

    def key(self, id: int) -> str:
        """Return the key of a node of this run."""
        return f"{self.run}/{id}"

    def keys(self, ids: pa.Array) -> pa.Array:
        """Return the keys of nodes with these dense indices, null for null."""
        return pc.binary_join_element_wise(self.run, ids.cast(pa.string()), "/")

    def keys_of(self, nodes: pa.Array) -> pa.Array:
        """Return the keys of nodes by their numbers, null for the run itself."""
        ids = pc.divide(nodes, len(LABELS))
        return self.keys(pc.if_else(pc.equal(nodes, RUN), None, ids))

    def peers(self, rows: Batch) -> Batch:
        """Return the peers as nodes, with their first and last sampled interval."""
        sampled = [self.sampled.get(id, (None, None)) for id in rows["peer"].to_pylist()]
        first, last = (pa.array([at[i] for at in sampled], pa.int64()) for i in (0, 1))
        nodes = self._nodes("Peer", rows["peer"], rows["name"])
        return _batch(**nodes, is_reporter=rows["is_reporter"], first=first, last=last)

    def topic_nodes(self, rows: Batch) -> Batch:
        """Return the topics as nodes."""
        return _batch(**self._nodes("Topic", rows["topic"], rows["name"]))

    def intervals(self, rows: Batch) -> Batch:
        """Return the intervals as nodes, from a column `interval`; `t` is the sampling tick."""
        i = rows["interval"]
        ticks = [self.clock.sampling_tick(interval) for interval in i.to_pylist()]
        return _batch(key=self.keys(i), run=self._run(rows), i=i, t=pa.array(ticks, pa.int64()))

    def messages(self, rows: Batch) -> Batch:
        """Return the messages as nodes, without their metrics."""
        copied = ("topic", "publisher", "interval", "time_us", "tick", "publication_known", "bytes")
        nodes = self._nodes("Message", rows["message"], rows["name"])
        return _batch(**nodes, **{name: rows[name] for name in copied})

    def metrics(self, rows: Batch) -> Batch:
        """Return metrics of messages or intervals, by their key."""
        id, *metrics = rows.schema.names  # the index comes first in every metrics table
        return _batch(key=self.keys(rows[id]), **{name: rows[name] for name in metrics})

    def links(self, rows: Batch) -> Batch:
        """Return links: peer to peer."""
        names = pa.array(self.topics, pa.string()).take(rows["topic"])
        ends = {"start": numbers(PEER, rows["src"]), "end": numbers(PEER, rows["dst"])}
        more = {"layer": rows["layer"], "topic": rows["topic"], "topic_name": names}
        return _batch(**ends, **more, **_span(rows), length_class=pa.array(levels(rows)))

    def presence(self, rows: Batch) -> Batch:
        """Return presence: peer to run."""
        ends = {"start": numbers(PEER, rows["peer"]), "end": self._run_ends(rows)}
        return _batch(**ends, **_span(rows), length_class=pa.array(levels(rows)))

    def subscriptions(self, rows: Batch) -> Batch:
        """Return subscriptions: peer to topic."""
        ends = {"start": numbers(PEER, rows["peer"]), "end": numbers(TOPIC, rows["topic"])}
        return _batch(**ends, **_span(rows), length_class=pa.array(levels(rows)))

    def link_copies(self, rows: Batch) -> Batch:
        """Return copies of links in the partitions in which they are valid, each with its type."""
        return self._copies(LINK, rows, self.links)

    def subscription_copies(self, rows: Batch) -> Batch:
        """Return copies of subscriptions in the partitions in which they are valid."""
        return self._copies(SUBSCRIBES, rows, self.subscriptions)

    def _copies(self, type: str, rows: Batch, shape: Callable[[Batch], Batch]) -> Batch:
        copied_rows = copies(rows, self.partitions)
        return shape(copied_rows).add_column(2, "type", copy_types(type, copied_rows["partition"]))

    def roles(self, rows: Batch) -> Batch:
        """Return roles: peer to topic, or to the run if the role has no topic."""
        of = pc.coalesce(numbers(TOPIC, rows["topic"]), self._run_ends(rows))
        return _batch(start=numbers(PEER, rows["peer"]), end=of, role=rows["role"], **_span(rows))

    def attributes(self, rows: Batch) -> Batch:
        """Return the values of attributes: peer to run."""
        ends = {"start": numbers(PEER, rows["peer"]), "end": self._run_ends(rows)}
        values = {name: rows[name] for name in ("key", "value", "number")}
        return _batch(**ends, **values, **_span(rows), length_class=pa.array(levels(rows)))

    def publisher_links(self, rows: Batch) -> Batch:
        """Return publications: peer to message, if the publisher is known."""
        publications = rows.filter(pc.is_valid(rows["publisher"]))
        return _batch(
            start=numbers(PEER, publications["publisher"]),
            end=numbers(MESSAGE, publications["message"]),
        )

    def topic_links(self, rows: Batch) -> Batch:
        """Return messages' topics: message to topic, if the topic is known."""
        publications = rows.filter(pc.is_valid(rows["topic"]))
        return _batch(
            start=numbers(MESSAGE, publications["message"]),
            end=numbers(TOPIC, publications["topic"]),
        )

    def hops(self, rows: Batch) -> Batch:
        """Return receptions with a known previous hop: previous hop to peer."""
        receptions = rows.filter(pc.is_valid(rows["previous_hop"]))
        return _reception(numbers(PEER, receptions["previous_hop"]), receptions)

    def arrived_from_unknown(self, rows: Batch) -> Batch:
        """Return receptions with an unknown previous hop: message to peer."""
        receptions = rows.filter(pc.is_null(rows["previous_hop"]))
        return _reception(numbers(MESSAGE, receptions["message"]), receptions)

    def missed_deliveries(self, rows: Batch) -> Batch:
        """Return missed deliveries: message to eligible peer that never received it."""
        return _batch(start=numbers(MESSAGE, rows["message"]), end=numbers(PEER, rows["peer"]))

    def _nodes(self, label: str, ids: pa.Array, names: pa.Array) -> dict[str, pa.Array]:
        # Names of one kind often begin alike; the end distinguishes longer ones.
        ends = pc.binary_join_element_wise("…", pc.utf8_slice_codeunits(names, -4), "")
        is_short = pc.less_equal(pc.utf8_length(names), _LONGEST_CAPTIONS[label])
        caption = pc.if_else(is_short, names, ends)
        identity = {"key": self.keys(ids), "run": self._run(ids), "id": ids}
        return {**identity, "name": names, "caption": caption}

    def _run(self, rows: pa.Array | Batch) -> pa.Array:
        return pa.repeat(pa.scalar(self.run), len(rows))

    @staticmethod
    def _run_ends(rows: Batch) -> pa.Array:
        return pa.repeat(pa.scalar(RUN, pa.int64()), len(rows))


def _reception(start: pa.Array, rows: Batch) -> Batch:
    more = {name: rows[name] for name in ("time_us", "first", "subscribed")}
    end = numbers(PEER, rows["peer"])
    return _batch(start=start, end=end, message=rows["message"], hops=rows["hop"], **more)


def _span(rows: Batch) -> dict[str, pa.Array]:
    return {"valid_from": rows["valid_from"], "valid_to": rows["valid_to"]}


def _batch(**columns: pa.Array) -> Batch:
    return pa.RecordBatch.from_pydict(columns)
