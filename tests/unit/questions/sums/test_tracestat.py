"""The counts of a run that is known by heart; a recorded trace is in tests/integration."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.rewriting import rewrite
from vizpub.model.errors import UnknownName, UseError
from vizpub.questions.names import NamedRun
from vizpub.questions.sums.tracestat import Tracestat, distribution, quantiles, totals
from vizpub.runstore.store import open_run


@pytest.fixture
def run(workspace: Path) -> NamedRun:
    return NamedRun(open_run(workspace, "monday"))


def test_counts_of_peers_are_those_of_the_rows(run: NamedRun) -> None:
    names = ("published", "delivered", "delivered_and_own", "duplicates")
    found = Tracestat(run).per_peer()
    assert {row["peer"]: tuple(row[name] for name in names) for row in found} == {
        "alice": (2, 0, 2, 0),
        "bob": (0, 1, 1, 1),
        "carol": (0, 1, 1, 0),
        "dave": (0, 1, 1, 0),
    }
    assert totals(found)["delivered_and_own"] == 5


def test_counts_of_tables_that_are_not_known_are_unknown(run: NamedRun) -> None:
    found = totals(Tracestat(run).per_peer())
    unknown = ("rejected", "rpcs_sent", "rpcs_received", "rpcs_dropped")
    assert {found[name] for name in unknown} == {None}


def test_total_is_unknown_where_that_of_a_peer_is() -> None:
    known = dict.fromkeys(totals([]), 1)
    found = totals([known, known | {"rpcs_sent": None}])
    assert (found["peers"], found["published"], found["rpcs_sent"]) == (2, 2, None)


def test_messages_have_their_delays(run: NamedRun) -> None:
    rows = [row for batch in Tracestat(run).per_message() for row in batch.to_pylist()]
    told = {"topic": "news", "publisher": "alice", "rejected": None}
    assert rows == [
        {"message": "m0", **told, "delivered": 3, "duplicates": 1, "delays_ms": [30, 50, 90]},
        {"message": "m1", **told, "delivered": 0, "duplicates": 0, "delays_ms": []},
    ]
    assert Tracestat(run).delays() == [(30, 1), (50, 2), (90, 3)]


def test_delay_of_all_times_that_there_are_is_counted(workspace: Path) -> None:
    stored = open_run(workspace, "monday")
    for name, time_us in (("publications", 0), ("receptions", 2**63 - 1)):
        rows = stored.read(name)
        times = pa.array([time_us] * len(rows), pa.int64())
        place = rows.column_names.index("time_us")
        rewrite(workspace, "monday", name, rows.set_column(place, rows.field(place), times))
    found = Tracestat(NamedRun(open_run(workspace, "monday"))).delays()
    assert found == [((2**63 - 1 + 500) // 1000, 3)]


def test_topic_counts_its_messages_and_peers_alone(run: NamedRun) -> None:
    sport = Tracestat(run, "sport/日本")
    assert [row["peer"] for row in sport.per_peer()] == ["dave"]
    assert totals(sport.per_peer())["delivered"] == 0
    assert sport.delays() == list(sport.per_message()) == []
    assert len(Tracestat(run, "news").per_peer()) == 4


def test_topic_that_is_none_is_refused(run: NamedRun) -> None:
    with pytest.raises(UnknownName, match="topic"):
        Tracestat(run, "weather").per_peer()


def test_run_without_receptions_is_refused(run: NamedRun, workspace: Path) -> None:
    tables = dict(run.stored.manifest.tables)
    del tables["receptions"]
    object.__setattr__(run.stored.manifest, "tables", tables)
    with pytest.raises(UseError, match="receptions"):
        Tracestat(run)


def test_distribution_begins_with_what_publishers_delivered_to_themselves() -> None:
    assert [tuple(row.values()) for row in distribution([(-3, 1), (4, 2)], 10)] == [
        (-3, 1, 1),
        (0, 1, 11),
        (4, 2, 12),
    ]
    assert [tuple(row.values()) for row in distribution([(0, 1)], None)] == [(0, 1, None)]
    assert distribution([], 10) == []


def test_quantile_is_the_least_delay_that_covers_its_share() -> None:
    found = quantiles([(10, 50), (20, 94), (30, 95), (40, 100)])
    assert [found[f"delay_ms_p{share}"] for share in (5, 50, 75, 95, 99, 100)] == [
        *(10, 10, 20, 30, 40, 40)
    ]
    assert set(quantiles([]).values()) == {None}
