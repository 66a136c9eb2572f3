"""What the explorer answers about tables equals their rows, and those of the printed command."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.explored import Explorer, Told, exploring
from tests.support.few import few
from tests.support.hostile import TAKEN
from tests.support.played import Played, play
from tests.support.spreading import spread
from vizpub.cli.main import app
from vizpub.explorer.tables import PART
from vizpub.model.clock import OPEN, Clock
from vizpub.model.tables import table

Ask = Callable[..., Told]
ROLES = {"links": ("src", "dst"), "publications": ("publisher",), "presence": ("peer",)}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def played(workspace: Path) -> Played:
    """A run with hostile names, and more rows than a part has."""
    messages = [*TAKEN, *(f"message {number}" for number in range(PART))]
    return play(
        workspace, "run", Clock(1_000, 10, 3, 12), TAKEN, TAKEN, 5,
        lambda made: spread(made, messages, 5),
    )  # fmt: skip


@pytest.fixture(scope="module")
def explorer(workspace: Path, played: Played) -> Iterator[Explorer]:
    with exploring(workspace) as server:
        yield server


@pytest.fixture
def ask(explorer: Explorer) -> Ask:
    def ask(what: str, status: int = 200, **query: Any) -> Told:
        told = explorer.ask(f"/api/runs/run/{what}", query=query)
        assert told.status == status, told.text
        return told

    return ask


def records(ask: Ask, name: str, **query: Any) -> list[dict[str, Any]]:
    """All rows, part by part, without the names beside indexes."""
    rows: list[dict[str, Any]] = []
    while True:
        part = ask("rows", table=name, first=len(rows), **query).json()
        rows += [dict(zip(part["columns"], row, strict=True)) for row in part["rows"]]
        if len(rows) == part["total"]:
            return [{key: row[key] for key in table(name).names} for row in rows]
        assert len(part["rows"]) == PART


def stored(played: Played, name: str) -> list[dict[str, Any]]:
    """The rows as they were written, by their key; an open end as the page says it."""
    definition = table(name)
    rows = [{key: row.get(key) for key in definition.names} for row in played.rows[name]]
    rows.sort(key=lambda row: [(row[key] is None, row[key]) for key in definition.key])
    return [{key: "open" if value == OPEN else value for key, value in row.items()} for row in rows]


def test_receptions_have_their_delays(ask: Ask, played: Played) -> None:
    published = {row["message"]: row["time_us"] for row in played.rows["publications"]}
    expected = [
        None if row["time_us"] is None or published[row["message"]] is None
        else row["time_us"] - published[row["message"]]
        for row in played.rows["receptions"]
    ]  # fmt: skip
    lines = csv.DictReader(io.StringIO(ask("rows.csv", table="receptions", by="delay_us").text))
    written = [int(row["delay_us"]) if row["delay_us"] else None for row in lines]
    assert written == sorted(expected, key=lambda delay: (delay is None, delay or 0))
    (column,) = (
        column
        for of in ask("tables").json()
        if of["name"] == "receptions"
        for column in of["columns"]
        if column["name"] == "delay_us"
    )
    assert column["unit"] == "µs"


@pytest.mark.parametrize(
    "name",
    few(
        ["links", "publications", "metrics/peers", "receptions"],
        ["links", "publications", "metrics/peers"],
    ),
)
def test_parts_of_a_table_are_its_rows_by_their_key(ask: Ask, played: Played, name: str) -> None:
    assert records(ask, name) == stored(played, name)


@pytest.mark.parametrize("down", [False, True])
def test_rows_are_sorted_and_unknown_values_come_last(ask: Ask, played: Played, down: bool) -> None:
    rows = records(ask, "metrics/messages", by="hops_max", **({"down": "true"} if down else {}))
    values = [row["hops_max"] for row in rows]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=down)
    assert values[len(known) :] == [None] * (len(values) - len(known))
    assert {row["message"] for row in rows} == set(range(len(played.rows["publications"])))


@pytest.mark.parametrize("name", ROLES)
def test_rows_of_a_peer_are_those_in_which_it_has_a_role(
    ask: Ask, played: Played, name: str
) -> None:
    expected = [row for row in stored(played, name) if 3 in [row[of] for of in ROLES[name]]]
    assert expected
    assert records(ask, name, peer=3) == expected


def test_rows_of_an_interval_hold_at_its_end(ask: Ask, played: Played) -> None:
    found = {(row["src"], row["dst"]) for row in records(ask, "links", interval=8)}
    assert found == played.pairs(played.clock.sampling_tick(8))
    intervals = {row["interval"] for row in records(ask, "metrics/overlay", interval=8)}
    assert intervals == {8}


@pytest.mark.parametrize("name", TAKEN)
def test_text_finds_the_names_that_have_it(ask: Ask, played: Played, name: str) -> None:
    found = {row["peer"] for row in records(ask, "peers", text=name)}
    folded = name.lower()
    assert found == {place for place, peer in enumerate(TAKEN) if folded in peer.lower()}


def test_printed_command_gives_the_rows_that_are_shown(ask: Ask, workspace: Path) -> None:
    query = {"table": "links", "text": "'", "by": "valid_from", "down": "true", "peer": 2}
    part = ask("rows", **query).json()
    assert part["rows"]
    words = shlex.split(part["command"])
    assert words[0] == "vizpub"
    command = ["--workspace", str(workspace), *words[1:], "-f", "json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    shown = [[OPEN if value == "open" else value for value in row] for row in part["rows"]]
    assert [list(row.values()) for row in json.loads(result.stdout)] == shown


def test_csv_has_all_rows_of_the_filter(ask: Ask, played: Played) -> None:
    told = ask("rows.csv", table="publications", topic=1)
    assert told.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(told.text)))
    expected = [row for row in stored(played, "publications") if row["topic"] == 1]
    assert [int(row["message"]) for row in rows] == [row["message"] for row in expected]
    assert [row["name"] for row in rows] == [row["name"] for row in expected]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"table": "nosuch"}, 404),
        ({"table": "links; DROP TABLE links"}, 404),
        ({"table": "links", "by": 'src" DESC; --'}, 404),
        ({"table": "links", "peer": "-1"}, 400),
        ({"table": "links", "first": "1 OR 1=1"}, 400),
        ({}, 400),
    ],
)
def test_question_that_has_no_answer_is_refused(
    ask: Ask, query: dict[str, str], status: int
) -> None:
    assert ask("rows", status, **query).json()["error"]
    assert ask("rows.csv", status, **query).json()["error"]


def test_tables_are_listed_with_their_columns_and_rows(ask: Ask, played: Played) -> None:
    listed = {one["name"]: one for one in ask("tables").json()}
    assert {name: one["rows"] for name, one in listed.items()} == {
        name: len(rows) for name, rows in played.rows.items()
    }
    for name, one in listed.items():
        computed = ["delay_us"] if name == "receptions" else []
        assert [column["name"] for column in one["columns"]] == table(name).names + computed
    assert listed["links"]["filters"] == ["peer", "topic", "other_end", "interval"]
    assert listed["metrics/overlay"]["filters"] == ["interval"]


@pytest.mark.parametrize(("one", "two"), [("src", "dst"), ("previous_hop", "peer")])
def test_rows_between_two_peers_are_those_of_both_directions(
    ask: Ask, played: Played, one: str, two: str
) -> None:
    name = "links" if one == "src" else "receptions"
    first = played.rows[name][0]
    ends = {first[one], first[two]}
    expected = [row for row in stored(played, name) if {row[one], row[two]} == ends]
    assert records(ask, name, peer=first[two], other_end=first[one]) == expected
