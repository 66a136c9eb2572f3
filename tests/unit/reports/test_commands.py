"""Commands of a collector that asks, as the peers' program sees them."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest

from vizpub.reports.commands import NO_COMMANDS, CommandInbox


def command(number: int, action: str = "leave", seconds: float = 60.0) -> dict[str, Any]:
    return {"id": number, "peer": "a", "action": action, "expires_in_s": seconds}


def taken(given: CommandInbox, *commands: dict[str, Any]) -> list[tuple[int, bool]]:
    """The answers to these."""
    found = json.loads(given.take(json.dumps({"commands": commands}).encode()))["answers"]
    return [(one["id"], one["obeyed"]) for one in found]


def waiting(given: CommandInbox) -> list[tuple[int, str]]:
    return [(one["id"], one["action"]) for one in given.waiting()]


def test_first_answer_counts() -> None:
    given = CommandInbox()
    taken(given, command(1))
    given.answer(1, "no")
    given.answer(1, None)
    assert taken(given, command(1)) == [(1, False)]


def test_command_that_is_given_no_more_is_over() -> None:
    given = CommandInbox()
    taken(given, command(1), command(2))
    taken(given, command(2))
    given.answer(1, None)
    assert waiting(given) == [(2, "leave")]
    assert taken(given, command(1), command(2)) == []
    assert waiting(given) == [(1, "leave"), (2, "leave")]


def test_command_expires_and_keeps_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    given, now = CommandInbox(), [0.0]
    monkeypatch.setattr("vizpub.reports.commands.time", SimpleNamespace(monotonic=lambda: now[0]))
    taken(given, command(1, seconds=0.05), command(2, seconds=0.0))
    assert waiting(given) == [(1, "leave")]
    now[0] = 0.06
    assert waiting(given) == []
    given.answer(1, None)
    assert taken(given, command(1, seconds=0.0)) == [(1, True)]


def test_answer_is_never_given_for_another_command_with_its_id() -> None:
    """As of a collector that began anew."""
    given = CommandInbox()
    taken(given, command(1))
    given.answer(1, None)
    assert taken(given, command(1, "join")) == []
    assert waiting(given) == [(1, "join")]


@pytest.mark.parametrize("seed", range(10))
def test_commands_are_obeyed_though_answers_are_lost(seed: int) -> None:
    """The collector's side and the peers' take turns at random, and any message may be lost."""
    rng, given = random.Random(seed), CommandInbox()
    wanted = [command(n, rng.choice(["leave", "join"])) for n in range(1, 40)]
    known: dict[int, bool] = {}
    obeyed: list[int] = []
    for turn in range(2_000):
        open_now = [one for one in wanted[: turn // 3] if one["id"] not in known]
        if rng.random() < 0.5:
            for one in given.waiting()[: rng.randrange(5)]:
                obeyed.append(one["id"])
                given.answer(one["id"], None if one["id"] % 3 else "no")
        elif rng.random() < 0.7:
            answers = taken(given, *open_now)
            if rng.random() < 0.6:
                known.update(answers)
    assert known == {one["id"]: bool(one["id"] % 3) for one in wanted}, seed
    assert sorted(obeyed) == [one["id"] for one in wanted], f"each once; seed {seed}"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"commands": 7}', b'{"commands": [{}]}'])
def test_body_without_commands_is_an_error(body: bytes) -> None:
    given = CommandInbox()
    taken(given, command(1))
    with pytest.raises(ValueError, match=NO_COMMANDS):
        given.take(body)
    assert waiting(given) == [(1, "leave")]
