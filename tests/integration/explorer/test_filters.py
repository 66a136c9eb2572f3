"""Filters of the overlay in a real Chromium: the peers and links that they leave are those that
networkx finds in the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.integration.explorer.conftest import Looking
from tests.integration.explorer.test_page import moments
from tests.support.few import few
from tests.support.played import Played

pytestmark = pytest.mark.browser

Look = Callable[..., Looking]
Plays = dict[str, Played]
PART = {"topics": [0], "layers": ["ring"]}
"""Sparse enough for several components."""


def overlay_of_part(run: Played, tick: int, window: int = 0) -> nx.DiGraph:
    """The subscribers of the topic of PART, and the links between them, while both subscribe: those
    at any time of (tick - window, tick].
    """
    subscriptions = [row for row in run.rows["subscriptions"] if row["topic"] == 0]
    graph = nx.DiGraph()
    graph.add_nodes_from(row["peer"] for row in subscriptions if _overlap(tick, window, row))
    for link in run.rows["links"]:
        if link["layer"] != "ring":
            continue
        of_src, of_dst = (
            [row for row in subscriptions if row["peer"] == link[end]] for end in ("src", "dst")
        )
        if any(_overlap(tick, window, link, one, two) for one in of_src for two in of_dst):
            graph.add_edge(link["src"], link["dst"])
    return graph


def _overlap(tick: int, window: int, *periods: dict[str, int]) -> bool:
    """Periods have a time in common that is in (tick - window, tick]."""
    begin = max(period["valid_from"] for period in periods)
    end = min(period["valid_to"] for period in periods)
    return begin < end and begin <= tick and end > tick - window


def figures(page: Page) -> dict[str, str]:
    """What the page says of the time, by word."""
    rows = page.get_by_label("What is shown").locator("dl.values > div")
    texts: list[str] = rows.evaluate_all("all => all.map(one => one.innerText)")
    return dict(text.split("\n", 1) for text in texts)


def listed(page: Page, run: Played) -> set[int]:
    """The peers in the table."""
    names = page.locator(".stage table button").all_inner_texts()
    return {run.peers.index(name) for name in names}


def sampled(run: Played, seed: int, count: int) -> Iterator[tuple[int, int, nx.DiGraph]]:
    """Times, peers that are there then, and the part of the overlay."""
    rng = np.random.default_rng(seed)
    for tick in moments(run, seed, count):
        graph = overlay_of_part(run, tick)
        if graph:
            yield tick, int(rng.choice(sorted(graph))), graph


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["hours"]))
def test_window_shows_what_existed_at_any_time_in_it(look: Look, plays: Plays, name: str) -> None:
    run, looking = plays[name], look()
    looking.open(name)
    rng = np.random.default_rng(3)
    for tick in moments(run, 3, 8):
        window = int(rng.integers(0, (run.last - run.first) // 3))
        looking.state(t=tick, window=window, topics=[], layers=None)
        overlapping = {
            name: [row for row in run.rows[name] if _overlap(tick, window, row)]
            for name in ("presence", "links")
        }
        pairs = {(row["src"], row["dst"]) for row in overlapping["links"]}
        assert looking.said() == (len(overlapping["presence"]), len(pairs)), (tick, window)
        looking.state(**PART)
        graph = overlay_of_part(run, tick, window)
        assert looking.said() == (len(graph), graph.size()), (tick, window)


def test_window_of_no_time_is_the_tick_itself(look: Look, plays: Plays) -> None:
    """A link that ends at a tick is in any window up to it, but not in none."""
    run, looking = plays["hours"], look()
    looking.open("hours", "layer=ring")
    ended = next(row for row in run.rows["links"] if row["valid_to"] < run.last)
    end, (src, dst) = ended["valid_to"], (ended["src"], ended["dst"])
    looking.page.evaluate("layer => explorer.update({ layers: [layer] })", ended["layer"])
    for window, is_there in ((0, False), (1, True)):
        looking.state(t=end, window=window)
        rows = looking.page.evaluate(
            """([from, to]) => explorer.shown.rowsOf(from).filter((row) =>
            explorer.overlay.src[row] === from && explorer.overlay.dst[row] === to)""",
            [src, dst],
        )
        assert bool(rows) is is_there


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["intervals"]))
def test_component_is_that_of_networkx(look: Look, plays: Plays, name: str) -> None:
    run, looking = plays[name], look()
    page = looking.open(name, "view=table")
    looking.state(**PART)
    sizes = set()
    for place, (tick, peer, graph) in enumerate(sampled(run, 13, 8)):
        looking.state(t=tick, sel=peer, component=1)
        component = nx.node_connected_component(graph.to_undirected(), peer)
        part = graph.subgraph(component)
        sizes.add(len(component))
        assert looking.said() == (len(part), part.size())
        assert listed(page, run) == component
        assert figures(page)["Components"] == str(nx.number_weakly_connected_components(graph))
        assert figures(page)["Peers shown"] == f"{len(part)} of {len(graph)}"
        if place == 0:  # the card draws nothing else
            looking.state(view="picture")
            assert looking.counted() == (len(part), part.size())
            looking.state(view="table")
    assert len(sizes) > 2


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["hours"]))
def test_range_of_degrees_leaves_peers_with_so_many_neighbours(
    look: Look, plays: Plays, name: str
) -> None:
    run, looking = plays[name], look()
    page = looking.open(name, "view=table")
    for place, (tick, _, graph) in enumerate(sampled(run, 17, 9)):
        least, most = [(1, 2), (2, None), (None, 1)][place % 3]
        looking.state(t=tick, least=least, most=most, **PART)
        degree = graph.to_undirected().degree
        remaining = {
            peer
            for peer in graph
            if (least or 0) <= degree[peer] <= (len(graph) if most is None else most)
        }
        assert listed(page, run) == remaining
        assert looking.said() == (len(remaining), graph.subgraph(remaining).size())


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["intervals"]))
def test_colour_by_hops_has_the_distances_of_networkx(look: Look, plays: Plays, name: str) -> None:
    run, looking = plays[name], look()
    page = looking.open(name, "view=table&colour=hops from selected")
    expect(page.locator(".legend")).to_contain_text("Select a peer")
    unreachable = 0
    for tick, peer, graph in sampled(run, 19, 8):
        looking.state(t=tick, sel=peer, **PART)
        far = nx.single_source_shortest_path_length(graph.to_undirected(), peer)
        rows = page.locator(".stage tbody tr")
        expect(rows).to_have_count(len(graph))
        shown = dict(row.split("\t") for row in rows.all_inner_texts())
        assert {run.peers.index(name): text for name, text in shown.items()} == {
            peer: str(far[peer]) if peer in far else "–" for peer in graph
        }
        lines = page.locator("[data-of=hops] .key").all_inner_texts()
        counts = [int(line.split("\n")[-1]) for line in lines]
        hops = list(far.values())
        assert counts == [
            *(hops.count(hop) for hop in range(max(hops) + 1)),
            len(graph) - len(far),
        ]
        unreachable += counts[-1]
    assert unreachable


@pytest.mark.parametrize("name", few(["intervals", "hours"], ["hours"]))
def test_relays_are_shown_beside_the_subscribers(look: Look, plays: Plays, name: str) -> None:
    run, looking = plays[name], look()
    page = looking.open(name)
    rng, relayed = np.random.default_rng(9), 0
    arrivals = rng.choice([row["tick"] for row in run.rows["receptions"]], 4).tolist()
    for place, tick in enumerate([*arrivals, *moments(run, 23, 2)]):
        topics, how = [place % 3, (place + 1) % 3][: 1 + place % 2], ["any", "all"][place // 2 % 2]
        looking.state(t=tick, topics=topics, how=how, relays=1)
        subscribers = [run.subscribers(topic, tick) for topic in topics]
        members = [
            of_topic | run.relays(topic, tick)
            for topic, of_topic in zip(topics, subscribers, strict=True)
        ]
        pairs = [{pair for pair in run.pairs(tick) if peers.issuperset(pair)} for peers in members]
        together = set.union if how == "any" else set.intersection
        everybody = together(*members)
        assert looking.said() == (len(everybody), len(together(*pairs)))
        assert figures(page)["Relays among them"] == str(len(everybody - together(*subscribers)))
        relayed += len(everybody - together(*subscribers))
        if place == 0:
            assert looking.counted() == looking.said()
    assert relayed


def test_hidden_peers_are_left_out_and_pinned_ones_stay(look: Look, plays: Plays) -> None:
    run, looking, tick = plays["intervals"], look(), 20
    present = sorted(run.present(tick))
    pinned, hidden = present[:2], present[2:5]
    page = looking.open("intervals", f"t={tick}&least=1000")
    looking.state(pins=pinned, hidden=hidden)
    pairs = {pair for pair in run.pairs(tick) if set(pair) <= {*pinned}}
    assert looking.said() == (2, len(pairs)) == looking.counted()
    expect(page.locator(".label.pinned")).to_have_text([run.peers[peer] for peer in pinned])
    looking.state(least=None)
    remaining = {*present} - {*hidden}
    assert looking.said() == (
        len(remaining),
        len([p for p in run.pairs(tick) if remaining.issuperset(p)]),
    )
    page.get_by_role("button", name=f"Hidden: remove {run.peers[hidden[0]]}").click()
    expect(page).to_have_url(re.compile(rf"hide={hidden[1]}&hide={hidden[2]}"))


def test_filters_go_by_keys_and_into_the_address(look: Look, plays: Plays) -> None:
    looking, peer = look(), sorted(plays["intervals"].present(20))[0]
    page = looking.open("intervals", f"t=20&sel={peer}")
    page.get_by_label("Least degree").focus()
    page.keyboard.type("2")
    page.keyboard.press("Tab")
    page.keyboard.type("9")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_label("Only the component")).to_be_checked()
    page.get_by_label("news").check()
    page.get_by_label("Relays too").press("Space")
    expect(page).to_have_url(re.compile("topic=0&relays=1"))
    page.get_by_label("Window").focus()
    page.keyboard.type("5 s")
    expect(page).to_have_url(re.compile("window=5&least=2&most=9&component=1"))
    expect(page.get_by_role("heading", name="In the last 5 s")).to_be_visible()
    page.get_by_role("button", name="Pin", exact=True).press("Enter")
    expect(page).to_have_url(re.compile(f"pin={peer}"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"hide={peer}"))
    page.go_back()
    page.go_back()
    expect(page.get_by_label("Only the component")).to_be_checked()
    page.reload()
    looking.wait()
    expect(page.get_by_label("Least degree")).to_have_value("2")
    expect(page.get_by_label("Window")).to_have_value("5")


def test_last_layer_stays_when_it_is_unticked(look: Look) -> None:
    page = look().open("intervals", "t=20&layer=ring")
    box = page.get_by_label("What is shown").get_by_label("ring", exact=True)
    box.click()
    expect(box).to_be_checked()
    assert page.evaluate("() => explorer.state.layers") == ["ring"]


def test_keys_choose_on_in_a_group_that_was_drawn_again(look: Look) -> None:
    looking = look()
    page = looking.open("intervals", "t=20&sel=3")
    page.get_by_label("Selected peer").get_by_label("all", exact=True).focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        looking.wait()
    assert page.evaluate("() => [explorer.state.ego, explorer.state.t]") == [2, 20]
