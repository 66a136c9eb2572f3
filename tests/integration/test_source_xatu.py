"""A recorded trace, rewritten as Xatu would have written it, against the trace itself and DuckDB;
and what Xatu's tables hold that no trace does.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from base58 import b58decode, b58encode

from tests.support import xatu
from tests.support.ingested import Row, ingest
from tests.support.staged import Taken, staged, take
from tests.support.xatu import MS, Tables, key_of, peer_key, sample, size_of, topic_of, write
from vizpub.ingest.inputs.files import find_files
from vizpub.ingest.inputs.inventory import Inventory, take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.xatu.source import (
    INCOMPLETE,
    NOT_NAMED,
    REPEATED,
    SEVERAL_NETWORKS,
    UNJOINED,
    Xatu,
)
from vizpub.ingest.sources.xatu.tables import TOPIC_PARTS
from vizpub.model.clock import OPEN
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.model.run import DUPLICATES, SAMPLED
from vizpub.questions.attributes.groups import messages_by_group, topics_by_group
from vizpub.questions.control import NAME_ONE, control_by_kind
from vizpub.questions.names import NamedRun, Where
from vizpub.questions.summary import facts_for_people
from vizpub.questions.sums.tracestat import Tracestat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Xatu()
TRACES = sorted((Path(__file__).parents[2] / "examples/gossipsub").glob("*.ndjson.gz"))
ENDS = ("w74ykSg494", "WD781dGM9V", "eLRCwz8YLK")
PEERS = [path.name.split(".")[0] for path in TRACES]
SENTRIES = {
    b64encode(b58decode(peer)).decode(): f"sentry-{ENDS.index(peer[-10:])}"
    for peer in PEERS
    if peer.endswith(ENDS)
}
PLAIN = SourceOptions()
T0 = datetime(2026, 7, 1, 12, tzinfo=UTC)
ALICE, BOB = 11, 12


@pytest.fixture(scope="module")
def events() -> list[Row]:
    texts = (gzip.decompress(path.read_bytes()).decode() for path in TRACES)
    return [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.fixture(scope="module")
def tables(events: list[Row]) -> Tables:
    return xatu.rewrite(events, SENTRIES)


def look_at(folder: Path) -> Inventory:
    return take_inventory(None, find_files([str(folder)]), SOURCES)


@pytest.fixture(scope="module")
def whole(tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Taken]:
    """All that three sentries saw."""
    folder = tmp_path_factory.mktemp("whole")
    write(folder, tables)
    return folder, take(folder)


def is_sampled(message: str) -> bool:
    return int(message[-2:], 16) % 3 == 0


def has_topic(name: str) -> bool:
    return name != "alerts"


@pytest.fixture(scope="module")
def sampled_folder(tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sampled")
    write(folder, sample(tables, is_sampled, has_topic))
    return folder


def name_of(peer: str | None) -> str | None:
    """The name of a peer of the trace in the tables of Xatu."""
    encoded = peer and b64encode(b58decode(peer)).decode()
    return encoded and SENTRIES.get(encoded, str(peer_key(encoded)))


def of_trace(taken: Taken, table: str, *columns: str) -> set[tuple[Any, ...]]:
    """Rows of a trace, in the names of Xatu."""
    names = {
        **dict.fromkeys(("src", "dst", "peer", "previous_hop"), name_of),
        "topic": lambda topic: topic and topic_of(topic),
    }
    return {
        tuple(names.get(name, lambda value: value)(row[name]) for name in columns)
        for row in taken.records(table)
    }


@pytest.fixture(scope="module")
def trace(events: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Taken:
    """The trace of the sentries in milliseconds, as the source libp2p reads it."""
    path = tmp_path_factory.mktemp("trace") / "trace.ndjson"
    path.write_text(
        "".join(
            json.dumps(event | {"timestamp": event["timestamp"] // MS * MS}) + "\n"
            for event in events
            if event["peerID"] in SENTRIES
        )
    )
    return take(path)


def test_tables_of_xatu_mean_what_the_trace_means(whole: tuple[Path, Taken], trace: Taken) -> None:
    taken = whole[1]
    assert not taken.staged.quarantine
    assert taken.told.epoch == trace.told.epoch
    period = ("valid_from", "valid_to")
    link = ("src", "dst", "layer", "topic", *period)
    told = taken.rows("links", *link)
    connections = {row for row in told if row[2] == "connections"}
    assert told - connections == of_trace(trace, "links", *link)
    # Each stream had a connection of its own.
    streams = {(src, dst, *rest) for src, dst, layer, *rest in told if layer == "streams"}
    assert {(src, dst, *rest) for src, dst, _, *rest in connections} == streams
    arrival = ("message", "topic", "peer", "previous_hop", "tick", "first")
    assert taken.rows("receptions", *arrival) == of_trace(trace, "receptions", *arrival)
    assert len(taken.records("receptions")) == len(trace.records("receptions"))
    stay = ("peer", *period)
    assert taken.rows("presence", *stay) == of_trace(trace, "presence", *stay)
    subscription = ("peer", "topic", *period)
    own = {row for row in taken.rows("subscriptions", *subscription) if row[0].startswith("sentry")}
    assert of_trace(trace, "subscriptions", *subscription) <= own
    assert taken.seen.traffic is None


def test_subscriptions_of_other_peers_are_those_they_announced(
    whole: tuple[Path, Taken], events: list[Row]
) -> None:
    announced = set()
    for event in events:
        if event["peerID"] in SENTRIES and "recvRPC" in event:
            rpc = event["recvRPC"]
            for entry in rpc["meta"].get("subscription", ()):
                if entry["subscribe"]:
                    peer = b58encode(b64decode(rpc["receivedFrom"])).decode()
                    announced.add((name_of(peer), topic_of(entry["topic"])))
    others = {row for row in whole[1].rows("subscriptions", "peer", "topic") if row in announced}
    assert others == announced


def control_in(folder: Path) -> Counter[tuple[Any, ...]]:
    """Control messages by sentry, kind, topic and way, by DuckDB over the raw files."""
    files = f"{folder}/mainnet/databases/default/libp2p_{{}}/*/*/*.parquet"
    entries = {
        "graft": ("rpc_meta_control_graft", "true"),
        "prune": ("rpc_meta_control_prune", "true"),
        "subscribe": ("rpc_meta_subscription", "subscribe"),
        "unsubscribe": ("rpc_meta_subscription", "NOT subscribe"),
    }
    ways = {"sent": "send_rpc", "received": "recv_rpc", "dropped": "drop_rpc"}
    counts: Counter[tuple[Any, ...]] = Counter()
    for kind, (table, condition) in entries.items():
        for way, rpcs in ways.items():
            rows = duckdb.sql(f"""
                SELECT
                    meta_client_name, concat_ws(
                        '/', '', topic_layer, topic_fork_digest_value, topic_name, topic_encoding
                    ) AS topic, count(DISTINCT (rpc_meta_unique_key, control_index)) AS messages
                FROM '{files.format(table)}' e
                SEMI JOIN '{files.format(rpcs)}' r ON e.rpc_meta_unique_key = r.unique_key
                WHERE {condition} GROUP BY ALL
            """).fetchall()
            for sentry, topic, messages in rows:
                counts[sentry, kind, topic, way] += messages
    return counts


def control_of(taken: Taken) -> Counter[tuple[Any, ...]]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in taken.records("control"):
        for way in ("sent", "received", "dropped"):
            if row[f"messages_{way}"]:
                counts[row["peer"], row["kind"], row["topic"], way] += row[f"messages_{way}"]
    return counts


def test_entries_are_counted_by_the_way_of_their_rpc(whole: tuple[Path, Taken]) -> None:
    folder, taken = whole
    expected = control_in(folder)
    assert control_of(taken) == expected
    assert {(kind, way) for _, kind, _, way in expected} >= {
        *(("graft", way) for way in ("sent", "received")),
        *(("prune", way) for way in ("sent", "received", "dropped")),
        *(("unsubscribe", way) for way in ("sent", "received")),
    }
    assert not taken.told.notes


def test_entries_without_their_rpc_have_no_way(tables: Tables, tmp_path: Path) -> None:
    lost = {row["unique_key"] for row in tables["recv_rpc"][::2]}
    some = {**tables, "recv_rpc": tables["recv_rpc"][1::2]}
    del some["drop_rpc"]
    write(tmp_path, some)
    taken = take(tmp_path)
    dropped = {row["unique_key"] for row in tables["drop_rpc"]}
    assert taken.told.notes[UNJOINED] == sum(
        row["rpc_meta_unique_key"] in lost | dropped
        for name in ("rpc_meta_control_graft", "rpc_meta_control_prune", "rpc_meta_subscription")
        for row in tables[name]
        if not row.get("peer_id_index")
    )
    (row,) = taken.table("control").slice(0, 1).to_pylist()
    assert "messages_dropped" not in row


def test_sample_tells_of_its_messages_and_topics_all(
    whole: tuple[Path, Taken], sampled_folder: Path
) -> None:
    everything, taken = whole[1], take(sampled_folder)
    arrival = ("message", "topic", "peer", "previous_hop", "tick", "first")
    arrivals = everything.rows("receptions", *arrival)
    assert taken.rows("receptions", *arrival) == {row for row in arrivals if is_sampled(row[0])}
    alerts = topic_of("alerts")
    link = ("src", "dst", "layer", "topic", "valid_from", "valid_to")
    links = everything.rows("links", *link)
    assert taken.rows("links", *link) == {row for row in links if row[3] != alerts}
    assert control_of(taken) == control_in(sampled_folder)
    assert {row[2] for row in control_of(taken)} == {topic_of("news"), topic_of("news_sport")}
    assert SAMPLED in taken.told.unknown


@pytest.mark.spark
def test_counts_over_a_sample_are_unknown(
    spark: SparkSession, sampled_folder: Path, tables: Tables, tmp_path: Path
) -> None:
    run = ingest(spark, tmp_path, "xatu", sampled_folder).run
    peers, topics, overlay, messages = (
        run.read(f"metrics/{name}").to_pylist()
        for name in ("peers", "topics", "overlay", "messages")
    )
    for rows, unknown in (
        (peers, ("receptions", "duplicates", "subscriptions", "control_messages_sent")),
        (topics, ("duplicates", "publications", "relay_receptions", "hit_ratio")),
        (overlay, ("receptions", "duplicates", "publications", "hit_ratio")),
        (messages, ("eligible", "hit_ratio", "delivered")),
    ):
        assert rows
        assert {name: {row[name] for row in rows} for name in unknown} == {
            name: {None} for name in unknown
        }
    topic_names = run.read("topics")["name"].to_pylist()
    unsampled = topic_names.index(topic_of("alerts"))
    assert {row["subscribers"] for row in topics if row["topic"] == unsampled} == {None}
    copies = Counter(
        row["message_id"] for row in tables["duplicate_message"] if is_sampled(row["message_id"])
    )
    names = run.read("publications").to_pylist()
    found = {row["message"]: row for row in messages}
    assert {row["name"]: found[row["message"]]["duplicates"] for row in names} == {
        row["name"]: copies[row["name"]] for row in names
    }
    assert {row["name"]: row["bytes"] for row in names} == {
        row["name"]: size_of(row["name"]) for row in names
    }
    assert {row["publication_known"] for row in names} == {False}
    named = NamedRun(run)
    with pytest.raises(UseError, match=re.escape(NAME_ONE)):
        control_by_kind(named, Where())
    news = control_by_kind(named, Where(topic=topic_of("news"))).to_pylist()
    sent = sum(row["messages_sent"] or 0 for row in news if row["kind"] == "graft")
    assert sent == sum(
        count
        for (_, kind, topic, way), count in control_in(sampled_folder).items()
        if (kind, topic, way) == ("graft", topic_of("news"), "sent")
    )
    assert Tracestat(named).control() == {}
    assert {row["delivered"] for row in Tracestat(named).per_peer()} == {None}
    for row in topics_by_group(named, "client", Where()).to_pylist():
        assert row["publications"] is row["duplicates"] is row["hit_ratio"] is None
        assert row["subscribers"] != 0
    for receivers in (False, True):
        rows = messages_by_group(named, "client", Where(), receivers=receivers)
        assert rows.num_rows
        for column in ("receptions", "first_receptions", "duplicates", "relay_receptions"):
            assert rows[column].null_count == rows.num_rows
    assert not [fact for fact, _ in facts_for_people(run) if fact.startswith("control messages")]


def hourly(folder: Path, name: str, rows: Sequence[Row]) -> Iterable[tuple[Path, Sequence[Row]]]:
    middle = len(rows) // 2
    place = folder / f"libp2p_{name}/2000/1/1"
    return [(place / "0.parquet", rows[:middle]), (place / "1.parquet", rows[middle:])]


def flat(folder: Path, name: str, rows: Sequence[Row]) -> Iterable[tuple[Path, Sequence[Row]]]:
    return [(folder / f"mainnet-libp2p_{name}_2000-01-01.parquet", rows)]


@pytest.mark.parametrize("layout", [hourly, flat])
def test_layouts_of_files_are_read_alike(
    whole: tuple[Path, Taken],
    tables: Tables,
    tmp_path: Path,
    layout: Callable[..., Iterable[tuple[Path, Sequence[Row]]]],
) -> None:
    for name, rows in tables.items():
        for path, part in layout(tmp_path, name, rows):
            path.parent.mkdir(parents=True, exist_ok=True)
            xatu.write_file(path, name, part)
    taken = take(tmp_path)
    for table in ("links", "subscriptions", "control", "attributes"):
        assert taken.rows(table) == whole[1].rows(table)
    arrival = ("message", "peer", "previous_hop", "tick", "first")
    assert taken.rows("receptions", *arrival) == whole[1].rows("receptions", *arrival)


def row(table: str, seconds: float, sentry: str = "alpha", **values: Any) -> Row:
    """A row of a table, some seconds after T0."""
    at = T0 + timedelta(seconds=seconds)
    topic = ("eth2", "bba4da96", "beacon_block", "ssz_snappy")
    some = {
        "event_date_time": at, "updated_date_time": at, "meta_client_name": sentry,
        "meta_network_name": "mainnet", "peer_id_unique_key": ALICE,
        "remote_peer_id_unique_key": ALICE, "direction": "inbound", "opened": at,
        **dict(zip(TOPIC_PARTS, topic, strict=True)),
        "message_id": "ab", "message_size": 100, "seq_number": 0, "local_peer_id_unique_key": 99,
        "slot_start_date_time": at,
    }  # fmt: skip
    names = xatu.TABLES[table].names
    return {name: values.get(name, some.get(name)) for name in names}


def take_rows(folder: Path, **rows: Sequence[Row]) -> Taken:
    write(folder, rows)
    return take(folder)


def test_newest_version_of_a_row_counts_once(tmp_path: Path) -> None:
    def version(seconds: float, size: int) -> Row:
        updated = T0 + timedelta(seconds=seconds)
        return row("deliver_message", 1, updated_date_time=updated, message_size=size)

    rpc = row("recv_rpc", 2, unique_key=1)
    entry = row("rpc_meta_control_graft", 2, unique_key=5, rpc_meta_unique_key=1, control_index=0)
    arrivals = [version(5, 1), version(9, 3), version(7, 2), row("deliver_message", 0.5)]
    taken = take_rows(
        tmp_path,
        deliver_message=[*arrivals, row("deliver_message", 3, message_id="cd")],
        recv_rpc=[rpc, rpc],
        rpc_meta_control_graft=[entry, entry],
    )
    assert [r["bytes"] for r in taken.records("sizes", "tick")] == [100, 3, 100]
    assert len(taken.records("receptions")) == 3
    assert [r["messages_received"] for r in taken.records("control")] == [1]
    assert taken.told.notes[REPEATED] == 4


def test_connections_are_links_and_presence_without_streams(tmp_path: Path) -> None:
    early, late = T0 - timedelta(hours=1), T0 + timedelta(seconds=10)
    taken = take_rows(
        tmp_path,
        connected=[row("connected", 0, remote_peer_id_unique_key=BOB), row("connected", 10)],
        # Alice has been connected since before the day; a second connection outlives the first.
        disconnected=[
            row("disconnected", 20, opened=early),
            row("disconnected", 30, opened=late),
            row("disconnected", 40, remote_peer_id_unique_key=13, opened=early),
        ],
        synthetic_heartbeat=[
            row("synthetic_heartbeat", 50, remote_peer_id_unique_key=14, connection_age_ms=20_000),
            row("synthetic_heartbeat", 60, remote_peer_id_unique_key=14, connection_age_ms=30_000),
        ],
        graft=[
            row("graft", 15),
            row("graft", 16, remote_peer_id_unique_key=BOB, peer_id_unique_key=BOB),
        ],
    )
    s = 1_000_000
    topic = "/eth2/bba4da96/beacon_block/ssz_snappy"
    links = {
        (str(BOB), "connections", None, 0, OPEN),
        (str(ALICE), "connections", None, 10 * s, 30 * s),
        ("13", "connections", None, 0, 40 * s),
        ("14", "connections", None, 30 * s, OPEN),
        (str(ALICE), "mesh", topic, 15 * s, 30 * s),
        (str(BOB), "mesh", topic, 16 * s, OPEN),
    }
    assert taken.rows("links", "dst", "layer", "topic", "valid_from", "valid_to") == links
    stays = {(dst, start, end) for dst, layer, _, start, end in links if layer == "connections"}
    assert taken.rows("presence", "peer", "valid_from", "valid_to") == {*stays, ("alpha", 0, OPEN)}


@pytest.mark.parametrize("column", ["local_peer_id_unique_key", "peer_id_unique_key"])
def test_sentry_of_another_is_known_by_its_own_key(tmp_path: Path, column: str) -> None:
    def key(table: pa.Table) -> pa.Table:
        return table.rename_columns({"local_peer_id_unique_key": column})

    joins = [
        row("join", 0, local_peer_id_unique_key=7),
        row("join", 0, "beta", local_peer_id_unique_key=8),
    ]
    # Both had the key of an empty id once.
    joins += [
        row("join", 1, local_peer_id_unique_key=9),
        row("join", 1, "beta", local_peer_id_unique_key=9),
    ]
    grafts = [row("graft", 2, peer_id_unique_key=key) for key in (8, 9)]
    folder = tmp_path / "libp2p_join"
    folder.mkdir()
    pq.write_table(key(pa.Table.from_pylist(joins, xatu.TABLES["join"])), folder / "1.parquet")
    taken = take_rows(tmp_path, graft=grafts)
    assert taken.rows("links", "src", "dst") == {("alpha", "beta"), ("alpha", "9")}
    assert taken.rows("peers") == {("alpha",), ("beta",)}


def test_attributes_hold_from_when_they_were_found_out(tmp_path: Path) -> None:
    def version(seconds: float, text: str, **more: Any) -> Row:
        return row(
            "synthetic_heartbeat", seconds, remote_agent_implementation="prysm",
            remote_agent_version=text, remote_geo_autonomous_system_number=24940, **more,
        )  # fmt: skip

    beats = [
        version(0, "v1"),
        version(1, "v1"),
        version(2, "v2", protocols=["b", "a"]),
        version(3, ""),
    ]
    taken = take_rows(
        tmp_path,
        synthetic_heartbeat=beats,
        identify=[
            row("identify", 0.5, "beta", remote_geo_country="Finland", meta_client_geo_city="Bern")
        ],
    )
    assert taken.rows("attributes", "peer", "key", "value", "valid_from") == {
        (str(ALICE), "client", "prysm", 0), (str(ALICE), "asn", "24940", 0),
        (str(ALICE), "version", "v1", 0), (str(ALICE), "version", "v2", 2_000_000),
        (str(ALICE), "protocols", "a b", 2_000_000),
        (str(ALICE), "country", "Finland", 500_000), ("beta", "city", "Bern", 500_000),
    }  # fmt: skip


def test_messages_that_the_application_got_are_arrivals_once(tmp_path: Path) -> None:
    blocks = [
        row("gossipsub_beacon_block", n, message_id=of) for n, of in ((1.002, "ab"), (2, "cd"))
    ]
    taken = take_rows(tmp_path / "blocks", gossipsub_beacon_block=blocks)
    arrival = ("message", "tick", "first")
    assert taken.rows("receptions", *arrival) == {("ab", 2000, True), ("cd", 1_000_000, True)}
    assert DUPLICATES in taken.told.unknown
    both = take_rows(
        tmp_path / "both",
        gossipsub_beacon_block=blocks,
        deliver_message=[row("deliver_message", 1)],
        duplicate_message=[row("duplicate_message", n) for n in (1.001, 1.003)],
    )
    assert both.rows("receptions", *arrival) == {
        *(("ab", 0, True), ("ab", 1000, False), ("ab", 3000, False), ("cd", 1_000_000, True))
    }
    assert {r["bytes"] for r in both.records("sizes")} == {100}


def test_facts_without_their_tables_are_unknown(tmp_path: Path) -> None:
    taken = take_rows(tmp_path / "a", graft=[row("graft", 0)])
    assert {"presence", "topics", "messages", "control messages"} <= {*taken.told.unknown}
    assert taken.seen.known_tables == {"peers", "names", "links", "attributes", "gauges"} - {
        "gauges"
    }
    taken = take_rows(tmp_path / "b", deliver_message=[row("deliver_message", 0)])
    assert {"links", "presence", "topics", DUPLICATES} <= {*taken.told.unknown}
    assert taken.seen.links is taken.seen.presence is taken.seen.subscriptions is None


def test_times_in_seconds_and_texts_in_bytes_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "libp2p_connected"
    folder.mkdir()
    table = pa.Table.from_pylist([row("connected", 1.5)], xatu.TABLES["connected"])
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_dictionary(kind):
            cast = table[name].combine_chunks().dictionary_decode().cast(pa.binary())
        elif kind == pa.timestamp("s", "UTC"):
            cast = table[name].cast(pa.int64()).cast(pa.uint32())
        else:
            continue
        table = table.set_column(table.column_names.index(name), name, cast)
    pq.write_table(table, folder / "1.parquet")
    taken = take(tmp_path)
    assert taken.rows("links", "src", "dst", "valid_from") == {("alpha", str(ALICE), 500_000)}


@pytest.mark.parametrize("kind", [pa.uint32(), pa.int64(), pa.timestamp("s", "UTC")])
def test_connection_begins_when_it_was_opened_whatever_the_type_of_times(
    tmp_path: Path, kind: pa.DataType
) -> None:
    """Two connections to a peer, which were opened in the same thousand seconds; one is closed."""
    events = {
        "connected": [
            row("connected", 1, opened=T0),
            row("connected", 2, opened=T0 + timedelta(seconds=2)),
            row("connected", 9, "beta", opened=T0 + timedelta(seconds=9)),
        ],
        "disconnected": [row("disconnected", 5, opened=T0)],
    }
    for name, rows in events.items():
        folder = tmp_path / f"libp2p_{name}"
        folder.mkdir()
        table = pa.Table.from_pylist(rows, xatu.TABLES[name])
        for column in ("opened", "updated_date_time"):
            cast = table[column].cast(pa.int64()).cast(kind)
            table = table.set_column(table.column_names.index(column), column, cast)
        pq.write_table(table, folder / "1.parquet")
    taken = take(tmp_path)
    ends = {(src, end) for src, end in taken.rows("links", "src", "valid_to") if src == "alpha"}
    assert ends == {("alpha", OPEN)}, "the other connection stays"


def test_networks_are_runs_of_their_own(tmp_path: Path) -> None:
    grafts = [row("graft", 0), row("graft", 1, meta_network_name="hoodi", peer_id_unique_key=BOB)]
    write(tmp_path, {"graft": grafts})
    with pytest.raises(InputError, match=SEVERAL_NETWORKS):
        take(tmp_path)
    taken = take(tmp_path, options=SourceOptions(only="hoodi"))
    assert taken.rows("links", "dst") == {(str(BOB),)}
    assert taken.told.parameters == {"network": "hoodi"}
    with pytest.raises(UnknownName, match="hoody"):
        take(tmp_path, options=SourceOptions(only="hoody"))


def test_table_that_only_another_network_fills_is_lacking(tmp_path: Path) -> None:
    other = row("deliver_message", 1, meta_network_name="hoodi")
    write(tmp_path, {"graft": [row("graft", 0)], "deliver_message": [other]})
    taken = take(tmp_path, options=SourceOptions(only="mainnet"))
    assert taken.seen.receptions is None


def test_bad_rows_of_xatu_are_quarantined(tmp_path: Path) -> None:
    changes: list[tuple[Row, str]] = [
        ({"event_date_time": None}, "missing value: event_date_time"),
        ({"meta_client_name": ""}, "missing value: meta_client_name"),
        ({"peer_id_unique_key": None}, "missing value: peer_id_unique_key"),
        ({"peer_id_unique_key": 0}, "missing value: peer_id_unique_key"),
        ({"topic_name": "a\nb"}, "control character in topic_name"),
    ]
    rows = [row("graft", 0), *(row("graft", 1) | change for change, _ in changes)]
    folder = tmp_path / "libp2p_graft"
    folder.mkdir()
    xatu.write_file(folder / "1.parquet", "graft", rows)
    found = look_at(tmp_path)
    quarantine = staged(SOURCE, found.files, PLAIN).quarantine
    assert [of[1:3] for of in quarantine] == [(n, why) for n, (_, why) in enumerate(changes, 2)]


def test_files_that_are_no_tables_of_xatu_are_skipped_with_the_reason(tmp_path: Path) -> None:
    def put(name: str, table: pa.Table) -> Path:
        path = tmp_path / f"libp2p_{name}/1.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        return path

    def made(name: str) -> pa.Table:
        return pa.Table.from_pylist([row(name, 0)], xatu.TABLES[name])

    put("graft", made("graft"))
    put("prune", made("prune").drop_columns(["peer_id_unique_key"]))
    texts = pa.array(["x"])
    put(
        "join",
        made("join").drop_columns(["event_date_time"]).append_column("event_date_time", texts),
    )
    put("handle_status", made("graft"))
    put("rpc_meta_message", made("rpc_meta_message"))
    cut = put("leave", made("leave"))
    cut.write_bytes(cut.read_bytes()[:-20])
    pq.write_table(made("graft"), tmp_path / "21.parquet")
    skipped = {Path(path).parent.name: why for path, why in look_at(tmp_path).skipped}
    assert "'peer_id_unique_key'" in skipped["libp2p_prune"]
    assert "'event_date_time' is string" in skipped["libp2p_join"]
    assert "libp2p_handle_status" in skipped["libp2p_handle_status"]
    assert "sample" in skipped["libp2p_rpc_meta_message"]
    assert skipped["libp2p_leave"] == INCOMPLETE
    assert skipped[tmp_path.name] == NOT_NAMED


def test_damaged_row_group_leaves_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "libp2p_graft"
    folder.mkdir()
    path = folder / "1.parquet"
    rows = [row("graft", n, peer_id_unique_key=key_of(str(n))) for n in range(3000)]
    xatu.write_file(path, "graft", rows, rows=1000)
    place = pq.read_metadata(path).row_group(1).column(6)
    content = bytearray(path.read_bytes())
    middle = place.dictionary_page_offset or place.data_page_offset
    content[middle : middle + 40] = b"\xff" * 40
    path.write_bytes(content)
    found = look_at(tmp_path)
    taken = staged(SOURCE, found.files, PLAIN)
    assert any("cannot be read from here on" in of[2] for of in taken.quarantine)
    assert {int(r["dst"]) for r in taken.tables["links"].to_pylist()} >= {
        key_of(str(n)) for n in (*range(1000), *range(2000, 3000))
    }
