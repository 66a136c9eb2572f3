"""The site of the docs in a real browser, from the disk and without a network."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from vizpub.model.version import __version__

ROOT = Path(__file__).parents[3]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    switches = ["-qEW", "-c", "docs", "-d", str(folder / "read")]
    command = [sys.executable, "-m", "sphinx", *switches, str(ROOT), str(folder / "site")]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder / "site"


@pytest.mark.parametrize("width", [390, 1024, 1600])
def test_pages_fit_the_width_and_ask_no_other_machine(
    width: int, site: Path, browser: Browser
) -> None:
    asked: list[str] = []
    pages = sorted({*site.rglob("*.html")} - {site / "index.html", site / "docs/played.html"})
    assert len(pages) > 40
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        too_wide = []
        for path in pages:
            page.goto(path.as_uri())
            if page.evaluate(OVERFLOW) > 0:
                too_wide.append(path.name)
    assert too_wide == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("width", [390, 1600])
def test_search_finds_words_of_pages_from_the_disk(
    width: int, site: Path, browser: Browser
) -> None:
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        page = context.new_page()
        page.goto(f"{(site / 'search.html').as_uri()}?q=hit+ratio")
        link = page.locator("#search-results a", has_text="Metrics: what each number means")
        expect(link).to_have_count(1)
        link.click()
        expect(page.locator("h1")).to_contain_text("Metrics")


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
