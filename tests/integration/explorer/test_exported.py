"""An exported file, opened from the disk with the network off: it shows what the tables have, and
answers as the server does.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.integration.explorer.conftest import Looking
from tests.integration.explorer.test_access import found as broken_rules
from tests.integration.explorer.test_page import moments
from tests.support.few import few
from tests.support.hostile import TAKEN
from tests.support.played import LAYERS, Played

pytestmark = pytest.mark.browser

Plays = dict[str, Played]
Export = Callable[..., Path]
TOPIC, WINDOW = 1, (15, 25)


Look = Callable[..., Looking]


@pytest.mark.parametrize("name", few(["intervals", "hours", "hostile"], ["intervals"]))
def test_peers_and_pairs_are_those_of_the_tables_at_any_time(
    look_at: Look, export: Export, plays: Plays, name: str
) -> None:
    run, looking = plays[name], look_at(export(name))
    looking.open(name)
    for tick in moments(run, 7, 10):
        looking.state(t=tick)
        expected = len(run.present(tick)), len(run.pairs(tick))
        assert looking.said() == expected, tick
    assert looking.counted() == expected, tick


@pytest.mark.parametrize("count", few([2, 6], [2]))
def test_topics_and_layers_leave_their_part(
    look_at: Look, export: Export, plays: Plays, count: int
) -> None:
    run, looking = plays["intervals"], look_at(export("intervals"))
    looking.open("intervals")
    for place, tick in enumerate(moments(run, 11, count)):
        topics, layer = [place % 3, (place + 1) % 3], LAYERS[place % 2]
        of_each = [run.subscribers(topic, tick) for topic in topics]
        pairs = [
            {pair for pair in run.pairs(tick, [layer]) if peers.issuperset(pair)}
            for peers in of_each
        ]
        looking.state(t=tick, topics=topics, layers=[layer], how="any")
        assert looking.said() == (len(set.union(*of_each)), len(set.union(*pairs)))
        looking.state(how="all")
        assert looking.said() == (len(set.intersection(*of_each)), len(set.intersection(*pairs)))
        with_relays = [
            peers | run.relays(topic, tick) for topic, peers in zip(topics, of_each, strict=True)
        ]
        looking.state(relays=1)
        assert looking.said()[0] == len(set.intersection(*with_relays))
        looking.state(relays=0)


QUESTIONS = """async (name) => {
  const asked = [];
  const { run } = explorer;
  const plain = (found) => JSON.parse(JSON.stringify(found, (_, value) =>
    (Number.isNaN(value) ? null : ArrayBuffer.isView(value) ? [...value] : value)));
  const ask = async (what, question) => {
    try {
      asked.push([what, plain(await question)]);
    } catch (error) {
      asked.push([what, error.message]);
    }
  };
  const { peers, columns, clock } = run.facts;
  const first = clock.first * clock.ticks, last = (clock.last + 1) * clock.ticks - 1;
  const { exported, ...facts } = run.facts;
  asked.push(["facts", facts]);
  for (const share of [0.4, 1]) {
    const tick = Math.round(first + share * (last - first));
    for (let peer = 0; peer < peers.length; peer += 10) {
      await ask(`peer ${peer} ${tick}`, run.peer(peer, tick));
      const path = await run.path(peer, (peer * 7 + 1) % peers.length, tick, null);
      asked.push([`path ${peer} ${tick}`, [path.peers?.length, !path.why]]);
    }
  }
  for (const { name } of columns.peers) {
    await ask(`extent ${name}`, run.column(name).extent());
  }
  for (const { name } of columns.overlay) await ask(`curve ${name}`, run.curve(name));
  for (const query of [
    { by: "message", first: 0 }, { by: "hit_ratio", down: 1, first: 0 },
    { by: "delay_us_max", first: 2 },
    { by: "topic", down: 1, first: 0, topic: 1 }, { by: "message", first: 0, publisher: 3 },
    { by: "message", first: 0, text: "E" },
  ]) await ask(`messages ${JSON.stringify(query)}`, run.messages(query));
  for (const along of ["delay", "hop"]) {
    await ask(`coverage ${along}`, run.coverage({}, along));
    await ask(`coverage ${along} of a topic`, run.coverage({ topic: 1 }, along));
  }
  for (let message = 0; message < 12; message += 3) {
    await ask(`message ${message}`, run.message(message));
    await ask(`missed ${message}`, run.missed(message));
  }
  for (const [kind, numbers] of [
    ["peer", { peer: 1 }], ["topic", { topic: 1 }], ["link", { src: 3, dst: 7 }],
  ]) {
    const names = columns[`${kind}s`].map(({ name }) => name);
    await ask(`curves of a ${kind}`, run.curvesOf(kind, numbers, names));
  }
  return asked;
}"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["intervals", "hours", "hostile"])
def test_answers_are_those_of_the_server(
    look_at: Look, look: Look, export: Export, name: str
) -> None:
    served = look()
    told = [looking.open(name).evaluate(QUESTIONS) for looking in (look_at(export(name)), served)]
    served.complaints.clear()  # the browser notes an answer that is an error
    for ours, theirs in zip(*told, strict=True):
        assert ours == theirs, ours[0]


ROWS = """async (step) => {
  const { run } = explorer, told = [];
  const described = await run.tables();
  told.push(["tables", described]);
  for (const [place, { name: table, columns }] of described.entries()) {
    const named = columns.filter((of) => of.named).map((of) => `${of.name}_name`);
    for (const query of [
      { by: columns.at(-1).name, down: 1 }, { by: named[0] ?? "", text: "A", first: 1 },
      { peer: 3, other_end: 7 }, { peer: 3, topic: 1, interval: 7, text: "'" },
    ].filter((_, i) => (i + place) % step === 0)) {
      const { command, ...rows } = await run.rows({ first: 0, ...query, table });
      told.push([`${table} ${JSON.stringify(query)}`, rows]);
    }
  }
  return told;
}"""


@pytest.mark.parametrize("step", few([1, 3], [3]))
def test_rows_of_tables_are_those_of_the_server(
    look_at: Look, look: Look, export: Export, step: int
) -> None:
    told = [
        looking.open("hostile", screen="messages").evaluate(ROWS, step)
        for looking in (look_at(export("hostile")), look())
    ]
    for ours, theirs in zip(*told, strict=True):
        assert ours == theirs, ours[0]


def test_part_shows_its_window_topic_and_layers_only(
    look_at: Look, export: Export, plays: Plays
) -> None:
    run = plays["intervals"]
    file = export("intervals", window=WINDOW, topic=TOPIC, layers=("ring",))
    looking = look_at(file)
    page = looking.open("intervals")
    for tick in moments(run, 5, 6):
        looking.state(t=tick)
        shown = page.evaluate("() => explorer.state.t")
        among = run.subscribers(TOPIC, shown)
        pairs = {pair for pair in run.pairs(shown, ["ring"]) if among.issuperset(pair)}
        assert looking.said() == (len(among), len(pairs))
    page.get_by_label("Relays too").check()
    relayed = 0
    for tick in moments(run, 6, 6):
        looking.state(t=tick)
        shown = page.evaluate("() => explorer.state.t")
        relays = run.relays(TOPIC, shown)
        among = run.subscribers(TOPIC, shown) | relays
        pairs = {pair for pair in run.pairs(shown, ["ring"]) if among.issuperset(pair)}
        assert looking.said() == (len(among), len(pairs))
        relayed += len(relays)
    assert relayed
    assert page.evaluate("() => [explorer.run.clock.first, explorer.run.clock.last]") == [*WINDOW]
    page.get_by_text("About this file").click()
    told = page.locator(".file[open] .menu")
    for words in (f"intervals {WINDOW[0]} to {WINDOW[1]}", run.topics[TOPIC], "ring"):
        expect(told).to_contain_text(words)
    published = [
        row["name"]
        for row in run.rows["publications"]
        if row["topic"] == TOPIC and WINDOW[0] <= row["interval"] <= WINDOW[1]
    ]
    page.get_by_role("link", name="Messages").click()
    expect(page.locator(".messages tbody th")).to_have_text(published)


@pytest.mark.long
def test_way_of_a_message_plays(look_at: Look, export: Export, plays: Plays) -> None:
    run, looking = plays["hours"], look_at(export("hours"))
    page = looking.open("hours", screen="messages")
    name = run.rows["publications"][2]["name"]
    page.get_by_role("link", name=name, exact=True).click()
    looking.wait()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    copies = [row for row in run.rows["receptions"] if row["message"] == 2]
    assert page.evaluate("() => explorer.message.copies") == len(copies)
    page.get_by_role("button", name="Next", exact=True).click()
    looking.wait()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


@pytest.mark.long
def test_hostile_names_are_text(look_at: Look, export: Export, plays: Plays) -> None:
    looking = look_at(export("hostile"))
    page = looking.open("hostile", "t=9&view=table")
    for peer in sorted(plays["hostile"].present(9))[::5]:
        looking.state(sel=peer)
        heading = page.get_by_label("Selected peer").get_by_role("heading", level=2)
        assert heading.evaluate("one => one.textContent") == TAKEN[peer]
    assert page.evaluate("() => document.querySelectorAll('script:not([type])').length") == 3


ELSEWHERE = ("#/", "#/run/intervals/compare?at=1", "#/run/x/messages", "")


@pytest.mark.parametrize("address", few(ELSEWHERE, ELSEWHERE[1:3]))
def test_screens_that_it_has_not_lead_to_its_overlay(
    look_at: Look, export: Export, address: str
) -> None:
    looking = look_at(export("intervals"))
    looking.open("intervals", screen="tables")
    looking.page.goto(looking.address + address)
    expect(looking.page.get_by_role("heading", level=1)).to_have_text("intervals")
    expect(looking.page.get_by_label("Screens").get_by_role("link")).to_have_text(
        ["Overlay", "Messages", "Tables"]
    )


def test_file_that_is_cut_off_says_so(look_at: Look, export: Export, tmp_path: Path) -> None:
    whole, cut = export("intervals").read_text("utf-8"), tmp_path / "cut.html"
    cut.write_text(whole[: len(whole) // 2], "utf-8")
    page = look_at(cut).page
    page.goto(cut.as_uri())
    expect(page.locator("#page")).to_contain_text("not complete")


def test_csv_of_a_table_has_the_rows_of_the_filter(
    look_at: Look, export: Export, plays: Plays
) -> None:
    run, looking = plays["hostile"], look_at(export("hostile"))
    page = looking.open("hostile", "table=links&peer=3&interval=7", "tables")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").click()
    assert waiting.value.suggested_filename == "hostile-links.csv"
    with waiting.value.path().open(encoding="utf-8", newline="") as file:
        rows = [
            (row["src_name"], row["dst_name"], row["layer"], int(row["valid_to"]))
            for row in csv.DictReader(file)
        ]
    names = run.peers
    assert rows == [
        (names[row["src"]], names[row["dst"]], row["layer"], row["valid_to"])
        for row in sorted(run.rows["links"], key=lambda of: (of["src"], of["dst"], of["layer"]))
        if 3 in (row["src"], row["dst"]) and row in run.holding("links", 7)
    ]


def test_part_has_the_rows_of_its_window_topic_and_layers(
    look_at: Look, export: Export, plays: Plays
) -> None:
    run = plays["intervals"]
    page = look_at(export("intervals", window=WINDOW, topic=TOPIC, layers=("ring",))).open(
        "intervals", "", "tables"
    )
    totals = dict(page.evaluate(TOTALS, ["metrics/overlay", "subscriptions", "links"]))
    first, last = run.clock.sampling_tick(WINDOW[0] - 1) + 1, run.clock.sampling_tick(WINDOW[1])
    touched = {
        name: [r for r in run.rows[name] if r["valid_from"] <= last and r["valid_to"] > first]
        for name in ("links", "subscriptions")
    }
    of_topic = [row for row in touched["subscriptions"] if row["topic"] == TOPIC]
    members = {row["peer"] for row in of_topic}
    assert totals == {
        "metrics/overlay": WINDOW[1] - WINDOW[0] + 1,
        "subscriptions": len(of_topic),
        "links": len([
            row for row in touched["links"]
            if row["layer"] == "ring" and members.issuperset((row["src"], row["dst"]))
        ]),
    }  # fmt: skip


TOTALS = """async (names) => Promise.all(names.map(async (table) =>
  [table, (await explorer.run.rows({ table, first: 0 })).total]))"""


@pytest.mark.long
def test_pages_of_things_are_in_the_file(look_at: Look, export: Export, plays: Plays) -> None:
    run, looking = plays["hours"], look_at(export("hours"))
    page = looking.open("hours", "sel=3")
    page.get_by_role("link", name="Its page").click()
    looking.wait()
    own = [row for row in run.rows["links"] if 3 in (row["src"], row["dst"])]
    section = page.get_by_label("Links to and from its neighbours", exact=True).first
    expect(section.locator("tbody tr")).to_have_count(len(own))
    section.get_by_role("link", name="Link between").first.click()
    looking.wait()
    expect(page.locator("[data-of=copies]")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text(run.peers[3])


@pytest.mark.long
@pytest.mark.parametrize("screen", ["overlay", "messages", "message", "tables", "peer"])
def test_file_is_open_to_all(look_at: Look, export: Export, screen: str) -> None:
    looking = look_at(export("intervals"), viewport={"width": 1440, "height": 900})
    page = looking.open("intervals", "sel=3" if screen == "overlay" else "", screen)
    page.get_by_text("About this file").click()
    assert broken_rules(looking) == []
