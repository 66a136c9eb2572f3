"""What nobody told is null in every metrics table, never 0; runs made by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.messages import message_tables
from tests.support.metrics import metrics_of
from tests.support.texts import rows_of
from vizpub.model.clock import OPEN, Clock
from vizpub.model.tables import table

CLOCK = Clock(1, None, 0, 1)
Row = dict[str, Any]


def metrics(*facts: str, **given: pa.Table) -> dict[str, dict[Any, Row]]:
    """The rows of the metrics tables by their key, without what is null."""
    tables = {name.replace("__", "/"): rows for name, rows in given.items()}
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
def peers() -> pa.Table:
    return rows_of("peers", (0, "a", True), (1, "b", True), (2, "c", False))


def test_metrics_without_links_leave_link_columns_null(peers: pa.Table) -> None:
    presence = rows_of("presence", (0, 0, OPEN), (1, 0, 1), (2, 0, OPEN))
    taken = rows_of("subscriptions", (0, 0, 0, OPEN), (1, 0, 0, 1))
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


def test_message_metrics_without_receptions_leave_hits_null() -> None:
    published = rows_of("publications", (0, "m", 0, 0, 0, None, 0, True, None))
    taken = rows_of("subscriptions", (0, 0, 0, OPEN), (1, 0, 0, OPEN))
    told = {"publications": published, "rejections": rows_of("rejections"), "subscriptions": taken}
    (row,) = message_tables(told)["metrics/messages"].to_pylist()
    known = {name: value for name, value in row.items() if value is not None}
    assert known == {"message": 0, "eligible": 1, "rejections": 0}


def test_unknown_rejections_are_null_and_leave_no_message_out(peers: pa.Table) -> None:
    published = rows_of("publications", (0, "m", 0, 0, 0, None, 0, True, None))
    taken = rows_of("subscriptions", (1, 0, 0, OPEN), (2, 0, 0, OPEN))
    arrived = rows_of("receptions", (0, 1, 0, None, 0, 0, True, 1, True, True))
    told = {"publications": published, "receptions": arrived, "subscriptions": taken}
    (row,) = (found := message_tables(told)["metrics/messages"]).to_pylist()
    assert (row["rejections"], row["hit_ratio"]) == (None, 0.5)
    measured = metrics(
        "duplicates",
        peers=peers,
        subscriptions=taken,
        receptions=arrived,
        publications=published,
        metrics__messages=found,
    )
    of_overlay, of_topics = measured["metrics/overlay"], measured["metrics/topics"]
    assert of_overlay[0,]["hit_ratio"] == 0.5
    assert of_overlay[0,]["publications"] == 1
    assert of_topics[0, 0]["publications"] == 1
    rows = [*of_overlay.values(), *of_topics.values()]
    assert all("rejected_publications" not in row for row in rows)


def test_peer_with_unreported_receptions_is_not_eligible() -> None:
    published = rows_of("publications", (0, "m", 0, 0, 0, None, 0, True, None))
    taken = rows_of("subscriptions", (1, 0, 0, OPEN), (2, 0, 0, OPEN))
    arrived = rows_of("receptions", (0, 1, 0, None, 0, 0, True, 1, True, True))
    unreported = pa.table({"peer": [2], "interval": [0], "receptions": [True]})
    told = {
        "publications": published,
        "rejections": rows_of("rejections"),
        "receptions": arrived,
        "subscriptions": taken,
        "unreported": unreported,
    }
    (row,) = message_tables(told)["metrics/messages"].to_pylist()
    assert (row["eligible"], row["delivered"], row["hit_ratio"]) == (1, 1, 1.0)


def test_unreported_fields_of_a_report_are_null_in_metrics(peers: pa.Table) -> None:
    """a left its receptions of interval 1 open and b its subscriptions of interval 0."""
    presence = rows_of("presence", (0, 0, OPEN), (1, 0, OPEN))
    taken = rows_of("subscriptions", (0, 0, 0, OPEN))
    links = rows_of("links", (0, 1, "overlay", None, 0, OPEN))
    arrived = (0, 1, 0, None, 0, 0, True, 1, False, False)
    unreported = pa.table(
        {
            "peer": [0, 1],
            "interval": [1, 0],
            "receptions": [True, False],
            "subscriptions": [False, True],
        }
    )
    receptions = rows_of("receptions", arrived)
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
    peers: pa.Table,
) -> None:
    """A source that lists first arrivals alone: a counted two more, b nothing."""
    presence = rows_of("presence", (0, 0, OPEN), (1, 0, OPEN))
    counted = dict.fromkeys(table("traffic").names) | {"peer": 0, "interval": 0, "duplicates": 2}
    traffic = rows_of("traffic", tuple(counted.values()))
    arrived = ((0, peer, None, None, 0, 0, True, 1, *[None] * 4) for peer in (0, 1))
    receptions = rows_of("receptions", *arrived)
    found = metrics(peers=peers, presence=presence, traffic=traffic, receptions=receptions)
    found = found["metrics/peers"]
    assert {key: (row.get("receptions"), row.get("duplicates")) for key, row in found.items()} == {
        (0, 0): (3, 2),
        (0, 1): (None, None),
        (1, 0): (None, None),
        (1, 1): (None, None),
    }
