"""A small run as reports that use every field of the contract, and the same with fields left out.
All peers, topics and messages are named in several fields, so leaving one out loses no name."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vizpub.model.run import DUPLICATES

Record = dict[str, Any]

PEERS = ("ann", "bob", "cem", "dia", "eve", "fay")
TOPICS = ("art", "law", "sea")
MESSAGES = tuple(f"m{number}" for number in range(5))
INTERVALS = 5
_US = 1_000_000
_SIZE = 100
_LEAVES = ("eve", 4)
"""Peers that are gone, and since when."""


def reports(seed: int = 5) -> list[Record]:
    """A header, and a report of each peer and interval."""
    random_ = random.Random(seed)
    state = {
        (peer, interval): _state(random_, number, peer, interval)
        for interval in range(INTERVALS)
        for number, peer in enumerate(PEERS)
        if (peer, interval) < _LEAVES or peer != _LEAVES[0]
    }
    for number, message in enumerate(MESSAGES):
        _spread(random_, message, number, state)
    had: set[tuple[str, str]] = set()
    for report in state.values():
        _count(random_, report, had)
    header = {"format": "vizpub.run/1", "run": "whole", "interval_us": _US, "seed": seed}
    return [header, *state.values()]


def _state(random_: random.Random, number: int, peer: str, interval: int) -> Record:
    """The state of a peer at an interval's end. All topics are reported from the start on, as
    topics and as what links and roles serve."""
    others = [other for other in PEERS if other != peer]
    neighbors: list[Any] = [PEERS[(number + 1) % len(PEERS)], *random_.sample(others, 1)]
    topic = TOPICS[(number + interval) % len(TOPICS)]
    neighbors.append({"peer": random_.choice(others), "layer": "mesh", "topic": topic})
    if number:
        parent = PEERS[(number - 1) // 2]
        neighbors.append({"peer": parent, "layer": "tree", "topic": TOPICS[0]})
    return {
        "format": "vizpub.report/1",
        "peer": peer,
        "interval": interval,
        "neighbors": [n for k, n in enumerate(neighbors) if n not in neighbors[:k]],
        "topics": [t for k, t in enumerate(TOPICS) if (number + interval // 2 + k) % 3],
        "roles": [
            {"role": "rendezvous", "topic": topic}
            for topic, of in zip(TOPICS, PEERS, strict=False)
            if of == peer
        ],
        "sent": [],
        "received": [],
    }


def _spread(
    random_: random.Random, message: str, number: int, state: dict[tuple[str, int], Record]
) -> None:
    """A message from peer to peer: one is left out, the others receive it once and some again, and
    the last one receives it in the next interval."""
    interval, topic = min(number, INTERVALS - 2), TOPICS[number % len(TOPICS)]
    there = [peer for peer in PEERS if (peer, interval + 1) in state]
    publisher, *others = random_.sample(there, len(there) - 1)
    published = interval * _US + 1_000 + number
    hops, since = {publisher: 0}, {publisher: published}
    copies = []
    for place, peer in enumerate(others):
        sender = random_.choice([*hops])
        late = place == len(others) - 1
        at = (interval + 1) * _US + 5 if late else since[sender] + 100 + place
        hops[peer], since[peer] = hops[sender] + 1, at
        copies.append((sender, peer, at))
    again = [(a, b) for a in hops for b in hops if a != b and since[a] < published + 10_000]
    for sender, peer in random_.sample(again, 3):
        at = max(since[sender], since[peer]) + 1_000
        copies.append((sender, peer, at))
    told = {"message": message, "topic": topic, "publisher": publisher, "bytes": _SIZE}
    to: dict[tuple[str, int], list[str]] = defaultdict(list)
    to[publisher, interval] = []
    for sender, peer, at in sorted(copies, key=lambda copy: copy[2]):
        to[sender, at // _US].append(peer)
        arrival = {**told, "from": sender, "hops": hops[sender] + 1, "time_us": at}
        report = state[peer, at // _US]
        arrival["subscribed"] = topic in _subscribed_before(state, peer, at // _US)
        report["received"].append(arrival)
    for (sender, at), receivers in to.items():
        copy = {**told, "to": receivers, "hops": hops[sender], "time_us": since[sender]}
        state[sender, at]["sent"].append(copy)


def _subscribed_before(state: dict[tuple[str, int], Record], peer: str, at: int) -> list[str]:
    """Its subscriptions at an interval's beginning, even if it is gone at the end."""
    topics: list[str] = state[peer, max(at - 1, 0)]["topics"]
    return topics


def _count(random_: random.Random, report: Record, had: set[tuple[str, str]]) -> None:
    """Counters that agree with the events."""
    report["received"].sort(key=lambda arrival: arrival["time_us"])
    report["duplicates"] = sum(
        not _is_first(report, arrival, had) for arrival in report["received"]
    )
    sent, got = sum(len(copy["to"]) for copy in report["sent"]), len(report["received"])
    control = [random_.randint(1, 9) for _ in "sr"]
    for kind, (out, in_) in (("control", control), ("publication", (sent, got))):
        report[kind] = {
            "sent": {"messages": out, "bytes": out * _SIZE},
            "received": {"messages": in_, "bytes": in_ * _SIZE},
        }
    out, in_ = control
    report["control_kinds"] = [
        {"kind": "ihave", "topic": TOPICS[out % len(TOPICS)], "messages_sent": out, "ids_sent": 3},
        {
            "kind": "iwant",
            "messages_received": in_,
            "ids_received": in_,
            "messages_dropped": 0,
            "bytes_received": in_ * _SIZE,
        },
    ]


def _is_first(report: Record, arrival: Record, had: set[tuple[str, str]]) -> bool:
    pair = (report["peer"], arrival["message"])
    is_first = pair not in had and arrival["publisher"] != report["peer"]
    had.add(pair)
    return is_first


def first_ones(records: list[Record]) -> list[Record]:
    """The same with only the first arrivals; the peers count the others."""
    had: set[tuple[str, str]] = set()
    header, *rest = records
    found = [{**header, "unknown": [DUPLICATES]}]
    for report in rest:
        first = [arrival for arrival in report["received"] if _is_first(report, arrival, had)]
        found.append({**report, "received": first})
    return found


def without(*names: str) -> Callable[[list[Record]], list[Record]]:
    """Leaves fields out: `topics`, `control.bytes`, of each entry of a list `received.hops`."""

    def left_out(records: list[Record]) -> list[Record]:
        records = json.loads(json.dumps(records))
        for record in records[1:]:
            for name in names:
                _leave_out(record, name.split("."))
        return records

    return left_out


def _leave_out(record: Record, path: list[str]) -> None:
    first, *rest = path
    if not rest:
        record.pop(first, None)
        return
    below = record.get(first)
    for entry in below if isinstance(below, list) else (below or {}).values():
        entry.pop(rest[0], None)


def written(records: Iterable[Record], file: Path) -> Path:
    """As lines of JSON."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file
