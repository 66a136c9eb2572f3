"""The axis of the overlay's clock in a real Chromium: what begins and ends in each interval, and a
part of the time alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.integration.explorer.conftest import Looking
from tests.integration.explorer.test_page import moments
from tests.support.few import few
from tests.support.played import Played

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]


def changes_in(run: Played, tick: int, name: str, **of: str) -> tuple[int, int]:
    """The periods of a table that begin, and that end, in the interval of a tick. What is there at
    the first tick does not begin then.
    """
    interval = run.clock.interval_of(tick)
    rows = [row for row in run.rows[name] if of.items() <= row.items()]
    begins, ends = (
        sum(
            run.first < row[end] <= run.last and run.clock.interval_of(row[end]) == interval
            for row in rows
        )
        for end in ("valid_from", "valid_to")
    )
    return begins, ends


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["hours"]))
def test_strip_has_what_begins_and_ends_in_the_interval(
    look: Look, plays: Plays, name: str
) -> None:
    run, looking = plays[name], look()
    page = looking.open(name, "layer=ring")
    seen = set()
    for tick in [run.first, *moments(run, 29, 10)]:
        looking.state(t=tick)
        lanes = page.locator(".strip .row strong").all_inner_texts()
        expected = [
            changes_in(run, tick, "presence"),
            changes_in(run, tick, "links", layer="ring"),
        ]
        assert lanes == [f"+{begins} −{ends}" for begins, ends in expected], tick
        seen.add(expected[1])
    assert len(seen) > 2


def test_strip_leads_to_the_time_that_is_clicked(look: Look, plays: Plays) -> None:
    page = look().open("intervals", "t=20")
    lane = page.locator(".strip .track").first
    box = lane.bounding_box()
    assert box is not None
    lane.click(position={"x": box["width"] - 1, "y": 5})
    expect(page.get_by_label("Time", exact=True)).to_have_value("44")


def axis(page: Page) -> tuple[int, int]:
    """The first and the last tick of the slider."""
    slider = page.get_by_label("Time", exact=True)
    ends = [slider.get_attribute(name) for name in ("min", "max")]
    return int(ends[0] or ""), int(ends[1] or "")


def expect_axis(page: Page, first: int, last: int) -> None:
    """Wait until the slider has these ends."""
    slider = page.get_by_label("Time", exact=True)
    expect(slider).to_have_attribute("min", str(first))
    expect(slider).to_have_attribute("max", str(last))


def test_axis_shows_a_part_of_the_time(look: Look, plays: Plays) -> None:
    run, looking = plays["intervals"], look()
    page = looking.open("intervals", "t=20")
    page.get_by_role("button", name="Show less of the time").press("Enter")
    page.get_by_role("button", name="Show less of the time").click()
    first, last = axis(page)
    assert run.first < first <= 20 <= last < run.last
    expect(page).to_have_url(re.compile(f"from={first}&until={last}"))
    for track in (page.locator(".strip .track").first, page.locator(".curves .track").first):
        box = track.bounding_box()
        assert box is not None
        track.click(position={"x": 0, "y": 5})
        expect(page.get_by_label("Time", exact=True)).to_have_value(str(first))
        track.click(position={"x": box["width"] - 1, "y": 5})
        expect(page.get_by_label("Time", exact=True)).to_have_value(str(last))
    page.keyboard.press("ArrowRight")  # the axis moves on
    expect_axis(page, last + 1, 2 * last + 1 - first)
    page.keyboard.press("Home")
    expect_axis(page, run.first, run.first + last - first)
    # The address follows a move within 150 ms.
    expect(page).to_have_url(re.compile(f"from={run.first}&until={run.first + last - first}"))
    page.reload()
    looking.wait()
    expect_axis(page, run.first, run.first + last - first)
    page.get_by_role("button", name="Show all of the time").click()
    expect_axis(page, run.first, run.last)
    page.get_by_role("button", name="Show more of the time").click()
    expect_axis(page, run.first, run.last)


def test_curve_is_drawn_where_the_axis_has_its_intervals(look: Look, plays: Plays) -> None:
    """A part of the time shows the same values, at other places."""
    run, looking = plays["intervals"], look()
    page = looking.open("intervals", "t=20&from=15&until=25&curves=links")
    curve = page.locator(".curves svg")
    expect(curve).to_have_count(1)
    values = [row["links"] for row in run.rows["metrics/overlay"]]
    low, high = min(values), max(values)
    points = re.findall(r"[ML](\d+) ([\d.]+)", curve.locator("path").get_attribute("d") or "")
    place_of = "({ style }) => [style.left, style.width].map(parseFloat)"
    start, width = curve.evaluate(place_of)
    length = max(int(x) for x, _ in points)
    heights = {}
    for x, y in points:
        place = (start + width * int(x) / length) / 100  # of the axis
        heights[round(15 + 10 * place)] = float(y)
    for interval in range(15, 26):
        value = values[interval - run.clock.first]
        assert heights[interval] == pytest.approx(94 - 88 * (value - low) / (high - low), abs=0.01)


def test_links_of_the_selected_peer_have_heads_at_their_ends(look: Look, plays: Plays) -> None:
    run, looking, tick, peer = plays["intervals"], look(), 20, 3
    looking.open("intervals", f"t={tick}&sel={peer}")
    heads = looking.page.evaluate(
        """() => explorer.picture._view._deck.props.layers
        .find(({ id }) => id === "heads").props.data.map(({ to }) => to)"""
    )
    assert sorted(heads) == sorted(b for a, b in run.pairs(tick) if peer in (a, b))
