"""Two runs side by side in a real Chromium: each shows its own tables at the common time."""

from __future__ import annotations

import re
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.integration.explorer.conftest import Looking
from tests.support.few import few
from tests.support.hostile import TAKEN
from tests.support.played import Played

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]
LONG, SHORT = "intervals", "hours"
"""Of 40 intervals in 40 seconds, and of 12 in two hours."""


def open_pair(looking: Looking, query: str = "", left: str = LONG, right: str = SHORT) -> Page:
    return looking.open(left, f"with={right}&{query}", screen="compare")


def tick_at(run: Played, place: int, by: str) -> int:
    """The tick of a run so many intervals, or microseconds, after its start; at most its last."""
    if by == "interval":
        return run.clock.sampling_tick(min(run.clock.first + place, run.clock.last))
    assert run.clock.tick_us is not None
    return min(run.first + place // run.clock.tick_us, run.last)


def counts_of(run: Played, tick: int) -> dict[str, int]:
    return {"peers": len(run.present(tick)), "pairs": len(run.pairs(tick))}


@pytest.mark.parametrize("by", few(["time", "interval"], ["time"]))
def test_sides_show_their_tables_at_the_common_time(look: Look, plays: Plays, by: str) -> None:
    looking, runs = look(), [plays[LONG], plays[SHORT]]
    page = open_pair(looking, f"by={by}")
    last = {"time": 12 * 600_000_000, "interval": 40}[by] - 1
    rng = np.random.default_rng(5)
    places = [0, last, *rng.integers(0, 40_000_000 if by == "time" else last, 4).tolist()]
    for place in places:
        looking.state(at=place)
        expected = [counts_of(run, tick_at(run, place, by)) for run in runs]
        assert page.evaluate("() => explorer.counts") == expected, place
    for side in (0, 1):
        drawn = page.evaluate(f"() => explorer.scenes[{side}].picture.count()")
        assert drawn == counts_of(runs[side], tick_at(runs[side], places[-1], by))


def test_filters_leave_their_part_of_both_runs(look: Look, plays: Plays) -> None:
    looking, runs, place = look(), [plays[LONG], plays[SHORT]], 8
    page = open_pair(looking, f"by=interval&at={place}")
    ticks = [tick_at(run, place, "interval") for run in runs]
    looking.state(window=3)
    for side, (run, tick) in enumerate(zip(runs, ticks, strict=True)):
        begin = tick - 3 * run.clock.ticks_per_interval
        peers, pairs = (
            {tuple(row[key] for key in keys) for row in run.rows[name]
             if row["valid_from"] <= tick and row["valid_to"] > begin}
            for name, keys in (("presence", ["peer"]), ("links", ["src", "dst"]))
        )  # fmt: skip
        shown = page.evaluate(f"() => explorer.counts[{side}]")
        assert shown == {"peers": len(peers), "pairs": len(pairs)}
    looking.state(window=0, of=runs[0].topics[0], relays=1)
    members = [
        run.subscribers(0, tick) | run.relays(0, tick)
        for run, tick in zip(runs, ticks, strict=True)
    ]
    assert [of["peers"] for of in page.evaluate("() => explorer.counts")] == [*map(len, members)]
    looking.state(of="", relays=0, least=6)
    for side, (run, tick) in enumerate(zip(runs, ticks, strict=True)):
        graph = nx.Graph(run.pairs(tick))
        remaining = [peer for peer, degree in graph.degree if degree >= 6]
        assert page.evaluate(f"() => explorer.counts[{side}].peers") == len(remaining)


def test_shorter_run_stands_at_its_end_and_says_so(look: Look, plays: Plays) -> None:
    looking = look()
    page = open_pair(looking, "by=interval&at=11")
    right = page.get_by_label(f"Right: {SHORT}")
    expect(right).not_to_contain_text("ended")
    page.get_by_role("button", name="One interval forward").click()
    expect(right).to_contain_text("ended")
    expect(page.get_by_label(f"Left: {LONG}")).not_to_contain_text("ended")
    assert page.evaluate("() => explorer.counts[1]") == counts_of(plays[SHORT], plays[SHORT].last)


def test_run_beside_itself_shows_a_later_time(look: Look, plays: Plays) -> None:
    looking, run = look(), plays[LONG]
    page = open_pair(looking, "by=interval&at=3", LONG, LONG)
    page.get_by_label("Intervals later on the right").fill("20")
    page.keyboard.press("Tab")
    expect(page.get_by_label(f"Right: {LONG}")).to_contain_text("interval 28")
    looking.wait()
    first = run.clock.first
    assert page.evaluate("() => explorer.counts") == [
        counts_of(run, run.clock.sampling_tick(first + 3)),
        counts_of(run, run.clock.sampling_tick(first + 23)),
    ]


def test_bars_and_axis_are_of_both_runs(look: Look, plays: Plays) -> None:
    looking, runs, place = look(), [plays[LONG], plays[SHORT]], 7
    page = open_pair(looking, f"by=interval&at={place}")
    numbers = page.locator(".strip .row").first.locator("strong")
    for side, run in enumerate(runs):
        interval = run.clock.first + place
        first, last = run.clock.sampling_tick(interval - 1) + 1, run.clock.sampling_tick(interval)
        rows = run.rows["presence"]
        joins = sum(first <= row["valid_from"] <= last for row in rows)
        leaves = sum(first <= row["valid_to"] <= last for row in rows)
        expect(numbers.nth(side)).to_have_text(f"+{joins} −{leaves}")
    slider = page.get_by_label("Time of both runs")
    page.get_by_role("button", name="Show less of the time").click()
    expect(slider).not_to_have_attribute("max", "39")
    low, high = (int(slider.get_attribute(end) or "") for end in ("min", "max"))
    assert low <= place <= high < 39
    expect(page).to_have_url(re.compile(f"until={high}"))
    page.get_by_role("button", name="Show all of the time").click()
    expect(slider).to_have_attribute("max", "39")


def test_figures_are_those_of_both_tables_and_their_difference(look: Look, plays: Plays) -> None:
    page = open_pair(look(), "by=interval&at=7")
    ends = [
        next(row for row in run.rows["metrics/overlay"] if row["interval"] == run.clock.first + 7)
        for run in (plays[LONG], plays[SHORT])
    ]
    one, two = (row["network_size"] for row in ends)
    row = page.locator(".figures tr", has_text=re.compile("network size", re.I))
    sign = "+" if two > one else ""
    expect(row.locator("td")).to_have_text([str(one), str(two), f"{sign}{two - one}"])


@pytest.mark.parametrize("scale", few(["run", "interval"], ["run"]))
def test_colours_have_one_scale_for_both_runs(look: Look, plays: Plays, scale: str) -> None:
    page = open_pair(look(), f"by=interval&at=7&colour=degree&scale={scale}")
    values = [
        row["degree"]
        for run in (plays[LONG], plays[SHORT])
        for row in run.rows["metrics/peers"]
        if scale == "run" or row["interval"] == run.clock.first + 7
    ]
    legend = page.locator("figure[data-of=degree]")
    expect(legend.locator("[data-low]")).to_have_attribute("data-low", str(min(values)))
    expect(legend.locator("[data-high]")).to_have_attribute("data-high", str(max(values)))


def test_peer_of_one_name_stands_out_in_both_runs(look: Look, plays: Plays) -> None:
    looking, runs = look(), [plays[LONG], plays[SHORT]]
    page = open_pair(looking, "by=interval&at=7")
    ticks = [tick_at(run, 7, "interval") for run in runs]
    there = set.intersection(*(run.present(tick) for run, tick in zip(runs, ticks, strict=True)))
    peer = min(there)
    page.get_by_label("Find a peer").fill(runs[0].peers[peer])
    page.keyboard.press("Enter")
    near = [
        len({b if a == peer else a for a, b in run.pairs(tick) if peer in (a, b)})
        for run, tick in zip(runs, ticks, strict=True)
    ]
    expect(page.get_by_label("What is shown").locator("dl dd")).to_have_text(
        [str(count) for count in near]
    )
    expect(page.locator(".pinned:visible")).to_have_count(2)
    page.get_by_label("Time of both runs").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".pinned:visible")).to_have_count(0)


@pytest.mark.long
def test_topic_leaves_its_part_in_both_runs(look: Look, plays: Plays) -> None:
    looking = look()
    page = open_pair(looking, "by=interval&at=7")
    page.get_by_label("Show a topic").fill("sport")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="All topics")).to_be_visible()
    looking.wait()
    shown = [found["peers"] for found in page.evaluate("() => explorer.counts")]
    runs = [plays[LONG], plays[SHORT]]
    assert shown == [
        len(run.subscribers(run.topics.index("sport"), tick_at(run, 7, "interval"))) for run in runs
    ]


@pytest.mark.long
def test_camera_of_one_side_moves_the_other(look: Look, plays: Plays) -> None:
    page = open_pair(look(), "by=interval&at=7&layout=circle")
    cameras = "() => explorer.scenes.map(({ picture }) => picture.camera)"
    assert page.evaluate(cameras) == [None, None]
    page.get_by_label(f"Right: {SHORT}").get_by_role("button", name="Zoom in").click()
    left, right = page.evaluate(cameras)
    assert left == right
    assert left["zoom"] > 0
    page.get_by_label(f"Left: {LONG}").get_by_role("button", name="Fit the picture").click()
    assert page.evaluate(cameras) == [None, None]


def test_address_holds_the_pair_for_reload_and_back(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open(LONG, screen="messages")
    page.get_by_role("link", name="Compare").click()
    page.get_by_role("link", name=SHORT, exact=True).click()
    looking.wait()
    page.get_by_label("Colour").select_option("betweenness")
    page.reload()
    looking.wait()
    expect(page.get_by_label("Colour")).to_have_value("betweenness")
    page.get_by_label("Right", exact=True).select_option("hostile")
    expect(page.get_by_label("Right: hostile")).to_be_visible()
    page.go_back()
    expect(page.get_by_label(f"Right: {SHORT}")).to_be_visible()


def test_clock_goes_to_the_next_change_of_either_run(look: Look, plays: Plays) -> None:
    page = open_pair(look(), "by=interval&at=3")
    runs, slider = [plays[LONG], plays[SHORT]], page.get_by_label("Time of both runs")
    changes = {
        (row[end] // run.clock.ticks_per_interval) - run.clock.first
        for run in runs
        for name in ("links", "presence")
        for row in run.rows[name]
        for end in ("valid_from", "valid_to")
        # One layer of two begins or ends: nothing changes in what is shown.
        if (run.present(row[end]), run.pairs(row[end]))
        != (run.present(row[end] - 1), run.pairs(row[end] - 1))
    }
    for key, place in (
        ("Shift+ArrowRight", min(change for change in changes if change > 3)),
        ("End", 39),
        ("Shift+ArrowLeft", max(change for change in changes if change < 39)),
    ):
        page.keyboard.press(key)
        expect(slider).to_have_value(str(place))


def test_hostile_names_are_text_in_both_sides(look: Look, plays: Plays) -> None:
    looking = look()
    page = open_pair(looking, "at=3", "hostile", LONG)
    expect(page.get_by_text("By interval: the length")).to_be_visible()  # of one is unknown
    for name in TAKEN[::9]:
        looking.state(peer=name, of=name)
        heading = page.get_by_label("What is shown").locator("h2.peer")
        assert heading.evaluate("one => one.textContent") == name
        expect(page.get_by_label(f"Right: {LONG}")).to_contain_text("has no such topic")
    assert page.locator("script").count() == 2


def test_unknown_partner_is_said_with_a_way_out(look: Look, plays: Plays) -> None:
    looking = look()
    looking.page.goto(f"{looking.address}#/run/{LONG}/compare?with=nosuch")
    expect(looking.page.get_by_role("alert")).to_contain_text("nosuch")
    expect(looking.page.get_by_role("link", name="All runs")).to_be_visible()
    looking.complaints = [text for text in looking.complaints if "404" not in text]


@pytest.mark.long
@pytest.mark.parametrize("width", [1024, 390])
def test_narrow_page_has_curves_and_figures(look: Look, plays: Plays, width: int) -> None:
    page = open_pair(look(viewport={"width": width, "height": 844}), "by=interval&at=7")
    expect(page.locator(".figures tbody tr").first).to_be_visible()
    expect(page.locator(".curves svg path.line").first).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
