"""The source: Parquet of Hermes, ProbeLab's GossipSub listener.

Hermes writes the events of go-libp2p-pubsub's tracer, in milliseconds, with a file for each kind of
event and some minutes. They are folded like traces of go-libp2p-pubsub; what they lack is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    InputRow,
    InputSplit,
    RecordRefused,
    SplitReader,
    as_one_record,
    refusal_row,
    tally_row,
)
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
)
from vizpub.ingest.sources.libp2p.events import (
    CONTROL,
    CONTROL_CHARACTER,
    REQUESTS,
    ControlEntry,
    EventType,
    RpcEntries,
    TraceEvent,
    rows_of_event,
)
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.tables.row_groups import (
    open_parquet,
    read_group,
    schema_of,
    splits_by_group,
)
from vizpub.ingest.tasks.fold import RunCounts, count_name
from vizpub.reports.fields import INT64

_NS = 1_000_000
"""Nanoseconds in the unit of a timestamp."""
_TYPES = {
    "add_peer": EventType.STREAM_OPENED,
    "remove_peer": EventType.STREAM_CLOSED,
    "graft": EventType.GRAFT,
    "prune": EventType.PRUNE,
    "deliver_msg": EventType.DELIVER,
    "duplicated_msg": EventType.DUPLICATE,
    "reject_msg": EventType.REJECT,
    "join_topic": EventType.JOIN,
    "leave_topic": EventType.LEAVE,
}
"""The type of an event by its sub-type."""
_WAYS = {"in": EventType.RECV_RPC, "out": EventType.SEND_RPC, "drop": EventType.DROP_RPC}
"""The type of an RPC by its direction."""
_BASE = ("timestamp", "type", "producerid")
_SUBTYPE, _DIRECTION, _IDS, _PEERS = "subtype", "direction", "msgids", "pxpeers"
_SENT = "sent_msg"
_PEER, _TOPIC, _MESSAGE = "remotepeerid", "topic", "msgid"
_COLUMNS = {
    frozenset({*_BASE, *more})
    for more in (
        (_SUBTYPE, _PEER),
        (_SUBTYPE, _PEER, _TOPIC),
        (_SUBTYPE, _PEER, _TOPIC, _MESSAGE, "local", "msgsize", "seqno"),
        (_SUBTYPE, _TOPIC),
        *(
            (_DIRECTION, _PEER, "isog", *of_rpc)
            for of_rpc in (
                (_TOPIC, _IDS, "msgs"),
                (_IDS, "msgs"),
                (_TOPIC, _PEERS),
                (_TOPIC, _MESSAGE),
                (_TOPIC, _IDS),  # as early versions called the id of a sent message
            )
        ),
    )
}
"""The columns of each kind of file, as `_plain` writes them."""
_NEEDS = {
    _PEER: frozenset(_TYPES.values()) - {EventType.JOIN, EventType.LEAVE},
    _TOPIC: frozenset(_TYPES.values()) - {EventType.STREAM_OPENED, EventType.STREAM_CLOSED},
    _MESSAGE: frozenset({EventType.DELIVER, EventType.DUPLICATE, EventType.REJECT}),
}
_BEGINS = frozenset({EventType.STREAM_OPENED, EventType.JOIN})
_ENDS = frozenset({EventType.STREAM_CLOSED, EventType.LEAVE})
_OF_OTHERS = 3
"""The rank of streams in the fold of the other peer: after all own events of their time."""


def _plain_name(column: str) -> str:
    """Return the name of a column without case and underscores: early versions wrote ProducerID for
    what is now producer_id.
    """
    return column.lower().replace("_", "")


class Hermes(Libp2p):
    """The source `hermes`: a Libp2p whose reader takes Parquet."""

    name = "hermes"
    files_overlap = True
    options = frozenset({"interval_us", "reporters_only"})

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'parquet' for a file with the columns of a kind that is read."""
        schema = schema_of(path, head)
        kinds = {_plain_name(field.name): field.type for field in schema or ()}
        if schema is None or frozenset(kinds) not in _COLUMNS or len(kinds) < len(schema):
            return None
        named = (*_BASE[1:], _SUBTYPE, _DIRECTION, _PEER, _TOPIC, _MESSAGE)
        texts = [kinds[name] for name in named if name in kinds]
        lists = [kinds[name] for name in (_IDS, _PEERS) if name in kinds]
        if not all(pa.types.is_list(of) or pa.types.is_large_list(of) for of in lists):
            return None
        texts += [of.value_type for of in lists]
        # Without Arrow's own schema, dictionaries are text, too.
        are_texts = all(pa.types.is_string(of) or pa.types.is_large_string(of) for of in texts)
        return "parquet" if are_texts and pa.types.is_integer(kinds["timestamp"]) else None

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return a split for each row group."""
        return splits_by_group(enumerate(files))

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of Parquet."""
        return _GroupReader(TraceJudge.of(source_input))

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe the run like Libp2p, with what the input lacks."""
        tables = TraceTally.of(counted).tables
        unknown = (
            "traffic, but for messages sent" if tables[_SENT] else "traffic",
            "GRAFT and subscriptions among control messages"
            if _has_entries(tables)
            else "control messages",
            "connections that carry no GossipSub stream",
        )
        return replace(super().describe(counted, options), unknown=unknown)

    def requests_told(self, tally: TraceTally) -> Collection[str]:
        """Return the kinds of which there are files."""
        return [kind for kind in REQUESTS if tally.tables[kind]]

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of Libp2p; of traffic only the messages sent."""
        observed, tables = super().observe(run, options), TraceTally.of(run.totals).tables
        sent = f"SELECT peer, interval, publication_messages_sent FROM ({observed.traffic})"
        return replace(
            observed,
            traffic=sent if tables[_SENT] else None,
            control=observed.control if _has_entries(tables) else None,
        )


def _has_entries(tables: Mapping[str, int]) -> bool:
    return any(tables.get(kind) for kind in CONTROL)


@dataclass(frozen=True)
class _GroupReader:
    """Reads a row group into events like those of vizpub.ingest.sources.libp2p.reader."""

    judge: TraceJudge

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split; the line of an event is its row number."""
        tally = self.judge.tally()

        def check_rows(batch: pa.RecordBatch, first: int) -> Iterator[InputRow]:
            names = [_plain_name(name) for name in batch.schema.names]
            columns = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for number, row in enumerate(columns, first):
                values = dict(zip(names, row, strict=True))
                try:
                    rows = [*self._rows(values, tally, split, number)]
                except RecordRefused as reason:
                    text = json.dumps(values, ensure_ascii=False, default=str).encode()
                    rows = [refusal_row(split, number, str(reason), text)]
                yield from rows

        with open_parquet(split.path) as parquet:
            yield from read_group(split, parquet, check_rows)
        yield tally_row(tally.plain)

    def _rows(
        self, values: Mapping[str, Any], tally: TraceTally, split: InputSplit, number: int
    ) -> Iterator[InputRow]:
        """Yield the rows of a row's events. A file has one kind of event, so within a millisecond
        the beginnings of streams and subscriptions come first, and their ends last.
        """
        events = _events_of_row(values, tally)
        for event in events:
            self.judge.count(event, tally, split, number)
        ranks = (1 + (event.type in _ENDS) - (event.type in _BEGINS) for event in events)
        yield from as_one_record(
            row
            for event, rank in zip(events, ranks, strict=True)
            for row in rows_of_event(event, split.file, number, rank, _OF_OTHERS)
        )


def _events_of_row(values: Mapping[str, Any], tally: TraceTally) -> list[TraceEvent]:
    """Return the events of a row; a message that a peer delivers to itself is its publication.

    Raises: RecordRefused.
    """
    is_rpc = _DIRECTION in values
    subtype = "" if is_rpc else _text(values, _SUBTYPE)
    peer, time = _text(values, "producerid"), values["timestamp"]
    if time is None:
        raise RecordRefused("missing value: timestamp")
    if not 0 <= time <= INT64 // _NS:
        raise RecordRefused("negative timestamp" if time < 0 else "timestamp too large")
    if is_rpc:
        return [_rpc_of_row(values, tally, TraceEvent(EventType.RECV_RPC, peer, time * _NS))]
    if (kind := _TYPES.get(subtype)) is None:
        count_name(tally.unknown, f"events of type {subtype}")
        return []
    remote_peer, topic, message = (
        _text(values, name) if kind in types else None for name, types in _NEEDS.items()
    )
    event = TraceEvent(kind, peer, time * _NS, remote_peer, topic, message)
    if kind == EventType.DELIVER and remote_peer == peer:
        return [TraceEvent(EventType.PUBLISH, peer, time * _NS, None, topic, message), event]
    return [event]


def _rpc_of_row(values: Mapping[str, Any], tally: TraceTally, event: TraceEvent) -> TraceEvent:
    """Return the event of an RPC with one entry, or one message. Raises: RecordRefused."""
    direction = _text(values, _DIRECTION)
    if (way := _WAYS.get(direction)) is None:
        raise RecordRefused(f"unknown direction: {direction}")
    # The type in files of peer exchange was once that of sent messages.
    kind = "prune" if _PEERS in values else _text(values, "type")
    if kind == _SENT:
        entries = RpcEntries(messages=1)
    elif kind in CONTROL:
        topic = _text(values, _TOPIC) if _TOPIC in values else None
        ids = values.get(_PEERS) if kind == "prune" else values.get(_IDS)
        if ids and None in ids:
            raise RecordRefused("missing value in a list of ids")
        names = tuple(ids or ()) if kind in REQUESTS and way == EventType.SEND_RPC else ()
        entries = RpcEntries(control=(ControlEntry(kind, topic, len(ids or ()), names),))
    else:
        raise RecordRefused(f"unknown type: {kind}")
    tally.tables[kind] += 1
    event.type, event.other, event.entries = way, _text(values, _PEER), entries
    return event


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not value:
        raise RecordRefused(f"missing value: {name}")
    if CONTROL_CHARACTER.search(value):
        raise RecordRefused(f"control character in {name}")
    return str(value)
