"""What the explorer answers about messages equals the tables and the commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support.explored import Explorer, Told, exploring
from tests.support.hostile import TAKEN
from tests.support.played import Played, play
from tests.support.spreading import spread
from vizpub.cli.main import app
from vizpub.explorer.messages import FIGURES, PART
from vizpub.model.clock import Clock

Ask = Callable[..., Told]
UNTIMED = [f"message {number}" for number in range(8)]
NAMES = [*TAKEN, *(f"message {number}" for number in range(PART))]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spread")


@pytest.fixture(scope="module")
def plays(workspace: Path) -> dict[str, Played]:
    """A run of many messages, and one whose arrivals have no times."""
    clock = Clock(10_000_000, 1, 0, 9)
    peers, topics = [f"peer-{number}" for number in range(20)], ["news", "sport"]
    timed = play(
        workspace, "timed", clock, peers, topics, 4,
        lambda made: spread(made, NAMES, 5, patient=range(0, 20, 2)),
    )  # fmt: skip
    untimed = play(
        workspace, "untimed", clock, TAKEN, TAKEN, 6,
        lambda made: spread(made, UNTIMED, 7, timed=False),
    )  # fmt: skip
    return {"timed": timed, "untimed": untimed}


@pytest.fixture(scope="module")
def explorer(workspace: Path, plays: dict[str, Played]) -> Iterator[Explorer]:
    with exploring(workspace) as server:
        yield server


@pytest.fixture
def ask(explorer: Explorer) -> Ask:
    def ask(run: str, what: str, **query: Any) -> Told:
        told = explorer.ask(f"/api/runs/{run}/{what}", query=query)
        assert told.status == 200, told.text
        return told

    return ask


def meta(told: Told) -> Any:
    length = int.from_bytes(told.content[:4], "little")
    return json.loads(told.content[4 : 4 + length])["meta"]


def of(rows: list[dict[str, Any]], message: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["message"] == message]


def test_parts_of_the_list_are_all_messages_in_order(ask: Ask, plays: dict[str, Played]) -> None:
    rows = plays["timed"].rows["metrics/messages"]
    found: list[float] = []
    for first in range(0, len(NAMES), PART):
        told = ask("timed", "messages", by="delay_us_max", down="true", first=first)
        assert meta(told)["total"] == len(NAMES)
        found += told.arrays()["delay_us_max"].tolist()
    known = sorted((row["delay_us_max"] for row in rows if row["delay_us_max"]), reverse=True)
    assert found[: len(known)] == known
    assert len(found) == len(NAMES)
    assert np.isnan(found[len(known) :]).all()


def test_list_has_the_figures_of_each_message(ask: Ask, plays: dict[str, Played]) -> None:
    told = ask("timed", "messages")
    arrays = told.arrays()
    assert meta(told)["names"] == NAMES[:PART]
    for place, row in enumerate(plays["timed"].rows["metrics/messages"][:PART]):
        for name in FIGURES:
            expected = float("nan") if row.get(name) is None else row[name]
            assert np.array_equal(arrays[name][place], expected, equal_nan=True)


@pytest.mark.parametrize(
    "wanted", [{"topic": 1}, {"publisher": 3}, {"topic": 0, "publisher": 2}, {"text": "MESSAGE 7"}]
)
def test_list_of_some_has_no_others(
    ask: Ask, plays: dict[str, Played], wanted: dict[str, Any]
) -> None:
    text = wanted.get("text", "").lower()
    expected = [
        row["message"]
        for row in plays["timed"].rows["publications"]
        if all(row[name] == wanted[name] for name in wanted if name != "text")
        and text in row["name"].lower()
    ]
    told = ask("timed", "messages", **wanted)
    assert told.arrays()["message"].tolist() == expected
    assert meta(told)["total"] == len(expected)


@pytest.mark.parametrize(("name", "message"), [("timed", 3), ("timed", 50), ("untimed", 0)])
def test_copies_peers_and_refusals_are_those_of_the_tables(
    ask: Ask, plays: dict[str, Played], name: str, message: int
) -> None:
    run = plays[name]
    told = ask(name, "message", message=message)
    arrays, published = told.arrays(), run.rows["publications"][message]
    names = ("from", "to", "hop", "first", "subscribed", "eligible")
    copies = zip(*(arrays[f"copy_{of}"].tolist() for of in names), strict=True)
    columns = ("previous_hop", "peer", "hop", "first", "subscribed", "eligible")
    rows = of(run.rows["receptions"], message)
    assert sorted(copies) == sorted(tuple(int(row[key]) for key in columns) for row in rows)
    times = [row["time_us"] for row in rows]
    if name == "untimed":
        assert np.isnan(arrays["copy_time_us"]).all()
        assert "times" in meta(told)["unknown"]["times"]
    else:
        assert sorted(arrays["copy_time_us"].tolist()) == sorted(times)
        assert meta(told)["unknown"]["times"] is None
    refused = of(run.rows["rejections"], message)
    assert sorted(arrays["refused_to"].tolist()) == sorted(row["peer"] for row in refused)
    assert meta(told)["name"] == published["name"]
    eligible = run.subscribers(published["topic"], published["tick"]) - {published["publisher"]}
    flagged = arrays["peer_peer"][arrays["peer_eligible"] == 1]
    assert set(flagged.tolist()) == eligible
    for peer, hop in zip(arrays["peer_peer"].tolist(), arrays["peer_hop"].tolist(), strict=True):
        firsts = [row["hop"] for row in rows if row["first"] and row["peer"] == peer]
        assert hop == (0 if peer == published["publisher"] else firsts[0] if firsts else -1)


def test_senders_that_pass_a_later_copy_on_stand_again_with_it(
    ask: Ask, plays: dict[str, Played]
) -> None:
    """Each copy is of one that its sender had with one hop less, and a place in layers of one."""
    standing = 0
    for message in range(20):
        arrays = ask("timed", "message", message=message).arrays()
        sender, receiver, hop, first, held = (
            arrays[f"copy_{of}"].tolist() for of in ("from", "to", "hop", "first", "held")
        )
        own = dict(zip(arrays["peer_peer"].tolist(), arrays["peer_hop"].tolist(), strict=True))
        for copy, place in enumerate(held):
            if place < 0:
                assert own[sender[copy]] == hop[copy] - 1
            else:
                assert (receiver[place], hop[place]) == (sender[copy], hop[copy] - 1)
                assert own[sender[copy]] != hop[place]
        again = np.flatnonzero(~np.isnan(arrays["copy_row"])).tolist()
        assert {held[copy] for copy in range(len(held)) if first[copy]} - {-1} <= {*again}
        assert {*again} <= {*held}
        places = [*zip(own.values(), arrays["peer_row"].tolist(), strict=True)]
        places += [(hop[copy], arrays["copy_row"][copy].item()) for copy in again]
        assert len({*places}) == len(places)
        standing += len(again)
    assert standing > 5


@pytest.mark.parametrize(
    ("name", "along"), [("timed", "delay"), ("timed", "hop"), ("untimed", "hop")]
)
def test_coverage_counts_first_arrivals_at_eligible_peers(
    ask: Ask, plays: dict[str, Played], name: str, along: str
) -> None:
    run, measured = plays[name], plays[name].rows["metrics/messages"]
    asked = [message for message in range(len(UNTIMED)) if measured[message]["eligible"]]
    assert asked
    for message in asked[:3]:
        start = run.rows["publications"][message]["time_us"]
        expected = sorted(
            row["hop"] if along == "hop" else row["time_us"] - start
            for row in of(run.rows["receptions"], message)
            if row["first"] and row["eligible"]
        )
        arrays = ask(name, "message", message=message).arrays()
        assert arrays[f"{along}_at"].tolist() == ([0, *expected])
        assert arrays[f"{along}_delivered"].tolist() == list(range(len(expected) + 1))


def test_facts_say_whether_coverage_is_known(explorer: Explorer) -> None:
    for name, unknown in (("timed", []), ("untimed", ["delay"])):
        why = explorer.ask(f"/api/runs/{name}").json()["unknown_coverage"]
        assert [along for along in why if why[along] is not None] == unknown
        for along, reason in why.items():
            told = explorer.ask(f"/api/runs/{name}/coverage", query={"along": along})
            assert told.json()["error"] == reason if reason else told.status == 200


def test_coverage_of_a_topic_has_its_lines_and_their_median(
    ask: Ask, plays: dict[str, Played]
) -> None:
    run = plays["timed"]
    told = ask("timed", "coverage", topic=0, along="delay")
    arrays, about = told.arrays(), meta(told)
    measured = run.rows["metrics/messages"]
    counted = [
        row["message"]
        for row in run.rows["publications"]
        if row["topic"] == 0
        and measured[row["message"]]["eligible"]
        and not measured[row["message"]]["rejections"]
    ]
    of_topic = [row for row in run.rows["publications"] if row["topic"] == 0]
    assert about["messages"] == len(counted) > 2
    assert about["left_out"] == len(of_topic) - len(counted)
    assert sorted(about["names"]) == sorted(NAMES[message] for message in counted)
    quantiles = arrays["quantiles"].reshape(len(about["shares"]), -1)
    for place in (0, 40, 499):
        shares = sorted(
            sum(
                row["first"] and row["eligible"] and row["time_us"]
                <= run.rows["publications"][message]["time_us"] + arrays["at"][place]
                for row in of(run.rows["receptions"], message)
            ) / measured[message]["eligible"]
            for message in counted
        )  # fmt: skip
        assert quantiles[2, place] == pytest.approx(np.median(shares))


def test_coverage_of_no_message_is_empty(ask: Ask) -> None:
    told = ask("timed", "coverage", text="no such name", along="delay")
    assert meta(told)["messages"] == meta(told)["left_out"] == 0
    assert told.arrays()["at"].size == 0


@pytest.mark.parametrize(
    "message", sorted({*range(0, len(TAKEN), 4), TAKEN.index("-rf"), TAKEN.index("--help")})
)
def test_commands_with_hostile_names_can_be_typed(ask: Ask, workspace: Path, message: int) -> None:
    commands = meta(ask("timed", "message", message=message))["commands"]
    for name in ("copies", "missed"):
        program, *words = shlex.split(commands[name])
        assert program == "vizpub"
        asked = [words[0], "--format", "json", *words[1:]]
        done = CliRunner().invoke(app, ["--workspace", str(workspace), *asked])
        assert done.exit_code == 0, done.stderr
    assert f'"timed/{message}"' in commands["cypher"]


def test_messages_beside_are_of_the_same_topic(ask: Ask, plays: dict[str, Played]) -> None:
    topics = [row["topic"] for row in plays["timed"].rows["publications"]]
    same = [message for message, topic in enumerate(topics) if topic == topics[9]]
    place = same.index(9)
    told = meta(ask("timed", "message", message=9))
    assert told["beside"] == [same[place - 1] if place else None, same[place + 1]]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("message?message=9999", 400),
        ("message?message=-1", 400),
        ("messages?by=nosuch", 404),
        ("messages?topic=x", 400),
        ("coverage?along=nosuch", 404),
        ("missed?message=9999", 400),
    ],
)
def test_wrong_question_gets_an_error_in_words(explorer: Explorer, path: str, code: int) -> None:
    answer = explorer.ask(f"/api/runs/timed/{path}")
    assert answer.status == code
    assert answer.json()["error"]
