"""The compiled pipeline beside queueing theory, and its invariants."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.support.channels import layout
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.running import bits, run

ONE = {"channels": 1, "listen": 1, "profile": "uniform:pages=100", "transmission": "10ms"}
"""One channel, and all clients want all pages."""


@pytest.mark.parametrize("scheduler", ["fifo", "rxw", "lwf"])
@pytest.mark.parametrize(
    ("rho", "expected", "updates"),
    [
        (0.5, 1.5, 50_000),
        (0.8, 3.0, 150_000),
        pytest.param(0.9, 5.5, 400_000, marks=pytest.mark.long),
    ],
)
def test_single_channel_is_a_queue_with_constant_service(
    rho: float, expected: float, updates: int, scheduler: str
) -> None:
    """M/D/1: the mean time in the system is that of any order that never idles."""
    given = layout(3, 2, scheduler=scheduler, **ONE)
    found = run(given, given.draw_updates(updates, 10_000 / rho))
    assert found.global_staleness is not None
    assert found.global_staleness / 10_000 == pytest.approx(expected, rel=0.05)
    held = float(found.queue[0] + found.load[0])
    assert held == pytest.approx(rho + rho**2 / (2 * (1 - rho)), rel=0.05)


@cache
def calm(**chosen: object) -> ChannelLayout:
    """Far below overload, with time to send everything at the end."""
    made = layout(70, 5, gap="100ms", **chosen)
    _ = made.static_mapping  # takes longer to find than a run, and is that of all schedulers
    return made


@pytest.mark.parametrize("scheduler", ["fifo", "rxw", "lwf", "drop"])
@pytest.mark.parametrize("mapping", ["random", "c", "cd", "offline-c", "perfect-c"])
@pytest.mark.parametrize("assignment", ["random", "rr", "pc", "lc"])
def test_interested_clients_all_hear_each_update_below_overload(
    assignment: str, mapping: str, scheduler: str
) -> None:
    given = calm(assignment=assignment, mapping=mapping).with_scheduler(scheduler)
    updates = given.updates((0, 60_000_000))
    found = run(given, updates, 80_000_000)
    wanted = given.wants.sum(axis=0)
    assert found.totals["updates"] == len(updates.times)
    assert found.totals["complete"] == found.totals["passed"] == (wanted[updates.pages] > 0).sum()
    assert (found.counts.heard == given.wants[:, updates.pages].sum(axis=1)).all()
    assert found.totals["unreached"] == found.overdue == found.backlog == 0
    assert found.complete_share == 1
    assert found.gdfr == found.sdfr == 0
    assert (found.counts.offered == found.counts.sent).all()


def test_receptions_are_first_ones_duplicates_and_unwanted_ones() -> None:
    given = calm(mapping="random", assignment="random")
    found = run(given, given.updates((0, 60_000_000)))
    first = int(found.counts.heard.sum())
    told = found.totals
    assert told["receptions"] == first + told["duplicates"] + told["unwanted"]
    assert told["duplicates"] > 0
    assert told["receptions"] == found.counts.sent @ given.listens.sum(axis=0)
    assert found.counts.bins.sum() == first
    assert (found.counts.carried.sum(axis=1) == found.counts.sent).all()


@pytest.mark.parametrize(
    "limit", [{"buffer": 3}, {"scheduler": "drop", "drop_above": 3}], ids=["buffer", "drop"]
)
def test_limited_channels_lose_copies_and_count_them(limit: dict[str, object]) -> None:
    given = layout(40, 7, gap="2ms", **limit)
    found = run(given, given.updates((0, 10_000_000)), 20_000_000)
    counts = found.counts
    assert counts.lost.sum() > 0
    assert counts.longest.max() == 3
    assert (counts.offered == counts.sent + counts.lost).all()
    assert found.totals["unreached"] > 0
    assert found.overdue == found.totals["passed"] - found.totals["complete"] > 0


def test_coalescing_channels_keep_one_copy_of_a_page() -> None:
    given = layout(40, 7, gap="2ms", coalesce=True)
    found = run(given, given.updates((0, 10_000_000)), 20_000_000)
    counts = found.counts
    assert counts.superseded.sum() > 0
    assert given.static_mapping is not None
    assert (counts.longest <= given.static_mapping.sum(axis=0)).all()
    assert (counts.offered == counts.sent + counts.superseded).all()
    assert found.gdfr == 0


def test_overloaded_channels_outgrow_the_first_room() -> None:
    given = layout(40, 7, gap="1ms")
    found = run(given, given.updates((0, 20_000_000)))
    assert found.backlog > 10_000
    assert (found.counts.offered - found.counts.sent).sum() == found.backlog
    wanted = given.wants.sum(axis=0)
    passed = wanted[given.updates((0, 20_000_000)).pages].sum()
    assert found.counts.heard.sum() < passed


def test_scheduler_rxw_serves_those_that_many_want_sooner_than_fifo() -> None:
    """Client-weighted staleness, with page popularity that differs; the mean of five seeds."""
    means = {}
    for scheduler in ("rxw", "fifo"):
        found = []
        for seed in range(1, 6):
            given = layout(
                60, seed, scheduler=scheduler, profile="zipf:10", channels=4, listen=2,
                assignment="random",
            )  # fmt: skip
            busiest = max((given.probability * given.transmission) @ given.static_mapping)
            found.append(run(given, given.draw_updates(20_000, busiest / 0.95)).weighted_staleness)
        means[scheduler] = np.mean(found)
    assert means["rxw"] <= means["fifo"]


def test_assignment_by_likeness_brings_less_fluff_than_a_random_one() -> None:
    shares = {}
    for assignment in ("lc", "random"):
        found = []
        for seed in range(1, 6):
            profile = "clustered:clusters=1,size=5"
            given = layout(100, seed, assignment=assignment, profile=profile, mapping="c")
            found.append(run(given, given.draw_updates(5_000, 100_000)).fluff)
        shares[assignment] = np.mean(found)
    assert shares["lc"] < shares["random"]


def test_quantiles_are_those_of_the_receptions() -> None:
    """One client on one channel with one page: the staleness of each update can be listed."""
    given = layout(1, 3, items=1, sources=1, **{**ONE, "profile": "uniform:pages=1"})
    updates = given.draw_updates(2_000, 12_500)
    found = run(given, updates, int(updates.times[-1]) + 10_000_000)
    ends, free = [], 0
    for time in updates.times.tolist():
        free = max(time, free) + 10_000
        ends.append(free - time)
    assert found.counts.stale.tolist() == [sum(ends)]
    for share in (0.1, 0.5, 0.9, 0.99):
        exact = float(np.quantile(ends, share, method="inverted_cdf"))
        assert found.quantile(share) == pytest.approx(exact, rel=0.016)


def test_client_that_hears_nothing_has_no_quantile(tmp_path: Path) -> None:
    """Each other client hears a page of its own after one transmission."""
    (tmp_path / "profiles.csv").write_text("client,page\n0,0\n2,1\n")
    given = layout(3, 3, profile=f"file:{tmp_path / 'profiles.csv'}")
    found = run(given, given.draw_updates(1_000, 1e6), apart=True)
    took = pytest.approx(10_000, rel=0.016)
    assert found.client_quantiles(0.5) == [took, None, took]
    assert found.counts.heard[1] == 0


def test_bits_are_those_of_the_flags() -> None:
    flags = np.random.default_rng(4).random((3, 130)) < 0.5
    words = bits(flags)
    assert words.shape == (3, 3)
    for row, found in zip(flags, words, strict=True):
        assert [(int(found[i // 64]) >> (i % 64)) & 1 for i in range(130)] == row.tolist()
