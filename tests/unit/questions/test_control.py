"""Control messages by kind, against plain loops over the rows of runs drawn at random."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.grouped import CLOCKS, KEY, value_at
from tests.support.played import Played, play
from tests.support.words import unknown
from vizpub.model.clock import OPEN
from vizpub.model.columns import CONTROL_COLUMNS
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import NO_DATA
from vizpub.questions.run import Run, Where

Row = dict[str, Any]
PEERS, TOPICS = ["a", "b", "c", "d"], ["t", "u"]
NAMING = {"ihave", "iwant"}
"""Kinds that name messages."""
SIZED = "ihave"
"""The kind whose bytes are counted."""
WAYS = ("sent", "received", "dropped")


def play_control(workspace: Path, seed: int) -> Played:
    """Peers count all of their control messages by kind, some of them, or none."""
    draw = Random(seed)

    def add(made: Played) -> None:
        made.rows["attributes"] = [
            {"peer": peer, "key": KEY, "value": value, "valid_from": 0, "valid_to": OPEN}
            for peer, value in enumerate(["prysm", "teku", "prysm"])
        ]
        for peer in range(len(PEERS)):
            for interval in range(made.clock.first, made.clock.last + 1):
                add_counts(made.rows, peer, interval)

    def add_counts(rows: dict[str, list[Row]], peer: int, interval: int) -> None:
        of, sums = {"peer": peer, "interval": interval}, dict.fromkeys(WAYS, 0)
        for kind, topic in (("graft", 0), ("graft", 1), ("ihave", 1), ("iwant", None)):
            if draw.random() < 0.6:
                continue
            row: Row = {**of, "kind": kind, "topic": topic}
            for way in WAYS:
                row[f"messages_{way}"] = draw.randrange(5)
                row[f"ids_{way}"] = draw.randrange(9) if kind in NAMING else None
                row[f"bytes_{way}"] = draw.randrange(99) if kind == SIZED else None
                sums[way] += row[f"messages_{way}"]
            rows["control"].append(row)
        if draw.random() < 0.9:
            other = draw.choice([0, 0, 0, 3])
            counts = {f"control_messages_{way}": sums[way] + other for way in WAYS[:2]}
            rows["traffic"].append({**of, **counts, "dropped": draw.randrange(2)})

    return play(workspace, "monday", CLOCKS[seed % 2], PEERS, TOPICS, seed, add)


def total(rows: Iterable[Row], name: str) -> int | None:
    numbers = [row[name] for row in rows if row.get(name) is not None]
    return sum(numbers) if numbers else None


def expected_rows(made: Played, groups: dict[int, Any], topic: int | None = None) -> list[Row]:
    """What the peers of `groups` add up to, for each interval and group."""
    cells: dict[Any, dict[str, list[Row]]] = defaultdict(lambda: {"control": [], "traffic": []})
    for table in ("control", "traffic"):
        for row in made.rows[table]:
            if row["peer"] in groups:
                cells[row["interval"], groups[row["peer"]]][table].append(row)
    of_topic = [
        row
        for cell in cells.values()
        for row in cell["control"]
        if topic is None or row["topic"] == topic
    ]
    found = []
    for (interval, group), cell in cells.items():
        nothing = {
            way: total(cell["traffic"], f"control_messages_{way}")
            == (total(cell["control"], f"messages_{way}") or 0)
            for way in WAYS[:2]
        }
        dropped = total(cell["traffic"], "dropped")
        # Every row of `control` here has its drops.
        nothing["dropped"] = dropped == 0 or (dropped is not None and all(nothing.values()))
        for kind in {row["kind"] for row in of_topic}:
            mine = [row for row in cell["control"] if row["kind"] == kind and row in of_topic]
            row = {name: total(mine, name) for name in CONTROL_COLUMNS}
            for name in () if mine or not cell["traffic"] else CONTROL_COLUMNS:
                unit, way = name.split("_")
                is_counted = kind in {"messages": {kind}, "ids": NAMING, "bytes": {SIZED}}[unit]
                row[name] = 0 if nothing[way] and is_counted else None
            if any(value is not None for value in row.values()):
                found.append({"interval": interval, "group": group, "kind": kind, **row})
    return sorted(found, key=lambda r: (r["interval"], r["group"] is None, r["group"], r["kind"]))


@pytest.fixture(params=range(4))
def played(request: pytest.FixtureRequest, tmp_path: Path) -> Played:
    return play_control(tmp_path, request.param)


@pytest.fixture
def run(played: Played, tmp_path: Path) -> Run:
    return Run.open(tmp_path, played.name)


def without_group(rows: list[Row]) -> list[Row]:
    return [{name: row[name] for name in row if name != "group"} for row in rows]


def test_kinds_are_added_up_over_peers_and_topics(played: Played, run: Run) -> None:
    everyone = dict.fromkeys(range(len(PEERS)), "")
    assert run.control().to_pylist() == without_group(expected_rows(played, everyone))
    of_topic = run.control(where=Where(topic="u")).to_pylist()
    assert of_topic == without_group(expected_rows(played, everyone, topic=1))
    assert {row["kind"] for row in of_topic} == {"graft", "ihave"}


def test_kinds_of_a_peer_and_of_a_window_are_chosen(played: Played, run: Run) -> None:
    last = played.clock.last
    found = run.control(["messages_sent"], Where(last, last, "b")).to_pylist()
    whole = without_group(expected_rows(played, {1: ""}))
    columns = ("interval", "kind", "messages_sent")
    counted = {
        row["kind"]
        for row in played.rows["control"]
        if row["peer"] == 1 and row["interval"] == last
    }
    assert found == [
        {name: row[name] for name in columns}
        for row in whole
        if row["interval"] == last and row["kind"] in counted
    ]


def test_kinds_by_group_are_those_of_its_peers(played: Played, run: Run) -> None:
    groups = {peer: value_at(played, peer, played.last) for peer in range(len(PEERS))}
    assert run.control(by=KEY).to_pylist() == expected_rows(played, groups)


def test_unknown_columns_and_runs_without_kinds_are_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=unknown("column", "messages")):
        run.control(["messages"])
    play(tmp_path, "without", CLOCKS[0], PEERS, TOPICS)
    with pytest.raises(UseError, match=f"{NO_DATA} control"):
        Run.open(tmp_path, "without").control()
