"""The source: traces of ethp2p's simulator, which netviz plays (bctrace).

A file begins with a header, `{"v": 1, "t0": "2026-03-28T00:00:00Z", "nodes": ["n0", …],
"topology": {"nodes": [{"num": 0, "upload_bw_mbps": 50, …}], …}, "peer_ids": ["12D3…", …]}`, and may
end with a footer, `{"end": true, …}`. Lines between are events, `[µs since t0, node, code, …]`: of
GossipSub, as a tracer of go-libp2p-pubsub reports them, or of ethp2p's own sessions. They are
folded like traces of go-libp2p-pubsub; what they lack is unknown. Parts of messages become gauges.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
from base58 import b58decode

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import (
    InputLine,
    InputRow,
    InputSplit,
    RecordRefused,
    RowKind,
    SplitReader,
    line_splits,
    lines,
    parse_object,
    rows_of_lines,
    tally_row,
)
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
    first_lines,
    or_none,
)
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.sources.libp2p.events import EventType, TraceEvent, rows_of_event
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.ingest.sources.libp2p.fold import OF_ATTRIBUTES, AttributedFold, limit_interval
from vizpub.ingest.sources.libp2p.interop import parse_time
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.tasks.fold import RunCounts, count_name
from vizpub.model.clock import OPEN
from vizpub.model.run import DUPLICATES
from vizpub.reports.fields import INT32, INT64, Key

NO_HEADER = "its file has no header that can be read"
UNLISTED = "peers that the header does not list"

_TABLES = {**AttributedFold.tables, "presence": OBSERVED["presence"]}
_ETHP2P = "ethp2p"
_KEYS = {"v", "nodes", "topology"}
_FIRST_DAY_NS = 86_400 * 10**9
_PUBLISHER = 0
"""The role of a session's peer that publishes."""
_HEARD, _PART = 1, 2
"""The ranks of another peer's subscription, after own events of the same time, and of a part."""
_NO_TYPE = -1
"""The type of parts, which are no events of GossipSub."""
_FIELDS: Mapping[str, tuple[EventType, tuple[str, ...]]] = {
    "pa": (EventType.STREAM_OPENED, ("other", "proto")),
    "pg": (EventType.STREAM_CLOSED, ("other",)),
    "tj": (EventType.JOIN, ("topic",)),
    "tl": (EventType.LEAVE, ("topic",)),
    "mg": (EventType.GRAFT, ("other", "topic")),
    "mp": (EventType.PRUNE, ("other", "topic")),
    "pb": (EventType.PUBLISH, ("topic", "message")),
    "dl": (EventType.DELIVER, ("other", "topic", "message")),
    "du": (EventType.DUPLICATE, ("other", "topic", "message")),
    "rj": (EventType.REJECT, ("other", "topic", "message", "reason")),
    # ethp2p: peers that shook hands or (un)subscribed, and sessions started or decoded.
    "ph": (EventType.STREAM_OPENED, ("other",)),
    "ps": (EventType.JOIN, ("other", "topic")),
    "pu": (EventType.LEAVE, ("other", "topic")),
    "ss": (EventType.PUBLISH, ("topic", "message")),
    "sd": (EventType.DELIVER, ("topic", "message")),
}
"""The type of an event by its code, and what its fields from the fourth on are."""
_NOT_READ = frozenset(
    ("va", "ud", "ms", "hs", "hr", "ws", "wr", "ns", "nr", "sx", "ce", "ru", "po", "sp")
)
"""Codes of validation, of messages sent, of control entries, and of a session's progress."""
_VERDICTS = (
    *("parts_useful", "parts_redundant", "parts_late", "parts_late"),
    *("parts_invalid", "parts_pending"),
)
"""The gauge of a part by the receiver's verdict: accepted, redundant, decoding (it came while the
message was decoded), surplus (after that), invalid, pending.
"""
_BYTES_SENT = "part_bytes_sent"
_GAUGES = (*dict.fromkeys(_VERDICTS), _BYTES_SENT)
_OF_PARTS = {"cr": "its verdict is not one of 0 to 5", "cs": "its bytes are no number"}
"""Codes of parts that a peer receives and sends, and why one is refused for its last field."""
PARTS = "parts of messages"
_MAY_LACK = {
    "other": frozenset({"dl", "du", "rj"}),
    "topic": _FIELDS.keys() - {"tj", "tl", "ps", "pu"},
    "reason": {"rj"},
    "proto": {"pa"},
}
"""The codes of events without which a field is valid."""
_PEER_NUMBER = re.compile(r"[A-Za-z](\d+)", re.ASCII)
_ATTRIBUTES = ("upload_bw_mbps", "download_bw_mbps", "country")
_NAME = Key()


class _Part(TraceEvent, array_like=True, gc=False):
    """A part of a message that the peer received or sent, as what it adds to gauges."""

    counts: dict[str, int] = msgspec.field(default_factory=dict)


class _TraceFold(AttributedFold):
    """A fold that also takes the nodes of headers, and parts of messages."""

    tables = _TABLES

    def begin(self, key: str) -> None:
        """Start a peer."""
        super().begin(key)
        self._parts, self._interval = Counter[str](), 0

    def take(self, row: InputRow) -> None:
        """Take a node, a part, or the next event of the peer."""
        if row.rank == _PART:
            self._add_part(row)
            return
        super().take(row)
        if row.rank == OF_ATTRIBUTES:
            self.rows["presence"].append((row.peer, 0, OPEN))

    def _add_part(self, row: InputRow) -> None:
        interval = limit_interval((row.time // 1000 - self.epoch_us) // self._interval_us)
        if interval != self._interval:
            self._write_parts()
            self._interval = interval
        self._parts.update(msgspec.msgpack.decode(row.record))

    def _write_parts(self) -> None:
        """Write the gauges of the interval, none without a part."""
        if self._parts:
            of = self._peer.name, self._interval
            self.rows["gauges"] += ((*of, name, float(self._parts[name])) for name in _GAUGES)
            self._parts.clear()

    def end(self) -> None:
        """Write the open state of the peer."""
        super().end()
        self._write_parts()


class Bctrace(Libp2p):
    """The source `bctrace`: a Libp2p whose reader takes traces of all nodes, with a header."""

    name = "bctrace"
    names_messages = False
    fold = _TraceFold
    tables = _TABLES
    options = frozenset({"interval_us", "max_line"})
    unknown = (
        "traffic (what was sent and the entries of control messages are not read)",
        PARTS,
    )

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'bctrace' for a file that begins with a header."""
        header = or_none(msgspec.json.decode, first_lines(head)[0])
        return "bctrace" if isinstance(header, dict) and header.keys() >= _KEYS else None

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return ranges of lines."""
        return line_splits(files)

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of traces."""
        return _TraceReader(TraceJudge.of(source_input), source_input.options.max_line)

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe the run like Libp2p; sessions of ethp2p tell neither duplicates nor refusals.
        Traces that do not know when they began give 1970.
        """
        description = super().describe(counted, options)
        if counted["first"] < _FIRST_DAY_NS:
            description = replace(description, epoch=None)
        if counted["tables"]:
            known = tuple(name for name in description.unknown if name != PARTS)
            description = replace(description, unknown=known)
        if _ETHP2P not in counted["protocols"]:
            return description
        unknown = (*description.unknown, DUPLICATES, "rejections")
        return replace(description, protocol=_ETHP2P, parameters={}, unknown=unknown)

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of Libp2p without traffic; the nodes of the header are present all
        along.
        """
        return replace(
            super().observe(run, options),
            peers="SELECT peer AS name FROM whole.presence",
            presence="FROM folded.presence",
            attributes="FROM folded.attributes",
            traffic=None,
            control=None,
            gauges="FROM folded.gauges" if TraceTally.of(run.totals).tables else None,
            functions=(),
        )


class _Header(NamedTuple):
    """The header of a trace."""

    t0: int
    """Nanoseconds of Unix time."""
    nodes: Sequence[str]
    peers: Mapping[str, str]
    """The node of each form in which events write a peer."""
    attributes: Sequence[Mapping[str, str]]
    """By node."""

    @classmethod
    def parse(cls, text: bytes) -> _Header:
        """Parse the first line of a file. Raises: RecordRefused."""
        values = parse_object(text)
        nodes, ids = values.get("nodes"), values.get("peer_ids") or []
        for key, names in (("nodes", nodes), ("peer_ids", ids)):
            if not isinstance(names, list) or any([*_NAME.problems(n, key)] for n in names):
                raise RecordRefused(f"{key} is not a list of names")
        if values.get("v") != 1 or not nodes:
            raise RecordRefused("not a trace of version 1 with nodes")
        if len(set(nodes)) < len(nodes) or len(ids) not in (0, len(nodes)):
            raise RecordRefused("nodes have the same name, or peer_ids are not one for each")
        t0 = 0 if values.get("t0") is None else parse_time(str(values["t0"]))
        attributes = _read_topology(values.get("topology"), len(nodes))
        for node, peer_id in enumerate(ids):
            if peer_id != nodes[node]:
                attributes[node]["peer_id"] = peer_id
        return cls(t0, nodes, _name_forms(nodes, ids), attributes)


def _read_topology(topology: Any, nodes: int) -> list[dict[str, str]]:
    """Return the attributes of each node: bandwidths in Mbit/s, and the country. 0 and '' are
    unknown, as in a topology that is only a list of edges.
    """
    attributes: list[dict[str, str]] = [{} for _ in range(nodes)]
    facts = topology.get("nodes") if isinstance(topology, dict) else None
    for fact in facts if isinstance(facts, list) else ():
        number = fact.get("num") if isinstance(fact, dict) else None
        if type(number) is int and 0 <= number < nodes:
            known = {key: str(fact.get(key) or "") for key in _ATTRIBUTES}
            attributes[number] |= {k: v for k, v in known.items() if not [*_NAME.problems(v, k)]}
    return attributes


def _name_forms(nodes: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """Return the node of each form of a peer: '7' for 'n7', its name, its id, and the bytes of its
    id as if they were text, which ethp2p also writes. A form of several nodes is left out.
    """
    numbered = {match[1]: name for name in nodes if (match := _PEER_NUMBER.fullmatch(name))}
    named_ids = dict(zip(ids, nodes, strict=False))
    texts = {id_: or_none(_text_of_bytes, id_) for id_ in ids}
    counts = Counter(texts.values())
    forms = {form: named_ids[id_] for id_, form in texts.items() if form and counts[form] == 1}
    return forms | numbered | dict(zip(nodes, nodes, strict=True)) | named_ids


def _text_of_bytes(peer_id: str) -> str:
    """Return the bytes of an id as Go writes text in JSON: each that is not UTF-8 as U+FFFD."""
    text = b58decode(peer_id).decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", "\ufffd", text)


@dataclass(frozen=True)
class _TraceReader:
    """Reads traces into events like those of vizpub.ingest.sources.libp2p.reader."""

    judge: TraceJudge
    max_line: int | None = None

    def __call__(self, split: InputSplit) -> Iterator[InputRow]:
        """Yield the rows of a split; a range of lines is read with the header of its file."""
        tally = self.judge.tally()
        first = next(lines(split._replace(start=0, stop=None, line=1), self.max_line), None)
        header = None if first is None or first.fault else or_none(_Header.parse, first.text)

        def rows_of(line: InputLine) -> Iterator[InputRow]:
            if line.number == 1:
                yield from _rows_of_nodes(_Header.parse(line.text), split)
                return
            if header is None:
                raise RecordRefused(NO_HEADER)
            for event in _read_events(line.text, header, tally):
                self.judge.count(event, tally, split, line.number)
                yield from _rows_of_event(event, split.file, line.number)

        yield from rows_of_lines(split, self.max_line, rows_of)
        yield tally_row(tally.plain)


def _rows_of_nodes(header: _Header, split: InputSplit) -> Iterator[InputRow]:
    for name, attributes in zip(header.nodes, header.attributes, strict=True):
        record, place = msgspec.json.encode(attributes), (split.file, 1, None)
        yield InputRow(RowKind.RECORD, name, header.t0, OF_ATTRIBUTES, *place, record)


def _rows_of_event(event: TraceEvent, file: int, line: int) -> Iterator[InputRow]:
    """Yield the rows of an event; a subscription that names a peer is of that one."""
    place = file, line, None
    if isinstance(event, _Part):
        record = msgspec.msgpack.encode(event.counts)
        yield InputRow(RowKind.RECORD, event.peer, event.time, _PART, *place, record)
    elif event.type in (EventType.JOIN, EventType.LEAVE) and event.other is not None:
        record = msgspec.msgpack.encode(event)
        yield InputRow(RowKind.RECORD, event.other, event.time, _HEARD, *place, record)
    else:
        yield from rows_of_event(event, file, line)


def _read_events(text: bytes, header: _Header, tally: TraceTally) -> Iterator[TraceEvent]:
    """Yield the events of a line; a footer has none. Raises: RecordRefused."""
    try:
        event = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordRefused("not JSON") from error
    if isinstance(event, dict) and event.get("end") is True:
        return
    if not isinstance(event, list) or len(event) < 3 or not isinstance(event[2], str):
        raise RecordRefused("not an event: [time, node, code, …]")
    code, is_other_role = event[2], event[2] == "ss" and event[5:6] != [_PUBLISHER]
    if code in _OF_PARTS or (code in _FIELDS and not is_other_role):
        yield from _make_events(event, header, tally)
    elif code not in _FIELDS and code not in _NOT_READ:
        count_name(tally.unknown, f"events '{code[:50]}'")


def _make_events(event: Sequence[Any], header: _Header, tally: TraceTally) -> Iterator[TraceEvent]:
    """Yield an event, and the subscriptions in a handshake. Raises: RecordRefused."""
    time_us, node, code = event[:3]
    if type(time_us) is not int or not 0 <= header.t0 + 1000 * time_us <= INT64:
        raise RecordRefused("its time is not a number of µs, or is too far from t0")
    if type(node) is not int or not 0 <= node < len(header.nodes):
        raise RecordRefused("no node of this number")
    peer, time = header.nodes[node], header.t0 + 1000 * time_us
    if code in _OF_PARTS:
        yield _read_part(event, peer, time)
        count_name(tally.tables, PARTS)
        return
    kind, names = _FIELDS[code]
    values = dict(zip(names, event[3:], strict=False))
    read: dict[str, Any] = {
        name: _read_field(name, code, values.get(name), header, tally) for name in names
    }
    if code in ("ss", "sd", "ph"):
        read["proto"] = _ETHP2P
    if code == "pb" and len(event) > 5:
        read["bytes"] = _read_size(event[5])
    yield TraceEvent(kind, peer, time, **read)
    if code == "ph" and isinstance(topics := event[5:6] and event[5], list):
        for topic in topics:
            of_topic = _read_field("topic", "ps", topic, header, tally)
            yield TraceEvent(EventType.JOIN, peer, time, read["other"], of_topic)


def _read_size(size: Any) -> int | None:
    """Return the bytes of a message; null and 0 are unknown. Raises: RecordRefused."""
    if size is not None and (type(size) is not int or not 0 <= size <= INT64):
        raise RecordRefused(_OF_PARTS["cs"])
    return size or None


def _read_part(event: Sequence[Any], peer: str, time: int) -> _Part:
    """Read a part of a message. Raises: RecordRefused."""
    code, value = event[2], event[6] if len(event) > 6 else None
    most = INT32 if code == "cs" else len(_VERDICTS) - 1
    if type(value) is not int or not 0 <= value <= most:
        raise RecordRefused(_OF_PARTS[code])
    counts = {_BYTES_SENT: value} if code == "cs" else {_VERDICTS[value]: 1}
    return _Part(_NO_TYPE, peer, time, proto=_ETHP2P, counts=counts)


def _read_field(name: str, code: str, value: Any, header: _Header, tally: TraceTally) -> str | None:
    """Return the value of a field, and the node of a peer. Raises: RecordRefused."""
    may_lack = code in _MAY_LACK.get(name, ())
    if value is None and may_lack:
        return None
    if name == "other":
        if (peer := header.peers.get(value) if isinstance(value, str) else None) is None:
            if not may_lack:
                raise RecordRefused("the header lists no such peer")
            count_name(tally.unknown, UNLISTED)
        return peer
    for problem in _NAME.problems(value, name):
        raise RecordRefused(problem)
    return str(value)
