"""Every screen of the explorer under axe-core: nothing that keeps people out."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.integration.explorer.conftest import Looking
from tests.support.few import few
from tests.support.played import Played

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).parents[2] / "data/axe"
SERIOUS = ("serious", "critical")


def axe() -> str:
    """The tool, if it is what was published."""
    ((name, facts),) = tomllib.loads((FOLDER / "vendored.toml").read_text("utf-8")).items()
    content = (FOLDER / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == facts["sha256"]
    return content.decode()


def found(looking: Looking) -> list[str]:
    """Rules that are broken, and where."""
    # The policy of the page lets no code in; the debugger evaluates it.
    looking.page.evaluate(f"() => {{ {axe()} }}")
    told = looking.page.evaluate("() => axe.run({ resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in told["violations"]
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]


QUERIES = (
    "t=20&sel=3&to=7&size=betweenness&topic=0&topic=1",
    "t=20",
    "t=20&view=table&colour=",
)
VIEWS = [*product(["light", "dark"], [1440, 390], QUERIES)]


@pytest.mark.parametrize(
    ("scheme", "width", "query"),
    [VIEWS[0], *(pytest.param(*view, marks=pytest.mark.long) for view in VIEWS[1:])],
)
def test_overlay_is_open_to_all(
    look: Callable[..., Looking], plays: dict[str, Played], scheme: str, width: int, query: str
) -> None:
    looking = look(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = looking.open("intervals", query)
    if "sel" in query:
        expect(page.get_by_label("Selected peer").locator(".values")).to_be_visible()
    page.get_by_text("Curves", exact=True).click()
    assert found(looking) == []


SCREENS = (
    ("compare", "with=intervals&by=interval&at=5&peer=peer-3&of=news"),
    ("tables", "table=links&peer=3&by=valid_from"),
    ("message", "m=2"),
    ("messages", "topic=0"),
    ("message", "m=2&view=table&sel=3"),
    ("compare", ""),
)
THINGS = (("peer", "peer=3&interval=5"), ("topic", "topic=0"), ("link", "src=3&dst=7"))
SPREAD = [*product(["light", "dark"], [1440, 390], SCREENS)]


@pytest.mark.parametrize(
    ("scheme", "width", "screen"),
    [
        *SPREAD[:3],
        ("light", 1440, THINGS[2]),
        *(pytest.param(*view, marks=pytest.mark.long) for view in SPREAD[3:]),
        *(
            pytest.param(*view, marks=pytest.mark.long)
            for view in (*product(["light"], [1440], THINGS[:2]), *product(["dark"], [390], THINGS))
        ),
    ],
)
def test_screens_are_open_to_all(
    look: Callable[..., Looking],
    plays: dict[str, Played],
    scheme: str,
    width: int,
    screen: tuple[str, str],
) -> None:
    looking = look(viewport={"width": width, "height": 900}, color_scheme=scheme)
    looking.open("hours", screen[1], screen[0])
    assert found(looking) == []


@pytest.mark.parametrize("scheme", few(["light", "dark"], ["light"]))
def test_list_of_runs_is_open_to_all(
    look: Callable[..., Looking], plays: dict[str, Played], scheme: str
) -> None:
    looking = look(color_scheme=scheme)
    looking.page.goto(looking.address)
    expect(looking.page.locator("tbody tr")).to_have_count(len(plays))
    assert found(looking) == []


def test_tool_finds_a_button_without_a_name(look: Callable[..., Looking]) -> None:
    looking = look(own=True)
    looking.page.goto(looking.address)
    looking.page.evaluate("() => document.body.append(document.createElement('button'))")
    assert any(text.startswith("button-name") for text in found(looking))
