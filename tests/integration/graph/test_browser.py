"""Neo4j Browser in a real Chromium: the guide leads in, and the tables say what is to be drawn."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import networkx as nx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from typer.testing import CliRunner, Result

from tests.integration.graph.conftest import Graph, History, Row
from tests.support.chromium import chromium
from tests.support.few import few
from tests.support.words import tells, unknown
from vizpub.cli.main import app
from vizpub.cypher import names
from vizpub.graphstore.browser.kit import PICTURES
from vizpub.graphstore.server.address import Connection
from vizpub.model.clock import OPEN, Clock
from vizpub.model.run import RunFacts

pytestmark = pytest.mark.neo4j

RUN = "evening"
AT = 4
"""The interval of the message that came to most peers: what the guide looks at."""
PATIENCE_MS = 30_000
PUBLISHER, RENDEZVOUS, PEER = "rgb(232, 149, 106)", "rgb(0, 158, 115)", "rgb(191, 197, 204)"
TOPIC, MESSAGE = "rgb(240, 228, 66)", "rgb(0, 114, 178)"

Vizpub = Callable[..., Result]


def evening() -> History:
    """Two hundred links of 26 peers, of whom some come late and some links end early."""
    graph = nx.barabasi_albert_graph(26, 2, seed=11)
    clock = Clock(1, 1_000_000, 0, 9)
    rows: dict[str, list[Row]] = {
        "peers": [{"peer": i, "name": f"p{i}", "is_reporter": True} for i in graph],
        "topics": [{"topic": i, "name": key} for i, key in enumerate(("news", "sport", "alerts"))],
    }
    begins = {peer: 7 if peer > 22 else 0 for peer in graph}
    rows["presence"] = [
        {"peer": peer, "valid_from": begins[peer], "valid_to": OPEN} for peer in graph
    ]
    rows["links"] = [
        {
            "src": src,
            "dst": dst,
            "layer": "overlay",
            "topic": None,
            "valid_from": valid_from,
            "valid_to": valid_to,
        }
        for n, (a, b) in enumerate(graph.edges)
        for src, dst in ((a, b), (b, a))[: 1 + n % 2]
        for valid_from, valid_to in _lives(n, max(begins[a], begins[b]))
    ]
    rows["subscriptions"] = [
        {"peer": peer, "topic": topic, "valid_from": begins[peer], "valid_to": OPEN}
        for peer in graph
        for topic in range(3)
        if peer % (topic + 2) == 0
    ]
    rows["roles"] = [
        {"peer": 4, "role": "rendezvous", "topic": 0, "valid_from": 0, "valid_to": OPEN}
    ]
    rows["publications"] = [
        {"message": m, "name": f"m{m}", "topic": m % 3, "publisher": publisher, "interval": AT + m,
         "time_us": (AT + m) * 1_000_000, "tick": AT + m, "publication_known": True}
        for m, publisher in enumerate((6, 12, 18, 6))
    ]  # fmt: skip
    rows["receptions"] = list(_receptions(rows["publications"][0], graph.subgraph(range(20))))
    rows["metrics/messages"] = [
        {"message": m, "receptions": reached, "first_receptions": reached, "duplicates": 0,
         "rejections": 0, "hit_ratio": 1.0}
        for m, reached in enumerate((len(rows["receptions"]), 0, 0, 0))
    ]  # fmt: skip
    return History(RunFacts(RUN, "synthetic", clock, "synthetic"), rows)


def _lives(n: int, begin: int) -> Iterator[tuple[int, int]]:
    """Every fifth link ends before AT and comes again after it."""
    if n % 5 or begin > AT:
        yield begin, OPEN
    else:
        yield begin, AT
        yield AT + 2, OPEN


def _receptions(publication: Row, graph: nx.Graph[int]) -> Iterator[Row]:
    """First receptions along shortest paths from the publisher."""
    hops = nx.single_source_shortest_path_length(graph, publication["publisher"])
    for previous, peer in nx.bfs_edges(graph, publication["publisher"]):
        yield {"message": publication["message"], "peer": peer, "previous_hop": previous,
               "time_us": publication["time_us"] + hops[peer] * 40_000, "interval": AT,
               "tick": AT, "first": True, "hop": hops[peer], "subscribed": True}  # fmt: skip


@pytest.fixture(scope="module")
def run(graph: Graph) -> Iterator[History]:
    graph.remove(RUN)
    yield graph.load(evening())
    graph.remove(RUN)


@pytest.fixture(scope="module")
def workspace(
    graph: Graph, neo4j_server: Connection, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """One whose local server is that of the tests."""
    setting = "SHOW SETTINGS 'server.directories.neo4j_home' YIELD value RETURN value"
    ((found,),) = graph.ask(setting)
    home = Path(found)
    if not (home / "server.json").exists():
        pytest.skip(f"{neo4j_server.uri} is no local server of vizpub: its Browser may be anywhere")
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "neo4j").symlink_to(home)
    return workspace


@pytest.fixture(scope="module")
def vizpub(workspace: Path) -> Vizpub:
    """Calls in the workspace, of its own server unless the environment names one."""

    def call(*words: str, **environment: str) -> Result:
        full = ["--workspace", str(workspace), "neo4j", "browser", *words]
        return CliRunner().invoke(app, full, env={"NEO4J_URI": "", **environment})

    return call


@dataclass(frozen=True)
class Told:
    """What the command says."""

    browser: str
    guide: str
    words: str


@pytest.fixture(scope="module")
def told(run: History, vizpub: Vizpub) -> Told:
    done = vizpub(RUN, "--no-open")
    assert done.exit_code == 0, done.stderr
    browser, guide = done.stdout.splitlines()
    return Told(browser, guide, done.stderr)


@pytest.fixture(scope="module")
def browser_program() -> Iterator[Browser]:
    with chromium() as start:
        yield start()


@pytest.fixture(scope="module")
def guide(browser_program: Browser, told: Told) -> Iterator[Page]:
    """The guide; its links are followed as a click on them would."""
    with browser_program.new_context(viewport={"width": 1100, "height": 620}) as context:
        page = context.new_page()
        page.goto(told.guide)
        yield page


@pytest.fixture(scope="module")
def browser(guide: Page, told: Told, neo4j_server: Connection) -> Page:
    """Neo4j Browser, logged in and set up as the guide says."""
    page = guide.context.new_page()
    page.set_viewport_size({"width": 1200, "height": 800})
    page.goto(told.browser)
    log_in(page, neo4j_server.password)
    kept(page, "neo4j.connections", neo4j_server.password)
    for name, key, value in (
        ("Settings", "neo4j.settings", '"autoComplete":false'),
        ("Colours and sizes", "neo4j.grass", "node.Publisher"),
    ):
        follow(page, guide.get_by_role("link", name=name), neo4j_server.password)
        press_run(page)
        kept(page, key, value)
    return page


def kept(page: Page, key: str, value: str) -> None:
    """Wait until Browser has put something down: it does so some time after it took it."""
    for _ in range(PATIENCE_MS // 100):
        if value in (page.evaluate("key => localStorage[key]", key) or ""):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"Browser keeps no {value} in {key}")


def log_in(page: Page, password: str) -> None:
    page.get_by_test_id("password").fill(password)
    page.get_by_test_id("connect").click()
    expect(page.get_by_text("You are connected")).to_be_visible(timeout=PATIENCE_MS)


def follow(page: Page, link: Locator, password: str) -> None:
    address = link.get_attribute("href")
    assert address is not None
    go(page, address, password)


def go(page: Page, address: str, password: str) -> None:
    """Open Browser, where somebody has logged in before."""
    page.goto(address)
    try:
        expect(page.get_by_text("You are connected")).to_be_visible(timeout=PATIENCE_MS / 3)
    except AssertionError:
        log_in(page, password)  # the server was busy, and Browser asks a person to try again


def press_run(page: Page) -> None:
    page.get_by_test_id("editor-Run").click()


@dataclass(frozen=True)
class Drawing:
    """What there is to see of a graph."""

    nodes: int
    links: int
    colours: Counter[str]
    """Of the nodes."""


def drawn(page: Page, expected: Drawing) -> Drawing:
    """What Browser draws, once there is as much of it as is expected and it has come to rest."""
    nodes = page.locator("g.node")
    expect(nodes).to_have_count(expected.nodes, timeout=PATIENCE_MS)
    at_rest(page)
    fills = page.locator("g.node circle.b-outline").evaluate_all(
        "circles => circles.map(circle => circle.getAttribute('fill'))"
    )
    return Drawing(nodes.count(), page.locator("g.relationship").count(), Counter(fills))


def at_rest(page: Page) -> None:
    before = None
    while before != (now := page.locator("g.layer.nodes").inner_html()):
        before = now
        page.wait_for_timeout(300)


def colour(history: History, peer: int) -> str:
    if peer in {row["peer"] for row in history.rows["roles"]}:
        return RENDEZVOUS
    publishers = {row["publisher"] for row in history.rows["publications"]}
    return PUBLISHER if peer in publishers else PEER


def overlay(history: History) -> Drawing:
    present = {row["peer"] for row in history.alive("presence", AT)}
    links = {(row["src"], row["dst"]) for row in history.alive("links", AT)}
    assert len(links) < len({(row["src"], row["dst"]) for row in history.rows["links"]})
    return Drawing(len(present), len(links), Counter(colour(history, p) for p in present))


def subscriptions(history: History) -> Drawing:
    alive = history.alive("subscriptions", AT)
    colours = Counter(colour(history, peer) for peer in {row["peer"] for row in alive})
    return Drawing(colours.total() + 3, len(alive), colours + Counter({TOPIC: 3}))


def message(history: History) -> Drawing:
    """First receptions, and from the publisher to the message to its topic."""
    receptions = [row for row in history.rows["receptions"] if row["first"]]
    publisher = history.rows["publications"][0]["publisher"]
    peers = {publisher, *(row["peer"] for row in receptions)}
    colours = Counter(colour(history, peer) for peer in peers) + Counter((TOPIC, MESSAGE))
    return Drawing(colours.total(), len(receptions) + 2, colours)


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize(
    ("title", "expect_of", "picture"),
    [
        ("The overlay at a time", overlay, "overlay"),
        ("Who subscribes to what", subscriptions, "subscriptions"),
        ("How a message spread", message, "message"),
    ],
)
def test_guide_link_draws_the_graph_of_the_run(
    browser: Page,
    guide: Page,
    run: History,
    neo4j_server: Connection,
    tmp_path: Path,
    title: str,
    expect_of: Callable[[History], Drawing],
    picture: str,
) -> None:
    entry = guide.get_by_role("article").filter(has=guide.get_by_role("heading", name=title))
    follow(browser, entry.first.get_by_role("link"), neo4j_server.password)
    press_run(browser)
    assert drawn(browser, expected := expect_of(run)) == expected
    frame = browser.get_by_test_id("frame").first
    frame.screenshot(path=pictures(tmp_path) / f"browser-{picture}.png")


def pictures(folder: Path) -> Path:
    """Where pictures go: VIZPUB_PICTURES (docs/pictures for the docs), else the test's folder."""
    return Path(os.environ.get("VIZPUB_PICTURES", folder))


@pytest.mark.long
@pytest.mark.browser
def test_saved_query_draws_with_the_saved_parameters(
    browser: Page, run: History, told: Told, neo4j_server: Connection
) -> None:
    folder = Path(told.guide.removeprefix("file://")).parent
    go(browser, told.browser, neo4j_server.password)
    type_in(browser, values := (folder / "parameters.cypher").read_text("utf-8"))
    done = browser.get_by_title("Status: success")
    expect(done).to_have_count(values.count(":param "), timeout=PATIENCE_MS)
    type_in(browser, (folder / "draw-overlay.cypher").read_text("utf-8"))
    assert drawn(browser, expected := overlay(run)) == expected


def type_in(page: Page, text: str) -> None:
    """Put a text into the editor and run it."""
    page.locator("#monaco-main-editor textarea").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    press_run(page)


@pytest.mark.long
@pytest.mark.browser
def test_typed_statement_that_writes_is_refused(
    browser: Page, told: Told, graph: Graph, neo4j_server: Connection
) -> None:
    go(browser, told.browser, neo4j_server.password)
    type_in(browser, "CREATE (:Peer {run: 'typed'})")
    expect(browser.get_by_text("not allowed").first).to_be_visible(timeout=PATIENCE_MS)
    assert graph.ask("MATCH (p:Peer {run: 'typed'}) RETURN count(p)") == [[0]]


@pytest.mark.long
@pytest.mark.browser
def test_guide_button_copies_its_query_to_the_clipboard(guide: Page, tmp_path: Path) -> None:
    guide.get_by_role("heading", name="3 · Pictures").evaluate(
        "heading => heading.scrollIntoView()"
    )
    guide.screenshot(path=pictures(tmp_path) / "browser-guide.png")
    guide.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = guide.get_by_role("article").first.get_by_role("button")
    button.click()
    expect(button).to_have_text("Copied")
    text = guide.evaluate("navigator.clipboard.readText()")
    assert text.startswith("// The overlay at a time")
    assert "MATCH (run:Run {key: 'evening'})" in text


@pytest.mark.parametrize("kind", few(["draw", "ask"], ["draw"]))
def test_saved_queries_all_run_with_the_saved_parameters(
    told: Told, graph: Graph, kind: str
) -> None:
    folder = Path(told.guide.removeprefix("file://")).parent
    lines = re.findall(r"^:param (\w+) => (.+);$", (folder / "parameters.cypher").read_text(), re.M)
    values = {name: graph.ask(f"RETURN {value}")[0][0] for name, value in lines}
    for path in folder.glob(f"{kind}-*.cypher"):
        rows = graph.ask(path.read_text("utf-8"), **values)
        assert rows or kind == "ask", f"{path.name} draws nothing"


def test_queries_are_all_saved_that_the_run_has_layers_for(told: Told) -> None:
    folder = Path(told.guide.removeprefix("file://")).parent
    found = {path.stem for path in folder.glob("*-*.cypher")}
    shipped = {*(f"draw-{n}" for n in PICTURES), *(f"ask-{n}" for n in names("queries"))}
    without = {"tree-depth", "channels-of-client", "clients-of-channel", "channels-of-page"}
    assert shipped - found == {f"ask-{n}" for n in without}, "the run has no links of their layers"
    assert found <= shipped


def test_pictures_of_missing_data_are_left_out(
    run: History, loaded: Callable[[History], History], vizpub: Vizpub
) -> None:
    bare = {name: run.rows[name][:1] for name in ("peers", "presence")}
    facts = replace(run.facts, name="bare", known=("peers", "presence", "links"))
    loaded(History(facts, bare))
    done = vizpub("bare", "--no-open")
    assert done.exit_code == 0, done.stderr
    folder = Path(done.stdout.splitlines()[1].removeprefix("file://")).parent
    assert [path.name for path in folder.glob("draw-*")] == ["draw-overlay.cypher"]


def test_command_names_the_password_file_but_not_the_password(
    told: Told, workspace: Path, neo4j_server: Connection
) -> None:
    file = (workspace / "neo4j").resolve() / "password"
    tells(told.words, "neo4j", file)
    kit = Path(told.guide.removeprefix("file://")).parent
    assert (workspace / "browser" / RUN).samefile(kit)
    assert kit.stat().st_mode & 0o077 == 0
    for path in kit.iterdir():
        assert neo4j_server.password not in path.read_text("utf-8")


def test_browser_command_works_with_a_server_elsewhere(
    told: Told, vizpub: Vizpub, neo4j_server: Connection
) -> None:
    elsewhere = {"NEO4J_URI": neo4j_server.uri, "NEO4J_PASSWORD": neo4j_server.password}
    page = told.browser.partition("?")[0]
    done = vizpub(RUN, "--no-open", "--page", page, **elsewhere)
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, told.browser), done.stderr
    tells(done.stderr, "NEO4J_PASSWORD")
    done = vizpub("--no-open", **elsewhere | {"NEO4J_PASSWORD": "guessed"})
    assert (done.exit_code, done.stdout) == (3, "")
    tells(done.stderr, neo4j_server.uri, "NEO4J_PASSWORD")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("evning",), unknown("run", "evning", "evening")),
        (("<b>'\"\n",), "no run '<b>"),
        (("evening", "--page", "http://localhost/"), "NEO4J_URI"),
    ],
)
def test_wrong_run_or_option_is_refused_with_the_reason(
    run: History, vizpub: Vizpub, words: tuple[str, ...], why: str
) -> None:
    done = vizpub(*words, "--no-open")
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in done.stderr
    assert "Traceback" not in done.stderr
