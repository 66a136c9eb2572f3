"""The answers of a run, or a part of it, for a page without a server (page/embedded.js).

What has few answers is asked beforehand. What has too many is computed in the page, from the arrays
of `history` and the columns of peers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from vizpub.analytics.layouts import LAYOUT_NAMES
from vizpub.explorer import answers, columns, facts, messages, one_message
from vizpub.explorer.answers import Answer
from vizpub.explorer.history import History, OverlayPart, clip_run
from vizpub.explorer.messages import MessageFilter, MessageOrder
from vizpub.explorer.offline.rows import EmbeddedRows
from vizpub.explorer.packing import pack
from vizpub.explorer.periods import RankedPeriods
from vizpub.model.arrays import Floats, Int32s, Integers
from vizpub.model.clock import OPEN
from vizpub.questions.names import NamedRun

Arrays = dict[str, npt.NDArray[Any]]
Question = tuple[str, Callable[[], Answer]]
"""The key of an answer in the page, and what gives it. Raises: UseError where it is unknown."""
_MOST_TOPICS = 50
"""Topics whose coverage is embedded: those with most messages."""
_EXACT_BELOW = 2**20
"""Below it, values of 32 bits are shown with the same digits as those of 64."""


@dataclass(frozen=True)
class ExportPart:
    """The part of a run to embed; null = all of it."""

    window: tuple[int, int] | None = None
    """First and last interval."""
    topic: int | None = None
    layers: tuple[str, ...] | None = None


def questions(run: NamedRun, part: ExportPart) -> list[Question]:
    """All that an exported page can ask. Raises: UseError, UnknownName for a part."""
    return _Embedding(run, part).questions()


class _Embedding:
    def __init__(self, run: NamedRun, part: ExportPart) -> None:
        self._part = part
        self._topics = () if part.topic is None else (part.topic,)
        self._whole = History(run)
        self._history = History(clip_run(run, part.window))
        self._run = self._history.run
        self._wanted = MessageFilter(topic=part.topic, window=part.window)
        run.checked_layers(part.layers)
        if part.topic is not None:
            run.facts.check_known("subscriptions")

    def questions(self) -> list[Question]:
        return [
            ("facts", self._facts),
            ("history", self._arrays),
            *((f"places {of}", partial(answers.positions, self._whole, of)) for of in LAYOUT_NAMES),
            *self._of_columns(),
            *self._of_messages(),
            *self._rows().questions(),
        ]

    def _rows(self) -> EmbeddedRows:
        part, run = self._part, self._run
        subscribers = None if part.topic is None else self._subscribers
        numbers = None
        if part != ExportPart() and run.facts.knows("publications"):
            numbers = self._messages[1]["message"].astype(np.int64)
        return EmbeddedRows(run, part.layers, part.topic, subscribers, numbers)

    @cached_property
    def _described(self) -> dict[str, Any]:
        return facts.describe_run(self._history)

    def _facts(self) -> Answer:
        described, part = {**self._described}, self._part
        if part.layers is not None:
            described["counted"] = list(part.layers)
            described["layers"] = list(part.layers)
        if part.topic is not None:  # there is nothing to choose from
            described["knows"] = described["knows"] | {"subscriptions": False}
        described["live"] = False
        described["exported"] = {
            "window": part.window,
            "topic": part.topic,
            "layers": part.layers,
        }
        return answers.json_answer(described)

    def _of_columns(self) -> Iterator[Question]:
        blocks = range(-(-self._run.clock.intervals // columns.per_block(self._run)))
        described = self._described["columns"]
        for name in (column["name"] for column in described["peers"]):
            yield f"extent {name}", partial(answers.extent, self._whole, name)
        for name in (column["name"] for column in described["peers"] + described["groups"]):
            for number in blocks:
                yield f"column {number} {name}", partial(self._column, name, number)
        for name in (column["name"] for column in columns.of_overlay(self._run)):
            yield f"curve {name}", partial(answers.curve, self._history, name)

    def _column(self, name: str, number: int) -> Answer:
        meta, arrays = columns.block(self._run, name, number)
        values = arrays["values"].reshape(arrays["low"].size, -1)
        values[:, self._left_out] = np.nan
        return answers.ARRAYS, pack(meta, arrays | {"values": _to_float32(values.ravel())})

    @cached_property
    def _left_out(self) -> Integers:
        """The peers that never subscribe to the topic of the part, and never relay it."""
        if self._part.topic is None:
            return np.empty(0, np.int64)
        members = self._history.peers(OverlayPart(topics=self._topics, relays=self._has_relays))
        return np.setdiff1d(np.arange(self._history.size), members.key)

    @cached_property
    def _has_relays(self) -> bool:
        return self._history.knows_relays

    @cached_property
    def _subscribers(self) -> Integers:
        """The peers of each subscription to the topic of the part."""
        return self._history.peers(OverlayPart(topics=self._topics)).key

    @cached_property
    def _messages(self) -> tuple[messages.Meta, messages.Arrays]:
        """The messages of the part: `messages.part`."""
        return messages.part(self._run, self._wanted, MessageOrder(), None)

    def _of_messages(self) -> Iterator[Question]:
        history = self._history
        if not self._run.facts.knows("publications"):
            return
        meta, table = self._messages
        yield "messages", lambda: (answers.ARRAYS, pack({"names": meta["names"]}, table))
        for along in ("delay", "hop"):
            yield f"coverage {along} ", partial(answers.coverage, history, self._wanted, along)
            for topic in self._topics_with_most(table["topic"]):
                wanted = MessageFilter(topic, window=self._part.window)
                yield f"coverage {along} {topic}", partial(answers.coverage, history, wanted, along)
        for number in self._numbers:
            yield f"message {number}", partial(answers.message_spread, self._whole, number)
            yield f"missed {number}", partial(self._missed, number)

    def _missed(self, message: int) -> Answer:
        """Answer as `missed_peers`, whose slow query is asked once for all messages."""
        if message in self._missed_peers:
            return answers.json_answer({"rows": self._missed_peers[message], "why": None})
        return answers.missed_peers(self._whole, message)

    @cached_property
    def _missed_peers(self) -> dict[int, list[dict[str, Any]]]:
        """The rows of `missed_peers` of each message of the part, where they are known."""
        if not self._run.facts.knows("missed"):
            return {}
        known = pc.field("publication_known") & pc.field("message").isin(self._numbers)
        published = self._run.stored.read("publications", ["message"], known)["message"]
        rows = one_message.missed_peers_of(self._whole.run, self._numbers)
        return {message: rows.get(message, []) for message in published.to_pylist()}

    @cached_property
    def _numbers(self) -> list[int]:
        """The numbers of the messages of the part."""
        numbers: list[int] = self._messages[1]["message"].astype(int).tolist()
        return numbers

    def _topics_with_most(self, topic_of_each: Floats) -> list[int]:
        if self._topics:
            return []
        known = topic_of_each[~np.isnan(topic_of_each)].astype(int)
        topics, counts = np.unique(known, return_counts=True)
        most: list[int] = topics[np.argsort(-counts, kind="stable")[:_MOST_TOPICS]].tolist()
        return most

    def _arrays(self) -> Answer:
        """The arrays of page/embeddedhistory.js; times are ranks among `times`, or ticks where the
        name ends in `from` or `to`.
        """
        run, history = self._run, self._history
        layers = list(self._part.layers or history.layers) if run.stored.has("links") else []
        clip = _Clip(history)
        peers = history.peers(OverlayPart(topics=self._topics))
        arrays: Arrays = {"times": clip.times.astype(np.float64)}
        arrays |= clip.rows("peer", peers.begin, peers.end, {"peer": peers.key.astype(np.int32)})[0]
        if run.stored.has("links"):
            arrays |= self._pairs(clip, layers)
        if run.stored.has("topics") and run.facts.knows("subscriptions"):
            arrays |= self._by_topic(clip, "subscriber", self._history.subscriptions)
            if self._has_relays:
                arrays |= self._by_topic(clip, "relay", self._history.relays)
        (roles, of_roles), (attributes, of_attributes) = self._roles(), self._attributes()
        told = {
            "layers": layers,
            "flags": self._flags(),
            "topics_by_name": sorted(range(len(run.topics)), key=run.topics.__getitem__)
            if run.stored.has("topics")
            else [],
            "roles": roles,
            "attributes": attributes,
        }
        arrays |= self._presence() | of_roles | of_attributes
        return answers.ARRAYS, pack(told, arrays)

    def _pairs(self, clip: _Clip, layers: list[str]) -> Arrays:
        parts = [
            self._history.pairs(OverlayPart((layer,), self._topics, relays=self._has_relays))
            for layer in layers
        ]
        columns = {
            name: np.concatenate([np.empty(0, np.int32), *(getattr(of, name) for of in parts)])
            for name in ("src", "dst", "begin", "end")
        }
        begin, end = columns.pop("begin"), columns.pop("end")
        arrays, kept = clip.rows("pair", begin, end, columns)
        return arrays | {"layer_start": _starts(kept, [of.src.size for of in parts])}

    def _by_topic(self, clip: _Clip, name: str, periods: RankedPeriods) -> Arrays:
        size = max(self._history.size, 1)
        peers = (periods.key % size).astype(np.int32)
        arrays, kept = clip.rows(name, periods.begin, periods.end, {name: peers})
        counts = np.bincount(periods.key // size, minlength=len(self._run.topics))
        return arrays | {f"{name}_start": _starts(kept, counts)}

    def _presence(self) -> Arrays:
        rows = self._run.stored.read("presence", ["peer", "valid_from", "valid_to"])
        rows = rows.sort_by([("peer", "ascending"), ("valid_from", "ascending")])
        return {
            "present": rows["peer"].to_numpy().astype(np.int32),
            "present_from": _ticks(rows["valid_from"]),
            "present_to": _ticks(rows["valid_to"]),
        }

    def _roles(self) -> tuple[list[str], Arrays]:
        if not self._run.stored.has("roles"):
            return [], {}
        names = ["role", "peer", "topic", "valid_from", "valid_to"]
        rows = self._run.stored.read("roles", names)
        roles, coded = _code(rows["role"])
        topics = pc.fill_null(rows["topic"], -1).to_numpy()
        return roles, {
            "role": coded,
            "role_peer": rows["peer"].to_numpy().astype(np.int32),
            "role_topic": topics.astype(np.int32),
            "role_from": _ticks(rows["valid_from"]),
            "role_to": _ticks(rows["valid_to"]),
        }

    def _attributes(self) -> tuple[list[list[str]], Arrays]:
        """The keys and the values of attributes, and who has which of them when."""
        if not self._run.stored.has("attributes"):
            return [], {}
        names = ["key", "value", "peer", "valid_from", "valid_to"]
        rows = self._run.stored.read("attributes", names)
        (keys, key), (values, value) = _code(rows["key"]), _code(rows["value"])
        return [keys, values], {
            "attribute": key,
            "attribute_value": value,
            "attribute_peer": rows["peer"].to_numpy().astype(np.int32),
            "attribute_from": _ticks(rows["valid_from"]),
            "attribute_to": _ticks(rows["valid_to"]),
        }

    def _flags(self) -> list[str]:
        """The columns of peers that are true or false."""
        if not self._run.stored.has("metrics/peers"):
            return []
        table = self._run.stored.definition("metrics/peers")
        return [column.name for column in table if column.type == "bool"]


class _Clip:
    """Cuts periods to the window of a history, and renumbers their ranks."""

    def __init__(self, history: History) -> None:
        clock, times = history.run.clock, history.times
        # What has begun by the first tick has a rank of its own, and may have begun before it.
        begin, end = clock.first * clock.ticks_per_interval, clock.sampling_tick(clock.last)
        ranks = np.searchsorted(times, [begin, end], side="right") - 1
        self._first, self._last = max(int(ranks[0]), 0), int(ranks[1])
        self.times = times[self._first : self._last + 1]

    def rows(
        self, name: str, begin: Int32s, end: Int32s, columns: Arrays
    ) -> tuple[Arrays, npt.NDArray[np.bool_]]:
        """The rows that hold at some time of the window, and which of all these are."""
        kept = (begin <= self._last) & (end > self._first)
        arrays = {
            f"{name}_begin": np.maximum(begin[kept] - self._first, 0).astype(np.int32),
            f"{name}_end": np.minimum(end[kept] - self._first, self.times.size).astype(np.int32),
        }
        return {of: values[kept] for of, values in columns.items()} | arrays, kept


def _starts(kept: npt.NDArray[np.bool_], counts: Any) -> Int32s:
    """The begin of each group of rows among those that are kept, and the end of the last."""
    before = np.concatenate([[0], np.cumsum(kept)])
    found: Int32s = before[np.concatenate([[0], np.cumsum(counts)]).astype(int)].astype(np.int32)
    return found


def _code(column: Any) -> tuple[list[str], Int32s]:
    """The distinct texts of a column, and for each row the place of its own."""
    coded = column.combine_chunks().dictionary_encode()
    places: Int32s = coded.indices.to_numpy().astype(np.int32)
    return coded.dictionary.to_pylist(), places


def _ticks(column: Any) -> Floats:
    """Ticks as doubles; NaN = open."""
    ticks = column.to_numpy()
    found: Floats = np.where(ticks == OPEN, np.nan, ticks.astype(np.float64))
    return found


def _to_float32(values: Floats) -> npt.NDArray[Any]:
    """Store the values in 32 bits, where a page then shows the same."""
    small = values.astype(np.float32)
    known = values[~np.isnan(values)]
    same = np.array_equal(small, values, equal_nan=True)
    return small if same or np.abs(known).max(initial=0) < _EXACT_BELOW else values
