"""When intervals close: by all, by half and the lateness, and by silence; in order."""

from __future__ import annotations

import json
import random
from statistics import median_low
from typing import Any

import pytest

from collector.closing import Closing, Rules


def opened(*peers: str, **rules: Any) -> Closing:
    """Interval 0 was reported by all and closed."""
    closing = Closing(Rules(lateness_s=5.0, **rules))
    for peer in peers:
        closing.note(peer, 0, 0.0)
    closing.close(0)
    return closing


def test_first_interval_waits_for_peers_nobody_knows() -> None:
    closing = Closing(Rules(lateness_s=5.0))
    closing.note("a", 7, 0.0)
    assert closing.due(4.9) is None
    closing.note("b", 7, 4.9)
    assert closing.due(5.0) == 7


def test_interval_closes_at_once_when_all_have_reported_it() -> None:
    closing = opened("a", "b", "c")
    closing.note("a", 1, 1.0)
    closing.note("b", 1, 1.0)
    assert closing.due(1.0) is None
    closing.note("c", 2, 1.0)  # a later one says so, too
    assert closing.due(1.0) == 1


def test_interval_closes_the_lateness_after_half_have_reported_it() -> None:
    closing = opened("a", "b", "c", "d")
    closing.note("a", 1, 1.0)
    assert closing.due(1.5) is None
    closing.note("b", 1, 2.0)
    assert closing.due(2.0) is None  # noted as half
    assert closing.due(6.9) is None
    assert closing.due(7.0) == 1


def test_silence_closes_the_lateness_after_the_last_report() -> None:
    closing = opened("a", "b", "c", "d")
    closing.note("a", 1, 1.0)
    assert closing.due(5.9) is None
    assert closing.due(6.0) == 1


def test_few_that_go_on_close_what_the_many_left_open() -> None:
    """Reports of later intervals do not put it off."""
    closing = opened(*"abcdefgh")
    for interval in range(1, 20):
        closing.note("a", interval, float(interval))
        if (due := closing.due(float(interval))) is not None:
            closing.close(due)
    assert closing.closed is not None
    assert closing.closed >= 13


def test_interval_without_a_report_stays_open() -> None:
    assert opened("a", "b").due(1e9) is None


def test_peer_that_left_or_fell_silent_is_not_waited_for() -> None:
    closing = opened("a", "b", "c")
    closing.note("c", 1, 1.0, left=True)
    closing.note("a", 1, 1.0)
    closing.note("b", 1, 1.0)
    assert closing.due(1.0) == 1
    closing.close(1)
    closing.note("a", 2, 2.0)
    closing.note("b", 2, 2.0)
    assert closing.due(2.0) == 2


@pytest.mark.parametrize("gap", [0, 1, 3])
def test_silent_peer_is_waited_for_in_gap_tolerance_and_one_more(gap: int) -> None:
    closing = opened("a", "b", "c", gap_tolerance=gap)
    for interval in range(1, 8):
        for peer in "ab":
            closing.note(peer, interval, 0.0)
        waits = closing.due(0.0) is None
        assert waits == (interval <= gap + 1), interval
        closing.close(interval)


def test_listed_peers_are_waited_for_from_the_beginning() -> None:
    closing = Closing(Rules(5.0, peers=frozenset("ab")))
    closing.note("a", 0, 0.0)
    assert closing.due(0.0) is None
    closing.note("b", 0, 0.0)
    assert closing.due(0.0) == 0


@pytest.mark.parametrize(
    "rules", [{"peers": frozenset("abcd")}, {"gap_tolerance": 9}], ids=["a list", "a gap"]
)
def test_interval_waits_for_one_lateness_only(rules: dict[str, Any]) -> None:
    """One of four peers never reports, and is waited for in every interval."""
    closing = opened("a", "b", "c", "d", **rules)
    for second in range(1, 10):
        for peer in "abc":
            closing.note(peer, second, float(second))
        if (due := closing.due(float(second))) is not None:
            closing.close(due)
        assert closing.closed == max(second - 5, 0)


def test_break_of_any_length_closes_at_once() -> None:
    """As after a weekend with intervals of milliseconds."""
    closing, long = opened("a", "b"), 10**9
    closing.note("a", long + 1, 1.0)
    closing.note("b", long, 1.0)
    assert closing.due(1.0) == long


def test_report_is_ahead_of_the_median_and_of_the_clock() -> None:
    closing = opened("a", "b", "c", ahead=16)
    for peer in "ab":
        closing.note(peer, 100, 0.0)
    assert not closing.is_ahead(116, now=0)
    assert closing.is_ahead(117, now=0)
    assert not closing.is_ahead(160, now=150)  # the collector was away for a while
    assert closing.is_ahead(167, now=150)
    assert Closing(Rules()).is_ahead(86_400, now=3)
    assert not Closing(Rules()).is_ahead(19, now=3)


def test_state_is_restored_from_json() -> None:
    closing = opened("a", "b")
    closing.note("a", 3, 1.0)
    closing.note("b", 2, 1.0, left=True)
    again = Closing.restored(closing.rules, json.loads(json.dumps(closing.state())), 50.0)
    assert again.state() == closing.state()
    assert closing.due(2.0) == again.due(51.0) == 3


@pytest.mark.parametrize("seed", range(20))
def test_intervals_close_in_order_and_none_waits_for_ever(seed: int) -> None:
    """Peers that come, leave and fall silent; whatever they do, what was reported is closed."""
    print("seed", seed)
    rng, closing, now = random.Random(seed), Closing(Rules(5.0)), 0.0
    at = dict.fromkeys([f"p{n}" for n in range(rng.randint(1, 9))], 0)
    for _ in range(300):
        now += rng.random()
        peer = rng.choice([*at])
        at[peer] += rng.choice([0, 1, 1, 1, 2])
        closing.note(peer, at[peer], now, left=rng.random() < 0.05)
        before = closing.closed
        if (due := closing.due(now)) is not None:
            assert before is None or due > before
            closing.close(due)
    reached = closing.reached
    for _ in range(1000):
        now += 1.0
        if (due := closing.due(now)) is not None:
            closing.close(due)
    assert closing.closed == reached


def test_median_is_of_the_peers_that_are_expected() -> None:
    """Against the median of a list, which is made anew for each report."""
    seed = 8
    rng, closing = random.Random(seed), Closing(Rules(gap_tolerance=1))
    newest: dict[str, tuple[int, bool]] = {}
    for step in range(2_000):
        peer, interval = f"p{rng.randrange(40)}", step // 50 + rng.randrange(4)
        left = rng.random() < 0.1
        closing.note(peer, interval, 0.0, left=left)
        if interval >= newest.get(peer, (-1, False))[0]:
            newest[peer] = interval, left
        if step % 100 == 99:
            closing.close(step // 50)
        oldest = -1 if closing.closed is None else closing.closed - 1
        there = [at for at, gone in newest.values() if not gone and at >= oldest]
        assert closing.median() == (median_low(there) if there else None), (seed, step)
    assert Closing.restored(closing.rules, closing.state(), 0.0).median() == closing.median()


def test_silent_peers_hold_nobody_back() -> None:
    closing = Closing(Rules(ahead=4))
    for number in range(30):
        closing.note(f"dead{number}", 0, 0.0)
    for interval in range(40):
        assert not closing.is_ahead(interval, 0), interval
        closing.note("alive", interval, 0.0)
        closing.close(interval)
