"""The page's interface, asked as a browser asks it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.support.explored import Explorer, Told, exploring
from tests.unit.conftest import METRICS, ROWS, SECOND
from vizpub.explorer.server.web import COOKIE, HEADERS, PAGE

Ask = Callable[..., Told]


@pytest.fixture(scope="module")
def explorer(made_once: Path) -> Iterator[Explorer]:
    with exploring(made_once) as server:
        yield server


@pytest.fixture
def ask(explorer: Explorer) -> Ask:
    """A question about the run `monday` that is answered."""

    def ask(what: str, **query: Any) -> Told:
        told = explorer.ask(f"/api/runs/monday/{what}", query=query)
        assert told.status == 200, told.text
        return told

    return ask


def at(tables: dict[str, np.ndarray], tick: int) -> tuple[set[int], set[tuple[int, int]]]:
    """Peers and pairs that a page shows."""
    rank = np.searchsorted(tables["times"], tick, side="right") - 1
    shown = [
        (tables[f"{of}_begin"] <= rank) & (rank < tables[f"{of}_end"]) for of in ("peer", "pair")
    ]
    pairs = zip(tables["src"][shown[1]].tolist(), tables["dst"][shown[1]].tolist(), strict=True)
    return set(tables["peer"][shown[0]].tolist()), set(pairs)


def holding(name: str, tick: int) -> list[tuple[Any, ...]]:
    return [row for row in ROWS[name] if row[-2] <= tick < row[-1]]


MOMENTS = (0, SECOND // 2 - 1, SECOND // 2, 2 * SECOND - 1, 2 * SECOND, 3 * SECOND, 4 * SECOND - 1)


@pytest.mark.parametrize("tick", MOMENTS)
@pytest.mark.parametrize("layers", [(), ("mesh",), ("mesh", "overlay")])
def test_overlay_equals_the_rows_that_hold(ask: Ask, tick: int, layers: tuple[str, ...]) -> None:
    peers, pairs = at(ask("overlay", layer=list(layers)).arrays(), tick)
    assert peers == {row[0] for row in holding("presence", tick)}
    assert pairs == {row[:2] for row in holding("links", tick) if not layers or row[2] in layers}


@pytest.mark.parametrize("tick", MOMENTS)
@pytest.mark.parametrize(("topics", "how"), [((0,), "any"), ((0, 1), "any"), ((0, 1), "all")])
def test_part_of_topics_is_between_subscribers(
    ask: Ask, tick: int, topics: tuple[int, ...], how: str
) -> None:
    peers, pairs = at(ask("overlay", topic=list(topics), how=how).arrays(), tick)
    of = [{p for p, t, *_ in holding("subscriptions", tick) if t == topic} for topic in topics]
    links = {row[:2] for row in holding("links", tick)}
    among = [{pair for pair in links if of_topic.issuperset(pair)} for of_topic in of]
    assert peers == (set.union(*of) if how == "any" else set.intersection(*of))
    assert pairs == (set.union(*among) if how == "any" else set.intersection(*among))


def test_window_has_its_intervals_only(ask: Ask, explorer: Explorer) -> None:
    part = {"intervals": "1-2"}
    clock = explorer.ask("/api/runs/monday", query=part).json()["clock"]
    assert (clock["first"], clock["last"]) == (1, 2)
    values, of_one, links = (
        ask(path, name=name, **part, **more).arrays()["values"].tolist()
        for path, name, more in (
            ("column", "degree", {"block": 0}), ("peer/curves", "degree", {"peer": 1}),
            ("curve", "links", {}),
        )
    )  # fmt: skip
    assert len(values) == 2 * 4
    np.testing.assert_array_equal(of_one, values[1::4])
    whole = ask("curve", name="links").arrays()["values"].tolist()
    assert links == whole[1:3]
    for refused in ("9-12", "2-1", "x", "1-"):
        answer = explorer.ask("/api/runs/monday", query={"intervals": refused})
        assert answer.status == 400, refused


def test_column_has_the_values_of_each_interval(ask: Ask) -> None:
    found = ask("column", name="degree", block=0).arrays()
    values = found["values"].reshape(4, 4)
    for row in METRICS["metrics/peers"]:
        assert values[row["interval"], row["peer"]] == row["degree"]
    assert np.isnan(values).sum() == values.size - len(METRICS["metrics/peers"])
    assert found["low"].tolist() == [2, 2, 1, 0]
    assert found["high"].tolist() == [2, 2, 2, 1]
    extent = ask("extent", name="degree").json()
    assert extent == {"low": 0, "high": 2}


def test_gauges_are_columns_too(ask: Ask) -> None:
    values = ask("column", name="gauge:hops", block=0).arrays()["values"].reshape(4, 4)
    known = {(0, 0): 4.0, (0, 1): 8.0, (2, 1): 1.0}
    assert {place: values[place] for place in zip(*np.nonzero(~np.isnan(values)), strict=True)} == (
        known
    )


def test_curve_has_a_value_for_each_interval(ask: Ask) -> None:
    assert ask("curve", name="links").arrays()["values"].tolist() == [4, 4, 2, 1]
    diameter = ask("curve", name="diameter").arrays()["values"]
    assert np.isnan(diameter).tolist() == [False, False, False, True]


def test_curves_of_a_peer_have_its_values(ask: Ask) -> None:
    names = ["gauge:hops", "degree", "betweenness"]
    values = ask("peer/curves", peer=1, name=names).arrays()["values"].reshape(3, 4)
    np.testing.assert_array_equal(values, [[8, np.nan, 1, np.nan], [2, 2, 2, 1], [np.nan] * 4])


def test_curves_of_a_topic_have_its_values(ask: Ask) -> None:
    names = ["subscribers", "topic_links"]
    for row in METRICS["metrics/topics"]:
        values = ask("topic/curves", topic=row["topic"], name=names).arrays()["values"]
        assert values.reshape(2, 4)[:, row["interval"]].tolist() == [row[name] for name in names]


def test_curves_of_a_link_count_its_copies(ask: Ask) -> None:
    for one, other in ((0, 1), (1, 2), (3, 2), (0, 2)):
        copies = [row for row in ROWS["receptions"] if {row[1], row[2]} == {one, other}]
        names = ["first_copies", "copies"]
        values = ask("link/curves", src=one, dst=other, name=names).arrays()["values"]
        assert values.reshape(2, 4).tolist() == [
            [sum(row[4] == i for row in of) for i in range(4)]
            for of in ([row for row in copies if row[6]], copies)
        ]


def test_path_is_that_of_the_command(ask: Ask) -> None:
    query = {"from": 0, "to": 2, "tick": SECOND}
    told = ask("path", **query).json()
    assert told["peers"] == [0, 3, 2]
    late = ask("path", **{**query, "tick": 3 * SECOND}).json()
    assert late["peers"] is None
    absent = {"from": 0, "to": 3, "tick": 3 * SECOND}
    assert "dave" in ask("path", **absent).json()["why"]


def test_facts_of_a_peer_are_those_of_the_tables(ask: Ask) -> None:
    told = ask("peer", peer=3, tick=SECOND).json()
    assert told["name"] == "dave"
    assert told["present"] == [[0, 2 * SECOND]]
    assert told["topics"] == ["sport/日本"]
    assert told["values"]["degree"] == 2


def test_runs_are_listed_with_their_figures(explorer: Explorer) -> None:
    found = {row["run"]: row for row in explorer.ask("/api/runs").json()["runs"]}
    assert found["monday"]["peers"] == 4
    assert found["monday"]["hit_ratio"] == 0.5
    assert found["monday"]["curve"]["values"] == [4, 4, 3, 3]
    assert found["half"]["state"] == "ingesting"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nosuch", 404),
        ("..%2f..%2fetc", 404),
        ("monday/column?name=nosuch&block=0", 404),
        ("monday/column?name=degree&block=-1", 400),
        ("monday/column?name=degree", 400),
        ("monday/peer?peer=99&tick=0", 400),
        ("monday/peer?peer=0&tick=99000000", 400),
        ("monday/topic/curves?topic=99&name=subscribers", 400),
        ("monday/topic/curves?topic=0&name=nosuch", 404),
        ("monday/link/curves?src=0&dst=99&name=copies", 400),
        ("monday/link/curves?src=0&dst=1&name=nosuch", 404),
        ("monday/overlay?layer=nosuch", 404),
        ("monday/overlay?topic=99999999999999999999", 400),
        ("monday/places/nosuch", 404),
        ("half", 500),
        ("monday?of=another", 409),
    ],
)
def test_wrong_question_gets_an_error_in_words(explorer: Explorer, path: str, code: int) -> None:
    answer = explorer.ask(f"/api/runs/{path}")
    assert answer.status == code
    assert answer.json()["error"]


def test_answers_have_the_headers_of_safety(explorer: Explorer) -> None:
    for path in ("/", "/main.js", "/api/runs", "/nosuch"):
        headers = explorer.ask(path).headers
        assert {name: headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_foreign_host_gets_nothing(explorer: Explorer, host: str) -> None:
    answer = explorer.ask("/api/runs", Host=host)
    assert answer.status == 400
    assert "monday" not in answer.text


def test_server_only_reads(explorer: Explorer) -> None:
    assert explorer.ask("/api/runs", "POST").status == 405
    assert explorer.ask("/api/runs/monday", "DELETE").status == 405


def cookie_of(server: Explorer) -> str:
    return f"{COOKIE}_{urlsplit(server.address).port}"


LEAVE = b'{"peer": 0, "action": "leave"}'


@pytest.mark.parametrize(
    ("status", "body", "changes"),
    [
        (401, LEAVE, {"cookie": "another"}),
        (403, LEAVE, {"origin": "http://elsewhere.example"}),
        (403, LEAVE, {"origin": "null"}),
        (415, LEAVE, {"content-type": "text/plain"}),
        (400, b"[]", {}),
        (400, b"{", {}),
        (400, b" " * 2_000 + LEAVE, {}),
        (400, b'{"peer": true, "action": "leave"}', {}),
        (400, b'{"peer": 99, "action": "leave"}', {}),
        (400, b'{"peer": -1, "action": "leave"}', {}),
        (400, b'{"peer": 0, "action": "explode"}', {}),
        (400, LEAVE, {}),  # nobody collects the run
    ],
)
def test_commands_come_from_the_page_of_who_has_the_token(
    made_once: Path, status: int, body: bytes, changes: dict[str, str]
) -> None:
    with exploring(made_once, "secret", commands=True) as server:
        sent = {
            "cookie": "secret",
            "origin": server.address.rstrip("/"),
            "content-type": "application/json",
            **changes,
        }
        sent["cookie"] = f"{cookie_of(server)}={sent['cookie']}"
        told = server.ask("/api/runs/monday/commands", "POST", body=body, **sent)
        assert (told.status, bool(told.json()["error"])) == (status, True)


@pytest.mark.parametrize(("token", "commands"), [("secret", False), (None, True)])
def test_commands_need_a_token_and_permission(made_once: Path, token: str, commands: bool) -> None:
    with exploring(made_once, token, commands=commands) as server:
        own = {"cookie": f"{cookie_of(server)}=secret", "origin": server.address.rstrip("/")}
        told = server.ask("/api/runs/monday/commands", "POST", body=LEAVE, **own)
        assert told.status == 405


def test_state_of_a_stored_run_is_not_live(explorer: Explorer, ask: Ask) -> None:
    state = ask("state").json()
    assert state["identity"] == explorer.ask("/api/runs/monday").json()["identity"]
    assert (state["live"], state["behind_s"], state["commands"]) == (False, None, False)


def test_token_opens_once_and_a_cookie_from_then_on(made_once: Path) -> None:
    with exploring(made_once, "secret") as lan:
        assert lan.ask("/api/runs").status == 401
        assert lan.ask("/?token=wrong").status == 401
        assert lan.ask("/api/runs", Cookie=f"{cookie_of(lan)}=wrong").status == 401
        opened = lan.ask("/?token=secret")
        assert opened.status == 303
        assert "secret" not in opened.headers["location"]
        kept = opened.headers["set-cookie"]
        assert "HttpOnly" in kept
        own = kept.partition(";")[0]
        assert own.partition("=")[0] == cookie_of(lan)
        # Browsers send what all servers of a host have set, whatever is in it.
        others = 'prefs={"a":1}', f"{COOKIE}_1=another", "a b"
        assert lan.ask("/api/runs", Cookie="; ".join((*others, own))).status == 200


def test_vendored_files_are_those_of_the_packages() -> None:
    folder = PAGE / "vendor"
    listed = tomllib.loads((folder / "vendored.toml").read_text("utf-8"))
    for name, facts in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == facts["sha256"]
        assert (folder / facts["license-file"]).read_text("utf-8").strip()
        assert name in (PAGE / "index.html").read_text("utf-8")
    licences = {facts["license-file"] for facts in listed.values()}
    assert {path.name for path in folder.iterdir()} == {*listed, *licences, "vendored.toml"}
