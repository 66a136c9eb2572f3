"""Deliveries of real gossipsub networks, against figures published with them and brute force."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from ingest.sources.base import Description, InputFile, Observed, SourceOptions
from ingest.sources.deliveries import Deliveries
from model.clock import Clock
from model.errors import InputError

pytestmark = pytest.mark.spark

SOURCE = Deliveries()
ENCODING = "csv(msg,node,prev_node,t_us)"


def take(
    spark: SparkSession, path: Path, interval_us: int | None = None
) -> tuple[DataFrame, Description, Observed]:
    options = SourceOptions(interval_us)
    staged = SOURCE.parse(spark, [InputFile(str(path), ENCODING, 0, "")], options)
    told = SOURCE.describe(staged, options)
    return staged["quarantine"], told, SOURCE.observe(staged, told, options)


def depths(seen: Observed) -> dict[str, list[int]]:
    """How deep every first arrival lies in the tree of its message."""
    assert seen.receptions is not None
    assert seen.publications is not None
    parents: dict[str, dict[str, str]] = defaultdict(dict)
    for row in seen.receptions.orderBy("tick", "arrival").collect():
        parents[row.message].setdefault(row.peer, row.previous_hop)
    publisher = {row.message: row.publisher for row in seen.publications.collect()}

    def depth(message: str, peer: str) -> int:
        return 0 if peer == publisher[message] else 1 + depth(message, parents[message][peer])

    return {message: [depth(message, peer) for peer in tree] for message, tree in parents.items()}


@pytest.mark.parametrize(
    ("name", "peers", "messages", "mean", "most", "mean_of_most"),
    [
        ("gossipsub_whiteblock_fc96_deliveries.csv.gz", 96, 900, 2.691, 6, 4.169),
        ("gossipsub_whiteblock_ba20_deliveries.csv.gz", 20, 3600, 1.945, 4, None),
    ],
)
def test_deliveries_of_a_real_network_equal_published_values(
    spark: SparkSession,
    outside_data: Callable[[str], Path],
    name: str,
    peers: int,
    messages: int,
    mean: float,
    most: int,
    mean_of_most: float | None,
) -> None:
    quarantine, told, seen = take(spark, outside_data(name))
    assert quarantine.isEmpty()
    assert told.clock.tick_us == 1
    assert told.clock.interval_us == 1_000_000
    assert seen.peers.count() == peers
    trees = depths(seen)
    assert len(trees) == messages
    assert {len(tree) for tree in trees.values()} == {peers - 1}
    every = [depth for tree in trees.values() for depth in tree]
    assert len(every) + messages == peers * messages
    assert statistics.mean(every) == pytest.approx(mean, abs=5e-4)
    assert max(every) == most
    if mean_of_most is not None:
        assert statistics.mean(map(max, trees.values())) == pytest.approx(mean_of_most, abs=5e-4)
    for table in ("presence", "links", "subscriptions", "roles", "traffic"):
        assert getattr(seen, table) is None


def test_deliveries_become_publications_receptions_and_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "deliveries.csv"
    path.write_text(
        "msg,node,prev_node,t_us\n"
        "m,a,a,0\n"
        "m,b,a,400\n"
        "m,b,c,400\n"
        "n,c,b,1500\n"
        "n,c,b,-1\n"
        "n,c,,1\n"
        "n,c,b\n"
        "n,c,b,9999999999999999999\n"
    )
    quarantine, told, seen = take(spark, path, interval_us=1000)
    assert told.clock == Clock(1000, 1, 0, 1)
    assert told.epoch is None
    assert seen.publications is not None
    assert [
        (row.message, row.publisher, row.interval, row.tick) for row in seen.publications.collect()
    ] == [("m", "a", 0, 0)]
    assert seen.receptions is not None
    found = seen.receptions.orderBy("tick", "arrival").collect()
    assert [
        (row.message, row.peer, row.previous_hop, row.time_us, row.interval, row.tick)
        for row in found
    ] == [
        ("m", "b", "a", 400, 0, 400),
        ("m", "b", "c", 400, 0, 400),
        ("n", "c", "b", 1500, 1, 1500),
    ]
    assert {(row.topic, row.publisher, row["first"], row.hop) for row in found} == {
        (None, None, None, None)
    }
    assert Counter((row.line, row.reason) for row in quarantine.collect()) == Counter(
        [
            (6, "'t_us' is negative"),
            (7, "no 'prev_node'"),
            (8, "not 4 fields"),
            (9, "'t_us' is too large"),
        ]
    )


def test_conflicting_publication_is_refused_and_repeated_row_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [
        "m,b,a,400",
        "m,a,a,0",  # 3
        "m,c,c,0",  # another publisher
        "m,a,a,9000000",  # another time, and beyond the last interval
        "m,a,a,0",
        "m,b,a,400",
        "m,b,a,500",  # another arrival
        "m,b,a,400",
        "n,lonely,lonely,1",
        "n,later,later,1",  # 11
    ]
    path = tmp_path / "deliveries.csv"
    path.write_text("\n".join(["msg,node,prev_node,t_us", *rows]))
    quarantine, told, seen = take(spark, path)
    why = "another publication of the message came first"
    assert sorted((row.line, row.reason, row.text) for row in quarantine.collect()) == [
        (4, why, "m,c,c,0"),
        (5, why, "m,a,a,9000000"),
        (11, why, "n,later,later,1"),
    ]
    assert told.notes == {"repeated_records": 3}
    assert told.clock.last == 0
    assert seen.publications is not None
    published = {(row.message, row.publisher, row.tick) for row in seen.publications.collect()}
    assert published == {("m", "a", 0), ("n", "lonely", 1)}
    assert seen.receptions is not None
    arrived = [(row.peer, row.tick) for row in seen.receptions.orderBy("arrival").collect()]
    assert arrived == [("b", 400), ("b", 500)]
    assert {row.key for row in seen.peers.collect()} == {"a", "b", "lonely"}


def test_unusable_deliveries_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "deliveries.csv"
    path.write_text("msg,node,prev_node,t_us\nm,a,a,x\n")
    with pytest.raises(InputError, match="no delivery could be read"):
        take(spark, path)
    path.write_text("msg,node,prev_node,t_us\nm,a,a,1000000000000000000\n")
    with pytest.raises(InputError, match="reach over 1,000,000,000,001 intervals"):
        take(spark, path)


def test_deliveries_file_is_recognised_by_its_header() -> None:
    assert SOURCE.recognises("x", b"msg,node,prev_node,t_us\n0,11,11,0\n") == ENCODING
    assert SOURCE.recognises("x", b"interval,src,dst\n") is None
