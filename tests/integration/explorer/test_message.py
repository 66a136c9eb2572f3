"""The way of a message in a real Chromium: what the page shows equals the tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.integration.explorer.conftest import Looking
from tests.support.explored import Explorer, exploring
from tests.support.hostile import TAKEN
from tests.support.ingested import workspace_of
from tests.support.played import Played
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]
Row = dict[str, Any]


class Truth:
    """What the tables say of one message."""

    def __init__(self, message: int, read: Callable[[str], list[Row]]) -> None:
        def of(name: str) -> list[Row]:
            return [row for row in read(name) if row["message"] == message]

        (self.published,) = of("publications")
        (self.figures,) = of("metrics/messages")
        self.copies, self.refused = of("receptions"), of("rejections")
        self.missed = {row["peer"] for row in of("missed")}

    def kinds(self) -> Counter[tuple[int, int, str]]:
        """Copies by from, to, and what they were."""
        named = [(row, "first" if row["first"] else "duplicate") for row in self.copies]
        told = [*named, *((row, "refused") for row in self.refused)]
        return Counter((row["previous_hop"], row["peer"], kind) for row, kind in told)

    def after(self, row: Row) -> int:
        found: int = row["time_us"] - self.published["time_us"]
        return found

    def left(self, row: Row) -> int:
        """When its sender had the copy that it passed on; of a refusal, its first copy."""
        came = [copy for copy in self.copies if copy["peer"] == row["previous_hop"]]
        passed = [
            copy
            for copy in came
            if (copy["hop"] + 1 == row["hop"] if "hop" in row else copy["first"])
        ]
        return min(map(self.after, passed), default=0)

    def reached(self, share: float) -> float | None:
        """When so many of the eligible peers had it, in µs; null = never."""
        had = [row for row in self.copies if row["first"] and row["eligible"]]
        times = sorted(map(self.after, had))
        return next(
            (at for count, at in enumerate(times, 1) if count >= share * self.figures["eligible"]),
            None,
        )


@pytest.fixture(scope="module")
def of_gossipsub(gossipsub: StoredRun) -> Iterator[Explorer]:
    with exploring(workspace_of(gossipsub)) as server:
        yield server


def kinds(page: Page) -> Counter[tuple[int, int, str]]:
    """Those of the table on the page."""
    rows = page.locator(".copies tbody tr").evaluate_all(
        """rows => rows.map(row => [
            ...[...row.querySelectorAll("[data-peer]")].map(peer => Number(peer.dataset.peer)),
            row.lastElementChild.textContent.split(/[:,]/)[0]])"""
    )
    return Counter(map(tuple, rows))


def counts(looking: Looking) -> Row:
    found: Row = looking.page.evaluate("() => explorer.counts")
    return found


def milliseconds(text: str) -> float:
    number, unit = text.split(" ")
    return float(number) * {"µs": 0.001, "ms": 1, "s": 1000}[unit]


def values(part: Locator) -> dict[str, str]:
    """Words and values of a list of the page."""
    pairs = part.locator("div").evaluate_all(
        "all => all.map(one => [...one.children].map(of => of.textContent))"
    )
    return dict(pairs)


def interesting(run: StoredRun) -> list[int]:
    """A message that all got, one that some missed, and one that was refused."""
    rows = run.read("metrics/messages").to_pylist()
    tests: list[Callable[[Row], bool]] = [
        lambda row: row["hit_ratio"] == 1 and row["duplicates"] > 0,
        lambda row: 0 < row["hit_ratio"] < 1,
        lambda row: row["rejections"] > 0,
    ]
    return [next(row["message"] for row in rows if test(row)) for test in tests]


def test_message_of_gossipsub_is_that_of_the_tables(
    look: Look, gossipsub: StoredRun, of_gossipsub: Explorer
) -> None:
    looking = look(of=of_gossipsub)
    for message in interesting(gossipsub):
        truth = Truth(message, lambda name: gossipsub.read(name).to_pylist())
        page = looking.open("gossipsub", f"m={message}&view=table", "message")
        assert kinds(page) == truth.kinds()
        missed = page.locator(".missed tbody tr")
        expect(missed).to_have_count(len(truth.missed))
        peers = missed.locator("[data-peer]").evaluate_all(
            "all => all.map(one => Number(one.dataset.peer))"
        )
        assert set(peers) == truth.missed
        told = counts(looking)
        assert told["duplicate"] == truth.figures["duplicates"]
        assert told["relays"] == sum(
            row["first"] and row["subscribed"] is False for row in truth.copies
        )
        assert told["refused"] == truth.figures["rejections"]
        assert told["delivered"] == truth.figures["delivered"]
        marks = values(page.locator(".marks-list"))
        for share, text in zip((0.5, 0.9, 0.99), marks.values(), strict=True):
            at = truth.reached(share)
            if at is None:
                assert not re.search(r"\d", text)
            else:
                assert milliseconds(text) == pytest.approx(at / 1000, rel=1e-3)


def test_replay_has_what_had_arrived_by_then(look: Look, plays: Plays) -> None:
    rows = plays["hours"].rows
    looking = look()
    message = max(range(12), key=lambda of: rows["metrics/messages"][of]["receptions"])
    truth = Truth(message, rows.__getitem__)
    looking.open("hours", f"m={message}", "message")
    moments = sorted(map(truth.after, truth.copies))
    for at in (0, moments[0] - 1, moments[0], moments[len(moments) // 2], moments[-1]):
        looking.state(at=at)
        told, by = counts(looking), [row for row in truth.copies if truth.after(row) <= at]
        assert told["first"] == sum(row["first"] for row in by)
        assert told["duplicate"] == sum(not row["first"] for row in by)
        assert told["delivered"] == sum(row["first"] and row["eligible"] for row in by)
        sent = [row for row in [*truth.copies, *truth.refused] if truth.left(row) <= at]
        assert told["flying"] == sum(truth.after(row) > at for row in sent)


def test_message_without_times_plays_by_hop(look: Look, plays: Plays) -> None:
    rows = plays["intervals"].rows
    looking = look()
    message = max(range(12), key=lambda of: rows["metrics/messages"][of]["receptions"])
    truth = Truth(message, rows.__getitem__)
    page = looking.open("intervals", f"m={message}&layout=race&view=table", "message")
    assert kinds(page) == truth.kinds()
    expect(page.get_by_label("Layout").locator("option")).to_have_count(1)
    page.keyboard.press("Home")
    for hop in range(1, 4):
        page.keyboard.press("ArrowRight")
        told = counts(looking)
        assert told["first"] == sum(row["first"] and row["hop"] <= hop for row in truth.copies)


def test_list_sorts_and_narrows_as_the_tables(look: Look, plays: Plays) -> None:
    rows = plays["hours"].rows
    looking = look()
    page = looking.open("hours", "", "messages")
    page.get_by_role("button", name="Duplicates").click()
    looking.wait()
    shown = [int(text) for text in page.locator("[data-of=duplicates]").all_inner_texts()]
    assert shown == sorted((row["duplicates"] for row in rows["metrics/messages"]), reverse=True)
    page.get_by_label("Of a topic").fill("news")
    page.keyboard.press("Enter")
    of_it = [row for row in rows["publications"] if row["topic"] == 0]
    expect(page.locator("tbody tr")).to_have_count(len(of_it))
    page.get_by_role("button", name="Of any topic").click()
    expect(page.locator("tbody tr")).to_have_count(12)
    expect(page.locator(".chart path.one")).not_to_have_count(0)
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(len(of_it))


def test_ways_lead_from_the_runs_and_the_overlay_to_a_message_and_back(
    look: Look, plays: Plays
) -> None:
    looking = look()
    page = looking.page
    page.goto(looking.address)
    page.locator("tbody tr").filter(has_text="hours").get_by_role("link", name="12").click()
    page.get_by_role("link", name="message 3", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("message 3")
    page.get_by_role("link", name="The overlay at that time").click()
    publisher = plays["hours"].rows["publications"][3]["publisher"]
    side = page.get_by_label("Selected peer")
    expect(side.get_by_role("heading", level=2)).to_have_text(plays["hours"].peers[publisher])
    side.get_by_role("link", name="Its messages").click()
    expect(page.get_by_role("link", name="message 3", exact=True)).to_be_visible()
    page.go_back()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("message 3")


def test_address_with_a_selected_peer_opens(look: Look, plays: Plays) -> None:
    run = plays["hours"]
    publisher = run.rows["publications"][2]["publisher"]
    page = look().open("hours", f"m=2&sel={publisher}", screen="message")
    expect(page.get_by_role("heading", name=run.peers[publisher], exact=True)).to_be_visible()


def test_message_plays_and_goes_by_keys(look: Look, plays: Plays) -> None:
    run = plays["hours"]
    topics = [row["topic"] for row in run.rows["publications"]]
    here, after = next(
        (one, other)
        for one, other in combinations(range(len(topics)), 2)
        if topics[one] == topics[other] and run.rows["metrics/messages"][one]["receptions"] > 5
    )
    page = look().open("hours", f"m={here}&by=hop", "message")
    slider = page.get_by_label("Hops from the publisher")
    page.keyboard.press("Home")
    expect(slider).to_have_value("0")
    page.keyboard.press("Shift+ArrowRight")
    expect(slider).to_have_value("1000")
    page.get_by_label("Speed").select_option("5")
    page.get_by_role("button", name="Play").click()
    expect(slider).to_have_value(slider.get_attribute("max") or "")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"message {after}")
    page.keyboard.press("p")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"message {here}")
    publisher = run.peers[run.rows["publications"][here]["publisher"]]
    page.keyboard.press("/")
    page.keyboard.type(publisher)
    page.keyboard.press("Enter")
    heading = page.get_by_label("Selected peer").get_by_role("heading", level=2)
    expect(heading).to_have_text(publisher)
    page.locator("h1").click()
    page.keyboard.press("Escape")
    expect(heading).not_to_have_text(publisher)
    page.get_by_label("Layout").select_option("race")
    expect(page).to_have_url(re.compile("layout=race"))
    page.go_back()
    expect(page.get_by_label("Layout")).to_have_value("hops")


def test_hostile_names_of_messages_are_text(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open("hostile", "", "messages")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    titles = page.locator("tbody th a").evaluate_all("all => all.map(one => one.title)")
    assert titles == list(TAKEN)
    refused = {row["message"] for row in plays["hostile"].rows["rejections"]}
    for message in (*sorted(refused)[:2], TAKEN.index("</node><script>alert(1)</script>]]>&amp;")):
        looking.open("hostile", f"m={message}&view=table", "message")
        assert page.locator("h1").get_attribute("title") == TAKEN[message]
        page.get_by_text("The same by command and Cypher").click()
    assert page.locator("script").count() == 2
    assert page.locator("main b").count() == 0
    assert dialogs == []


def test_message_without_webgl_is_a_table(
    look: Look, plays: Plays, start: Callable[..., Browser]
) -> None:
    page = look(start("--disable-3d-apis")).open("hours", "m=3", "message")
    expect(page.locator(".status")).to_contain_text("WebGL")
    assert kinds(page) == Truth(3, plays["hours"].rows.__getitem__).kinds()
    expect(page.locator(".coverage svg path.line")).to_be_visible()


@pytest.mark.parametrize("screen", [pytest.param("message", marks=pytest.mark.long), "messages"])
def test_phone_shows_messages_within_its_width(look: Look, plays: Plays, screen: str) -> None:
    query = f"m={len(TAKEN) - 1}" if screen == "message" else ""
    page = look(viewport={"width": 390, "height": 844}).open("hostile", query, screen)
    expect(page.locator("tbody tr").first).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
