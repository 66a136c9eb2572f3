"""What became of messages, against plain Python that looks at one message at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose
from statistics import fmean

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.dissemination import Messages, measure_messages, with_hops
from analytics.message_fold import ROWS, SILENCE, SUBSCRIPTION, MessageFold
from ingest.dense import Indices, message_index, peer_index, topic_index
from ingest.messages import (
    Told,
    arrivals,
    publications,
    receptions,
    rejections,
    rows_by_message,
)
from ingest.sources.reports import Reports
from model.clock import OPEN, Clock
from model.columns import Table
from model.metrics import METRICS_MESSAGES
from model.tables import PUBLICATIONS, RECEPTIONS, REJECTIONS, SUBSCRIPTIONS
from tests.support.arrivals import PEERS, Row, naive_hops, random_arrivals, random_messages

pytestmark = pytest.mark.spark

TOPICS, TICKS_PER_INTERVAL = 4, 100
LAST = 2_000


def test_hops_beyond_32_bits_are_unknown(spark: SparkSession) -> None:
    told, most = {"message": 7, "first": True, "publisher": 0}, 2**31 - 1
    rows = [
        {**told, "peer": 1, "previous_hop": 9, "hop": most - 1},
        {**told, "peer": 2, "previous_hop": 1, "hop": None},
        {**told, "peer": 3, "previous_hop": 2, "hop": None},
        {**told, "peer": 4, "previous_hop": 3, "hop": None},
    ]
    schema = pa.schema(
        [
            ("message", pa.int64()),
            *((name, pa.int32()) for name in ("peer", "previous_hop", "publisher", "hop")),
            ("first", pa.bool_()),
        ]
    )
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
    filled = with_hops(frame, buckets=1)
    found = {row.peer: row.hop for row in filled.collect()}
    assert found == {1: most - 1, 2: most, 3: None, 4: None}


def test_hops_in_spark_equal_plain_python(spark: SparkSession) -> None:
    rows = [{**row, "id": i} for i, row in enumerate(random_messages(8, 80))]
    numbers = ("id", "message", "peer", "previous_hop", "publisher", "hop")
    schema = pa.schema([*((name, pa.int32()) for name in numbers), ("first", pa.bool_())])
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
    filled = with_hops(frame, 5)
    assert filled.schema == frame.schema
    expected = [{**row, "hop": hop} for row, hop in zip(rows, naive_hops(rows), strict=True)]
    found = sorted(filled.toArrow().to_pylist(), key=lambda row: int(row["id"]))
    assert found == [{name: row[name] for name in schema.names} for row in expected]


@dataclass(frozen=True)
class World:
    """Tables as rows."""

    publications: list[Row]
    receptions: list[Row] | None
    rejections: list[Row]
    subscriptions: list[Row] | None
    untold: list[Row]


def random_subscriptions(rng: np.random.Generator) -> list[Row]:
    """Disjoint lives, one to three per peer and topic."""
    rows = []
    for peer in range(PEERS):
        for topic in range(TOPICS):
            cuts = sorted({int(x) for x in rng.integers(0, LAST, int(rng.choice([0, 2, 4])))})
            ends = [*cuts, OPEN] if len(cuts) % 2 else cuts
            for vf, vt in zip(ends[::2], ends[1::2], strict=True):
                rows.append({"peer": peer, "topic": topic, "vf": vf, "vt": vt})
    return rows


def random_publication(rng: np.random.Generator, message: int, subscriptions: list[Row]) -> Row:
    """At any time, or when a subscription to its topic begins or ends."""
    known, topic = bool(rng.random() < 0.85), int(rng.integers(0, TOPICS))
    turns = [row[end] for row in subscriptions for end in ("vf", "vt") if row["topic"] == topic]
    sharp = rng.random() < 0.3
    tick = int(rng.choice([t for t in turns if t < LAST]) if sharp else rng.integers(0, LAST))
    return {
        "message": message,
        "key": f"m{message}",
        "topic": None if rng.random() < 0.08 else topic,
        "publisher": int(rng.integers(0, PEERS)) if rng.random() < (0.5, 0.95)[known] else None,
        "interval": tick // TICKS_PER_INTERVAL,
        "time_us": tick if known and rng.random() < 0.9 else None,
        "tick": tick,
        "publication_known": known,
    }


def random_untold(rng: np.random.Generator) -> list[Row]:
    """Reports that leave something open, half of them receptions."""
    return [
        {"peer": peer, "interval": interval, "receptions": bool(rng.random() < 0.5)}
        for peer in range(PEERS)
        for interval in range(LAST // TICKS_PER_INTERVAL)
        if rng.random() < 0.3
    ]


def naive_interest(
    subscriptions: list[Row], peer: int, topic: int | None, tick: int
) -> bool | None:
    if topic is None:
        return None
    return any(
        row["peer"] == peer and row["topic"] == topic and row["vf"] <= tick < row["vt"]
        for row in subscriptions
    )


def random_world(seed: int, messages: int) -> World:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    subscriptions = random_subscriptions(rng)
    publications = [random_publication(rng, m, subscriptions) for m in range(messages)]
    untold = random_untold(rng)
    receptions, rejections = [], []
    for published in publications:
        timed = rng.random() < 0.9
        for row in random_arrivals(rng, published["message"], published["publisher"]):
            row["first"] &= row["peer"] != published["publisher"]
            tick = max(0, published["tick"] + int(rng.integers(-20, 300)))
            interested = naive_interest(subscriptions, row["peer"], published["topic"], tick)
            times = {
                "tick": tick,
                "interval": tick // TICKS_PER_INTERVAL,
                "time_us": tick if timed and rng.random() < 0.97 else None,
            }
            if rng.random() < 0.05:
                rejections.append({**row, **times, "reason": "refused"})
            else:
                receptions.append({**row, **times, "interested": interested})
    return World(publications, receptions, rejections, subscriptions, untold)


def naive_eligible(published: Row, subscriptions: list[Row], untold: list[Row]) -> set[int]:
    found = {
        peer
        for peer in range(PEERS)
        if naive_interest(subscriptions, peer, published["topic"], published["tick"])
    }
    interval = published["interval"]
    silent = {row["peer"] for row in untold if row["interval"] == interval and row["receptions"]}
    return found - silent - {published["publisher"]}


def naive_hits(published: Row, firsts: list[Row] | None, world: World) -> Row:
    names = ("eligible", "delivered", "delivered_in_interval", "hit_ratio", "late_deliveries")
    told = published["publication_known"] and published["topic"] is not None
    if world.subscriptions is None or not told:
        return dict.fromkeys(names)
    eligible = naive_eligible(published, world.subscriptions, world.untold)
    if firsts is None:
        return dict.fromkeys(names) | {"eligible": len(eligible)}
    reached = {row["peer"] for row in firsts} & eligible
    at_once = [
        row
        for row in firsts
        if row["peer"] in eligible and row["interval"] == published["interval"]
    ]
    late = [
        row
        for row in firsts
        if row["peer"] not in eligible | {published["publisher"]} and row["interested"]
    ]
    ratio = len(reached) / len(eligible) if eligible else None
    return dict(
        zip(names, (len(eligible), len(reached), len(at_once), ratio, len(late)), strict=True)
    )


def naive_violations(published: Row, arrived: list[Row]) -> int | None:
    """Arrivals before the publication, or before the first one at the peer they came from."""
    at = {row["peer"]: row["time_us"] for row in arrived if row["first"]}
    if all(row["time_us"] is None for row in arrived):
        return None
    return sum(
        any(cause is not None and row["time_us"] < cause for cause in causes)
        for row in arrived
        if row["time_us"] is not None
        for causes in [(published["time_us"], at.get(row["previous_hop"]))]
    )


def naive_delays(published: Row, firsts: list[Row]) -> Row:
    delays = [
        row["time_us"] - published["time_us"]
        for row in firsts
        if row["time_us"] is not None and published["time_us"] is not None
    ]
    shares = {f"delay_us_p{share}": share for share in (50, 95, 99)}
    if not delays:
        return dict.fromkeys(["delay_us_mean", *shares, "delay_us_max"])
    found = {name: float(np.percentile(delays, share)) for name, share in shares.items()}
    return {"delay_us_mean": fmean(delays), **found, "delay_us_max": float(max(delays))}


def naive_message(published: Row, world: World) -> Row:
    """Its row of metrics/messages."""
    message = published["message"]
    refused = sum(row["message"] == message for row in world.rejections)
    told = {"message": message, "rejections": refused}
    if world.receptions is None:
        return dict.fromkeys(METRICS_MESSAGES.names) | told | naive_hits(published, None, world)
    arrived = [row for row in world.receptions if row["message"] == message]
    firsts = [row for row in arrived if row["first"]]
    hops = [row["hop"] for row in firsts if row["hop"] is not None]
    interest_known = world.subscriptions is not None and published["topic"] is not None
    return {
        **told,
        "receptions": len(arrived),
        "first_receptions": len(firsts),
        "duplicates": len(arrived) - len(firsts),
        "relay_receptions": sum(not row["interested"] for row in arrived)
        if interest_known
        else None,
        "hops_mean": fmean(hops) if hops else None,
        "hops_max": max(hops, default=None),
        "redundancy": len(arrived) / len(firsts) - 1 if firsts else None,
        "causality_violations": naive_violations(published, arrived),
        **naive_hits(published, firsts, world),
        **naive_delays(published, firsts),
    }


def frame(spark: SparkSession, meant: Table, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, meant.arrow)).repartition(3)


def measured(spark: SparkSession, world: World) -> list[Row]:
    receptions, subscriptions = world.receptions, world.subscriptions
    tables = Messages(
        frame(spark, PUBLICATIONS, world.publications),
        None if receptions is None else frame(spark, RECEPTIONS, receptions),
        frame(spark, REJECTIONS, world.rejections),
        None if subscriptions is None else frame(spark, SUBSCRIPTIONS, subscriptions),
        spark.createDataFrame(world.untold, "peer int, interval int, receptions boolean"),
    )
    found = measure_messages(tables)
    assert found.columns == METRICS_MESSAGES.names
    rows: list[Row] = found.orderBy("message").toArrow().cast(METRICS_MESSAGES.arrow).to_pylist()
    return rows


def check(found: list[Row], world: World) -> None:
    expected = [naive_message(published, world) for published in world.publications]
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        unlike = {
            name: (row[name], wanted[name])
            for name in METRICS_MESSAGES.names
            if not alike(row[name], wanted[name])
        }
        assert not unlike, row["message"]


def alike(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12)


@pytest.fixture(scope="module")
def world() -> World:
    return random_world(30, 150)


def test_message_metrics_equal_plain_python(spark: SparkSession, world: World) -> None:
    found = measured(spark, world)
    check(found, world)
    for name in METRICS_MESSAGES.names:  # no column is right because it is empty
        assert len({row[name] for row in found}) > 2, name


@pytest.mark.usefixtures("small_inputs")
def test_metrics_of_interest_without_subscriptions_are_null(
    spark: SparkSession, world: World
) -> None:
    receptions = [{**row, "interested": None} for row in world.receptions or ()]
    blind = replace(world, subscriptions=None, receptions=receptions)
    found = measured(spark, blind)
    check(found, blind)
    unknown = {"eligible", "delivered", "hit_ratio", "late_deliveries", "relay_receptions"}
    assert all(row[name] is None for row in found for name in unknown)
    assert sum(row["receptions"] for row in found) == len(receptions) > 0


@pytest.mark.usefixtures("small_inputs")
def test_message_metrics_without_receptions_equal_plain_python(
    spark: SparkSession, world: World
) -> None:
    untold = replace(world, receptions=None)
    found = measured(spark, untold)
    check(found, untold)
    known = {name for name in METRICS_MESSAGES.names for row in found if row[name] is not None}
    assert known == {"message", "eligible", "rejections"}


@pytest.mark.usefixtures("small_inputs")
def test_message_metrics_without_arrivals_equal_plain_python(
    spark: SparkSession, world: World
) -> None:
    silent = replace(world, receptions=[], rejections=[])
    found = measured(spark, silent)
    check(found, silent)
    assert {row["receptions"] for row in found} == {0}
    assert {row["delivered"] for row in found} == {0, None}


@pytest.mark.usefixtures("small_inputs")
def test_message_metrics_without_publications_are_empty(spark: SparkSession) -> None:
    assert measured(spark, World([], [], [], [], [])) == []


@pytest.mark.usefixtures("small_inputs")
class TestTables:
    """publications and receptions, from what was observed under the source's own names."""

    @pytest.fixture
    def observed(self, spark: SparkSession) -> dict[str, DataFrame]:
        claim = "message string, topic string, publisher string, interval int, tick long"
        arrival = f"{claim}, peer string, previous_hop string, time_us long, arrival long"
        return {
            "peers": spark.createDataFrame(
                [("a", True), ("b", True)], "key string, reports boolean"
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
        clock = Clock(10, 1, 0, 9)
        peers = peer_index(observed, clock, Reports().peer_key)
        return Indices(peers, topic_index(observed, clock), message_index(observed))

    def test_unreported_publication_is_derived_from_its_arrivals(
        self, observed: dict[str, DataFrame], indices: Indices
    ) -> None:
        found = publications(observed, indices).orderBy("message").toArrow().to_pylist()
        a, b, c, news = 0, 1, 2, 0
        names = ("key", "topic", "publisher", "interval", "tick", "time_us", "publication_known")
        assert [tuple(row[name] for name in names) for row in found] == [
            ("told", news, a, 0, 5, 5, True),
            ("twice", news, b, 0, 7, 7, True),
            ("mute", None, None, 1, 11, None, False),
            ("heard", news, c, 2, 20, None, False),
            ("refused", news, None, 4, 40, None, False),
        ]
        assert [row["message"] for row in found] == [0, 1, 2, 3, 4]

    def test_receptions_are_given_first_hop_and_interest(
        self, spark: SparkSession, observed: dict[str, DataFrame], indices: Indices
    ) -> None:
        published = publications(observed, indices)
        taken = [
            {"peer": 1, "topic": 0, "vf": 6, "vt": 10},
            {"peer": 2, "topic": 0, "vf": 7, "vt": 9},
        ]
        subscriptions = frame(spark, SUBSCRIPTIONS, taken)
        rows = receptions(observed, indices, published, subscriptions)
        a, b, c = 0, 1, 2
        told, mute, heard = 0, 2, 3
        names = ("message", "peer", "previous_hop", "tick", "first", "hop", "interested")
        found = rows.select(*names).orderBy("message", "peer", "tick").collect()
        assert [tuple(row) for row in found] == [
            (told, a, c, 12, False, None, False),  # back at its publisher
            (told, b, c, 6, True, None, True),  # b and c name each other: a circle
            (told, b, a, 10, False, 1, False),
            (told, c, b, 6, True, None, False),
            (mute, b, None, 11, True, None, None),
            (heard, a, c, 20, True, 4, False),
            (heard, b, c, 30, True, 1, False),
        ]

    def test_interest_without_subscriptions_is_null(
        self, observed: dict[str, DataFrame], indices: Indices
    ) -> None:
        rows = receptions(observed, indices, publications(observed, indices), None)
        assert {row["interested"] for row in rows.collect()} == {None}

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
            {"peer": 1, "topic": 0, "vf": 6, "vt": 10},
            {"peer": 2, "topic": 0, "vf": 5, "vt": 9},
            {"peer": 0, "topic": 0, "vf": 0, "vt": OPEN},
        ]
        told = Told(
            publications(observed, indices),
            rejections(observed, indices),
            arrivals(observed, indices),
            frame(spark, SUBSCRIPTIONS, taken),
            spark.createDataFrame(
                [(2, 0, True), (1, 0, False)], "peer int, interval int, receptions boolean"
            ),
        )
        rows = rows_by_message(told, parts)
        assert rows.columns == ROWS.names
        placed = rows.withColumn("part", F.spark_partition_id()).toArrow()
        found: dict[str, list[Row]] = {"receptions": [], "metrics/messages": []}
        for part in range(parts):
            here = placed.filter(pc.equal(placed["part"], part)).drop_columns("part")
            kinds = [kind for kind in here["kind"].to_pylist() if kind in (SUBSCRIPTION, SILENCE)]
            assert sorted(kinds) == [SUBSCRIPTION] * 3 + [SILENCE]
            for name, made in MessageFold(True, True)(here.cast(ROWS).to_batches(2)):
                found[name] += made.to_pylist()
        a, b, c = 0, 1, 2
        named = {"told": 0, "twice": 1, "mute": 2, "heard": 3, "refused": 4}
        names = ("message", "peer", "previous_hop", "tick", "first", "hop", "interested")
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
