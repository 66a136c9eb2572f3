"""When intervals close: by all, or by more than half and the lateness; in order."""

from __future__ import annotations

import json
import random
from statistics import median_low
from typing import Any

import pytest

from tests.support.few import few
from tests.support.skewed import (
    AFTER,
    BEGAN,
    LATENESS,
    SECONDS,
    WRONG,
    Clock,
    Simulated,
    among,
    fast,
)
from vizpub.collector.closing import Closing, ClosingRules


def opened(*peers: str, **rules: Any) -> Closing:
    """Interval 0 was reported by all and closed."""
    closing = Closing(ClosingRules(lateness_s=5.0, **rules))
    for peer in peers:
        closing.note_report(peer, 0, 0.0)
    closing.close(0)
    return closing


def test_first_interval_waits_for_peers_nobody_knows() -> None:
    """For an interval and the lateness: by then each of them has reported once."""
    closing = Closing(ClosingRules(lateness_s=5.0))
    closing.note_report("a", 7, 0.0)
    assert closing.due(5.9) is None
    closing.note_report("b", 7, 5.9)
    assert closing.due(6.0) == 7


def test_first_interval_is_the_median_of_the_peers_first_ones() -> None:
    """Not that of the one whose clock is an hour slow, nor of one that is fast."""
    closing = Closing(ClosingRules(lateness_s=5.0))
    for second in range(7):
        for offset, peer in ((-3600, "slow"), (8, "fast"), (0, "a"), (0, "b"), (0, "c")):
            closing.note_report(peer, 4000 + second + offset, float(second))
        due = closing.due(float(second))
        assert (due is None) == (second < 6)
        assert closing.first == 4000


def test_interval_closes_at_once_when_all_have_reported_it() -> None:
    closing = opened("a", "b", "c")
    closing.note_report("a", 1, 1.0)
    closing.note_report("b", 1, 1.0)
    assert closing.due(1.0) is None
    closing.note_report("c", 2, 1.0)  # a later one says so, too
    assert closing.due(1.0) == 1


def test_interval_closes_the_lateness_after_more_than_half_have_reported_it() -> None:
    closing = opened("a", "b", "c", "d")
    for second, peer in ((1.0, "a"), (1.5, "b"), (2.0, "c")):
        assert closing.due(second) is None
        closing.note_report(peer, 1, second)
    assert closing.due(2.0) is None  # noted as more than half
    closing.note_report("d", 0, 6.5)  # it is there, and behind for the first time
    assert closing.due(6.9) is None
    assert closing.due(7.0) == 1


def test_silence_closes_nothing() -> None:
    """Whoever comes back reports what it kept. Those that go on are all members by then."""
    closing = opened("a", "b", "c", "d")
    closing.note_report("a", 1, 1.0)
    assert closing.due(6.0) is None  # one of four
    assert closing.due(7.0) == 1  # the others are silent for an interval and the lateness
    assert opened("a", "b").due(1e9) is None


def test_interval_in_which_all_leave_closes() -> None:
    closing = opened("a", "b")
    for peer in "ab":
        closing.note_report(peer, 1, 1.0, leaves=True)
    assert closing.due(1.0) == 1


def test_peer_whose_reports_are_all_late_is_not_waited_for() -> None:
    """But one that was late once is: its next report comes in time."""
    closing = opened("a", "b", "slow", "once")
    for second in range(1, 30):
        for peer in ("a", "b") if second == 4 else ("a", "b", "once"):
            closing.note_report(peer, second, float(second))
        closing.note_report("slow", second - 20, float(second))
        closing.due(float(second))
        if second == 9:
            closing.note_report("once", 4, 9.0)
        if (due := closing.due(float(second))) is not None:
            closing.close(due)
        if second > 9:
            assert closing.closed == second


def test_few_that_go_on_close_what_the_many_left_open() -> None:
    """Reports of later intervals do not put it off."""
    closing = opened(*"abcdefgh")
    for interval in range(1, 20):
        closing.note_report("a", interval, float(interval))
        if (due := closing.due(float(interval))) is not None:
            closing.close(due)
    assert closing.closed is not None
    assert closing.closed >= 13


def test_interval_without_a_report_stays_open() -> None:
    assert opened("a", "b").due(1e9) is None


def test_peer_that_left_or_fell_silent_is_not_waited_for() -> None:
    closing = opened("a", "b", "c")
    closing.note_report("c", 1, 1.0, leaves=True)
    closing.note_report("a", 1, 1.0)
    closing.note_report("b", 1, 1.0)
    assert closing.due(1.0) == 1
    closing.close(1)
    closing.note_report("a", 2, 2.0)
    closing.note_report("b", 2, 2.0)
    assert closing.due(2.0) == 2


@pytest.mark.parametrize("gap", [0, 1, 3])
def test_silent_peer_is_a_member_for_gap_tolerance_and_an_interval_and_the_lateness(
    gap: int,
) -> None:
    closing = opened("a", "b", "c", gap_tolerance=gap)
    for second in range(1, 15):
        for peer in "ab":
            closing.note_report(peer, second, float(second))
        if (due := closing.due(float(second))) is not None:
            closing.close(due)
        is_member = second <= gap + 1 + 5
        assert closing.closed == (max(second - 5, 0) if is_member else second), second


def test_listed_peers_are_waited_for_from_the_beginning() -> None:
    closing = Closing(ClosingRules(5.0, peers=frozenset("ab")))
    closing.note_report("a", 0, 0.0)
    assert closing.due(0.0) is None
    closing.note_report("b", 0, 0.0)
    assert closing.due(0.0) == 0


@pytest.mark.parametrize(
    "rules", [{"peers": frozenset("abcd")}, {"gap_tolerance": 9}], ids=["a list", "a gap"]
)
def test_interval_waits_for_one_lateness_only(rules: dict[str, Any]) -> None:
    """One of four peers never reports, and is waited for in every interval."""
    closing = opened("a", "b", "c", "d", **rules)
    for second in range(1, 10):
        for peer in "abc":
            closing.note_report(peer, second, float(second))
        if (due := closing.due(float(second))) is not None:
            closing.close(due)
        assert closing.closed == max(second - 5, 0)


def test_break_of_any_length_closes_at_once() -> None:
    """As after a weekend with intervals of milliseconds."""
    closing, long = opened("a", "b"), 10**9
    closing.note_report("a", long + 1, 1.0)
    closing.note_report("b", long, 1.0)
    assert closing.due(1.0) == long


def test_report_is_ahead_of_the_median_and_of_the_clock() -> None:
    closing = opened("a", "b", "c", ahead=16)
    for peer in "ab":
        closing.note_report(peer, 100, 0.0)
    assert not closing.is_ahead(116, now=0)
    assert closing.is_ahead(117, now=0)
    assert not closing.is_ahead(160, now=150)  # the collector was away for a while
    assert closing.is_ahead(167, now=150)
    assert Closing(ClosingRules()).is_ahead(86_400, now=3)
    assert not Closing(ClosingRules()).is_ahead(19, now=3)


def test_state_is_restored_from_json() -> None:
    closing = opened("a", "b")
    closing.note_report("a", 3, 1.0)
    closing.note_report("b", 2, 1.0, leaves=True)
    again = Closing.from_state(closing.rules, json.loads(json.dumps(closing.state())), 50.0)
    assert again.state() == closing.state()
    assert closing.due(2.0) == again.due(51.0) == 3


@pytest.mark.parametrize("seed", range(20))
def test_intervals_close_in_order_and_none_waits_for_ever(seed: int) -> None:
    """Peers that come, leave and fall silent; whatever they do, what was reported is closed."""
    print("seed", seed)
    rng, closing, now = random.Random(seed), Closing(ClosingRules(5.0)), 0.0
    at = dict.fromkeys([f"p{n}" for n in range(rng.randint(1, 9))], 0)
    for _ in range(300):
        now += rng.random()
        peer = rng.choice([*at])
        at[peer] += rng.choice([0, 1, 1, 1, 2])
        closing.note_report(peer, at[peer], now, leaves=rng.random() < 0.05)
        before = closing.closed
        if (due := closing.due(now)) is not None:
            assert before is None or due > before
            closing.close(due)
    assert closing.greatest_interval is not None
    last = closing.greatest_interval + 1
    for peer in at:  # what all have reported closes at once
        closing.note_report(peer, last, now)
    assert closing.due(now) == last


def test_median_is_of_the_peers_that_are_expected() -> None:
    """Against the median of a list, which is made anew for each report."""
    seed = 8
    rng, closing = random.Random(seed), Closing(ClosingRules(gap_tolerance=1))
    newest: dict[str, tuple[int, bool]] = {}
    for step in range(2_000):
        peer, interval = f"p{rng.randrange(40)}", step // 50 + rng.randrange(4)
        left = rng.random() < 0.1
        closing.note_report(peer, interval, 0.0, leaves=left)
        if interval >= newest.get(peer, (-1, False))[0]:
            newest[peer] = interval, left
        if step % 100 == 99:
            closing.close(step // 50)
        oldest = -1 if closing.closed is None else closing.closed - 1
        there = [at for at, gone in newest.values() if not gone and at >= oldest]
        assert closing.median() == (median_low(there) if there else None), (seed, step)
    assert Closing.from_state(closing.rules, closing.state(), 0.0).median() == closing.median()


def test_silent_peers_hold_nobody_back() -> None:
    closing = Closing(ClosingRules(ahead=4))
    for number in range(30):
        closing.note_report(f"dead{number}", 0, 0.0)
    for interval in range(40):
        assert not closing.is_ahead(interval, 0), interval
        closing.note_report("alive", interval, 0.0)
        closing.close(interval)


@pytest.mark.parametrize("clock", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize(
    ("count", "wrong"), few([(10, 1), (10, 4), (40, 4), (3, 1)], [(10, 4), (3, 1)])
)
@pytest.mark.parametrize("restarts", few([False, True], [True]), ids=["", "restart"])
def test_fewer_than_half_wrong_clocks_harm_no_sound_peer(
    count: int, wrong: int, clock: Clock, *, restarts: bool
) -> None:
    peers, sound = among(count, wrong, clock)
    case = Simulated(peers, sound, restarts=restarts)
    case.run()
    assert not case.late
    early = [i for i, at in case.closed.items() if at < case.reported.get(i, at + 1)]
    assert not early
    # And they hold nobody back for long, once it is known who is behind.
    lags = [at - case.reported[i] for i, at in case.closed.items()]
    assert len(case.closed) > SECONDS - 12
    assert max(lags) <= 2 * LATENESS + 2


@pytest.mark.parametrize("clock", [fast(8), fast(-8), fast(-3600)], ids=["8", "-8", "-3600"])
def test_sound_peers_after_a_break_are_in_time_again(clock: Clock) -> None:
    peers, sound = among(10, 2, clock)
    case = Simulated(peers, sound, broken={"p8", "p9"})
    case.run()
    assert {peer for peer, _ in case.late} <= case.broken
    assert all(interval < AFTER for _, interval in case.late)
    assert not [i for i, at in case.closed.items() if at < case.reported[i]]


def test_half_of_wrong_clocks_leave_the_collector_alive() -> None:
    """Nothing is promised then, but what is closed stays in order, and all of it ends."""
    for clock in WRONG.values():
        peers, sound = among(10, 5, clock)
        case = Simulated(peers, sound)
        case.run()
        assert [*case.closed] == sorted(case.closed)


def test_sound_peers_are_closed_as_soon_as_all_have_reported() -> None:
    peers, sound = among(20, 0, fast(0))
    case = Simulated(peers, sound)
    last: dict[int, float] = {}
    for at, _, interval in case.arrivals():
        last[interval] = max(at, last.get(interval, at))
    case.run()
    steady = [i for i, at in case.closed.items() if at > BEGAN + 12]
    assert len(steady) > SECONDS - 20
    assert all(case.closed[i] <= last[i] for i in steady)


def test_first_interval_closes_though_all_fall_silent_after_it() -> None:
    closing = Closing(ClosingRules(lateness_s=2.0))
    for number, peer in enumerate("abc"):
        closing.note_report(peer, 3, 10.0 + number / 100)
    assert closing.due(12.9) is None
    assert closing.due(60.0) == 3
