"""The rows of the run store as the rows of the load statements.

Pure: Arrow in, lists out. Each load statement has its own order of columns (the header
of the file says which); a node's row is the map of its properties, a null where it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from model.clock import OPEN, Clock
from model.metrics import METRICS_MESSAGES, METRICS_OVERLAY

Tables = Callable[[str], Iterable[tuple[str, pa.RecordBatch]]]
"""The batches of a table by its name: (label, batch). A label names the same rows for ever."""
Columns = dict[str, list[Any]]
Rows = list[Any]

OPEN_LEVEL = 63


def level(vf: int, vt: int) -> int:
    """The `lv` of a span: bit length of its length minus 1; 63 for an open end."""
    return OPEN_LEVEL if vt == OPEN else (vt - vf).bit_length() - 1


def sampled_spans(vf: np.ndarray, vt: np.ndarray, clock: Clock) -> tuple[np.ndarray, np.ndarray]:
    """First and last sampled interval of each span (int64); empty where last < first."""
    k = clock.ticks_per_interval
    end = np.where(vt == OPEN, clock.last, vt // k - 1)
    return np.maximum(vf // k, clock.first), np.minimum(end, clock.last)


@dataclass(frozen=True)
class RunRows:
    """What a row of a run needs beyond itself."""

    run: str
    clock: Clock
    topics: tuple[str, ...]
    """Topic names by dense index."""
    lives: dict[int, tuple[int, int]]
    """First and last sampled interval of a peer; absent where it was never sampled."""

    def key(self, id: int) -> str:
        """The key of a node of this run."""
        return f"{self.run}/{id}"

    def peers(self, columns: Columns) -> Rows:
        """Rows of load/peers."""
        return [
            {
                **self._node(id, name),
                "reports": reports,
                "first": self.lives.get(id, (None,))[0],
                "last": self.lives.get(id, (None,))[-1],
            }
            for id, name, reports in _zip(columns, "peer", "key", "reports")
        ]

    def topic_nodes(self, columns: Columns) -> Rows:
        """Rows of load/topics."""
        return [self._node(id, name) for id, name in _zip(columns, "topic", "key")]

    def intervals(self, columns: Columns) -> Rows:
        """Rows of load/intervals, from a column `interval`; `t` is the sampling tick."""
        return [
            {"key": self.key(i), "run": self.run, "i": i, "t": self.clock.sampling_tick(i)}
            for i in columns["interval"]
        ]

    def messages(self, columns: Columns) -> Rows:
        """Rows of load/messages."""
        told = ("topic", "publisher", "interval", "time_us", "tick", "publication_known")
        return [
            {**self._node(id, name), **dict(zip(told, rest, strict=True))}
            for id, name, *rest in _zip(columns, "message", "key", *told)
        ]

    def message_metrics(self, columns: Columns) -> Rows:
        """Rows of load/message-metrics."""
        return self._metrics(columns, METRICS_MESSAGES.names)

    def interval_metrics(self, columns: Columns) -> Rows:
        """Rows of load/interval-metrics."""
        return self._metrics(columns, METRICS_OVERLAY.names)

    def links(self, columns: Columns) -> Rows:
        """Rows of load/links."""
        return [
            [
                self.key(src),
                self.key(dst),
                layer,
                topic,
                None if topic is None else self.topics[topic],
                vf,
                vt,
                level(vf, vt),
            ]
            for src, dst, layer, topic, vf, vt in _zip(
                columns, "src", "dst", "layer", "topic", "vf", "vt"
            )
        ]

    def presence(self, columns: Columns) -> Rows:
        """Rows of load/presence."""
        return [
            [self.key(peer), vf, vt, level(vf, vt)]
            for peer, vf, vt in _zip(columns, "peer", "vf", "vt")
        ]

    def subscriptions(self, columns: Columns) -> Rows:
        """Rows of load/subscriptions."""
        return [
            [self.key(peer), self.key(topic), vf, vt]
            for peer, topic, vf, vt in _zip(columns, "peer", "topic", "vf", "vt")
        ]

    def roles(self, columns: Columns) -> Rows:
        """Rows of load/plays."""
        return [
            [self.key(peer), None if topic is None else self.key(topic), role, vf, vt]
            for peer, topic, role, vf, vt in _zip(columns, "peer", "topic", "role", "vf", "vt")
        ]

    def published(self, columns: Columns) -> Rows:
        """Rows of load/published: the messages whose publisher is known."""
        return [
            [self.key(publisher), self.key(message)]
            for message, publisher in _zip(columns, "message", "publisher")
            if publisher is not None
        ]

    def on(self, columns: Columns) -> Rows:
        """Rows of load/on: the messages whose topic is known."""
        return [
            [self.key(message), self.key(topic)]
            for message, topic in _zip(columns, "message", "topic")
            if topic is not None
        ]

    def hops(self, columns: Columns) -> Rows:
        """Rows of load/hops: the receptions whose previous hop is known."""
        return [
            [self.key(previous), self.key(peer), message, *rest]
            for previous, peer, message, *rest in _zip(columns, *_RECEPTION)
            if previous is not None
        ]

    def reached(self, columns: Columns) -> Rows:
        """Rows of load/reached: the receptions whose previous hop is unknown."""
        return [
            [self.key(message), self.key(peer), message, *rest]
            for previous, peer, message, *rest in _zip(columns, *_RECEPTION)
            if previous is None
        ]

    def _node(self, id: int, name: str) -> dict[str, Any]:
        return {"key": self.key(id), "run": self.run, "id": id, "name": name}

    def _metrics(self, columns: Columns, names: list[str]) -> Rows:
        id, *metrics = names
        return [
            {"key": self.key(of), **dict(zip(metrics, values, strict=True))}
            for of, *values in _zip(columns, id, *metrics)
        ]


_RECEPTION = ("previous_hop", "peer", "message", "hop", "time_us", "first", "interested")


def run_rows(run: str, clock: Clock, tables: Tables) -> RunRows:
    """What the rows of a run need: its topics' names and its peers' lives, read once."""
    topics: dict[int, str] = {}
    for _, batch in tables("topics"):
        topics.update(zip(batch["topic"].to_pylist(), batch["key"].to_pylist(), strict=True))
    names = tuple(topics[id] for id in range(len(topics)))
    return RunRows(run, clock, names, _lives(clock, tables))


def _lives(clock: Clock, tables: Tables) -> dict[int, tuple[int, int]]:
    lives: dict[int, tuple[int, int]] = {}
    for _, batch in tables("presence"):
        spans = sampled_spans(batch["vf"].to_numpy(), batch["vt"].to_numpy(), clock)
        for peer, first, last in zip(batch["peer"].to_pylist(), *map(_ints, spans), strict=True):
            if first <= last:
                low, high = lives.get(peer, (first, last))
                lives[peer] = (min(low, first), max(high, last))
    return lives


def _ints(array: np.ndarray) -> list[int]:
    integers: list[int] = array.tolist()
    return integers


def _zip(columns: Columns, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(columns[name] for name in names), strict=True)
