"""The pages of a peer, a topic and a link in a real Chromium: they show what the tables have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.integration.explorer.conftest import Looking
from tests.support.few import few
from tests.support.hostile import TAKEN
from tests.support.played import Played

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]
LINKS, SUBSCRIBERS = "Links to and from its neighbours", "Subscribers"


def section(page: Page, label: str) -> Locator:
    """A part of the page, without the box in it that scrolls."""
    return page.locator(f"section[aria-label='{label}']")


def texts(page: Page, label: str, column: str) -> list[str]:
    """The full names in a column."""
    cells = section(page, label).locator(f"td[data-of={column}] a")
    return list(cells.evaluate_all("all => all.map(one => one.title)"))


def test_peer_has_its_rows_and_values_at_all_times_and_at_one(look: Look, plays: Plays) -> None:
    run, looking = plays["intervals"], look()
    page = looking.open("intervals", "peer=3", "peer")
    expect(page.get_by_role("heading", level=1)).to_have_text("peer-3")
    own = [row for row in run.rows["links"] if 3 in (row["src"], row["dst"])]
    expect(section(page, LINKS).get_by_role("heading")).to_have_text(f"{LINKS} ({len(own)})")
    degrees = {r["interval"]: r["degree"] for r in run.rows["metrics/peers"] if r["peer"] == 3}
    middle = sorted(degrees)[len(degrees) // 2]
    page.get_by_label("At the end of interval").fill(str(middle))
    page.get_by_label("At the end of interval").press("Enter")
    looking.wait()
    expect(page.locator("[data-of=degree] strong")).to_have_text(str(degrees[middle]))
    near = [row for row in run.holding("links", run.clock.sampling_tick(middle)) if row in own]
    ends = list(zip(*(texts(page, LINKS, of) for of in ("src_name", "dst_name")), strict=True))
    assert sorted(ends) == sorted((run.peers[r["src"]], run.peers[r["dst"]]) for r in near)
    page.get_by_role("button", name="All intervals").click()
    looking.wait()
    expect(section(page, LINKS).get_by_role("heading")).to_have_text(f"{LINKS} ({len(own)})")


def test_topic_has_its_subscribers_and_messages(look: Look, plays: Plays) -> None:
    run, looking = plays["intervals"], look()
    page = looking.open("intervals", "topic=1&interval=20", "topic")
    expect(page.get_by_role("heading", level=1)).to_have_text(run.topics[1])
    among = run.subscribers(1, run.clock.sampling_tick(20))
    assert sorted(texts(page, SUBSCRIBERS, "peer_name")) == sorted(run.peers[p] for p in among)
    page.get_by_role("button", name="All intervals").click()
    looking.wait()
    names = [row["name"] for row in run.rows["publications"] if row["topic"] == 1]
    assert texts(page, "Messages", "name") == names


def test_link_has_its_periods_and_copies_in_both_directions(look: Look, plays: Plays) -> None:
    run = plays["hours"]
    src, dst = next((r["previous_hop"], r["peer"]) for r in run.rows["receptions"])
    page = look().open("hours", f"src={dst}&dst={src}", "link")
    periods = [r for r in run.rows["links"] if {r["src"], r["dst"]} == {src, dst}]
    shown = list(
        zip(*(texts(page, "Validity periods", of) for of in ("src_name", "dst_name")), strict=True)
    )
    assert sorted(shown) == sorted((run.peers[r["src"]], run.peers[r["dst"]]) for r in periods)
    copies = [r for r in run.rows["receptions"] if {r["previous_hop"], r["peer"]} == {src, dst}]
    expect(section(page, "Copies of messages that came over it").locator("tbody tr")).to_have_count(
        len(copies)
    )
    counted = page.evaluate(
        "async (ends) => [...(await explorer.run.curvesOf('link', ends, ['copies']))[0]]",
        {"src": src, "dst": dst},
    )
    intervals = range(run.clock.first, run.clock.last + 1)
    assert counted == [sum(r["interval"] == of for r in copies) for of in intervals]


def test_pages_are_reached_from_everywhere_and_left_by_back(look: Look, plays: Plays) -> None:
    run, looking = plays["hours"], look()
    page = looking.open("hours", "sel=3")
    heading = page.get_by_role("heading", level=1)
    page.get_by_role("link", name="Its page").click()
    expect(heading).to_have_text("peer-3")
    looking.wait()
    section(page, LINKS).get_by_role("link", name="Link between").first.click()
    expect(heading).to_contain_text("↔")
    looking.wait()
    page.get_by_text("Find", exact=True).click()
    page.get_by_label("Page of a topic").fill("news")
    page.keyboard.press("Enter")
    expect(heading).to_have_text("news")
    looking.wait()
    page.get_by_role("link", name="Messages").first.click()
    looking.wait()
    page.locator("tbody th a").first.click()
    looking.wait()
    publisher = run.peers[run.rows["publications"][0]["publisher"]]
    page.get_by_role("link", name=publisher, exact=True).click()
    expect(heading).to_have_text(publisher)
    for _ in range(3):
        page.go_back()
    expect(heading).to_have_text("news")
    page.go_forward()
    expect(heading).to_contain_text("Messages of")


@pytest.mark.parametrize("step", few([1, 7], [7]))
def test_hostile_names_are_text_on_pages(look: Look, plays: Plays, step: int) -> None:
    looking = look(viewport={"width": 390, "height": 844})
    page = looking.open("hostile", "peer=0", "peer")
    heading = page.get_by_role("heading", level=1)
    for place in range(0, len(TAKEN), step):
        looking.state(peer=place)
        assert heading.evaluate("one => one.textContent") == TAKEN[place]
    links = plays["hostile"].rows["links"][:40:20]
    page = looking.open("hostile", "topic=0", "topic")
    for place in range(3, len(TAKEN), 2 * step):
        looking.state(topic=place)
        assert heading.evaluate("one => one.textContent") == TAKEN[place]
    page = looking.open("hostile", "", "link")
    for link in links:
        looking.state(src=link["src"], dst=link["dst"])
        both = f"{TAKEN[link['src']]} ↔ {TAKEN[link['dst']]}"
        assert heading.evaluate("one => one.textContent") == both
    assert page.locator("script").count() == 2
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_number_of_nothing_is_said(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open("intervals", "peer=99", "peer")
    expect(page.get_by_role("alert")).to_contain_text("no such peer")
    looking.state(peer=2)
    expect(page.get_by_role("heading", level=1)).to_have_text("peer-2")
