"""One trace, four ways: JSON per peer, protobuf, the old spelling, one peer alone."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.words import naming
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.libp2p.events import EventType
from vizpub.ingest.sources.libp2p.facts import SAME_EVENTS
from vizpub.model.clock import OPEN
from vizpub.model.errors import InputError
from vizpub.model.tables import COPY_FLAGS

pytestmark = pytest.mark.spark

ALONE = "12D3KooWG3Bn8FmY7KHjxFdLRDP9c2fyTrDSnwA7XRAuDvkAMtgJ"
TABLES = (
    *("peers", "presence", "links", "subscriptions"),
    *("traffic", "control", "publications", "receptions", "rejections"),
)


def as_set(rows: list[dict[str, Any]], *without: str) -> Counter[Any]:
    """Rows without their order, and without some columns."""
    return Counter(
        tuple(
            (k, v) for k, v in sorted(row.items()) if k not in without and not isinstance(v, dict)
        )
        for row in rows
    )


@pytest.fixture(scope="module")
def as_protobuf(ingest: Any, libp2p_small: Path) -> Any:
    return ingest([libp2p_small / "trace.pb.gz"])


@pytest.fixture(scope="module")
def old_spelling(ingest: Any, libp2p_small: Path) -> Any:
    return ingest([libp2p_small / "trace2json_v0.4_spelling.ndjson.gz"])


@pytest.fixture(scope="module")
def alone(ingest: Any, libp2p_small: Path) -> Any:
    return ingest([libp2p_small / f"one_node.{ALONE}.pb"])


def test_protobuf_events_equal_those_of_json(as_protobuf: Any, as_json: Any) -> None:
    assert as_set(as_protobuf.events, "file", "position") == as_set(
        as_json.events, "file", "position"
    )
    assert as_protobuf.description == as_json.description
    assert as_protobuf.quarantine == []


FLAGS = tuple(flag.name for flag in COPY_FLAGS)
"""Unknown where IDONTWANT and senders are left out."""


@pytest.mark.parametrize("table", TABLES)
def test_protobuf_table_equals_that_of_json(as_protobuf: Any, as_json: Any, table: str) -> None:
    assert as_set(getattr(as_protobuf, table)) == as_set(getattr(as_json, table))


@pytest.mark.parametrize("table", sorted({*TABLES} - {"receptions", "traffic", "control"}))
def test_old_spelling_table_equals_that_of_json(
    old_spelling: Any, as_json: Any, table: str
) -> None:
    assert as_set(getattr(old_spelling, table)) == as_set(getattr(as_json, table))


def test_old_spelling_has_no_previous_hops_and_says_so(old_spelling: Any, as_json: Any) -> None:
    unknown = old_spelling.description.unknown
    assert any("hops" in words and "tree" in words for words in unknown)
    assert any("IDONTWANT" in words and "lower bound" in words for words in unknown)
    firsts = [row for row in old_spelling.receptions if row["first"]]
    assert len(firsts) == 784
    assert {row["previous_hop"] for row in firsts} == {None}
    again = [row for row in old_spelling.receptions if not row["first"]]
    repeated = [row for row in as_json.receptions if not row["first"]]
    assert as_set(again, *FLAGS) == as_set(repeated, *FLAGS)
    assert not {*FLAGS} & again[0].keys()


def test_old_spelling_receptions_equal_json_but_for_previous_hops(
    old_spelling: Any, as_json: Any
) -> None:
    """So the hit ratio stays what it was."""
    unknown = ("previous_hop", *FLAGS)
    assert as_set(old_spelling.receptions, *unknown) == as_set(as_json.receptions, *unknown)


def test_old_spelling_traffic_lacks_idontwant_alone(
    old_spelling: Any, as_json: Any, facts: Any
) -> None:
    for way, rpc in (("sent", "sendRPC"), ("received", "recvRPC")):
        name = f"control_messages_{way}"
        lost = sum(row[name] for row in as_json.traffic)
        lost -= sum(row[name] for row in old_spelling.traffic)
        assert lost == facts["rpc_meta"][f"{rpc}.idontwant"] == 793
    columns = ("control_messages_sent", "control_messages_received")
    assert as_set(old_spelling.traffic, *columns) == as_set(as_json.traffic, *columns)
    others = [row for row in as_json.control if row["kind"] != "idontwant"]
    assert as_set(old_spelling.control) == as_set(others)


def test_single_peer_protobuf_equals_its_json(alone: Any, ingest: Any, libp2p_small: Path) -> None:
    text = ingest([libp2p_small / "json" / f"{ALONE}.ndjson.gz"])
    assert len(text.events) == 208
    assert as_set(alone.events, "file") == as_set(text.events, "file")
    for table in TABLES:
        assert as_set(getattr(alone, table)) == as_set(getattr(text, table)), table


def test_single_peer_trace_equals_its_part_of_the_whole(alone: Any, as_json: Any) -> None:
    """With a clock of its own: its first event is 4 s after the network's."""
    (me,) = (row["name"] for row in alone.peers)
    later = 4_000_000
    assert alone.description.epoch == "2000-01-01T00:00:04Z"
    for table, owner in (("links", "src"), ("subscriptions", "peer")):
        mine = [row for row in getattr(as_json, table) if row[owner] == me]
        shifted = [
            row
            | {
                "valid_from": row["valid_from"] - later,
                "valid_to": row["valid_to"] - (row["valid_to"] != OPEN) * later,
            }
            for row in mine
        ]
        assert as_set(getattr(alone, table)) == as_set(shifted), table
    clocks = ("time_us", "tick", "interval")
    mine = [row for row in as_json.receptions if row["peer"] == me]
    assert as_set(alone.receptions, *clocks) == as_set(mine, *clocks)
    assert alone.publications == []


def test_other_peers_are_present_during_streams_of_single_peer(alone: Any) -> None:
    (me,) = (row["name"] for row in alone.peers)
    streams = [row for row in alone.links if row["layer"] == "streams"]
    assert as_set([row for row in alone.presence if row["peer"] != me]) == as_set(
        [
            {"peer": row["dst"], "valid_from": row["valid_from"], "valid_to": row["valid_to"]}
            for row in streams
        ]
    )
    assert alone.alive("presence", 0) == []
    (own,) = (row for row in alone.presence if row["peer"] == me)
    assert own["valid_to"] == OPEN
    assert {row["peer"] for row in alone.traffic} == {me}


def test_reporters_only_keeps_reporters_and_all_receptions(
    ingest: Any, libp2p_small: Path, alone: Any
) -> None:
    options = SourceOptions(reporters_only=True)
    path = libp2p_small / f"one_node.{ALONE}.pb"
    only = ingest([path], options, ("peers", "presence", "links", "receptions"))
    assert [row["peer"] for row in only.presence] == [row["name"] for row in only.peers]
    assert only.links == []
    assert as_set(only.receptions) == as_set(alone.receptions)


def test_reporters_only_changes_nothing_where_all_report(ingest: Any, as_json: Any) -> None:
    source_files = sorted({Path(row["file"]) for row in as_json.events})
    only = ingest(source_files, SourceOptions(reporters_only=True), ("presence", "links"))
    assert as_set(only.presence) == as_set(as_json.presence)
    assert as_set(only.links) == as_set(as_json.links)


def test_interval_option_sets_clock_epoch_and_rows(ingest: Any, libp2p_small: Path) -> None:
    path = libp2p_small / f"one_node.{ALONE}.pb"
    trace = ingest([path], SourceOptions(interval_us=7_000_000), ("traffic", "receptions"))
    clock = trace.description.clock
    first = min(row["time"] for row in trace.events)
    epoch = datetime.fromtimestamp(first // 10**9 // 7 * 7, UTC)
    assert trace.description.epoch == epoch.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (clock.interval_us, clock.last) == (7_000_000, 4)
    assert sorted(row["interval"] for row in trace.traffic) == list(range(5))
    for row in trace.receptions:
        assert row["interval"] == row["time_us"] // 7_000_000


def test_copies_of_one_trace_are_refused(ingest: Any, libp2p_small: Path) -> None:
    binary = libp2p_small / f"one_node.{ALONE}.pb"
    with pytest.raises(InputError, match=naming(binary, SAME_EVENTS)):
        ingest([libp2p_small / "json" / f"{ALONE}.ndjson.gz", binary], None, ())


def test_trace_in_two_parts_equals_the_whole(
    ingest: Any, libp2p_small: Path, tmp_path: Path
) -> None:
    path = libp2p_small / "json" / f"{ALONE}.ndjson.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    parts = [tmp_path / "a.ndjson", tmp_path / "b.ndjson"]
    parts[0].write_bytes(b"".join(lines[:100]))
    parts[1].write_bytes(b"".join(lines[100:]))
    tables = ("links", "receptions")
    whole, both = ingest([path], None, tables), ingest(parts, None, tables)
    for table in tables:
        assert as_set(getattr(both, table)) == as_set(getattr(whole, table))
    assert sum(row["type"] == EventType.JOIN for row in both.events) == 2
