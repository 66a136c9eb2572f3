"""Arrivals of messages in a gossipsub trace and in a simulated system that reports."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest

from tests.support.ingested import ROOT, Store
from tests.support.reachable import reachable
from vizpub.model.tables import COPY_FLAGS
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate

pytestmark = pytest.mark.spark

WORLD = {
    "peers": 30, "intervals": 20, "interval": "2s", "churn": "exponential:20s,down=10s",
    "workload": "uniform:topics=3,subscriptions=2", "publications": "every:1,first=8,last=17",
}  # fmt: skip
DUPLICATE, DELIVER = 2, 3


@pytest.fixture(scope="module")
def traced(gossipsub: StoredRun) -> Run:
    return Run(gossipsub)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Reports of Scribe, whose peers come and go."""
    out = Folder(tmp_path_factory.mktemp("simulated") / "arrivals")
    simulate(make_plan("scribe", WORLD, 5), out)
    return sorted(out.reports.iterdir())


@pytest.fixture(scope="module")
def simulated(stored: Store, reports: list[Path]) -> Run:
    return Run(stored("arrivals", *reports))


def first_duplicates(file: Path) -> dict[tuple[str, str], tuple[int, list[int]]]:
    """The times of the first copy, and of the others, in µs, by peer and message of a trace."""
    first: dict[tuple[str, str], int] = {}
    others = defaultdict(list)
    with gzip.open(file, "rt") as lines:
        for event in map(json.loads, lines):
            us = int(event["timestamp"]) // 1000
            if event["type"] == DELIVER:
                about = event["deliverMessage"]
                if about.get("receivedFrom", event["peerID"]) != event["peerID"]:
                    first[event["peerID"], about["messageID"]] = us
            elif event["type"] == DUPLICATE:
                others[event["peerID"], event["duplicateMessage"]["messageID"]].append(us)
    return {pair: (us, others[pair]) for pair, us in first.items()}


def test_duplicates_of_a_trace_are_those_of_its_events(traced: Run) -> None:
    copies: dict[Any, tuple[int, list[int]]] = {}
    for file in (ROOT / "examples/gossipsub").glob("*.gz"):
        copies |= first_duplicates(file)
    after = [min(others) - first for first, others in copies.values() if others]
    [row] = traced.duplicates().to_pylist()
    assert row["first_receptions"] == len(copies)
    assert row["with_duplicates"] == len(after)
    assert row["duplicates"] == sum(len(others) for _, others in copies.values())
    for name, of in {"p50": 0.5, "p95": 0.95, "max": 1}.items():
        assert row[f"first_duplicate_us_{name}"] == pytest.approx(np.quantile(after, of))


def requested_duplicates(file: Path) -> list[int]:
    """The duplicates of a peer's trace, those after its IDONTWANT, before it, and by its IWANT."""
    unwanted, asked, earlier, counts = set(), set(), [], [0, 0, 0, 0]
    with gzip.open(file, "rt") as lines:
        for event in sorted(map(json.loads, lines), key=lambda event: int(event["timestamp"])):
            rpc = event.get("sendRPC") or {}
            control = (rpc.get("meta") or {}).get("control") or {}
            for entry in control.get("idontwant") or ():
                unwanted |= {*entry["messageIDs"]}
            for entry in control.get("iwant") or ():
                asked |= {(rpc["sendTo"], message) for message in entry["messageIDs"]}
            if event["type"] == DUPLICATE:
                about = event["duplicateMessage"]
                copy = about["receivedFrom"], about["messageID"]
                counts[0] += 1
                counts[1] += copy[1] in unwanted
                earlier += [] if copy[1] in unwanted else [copy[1]]
                counts[3] += copy in asked
    counts[2] = sum(message in unwanted for message in earlier)
    return counts


def test_duplicates_that_a_peer_asked_for_are_those_of_its_events(traced: Run) -> None:
    files = (ROOT / "examples/gossipsub").glob("*.gz")
    counts = np.sum([requested_duplicates(file) for file in files], axis=0).tolist()
    marked = traced.table("receptions")
    again = marked.filter(pc.invert(marked["first"]))
    flags = [flag.name for flag in COPY_FLAGS]
    assert [len(again), *(pc.sum(again[flag]).as_py() for flag in flags)] == counts
    assert 0 == counts[2] < counts[3] < counts[1] < counts[0]
    [row] = traced.duplicates().to_pylist()
    assert 0 < row["duplicates_by_iwant"] <= row["duplicates_after_idontwant"] < row["duplicates"]


def test_duplicates_of_a_simulated_system_are_those_of_its_reports(
    simulated: Run, reports: list[Path]
) -> None:
    rows = duckdb.sql(
        f"""
        WITH received AS (
            SELECT peer, unnest(received, max_depth := 2)
            FROM read_json({[*map(str, reports)]}, format = 'newline_delimited')
        ), times AS (
            SELECT list_sort(list(time_us)) AS us FROM received WHERE peer <> publisher
            GROUP BY peer, message
        )
        SELECT count(*), count(*) FILTER (len(us) > 1), sum(len(us) - 1), median(us[2] - us[1])
        FROM times
        """
    ).fetchall()
    [row] = simulated.duplicates().to_pylist()
    names = ("first_receptions", "with_duplicates", "duplicates", "first_duplicate_us_p50")
    assert [row[name] for name in names] == [*rows[0]]
    assert row["duplicates_after_idontwant"] is row["duplicates_by_iwant"] is None


@pytest.mark.parametrize("name", ["traced", "simulated"])
def test_reachable_peers_are_those_of_components_at_every_change(
    request: pytest.FixtureRequest, name: str
) -> None:
    run: Run = request.getfixturevalue(name)
    layer, within = {"traced": ("mesh", 1_000_000), "simulated": ("tree", 2)}[name]
    links = [row for row in run.table("links").to_pylist() if row["layer"] == layer]
    first, missed = defaultdict(dict), defaultdict(set)
    for row in run.table("receptions").to_pylist():
        if row["first"] and row["eligible"]:
            first[row["message"]][row["peer"]] = row["tick"]
    for row in run.table("missed").to_pylist():
        missed[row["message"]].add(row["peer"])
    within_us = within * (run.clock.tick_us or 0)
    rows = run.reachability(within_us=within_us, layers=[layer]).to_pylist()
    for published, row in zip(run.table("publications").to_pylist(), rows, strict=True):
        message, end = published["message"], published["tick"] + within
        had = {peer for peer, tick in first[message].items() if tick <= end}
        eligible = {*first[message]} | missed[message]
        can = reachable(links, published, end) & eligible
        wanted = (message, len(eligible), len(had), len(can), len(can - had), len(had - can))
        assert (row["message"], *[*row.values()][-5:]) == wanted


@pytest.mark.parametrize("name", ["traced", "simulated"])
def test_clocks_of_one_machine_may_be_equal(request: pytest.FixtureRequest, name: str) -> None:
    run: Run = request.getfixturevalue(name)
    rows = run.clocks().to_pylist()
    assert not any(row["contradictory"] for row in rows)
    assert all((row["offset_us_min"] or 0) <= 0 <= (row["offset_us_max"] or 0) for row in rows)
    assert sum(row["offset_us_max"] is not None for row in rows) > len(rows) / 2
    violations = run.metrics("messages", ["causality_violations"]).to_arrow()
    assert pc.sum(violations["causality_violations"]).as_py() == 0


def test_bytes_of_a_simulated_system_are_those_that_its_peers_report(
    simulated: Run, reports: list[Path]
) -> None:
    """Each arrival has the size of its copy; first is the earliest at a peer, but the publisher."""
    wanted = duckdb.sql(
        f"""
        WITH received AS (
            SELECT peer, unnest(received, max_depth := 2)
            FROM read_json({[*map(str, reports)]}, format = 'newline_delimited')
        ), copies AS (
            SELECT *, peer <> publisher AND time_us = min(time_us) OVER (PARTITION BY peer, message)
                AS first
            FROM received
        )
        SELECT sum(bytes), sum(bytes) FILTER (first), sum(bytes) FILTER (NOT first),
            sum(bytes) FILTER ("from" = publisher), sum(bytes) FILTER ("from" <> publisher)
        FROM copies
        """
    ).fetchall()
    [row] = simulated.amplification().to_pylist()
    assert row["messages"] == row["sized_messages"] == simulated.stored.rows("publications")
    assert [value for name, value in row.items() if name.startswith("bytes_")] == [*wanted[0]]


def test_bytes_of_a_trace_are_unknown(traced: Run) -> None:
    [row] = traced.amplification().to_pylist()
    assert row["messages"] == traced.stored.rows("publications")
    assert row["sized_messages"] == 0
    assert {value for name, value in row.items() if not name.endswith("messages")} == {None}
