"""Runs that play, the explorer's server, and a browser that looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect

from tests.support.chromium import chromium
from tests.support.explored import Explorer, exploring
from tests.support.grouped import give_attributes
from tests.support.hostile import TAKEN
from tests.support.played import Played, play
from tests.support.spreading import spread
from vizpub.explorer.offline.embedding import ExportPart
from vizpub.explorer.offline.exported import html_page
from vizpub.model.clock import Clock
from vizpub.questions.names import NamedRun
from vizpub.runstore.store import open_run

HOUR_US = 3_600_000_000
PATIENCE_MS = 60_000
SWITCHES = ("--enable-unsafe-swiftshader",)
"""WebGL without a graphics card."""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace; exported files are beside it."""
    return tmp_path_factory.mktemp("explored") / "workspace"


@pytest.fixture(scope="session")
def plays(stage: Path) -> dict[str, Played]:
    """Runs by name: of intervals, of an hour in microseconds, and with hostile names. Messages of
    the first have no times, and its peers have attributes.
    """
    names = [f"peer-{number}" for number in range(30)]
    topics = ["news", "sport", "alerts"]
    messages = [f"message {number}" for number in range(12)]

    def enrich(run: Played) -> None:
        give_attributes(run, Random(1))
        spread(run, messages, 4, timed=False)

    made = [
        play(stage, "intervals", Clock(1, 1_000_000, 5, 44), names, topics, seed=1,
             more=enrich),
        play(stage, "hours", Clock(HOUR_US // 6, 1, 0, 11), names, topics, seed=2,
             more=lambda run: spread(run, messages, 5, patient=range(0, 30, 4))),
        play(stage, "hostile", Clock(1, None, 0, 9), TAKEN, TAKEN, seed=3,
             more=lambda run: spread(run, TAKEN, 6)),
    ]  # fmt: skip
    return {run.name: run for run in made}


@pytest.fixture(scope="session")
def server(stage: Path, plays: dict[str, Played]) -> Iterator[Explorer]:
    """One for all files: it keeps what it reads of the runs."""
    with exploring(stage) as running:
        yield running


@pytest.fixture(scope="module")
def explorer(server: Explorer, stage: Path) -> Iterator[Explorer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIZPUB_CACHE", str(stage / "cache"))
        yield server


@pytest.fixture(scope="session")
def export(stage: Path, plays: dict[str, Played]) -> Callable[..., Path]:
    """Writes a file of a run, or of a part of it, once."""

    @cache
    def write(name: str, **part: Any) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("VIZPUB_CACHE", str(stage / "cache"))
            content = html_page(NamedRun(open_run(stage, name)), ExportPart(**part))
        file = stage.parent / f"{name} {len(part)}.html"
        file.write_text(content, "utf-8")
        return file

    return write


@dataclass(frozen=True)
class Browsing:
    """A browser, its page of the explorer, and what starts other ones."""

    start: Callable[..., Browser]
    browser: Browser
    looking: Looking


BROWSING = pytest.StashKey[Browsing]()


@pytest.fixture(scope="module")
def browsing(request: pytest.FixtureRequest, explorer: Explorer) -> Browsing:
    """One while tests of this folder follow each other: what a browser compiles for a page takes
    longer than most tests. Others may need Playwright, or an event loop, for themselves.
    """
    folder = next(of for of in request.node.iter_parents() if of.path == Path(__file__).parent)
    if BROWSING not in folder.stash:
        with ExitStack() as stack:
            start = stack.enter_context(chromium())
            browser = start(*SWITCHES)
            page = stack.enter_context(new_context(browser)).new_page()
            folder.stash[BROWSING] = Browsing(start, browser, watch(page, explorer.address))
            folder.addfinalizer(stack.pop_all().close)
            folder.addfinalizer(lambda: folder.stash.__delitem__(BROWSING))
    return folder.stash[BROWSING]


@pytest.fixture
def start(browsing: Browsing) -> Iterator[Callable[..., Browser]]:
    """Starts browsers with further switches."""
    with ExitStack() as stack:

        def started(*switches: str) -> Browser:
            browser = browsing.start(*switches)
            stack.callback(browser.close)
            return browser

        yield started


@pytest.fixture(scope="module")
def browser(browsing: Browsing) -> Browser:
    return browsing.browser


VIEWPORT = {"width": 1000, "height": 640}
OPEN = """(hash) => {
  globalThis.left = globalThis.explorer;
  if (left) left.name = null; // as if another run were shown: the screen is built anew
  if (location.hash === hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}"""
"""Opens a screen anew, on a page that is not loaded anew."""
LEAVE = """() => {
  localStorage.clear();
  globalThis.left = globalThis.explorer;
  location.hash = "#/";
}"""
DRAWN = """async () => {
  const turn = () => new Promise((resolve) => setTimeout(resolve));
  for (let seen = 0; seen < 2; seen += 1) { // one that is left is gone at any moment
    do await turn(); while (!globalThis.explorer);
    await explorer.ready;
  }
  return true;
}"""
"""All in one: each call of the browser takes longer than most states do."""
LEFT = "() => !globalThis.left || globalThis.explorer !== left"


@dataclass
class Looking:
    """A page of the explorer, and what it complained of."""

    page: Page
    address: str
    complaints: list[str]

    def open(self, run: str, query: str = "", screen: str = "overlay") -> Page:
        """A screen of a run, when it is drawn. The page is loaded where it is not yet."""
        where = f"#/run/{run}/{screen}?{query}"
        if self.page.url.partition("#")[0] == self.address:
            self._turn(OPEN, where)
        else:
            self.page.goto(self.address + where)
        self.wait()
        return self.page

    def wait(self) -> None:
        """Until all that was asked for is drawn."""
        self.page.wait_for_function(DRAWN, timeout=PATIENCE_MS)

    def _turn(self, turn: str, where: str | None = None) -> None:
        self.page.evaluate(turn, where)
        self.page.wait_for_function(LEFT, timeout=PATIENCE_MS)

    def leave(self) -> None:
        """Show the runs, where nothing is drawn, and forget what the browser keeps of any run."""
        if not self.page.url.startswith(self.address):
            self.page.goto(self.address)
        self._turn(LEAVE)

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

    def appear(
        self, viewport: dict[str, int] | None = None, color_scheme: str = "light"
    ) -> Looking:
        """Have another size, or other colours."""
        size = viewport or VIEWPORT
        if self.page.viewport_size != size:
            self.page.set_viewport_size(size)  # type: ignore[arg-type]
        self.page.emulate_media(color_scheme=color_scheme)  # type: ignore[arg-type]
        return self


def watch(page: Page, address: str) -> Looking:
    """A page of the explorer at an address, whose complaints are noted."""
    looking = Looking(page, address, [])
    page.on("pageerror", lambda error: looking.complaints.append(str(error)))
    page.on("console", lambda told: _note(looking, told.type, told.text))
    return looking


def _note(looking: Looking, kind: str, text: str) -> None:
    if kind == "error" or text.startswith("deck:"):  # which warns of what it cannot draw
        looking.complaints.append(text)


@contextmanager
def new_context(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    context = browser.new_context(**{"viewport": VIEWPORT, **options})
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@contextmanager
def no_complaints() -> Iterator[list[Looking]]:
    """A list for pages, none of which may complain."""
    pages: list[Looking] = []
    yield pages
    complaints = [text for looking in pages for text in looking.complaints]
    for looking in pages:
        looking.complaints = []
    assert complaints == []


@pytest.fixture(scope="module")
def shared(browsing: Browsing) -> Iterator[Looking]:
    """The page of the tests: to load one for each takes longer than most of them."""
    yield browsing.looking
    browsing.looking.leave()


@pytest.fixture
def look(
    explorer: Explorer, browser: Browser, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Looking]]:
    """Gives the page of all files; a page of its own, if another browser or explorer is given, or
    what a browser keeps matters. Afterwards, no page may have complained.
    """

    def opened(
        by: Browser | None = None, of: Explorer | None = None, own: bool = False, **looks: Any
    ) -> Looking:
        if by or of or own:
            context = contexts.enter_context(new_context(by or browser))
            looking = watch(context.new_page(), (of or explorer).address)
        else:
            looking = request.getfixturevalue("shared")
        pages.append(looking)
        return looking.appear(**looks)

    with no_complaints() as pages, ExitStack() as contexts:
        yield opened


@pytest.fixture(scope="module")
def opened_files(browser: Browser) -> Iterator[Callable[[Path], Looking]]:
    """Gives the page of a file, without a network: it notes whom it asks."""
    with new_context(browser, offline=True) as context:

        @cache
        def opened(file: Path) -> Looking:
            looking = watch(context.new_page(), file.as_uri())
            page = looking.page
            page.on("dialog", lambda dialog: _dismiss(looking, dialog))
            page.on("request", lambda asked: _note_request(looking, asked.url))
            return looking

        yield opened


def _dismiss(looking: Looking, dialog: Dialog) -> None:
    looking.complaints.append(dialog.message)
    dialog.dismiss()


def _note_request(looking: Looking, url: str) -> None:
    if not url.startswith(("file:", "data:", "blob:", "about:")):
        looking.complaints.append(url)


@pytest.fixture
def look_at(opened_files: Callable[[Path], Looking]) -> Iterator[Callable[..., Looking]]:
    """Gives the page of a file; afterwards, none may have complained or asked anybody."""

    def opened(file: Path, **looks: Any) -> Looking:
        pages.append(opened_files(file))
        return pages[-1].appear(**looks)

    with no_complaints() as pages:
        yield opened
