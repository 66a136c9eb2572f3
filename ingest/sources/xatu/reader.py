"""Row groups of Xatu's tables → rows for the fold."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.ingest.inputs.reader import (
    InputRow,
    InputSplit,
    RecordRefused,
    RowKind,
    refusal_row,
    tally_row,
)
from vizpub.ingest.sources.libp2p.events import CONTROL_CHARACTER, EventType
from vizpub.ingest.sources.libp2p.facts import TraceJudge
from vizpub.ingest.sources.libp2p.fold import OF_ATTRIBUTES
from vizpub.ingest.sources.tables.row_groups import open_parquet, read_group
from vizpub.ingest.sources.xatu.tables import (
    ENTRIES,
    GRAFTED,
    LOCAL_KEYS,
    MESSAGE,
    NETWORK,
    OF_REMOTE,
    OF_SENTRY,
    SENTRY,
    SIZE,
    TABLES,
    TIME,
    TIME_OR_SECONDS,
    TOPIC_PARTS,
    UPDATED,
    WAYS,
    XatuEvent,
    XatuTable,
    XatuType,
    columns_read,
    table_of,
    wanted_type,
)
from vizpub.reports.fields import INT64

_NS = 1_000_000
"""Nanoseconds in the unit of times."""
_BEGINS = frozenset({EventType.STREAM_OPENED, XatuType.CONNECTED, EventType.JOIN})
_LATER: Mapping[int, int] = {
    **dict.fromkeys(_BEGINS, 0),
    EventType.DUPLICATE: 2,
    **dict.fromkeys((EventType.STREAM_CLOSED, XatuType.DISCONNECTED, EventType.LEAVE), 3),
}
"""The order of events of the same millisecond; 1 for all others."""
_OF_OTHERS = 4
_NEWEST = 1 << 33
_OF_TWO_PEERS = frozenset(
    {
        *(EventType.STREAM_OPENED, EventType.STREAM_CLOSED),
        *(XatuType.CONNECTED, XatuType.DISCONNECTED, XatuType.HEARTBEAT),
    }
)
_Values = Mapping[str, Any]
_Place = tuple[int, int, None]


@dataclass(frozen=True)
class TableReader:
    """Reads a row group of a table. Rows go to the fold of their sentry; those of a connection
    also to that of the other peer, to which go the attributes that they say of it.
    """

    judge: TraceJudge
    only: str | None = None
    """The network to read; null = all."""
    sentries: Mapping[str, str] = field(default_factory=dict)
    """The names of sentries by their keys."""

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split; the line of an event is its row number."""
        name = table_of(split.path) or ""
        tally, table = self.judge.tally(), TABLES[name]
        attributes_of_sentries = set[tuple[Any, ...]]()

        def check_rows(batch: pa.RecordBatch, first: int) -> Iterator[InputRow]:
            for number, values in enumerate(_rows_of(batch), first):
                network = str(values[NETWORK] or "")
                tally.networks[network] += 1
                if self.only not in (None, network):
                    continue
                tally.tables[name] = 1
                try:
                    event, rank = self._event(values, name, table)
                    self.judge.count(event, tally, split, number)
                except RecordRefused as reason:
                    text = json.dumps(values, ensure_ascii=False, default=str)
                    content = text.encode("utf-8", "replace")
                    yield refusal_row(split, number, str(reason), content)
                    continue
                place = split.file, number, None
                own = event.peer, *map(values.get, OF_SENTRY)
                if own not in attributes_of_sentries:
                    attributes_of_sentries.add(own)
                    at = event.peer, event.time, OF_ATTRIBUTES
                    record = _attributes(values, OF_SENTRY)
                    yield InputRow(RowKind.FURTHER, *at, *place, record)
                yield from _rows_of_event(event, rank, place)
                yield from self._rows_of_remote(event, values, place)

        with open_parquet(split.path) as parquet:
            columns = columns_read(parquet.schema_arrow, table)
            yield from read_group(split, parquet, check_rows, columns)
        yield tally_row(tally.plain)

    def _event(self, values: _Values, name: str, table: XatuTable) -> tuple[XatuEvent, int]:
        """Return the event of a row, and its rank. Raises: RecordRefused."""
        time, updated = values[TIME], values.get(UPDATED) or 0
        if time is None:
            raise RecordRefused(f"missing value: {TIME}")
        if not 0 <= time <= INT64 // _NS:
            raise RecordRefused(f"{TIME} is too far from 1970")
        event = XatuEvent(table.type, _text(values, SENTRY), time * _NS)
        if table.other:
            event.other = self._peer(values, table.other)
        if "topic" in table.names:
            event.topic = "/" + "/".join(_text(values, part) for part in TOPIC_PARTS)
        if "message" in table.names:
            event.message, event.bytes = _text(values, MESSAGE), values.get(SIZE) or None
        event.key = tuple(values[column] for column in table.key)
        if name in WAYS:
            event.kind, event.rpc = name, values["unique_key"]
        elif name in ENTRIES:
            event.kind, event.rpc = _kind(values, ENTRIES[name]), values["rpc_meta_unique_key"]
            event.offers = values.get(GRAFTED) is not None
        elif "opened" in table.key:
            event.opened = (values["opened"] or 0) // 1000 or None
        elif age := values.get("connection_age_ms"):
            event.opened = (time - age) // 1000
        return event, _LATER.get(table.type, 1) * _NEWEST + _NEWEST - 1 - updated // 1000

    def _rows_of_remote(
        self, event: XatuEvent, values: _Values, place: _Place
    ) -> Iterator[InputRow]:
        """Yield the attributes of the other peer; a sentry tells its own."""
        attributes = _attributes(values, OF_REMOTE)
        if attributes != b"{}" and event.other not in self.sentries.values():
            at = event.other, event.time, OF_ATTRIBUTES
            yield InputRow(RowKind.FURTHER, *at, *place, attributes)

    def _peer(self, values: _Values, column: str) -> str:
        if not (key := values[column]):
            raise RecordRefused(f"missing value: {column}")
        return self.sentries.get(str(key), str(key))


@dataclass(frozen=True)
class KeyReader:
    """Reads the keys of sentries from the tables that have them, into tallies."""

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield a tally: the names of sentries by each key."""
        names = defaultdict[str, Counter[str]](Counter)

        def count_rows(batch: pa.RecordBatch, first: int) -> Iterator[InputRow]:
            del first
            for values in _rows_of(batch):
                key = next(values[column] for column in LOCAL_KEYS if column in values)
                if key and values[SENTRY]:
                    names[str(key)][values[SENTRY]] += 1
            return iter(())

        if TABLES[table_of(split.path) or ""].other is None:
            with open_parquet(split.path) as parquet:
                columns = {SENTRY, *LOCAL_KEYS} & set(parquet.schema_arrow.names)
                yield from read_group(split, parquet, count_rows, sorted(columns))
        yield tally_row(names)


def _rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows: times in milliseconds, texts that are not UTF-8 as bytes."""
    names = batch.schema.names
    columns = [_plain_values(_in_ms(name, batch[name])) for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _in_ms(name: str, column: pa.Array) -> pa.Array:
    is_in_seconds = wanted_type(name) == TIME_OR_SECONDS and pa.types.is_integer(column.type)
    return pc.multiply(column.cast(pa.int64()), 1000) if is_in_seconds else column


def _plain_values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_dictionary(kind):
        return _plain_values(column.dictionary_decode())
    values: list[Any] = column.to_pylist()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [_decode(value) for value in values]
    return values


def _decode(value: bytes | None) -> str | bytes | None:
    try:
        return value and value.decode()
    except UnicodeDecodeError:
        return value


def _text(values: _Values, name: str) -> str:
    value = values[name]
    if not value:
        raise RecordRefused(f"missing value: {name}")
    if isinstance(value, bytes):
        raise RecordRefused(f"not UTF-8: {name}")
    if CONTROL_CHARACTER.search(value):
        raise RecordRefused(f"control character in {name}")
    return str(value)


def _kind(values: _Values, kind: str) -> str:
    if kind != "subscribe" or values["subscribe"]:
        return kind
    if values["subscribe"] is None:
        raise RecordRefused("missing value: subscribe")
    return "unsubscribe"


def _attributes(values: _Values, keys: Mapping[str, str]) -> bytes:
    """Return JSON of the attributes in a row; those with an empty text are unknown."""
    given = {key: values[column] for column, key in keys.items() if values.get(column)}
    return msgspec.json.encode(
        {
            key: " ".join(sorted(map(str, value))) if isinstance(value, list) else str(value)
            for key, value in given.items()
            if not isinstance(value, bytes)
        }
    )


def _rows_of_event(event: XatuEvent, rank: int, place: _Place) -> Iterator[InputRow]:
    record = msgspec.msgpack.encode(event)
    yield InputRow(RowKind.RECORD, event.peer, event.time, rank, *place, record)
    if event.type in _OF_TWO_PEERS and event.other != event.peer:
        later = rank + _OF_OTHERS * _NEWEST
        yield InputRow(RowKind.FURTHER, event.other, event.time, later, *place, record)
