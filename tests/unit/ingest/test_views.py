"""What figures are drawn from, on a run that is known by heart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.run import Run
from ingest.views import coverage, snapshot
from model.clock import OPEN
from model.errors import OutOfRange, UnknownName


@pytest.fixture
def run(workspace: Path) -> Run:
    return Run.open(workspace, "monday")


def test_a_snapshot_has_the_peers_and_distinct_links_of_its_tick(run: Run) -> None:
    peers, links = snapshot(run, 1_999_999)
    assert peers["peer_name"].to_pylist() == ["alice", "bob", "carol", "dave"]
    assert set(peers["role"].to_pylist()) == {"peer"}
    pairs = zip(links["src_name"].to_pylist(), links["dst_name"].to_pylist(), strict=True)
    assert list(pairs) == [
        ("alice", "bob"), ("alice", "dave"), ("carol", "bob"), ("dave", "carol"),
    ]  # fmt: skip
    assert links["inside"].to_pylist() == [False] * 4


def test_a_snapshot_ends_where_lives_end(run: Run) -> None:
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


def test_a_topic_gives_its_peers_roles(run: Run) -> None:
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


def test_a_publisher_that_subscribes_is_both(run: Run) -> None:
    (part,) = run.stored.files("subscriptions")
    subscribed = pq.read_table(part)
    alice = pa.table([[0], [0], [0], [OPEN]], schema=subscribed.schema)
    pq.write_table(pa.concat_tables([subscribed, alice]), part)
    first, *_ = snapshot(run, 1_000_000, "news")[0].to_pylist()
    assert first == {"peer": 0, "peer_name": "alice", "role": "subscriber", "publishes": True}


def test_coverage_counts_arrivals_at_eligible_peers(run: Run) -> None:
    found = coverage(run).select(["message_name", "delay_us", "delivered", "eligible", "share"])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("m0", 0, 0, 2, 0.0),
        ("m0", 30_000, 1, 2, 0.5),
        ("m0", 90_000, 2, 2, 1.0),
        ("m1", 0, 0, 2, 0.0),  # reached nobody, and says so
    ]


def test_a_message_somebody_refused_is_drawn_only_when_named(workspace: Path) -> None:
    (part,) = (workspace / "runs" / "monday").rglob("metrics/messages*/**/*.parquet")
    measured = pq.read_table(part)
    place = measured.column_names.index("rejections")
    refused = pa.array([1, 0], measured.schema.field(place).type)
    pq.write_table(measured.set_column(place, measured.schema.field(place), refused), part)
    run = Run.open(workspace, "monday")
    assert set(coverage(run)["message_name"].to_pylist()) == {"m1"}
    assert set(coverage(run, ["m0"])["message_name"].to_pylist()) == {"m0"}


def test_coverage_of_some_messages(run: Run) -> None:
    assert coverage(run, ["m1"])["message_name"].to_pylist() == ["m1"]
    with pytest.raises(UnknownName, match="did you mean"):
        coverage(run, ["m9"])
