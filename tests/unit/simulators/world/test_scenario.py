"""Events in words, and what comes of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from vizpub.model.errors import InputError, UseError
from vizpub.simulators.world.scenario import (
    MORE_THAN_ALL,
    NO_EVENT,
    CrowdEvent,
    changes,
    crowd,
    read_events,
)

INTERVAL = 1_000_000


def happen(text: str, peers: int = 100, seed: int = 7) -> list[tuple[int, str]]:
    """(time in intervals, action) of all changes."""
    events = read_events(text)
    people = crowd(events, peers, Random(seed))
    return [
        (change.time_us // INTERVAL, change.action)
        for change in changes(events, people, peers, INTERVAL)
    ]


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("kill 30 % at interval 400", ("kill", 0.3, 0, 400, 0)),
        ("kill 2.5% at interval 4", ("kill", 0.025, 0, 4, 0)),
        ("join 500 over 20 intervals", ("join", 0.0, 500, 0, 20)),
        ("leave all at interval 5 over 1 interval", ("leave", 1.0, 0, 5, 1)),
        ("return all over 3 intervals at interval 5", ("return", 1.0, 0, 5, 3)),
        ("leave 10", ("leave", 0.0, 10, 0, 0)),
    ],
)
def test_events_are_parsed_from_sentences(
    text: str, event: tuple[str, float, int, int, int]
) -> None:
    assert read_events(text) == [CrowdEvent(text, *event)]  # type: ignore[arg-type]
    assert len(read_events(f"{text}; kill 1;")) == 2


@pytest.mark.parametrize(
    "text",
    [
        *("kill", "kill some", "kill 1.5", "kill -1", "kill 101 %", "kill 30 % at 400"),
        *("eat 30 %", "kill 3 at interval -4", "kill 3 over x intervals"),
        *("kill 3 at interval 3 at interval 7", "kill 3 over 5 intervals over 9 intervals"),
    ],
)
def test_invalid_event_sentence_is_refused(text: str) -> None:
    with pytest.raises(UseError, match=f"{NO_EVENT}|{MORE_THAN_ALL}"):
        read_events(text)


def test_events_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text('events = ["kill 30 % at interval 400", "join 5"]')
    assert [event.number for event in read_events(str(path))] == [0, 5]
    for text in ("events = 3", "event = []", "events = [3]", "events = ["):
        path.write_text(text)
        with pytest.raises(InputError, match=r"script\.toml"):
            read_events(str(path))


def test_share_is_of_the_peers_that_are_up() -> None:
    happened = happen("kill 50 % at interval 1; kill 50 % at interval 2; leave 20 % at interval 3")
    assert happened == [(1, "kill")] * 50 + [(2, "kill")] * 25 + [(3, "leave")] * 5


def test_event_over_intervals_is_spread_evenly() -> None:
    happened = happen("join 60 over 20 intervals at interval 10")
    assert happened == [(interval, "join") for interval in range(10, 30) for _ in range(3)]


def test_return_event_brings_back_a_share_of_departed_peers() -> None:
    happened = happen("kill 30 at interval 1; leave 10 at interval 2; return 50 % at interval 3")
    assert happened[40:] == [(3, "return")] * 20


def test_events_of_one_moment_happen_in_the_written_order() -> None:
    assert happen("kill all at interval 2; return all at interval 2")[::100] == [
        (2, "kill"),
        (2, "return"),
    ]


def test_joining_peers_are_absent_at_the_start() -> None:
    events = read_events("join all over 10 intervals")
    assert crowd(events, 30, Random(1)).up == []
    events = read_events("join 25 % at interval 3")
    people = crowd(events, 30, Random(1))
    assert (len(people.up), len(people.absent)) == (22, 8)
    assert sorted(people.up + people.absent) == list(range(30))


@pytest.mark.parametrize("seed", range(5))
def test_peers_do_only_what_their_state_allows(seed: int) -> None:
    text = (
        "join 40 over 9 intervals; kill 20 over 5 intervals at interval 3; leave 9 % at interval 4;"
        "return 5 at interval 6; return all over 2 intervals at interval 8"
    )
    events = read_events(text)
    people = crowd(events, 100, Random(seed))
    state = dict.fromkeys(people.up, "up") | dict.fromkeys(people.absent, "absent")
    needed = {"join": "absent", "return": "gone", "leave": "up", "kill": "up"}
    last = 0
    for time_us, peer, action in changes(events, people, 100, INTERVAL):
        assert state[peer] == needed[action]
        state[peer] = "up" if action in ("join", "return") else "gone"
        assert time_us >= last
        last = time_us
    assert list(state.values()).count("up") == len(people.up)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kill 101", "100 peers"),
        ("return 1", "'return 1': .*0 peers"),
        ("kill all; kill 1 at interval 1", "'kill 1 at interval 1': .*0 peers"),
        ("join 60; join 60", "120 peers .*100"),
        ("kill 100 over 10 intervals; kill 5 at interval 2", "'kill 100 over 10 intervals'"),
    ],
)
def test_event_for_more_peers_than_available_is_refused(text: str, said: str) -> None:
    with pytest.raises(UseError, match=said):
        happen(text)
