"""The explorer in a real Chromium: what it shows equals the tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.integration.explorer.conftest import Looking
from tests.support.few import few
from tests.support.hostile import TAKEN
from tests.support.played import LAYERS, Played
from vizpub.model.wording import shorten

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]


def moments(run: Played, seed: int, count: int) -> list[int]:
    """Random ticks, and those around changes: a microsecond counts."""
    rng = np.random.default_rng(seed)
    changes = [row["valid_from"] for row in run.rows["links"]]
    near = [tick + int(rng.integers(-1, 2)) for tick in rng.choice(changes, count // 2).tolist()]
    far = rng.integers(run.first, run.last + 1, count - count // 2).tolist()
    return [min(max(tick, run.first), run.last) for tick in [*near, *far]]


@pytest.mark.parametrize("name", few(["intervals", "hours", "hostile"], ["hours"]))
def test_peers_and_pairs_are_those_of_the_tables_at_any_time(
    look: Look, plays: Plays, name: str
) -> None:
    run, looking = plays[name], look()
    looking.open(name)
    for place, tick in enumerate(moments(run, 7, 12)):
        looking.state(t=tick)
        expected = len(run.present(tick)), len(run.pairs(tick))
        assert looking.said() == expected, tick
        if place % 4 == 0:  # the card draws nothing else, which takes it a while to say
            assert looking.counted() == expected, tick


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["intervals"]))
def test_topics_and_layers_leave_their_part(look: Look, plays: Plays, name: str) -> None:
    run, looking = plays[name], look()
    looking.open(name)
    for place, tick in enumerate(moments(run, 11, 8)):
        topic, layer = place % len(run.topics), LAYERS[place % 2]
        looking.state(t=tick, topics=[topic], layers=[layer])
        among = run.subscribers(topic, tick)
        pairs = {pair for pair in run.pairs(tick, [layer]) if among.issuperset(pair)}
        assert looking.said() == (len(among), len(pairs))
        if place % 4 == 0:
            assert looking.counted() == (len(among), len(pairs))


def test_links_beyond_the_limit_are_left_out_and_parts_are_a_link_away(
    look: Look, plays: Plays, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vizpub.explorer.history.MOST_PAIRS", 150)
    run, tick, looking = plays["intervals"], 20, look()
    page = looking.open("intervals", f"t={tick}&layer=mesh&layer=ring")
    status, slider = page.locator(".status"), page.get_by_label("Time", exact=True)
    expect(status).to_contain_text("150 at most")
    assert looking.said() == (len(run.present(tick)), None)
    span = re.search(r"--from (\d+) --to (\d+)", status.inner_text())
    assert span is not None
    status.get_by_role("link", name="topic news").click()
    expect(status).to_be_hidden()
    among = run.subscribers(0, tick)
    assert looking.said()[1] == sum(among.issuperset(pair) for pair in run.pairs(tick))
    page.go_back()
    status.get_by_role("link", name="intervals {} to {}".format(*span.groups())).click()
    expect(slider).to_have_attribute("min", span[1])
    looking.wait()
    assert slider.get_attribute("max") == span[2]
    assert looking.said() == looking.counted() == (len(run.present(tick)), len(run.pairs(tick)))
    page.get_by_role("button", name="Show all intervals").click()
    expect(status).to_contain_text("150 at most")


def test_end_of_an_interval_shows_the_counts_of_its_metrics(look: Look, plays: Plays) -> None:
    run, looking = plays["intervals"], look()
    page = looking.open("intervals", "t=5")
    shown = page.get_by_label("What is shown").locator("dd")
    for row in run.rows["metrics/overlay"][:6]:
        expect(shown.nth(0)).to_have_text(str(row["network_size"]))
        expect(shown.nth(1)).to_have_text(str(row["links"]))
        page.get_by_role("button", name="One interval forward").click()


@pytest.mark.parametrize("scale", ["run", "interval"])
def test_ends_of_the_legend_are_those_of_the_column(look: Look, plays: Plays, scale: str) -> None:
    run, tick = plays["intervals"], 20
    page = look().open("intervals", f"t={tick}&colour=betweenness&size=degree&scale={scale}")
    for name in ("betweenness", "degree"):
        rows = run.rows["metrics/peers"]
        values = [row[name] for row in rows if scale == "run" or row["interval"] == tick]
        legend = page.locator(f"figure[data-of={name}]")
        expect(legend.locator("[data-low]")).to_have_attribute("data-low", re.compile("."))
        low = legend.locator("[data-low]").get_attribute("data-low")
        high = legend.locator("[data-high]").get_attribute("data-high")
        assert (float(low or "nan"), float(high or "nan")) == (min(values), max(values))
    expect(page.locator(".legend > .key")).to_have_count(0)  # nothing is unknown


def test_path_is_as_short_as_that_of_networkx(look: Look, plays: Plays) -> None:
    run, tick = plays["hours"], plays["hours"].last // 2
    graph = nx.DiGraph(sorted(run.pairs(tick)))
    source, target, hops = max(
        (
            (source, target, hops)
            for source, reached in nx.all_pairs_shortest_path_length(graph)
            for target, hops in reached.items()
        ),
        key=lambda path: path[2],
    )
    assert hops > 1
    page = look().open("hours", f"t={tick}&sel={source}&to={target}")
    steps = page.locator(".path ol li")
    expect(steps).to_have_count(hops + 1)
    names = [run.peers.index(name) for name in steps.all_inner_texts()]
    assert (names[0], names[-1]) == (source, target)
    assert all(graph.has_edge(*pair) for pair in pairwise(names))


def test_neighbourhood_has_the_peers_within_so_many_hops(look: Look, plays: Plays) -> None:
    run, tick = plays["intervals"], 20
    graph = nx.Graph(sorted(run.pairs(tick)))
    peer = min(graph, key=graph.degree)
    looking = look()
    page = looking.open("intervals", f"t={tick}&sel={peer}&view=table")
    for hops in (1, 2, 3):
        looking.state(ego=hops)
        within = nx.single_source_shortest_path_length(graph, peer, hops)
        listed = page.locator(".stage table button")
        expect(listed).to_have_count(len(within))
        numbers = {run.peers.index(name) for name in listed.all_inner_texts()}
        assert numbers == set(within)


def test_selected_peer_has_its_neighbours_and_values(look: Look, plays: Plays) -> None:
    run, tick, peer = plays["intervals"], 20, 3
    page = look().open("intervals", f"t={tick}")
    page.get_by_label("Find a peer").fill(run.peers[peer])
    page.keyboard.press("Enter")
    side = page.get_by_label("Selected peer")
    expect(side.get_by_role("heading", level=2)).to_have_text(run.peers[peer])
    near = {b if a == peer else a for a, b in run.pairs(tick) if peer in (a, b)}
    expect(side.locator(".names button")).to_have_count(len(near))
    degree = next(
        row["degree"]
        for row in run.rows["metrics/peers"]
        if (row["peer"], row["interval"]) == (peer, tick)
    )
    expect(side.locator("[title=degree] dd")).to_have_text(str(degree))
    assert len(near) == degree


def test_clock_goes_by_buttons_keys_and_the_curve(look: Look, plays: Plays) -> None:
    page = look().open("intervals", "t=20")
    slider = page.get_by_label("Time", exact=True)
    page.get_by_role("button", name="One interval back").click()
    expect(slider).to_have_value("19")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_value("21")
    page.keyboard.press("End")
    expect(slider).to_have_value("44")
    page.keyboard.press("Home")
    expect(slider).to_have_value("5")
    curve = page.locator(".curves .track").first
    box = curve.bounding_box()
    assert box is not None
    curve.click(position={"x": box["width"] - 1, "y": 5})
    expect(slider).to_have_value("44")
    expect(slider).to_have_attribute("aria-valuetext", "interval 44, 44 s")


def test_run_plays_to_its_end_and_stops(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open("intervals", "t=5")
    page.get_by_label("Speed").select_option("100")
    page.get_by_label("Loop").check()
    expect(page).to_have_url(re.compile("speed=100&loop=1"))
    page.reload()
    looking.wait()
    expect(page.get_by_label("Speed")).to_have_value("100")
    page.get_by_label("Loop").uncheck()
    page.get_by_label("Find a peer").focus()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_label("Time", exact=True)).to_have_value("44")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_address_holds_the_state_for_reload_back_and_forward(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open("intervals", "t=20")
    page.get_by_label("Layout").select_option("circle")
    page.get_by_label("Colour").select_option("betweenness")
    page.get_by_label("news").check()
    expect(page).to_have_url(re.compile("topic=0"))
    looking.wait()
    before = looking.said()
    page.reload()
    looking.wait()
    assert looking.said() == before
    expect(page.get_by_label("news")).to_be_checked()
    expect(page.get_by_label("Layout")).to_have_value("circle")
    page.go_back()
    expect(page.get_by_label("news")).not_to_be_checked()
    expect(page.get_by_label("Colour")).to_have_value("betweenness")
    page.go_back()
    expect(page.get_by_label("Colour")).to_have_value("degree")
    page.go_forward()
    expect(page.get_by_label("Colour")).to_have_value("betweenness")


def test_choice_right_after_a_time_stays_in_the_address(look: Look, plays: Plays) -> None:
    page = look().open("intervals", "t=20&view=table")
    page.evaluate(
        "() => { explorer.update({ t: 21 }, { push: false }); explorer.update({ colour: '' }); }"
    )
    page.wait_for_timeout(400)  # times come into the address after a while
    address = page.evaluate("() => location.hash")
    assert "t=21" in address
    assert "colour=" in address


def test_hostile_names_are_text_everywhere(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.open("hostile", "t=9&view=table")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    run = plays["hostile"]
    listed = page.locator(".stage table button")
    there = sorted(run.present(9))
    expect(listed).to_have_count(len(there))
    assert set(listed.evaluate_all("all => all.map(one => one.textContent)")) == {
        TAKEN[peer] for peer in there
    }
    for peer in there:
        looking.state(sel=peer)
        heading = page.get_by_label("Selected peer").get_by_role("heading", level=2)
        assert heading.evaluate("one => one.textContent") == TAKEN[peer]
    assert page.locator("script").count() == 2
    assert dialogs == []


def test_screen_of_runs_leads_to_each(look: Look, plays: Plays) -> None:
    looking = look()
    page = looking.page
    page.goto(looking.address)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(len(plays))
    page.get_by_role("link", name="intervals", exact=True).click()
    looking.wait()
    expect(page.get_by_role("heading", level=1)).to_have_text("intervals")


def test_screen_that_comes_too_late_is_not_shown(look: Look, plays: Plays) -> None:
    looking = look(own=True)
    page, held = looking.page, list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/runs", hold)
    page.goto(looking.address)
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    page.evaluate("() => { location.hash = '#/run/intervals/overlay' }")
    looking.wait()
    with page.expect_response("**/api/runs"):
        held[0].continue_()
    page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 100))")
    expect(page.get_by_role("heading", level=1)).to_have_text("intervals")
    expect(page.get_by_role("link", name="Tables", exact=True)).to_be_visible()


def test_unknown_run_is_said_with_a_way_out(look: Look) -> None:
    looking = look()
    looking.page.goto(f"{looking.address}#/run/nosuch/overlay")
    expect(looking.page.get_by_role("alert")).to_contain_text("nosuch")
    expect(looking.page.get_by_role("link", name="All runs")).to_be_visible()
    looking.complaints = [text for text in looking.complaints if "404" not in text]


CONTEXTS = """() => {
  const of = HTMLCanvasElement.prototype, before = of.getContext;
  globalThis.made = 0;
  of.getContext = function (kind, ...more) {
    const isNew = kind === "webgl2" && !this.has;
    if (isNew) this.has = globalThis.made += 1;
    return before.call(this, kind, ...more);
  };
}"""
"""Counts the graphics contexts that are made."""


@pytest.mark.long
def test_pictures_take_over_the_graphics_contexts_of_those_that_were_left(look: Look) -> None:
    """A browser has room for sixteen, and keeps what they compiled."""
    looking = look(own=True)
    looking.open("intervals", "t=20")
    looking.page.evaluate(CONTEXTS)
    for _ in range(2):
        looking.open("intervals", "t=20")
        looking.open("intervals", "with=hours", screen="compare")
        looking.open("intervals", screen="messages")
    assert looking.page.evaluate("() => made") == 1, "the second picture of a comparison"
    looking.open("intervals", "t=20")
    assert looking.counted() == looking.said()


def test_page_without_webgl_says_so_and_shows_the_rest(
    look: Look, plays: Plays, start: Callable[..., Browser]
) -> None:
    run, tick = plays["intervals"], 20
    page = look(start("--disable-3d-apis")).open("intervals", f"t={tick}")
    expect(page.locator(".status")).to_contain_text("WebGL")
    expect(page.locator(".stage table button")).to_have_count(len(run.present(tick)))
    expect(page.locator(".curves svg path").first).to_be_visible()


def test_phone_shows_curves_and_a_table(look: Look, plays: Plays) -> None:
    run = plays["intervals"]
    page = look(viewport={"width": 390, "height": 844}).open("intervals", "t=20")
    expect(page.locator(".stage table button")).to_have_count(len(run.present(20)))
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


def overflowing(page: Page) -> bool:
    return bool(page.evaluate("() => document.documentElement.scrollWidth > innerWidth"))


@pytest.mark.parametrize("width", few([1440, 1024, 390], [390]))
def test_long_names_do_not_widen_the_page(look: Look, plays: Plays, width: int) -> None:
    page = look(viewport={"width": width, "height": 800}).open(
        "hostile", f"t=9&sel={len(TAKEN) - 1}"
    )
    assert not overflowing(page)


def test_page_shortens_names_as_tables_and_figures_do(look: Look) -> None:
    ids = [
        f"12D3KooW{'abcdefgh' * 5}{end}" for end in ("1", "2", "é", "\U0001f469\u200d\U0001f467")
    ]
    names, lengths = [*TAKEN, *ids, "", "n" * 24, "n" * 25], [6, 14, 20, 24, 26, 40, 60]
    looking = look()
    looking.page.goto(looking.address)
    shown = looking.page.evaluate(
        """async ([names, lengths]) => {
          const { short } = await import("./numbers.js");
          return names.map((name) => [short(name), ...lengths.map((most) => short(name, most))]);
        }""",
        [names, lengths],
    )
    assert shown == [
        [shorten(name), *(shorten(name, longest) for longest in lengths)] for name in names
    ]


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (15 * 60_000_000 - 1, "15 min"),
        (660_000_000 - 40_000, "11 min"),
        (659_940_000, "10 min 59.9 s"),
        (7_200_000_000 - 1, "2 h 0 min"),
    ],
)
def test_durations_are_rounded_before_they_are_split(look: Look, us: int, text: str) -> None:
    looking = look()
    looking.page.goto(looking.address)
    script = "async (us) => (await import('./time.js')).duration(us)"
    assert looking.page.evaluate(script, us) == text


def test_arrow_keys_go_round_a_group_of_radio_buttons(look: Look) -> None:
    looking = look()
    looking.open("intervals", "t=20&sel=0")
    page = looking.page
    group = page.get_by_role("group", name="Show peers within")
    group.get_by_role("radio", name="all").focus()
    seen = []
    for key in (*["ArrowRight"] * 5, *["ArrowLeft"] * 3, "ArrowUp", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        looking.wait()
        chosen = group.get_by_role("radio", checked=True)
        assert chosen.evaluate("(radio) => radio === document.activeElement"), (key, seen)
        seen.append(page.evaluate("() => explorer.state.ego"))
    assert seen == [1, 2, 3, 0, 1, 0, 3, 2, 1, 2, 3]
