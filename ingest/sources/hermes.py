"""The source: Parquet of Hermes, ProbeLab's GossipSub listener.

Hermes writes the events of go-libp2p-pubsub's tracer, in milliseconds, with a file for each kind of
event and some minutes. They are folded like traces of go-libp2p-pubsub; what they lack is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import Kind, Read, Row, Split, refused
from vizpub.ingest.sources.base import Description, Observed, SourceOptions, Tallies
from vizpub.ingest.sources.libp2p.events import CONTROL_CHARACTER, Event, Refused, Type
from vizpub.ingest.sources.libp2p.facts import INTERVAL_US, Judge, Tally
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.tables.row_groups import group_splits, opened, read_group, schema_of
from vizpub.ingest.tasks.fold import Counted, count
from vizpub.reports.fields import INT64

_NS = 1_000_000
"""Nanoseconds in the unit of a timestamp."""
_TYPES = {
    "add_peer": Type.STREAM_OPENED,
    "remove_peer": Type.STREAM_CLOSED,
    "graft": Type.GRAFT,
    "prune": Type.PRUNE,
    "deliver_msg": Type.DELIVER,
    "duplicated_msg": Type.DUPLICATE,
    "reject_msg": Type.REJECT,
    "join_topic": Type.JOIN,
    "leave_topic": Type.LEAVE,
}
"""The type of an event by its sub-type."""
_BASE = ("timestamp", "type", "producerid", "subtype")
_PEER, _TOPIC, _MESSAGE = "remotepeerid", "topic", "msgid"
_COLUMNS = {
    frozenset({*_BASE, *more})
    for more in (
        (_PEER,),
        (_PEER, _TOPIC),
        (_PEER, _TOPIC, _MESSAGE, "local", "msgsize", "seqno"),
        (_TOPIC,),
    )
}
"""The columns of each kind of file, as `_plain` writes them."""
_NEEDS = {
    _PEER: frozenset(_TYPES.values()) - {Type.JOIN, Type.LEAVE},
    _TOPIC: frozenset(_TYPES.values()) - {Type.STREAM_OPENED, Type.STREAM_CLOSED},
    _MESSAGE: frozenset({Type.DELIVER, Type.DUPLICATE, Type.REJECT}),
}
_BEGINS = frozenset({Type.STREAM_OPENED, Type.JOIN})
_ENDS = frozenset({Type.STREAM_CLOSED, Type.LEAVE})
_OF_OTHERS = 3
"""The rank of streams in the fold of the other peer: after all own events of their time."""


def _plain(column: str) -> str:
    """The name of a column without case and underscores; early versions wrote ProducerID for what
    is now producer_id.
    """
    return column.lower().replace("_", "")


class Hermes(Libp2p):
    """See vizpub.ingest.sources.base.Source, and for what it shares Libp2p."""

    name = "hermes"
    unknown = (
        "traffic (its counts are in files that are not read)",
        "connections that carry no GossipSub stream",
    )
    options = frozenset({"interval_us", "reporters_only"})

    def recognises(self, path: str, head: bytes) -> str | None:
        """'parquet', if it has the columns of a kind of file that is read."""
        schema = schema_of(path, head)
        kinds = {_plain(field.name): field.type for field in schema or ()}
        if schema is None or frozenset(kinds) not in _COLUMNS or len(kinds) < len(schema):
            return None
        texts = (kinds[name] for name in (*_BASE[1:], _PEER, _TOPIC, _MESSAGE) if name in kinds)
        are_texts = all(map(_is_text, texts))
        return "parquet" if are_texts and pa.types.is_integer(kinds["timestamp"]) else None

    def splits(self, files: Sequence[InputFile]) -> list[Split]:
        """Row groups."""
        found: list[Split] = []
        for number, file in enumerate(files):
            with opened(file.path) as parquet:
                found += group_splits(number, file.path, parquet)
        return found

    def reader(
        self,
        files: Sequence[InputFile],
        options: SourceOptions,
        tallies: Callable[[Read], Tallies] | None = None,
        counted: Counted | None = None,
    ) -> Read:
        """Reads Parquet."""
        del files, tallies
        return _GroupReader(Judge.of(options.interval_us or INTERVAL_US, counted))

    def tallied(self, tallies: Tallies) -> Counted:
        """As Libp2p.tallied; files of one peer are about the same time."""
        return {**super().tallied(tallies), "copies": None}

    def observe(self, run: Description, options: SourceOptions) -> Observed:
        """As Libp2p.observe, without traffic."""
        return replace(super().observe(run, options), traffic=None)


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column is text; without Arrow's own schema, dictionaries are text, too."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@dataclass(frozen=True)
class _GroupReader:
    """Reads a row group: events as vizpub.ingest.sources.libp2p.reader gives them."""

    judge: Judge

    def __call__(self, split: Split) -> Iterator[Row]:
        """The rows of a split; of an event a row's line is its row number."""
        tally = self.judge.tally()

        def judged(batch: pa.RecordBatch, first: int) -> Iterator[Row]:
            names = [_plain(name) for name in batch.schema.names]
            columns = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for number, row in enumerate(columns, first):
                values = dict(zip(names, row, strict=True))
                try:
                    events = _events(values, tally)
                    for event in events:
                        self.judge.count(event, tally, split, number)
                except Refused as reason:
                    told = json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")
                    yield refused(split, number, str(reason), told)
                    continue
                for event in events:
                    yield from _rows(event, split.file, number)

        with opened(split.path) as parquet:
            yield from read_group(split, parquet, judged)
        yield Row(Kind.TALLY, record=json.dumps(tally.plain).encode())


def _events(values: Mapping[str, Any], tally: Tally) -> list[Event]:
    """The events of a row. What a peer delivers to itself it has published. Raises: Refused."""
    what, peer, time = _text(values, "subtype"), _text(values, "producerid"), values["timestamp"]
    if time is None:
        raise Refused("missing value: timestamp")
    if not 0 <= time <= INT64 // _NS:
        raise Refused("negative timestamp" if time < 0 else "timestamp too large")
    if (kind := _TYPES.get(what)) is None:
        count(tally.unknown, f"events of type {what}")
        return []
    other, topic, message = (
        _text(values, name) if kind in types else None for name, types in _NEEDS.items()
    )
    event = Event(kind, peer, time * _NS, other, topic, message)
    if kind == Type.DELIVER and other == peer:
        return [Event(Type.PUBLISH, peer, time * _NS, None, topic, message), event]
    return [event]


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not value:
        raise Refused(f"missing value: {name}")
    if CONTROL_CHARACTER.search(value):
        raise Refused(f"control character in {name}")
    return str(value)


def _rows(event: Event, file: int, line: int) -> Iterator[Row]:
    """For the peer that it is of, and of a stream also for the other. Files hold one kind of event,
    so of those of a millisecond what begins a stream or subscription comes first, its end last.
    """
    record, rank = msgspec.msgpack.encode(event), 1
    rank += (event.type in _ENDS) - (event.type in _BEGINS)
    yield Row(Kind.RECORD, event.peer, event.time, rank, file, line, None, record)
    if event.type in (Type.STREAM_OPENED, Type.STREAM_CLOSED) and event.other != event.peer:
        yield Row(Kind.RECORD, event.other, event.time, _OF_OTHERS, file, line, None, record)
