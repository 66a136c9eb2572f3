"""The screen Tables in a real Chromium: it shows the rows of the tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.integration.explorer.conftest import Looking
from tests.support.hostile import TAKEN
from tests.support.played import Played

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]


def test_rows_are_sorted_by_a_click_and_filtered(look: Look, plays: Plays) -> None:
    run, looking = plays["intervals"], look()
    page = looking.open("intervals", "t=20")
    page.get_by_role("link", name="Tables").click()
    looking.wait()
    page.get_by_label("Table", exact=True).select_option("metrics/peers")
    page.get_by_role("spinbutton").fill("20")
    page.get_by_role("spinbutton").press("Enter")
    for direction in ("ascending", "descending"):
        looking.wait()
        page.get_by_role("button", name="degree", exact=True).click()
        expect(page.locator(f"th[aria-sort={direction}]")).to_have_text(re.compile("degree"))
    looking.wait()
    shown = page.locator("td[data-of=degree]").all_inner_texts()
    degrees = [row["degree"] for row in run.rows["metrics/peers"] if row["interval"] == 20]
    assert [int(text) for text in shown] == sorted(degrees, reverse=True)


def test_file_has_the_rows_of_the_filter(look: Look, plays: Plays) -> None:
    run = plays["intervals"]
    page = look().open("intervals", "table=links&interval=20", screen="tables")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").click()
    assert waiting.value.suggested_filename == "intervals-links.csv"
    with waiting.value.path().open(encoding="utf-8") as file:
        rows = {(int(row["src"]), int(row["dst"])) for row in csv.DictReader(file)}
    assert rows == run.pairs(run.clock.sampling_tick(20))


def test_name_leads_to_what_it_names(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open("intervals", "table=peers&text=peer-7", screen="tables")
    page.get_by_role("link", name="peer-7").click()
    looking.wait()
    expect(page.get_by_role("heading", level=1)).to_have_text("peer-7")
    page.get_by_role("link", name="Links to and from its neighbours in Tables").click()
    looking.wait()
    run = plays["intervals"]
    own = [row for row in run.rows["links"] if 7 in (row["src"], row["dst"])]
    expect(page.locator("tbody tr")).to_have_count(len(own))


def test_columns_that_are_chosen_stay_in_the_address(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open("intervals", "table=metrics/peers", screen="tables")
    page.locator("main .chooser summary").click()
    page.get_by_label("betweenness", exact=True).uncheck()
    looking.wait()
    page.reload()
    looking.wait()
    expect(page.locator("td[data-of=degree]").first).to_be_visible()
    expect(page.locator("td[data-of=betweenness]")).to_have_count(0)


def test_hostile_names_are_text_in_tables(look: Look, plays: Plays) -> None:
    page = look(viewport={"width": 390, "height": 844}).open(
        "hostile", "table=peers", screen="tables"
    )
    titles = page.locator("td[data-of=name] a").evaluate_all("all => all.map(one => one.title)")
    assert titles == list(TAKEN)
    assert page.locator("script").count() == 2
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
