"""`vizpub metrics --sort`, against sorting by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.support.grouped import add_attributes, add_control
from tests.support.words import tells, unknown
from vizpub.analytics.comparison.layers import WITHOUT_LAYERS, RunOfLayers
from vizpub.cli.main import app
from vizpub.model.run import NO_DATA

Call = Callable[..., Result]


@pytest.fixture
def call(workspace: Path) -> Call:
    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), "metrics", "monday", *words])

    return run


def records(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout))


@pytest.mark.parametrize("limit", [0, 3])
def test_rows_are_sorted_before_they_are_limited(call: Call, limit: int) -> None:
    rows = records(call("peers", "-f", "json"))
    found = records(call("peers", "-f", "json", "--sort", "-degree,peer", "--limit", str(limit)))
    by_hand = sorted(rows, key=lambda row: (-row["degree"], row["peer"], row["interval"]))
    assert found == by_hand[: limit or None]
    assert found != rows[: limit or None]


def test_gauges_have_a_column_each(call: Call) -> None:
    rows = records(call("gauges", "-f", "json", "--sort", "-hops", "--limit", "2"))
    assert [(row["peer_name"], row["hops"], row["lookups"]) for row in rows] == [
        ("bob", 8.0, None),
        ("alice", 4.0, 2.0),
    ]
    (row,) = records(call("gauges", "-f", "json", "--columns", "lookups"))
    assert "hops" not in row


@pytest.mark.parametrize("column", ["diameter", "-diameter"])
def test_unknown_values_come_last(call: Call, column: str) -> None:
    found = [row["diameter"] for row in records(call("-f", "json", "--sort", column))]
    assert found[:3] == sorted(found[:3], reverse=column.startswith("-"))
    assert found[3] is None


def test_column_that_is_not_there_is_refused(call: Call) -> None:
    result = call("--sort", "diametre")
    assert result.exit_code == 2
    assert unknown("column to sort by", "diametre", "diameter") in result.stderr


def test_narrow_table_of_messages_shows_metrics_and_what_it_is_sorted_by(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    head = call("messages").stdout.splitlines()[0].split()
    assert {*head} >= {"message", "topic", "eligible", "hit_ratio", "delay_us_p95"}
    assert "hops_mean" not in head
    head = call("messages", "--sort", "-hops_mean").stdout.splitlines()[0].split()
    assert {*head} >= {"message", "topic", "eligible", "hit_ratio", "hops_mean"}


def test_totals_of_peers_are_the_sums_over_intervals(call: Call) -> None:
    rows = records(call("peers", "-f", "json"))
    for total in records(call("peers", "--totals", "-f", "json")):
        own = [row for row in rows if row["peer"] == total["peer"]]
        assert total["intervals"] == len(own)
        for name in ("publication_messages_sent", "control_messages_sent", "receptions"):
            known = [row[name] for row in own if row[name] is not None]
            assert total[name] == (sum(known) if known else None)


def test_narrow_table_shows_the_metrics_that_matter(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for table, expected in {
        "overlay": {"interval", "network_size", "diameter", "hit_ratio"},
        "peers": {"interval", "peer", "degree"},
        "topics": {"interval", "topic", "subscribers", "hit_ratio"},
        "messages": {"message", "eligible", "hit_ratio", "delay_us_p95"},
    }.items():
        shown = call(table).stdout.splitlines()[0].split()
        assert {*shown} >= expected, table
        assert not {"in_degree_max", "betweenness_max"} & {*shown}
    by_degree = call("--sort", "in_degree_max").stdout.splitlines()[0].split()
    assert "in_degree_max" in by_degree


def test_columns_of_any_table_take_every_column_that_it_prints(call: Call) -> None:
    for table in ("overlay", "peers", "topics", "messages", "gauges"):
        (printed, *_) = records(call(table, "-f", "json"))
        rows = records(call(table, "-f", "json", "--columns", ",".join(printed)))
        assert rows[0] == printed, table
    (row, *_) = records(call("messages", "-f", "json", "--columns", "topic,publisher_name"))
    assert {*row} == {
        *("message", "message_name", "interval"),
        *("topic", "topic_name", "publisher", "publisher_name"),
    }


def test_default_of_another_table_is_left_out(call: Call, workspace: Path) -> None:
    (workspace / "vizpub.toml").write_text(
        '[metrics]\nd-low = 3\ngamma = 0.5\nwithin = "4s"\nreceivers = true\nreference = "alice"\n'
        'correct-clocks = true\nlayers = "mesh"\nby = "peer"\ntotals = true\n',
        "utf-8",
    )
    for table in ("overlay", "percolation", "clocks", "gauges"):
        assert (done := call(table)).exit_code == 0, (table, done.output)
    refused = call("--d-low", "5")
    assert refused.exit_code == 2
    tells(refused.stderr, "--d-low", "turnover")
    assert call("overlay", "--by", "client").exit_code == 2
    (workspace / "vizpub.toml").write_text("[metrics]\nd-low = 0\n", "utf-8")
    below = [row["below_d_low"] for row in records(call("turnover", "-f", "json"))]
    assert not any(below)


@pytest.mark.parametrize("column", ["publications", "hit_ratio,publications", "interval"])
def test_layers_are_refused_before_anything_is_measured(
    call: Call, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    monkeypatch.setattr(RunOfLayers, "_measure_layers", None)
    refused = call("--columns", column, "--layers", "mesh")
    assert refused.exit_code == 2
    tells(refused.stderr, WITHOUT_LAYERS, *column.split(","))


def test_groups_are_printed_by_attribute(call: Call, workspace: Path) -> None:
    refused = call("peers", "--by", "client")
    assert refused.exit_code == 2
    tells(refused.stderr, "monday", "--attributes")
    add_attributes(workspace, "monday", client="ab a")
    by = ("peers", "--by", "client", "-f", "json")
    rows = records(call(*by, "--columns", "degree", "--to", "1"))
    assert {row["group"] for row in rows} == {"a", "b", None}
    assert {*rows[0]} == {"interval", "group", "peers", "degree_mean"}
    totals = records(call(*by, "--totals"))
    assert [row["group"] for row in totals] == ["a", "b", None]
    layers = records(call(*by, "--layers", "mesh"))
    assert {row["group"] for row in layers} == {"a", "b", None}
    received = records(call("messages", "--by", "client", "--receivers", "-f", "json"))
    assert {*received[0]} >= {"group", "eligible", "delivered", "hit_ratio", "delay_us_p95"}


def test_control_messages_are_counted_by_kind(call: Call, workspace: Path) -> None:
    refused = call("control")
    assert refused.exit_code == 2
    tells(refused.stderr, "monday", NO_DATA, "control")
    add_control(workspace, "monday")
    rows = records(call("control", "-f", "json", "--sort", "-ids_sent", "--limit", "1"))
    assert [(row["interval"], row["kind"], row["messages_sent"]) for row in rows] == [
        (1, "ihave", 7)
    ]
    totals = records(call("control", "--totals", "-f", "json", "--columns", "messages_sent"))
    assert totals == [
        {"kind": "graft", "intervals": 2, "messages_sent": 7},
        {"kind": "ihave", "intervals": 1, "messages_sent": 7},
    ]
    add_attributes(workspace, "monday", client="ab")
    grouped = records(call("control", "--by", "client", "--totals", "-f", "json"))
    assert [(row["group"], row["kind"], row["messages_sent"]) for row in grouped] == [
        *(("a", "graft", 2), ("a", "ihave", 3)),
        *(("b", "graft", 5), ("b", "ihave", 4)),
    ]
    assert call("control", "--layers", "mesh").exit_code == 2


def test_mixing_is_between_groups(call: Call, workspace: Path) -> None:
    add_attributes(workspace, "monday", client="ab a")
    for table in ("mixing", "assortativity"):
        assert records(call(table, "--by", "client", "--layers", "mesh", "-f", "json"))
        for words in ([], ["--by", "client", "--topic", "news"]):
            assert call(table, *words).exit_code == 2


def test_lifetimes_are_printed_by_layer(call: Call) -> None:
    # Of four links of the overlay, two end after 2 s and one after 2.5 s; the other goes on.
    rows = records(call("lifetimes", "--layers", "overlay", "-f", "json"))
    assert rows == [
        {"of": "links", "layer": "overlay", "periods": 4, "ended": 3, "open": 1, "median": 2.0,
         "p95": None, "longest": 4.0}
    ]  # fmt: skip
    tells(call("lifetimes").stderr, "1s")
    curve = records(call("survival", "--layers", "overlay", "-f", "json"))
    assert [row["survival"] for row in curve] == [0.5, 0.25, 0.25]
    by_topic = records(call("lifetimes", "--by", "topic", "--topic", "news", "-f", "json"))
    assert [(row["of"], row["topic_name"], row["periods"]) for row in by_topic] == [
        ("links", "news", 1), ("subscriptions", "news", 2),
    ]  # fmt: skip


def test_turnover_counts_neighbourhoods_outside_the_bounds(call: Call) -> None:
    words = ("turnover", "--layers", "overlay", "-f", "json")
    rows = records(call(*words, "--d-low", "1", "--d-high", "1"))
    assert [(row["made"], row["ended"]) for row in rows] == [(4, 0), (0, 0), (0, 2), (0, 1)]
    # alice has bob and dave, then bob; bob has none; carol has bob until the end; dave has carol.
    outside = [(row["neighbourhoods"], row["below_d_low"], row["above_d_high"]) for row in rows]
    assert outside == [(4, 1, 1), (4, 1, 1), (3, 1, 0), (3, 2, 0)]
    assert [row["jaccard_mean"] for row in rows] == [None, 1.0, 0.75, 0.5]
    made = records(call(*words, "--columns", "made"))
    assert made == [{name: row[name] for name in ("interval", "layer", "made")} for row in rows]
    (total,) = records(call(*words, "--totals"))
    assert (total["intervals"], total["neighbourhoods"], total["ended"]) == (4, 14, 3)


@pytest.mark.parametrize(
    "words",
    ["lifetimes --columns medan", "turnover --columns nosuch", "lifetimes --d-low 3",
     "overlay --d-high 3", "overlay --within 4s", "coverage --by client", "coverage --totals",
     "coverage --within soon", "survival --by client", "turnover --layers nosuch"],
)  # fmt: skip
def test_options_that_do_not_apply_to_a_table_are_refused(call: Call, words: str) -> None:
    result = call(*words.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
