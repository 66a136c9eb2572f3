"""What figures are drawn from, on a run that is known by heart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.words import unknown
from vizpub.model.clock import OPEN
from vizpub.model.errors import OutOfRange, UnknownName, UseError
from vizpub.model.run import NO_DATA
from vizpub.model.tables import ROLES
from vizpub.questions.run import Run
from vizpub.questions.snapshots import coverage, snapshot, spread
from vizpub.runstore.manifest import TableEntry
from vizpub.runstore.store import open_run


@pytest.fixture
def run(workspace: Path) -> Run:
    """Without its list of files: some tests change them."""
    stored = open_run(workspace, "monday")
    tables = {name: replace(e, files=None) for name, e in stored.manifest.tables.items()}
    return Run(replace(stored, manifest=replace(stored.manifest, tables=tables)))


def test_snapshot_has_peers_and_distinct_links_of_its_tick(run: Run) -> None:
    peers, links = snapshot(run, 1_999_999)
    assert peers["peer_name"].to_pylist() == ["alice", "bob", "carol", "dave"]
    assert set(peers["role"].to_pylist()) == {"peer"}
    pairs = zip(links["src_name"].to_pylist(), links["dst_name"].to_pylist(), strict=True)
    assert list(pairs) == [
        ("alice", "bob"), ("alice", "dave"), ("carol", "bob"), ("dave", "carol"),
    ]  # fmt: skip
    assert links["inside"].to_pylist() == [False] * 4


def test_snapshot_excludes_peers_and_links_from_their_end_on(run: Run) -> None:
    peers, links = snapshot(run, 2_000_000)
    assert peers["peer"].to_pylist() == [0, 1, 2]
    assert list(zip(links["src"].to_pylist(), links["dst"].to_pylist(), strict=True)) == [
        (0, 1),
        (2, 1),
    ]
    assert snapshot(run, 499_999)[1].num_rows == 3
    assert snapshot(run, 500_000)[1].num_rows == 4
    with pytest.raises(OutOfRange):
        snapshot(run, 4_000_000)


def test_snapshot_of_layers_has_their_links_alone(run: Run) -> None:
    stored = run.stored.read("links").to_pylist()
    for layer in ("mesh", "overlay"):
        alive = {
            (row["src"], row["dst"])
            for row in stored
            if row["layer"] == layer and row["valid_from"] <= 1_000_000 < row["valid_to"]
        }
        links = snapshot(run, 1_000_000, layers=[layer])[1]
        assert alive
        assert list(zip(*(links[end].to_pylist() for end in ("src", "dst")), strict=True)) == [
            *sorted(alive)
        ]
    with pytest.raises(UnknownName, match=unknown("layer", "mehs", "mesh")):
        snapshot(run, 0, layers=["mehs"])


def test_topic_snapshot_gives_peers_their_roles(run: Run) -> None:
    peers, links = snapshot(run, 1_000_000, "news")
    roles = dict(zip(peers["peer_name"].to_pylist(), peers["role"].to_pylist(), strict=True))
    assert roles == {
        "alice": "peer", "bob": "subscriber", "carol": "subscriber", "dave": "relay",
    }  # fmt: skip
    assert peers["publishes"].to_pylist() == [True, False, False, False]
    inside = dict(zip(links["src_name"].to_pylist(), links["inside"].to_pylist(), strict=True))
    assert inside == {"alice": False, "carol": True, "dave": False}
    with pytest.raises(UnknownName, match="news"):
        snapshot(run, 0, "nwes")


def test_subscribing_publisher_has_both_roles(run: Run) -> None:
    (part,) = run.stored.files("subscriptions")
    subscribed = pq.read_table(part)
    alice = pa.table([[0], [0], [0], [OPEN]], schema=subscribed.schema)
    pq.write_table(pa.concat_tables([subscribed, alice]), part)
    first, *_ = snapshot(run, 1_000_000, "news")[0].to_pylist()
    assert first == {
        "peer": 0, "peer_name": "alice", "role": "subscriber", "publishes": True,
        "rendezvous": False,
    }  # fmt: skip


def test_coverage_counts_arrivals_at_eligible_peers(run: Run) -> None:
    found = coverage(run).select(["message_name", "delay_us", "delivered", "eligible", "share"])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("m0", 0, 0, 2, 0.0),
        ("m0", 30_000, 1, 2, 0.5),
        ("m0", 90_000, 2, 2, 1.0),
        ("m1", 0, 0, 2, 0.0),  # reached nobody, and says so
    ]


def test_message_with_an_unknown_time_is_covered_along_hops_only(run: Run) -> None:
    (part,) = run.stored.files("receptions")
    told = pq.read_table(part)
    times = told["time_us"].to_pylist()
    first = next(n for n, row in enumerate(told.to_pylist()) if row["first"] and row["eligible"])
    times[first] = None
    place = told.column_names.index("time_us")
    pq.write_table(told.set_column(place, "time_us", pa.array(times, pa.int64())), part)
    assert set(coverage(run)["message_name"].to_pylist()) == {"m1"}
    along = coverage(run, along="hop").to_pylist()
    assert [row["delivered"] for row in along if row["message_name"] == "m0"][-1] == 2


def test_rejected_message_is_covered_only_when_named(run: Run) -> None:
    (part,) = run.stored.files("metrics/messages")
    measured = pq.read_table(part)
    place = measured.column_names.index("rejections")
    refused = pa.array([1, 0], measured.schema.field(place).type)
    pq.write_table(measured.set_column(place, measured.schema.field(place), refused), part)
    assert set(coverage(run)["message_name"].to_pylist()) == {"m1"}
    assert set(coverage(run, ["m0"])["message_name"].to_pylist()) == {"m0"}


def test_coverage_has_only_the_named_messages(run: Run) -> None:
    assert coverage(run, ["m1"])["message_name"].to_pylist() == ["m1"]
    with pytest.raises(UnknownName, match=unknown("message", "m9")):
        coverage(run, ["m9"])


def test_spread_of_a_message_has_its_peers_and_copies(run: Run) -> None:
    peers, copies = spread(run, "m0")
    assert [tuple(row.values()) for row in peers.to_pylist()] == [
        (0, "alice", "publisher", 0, 0, False),
        (1, "bob", "subscriber", 1, 1, False),
        (2, "carol", "subscriber", 2, 0, False),
        (3, "dave", "relay", 1, 0, False),
    ]
    assert copies.column_names == [
        "hop", "time_us", "previous_hop", "previous_hop_name", "peer", "peer_name", "first",
        "subscribed",
    ]  # fmt: skip
    way = copies.select(["hop", "previous_hop_name", "peer_name", "first"]).to_pylist()
    assert [tuple(row.values()) for row in way] == [
        (1, "alice", "bob", True), (1, "alice", "dave", True), (2, "dave", "carol", True),
        (3, "carol", "bob", False),
    ]  # fmt: skip


def test_rendezvous_follows_topic_and_time(run: Run, tmp_path: Path) -> None:
    roles = [
        (0, "rendezvous", 0, 0, 1),
        (1, "rendezvous", 1, 0, OPEN),
        (2, "rendezvous", 0, 1, OPEN),
        (3, "forwarder", 0, 0, OPEN),
        (3, "rendezvous", None, 0, OPEN),
    ]
    records = [dict(zip(ROLES.names, row, strict=True)) for row in roles]
    (tmp_path / "roles").mkdir()
    pq.write_table(pa.Table.from_pylist(records, ROLES.arrow), tmp_path / "roles/part-0.parquet")
    manifest = run.stored.manifest
    tables = {**manifest.tables, "roles": TableEntry(str(tmp_path / "roles"), len(roles))}
    stored = replace(run.stored, manifest=replace(manifest, tables=tables))
    peers, _ = spread(Run(stored), "m0")
    assert peers.filter(peers["rendezvous"])["peer_name"].to_pylist() == ["carol"]

    def rendezvous(tick: int, topic: str | None) -> list[str]:
        found, _ = snapshot(Run(stored), tick, topic)
        names: list[str] = found.filter(found["rendezvous"])["peer_name"].to_pylist()
        return names

    assert rendezvous(0, "news") == ["alice"]
    assert rendezvous(1, "news") == ["carol"]
    assert rendezvous(1, "sport/日本") == ["bob"]
    assert rendezvous(1, None) == ["bob", "carol", "dave"]


def test_missed_subscribers_are_among_the_peers_of_a_spread(run: Run) -> None:
    peers, copies = spread(run, "m1")
    roles = dict(zip(peers["peer_name"].to_pylist(), peers["role"].to_pylist(), strict=True))
    assert roles == {"alice": "publisher", "bob": "missed", "carol": "missed"}
    assert peers["hop"].to_pylist() == [0, None, None]
    assert copies.num_rows == 0
    with pytest.raises(UnknownName, match=unknown("message", "m9")):
        spread(run, "m9")


def test_spread_of_incomplete_receptions_has_unknown_hops_and_roles(run: Run) -> None:
    """A copy from a peer without a reception, one of unknown interest, one to the publisher."""
    (part,) = run.stored.files("receptions")
    told = pq.read_table(part)
    of_it = {"message": 1, "interval": 2, "tick": 2_200_000, "time_us": 2_200_000}
    more = [
        {**of_it, "peer": 1, "previous_hop": 3, "first": True, "hop": None, "subscribed": None},
        {**of_it, "peer": 0, "previous_hop": 1, "first": False, "hop": 4, "subscribed": False},
        {**of_it, "peer": 2, "previous_hop": None, "first": True, "hop": None, "subscribed": True},
    ]
    pq.write_table(pa.concat_tables([told, pa.Table.from_pylist(more, told.schema)]), part)
    peers, copies = spread(run, "m1")
    assert [tuple(row.values()) for row in peers.drop("peer").to_pylist()] == [
        ("alice", "publisher", 0, 1, False),
        ("bob", "peer", None, 0, False),
        ("carol", "subscriber", None, 0, False),
        ("dave", "peer", None, 0, False),
    ]
    assert copies["hop"].to_pylist() == [4, None, None]


def test_spread_of_a_run_without_receptions_is_refused(run: Run) -> None:
    manifest = run.stored.manifest
    known = {name: entry for name, entry in manifest.tables.items() if name != "receptions"}
    without = replace(run.stored, manifest=replace(manifest, tables=known))
    with pytest.raises(UseError, match=f"{NO_DATA} receptions"):
        spread(Run(without), "m0")
