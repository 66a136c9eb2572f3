"""What nobody told is null in every metrics table, never 0; runs made by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from ingest.messages import MessageTables
from model.clock import OPEN, Clock
from model.tables import table
from tests.support.messages import message_tables
from tests.support.metrics import metrics_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("small_inputs")]

CLOCK = Clock(1, None, 0, 1)
Row = dict[str, Any]


def frame(spark: SparkSession, name: str, *rows: tuple[Any, ...]) -> DataFrame:
    meant = table(name)
    records = [dict(zip(meant.names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(records, meant.arrow))


def metrics(*facts: str, **frames: DataFrame) -> dict[str, dict[Any, Row]]:
    """The rows of the metrics tables by their key, without what is null."""
    tables = {name.replace("__", "/"): frame.toArrow() for name, frame in frames.items()}
    return {
        name: {
            tuple(row.pop(k) for k in ("interval", "peer", "topic") if k in table(name).key): {
                n: v for n, v in row.items() if v is not None
            }
            for row in rows.to_pylist()
        }
        for name, rows in metrics_of(CLOCK, tables, *facts).items()
    }


@pytest.fixture
def peers(spark: SparkSession) -> DataFrame:
    return frame(spark, "peers", (0, "a", True), (1, "b", True), (2, "c", False))


def test_metrics_without_links_leave_link_columns_null(
    spark: SparkSession, peers: DataFrame
) -> None:
    presence = frame(spark, "presence", (0, 0, OPEN), (1, 0, 1), (2, 0, OPEN))
    taken = frame(spark, "subscriptions", (0, 0, 0, OPEN), (1, 0, 0, 1))
    found = metrics("duplicates", peers=peers, presence=presence, subscriptions=taken)
    assert found["metrics/peers"] == {
        (0, 0): {"present": True, "subscriptions": 1},
        (0, 1): {"present": True, "subscriptions": 1},
        (0, 2): {"present": True},
        (1, 0): {"present": True, "subscriptions": 1},
        (1, 2): {"present": True},
    }
    assert found["metrics/topics"] == {(0, 0): {"subscribers": 2}, (1, 0): {"subscribers": 1}}
    assert found["metrics/overlay"] == {
        (0,): {"network_size": 3, "unknown_reports": 3},
        (1,): {"network_size": 2, "unknown_reports": 2},
    }


def test_message_metrics_without_receptions_leave_hits_null(spark: SparkSession) -> None:
    published = frame(spark, "publications", (0, "m", 0, 0, 0, None, 0, True))
    taken = frame(spark, "subscriptions", (0, 0, 0, OPEN), (1, 0, 0, OPEN))
    told = MessageTables(published, frame(spark, "rejections"), None, taken, None)
    (row,) = message_tables(told)["metrics/messages"].to_pylist()
    known = {name: value for name, value in row.items() if value is not None}
    assert known == {"message": 0, "eligible": 1, "rejections": 0}


def test_unknown_rejections_are_null_and_leave_no_message_out(
    spark: SparkSession, peers: DataFrame
) -> None:
    published = frame(spark, "publications", (0, "m", 0, 0, 0, None, 0, True))
    taken = frame(spark, "subscriptions", (1, 0, 0, OPEN), (2, 0, 0, OPEN))
    arrived = frame(spark, "receptions", (0, 1, 0, None, 0, 0, True, 1, True, True))
    told = MessageTables(published, None, arrived, taken, None)
    (row,) = (found := message_tables(told)["metrics/messages"]).to_pylist()
    assert (row["rejections"], row["hit_ratio"]) == (None, 0.5)
    of_overlay = metrics(
        "duplicates",
        peers=peers,
        subscriptions=taken,
        receptions=arrived,
        publications=published,
        metrics__messages=spark.createDataFrame(found),
    )["metrics/overlay"]
    assert of_overlay[0,]["hit_ratio"] == 0.5
    assert of_overlay[0,]["publications"] == 1
    assert all("rejected_publications" not in row for row in of_overlay.values())


def test_peer_with_unreported_receptions_is_not_eligible(spark: SparkSession) -> None:
    published = frame(spark, "publications", (0, "m", 0, 0, 0, None, 0, True))
    taken = frame(spark, "subscriptions", (1, 0, 0, OPEN), (2, 0, 0, OPEN))
    arrived = frame(spark, "receptions", (0, 1, 0, None, 0, 0, True, 1, True, True))
    unreported = spark.createDataFrame([(2, 0, True)], "peer int, interval int, receptions boolean")
    told = MessageTables(published, frame(spark, "rejections"), arrived, taken, unreported)
    (row,) = message_tables(told)["metrics/messages"].to_pylist()
    assert (row["eligible"], row["delivered"], row["hit_ratio"]) == (1, 1, 1.0)


def test_unreported_fields_of_a_report_are_null_in_metrics(
    spark: SparkSession, peers: DataFrame
) -> None:
    """a left its receptions of interval 1 open and b its subscriptions of interval 0."""
    presence = frame(spark, "presence", (0, 0, OPEN), (1, 0, OPEN))
    taken = frame(spark, "subscriptions", (0, 0, 0, OPEN))
    links = frame(spark, "links", (0, 1, "overlay", None, 0, OPEN))
    arrived = (0, 1, 0, None, 0, 0, True, 1, False, False)
    unreported = spark.createDataFrame(
        [(0, 1, True, False), (1, 0, False, True)],
        "peer int, interval int, receptions boolean, subscriptions boolean",
    )
    receptions = frame(spark, "receptions", arrived)
    found = metrics(
        "duplicates",
        peers=peers,
        presence=presence,
        links=links,
        subscriptions=taken,
        receptions=receptions,
        unreported=unreported,
    )["metrics/peers"]
    names = ("subscriptions", "receptions", "duplicates")
    assert {key: tuple(row.get(name) for name in names) for key, row in found.items()} == {
        (0, 0): (1, 0, 0),
        (0, 1): (None, 1, 0),
        (1, 0): (1, None, None),
        (1, 1): (0, 0, 0),
    }


def test_arrivals_that_are_partly_listed_are_counted_with_their_duplicates_or_unknown(
    spark: SparkSession, peers: DataFrame
) -> None:
    """A source that lists first arrivals alone: a counted two more, b nothing."""
    presence = frame(spark, "presence", (0, 0, OPEN), (1, 0, OPEN))
    counted = dict.fromkeys(table("traffic").names) | {"peer": 0, "interval": 0, "duplicates": 2}
    traffic = frame(spark, "traffic", tuple(counted.values()))
    arrived = ((0, peer, None, None, 0, 0, True, 1, None, None) for peer in (0, 1))
    receptions = frame(spark, "receptions", *arrived)
    found = metrics(peers=peers, presence=presence, traffic=traffic, receptions=receptions)
    found = found["metrics/peers"]
    assert {key: (row.get("receptions"), row.get("duplicates")) for key, row in found.items()} == {
        (0, 0): (3, 2),
        (0, 1): (None, None),
        (1, 0): (None, None),
        (1, 1): (None, None),
    }
