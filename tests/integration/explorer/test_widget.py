"""The page in a notebook: a browser runs the widget's front end, and Python its kernel's side."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Frame, Page, Route, expect

from tests.integration.explorer.conftest import PATIENCE_MS, new_context
from tests.integration.explorer.test_page import moments
from tests.support.explored import Explorer
from tests.support.few import few
from tests.support.hostile import TAKEN
from tests.support.played import Played
from tests.support.widgets import FrontEnd
from vizpub.explorer.notebook import RunView

pytestmark = pytest.mark.browser

Plays = dict[str, Played]
NOTEBOOK = "http://notebook.invalid/lab"
OWN = (NOTEBOOK.removesuffix("lab"), "about:", "blob:", "data:")
"""How addresses begin that may be asked."""
MODEL = """
import widget from "./widget.js";
const listeners = {};
const emit = (name, ...told) => (listeners[name] ?? []).forEach((does) => does(...told));
const deliver = (messages) => messages.forEach(({ data, buffers }) => {
  if (data.method === "custom") {
    // Part of a larger memory, as notebooks give it.
    const views = buffers.map((coded) => {
      const bytes = Uint8Array.from(atob(`AAAA${coded}`), (letter) => letter.charCodeAt(0));
      return new DataView(bytes.buffer, 3);
    });
    emit("msg:custom", data.content, views);
  } else if (data.method === "update") {
    Object.assign(values, data.state);
    Object.keys(data.state).forEach((name) => emit(`change:${name}`));
  }
});
const values = await toKernel({ method: "request_state" });
const model = {
  get: (name) => values[name],
  set: (name, value) => { values[name] = value; emit(`change:${name}`); },
  save_changes: () =>
    toKernel({ method: "update", state: { state: values.state }, buffer_paths: [] }),
  send: async (content) => deliver(await toKernel({ method: "custom", content })),
  on: (name, does) => (listeners[name] ??= []).push(does),
  off: (name, does) => (listeners[name] = listeners[name].filter((each) => each !== does)),
};
globalThis.deliver = deliver;
const cells = document.querySelectorAll(".cell");
globalThis.close = await Promise.all([...cells].map((el) => widget.render({ model, el })));
"""
"""What a notebook does: the widget's model, whose messages go to Python and back."""


class Notebook:
    """A notebook that shows a view."""

    def __init__(self, page: Page, view: RunView, cells: int = 1) -> None:
        self.page, self.view, self._kernel = page, view, FrontEnd(view)
        page.expose_function("toKernel", self._answer)
        document = f"<!doctype html>{'<div class=cell></div>' * cells}"
        parts = {
            "lab": ("text/html", f"{document}<script type=module src=model.js></script>"),
            "model.js": ("text/javascript", MODEL),
            "widget.js": ("text/javascript", view._esm),
        }

        def serve(route: Route) -> None:
            kind, text = parts[route.request.url.rpartition("/")[2]]
            route.fulfill(body=text, content_type=kind)

        page.route(f"{OWN[0]}*", serve)
        page.goto(NOTEBOOK)

    def _answer(self, data: dict[str, Any]) -> Any:
        if data["method"] == "request_state":
            return {name: getattr(self.view, name) for name in ("state", "height")}
        return self._coded(self._kernel.tell(data))

    def _coded(self, sent: list[tuple[dict[str, Any], list[bytes]]]) -> list[dict[str, Any]]:
        return [
            {"data": data, "buffers": [b64encode(content).decode() for content in buffers]}
            for data, buffers in sent
        ]

    def lead(self, state: str) -> None:
        """Set the address in the kernel."""
        self._kernel.sent.clear()
        self.view.state = state
        self.page.evaluate("messages => deliver(messages)", self._coded(self._kernel.sent))
        self.frame().wait_for_function("state => location.hash === state", arg=state)

    def frame(self, number: int = 0) -> Frame:
        """The frame of a cell, when a screen of a run is drawn in it."""
        handle = self.page.locator("iframe").nth(number).element_handle()
        frame = handle.content_frame()
        assert frame is not None
        frame.wait_for_function("() => globalThis.explorer", timeout=PATIENCE_MS)
        frame.evaluate("() => explorer.ready")
        return frame

    def wait_for_state(self, part: str) -> None:
        """Until the kernel has an address with this in it."""
        for _ in range(300):
            if part in self.view.state:
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{part} is not in {self.view.state}")


Open = Callable[..., Notebook]


@contextmanager
def notebooks(browser: Browser, stage: Path) -> Iterator[Open]:
    """Shows a run; in the end, no page may have complained, or asked anybody else."""
    complaints = list[str]()
    viewport = {"width": 1100, "height": 900}
    with new_context(browser, viewport=viewport, accept_downloads=True) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda told: told.type == "error" and complaints.append(told.text))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda asked: asked.url.startswith(OWN) or complaints.append(asked.url))
        yield lambda run, cells=1, **traits: Notebook(page, RunView(stage, run, **traits), cells)
    assert complaints == []


@pytest.fixture
def notebook(explorer: Explorer, browser: Browser, stage: Path, plays: Plays) -> Iterator[Open]:
    with notebooks(browser, stage) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_notebook(
    explorer: Explorer, browser: Browser, stage: Path, plays: Plays
) -> Iterator[Notebook]:
    """One for tests that lead it where they begin: each compiles the whole page."""
    with notebooks(browser, stage) as opened:
        yield opened("intervals")


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["intervals"]))
def test_peers_and_pairs_are_those_of_the_tables(
    request: pytest.FixtureRequest, plays: Plays, name: str
) -> None:
    run = plays[name]
    if name == "intervals":
        shown = request.getfixturevalue("shared_notebook")
        shown.lead("#/run/intervals/overlay")
    else:
        shown = request.getfixturevalue("notebook")(name)
    frame = shown.frame()
    for tick in moments(run, 7, 3):
        frame.evaluate("tick => explorer.update({ t: tick })", tick)
        frame.evaluate("() => explorer.ready")
        expected = {"peers": len(run.present(tick)), "pairs": len(run.pairs(tick))}
        assert frame.evaluate("() => explorer.picture.count()") == expected
        shown.wait_for_state(f"t={tick}")


def test_screens_are_answered_by_the_kernel(shared_notebook: Notebook) -> None:
    shown = shared_notebook
    for screen, heading in [
        ("messages", "Messages"), ("message?m=0", "message 0"), ("tables", "Tables"),
        ("compare?with=hours", "hours"),
    ]:  # fmt: skip
        shown.lead(f"#/run/intervals/{screen}")
        expect(shown.page.frame_locator("iframe").locator("#screen")).to_contain_text(heading)
        assert shown.frame().evaluate("() => location.hash").startswith(f"#/run/intervals/{screen}")


def test_state_is_what_is_chosen_and_leads_the_page(shared_notebook: Notebook) -> None:
    shown = shared_notebook
    shown.lead("#/run/intervals/overlay?t=20&topic=1")
    frame = shown.frame()
    frame.wait_for_function("() => explorer.state.t === 20 && explorer.state.topics[0] === 1")
    frame.get_by_role("link", name="Messages", exact=True).click()
    shown.wait_for_state("/messages")
    frame.wait_for_function("() => location.hash.includes('/messages')")
    assert shown.page.url == NOTEBOOK


@pytest.mark.long
def test_two_cells_show_the_same_address(notebook: Open) -> None:
    shown = notebook("intervals", cells=2, state="#/run/intervals/overlay?sel=3&t=9")
    first, second = shown.frame(0), shown.frame(1)
    assert first.evaluate("() => [explorer.state.sel, explorer.state.t]") == [3, 9]
    first.evaluate("() => explorer.update({ t: 12, colour: 'degree', sel: 2 })")
    second.wait_for_function("() => explorer.state.t === 12 && explorer.state.sel === 2")
    assert first.evaluate("() => explorer.state.t") == 12


def test_table_is_saved_as_the_csv_of_the_kernel(shared_notebook: Notebook, stage: Path) -> None:
    shown = shared_notebook
    shown.lead("#/run/intervals/tables?table=links")
    link = shown.frame().get_by_role("link", name="CSV")
    expect(link).to_have_attribute("href", re.compile("table=links"))
    with shown.page.expect_download() as download:
        link.click()
    path = "api/runs/intervals/rows.csv?table=links"
    expected = FrontEnd(RunView(stage, "intervals")).ask({"id": 0, "path": path}).content
    assert download.value.suggested_filename == "intervals-links.csv"
    assert download.value.path().read_bytes() == expected


@pytest.mark.long
def test_hostile_names_are_text(notebook: Open) -> None:
    shown = notebook("hostile", state="#/run/hostile/overlay?view=table&t=5")
    frame = shown.frame()
    cells = frame.locator("tbody th").all_inner_texts()
    assert cells
    assert {name for name in cells if "script" in name} <= set(TAKEN)
    for number in (15, 3):
        frame.evaluate("peer => explorer.update({ sel: peer })", number)
        frame.evaluate("() => explorer.ready")
    assert frame.evaluate("() => document.scripts.length") == 2


def test_page_cannot_reach_the_notebook(shared_notebook: Notebook) -> None:
    shared_notebook.lead("#/run/intervals/tables")
    frame, reached = (
        shared_notebook.frame(),
        "() => { try { return parent.document.title } catch (e) { return e.name } }",
    )
    assert frame.evaluate(reached) == "SecurityError"
    assert frame.evaluate("() => origin") == "null"


@pytest.mark.long
def test_moved_frame_and_height_follow(notebook: Open) -> None:
    shown = notebook("intervals", height=300)
    shown.frame().evaluate("() => explorer.update({ t: 13 })")
    shown.wait_for_state("t=13")
    shown.page.evaluate(
        "() => document.body.append(document.createElement('div'), document.querySelector('.cell'))"
    )
    shown.page.wait_for_timeout(200)
    assert shown.frame().evaluate("() => explorer.state.t") == 13
    assert shown.page.locator("iframe").bounding_box()["height"] == 300  # type: ignore[index]
    shown.page.evaluate("() => close[0]()")
