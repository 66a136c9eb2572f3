"""The page in a Firefox, which perhaps has no WebGL: what it says equals the tables."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.integration.explorer.test_page import moments
from tests.support.explored import Explorer
from tests.support.firefox import Firefox, firefox
from tests.support.played import Played

pytestmark = pytest.mark.browser

READY = """async () => {
  while (!globalThis.explorer) await new Promise((resolve) => setTimeout(resolve, 50));
  await explorer.ready;
}"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with firefox(tmp_path_factory.mktemp("profile")) as found:
        yield found


def open_page(browser: Firefox, explorer: Explorer, address: str) -> None:
    browser.open("about:blank")
    browser.open(f"{explorer.address}#/run/{address}")
    browser.evaluate(READY)


def test_counts_are_those_of_the_tables(
    browser: Firefox, explorer: Explorer, plays: dict[str, Played]
) -> None:
    run = plays["hours"]
    open_page(browser, explorer, "hours/overlay")
    for tick in moments(run, 3, 6):
        change = json.dumps({"t": tick})
        counts = browser.evaluate(f"() => {{ explorer.update({change}); return explorer.counts; }}")
        assert counts == {"peers": len(run.present(tick)), "pairs": len(run.pairs(tick))}


@pytest.mark.parametrize("screen", ["messages", "message?m=2", "tables", "compare?with=hours"])
def test_screens_are_shown(
    browser: Firefox, explorer: Explorer, plays: dict[str, Played], screen: str
) -> None:
    open_page(browser, explorer, f"hours/{screen}")
    assert not browser.evaluate("() => document.querySelector('[role=alert]')?.textContent")
    assert browser.evaluate("() => explorer.screen") == screen.partition("?")[0]


def test_view_is_saved_and_leads_back(
    browser: Firefox, explorer: Explorer, plays: dict[str, Played]
) -> None:
    open_page(browser, explorer, "hours/overlay?colour=betweenness")
    browser.evaluate("""async () => {
      document.querySelector(".top details").open = true;
      while (!document.querySelector(".views input")) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      document.querySelector(".views input").value = "one";
      document.querySelector(".views button").click();
    }""")
    open_page(browser, explorer, "hours/overlay?colour=degree")
    browser.evaluate("""async () => {
      document.querySelector(".top details").open = true;
      while (!document.querySelector(".views li a")) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      document.querySelector(".views li a").click();
      while (explorer.state.colour !== "betweenness") {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }""")
