"""Metrics by group, against plain loops over the rows of runs drawn at random."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from tests.support.grouped import KEY, play_groups, value_at
from tests.support.played import Played, write_play
from tests.support.words import naming
from vizpub.model.errors import UnknownName, UseError
from vizpub.questions.run import Run, Where

Row = dict[str, Any]


def mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None


def total(values: Iterable[int | None]) -> int | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if below and above is not None else None


def about(rows: Iterable[Row]) -> list[Row]:
    return [
        {name: pytest.approx(v) if isinstance(v, float) else v for name, v in row.items()}
        for row in rows
    ]


class TestPeers:
    def test_counts_are_added_and_numbers_averaged(self, played: Played, run: Run) -> None:
        groups: dict[Any, list[Row]] = defaultdict(list)
        for row in played.rows["metrics/peers"]:
            tick = played.clock.sampling_tick(row["interval"])
            groups[row["interval"], value_at(played, row["peer"], tick)].append(row)
        expected = [
            {
                "interval": interval,
                "group": value,
                "peers": len(rows),
                "degree_mean": mean(row["degree"] for row in rows),
                "duplicates": total(row["duplicates"] for row in rows),
                "duplicates_mean": mean(row["duplicates"] for row in rows),
            }
            for (interval, value), rows in sorted(
                groups.items(), key=lambda of: (of[0][0], of[0][1] is None, of[0][1] or "")
            )
        ]
        answer = run.metrics("peers", ["degree", "duplicates"], by=KEY).to_pylist()
        assert answer == about(expected)

    def test_columns_are_all_but_those_of_one_peer(self, run: Run) -> None:
        columns = {*run.metrics("peers", by=KEY).columns}
        assert {"closeness_mean", "pagerank_mean", "receptions", "receptions_mean"} <= columns
        assert not columns & {"peer", "component", "component_mean", "present", "degree"}

    def test_window_and_one_attribute_of_all_give_the_overlay(self, tmp_path: Path) -> None:
        made = play_groups(tmp_path, 1)
        run = Run.open(tmp_path, made.name)
        rows = run.metrics("peers", ["degree_mean"], Where(2, 3), by="country").to_pylist()
        for interval in (2, 3):
            of_interval = [row for row in rows if row["interval"] == interval]
            count = sum(row["peers"] for row in of_interval)
            assert count == len(made.present(made.clock.sampling_tick(interval)))


def message_rows(played: Played, rows: list[Row], *, receivers: bool) -> list[Row]:
    """The expected rows of metrics of messages by group."""
    counts = {row["message"]: row for row in rows}
    groups: dict[str | None, Row] = {}
    arrivals: dict[str | None, list[Row]] = defaultdict(list)
    lost: dict[str | None, list[int]] = defaultdict(list)
    of_publisher: dict[str | None, list[Row]] = defaultdict(list)
    at = {row["message"]: row for row in played.rows["publications"]}
    for message, publication in at.items():
        of_publisher[value_at(played, publication["publisher"], publication["tick"])].append(
            counts[message]
        )
    for row in played.rows["receptions"]:
        publication = at[row["message"]]
        peer = row["peer"] if receivers else publication["publisher"]
        arrivals[value_at(played, peer, publication["tick"])].append(row)
    for row in played.rows["missed"]:
        lost[value_at(played, row["peer"], at[row["message"]]["tick"])].append(row["message"])
    for value in {*arrivals, *(lost if receivers else of_publisher)}:
        here, messages = arrivals[value], of_publisher[value]
        first = [row for row in here if row["first"]]
        if receivers:
            fair = [r for r in first if r["eligible"] and not counts[r["message"]]["rejections"]]
            delivered = len(fair)
            eligible = delivered + sum(not counts[m]["rejections"] for m in lost[value])
        else:
            fair = [row for row in messages if not row["rejections"]]
            eligible, delivered = (
                total(row[name] for row in fair) for name in ("eligible", "delivered")
            )
        delays = [row["time_us"] - at[row["message"]]["time_us"] for row in first]
        groups[value] = {
            "group": value,
            "eligible": eligible,
            "delivered": delivered,
            "hit_ratio": ratio(delivered, eligible),
            "receptions": len(here),
            "first_receptions": len(first),
            "duplicates": len(here) - len(first),
            "redundancy": len(here) / len(first) - 1 if first else None,
            "duplicates_per_delivery": ratio(
                sum(not (r["first"] or counts[r["message"]]["rejections"]) for r in here), delivered
            ),
            "relay_share": ratio(sum(not row["subscribed"] for row in here), len(here)),
            "hops_mean": mean(row["hop"] for row in first),
            "delay_us_mean": mean(delays),
            "delay_us_p95": float(np.percentile(delays, 95)) if delays else None,
            "delay_us_max": float(max(delays)) if delays else None,
        }
    return [groups[value] for value in sorted(groups, key=lambda v: (v is None, v or ""))]


@pytest.mark.parametrize("receivers", [False, True])
def test_messages_are_of_the_group_of_publishers_or_receivers(
    played: Played, run: Run, receivers: bool
) -> None:
    expected = message_rows(played, played.rows["metrics/messages"], receivers=receivers)
    answer = run.metrics("messages", by=KEY, receivers=receivers).to_pylist()
    assert [{name: row[name] for name in expected[0]} for row in answer] == about(expected)
    if not receivers:
        assert sum(row["messages"] for row in answer) == len(played.rows["publications"])


@pytest.mark.parametrize("receivers", [False, True])
def test_sums_with_an_unknown_message_are_unknown(tmp_path: Path, receivers: bool) -> None:
    """Audience and relays of every third message are unknown; ratios are those of the others."""
    made = play_groups(tmp_path, 1)
    counts, at = made.rows["metrics/messages"], {m["message"]: m for m in made.rows["publications"]}
    unclear = {row["message"] for row in counts[::3]}
    for row in (row for row in counts if row["message"] in unclear):
        row.update(dict.fromkeys(("eligible", "delivered", "hit_ratio", "relay_receptions")))
    for row in (row for row in made.rows["receptions"] if row["message"] in unclear):
        row.update(eligible=None, subscribed=None)
    made.rows["missed"] = [row for row in made.rows["missed"] if row["message"] not in unclear]
    write_play(tmp_path / "again", made)
    groups: dict[str | None, list[Row]] = defaultdict(list)
    for row in made.rows["receptions"] if receivers else counts:
        publication = at[row["message"]]
        peer = row["peer"] if receivers else publication["publisher"]
        groups[value_at(made, peer, publication["tick"])].append(row)
    run = Run.open(tmp_path / "again", made.name)
    for row in run.metrics("messages", by=KEY, receivers=receivers).to_pylist():
        members = groups[row["group"]]
        fair = [of for of in (counts if receivers else members) if not of["rejections"]]
        assert (row["relay_receptions"] is None) == any(of["message"] in unclear for of in members)
        is_unknown = not fair or any(of["message"] in unclear for of in fair)
        assert (row["eligible"] is None) == (row["delivered"] is None) == is_unknown
        if not receivers:
            assert row["receptions"] == total(of["receptions"] for of in members)
            assert row["hit_ratio"] == ratio(
                total(of["delivered"] for of in fair), total(of["eligible"] for of in fair)
            )


def test_topics_are_divided_among_groups(played: Played, run: Run) -> None:
    rows = run.metrics("topics", by=KEY).to_pylist()
    assert len({(r["topic"], r["interval"], r["group"]) for r in rows}) == len(rows)
    for interval in range(played.clock.first, played.clock.last + 1):
        tick = played.clock.sampling_tick(interval)
        for topic in range(2):
            here = [r for r in rows if (r["interval"], r["topic"]) == (interval, topic)]
            members = [value_at(played, p, tick) for p in played.subscribers(topic, tick)]
            published = [
                value_at(played, p["publisher"], p["tick"])
                for p in played.rows["publications"]
                if (p["interval"], p["topic"]) == (interval, topic)
            ]
            counts = {row["message"]: row for row in played.rows["metrics/messages"]}
            messages = [
                (value, counts[p["message"]])
                for p in played.rows["publications"]
                if (p["interval"], p["topic"]) == (interval, topic)
                for value in [value_at(played, p["publisher"], p["tick"])]
            ]
            of_topic = {p["message"] for p in played.rows["publications"] if p["topic"] == topic}
            repeated = [
                value_at(played, r["peer"], r["tick"])
                for r in played.rows["receptions"]
                if r["message"] in of_topic and r["interval"] == interval and not r["first"]
            ]
            for row in here:
                value = row["group"]
                assert row["subscribers"] == members.count(value)
                assert row["publications"] == published.count(value)
                assert row["duplicates"] == repeated.count(value)
                mine = [of for group, of in messages if group == value]
                fair = [of for of in mine if not of["rejections"]]
                assert row["relay_share"] == ratio(
                    total(of["relay_receptions"] for of in mine),
                    total(of["receptions"] for of in mine),
                )
                assert row["duplicates_per_delivery"] == ratio(
                    total(of["duplicates"] for of in fair), total(of["delivered"] for of in fair)
                )
                hops = [of["hops_mean"] * of["hops_known"] for of in mine if of["hops_known"]]
                known = total(of["hops_known"] for of in mine)
                assert row["hops_mean"] == (pytest.approx(sum(hops) / known) if known else None)
            assert {*members, *published, *repeated} <= {row["group"] for row in here}


def test_unknown_attribute_or_table_is_refused(tmp_path: Path, workspace: Path) -> None:
    made = play_groups(tmp_path, 0)
    run = Run.open(tmp_path, made.name)
    with pytest.raises(UnknownName, match=naming("countr", "country")):
        run.metrics("peers", by="countr")
    with pytest.raises(UnknownName, match=naming("overlay", "peers", "topics", "messages")):
        run.metrics("overlay", by="country")
    with pytest.raises(UnknownName, match="component"):
        run.metrics("peers", ["component"], by="country")
    with pytest.raises(UseError, match=naming("monday", "--attributes")):
        Run.open(workspace, "monday").metrics("peers", by="country")
