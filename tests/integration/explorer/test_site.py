"""The site of the docs in a real browser, from the disk and without a network."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from vizpub.model.version import __version__

ROOT = Path(__file__).parents[3]
WIDTHS = [360, 800, 1440]
"""A telephone, a tablet, and a screen that has room for the navigation."""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
MADE_BY_SPHINX = {"search.html", "genindex.html"}

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, export: Callable[..., Path]) -> Path:
    """The site with an exported run, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    (played := folder / "beside/docs/played.html").parent.mkdir(parents=True)
    played.write_bytes(export("intervals").read_bytes())
    switches = ["-qEW", "-c", "docs", "-d", str(folder / "read")]
    beside = f"html_extra_path={played.parents[1]}"
    command = [sys.executable, "-m", "sphinx", *switches, "-D", beside, str(ROOT)]
    subprocess.run([*command, str(folder / "site")], cwd=ROOT, check=True)
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> list[Path]:
    found = sorted({*site.rglob("*.html")} - {site / "index.html", site / "docs/played.html"})
    assert len(found) > 40
    return found


@pytest.fixture(scope="module", params=WIDTHS)
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """A page of a width, in a browser that reaches no other machine."""
    viewport = {"width": request.param, "height": 800}
    with browser.new_context(viewport=viewport, offline=True) as context:
        yield context.new_page()


def test_pages_fit_the_width_and_ask_no_other_machine(page: Page, pages: list[Path]) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    too_wide = []
    for path in pages:
        page.goto(path.as_uri())
        if page.evaluate(OVERFLOW) > 0:
            too_wide.append(path.name)
    assert too_wide == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_navigation_leads_to_every_page(page: Page, pages: list[Path], site: Path) -> None:
    page.goto((start := site / "docs/index.html").as_uri())
    links = page.locator(".sidebar-tree a.reference.internal")
    hrefs = links.evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    reached = {os.path.normpath(start.parent / href) for href in hrefs if href != "#"}
    assert reached | {str(start)} == {str(p) for p in pages if p.name not in MADE_BY_SPHINX}
    opener = page.locator("label.nav-overlay-icon")
    if opener.is_visible():
        opener.click()
    links.filter(has_text=re.compile(r"^\s*Glossary\s*$")).click()
    expect(page.locator("h1")).to_contain_text("Glossary")


def test_search_finds_words_of_pages_from_the_disk(page: Page, site: Path) -> None:
    page.goto(f"{(site / 'search.html').as_uri()}?q=hit+ratio")
    link = page.locator("#search-results a", has_text="Metrics: what each number means")
    expect(link).to_have_count(1)
    link.click()
    expect(page.locator("h1")).to_contain_text("Metrics")


def test_exported_run_plays_in_the_gallery(page: Page, site: Path) -> None:
    page.goto((site / "docs/gallery.html").as_uri())
    page.get_by_title("A run that plays").scroll_into_view_if_needed()
    run = page.frame_locator("iframe")
    expect(run.get_by_role("heading", level=1)).to_have_text("intervals")
    (frame,) = page.frames[1:]
    frame.wait_for_function("() => globalThis.explorer")
    run.get_by_role("button", name="Play", exact=True).click()
    frame.wait_for_function("() => (globalThis.seen ??= new Set()).add(explorer.state.t).size > 3")


def test_versions_that_lie_beside_each_other_can_be_chosen(
    site: Path, browser: Browser, tmp_path: Path
) -> None:
    publish = runpy.run_path(str(ROOT / "docs/versions.py"))["publish"]
    for version in (__version__, "99.0"):
        publish(site, tmp_path, version)
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((site / "docs/gallery.html").as_uri())
        expect(page.get_by_label("Version")).to_be_hidden()
        page.goto((tmp_path / __version__ / "docs/gallery.html").as_uri())
        choice = page.get_by_label("Version")
        expect(choice.locator("option:checked")).to_have_text(__version__)
        choice.select_option("99.0")
        page.wait_for_url("**/99.0/docs/index.html")
