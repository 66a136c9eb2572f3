"""Runs that play, the explorer's server, and a browser that looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.chromium import chromium
from tests.support.explored import Explorer, exploring
from tests.support.hostile import TAKEN
from tests.support.played import Played, play
from tests.support.spreading import spread
from vizpub.model.clock import Clock

HOUR_US = 3_600_000_000
PATIENCE_MS = 60_000
SWITCHES = ("--enable-unsafe-swiftshader",)
"""WebGL without a graphics card."""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace; where layouts are kept is beside it."""
    return tmp_path_factory.mktemp("explored")


@pytest.fixture(scope="session")
def plays(stage: Path) -> dict[str, Played]:
    """Runs by name: of intervals, of an hour in microseconds, and with hostile names. Messages of
    the first have no times.
    """
    names = [f"peer-{number}" for number in range(30)]
    topics = ["news", "sport", "alerts"]
    messages = [f"message {number}" for number in range(12)]
    made = [
        play(stage, "intervals", Clock(1, 1_000_000, 5, 44), names, topics, seed=1,
             more=lambda run: spread(run, messages, 4, timed=False)),
        play(stage, "hours", Clock(HOUR_US // 6, 1, 0, 11), names, topics, seed=2,
             more=lambda run: spread(run, messages, 5)),
        play(stage, "hostile", Clock(1, None, 0, 9), TAKEN, TAKEN, seed=3,
             more=lambda run: spread(run, TAKEN, 6)),
    ]  # fmt: skip
    return {run.name: run for run in made}


@pytest.fixture(scope="module")
def explorer(stage: Path, plays: dict[str, Played]) -> Iterator[Explorer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIZPUB_CACHE", str(stage / "cache"))
        with exploring(stage) as server:
            yield server


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Browser]]:
    """Starts a browser."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def browser(start: Callable[..., Browser]) -> Browser:
    return start(*SWITCHES)


@dataclass
class Looking:
    """A page of the explorer, and what it complained of."""

    page: Page
    address: str
    complaints: list[str]

    def open(self, run: str, query: str = "", screen: str = "overlay") -> Page:
        """A screen of a run, when it is drawn, on a page that is loaded anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#/run/{run}/{screen}?{query}")
        self.wait()
        return self.page

    def wait(self) -> None:
        """Until all that was asked for is drawn."""
        self.page.wait_for_function("() => globalThis.explorer", timeout=PATIENCE_MS)
        # One that is left is gone at any moment.
        self.page.evaluate("() => globalThis.explorer?.ready")
        self.page.wait_for_function("() => globalThis.explorer", timeout=PATIENCE_MS)
        self.page.evaluate("() => globalThis.explorer?.ready")

    def state(self, **changes: Any) -> None:
        """Change what is shown, as the controls do."""
        self.page.evaluate("changes => explorer.update(changes)", changes)
        self.wait()

    def counted(self) -> tuple[int, int]:
        """Peers and pairs that the graphics card draws."""
        found = self.page.evaluate("() => explorer.picture.count()")
        return found["peers"], found["pairs"]

    def said(self) -> tuple[int, int]:
        """Peers and pairs that the page says."""
        found = self.page.evaluate("() => explorer.counts")
        return found["peers"], found["pairs"]


@pytest.fixture
def look(explorer: Explorer, browser: Browser) -> Iterator[Callable[..., Looking]]:
    """Opens pages, of another explorer if it is given; afterwards, no page may have complained."""
    contexts, pages = [], []

    def opened(by: Browser | None = None, of: Explorer | None = None, **options: Any) -> Looking:
        options.setdefault("viewport", {"width": 1000, "height": 640})
        context = (by or browser).new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        looking = Looking(context.new_page(), (of or explorer).address, [])
        pages.append(looking)
        looking.page.on("pageerror", lambda error: looking.complaints.append(str(error)))
        looking.page.on("console", lambda told: _note(looking, told.type, told.text))
        return looking

    yield opened
    for context in contexts:
        context.close()
    assert [text for looking in pages for text in looking.complaints] == []


def _note(looking: Looking, kind: str, text: str) -> None:
    if kind == "error" or text.startswith("deck:"):  # which warns of what it cannot draw
        looking.complaints.append(text)
