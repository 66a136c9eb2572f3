"""Several peers chosen at once in a real Chromium: by a shape, or without a pointer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.integration.explorer.conftest import Looking
from tests.support.played import Played

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]
TICK = 20


@pytest.fixture
def looking(look: Look, plays: Plays) -> Looking:
    looking = look()
    looking.open("intervals", f"t={TICK}&layout=circle")
    return looking


def several(page: Page) -> Locator:
    return page.get_by_role("group", name="Several peers")


def drag_left_half(page: Page) -> set[int]:
    """Draw a shape around the left half of the picture. Returns the peers that are in it."""
    box = page.locator(".canvas").bounding_box()
    assert box is not None
    middle = box["width"] / 2
    corners = [(1, 1), (middle, 1), (middle, box["height"] - 2), (1, box["height"] - 2)]
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    page.mouse.down()
    for x, y in corners:
        page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.up()
    pixels = page.evaluate(
        "() => [...explorer.shown.peers].map((peer) => [peer, explorer.picture.pixel(peer)[0]])"
    )
    return {peer for peer, x in pixels if x < middle}


@pytest.mark.parametrize("by", ["Shift", "button"])
def test_peers_in_a_shape_are_chosen_and_shown_alone(looking: Looking, by: str) -> None:
    page = looking.page
    before = looking.said()
    if by == "Shift":
        page.keyboard.down("Shift")
    else:
        page.get_by_role("button", name="Choose peers by a shape").click()
    within = drag_left_half(page)
    page.keyboard.up("Shift")
    assert 2 < len(within) < before[0]
    expect(several(page)).to_contain_text(f"{len(within)} peers chosen")
    assert page.evaluate("() => explorer.picture.camera") is None  # the picture stays where it is
    several(page).get_by_role("button", name="Only these").click()
    looking.wait()
    assert set(page.evaluate("() => [...explorer.shown.peers]")) == within
    assert looking.counted()[0] == len(within)
    page.go_back()
    looking.wait()
    assert looking.said() == before


def test_peers_are_chosen_by_keyboard(looking: Looking, plays: Plays) -> None:
    page, run = looking.page, plays["intervals"]
    pairs = run.pairs(TICK)
    peer = min(src for src, _ in pairs)
    looking.state(sel=peer)
    near = {b if a == peer else a for a, b in pairs if peer in (a, b)}
    several(page).get_by_role("button", name="Neighbours").press("Enter")
    expect(several(page)).to_contain_text(f"{len(near)} peers chosen")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # pins them
    looking.wait()
    assert set(page.evaluate("() => explorer.state.pins")) == near
    several(page).get_by_role("button", name="All shown").press("Enter")
    present = run.present(TICK)
    expect(several(page)).to_contain_text(f"{len(present)} peers chosen")
    several(page).get_by_role("button", name="Hide").press("Enter")
    looking.wait()
    assert looking.said() == (0, 0)
    assert page.evaluate("() => explorer.state.pins") == []  # nobody is both
    page.get_by_role("button", name="Hidden: remove all").press("Enter")
    looking.wait()
    assert looking.said()[0] == len(present)


def test_more_peers_than_the_address_holds_are_refused(looking: Looking) -> None:
    page = looking.page
    page.evaluate("() => explorer._setChosen([...Array(201).keys()])")
    expect(several(page)).to_contain_text("at most 200")
    for name in ("Only these", "Pin", "Hide"):
        expect(several(page).get_by_role("button", name=name)).to_be_disabled()
    several(page).get_by_role("button", name="None").click()
    expect(several(page)).to_contain_text("Choose several")
