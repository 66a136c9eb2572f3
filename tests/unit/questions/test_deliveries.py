"""Deliveries and what was missed, against plain loops over the tables of a run made at random."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support.played import Played, play
from tests.support.spreading import spread
from tests.support.words import unknown
from vizpub.cli.main import app
from vizpub.model.clock import Clock
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import NO_DATA
from vizpub.questions.deliveries import (
    COUNTED_BY,
    NOBODY,
    PERCENTAGES,
    PUBLICATION_UNKNOWN,
    count_reasons,
    coverage_times,
    reasons_of_message,
)
from vizpub.questions.run import BY_OF_ALL, Run, Where

MESSAGES = [f"m{number}" for number in range(25)]
WITHIN_US = 150_000
Reasons = dict[tuple[int, int], tuple[int, int, str]]
"""Neighbours, those with the message, and why, by message and peer."""


@pytest.fixture(scope="module")
def workspace_of_reasons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reasons")


@pytest.fixture(scope="module")
def played(workspace_of_reasons: Path) -> Played:
    """A run whose arrivals take up to half of it, so that peers leave before them; of its first
    two messages no arrival is left.
    """

    def delay(made: Played) -> None:
        spread(made, MESSAGES, 8)
        rng = np.random.default_rng(9)
        arrivals = [row for row in made.rows["receptions"] if row["message"] > 1]
        for row in arrivals:
            row["tick"] += int(rng.integers(0, made.last // 2))
        received = {(row["message"], row["peer"]) for row in made.rows["receptions"]}
        made.rows["missed"] += [
            {"message": message, "peer": peer}
            for message, peer in sorted(received)
            if message < 2 and (message, peer) not in pairs(made.rows["missed"])
            and any(r["eligible"] for r in made.rows["receptions"]
                    if (r["message"], r["peer"]) == (message, peer))
        ]  # fmt: skip
        made.rows["receptions"] = arrivals
        made.rows["rejections"] += [
            lost | {"time_us": None, "interval": 9, "previous_hop": None, "reason": reason}
            for lost in made.rows["missed"][::7]
            for reason in ("too late", "bad", "bad")
        ]

    clock = Clock(1_000_000, 1, 0, 9)
    peers = [f"peer {number}" for number in range(20)]
    return play(workspace_of_reasons, "played", clock, peers, ["news", "it's"], 7, delay)


@pytest.fixture
def run(workspace_of_reasons: Path, played: Played) -> Run:
    return Run.open(workspace_of_reasons, "played")


def pairs(rows: list[dict[str, Any]]) -> set[tuple[int, int]]:
    return {(row["message"], row["peer"]) for row in rows}


def explained(made: Played) -> Reasons:
    """The reasons, by a plain loop."""
    had, refused, last = defaultdict(set), defaultdict(set), Counter[int]()
    for row in made.rows["receptions"]:
        had[row["message"]].add(row["peer"])
        last[row["message"]] = max(last[row["message"]], row["tick"])
    for row in made.rows["rejections"]:
        refused[row["message"], row["peer"]].add(row["reason"])
    reached = {row["message"] for row in made.rows["receptions"] if row["first"]}
    reasons: Reasons = {}
    for message, peer in pairs(made.rows["missed"]):
        published = made.rows["publications"][message]
        links = made.pairs(published["tick"])
        near = {b for a, b in links if a == peer} | {a for a, b in links if b == peer}
        held = len(near & (had[message] | {published["publisher"]}))
        ends = [p["valid_to"] for p in made.holding("presence", published["tick"])
                if p["peer"] == peer]  # fmt: skip
        if texts := refused[message, peer]:
            why = f"refused it: {', '.join(sorted(texts))}"
        elif message not in reached:
            why = NOBODY
        elif any(end <= last[message] for end in ends):
            why = "left while it spread"
        elif not near:
            why = "no neighbours"
        else:
            why = "neighbours had it, none delivered it" if held else "no neighbour had it"
        reasons[message, peer] = (len(near), held, why)
    return reasons


def test_reasons_of_each_message_equal_a_plain_loop(run: Run, played: Played) -> None:
    expected = explained(played)
    for message, name in enumerate(MESSAGES):
        rows = reasons_of_message(run, name).to_pylist()
        peers = sorted(peer for number, peer in expected if number == message)
        assert [row["peer"] for row in rows] == [played.peers[peer] for peer in peers]
        assert [tuple(row.values())[1:] for row in rows] == [
            expected[message, peer] for peer in peers
        ]
    kinds = {why.partition(":")[0] for *_, why in expected.values()}
    assert kinds > {"refused it", NOBODY, "left while it spread"}


@pytest.mark.parametrize("by", [(), *((key,) for key in COUNTED_BY), ("interval", "topic")])
def test_counted_reasons_equal_the_sum_over_the_messages(
    run: Run, played: Played, by: Sequence[str]
) -> None:
    def place(message: int, peer: int) -> tuple[object, ...]:
        published = played.rows["publications"][message]
        names = {"message": MESSAGES[message], "topic": played.topics[published["topic"]],
                 "peer": played.peers[peer], "interval": published["interval"]}  # fmt: skip
        return tuple(names[key] for key in by)

    eligible = Counter(place(*pair) for pair in pairs(played.rows["missed"]))
    eligible += Counter(
        place(row["message"], row["peer"])
        for row in played.rows["receptions"] if row["first"] and row["eligible"]
    )  # fmt: skip
    groups = defaultdict(list)
    for (message, peer), (*_, why) in explained(played).items():
        groups[*place(message, peer), why].append((message, peer))
    expected = {
        key: (len(lost), len({m for m, _ in lost}), len({p for _, p in lost}),
              len(lost) / eligible[key[:-1]])
        for key, lost in groups.items()
    }  # fmt: skip
    rows = count_reasons(run, by)
    assert rows.column_names == [*by, "why", "missed", "messages", "peers", "share"]
    values = [tuple(row.values()) for row in rows.to_pylist()]
    assert {row[: len(by) + 1]: row[len(by) + 1 :] for row in values} == expected
    keys = [row[: len(by)] for row in values]
    assert len({*keys}) == sum(a != b for a, b in zip(keys, [None, *keys], strict=False))
    if by[:1] == ("interval",):
        assert keys == sorted(keys, key=lambda key: key[0])


def without(run: Run, *tables: str) -> Run:
    manifest = run.stored.manifest
    entries = {name: entry for name, entry in manifest.tables.items() if name not in tables}
    return Run(replace(run.stored, manifest=replace(manifest, tables=entries)))


def test_neighbours_and_reasons_of_a_run_without_links_are_unknown(run: Run) -> None:
    rows = count_reasons(without(run, "links", "presence", "rejections")).to_pylist()
    assert {row["why"] for row in rows} == {None, NOBODY}
    assert sum(row["missed"] for row in rows) == run.stored.rows("missed")


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        (lambda run: run.missed(by="colour"), UnknownName, unknown("column to count by", "colour")),
        (lambda run: run.missed("m1", by=["topic"]), UseError, BY_OF_ALL),
        (lambda run: without(run, "missed").missed(), UseError, NO_DATA),
        (lambda run: without(run, "missed").missed("m1"), UseError, NO_DATA),
        (lambda run: run.missed(layers=["mush"]), UnknownName, unknown("layer", "mush")),
        (lambda run: without(run, "receptions").delays(), UseError, NO_DATA),
    ],
)
def test_question_that_has_no_answer_is_refused(
    run: Run, question: Callable[[Run], object], error: type[UseError], words: str
) -> None:
    with pytest.raises(error, match=words):
        question(run)


def deliveries(made: Played) -> Iterator[dict[str, Any]]:
    for row in made.rows["receptions"]:
        published = made.rows["publications"][row["message"]]
        if row["first"] and row["eligible"]:
            yield {
                "message": row["message"], "message_name": published["name"],
                "interval": published["interval"], "topic": published["topic"],
                "topic_name": made.topics[published["topic"]], "peer": row["peer"],
                "peer_name": made.peers[row["peer"]], "hop": row["hop"],
                "delay_us": row["time_us"] - published["time_us"],
            }  # fmt: skip


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        (None, lambda row: True),
        (Where(topic="it's"), lambda row: row["topic_name"] == "it's"),
        (Where(8, 8), lambda row: row["interval"] == 8),
        (Where(last=7, peer="peer 3"), lambda row: row["interval"] < 8 and row["peer"] == 3),
    ],
)
def test_delays_are_those_of_first_arrivals_at_eligible_peers(
    run: Run, played: Played, where: Where | None, chosen: Callable[[dict[str, Any]], bool]
) -> None:
    expected = [row for row in deliveries(played) if chosen(row)]
    assert expected
    expected.sort(key=lambda row: (row["message"], row["peer"]))
    assert run.delays(where).to_pylist() == expected


def test_messages_are_their_metrics(run: Run) -> None:
    columns = ["eligible", "delivered"]
    assert run.messages(columns, Where(8)).to_pylist() == (
        run.metrics("messages", columns, Where(8)).to_pylist()
    )


def vizpub(workspace: Path, *words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["--workspace", str(workspace), "missed", *words])
    return done.exit_code, done.stdout, done.stderr


def test_command_prints_what_the_run_answers(workspace_of_reasons: Path, run: Run) -> None:
    status, text, _ = vizpub(workspace_of_reasons, "played", "--by", "topic,peer", "-f", "csv")
    head, *lines = text.splitlines()
    assert (status, head) == (0, "topic,peer,why,missed,messages,peers,share")
    assert len(lines) == len(run.missed(by=["topic", "peer"]))
    assert vizpub(workspace_of_reasons, "played", "m1", "--by", "topic")[0] == 2


def test_command_says_what_it_leaves_out_and_that_nothing_was_missed(workspace: Path) -> None:
    assert "every eligible peer received it" in vizpub(workspace, "monday", "m0")[2]
    assert PUBLICATION_UNKNOWN not in vizpub(workspace, "monday")[2]
    assert vizpub(workspace, "monday", "-f", "csv")[1].splitlines() == [
        "why,missed,messages,peers,share",
        f"{NOBODY},2,1,2,0.5",
    ]


@pytest.fixture(scope="module")
def timed(workspace_of_reasons: Path) -> Played:
    """A run of microseconds, one of whose arrivals has no time."""

    def add(made: Played) -> None:
        spread(made, MESSAGES, 8)
        arrivals = (row for row in made.rows["receptions"] if row["first"] and row["eligible"])
        next(arrivals)["time_us"] = None

    names = [f"p{number}" for number in range(30)]
    return play(workspace_of_reasons, "timed", Clock(1_000_000, 1, 0, 9), names, ["t", "u"], 4, add)


def delays_of(played: Played, message: int) -> list[int | None]:
    """Of the first arrivals at eligible peers, in order of time."""
    published = played.rows["publications"][message]["time_us"]
    times = [
        row["time_us"]
        for row in played.rows["receptions"]
        if row["message"] == message and row["first"] and row["eligible"]
    ]
    return sorted(
        (None if time is None else time - published for time in times),
        key=lambda delay: (delay is None, delay),
    )


def coverage_of(played: Played, message: int, eligible: int) -> dict[str, Any]:
    arrived = delays_of(played, message)
    known = None not in arrived
    times: dict[str, Any] = {}
    for percentage in PERCENTAGES:
        enough = [
            delay
            for place, delay in enumerate(arrived, 1)
            if known and place * 100 >= percentage * eligible
        ]
        times[f"coverage_us_{percentage}"] = enough[0] if enough and eligible else None
    in_time = [delay for delay in arrived if delay is not None and delay <= WITHIN_US]
    times["within"] = len(in_time) / eligible if known and eligible else None
    return times


def test_times_until_shares_had_a_message_are_those_of_a_loop(
    timed: Played, workspace_of_reasons: Path
) -> None:
    run = Run.open(workspace_of_reasons, timed.name)
    rows = coverage_times(run, Where(), WITHIN_US).to_pylist()
    assert [row["message_name"] for row in rows] == MESSAGES
    for row in rows:
        wanted = coverage_of(timed, row["message"], row["eligible"])
        assert {name: row[name] for name in wanted} == pytest.approx(wanted), row["message"]
    reached = [[row[f"coverage_us_{n}"] is not None for row in rows] for n in PERCENTAGES]
    assert any(reached[0])
    assert not all(reached[-1])
    untimed = {row["message"] for row in timed.rows["receptions"] if row["time_us"] is None}
    assert [rows[message]["within"] for message in untimed] == [None]


def test_times_of_a_part_are_of_the_messages_published_in_it(
    timed: Played, workspace_of_reasons: Path
) -> None:
    run = Run.open(workspace_of_reasons, timed.name)
    rows = coverage_times(run, Where(2, 5, None, "t")).to_pylist()
    assert [row["message"] for row in rows] == [
        row["message"]
        for row in timed.rows["publications"]
        if 2 <= row["interval"] <= 5 and row["topic"] == 0
    ]
    assert "within" not in rows[0]


def test_times_until_shares_had_a_message_need_times(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(9)]
    untimed = play(
        tmp_path, "untimed", Clock(1, None, 0, 9), names, ["t"], 4,
        more=lambda made: spread(made, MESSAGES, 8, timed=False),
    )  # fmt: skip
    with pytest.raises(UseError):
        coverage_times(Run.open(tmp_path, untimed.name), Where())


def test_command_prints_the_times_until_shares_had_a_message(
    timed: Played, workspace_of_reasons: Path
) -> None:
    words = [timed.name, "coverage", "--within", "150ms", "--format", "json"]
    result = CliRunner().invoke(app, ["--workspace", str(workspace_of_reasons), "metrics", *words])
    run = Run.open(workspace_of_reasons, timed.name)
    assert json.loads(result.stdout) == run.coverage(Where(), WITHIN_US).to_arrow().to_pylist()
