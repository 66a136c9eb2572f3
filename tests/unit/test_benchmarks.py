"""What the benchmarks measure on, and what they make of what they measured."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import __main__ as command
from benchmarks import results
from benchmarks.dissemination import INTERVAL_US, messages, subscriptions
from benchmarks.estimates import deviations
from benchmarks.growth import exponent
from benchmarks.inputs import REWRITERS, Inputs
from benchmarks.markdown import table
from benchmarks.others.loop import named_by_smallest
from benchmarks.overlay import history
from benchmarks.overlay import rows as link_rows
from benchmarks.page import EXPLORED, EXPLORER, page
from benchmarks.parts import Bench
from benchmarks.reference import require_same, sample
from benchmarks.reports import first_interval
from benchmarks.sizes import SIZES, Size
from benchmarks.snapshots.page import FOLDER as OF_SNAPSHOTS
from benchmarks.watched import Program, measure
from tests.support.words import naming
from vizpub.model.clock import OPEN
from vizpub.model.errors import CheckFailed
from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report

SMALL = Size("XS", peers=30, intervals=40, links=4, topics=6, subscriptions=2)

Row = tuple[int, int, int]


def rows_of(size: Size) -> set[Row]:
    return {tuple(row.values()) for step in history(size) for row in link_rows(step).to_pylist()}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return Inputs(SMALL, tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def rows() -> set[Row]:
    """interval, src, dst"""
    return rows_of(SMALL)


@pytest.fixture(scope="module")
def links(inputs: Inputs) -> list[dict[str, int]]:
    found: list[dict[str, int]] = pq.read_table(inputs.versions / "links.parquet").to_pylist()
    return found


@pytest.fixture(scope="module")
def reports(inputs: Inputs) -> list[Report]:
    lines = [line for path in sorted(inputs.reports.iterdir()) for line in ReportReader(path)]
    assert not any(line.problems for line in lines)
    return [line.record for line in lines if isinstance(line.record, Report)]


class TestOverlay:
    def test_peers_have_distinct_neighbours(self, rows: set[Row]) -> None:
        assert all(src != dst for _, src, dst in rows)
        degrees = Counter((interval, src) for interval, src, _ in rows)
        assert set(degrees.values()) == {SMALL.links}
        assert len(degrees) == SMALL.intervals * SMALL.peers

    def test_periods_equal_the_rows(self, rows: set[Row], links: list[dict[str, int]]) -> None:
        unrolled = [
            (interval, link["src"], link["dst"])
            for link in links
            for interval in range(link["valid_from"], min(link["valid_to"], SMALL.intervals))
        ]
        assert len(unrolled) == len(rows)
        assert set(unrolled) == rows

    def test_periods_are_maximal(self, rows: set[Row], links: list[dict[str, int]]) -> None:
        for link in links:
            assert (link["valid_from"] - 1, link["src"], link["dst"]) not in rows
            assert (link["valid_to"], link["src"], link["dst"]) not in rows
        assert max(link["valid_to"] for link in links) == OPEN

    def test_replaced_links_equal_the_churn(self, rows: set[Row]) -> None:
        sets = [{row[1:] for row in rows if row[0] == at} for at in range(SMALL.intervals)]
        gone = {len(before - after) for before, after in pairwise(sets)}
        assert gone == {round(SMALL.peers * SMALL.links * SMALL.churn)}

    def test_longer_run_begins_as_a_shorter_one(self, rows: set[Row]) -> None:
        longer = rows_of(replace(SMALL, intervals=50))
        assert {row for row in longer if row[0] < SMALL.intervals} == rows


class TestDissemination:
    def test_subscriptions_are_distinct_and_favour_the_first_topic(self) -> None:
        taken = subscriptions(SIZES["M"])
        assert len(set(zip(*taken, strict=True))) == 2_000 * 10
        counts = np.bincount(taken.topic, minlength=100)
        assert counts[0] == counts.max()
        assert counts[0] > 20 * counts[-1] > 0

    def test_messages_go_down_a_tree(self) -> None:
        published, arrivals = messages(SMALL)
        for message, (_, publisher, begun) in enumerate(zip(*published, strict=True)):
            hops, times = {publisher: 0}, {publisher: begun}
            here = arrivals.message == message
            columns = (c[here].tolist() for c in arrivals[1:])
            for peer, previous, hop, time_us in zip(*columns, strict=True):
                assert peer not in hops
                assert hop == hops[previous] + 1
                assert times[previous] < time_us < (begun // INTERVAL_US + 1) * INTERVAL_US
                hops[peer], times[peer] = hop, time_us
            assert len(hops) == SMALL.receivers + 1


class TestReports:
    def test_reports_tell_all_links(self, reports: list[Report], rows: set[Row]) -> None:
        told = {
            (report.interval, int(report.peer), int(neighbor.peer))
            for report in reports
            for neighbor in report.neighbors or ()
        }
        assert told == rows
        assert len(reports) == SMALL.intervals * SMALL.peers

    def test_reports_tell_all_receptions(self, reports: list[Report]) -> None:
        _, arrivals = messages(SMALL)
        told = {
            (
                int(entry.message),
                int(report.peer),
                int(entry.from_peer or -1),
                entry.hops,
                entry.time_us,
            )
            for report in reports
            for entry in report.received or ()
        }
        assert told == set(zip(*(column.tolist() for column in arrivals), strict=True))
        sent = sum(len(entry.to or ()) for report in reports for entry in report.sent or ())
        assert sent == len(told)

    def test_report_files_are_told_apart_by_their_first_interval(self, inputs: Inputs) -> None:
        assert sorted(map(first_interval, inputs.reports.iterdir())) == [0, 25]

    @pytest.mark.parametrize("how", REWRITERS)
    def test_rewritten_reports_say_the_same_in_other_words(self, inputs: Inputs, how: str) -> None:
        def read(folder: Path) -> list[Any]:
            paths = sorted(folder.iterdir())
            return [line.record for path in paths for line in ReportReader(path)]

        rewritten = inputs.rewritten(how)
        assert read(rewritten) == read(inputs.reports)
        lines = gzip.decompress((rewritten / "from-00025.ndjson.gz").read_bytes()).splitlines()
        assert sum(b'"\\u0070eer"' in line for line in lines) == (4 if how == "escaped" else 0)
        assert (b'"peer": "' in lines[1]) == (how == "reordered")

    def test_inputs_of_one_seed_have_the_same_bytes(self, inputs: Inputs, tmp_path: Path) -> None:
        again = Inputs(SMALL, tmp_path)
        for one, other in ((inputs.reports, again.reports), (inputs.versions, again.versions)):
            assert [p.read_bytes() for p in sorted(one.iterdir())] == [
                p.read_bytes() for p in sorted(other.iterdir())
            ]


class TestAgreement:
    OURS = pa.table({"peer": [0, 1], "hops": [1.5, None], "more": [1, 2]})

    def test_agreement_ignores_row_order_and_the_last_digit(self) -> None:
        theirs = pa.table({"hops": [None, 1.5 + 1e-12], "peer": [1, 0]})
        require_same("they", self.OURS, theirs, "peer")

    @pytest.mark.parametrize("hops", [[1.5, 0.0], [1.5 + 1e-6, None]])
    def test_difference_is_named_by_column_and_row(self, hops: list[Any]) -> None:
        theirs = pa.table({"peer": [0, 1], "hops": pa.array(hops, pa.float64())})
        with pytest.raises(CheckFailed, match="they does not agree") as raised:
            require_same("they", self.OURS, theirs, "peer")
        assert "hops, row" in str(raised.value)

    def test_text_columns_are_compared(self) -> None:
        ours, theirs = (pa.table({"peer": [0], "layer": [name]}) for name in ("mesh", "tree"))
        require_same("they", ours, ours, "peer")
        with pytest.raises(CheckFailed, match=naming("layer", "row 0", "tree", "mesh")):
            require_same("they", ours, theirs, "peer")

    def test_missing_rows_are_told(self) -> None:
        with pytest.raises(CheckFailed, match=naming("1 rows", 2)):
            require_same("they", self.OURS, self.OURS.slice(1), "peer")

    def test_components_are_named_by_their_smallest_peer(self) -> None:
        assert named_by_smallest([7, 3, 7, 3, 0]) == [0, 1, 0, 1, 4]

    def test_sample_of_intervals_has_both_ends(self) -> None:
        assert sample(SIZES["S"], 3) == [0, 24, 49]
        assert sample(replace(SMALL, intervals=2), 5) == [0, 1]


class TestResults:
    def test_exponent_of_a_power_law_is_found(self) -> None:
        points = [{"peers": n, "seconds": 3e-5 * n**1.7} for n in (500, 1_000, 2_000)]
        assert exponent(points, "peers", "seconds") == pytest.approx(1.7)

    def test_failing_program_is_an_error_that_names_it(self) -> None:
        with pytest.raises(CheckFailed, match=r"failed\n.*No module named"):
            measure(Program("benchmarks.no_such_module", ()))

    def test_table_is_markdown(self) -> None:
        assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"

    def test_partial_measurement_is_extrapolated_on_the_page(self) -> None:
        step = {"least": 0.5, "mean": 0.6, "cpu_mean": 0.5, "first": 1, "cpu_least": 0.5}
        about = {"date": "today", "load": [0, 1], "machine": {}, "versions": {"igraph": "1.0"}}
        about["machine"] = dict.fromkeys(
            ("processor", "processors", "memory_gb", "system", "python"), "?"
        )
        steps = dict.fromkeys(("structure", "topics", "betweenness", "all"), step)
        none = {**step, "mean": 0, "cpu_mean": 0}
        kept = {
            "kernels": {**about, "steps": steps, "peak_mb": 300},
            "igraph": {
                **about,
                "steps": {**steps, "load": none},
                "facts": {"intervals": 5},
                "peak_mb": 100,
            },
        }
        text = page({"S": json.loads(json.dumps(kept))})
        assert "| igraph 1.0, 5 of 50 intervals | ≈ 30 (60×) | – | ≈ 60 (120×) |" in text
        assert "Spark" not in text

    def test_ingest_is_shown_as_multiples_of_duckdbs_periods(self) -> None:
        about = {"date": "today", "load": [0, 1], "versions": {"duckdb": "1.0"}, "peak_mb": 1}
        about["machine"] = dict.fromkeys(
            ("processor", "processors", "memory_gb", "system", "python"), "?"
        )

        def step(wall: float, processor: float) -> dict[str, float]:
            return {"mean": wall, "cpu_mean": processor, "peak_mb": 1}

        steps = {"read": step(6, 9), "periods": step(4, 7), "metrics": step(10, 4)}
        kept = {"periods": {"steps": {"periods": step(5, 8)}}, "ingest": {"steps": steps}}
        text = page({"L": {part: {**about, **outcome} for part, outcome in kept.items()}})
        assert "| NDJSON, no betweenness | periods | 2× | 2× |\n" in text
        assert "| NDJSON, no betweenness | metrics | 4× | 2.5× |\n" in text

    def test_workspace_in_s3_is_shown_beside_a_folder(self) -> None:
        machine = ("processor", "processors", "memory_gb", "system", "python")
        about = {"date": "today", "load": [0, 1], "machine": dict.fromkeys(machine, "?")}

        def took(seconds: float, processor: float) -> dict[str, float]:
            return {"seconds": seconds, "processor": processor}

        ways = {"folder": took(0.5, 0.4), "warm": took(0.55, 0.5), "cold": took(0.75, 0.6)}
        small = {
            "demo": {"folder": took(10, 20), "S3": took(12, 21)},
            "questions": {"metrics": ways},
        }
        steps = {"read": {"mean": 60, "cpu_mean": 90}, "finish": {"mean": 40, "cpu_mean": 10}}
        slower = {"read": {"mean": 70, "cpu_mean": 95}, "finish": {"mean": 50, "cpu_mean": 15}}
        large = {"folder": {"steps": steps}, "S3": {"steps": slower}}
        text = page({"L": {"stored": {**about, **large}, "stored-demo": {**about, **small}}})
        assert "| ingest | 100 | 120 (1.2×) | 100 | 110 (1.1×) |" in text
        assert "| ingest of the demo | 10 | 12 (1.2×) | 20 | 21 (1.05×) |" in text
        assert "| `metrics RUN`, cold | 0.5 | 0.75 (1.5×) | 0.4 | 0.6 (1.5×) |" in text

    def test_explorer_is_shown_with_its_sizes(self) -> None:
        machine = ("processor", "processors", "memory_gb", "system", "python")
        figures: dict[str, Any] = {
            "date": "today",
            "load": [0, 1],
            "machine": dict.fromkeys(machine, "?"),
            "versions": {"Chromium": "1"},
            "first_picture_s": [2.5, 0.5],
            "server_mb": {"400": 300.0, "2000": 301.0},
        }
        for peers, _ in EXPLORED:
            figures[f"{peers} page"] = {"": {"step_ms": 2.64, "page_mb": 24}}
            figures[f"{peers} bytes"] = {"overlay": [1.5e6, 0.5e6], "column": [4e6, 3e6]}
        text = page({EXPLORER: {"figures": figures}})
        figures_shown = ("| 2.5 s |", "| 2.64 ms |", "1.5 MB (in gzip 0.5 MB)", "300, 301 MB")
        assert [words for words in figures_shown if words not in text] == []

    def test_history_queries_are_shown_with_and_without_copies(self) -> None:
        about = {"date": "today", "load": [0, 1], "machine": {}, "versions": {"neo4j": "5"}}
        about["machine"] = dict.fromkeys(
            ("processor", "processors", "memory_gb", "system", "python"), "?"
        )
        cost = {"hits": 10, "ms": 1.5}
        load = {"relationships": 7, "seconds": 2.0, "cpu": 1.0, "megabytes": 0.5}
        told = {
            **about,
            "lengths": [200, 5_000],
            "compared": 200,
            "loads": {"without": load, "with": {**load, "relationships": 14}},
            "queries": {
                "hubs": {"without": {"200": cost, "5000": {"hits": 15, "ms": 2}}, "with": {}},
                "neighbours": {
                    "without": {"200": cost, "5000": None},
                    "with": {"200": cost, "5000": cost},
                },
            },
        }
        text = page({"S": {"history": told}})
        assert "| hubs |  | 10 | 15 | 1.5 | 1.5 | 2 |" in text
        assert "| neighbours |  | 10 | – | – | 1.5 | – |" in text
        assert "|  | time partitions | 10 | 10 | 1 | 1.5 | 1.5 |" in text
        assert "| without copies | 7 | 1 | 2 | 0.5 |" in text
        assert "|  | 2× | 1× | 1× | 1× |" in text


def test_normal_errors_deviate_as_the_normal_distribution_does() -> None:
    rng = np.random.default_rng(1)
    values, keys = rng.uniform(5, 9, 40_000), np.arange(40_000)

    def estimates(error: float) -> pa.Table:
        rows = {"peer": keys, "hops": values + error * rng.standard_normal(values.size)}
        return pa.table({**rows, "hops_error": np.full(values.size, error)})

    found = deviations(estimates(0.3), estimates(0.4), ("peer",), "hops")
    assert found["values"] == 40_000
    assert found["within"] == pytest.approx([0.6827, 0.9545], abs=0.01)
    exact = deviations(estimates(0), estimates(0), ("peer",), "hops")
    assert exact["values"] == 0


def test_run_of_all_goes_on_with_what_the_commit_has_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    started: list[str] = []

    def part(bench: Bench) -> dict[str, Any]:
        measured.append(bench.size.name)
        return {}

    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "commit", lambda: "abc")
    monkeypatch.setattr(command, "ALL", {"S": ("one",), "L": ("one",)})
    monkeypatch.setattr(command, "write_page", lambda: None)
    run = SimpleNamespace(run=lambda words, check: started.append(words[2]))
    monkeypatch.setattr(command, "subprocess", run)
    command.measure_all({"one": part}, full=False)
    (tmp_path / "L-one.json").unlink()
    command.measure_all({"one": part}, full=False)
    assert measured == ["S", "L", "L"]
    assert started == ["benchmarks.explore", "benchmarks.snapshots"] * 2


def kept_commits() -> Iterator[tuple[str, str | None]]:
    """The commit of each outcome, with its file; `fed.json` has one for each part."""
    for path in (*results.FOLDER.glob("*.json"), *OF_SNAPSHOTS.glob("*.json")):
        kept = json.loads(path.read_text("utf-8"))
        for outcome in [kept] if "machine" in kept else kept.values():
            yield path.name, outcome["commit"]


def ask_git(*words: str, given: str = "") -> list[str]:
    done = subprocess.run(
        ["git", "-C", results.FOLDER, *words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()


def test_outcome_names_a_commit_of_this_project_or_none() -> None:
    """A commit that is in no history cannot be measured again."""
    if ask_git("rev-parse", "--is-shallow-repository") != ["false"]:
        pytest.skip("no history of git here")
    named = [(name, commit) for name, commit in kept_commits() if commit is not None]
    assert len(named) > 50
    objects = "".join(f"{commit.removesuffix('+')}^{{commit}}\n" for _, commit in named)
    types = [line.split()[1] for line in ask_git("cat-file", "--batch-check", given=objects)]
    unknown = [one for one, kind in zip(named, types, strict=True) if kind != "commit"]
    assert unknown == []


def test_page_says_where_no_commit_is_recorded() -> None:
    kept = results.read_outcomes()
    figures = {**kept["explorer"]["figures"], "commit": None}
    text = page({**kept, "explorer": {"figures": figures}})
    assert f"figures {figures['date'][:10]}, commit not recorded" in text
