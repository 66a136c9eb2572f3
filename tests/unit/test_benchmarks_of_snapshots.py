"""The benchmark of snapshots: its graphs, what it calls right, and programs that agree."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.snapshots import by_duckdb, by_kernels, by_networkx
from benchmarks.snapshots.answers import (
    count_metrics,
    describe_difference,
    expect_arrivals,
    expect_as_of,
)
from benchmarks.snapshots.given import Given, count_lines, measure_by
from benchmarks.snapshots.graphs import SHAPES, make_events, read_events, write_graph
from benchmarks.snapshots.page import page

SMALL = replace(SHAPES["CollegeMsg"], peers=40, events=900, pairs=250, days=12)
DAYS = (0, 5, 11)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    folder = tmp_path_factory.mktemp("graph")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SHAPES, "small", SMALL)
        write_graph("small", folder, None)
    return Given(folder, DAYS)


def test_generated_graph_has_the_numbers_of_its_shape() -> None:
    events = make_events(SHAPES["CollegeMsg"])
    pairs = {*zip(events["src"].to_pylist(), events["dst"].to_pylist(), strict=True)}
    assert (len(events), len(pairs)) == (59_835, 20_296)
    assert {peer for pair in pairs for peer in pair} == {*range(1_899)}
    assert all(src != dst for src, dst in pairs)
    assert events.equals(make_events(SHAPES["CollegeMsg"]))


def test_published_file_begins_at_midnight_and_loses_its_self_loops(tmp_path: Path) -> None:
    path = tmp_path / "CollegeMsg.txt.gz"
    path.write_bytes(gzip.compress(b"3 4 1082040961\n9 9 1082040962\n4 3 1082155839\n"))
    rows = [tuple(row.values()) for row in read_events(path).to_pylist()]
    assert rows == [(3, 4, 53_761), (4, 3, 168_639)]


def test_snapshots_have_each_pair_once_a_day(given: Given) -> None:
    lines = [[*map(int, line.split())] for line in given.events.read_text().splitlines()]
    expected = {(time // 86_400, src, dst) for src, dst, time in lines}
    assert [tuple(row.values()) for row in given.rows.to_pylist()] == sorted(expected)
    presence = pq.read_table(given.folder / "presence.parquet").to_pylist()
    for row in presence:
        days = [day for day, *pair in expected if row["peer"] in pair]
        assert (row["valid_from"], row["valid_to"]) == (min(days), max(days) + 1)


def test_kernels_and_networkx_measure_the_same(given: Given) -> None:
    measure, *_ = measure_by(by_networkx.make_graph, by_networkx.structure, by_networkx.betweenness)
    ours, theirs = by_kernels.measure(given), measure(given)
    assert count_metrics(ours) == count_metrics(theirs) == 15
    assert describe_difference(theirs, ours) == "equal"
    assert describe_difference(theirs, by_duckdb.measure(given)) == "equal"


def test_arrivals_are_those_of_paths_in_the_graph_over_time(given: Given) -> None:
    graph = nx.DiGraph()
    peers, last = range(SMALL.peers), SMALL.days
    graph.add_edges_from(((p, day), (p, day + 1)) for p in peers for day in range(last))
    graph.add_edges_from(
        ((row["src"], row["interval"]), (row["dst"], row["interval"] + 1))
        for row in given.rows.to_pylist()
    )
    expected: dict[int, int] = {}
    for peer, day in sorted(nx.descendants(graph, (given.source, 0)), key=lambda node: node[1]):
        expected.setdefault(peer, day)
    expected[given.source] = 0
    arrivals = expect_arrivals(given)
    assert dict(zip(*(c.to_pylist() for c in arrivals.columns), strict=True)) == expected
    assert describe_difference(arrivals, by_duckdb.reach(given)) == "equal"


def test_links_and_paths_of_a_day_are_the_same_by_sql(given: Given) -> None:
    expected = expect_as_of(given)
    assert max(expected["hops"].to_pylist()) > 1
    assert describe_difference(expected, by_duckdb.answer_as_of(given)) == "equal"
    assert describe_difference(expected, by_networkx.answer_as_of(given)) == "equal"


def test_difference_names_rows_and_columns() -> None:
    right = pa.table({"peer": [1, 2, 3], "betweenness": [0.5, 0.25, 0.0]})
    assert describe_difference(right, right.slice(0, 2)) == "2 rows, not 3; otherwise equal"
    wrong = right.set_column(1, "betweenness", pa.array([0.5, 0.5, 0.0]))
    assert describe_difference(right, wrong) == "betweenness by up to 0.25"
    components = pa.table({"interval": [0, 0], "peer": [1, 2], "component": [2, 2]})
    renamed = components.set_column(2, "component", pa.array([1, 1]))
    assert describe_difference(components, renamed) == "equal"


def test_lines_of_a_program_are_counted_without_its_words() -> None:
    def counted() -> int:
        """What it is,

        at length.
        """
        # why

        return 1

    assert count_lines(counted) == 2


def test_page_has_date_commit_and_failures_of_each_table() -> None:
    about = {
        "date": "2026-11-27 09:00 UTC",
        "commit": "abc",
        "load": [1.0, 2.0],
        "machine": dict.fromkeys(["processor", "processors", "memory_gb", "system", "python"], 2),
    }
    step = {"cpu_mean": 3.0, "mean": 2.0}
    measured = {
        "versions": {"igraph": "1.0"}, "steps": {"metrics": step}, "peak_mb": 50, "answer": "equal",
        "facts": {"lines": 9, "metrics": 15, "intervals": 10, "total": 40},
    }  # fmt: skip
    outcomes = {
        "CollegeMsg.metrics.raphtory": {**about, "failed": "no memory"},
        "CollegeMsg.metrics.igraph": {**about, **json.loads(json.dumps(measured))},
    }
    text = page(outcomes)
    assert "| igraph 1.0 | ≈ 12 | ≈ 8 | 50 | 9 | equal | 15 of 15 | 10 of 40 |" in text
    assert "failed: no memory" in text
    assert "2026-11-27, commit abc, 2 × 2" in text
