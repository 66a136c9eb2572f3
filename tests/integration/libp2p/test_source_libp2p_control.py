"""Control messages by kind in the recorded gossipsub trace, against its raw lines and its facts."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from base58 import b58encode

from vizpub.model.columns import CONTROL_COLUMNS

pytestmark = pytest.mark.spark

WAYS = {"sendRPC": "sent", "recvRPC": "received", "dropRPC": "dropped"}
IDS = {"ihave": "messageIDs", "iwant": "messageIDs", "idontwant": "messageIDs", "prune": "peers"}
Row = dict[str, Any]


def raw_rpcs(data: Path) -> Iterator[tuple[str, int, str, Row]]:
    """Peer, Unix time in ns, direction and content of each RPC, as the lines have them."""
    for path in (data / "json").iterdir():
        for line in gzip.decompress(path.read_bytes()).splitlines():
            event = json.loads(line)
            for name, way in WAYS.items():
                if name in event:
                    peer = b58encode(b64decode(event["peerID"])).decode()
                    yield peer, event["timestamp"], way, event[name].get("meta", {})


def entries_of(meta: Row) -> Iterator[tuple[str, Row]]:
    for entry in meta.get("subscription", ()):
        yield "subscribe" if entry["subscribe"] else "unsubscribe", entry
    for kind, entries in meta.get("control", {}).items():
        yield from ((kind, entry) for entry in entries)


def is_naming(column: str, kind: str) -> bool:
    """True for ids of a kind that names some; a trace has no bytes."""
    return column.startswith("ids") and kind in IDS


def test_control_by_kind_equals_the_raw_lines(as_json: Any, data: Path) -> None:
    counts: dict[tuple[Any, ...], Counter[str]] = {}
    for peer, time, way, meta in raw_rpcs(data):
        for kind, entry in entries_of(meta):
            of = peer, (time // 1000 - 946_684_800_000_000) // 1_000_000, kind, entry.get("topic")
            ids = len(entry.get(IDS.get(kind, ""), ()))
            counts.setdefault(of, Counter()).update({f"messages_{way}": 1, f"ids_{way}": ids})
    expected = {
        of: {
            name: sums[name] if name.startswith("messages") or is_naming(name, of[2]) else None
            for name in CONTROL_COLUMNS
        }
        for of, sums in counts.items()
    }
    found = {
        (row["peer"], row["interval"], row["kind"], row["topic"]): {
            name: row[name] for name in CONTROL_COLUMNS
        }
        for row in as_json.control
    }
    assert found == expected
    assert len(found) == len(as_json.control)


def test_control_by_kind_equals_the_facts(as_json: Any, facts: Any) -> None:
    found: Counter[str] = Counter()
    for row in as_json.control:
        kind = "subscription" if "subscribe" in row["kind"] else row["kind"]
        for rpc, way in WAYS.items():
            found[f"{rpc}.{kind}"] += row[f"messages_{way}"]
            found[f"{rpc}.{kind}.ids"] += row[f"ids_{way}"] or 0
    entries = {name: n for name, n in facts["rpc_meta"].items() if not name.endswith(".messages")}
    assert {name: found[name] for name in entries} == entries


@pytest.mark.parametrize("way", ["sent", "received"])
def test_kinds_of_a_peer_add_up_to_its_control_messages(as_json: Any, way: str) -> None:
    found: Counter[tuple[str, int]] = Counter()
    for row in as_json.control:
        found[row["peer"], row["interval"]] += row[f"messages_{way}"]
    assert {of: n for of, n in found.items() if n} == {
        (row["peer"], row["interval"]): n
        for row in as_json.traffic
        if (n := row[f"control_messages_{way}"])
    }
