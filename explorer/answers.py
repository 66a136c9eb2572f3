"""What the page asks of a run, and the bytes of the answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from vizpub.explorer import columns, facts, messages, one_message, one_peer, tables
from vizpub.explorer.changes import find_changes
from vizpub.explorer.history import History, OverlayPart
from vizpub.explorer.messages import MessageFilter, MessageOrder
from vizpub.explorer.packing import pack
from vizpub.explorer.places import places
from vizpub.explorer.tables import RowFilter
from vizpub.model.errors import OutOfRange, UseError
from vizpub.questions import frequent

JSON, ARRAYS = "application/json", "application/octet-stream"
Answer = tuple[str, bytes]
"""A media type, and the content."""


def describe_run(history: History, older: History | None = None) -> Answer:
    """The facts of the run; of one that has grown since it was `older`, without its names then."""
    return json_answer(facts.describe_run(history, older))


def overlay(history: History, chosen: OverlayPart, older: History | None = None) -> Answer:
    """`times` (ticks), and the periods of peers and pairs, in ranks among them; of a run that has
    grown since it was `older`, what has changed.
    """
    arrays = history.overlay(chosen)
    before = older.overlays.get(chosen) if older and "left_out" not in arrays else None
    changes = None if before is None else find_changes(before, arrays)
    return ARRAYS, pack({"changes": changes is not None}, changes or arrays)


def positions(history: History, layout: str) -> Answer:
    """`places`: x and y of each peer."""
    return ARRAYS, pack({}, {"places": places(history, layout).astype(np.float32).ravel()})


def block(history: History, name: str, number: int) -> Answer:
    """`values` of a column of peers, interval by interval, and the ends of each interval.

    Raises: UnknownName.
    """
    meta, arrays = columns.block(history.run, name, number)
    return ARRAYS, pack(meta, arrays | {"values": arrays["values"].astype(np.float32)})


def extent(history: History, name: str) -> Answer:
    """`low` and `high` of a column of peers in the whole run. Raises: UnknownName."""
    low, high = columns.extent(history.run, name)
    return json_answer({"low": low, "high": high})


def curve(history: History, name: str) -> Answer:
    """`values` of a column of the overlay, interval by interval. Raises: UnknownName."""
    return ARRAYS, pack({}, {"values": columns.curve(history.run, name)})


def peer(history: History, number: int, tick: int) -> Answer:
    """The facts of a peer at a time. Raises: OutOfRange."""
    run, checked_tick = history.run, history.run.clock.check_tick(tick)
    return json_answer(one_peer.describe_peer(run, _peer(history, number), checked_tick))


def peer_curves(history: History, number: int, names: Sequence[str]) -> Answer:
    """`values` of columns of one peer, interval by interval, one column after the other.

    Raises: OutOfRange, UnknownName.
    """
    values = columns.of_one(history.run, names, _peer(history, number))
    return ARRAYS, pack({}, {"values": values.ravel()})


def topic_curves(history: History, number: int, names: Sequence[str]) -> Answer:
    """`values` of columns of one topic, as of a peer. Raises: OutOfRange, UnknownName."""
    last = history.run.stored.rows("topics") - 1
    if not 0 <= number <= last:
        raise OutOfRange("topic", str(number), f"0 to {last}")
    values = columns.of_topic(history.run, names, number)
    return ARRAYS, pack({}, {"values": values.ravel()})


def link_curves(history: History, src: int, dst: int, names: Sequence[str]) -> Answer:
    """`values` of columns of the links between two peers, as of a peer.

    Raises: OutOfRange, UnknownName.
    """
    values = columns.of_link(history.run, names, _peer(history, src), _peer(history, dst))
    return ARRAYS, pack({}, {"values": values.ravel()})


def path(history: History, start: int, end: int, tick: int, chosen: OverlayPart) -> Answer:
    """`peers` of a shortest path along the links, by number; null where there is none, and `why` if
    that is because an end is not present.

    Raises: OutOfRange.
    """
    run, names = history.run, history.run.peers
    source, target = (names[_peer(history, number)] for number in (start, end))
    at = one_peer.time_text(run.clock, run.clock.check_tick(tick))
    try:
        paths = frequent.paths(run, (source, target), at, run.counted_layers(chosen.layers))
    except UseError as error:  # a peer is not present, which is an answer
        return json_answer({"peers": None, "why": str(error)})
    number = {name: place for place, name in enumerate(names)}
    peers = [number[name] for name in paths[0][1]] if paths else None
    return json_answer({"peers": peers, "why": None})


def messages_of(history: History, wanted: MessageFilter, order: MessageOrder) -> Answer:
    """A part of the messages: their `names`, and an array for each column.

    Raises: UnknownName, UseError.
    """
    return ARRAYS, pack(*messages.part(history.run, wanted, order))


def coverage(history: History, wanted: MessageFilter, along: str) -> Answer:
    """The share of eligible peers that messages reached. Raises: UnknownName, UseError."""
    return ARRAYS, pack(*messages.measure_coverage(history.run, wanted, along))


def message_spread(history: History, number: int) -> Answer:
    """The way of one message. Raises: OutOfRange, UseError where receptions are unknown."""
    checked = messages.check_message(history.run, number)
    return ARRAYS, pack(*one_message.describe_message(history.run, checked))


def missed_peers(history: History, number: int) -> Answer:
    """The peers that missed a message: `rows`; null where they are unknown, and `why`.

    Raises: OutOfRange.
    """
    checked = messages.check_message(history.run, number)
    try:
        return json_answer({"rows": one_message.missed_peers(history.run, checked), "why": None})
    except UseError as error:
        return json_answer({"rows": None, "why": str(error)})


def table_list(history: History) -> Answer:
    """The tables of the run, with their columns."""
    return json_answer(tables.describe_tables(history.run))


def table_rows(history: History, table: str, chosen: RowFilter, order: MessageOrder) -> Answer:
    """A part of the rows of a table. Raises: UnknownName, UseError."""
    return json_answer(tables.read_part(history.run, table, chosen, order))


def _peer(history: History, number: int) -> int:
    if not 0 <= number < history.size:
        raise OutOfRange("peer", str(number), f"0 to {history.size - 1}")
    return number


def json_answer(content: Any) -> Answer:
    """Facts as JSON. Raises: ValueError for NaN."""
    return JSON, json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
