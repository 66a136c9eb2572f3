"""From what was observed of messages to their tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.message_fold import ROWS, SILENCE, SUBSCRIPTION, MessageFold
from ingest.indexing import Indices, message_index, peer_index, topic_index
from ingest.messages import (
    MessageTables,
    arrivals,
    publications,
    rejections,
    rows_by_message,
)
from model.clock import OPEN, Clock
from model.columns import Table
from model.tables import SUBSCRIPTIONS
from tests.support.arrivals import Row
from tests.support.observed import observed_of

pytestmark = pytest.mark.spark


def frame(spark: SparkSession, meant: Table, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, meant.arrow)).repartition(3)


@pytest.mark.usefixtures("small_inputs")
class TestTables:
    """publications and receptions, from what was observed under the source's own names."""

    @pytest.fixture
    def observed(self, spark: SparkSession) -> dict[str, DataFrame]:
        claim = "message string, topic string, publisher string, interval int, tick long"
        arrival = f"{claim}, peer string, previous_hop string, time_us long, arrival long"
        return {
            "peers": spark.createDataFrame(
                [("a", True), ("b", True)], "name string, is_reporter boolean"
            ),
            "publications": spark.createDataFrame(
                [
                    ("told", "news", "a", 0, 5, 5),
                    ("twice", "news", "a", 0, 9, 9),
                    ("twice", "news", "b", 0, 7, 7),
                ],
                f"{claim}, time_us long",
            ),
            "receptions": spark.createDataFrame(
                [
                    ("told", "news", "a", 1, 10, "b", "a", 10, 0, None, None),
                    ("told", "news", "a", 0, 6, "b", "c", 6, 1, None, None),
                    ("told", "news", "a", 0, 6, "c", "b", 6, 2, None, None),
                    ("told", "news", "a", 1, 12, "a", "c", 12, 6, None, None),
                    ("heard", None, None, 3, 30, "b", "c", 30, 3, True, None),
                    ("heard", "news", "c", 2, 20, "a", "c", 20, 4, True, 4),
                    ("mute", None, None, 1, 11, "b", None, None, 5, True, None),
                ],
                f"{arrival}, first boolean, hop int",
            ),
            "rejections": spark.createDataFrame(
                [("refused", "news", 4, 40, "b", "a", 40, "bad")],
                "message string, topic string, interval int, tick long, peer string,"
                "previous_hop string, time_us long, reason string",
            ),
        }

    @pytest.fixture
    def indices(self, observed: dict[str, DataFrame]) -> Indices:
        clock, seen = Clock(10, 1, 0, 9), observed_of(**observed)
        return Indices(peer_index(seen, clock), topic_index(seen, clock), message_index(seen))

    def test_unreported_publication_is_derived_from_its_arrivals(
        self, observed: dict[str, DataFrame], indices: Indices
    ) -> None:
        found = publications(observed, indices).orderBy("message").toArrow().to_pylist()
        a, b, c, news = 0, 1, 2, 0
        names = ("name", "topic", "publisher", "interval", "tick", "time_us", "publication_known")
        assert [tuple(row[name] for name in names) for row in found] == [
            ("told", news, a, 0, 5, 5, True),
            ("twice", news, b, 0, 7, 7, True),
            ("mute", None, None, 1, 11, None, False),
            ("heard", news, c, 2, 20, None, False),
            ("refused", news, None, 4, 40, None, False),
        ]
        assert [row["message"] for row in found] == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("parts", [1, 3])
    def test_rows_by_message_make_the_tables_of_messages(
        self,
        spark: SparkSession,
        observed: dict[str, DataFrame],
        indices: Indices,
        parts: int,
    ) -> None:
        """c left open what it received in interval 0, of `told` and `twice`."""
        taken = [
            {"peer": 1, "topic": 0, "valid_from": 6, "valid_to": 10},
            {"peer": 2, "topic": 0, "valid_from": 5, "valid_to": 9},
            {"peer": 0, "topic": 0, "valid_from": 0, "valid_to": OPEN},
        ]
        told = MessageTables(
            publications(observed, indices),
            rejections(observed, indices),
            arrivals(observed["receptions"], indices),
            frame(spark, SUBSCRIPTIONS, taken),
            spark.createDataFrame(
                [(2, 0, True), (1, 0, False)], "peer int, interval int, receptions boolean"
            ),
        )
        rows = rows_by_message(told, parts)
        assert rows.columns == ROWS.names
        placed = rows.withColumn("part", F.spark_partition_id()).toArrow()
        found: dict[str, list[Row]] = {"receptions": [], "missed": [], "metrics/messages": []}
        for part in range(parts):
            here = placed.filter(pc.equal(placed["part"], part)).drop_columns("part")
            kinds = [kind for kind in here["kind"].to_pylist() if kind in (SUBSCRIPTION, SILENCE)]
            assert sorted(kinds) == [SUBSCRIPTION] * 3 + [SILENCE]
            for name, made in MessageFold(True, True)(here.cast(ROWS).to_batches(2)):
                found[name] += made.to_pylist()
        a, b, c = 0, 1, 2
        named = {"told": 0, "twice": 1, "mute": 2, "heard": 3, "refused": 4}
        names = ("message", "peer", "previous_hop", "tick", "first", "hop", "subscribed")
        rows_found = sorted(tuple(row[name] for name in names) for row in found["receptions"])
        assert rows_found == [
            (named["told"], a, c, 12, False, None, True),  # back at its publisher
            (named["told"], b, a, 10, False, 1, False),
            (named["told"], b, c, 6, True, None, True),  # b and c name each other: a circle
            (named["told"], c, b, 6, True, None, True),
            (named["mute"], b, None, 11, True, None, None),
            (named["heard"], a, c, 20, True, 4, True),
            (named["heard"], b, c, 30, True, 1, False),
        ]
        names = ("message", "eligible", "delivered", "late_deliveries", "rejections")
        measured = sorted(tuple(row[name] for name in names) for row in found["metrics/messages"])
        assert measured == [
            (named["told"], 0, 0, 2, 0),
            (named["twice"], 1, 0, 0, 0),
            (named["mute"], None, None, None, 0),
            (named["heard"], None, None, None, 0),
            (named["refused"], None, None, None, 1),
        ]
        assert found["missed"] == [{"message": named["twice"], "peer": a}]
