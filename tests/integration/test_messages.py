"""From what was observed of messages to their tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from tests.support.texts import given, made, made_tables, names_of, rows_of
from vizpub.analytics.messages.message_fold import MessageFold
from vizpub.analytics.steps import Step
from vizpub.ingest.sources.folded import OBSERVED
from vizpub.ingest.tasks.staged import ARRIVALS, CLAIMS, ingest_step
from vizpub.model.clock import OPEN, Clock
from vizpub.model.tables import PUBLICATIONS, REJECTIONS

Row = dict[str, Any]
CLOCK = Clock(10, 1, 0, 9)
NAMES = {"told": 0, "twice": 1, "mute": 2, "heard": 3, "refused": 4}
NUMBERED = [ingest_step(name) for name in ("peers", "topics", "messages")]
EVENTS = [ingest_step(name) for name in ("claims", "arrivals", "rejections")]


def rows(name: str, columns: str, *values: tuple[Any, ...]) -> pa.Table:
    """Rows of an observed table; columns that are not named are null."""
    records = [dict(zip(columns.split(), row, strict=True)) for row in values]
    return pa.Table.from_pylist(records, OBSERVED[name])


@pytest.fixture
def observed() -> dict[str, pa.Table]:
    claim = "message topic publisher interval tick"
    arrival = f"{claim} peer previous_hop time_us arrival first hop"
    return {
        "publications": rows(
            "publications",
            f"{claim} time_us bytes",
            ("told", "news", "a", 0, 5, 5, 512),
            ("twice", "news", "a", 0, 9, 9, 7),
            ("twice", "news", "b", 0, 7, 7, None),
        ),
        "receptions": rows(
            "receptions",
            arrival,
            ("told", "news", "a", 1, 10, "b", "a", 10, 0, None, None),
            ("told", "news", "a", 0, 6, "b", "c", 6, 1, None, None),
            ("told", "news", "a", 0, 6, "c", "b", 6, 2, None, None),
            ("told", "news", "a", 1, 12, "a", "c", 12, 6, None, None),
            ("heard", None, None, 3, 30, "b", "c", 30, 3, True, None),
            ("heard", "news", "c", 2, 20, "a", "c", 20, 4, True, 4),
            ("mute", None, None, 1, 11, "b", None, None, 5, True, None),
        ),
        "rejections": rows(
            "rejections",
            "message topic interval tick peer previous_hop time_us reason",
            ("refused", "news", 4, 40, "b", "a", 40, "bad"),
        ),
    }


@pytest.fixture
def tables(observed: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """What is made by name and by peer."""
    of, names = given(CLOCK, {"peers", *observed}), names_of(observed)
    found = {f"observed/{name}": rows for name, rows in observed.items()}
    found |= {"observed/names": names, "observed/peers": pa.table({"name": ["a", "b"]})}
    for name in ("peers", "topics", "staged/messages"):
        found[name] = made(name, NUMBERED, found, of)
    events = [CLAIMS, ARRIVALS, REJECTIONS]
    return found | made_tables(EVENTS, found, events, of)


def test_names_are_numbered_by_their_first_interval(tables: dict[str, pa.Table]) -> None:
    peers = sorted(tuple(row.values()) for row in tables["peers"].to_pylist())
    assert peers == [(0, "a", True), (1, "b", True), (2, "c", False)]
    messages = {row["name"]: row["message"] for row in tables["staged/messages"].to_pylist()}
    assert messages == NAMES


def test_unreported_publication_is_derived_from_its_arrivals(tables: dict[str, pa.Table]) -> None:
    of = given(CLOCK, messages=(0, 5))
    found = made("publications", [ingest_step("publications")], tables, of).sort_by("message")
    a, b, c, news = 0, 1, 2, 0
    about = ("name", "topic", "publisher", "interval", "tick", "time_us", "bytes")
    names = (*about, "publication_known")
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == [
        ("told", news, a, 0, 5, 5, 512, True),
        ("twice", news, b, 0, 7, 7, None, True),
        ("mute", None, None, 1, 11, None, None, False),
        ("heard", news, c, 2, 20, None, None, False),
        ("refused", news, None, 4, 40, None, None, False),
    ]
    assert found["message"].to_pylist() == [0, 1, 2, 3, 4]


def test_first_of_claims_counts_whatever_their_order(tables: dict[str, pa.Table]) -> None:
    """Claims of a tick: with a time first, then by the names of publisher and topic."""
    claims = [
        (0, True, "x", "b", None, 0, 3),
        (0, True, "x", "a", 9, 0, 3),
        (0, True, "x", "a", 8, 0, 3),
        (1, True, "y", "b", None, 0, 3),
        (1, True, None, "b", None, 0, 3),
        (1, True, "x", None, None, 0, 4),
    ]
    named = {"peers": {"a": 0, "b": 1}, "topics": {"x": 0, "y": 1}}
    given_tables = {
        "staged/messages": pa.table({"message": [0, 1], "name": ["m", "n"]}),
        **{
            name: pa.table({name[:-1]: [*of.values()], "name": [*of]}) for name, of in named.items()
        },
    }
    for order in (claims, claims[::-1]):
        rows = [dict(zip(CLAIMS_OF, row, strict=True)) for row in order]
        given_tables["staged/claims"] = pa.Table.from_pylist(rows, CLAIMS.arrow)
        found = made(
            "publications", [ingest_step("publications")], given_tables, given(messages=(0, 2))
        ).sort_by("message")
        names = ("topic", "publisher", "time_us", "tick")
        assert [tuple(row[name] for name in names) for row in found.to_pylist()] == [
            (0, 0, 8, 3),
            (None, 1, None, 3),
        ]


CLAIMS_OF = ("message", "is_report", "topic", "publisher", "time_us", "interval", "tick")


@pytest.mark.parametrize("ends", [(0, 5), (0, 1, 3, 5)], ids=["at once", "by ranges"])
def test_ranges_of_messages_make_the_tables_of_messages(
    tables: dict[str, pa.Table], ends: tuple[int, ...]
) -> None:
    """c left open what it received in interval 0, of `told` and `twice`."""
    silent = {"peer": [2, 1], "interval": [0, 0], "receptions": [True, False]}
    tables |= {
        "subscriptions": rows_of("subscriptions", (1, 0, 6, 10), (2, 0, 5, 9), (0, 0, 0, OPEN)),
        "staged/unreported": pa.table(silent),
    }
    fold = MessageFold(True, True, at_once=2)
    follow = Step("messages", "", "", whole=("message_rows",), fold=fold)
    chosen = [ingest_step("publications"), ingest_step("message_rows"), follow]
    found: dict[str, list[Row]] = {"receptions": [], "missed": [], "metrics/messages": []}
    for span in pairwise(ends):
        of = given(CLOCK, messages=span)
        for name, part in made_tables(chosen, tables, [PUBLICATIONS], of).items():
            found.setdefault(name, []).extend(part.to_pylist())
    assert [row["message"] for row in found["publications"]] == [*range(5)]
    a, b, c = 0, 1, 2
    names = ("message", "peer", "previous_hop", "tick", "first", "hop", "subscribed")
    rows_found = sorted(tuple(row[name] for name in names) for row in found["receptions"])
    assert rows_found == [
        (NAMES["told"], a, c, 12, False, None, True),  # back at its publisher
        (NAMES["told"], b, a, 10, False, 1, False),
        (NAMES["told"], b, c, 6, True, None, True),  # b and c name each other: a circle
        (NAMES["told"], c, b, 6, True, None, True),
        (NAMES["mute"], b, None, 11, True, None, None),
        (NAMES["heard"], a, c, 20, True, 4, True),
        (NAMES["heard"], b, c, 30, True, 1, False),
    ]
    names = ("message", "eligible", "delivered", "late_deliveries", "rejections")
    measured = sorted(tuple(row[name] for name in names) for row in found["metrics/messages"])
    assert measured == [
        (NAMES["told"], 0, 0, 1, 0),  # whether c was to get it, nobody knows
        (NAMES["twice"], 1, 0, 0, 0),
        (NAMES["mute"], None, None, None, 0),
        (NAMES["heard"], None, None, None, 0),
        (NAMES["refused"], None, None, None, 1),
    ]
    assert found["missed"] == [{"message": NAMES["twice"], "peer": a}]
