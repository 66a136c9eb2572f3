"""What simulations will take, from their beginnings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import psutil

from vizpub.model.errors import InputError, UseError
from vizpub.simulators.engine.clock import stream
from vizpub.simulators.engine.costs import Costs
from vizpub.simulators.engine.plan import Plan, make_plan
from vizpub.simulators.engine.simulation import RunningSimulation

NOTICED = 200_000
"""Peers × intervals."""
_PEERS, _BUDGET_S = 2_000, 4.0
"""Peers of a simulation that is tried, and processor seconds for all that are tried."""


def is_much(plans: Sequence[Plan]) -> bool:
    """Return True if the simulations are worth an estimate."""
    weights = (plan.world.peers**plan.growth * plan.world.intervals for plan in plans)
    return bool(sum(weights) >= NOTICED)


def estimate(plans: Sequence[Plan], at_once: int) -> Costs:
    """Estimate what the simulations take together.

    The beginning of one simulation of each setting is tried, with fewer peers if there are many.
    Its time is taken to grow with the peers that are up, interval by interval, and with their
    number by the system's `growth`; its memory with all peers. Publications later on, and state
    that grows, cost more than that.
    """
    settings = {replace(plan, seed=0): plan for plan in plans}
    budget_s = _BUDGET_S / len(settings)
    tried = {setting: _estimate_one(plan, budget_s) for setting, plan in settings.items()}
    each = [tried[replace(plan, seed=0)] for plan in plans]
    at_once = min(at_once, len(plans))
    return Costs(
        max(*(one.seconds for one in each), sum(one.seconds for one in each) / at_once),
        sum(sorted((one.memory_bytes for one in each), reverse=True)[:at_once]),
    )


def _estimate_one(plan: Plan, budget_s: float) -> Costs:
    small = replace(plan, world=replace(plan.world, peers=min(plan.world.peers, _PEERS)))
    try:
        estimated = _try_out(small, budget_s)
    except (UseError, InputError):
        # Its world needs all of its peers; the default one of the system tells roughly as much.
        small = make_plan(plan.system, {"peers": small.world.peers})
        small = replace(small, world=replace(small.world, intervals=plan.world.intervals))
        estimated = _try_out(small, budget_s)
    factor = plan.world.peers / small.world.peers
    seconds = estimated.seconds * factor**plan.growth
    return Costs(seconds, round(estimated.memory_bytes * factor))


def _try_out(plan: Plan, budget_s: float) -> Costs:
    """Simulate as many intervals as the budget allows; peers join in the first, which may take
    longer, and counts once.
    """
    resident, setting = psutil.Process().memory_info().rss, plan.world.setting
    running, until_us = RunningSimulation(plan), 0
    begun, from_us, joining, seconds = time.process_time(), 0, 0.0, 0.0
    spared_s = 4 * budget_s
    for interval in range(setting.intervals):
        # An interval may be long: its first parts tell.
        for part in range(1, 101):
            until_us = setting.interval_us * interval + setting.interval_us * part // 100
            running.network.run(until_us)
            if (seconds := time.process_time() - begun) > spared_s:
                break
        if seconds > spared_s:
            break
        for _ in running.lines.take(interval, running.system):
            pass
        if interval == 0:
            joining, seconds = time.process_time() - begun, 0.0
            begun, from_us, spared_s = time.process_time(), until_us, budget_s
    memory = max(psutil.Process().memory_info().rss - resident, 0)
    left, tried = (_time_up(plan, from_us, end) for end in (setting.duration_us, until_us))
    return Costs(joining + seconds * left / max(tried, 1), memory)


def _time_up(plan: Plan, from_us: int, to_us: int) -> int:
    """How long peers are up in a span of a run, added up over all of them, in µs."""
    sessions = plan.world.get_churn().sessions(plan.world.setting, stream(plan.seed, "churn"))
    ends = ((one.start_us, to_us if one.end_us is None else one.end_us) for one in sessions)
    return sum(max(0, min(end, to_us) - max(start, from_us)) for start, end in ends)
