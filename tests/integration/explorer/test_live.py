"""A run that a real collector makes while the page shows it, which tells its peers what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.integration.explorer.conftest import PATIENCE_MS, Looking
from tests.support.collected import Collecting, last_of, running, until
from tests.support.collecting import obeying
from tests.support.explored import exploring
from vizpub.reports.pulled import ReportServer

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(600)]

TOKEN = "secret"
ARRAYS = """async () => {
  const { run, state } = explorer;
  if (false) run._overlay = null;
  const arrays = await run.overlay(state);
  return Object.entries(arrays).map(([name, values]) => [name, [...values]]);
}"""
"""The arrays that the page has; with true, those of the whole run."""


@dataclass
class Ring:
    """Peers on a ring, which obey."""

    server: ReportServer
    present: list[str] = field(default_factory=lambda: list("abcde"))
    interval: int = 0

    def obey(self, told: dict[str, Any]) -> None:
        peer, comes = told["peer"], told["action"] == "join"
        if not comes and peer == "e":
            self.server.answer(told["id"], "it stays")
            return
        self.present = sorted({*self.present, peer} if comes else {*self.present} - {peer})
        self.server.answer(told["id"])

    def report(self, intervals: int) -> None:
        """Each present peer reports its successor on the ring, interval by interval."""
        for _ in range(intervals):
            for place, peer in enumerate(self.present):
                after = self.present[(place + 1) % len(self.present)]
                self.server.report({"peer": peer, "interval": self.interval, "neighbors": [after]})
            self.interval += 1


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[tuple[Ring, Collecting]]:
    """Peers, and a collector that has made a run of their first intervals."""
    with ReportServer() as server:
        peers = Ring(server)
        with obeying(server, peers.obey):
            options = ("--no-token", "--no-load", "--allow-commands", "--pull", server.url)
            with running(Collecting(tmp_path, options)) as case:
                case.answering()
                peers.report(4)
                until(lambda: last_of(case.place) >= 2)
                yield peers, case


def expect_shown(page: Page, peers: int, pairs: int) -> None:
    page.wait_for_function(
        "([peers, pairs]) => explorer.counts?.peers === peers && explorer.counts?.pairs === pairs",
        arg=[peers, pairs], timeout=PATIENCE_MS,
    )  # fmt: skip


def test_page_follows_a_collected_run_and_tells_its_peers(
    ring: tuple[Ring, Collecting], look: Callable[..., Looking], tmp_path: Path
) -> None:
    peers, case = ring
    with exploring(tmp_path, TOKEN, commands=True) as explorer:
        looking = look(of=explorer)
        page = looking.page
        page.goto(f"{explorer.address}?token={TOKEN}#/run/lab/overlay")
        looking.wait()
        live = page.get_by_role("button", name="Live")
        expect(live).to_contain_text("behind")
        expect_shown(page, 5, 5)

        # A peer is told to leave, and the overlay heals.
        page.get_by_label("Find a peer").fill("a")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Leave").click()
        expect(page.get_by_label("Selected peer", exact=True)).to_contain_text("Has obeyed: leave")
        assert peers.present == list("bcde")
        peers.report(3)
        expect_shown(page, 4, 4)

        # Who looks back stays there, until they catch up.
        slider = page.get_by_label("Time", exact=True)
        slider.focus()
        page.keyboard.press("Home")
        before = slider.input_value()
        expect(live).to_contain_text("catch up")
        end = int(slider.get_attribute("max") or 0)
        page.get_by_role("button", name="Join").click()
        expect(page.get_by_label("Selected peer", exact=True)).to_contain_text("Has obeyed: join")
        peers.report(3)
        page.wait_for_function(
            "end => Number(document.querySelector('.slider').max) > end", arg=end
        )
        assert slider.input_value() == before
        live.click()
        expect_shown(page, 5, 5)

        # What came piece by piece is what a page gets that is loaded now.
        assert page.evaluate(ARRAYS) == page.evaluate(ARRAYS.replace("false", "true"))

        # A peer that refuses says why.
        page.get_by_label("Find a peer").fill("e")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Leave").click()
        expect(page.get_by_label("Selected peer", exact=True)).to_contain_text("it stays")

        case.stop()
        expect(page.get_by_role("button", name="Ended")).to_be_visible()
