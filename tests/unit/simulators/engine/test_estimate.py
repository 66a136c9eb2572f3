"""What simulations will take."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from vizpub.simulators.designs.system import system_of
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.engine.estimate import NOTICED, _time_up, _try_out, estimate, is_much
from vizpub.simulators.engine.plan import Plan, make_plan


def plan_of(seed: int = 1, **world: Any) -> Plan:
    return make_plan("cyclon", {"peers": 60, "intervals": 20, **world}, seed)


def test_little_is_not_estimated() -> None:
    assert not is_much([plan_of(peers=100, intervals=NOTICED // 100 - 1)])
    assert is_much([plan_of(seed, peers=100, intervals=NOTICED // 200) for seed in (1, 2)])
    assert not is_much([])


def test_estimate_of_a_plan_is_shared_by_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(
        "vizpub.simulators.engine.estimate._try_out",
        lambda plan, budget_s: tried.append(plan) or _try_out(plan, 0.05),
    )
    plans = [plan_of(seed, peers=5_000, intervals=100) for seed in range(1, 5)]
    one, two, four = (estimate(plans, at_once) for at_once in (1, 2, 9))
    assert len(tried) == 3
    assert {plan.world.peers for plan in tried} == {2_000}
    assert all(
        costs and costs.seconds > 0 and costs.memory_bytes >= 0 for costs in (one, two, four)
    )


def test_world_that_needs_all_its_peers_is_estimated_by_the_default_one() -> None:
    needing = plan_of(peers=100_000, intervals=30, churn="script:kill 90000 at interval 5")
    costs = estimate([needing], 1)
    assert costs.seconds > 0


def test_overlay_that_grows_faster_than_its_peers_is_estimated_earlier() -> None:
    world = {"peers": 1_000, "intervals": 1}
    assert not is_much([make_plan(system_of("cd-max"), world)])
    assert is_much([make_plan(system_of("gm"), world)])


@pytest.mark.parametrize("intervals", [1, 2, 5])
def test_joining_of_a_trial_counts_once(monkeypatch: pytest.MonkeyPatch, intervals: int) -> None:
    looks = count()
    monkeypatch.setattr("time.process_time", lambda: float(next(looks)))
    # An interval is a hundred parts, with a look at the clock after each.
    plan = plan_of(intervals=intervals)
    assert _try_out(plan, 1e9).seconds == pytest.approx(100 * intervals, rel=0.05)
    assert _try_out(plan, 1e-9).seconds == pytest.approx(100 * intervals, rel=0.05)


@pytest.mark.parametrize(
    "churn", ["none", "exponential:3s,down=2s", "script:kill 50 % at interval 7"]
)
def test_time_that_peers_are_up_is_that_of_each_moment(churn: str) -> None:
    plan = plan_of(churn=churn)
    setting = plan.world.setting
    sessions = plan.world.get_churn().sessions(setting, stream(plan.seed, "churn"))
    step, span = 10_000, (2_000_000, 9_000_000)
    by_moment = sum(
        one.start_us <= moment and (one.end_us is None or moment < one.end_us)
        for moment in range(*span, step)
        for one in sessions
    )
    assert _time_up(plan, *span) == pytest.approx(by_moment * step, abs=step * len(sessions))
