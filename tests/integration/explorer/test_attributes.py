"""Attributes of peers in a real Chromium, served and in an exported file, against the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.integration.explorer.conftest import Looking
from tests.support.grouped import KEY, value_at
from tests.support.played import Played

pytestmark = pytest.mark.browser

Plays = dict[str, Played]
KEYS = (KEY, "country", "load", "zone")
LOOKS = ["served", "exported"]


@pytest.fixture(params=LOOKS)
def looking(
    request: pytest.FixtureRequest,
    look: Callable[[], Looking],
    look_at: Callable[[Path], Looking],
    export: Callable[[str], Path],
) -> Looking:
    return look() if request.param == "served" else look_at(export("intervals"))


@pytest.mark.parametrize("key", [KEY, "zone"])
def test_legend_counts_the_peers_of_each_value(looking: Looking, plays: Plays, key: str) -> None:
    run = plays["intervals"]
    page = looking.open("intervals", "t=12")
    page.get_by_label("Colour", exact=True).select_option(f"attribute:{key}")
    for tick in (12, 30):
        looking.state(t=tick)
        values = Counter(value_at(run, peer, tick, key) for peer in run.present(tick))
        rows = page.locator(
            f"figure[aria-label='Peers by {key}'] .key"
            if key == "zone"
            else "figure[aria-label^='Peers by it'] .key"
        )
        expect(rows.last).to_be_visible()
        told = {row.locator("span").first.inner_text(): int(row.locator(".n").inner_text())
                for row in rows.all()}  # fmt: skip
        unknown, others = told.pop("unknown", 0), told.pop("another value", 0)
        assert unknown == values.pop(None, 0)
        assert others == sum(values.values()) - sum(values[value] for value in told)
        assert told == {value: values[value] for value in told}
        assert len(told) == len(values) or (others and len(told) <= 7)


def test_numbers_are_colours_and_sizes(looking: Looking, plays: Plays) -> None:
    page = looking.open("intervals", "t=12&colour=attribute:load&size=attribute:load")
    ends = page.locator("figure[data-of='attribute:load'] [data-high]")
    most = str((len(plays["intervals"].peers) - 1) / 2)
    expect(ends.first).to_have_attribute("data-high", most)
    expect(ends).to_have_count(2)
    sizes = page.get_by_label("Size").locator("option").all_inner_texts()
    assert [text for text in sizes if "attribute" in text] == ["load (attribute)"]


def test_peer_has_its_attributes_beside_the_overlay_and_on_its_page(
    looking: Looking, plays: Plays
) -> None:
    run = plays["intervals"]
    page = looking.open("intervals", "t=30&sel=0")
    panel = page.get_by_label("Selected peer")
    held = {key: value for key in KEYS if (value := value_at(run, 0, 30, key))}
    for key, value in held.items():
        expect(panel.locator("dl div", has_text=key).last).to_contain_text(value)
    looking.open("intervals", "peer=0&interval=30", screen="peer")
    rows = page.get_by_label("Attributes", exact=True).locator("tbody tr")
    expect(rows).to_have_count(len(held))
    told = {row.locator("td").nth(0).inner_text(): row.locator("td").nth(1).inner_text()
            for row in rows.all()}  # fmt: skip
    assert told == held


def test_compared_runs_have_the_groups_of_both(look: Callable[[], Looking], plays: Plays) -> None:
    looking, run = look(), plays["intervals"]
    query = "with=intervals&by=interval&at=3&later=20&colour=attribute:zone"
    page = looking.open("intervals", query, screen="compare")
    rows = page.locator("figure[aria-label='Peers by zone'] .key")
    expect(rows.last).to_be_visible()
    ticks = [run.clock.sampling_tick(run.clock.first + at) for at in (3, 23)]
    counts = [Counter(value_at(run, peer, tick, "zone") for peer in run.present(tick))
              for tick in ticks]  # fmt: skip
    for row in rows.all():
        value, *_ = row.locator("span").all_inner_texts()
        if value != "another value":
            told = row.locator(".n").inner_text()
            assert told == " | ".join(str(of[value]) for of in counts)
    moved = page.evaluate(
        """async (sides) => {
          const { grouped, withCommonGroups } = await import("./groups.js");
          return withCommonGroups(sides.map(([groups, values]) =>
            grouped({ name: "of", groups }, values, [...values.keys()])));
        }""",
        [[["a", "b"], [0, 1, 1]], [[*"cdefgba"], [6, 7, 5, 0, 4]]],
    )
    assert moved[0]["groups"] == [*"abcdefg"]
    assert [side["values"] for side in moved] == [[0, 1, 1], [0, 7, 1, 2, 6]]
    assert moved[0]["counts"] == [[1, 1], [2, 1], [0, 1], [0, 0], [0, 0], [0, 0], [0, 1], [0, 1]]
