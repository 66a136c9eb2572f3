"""Saved views: an address with a name and a note, in the browser and in files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.integration.explorer.conftest import Looking
from tests.integration.explorer.test_access import found as broken_rules
from tests.support.few import few
from tests.support.hostile import TAKEN
from tests.support.played import Played
from vizpub.explorer.offline.embedding import ExportPart
from vizpub.explorer.offline.exported import html_page
from vizpub.explorer.offline.views import read_views
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import open_run

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]


@pytest.fixture(autouse=True)
def nothing_kept(shared: Looking) -> Iterator[None]:
    """The next test finds no views, on a page that is loaded anew."""
    yield
    shared.leave()
    shared.page.goto("about:blank")


def menu(page: Page) -> Locator:
    """The menu of the views, open."""
    if not page.locator("details[open] .views").count():  # empty until the views are fetched
        page.get_by_text("Views", exact=True).click()
    expect(page.locator(".views").get_by_role("textbox").first).to_be_visible()
    return page.locator(".views")


def save(page: Page, name: str, note: str) -> None:
    fields = menu(page).get_by_role("group", name="Save what is shown")
    fields.get_by_label("Name").fill(name)
    fields.get_by_label("Note").fill(note)
    fields.get_by_role("button", name="Save").click()
    expect(menu(page).get_by_role("link", name=name, exact=True)).to_be_visible()


def names(page: Page) -> list[str]:
    return menu(page).get_by_role("link").all_text_contents()


def test_view_leads_back_and_is_kept(look: Look, plays: dict[str, Played]) -> None:
    looking = look()
    page = looking.open("intervals", "t=12&colour=betweenness&sel=3")
    save(page, "heals", "after the crash\nof peer-3")
    looking.page.goto("about:blank")  # the page is loaded anew
    looking.open("intervals", "t=30")
    expect(menu(page).locator(".note")).to_have_text("after the crash\nof peer-3")
    menu(page).get_by_role("link", name="heals").click()
    page.wait_for_function("() => explorer.state.t === 12 && explorer.state.sel === 3")
    assert page.evaluate("() => explorer.state.colour") == "betweenness"
    looking.open("hours")  # another run has its own
    expect(menu(page)).to_contain_text("No views")


def test_views_are_changed_by_keyboard(look: Look, plays: dict[str, Played]) -> None:
    looking = look()
    page = looking.open("intervals", "t=12&sel=3")
    page.get_by_text("Views", exact=True).focus()
    page.keyboard.press("Enter")
    expect(menu(page).get_by_role("textbox").first).to_be_visible()  # the views are fetched first
    page.keyboard.press("Tab")
    page.keyboard.type("one")
    page.keyboard.press("Enter")
    link = menu(page).get_by_role("link", name="one", exact=True)
    expect(link).to_be_visible()
    menu(page).get_by_role("button", name="Edit: one").press("Enter")
    page.keyboard.press("End")
    page.keyboard.type(" and two")
    page.keyboard.press("Enter")
    expect(menu(page).get_by_role("link")).to_have_text(["one and two"])
    menu(page).get_by_role("button", name="Remove: one and two").press("Enter")
    expect(menu(page)).to_contain_text("No views")
    page.keyboard.press("Escape")
    expect(page.locator(".views")).to_be_hidden()
    assert page.evaluate("() => explorer.state.sel") == 3  # Escape closed the menu alone


@pytest.mark.long
def test_views_go_from_browser_to_browser(
    look: Look, plays: dict[str, Played], tmp_path: Path
) -> None:
    looking = look()
    page = looking.open("intervals", "t=12")
    save(page, "one", "")
    save(page, "two", "a note")
    with page.expect_download() as download:
        menu(page).get_by_role("button", name="Export").click()
    file = tmp_path / "views.json"
    download.value.save_as(file)
    told = json.loads(file.read_text("utf-8"))["views"]
    assert [view["name"] for view in told] == ["one", "two"]
    assert told[0]["address"].startswith("overlay?t=12")

    page.evaluate("() => localStorage.clear()")  # as another browser has it
    page.reload()
    looking.wait()
    for count in ("2 views", "0 views"):  # those that are there already are not doubled
        menu(page).locator("input[type=file]").set_input_files(file)
        expect(page.locator(".menu [role=status]").first).to_contain_text(count)
    assert names(page) == ["one", "two"]
    wrong = look().open("hours", screen="messages")
    menu(wrong).locator("input[type=file]").set_input_files(file)
    expect(wrong.locator(".menu [role=status]").first).to_contain_text("intervals")
    assert names(wrong) == []


def test_views_are_in_an_exported_file(
    look_at: Look, stage: Path, plays: dict[str, Played], tmp_path: Path
) -> None:
    file, exported = tmp_path / "views.json", tmp_path / "intervals.html"
    views = [
        {"name": name, "note": "", "address": f"messages?topic={topic}"}
        for topic, name in enumerate(("one", "two"))
    ]
    file.write_text(json.dumps({"run": "intervals", "views": views}), "utf-8")
    run = NamedRun(open_run(stage, "intervals"))
    part = ExportPart((12, 13), layers=("ring",))
    exported.write_text(html_page(run, part, views=read_views(file, "intervals")), "utf-8")
    page = look_at(exported).open("intervals", screen="tables")
    assert names(page) == ["one", "two"]
    menu(page).get_by_role("link", name="two").click()
    page.wait_for_function("() => explorer?.state.topic === 1")
    assert menu(page).get_by_role("button", name="Remove").count() == 0


def test_hostile_views_are_text(look: Look, plays: dict[str, Played], tmp_path: Path) -> None:
    file = tmp_path / "views.json"
    addresses = ["overlay", "javascript:alert(1)", "../../x?y#z"]
    views = [
        {"name": text[:200], "note": text[:2000], "address": addresses[i % 3]}
        for i, text in enumerate(one for one in TAKEN if one.strip())
    ]
    file.write_text(json.dumps({"run": "intervals", "views": views}), "utf-8")
    looking = look()
    page = looking.open("intervals")
    menu(page).locator("input[type=file]").set_input_files(file)
    notes = menu(page).locator(".note")
    expect(notes).to_have_count(len(views))
    assert notes.evaluate_all("all => all.map(one => one.textContent)") == [
        view["note"] for view in views
    ]
    links = menu(page).get_by_role("link").evaluate_all("all => all.map(one => one.href)")
    assert all(link.startswith(f"{looking.address}#/run/intervals/") for link in links)
    for number, content in enumerate(("no JSON", "[]", '{"run": "intervals", "views": [3]}')):
        file = tmp_path / f"{number}.json"  # the page may still read the one before
        file.write_text(content, "utf-8")
        menu(page).locator("input[type=file]").set_input_files(file)
        expect(page.locator(".menu [role=status]").first).to_contain_text("no file of views")


@pytest.mark.parametrize("scheme", few(["light", "dark"], ["light"]))
def test_menu_is_open_to_all(look: Look, plays: dict[str, Played], scheme: str) -> None:
    looking = look(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    page = looking.open("intervals", "t=12")
    save(page, "one", "a note")
    menu(page).get_by_role("button", name="Edit: one").click()
    page.locator(".save summary").press("Enter")
    assert broken_rules(looking) == []
