from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.words import naming
from vizpub import cypher
from vizpub.graphstore.browser.kit import (
    NO_PAGE,
    PICTURES,
    BrowserAddress,
    browser_page,
    literal,
    settings_command,
    style_command,
    style_sheet,
)
from vizpub.graphstore.load.schema import LABELS, TYPES
from vizpub.model.errors import UseError

ADDRESS = BrowserAddress("http://127.0.0.1:7474/browser/", "bolt://127.0.0.1:7687", "neo4j")


def read_by_browser(link: str) -> str:
    """What Browser takes as the text of a link: it decodes first, then looks for `arg`."""
    found = re.search(r"[?&]arg=([^&#]*)", unquote(link.replace("+", " ")))
    assert found
    return found[1]


def test_link_names_server_database_and_user() -> None:
    asked = parse_qs(urlsplit(ADDRESS.link()).query)
    assert asked == {"dbms": ["bolt://neo4j@127.0.0.1:7687"], "db": ["neo4j"]}
    odd = BrowserAddress(ADDRESS.page, "neo4j+s://host:1", "a@b:c", "runs")
    assert parse_qs(urlsplit(odd.link()).query)["dbms"] == ["neo4j+s://a%40b%3Ac@host:1"]


def test_link_to_a_self_signed_server_has_secure_scheme() -> None:
    own = BrowserAddress(ADDRESS.page, "bolt+ssc://host:1", "neo4j")
    assert parse_qs(urlsplit(own.link()).query)["dbms"] == ["bolt+s://neo4j@host:1"]


@pytest.mark.parametrize(
    ("uri", "page", "expected"),
    [
        ("neo4j+s://graph.example:7687", None, "http://graph.example:7474/browser/"),
        ("bolt://[::1]:7687", None, "http://[::1]:7474/browser/"),
        ("bolt://localhost", "https://graph.example", "https://graph.example/browser/"),
        ("bolt://localhost", "http://h:1/neo4j/browser/?dbms=x#y", "http://h:1/neo4j/browser/"),
    ],
)
def test_browser_page_follows_from_uri_or_given_page(
    uri: str, page: str | None, expected: str
) -> None:
    assert browser_page(uri, page) == expected


@pytest.mark.parametrize("page", ["", "localhost:7474", "//h/browser", "javascript:alert(1)"])
def test_address_that_is_no_page_is_refused(page: str) -> None:
    with pytest.raises(UseError, match=naming(f"'{page}' {NO_PAGE}")):
        browser_page("bolt://localhost", page)


@given(st.text(st.characters(exclude_characters="&#", exclude_categories=["Cs"]), min_size=1))
def test_link_text_is_read_back_by_browser(text: str) -> None:
    assert read_by_browser(ADDRESS.link(text)) == text


@pytest.mark.parametrize("text", ["RETURN 1 & 2", "#"])
def test_link_text_that_browser_would_cut_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=naming("&", "#", text)):
        ADDRESS.link(text)


@pytest.mark.parametrize("folder", ["queries", "browser"])
def test_queries_are_read_back_from_a_link(folder: str) -> None:
    for name in cypher.names(folder):
        text = cypher.statement(folder, name).text
        assert read_by_browser(ADDRESS.link(text)) == text


def test_pictures_of_the_guide_equal_the_browser_statements() -> None:
    assert sorted(PICTURES) == cypher.names("browser")


def test_parameter_means_the_same_in_every_picture() -> None:
    """One `:param` line sets it for all."""
    told = {(p.name, p.type, p.default) for n in PICTURES for p in picture(n).parameters}
    assert len({name for name, _, _ in told}) == len(told)


def picture(name: str) -> cypher.Statement:
    return cypher.statement("browser", name)


def rules() -> dict[str, dict[str, str]]:
    """The style sheet, read as plainly as its lines are."""
    found: dict[str, dict[str, str]] = {}
    for line in style_sheet().splitlines():
        if line.endswith("{"):
            properties = found.setdefault(line[:-1].strip(), {})
        elif line.strip() != "}":
            name, _, value = line.partition(":")
            properties[name.strip()] = value.strip().rstrip(";").strip("'")
    return found


def test_style_sheet_covers_every_label_and_type() -> None:
    """Copies of links for a partition are never drawn by the kit."""
    own = {name for name in TYPES if not re.search(r"_P\d+$", name)}
    expected = {f"node.{label}" for label in LABELS} | {f"relationship.{type}" for type in own}
    assert {selector for selector in rules() if "." in selector} == expected


def test_captions_of_relationships_name_properties_that_loads_set() -> None:
    loads = " ".join(cypher.statement("load", name).text for name in cypher.names("load"))
    texts = " ".join(
        rule["caption"] for selector, rule in rules().items() if selector.startswith("relationship")
    )
    captions = re.findall(r"{(\w+)}", texts)
    assert captions
    assert all(re.search(rf"\b{name}:", loads) for name in captions)


def test_style_colours_by_role_and_sizes_by_degree_class() -> None:
    """Browser applies all rules that match a node in the order of the sheet."""
    order, sheet = list(rules()), rules()
    node: dict[str, str] = {}
    for selector in order:
        if selector in ("node", "node.Peer", "node.Publisher", "node.Hub", "node.Degree16"):
            node |= sheet[selector]
    assert node["color"] == sheet["node.Publisher"]["color"]
    assert node["diameter"] == sheet["node.Degree16"]["diameter"]
    assert node["border-width"] == sheet["node.Hub"]["border-width"]
    sizes = [int(sheet[s]["diameter"][:-2]) for s in order if s.startswith("node.Degree")]
    assert sizes == sorted(set(sizes))


def test_style_command_equals_the_style_sheet() -> None:
    """JSON without a `#` or a `;`: neither the link nor the editor cuts it."""
    command = style_command()
    assert not re.search("[#;&\n]", command)
    sheet = json.loads(command.removeprefix(":style "))
    told = {s: {k: re.sub("#(.{6})", _rgb, v) for k, v in p.items()} for s, p in rules().items()}
    assert sheet == told
    assert list(sheet) == list(rules())


def _rgb(colour: re.Match[str]) -> str:
    red, green, blue = (int(colour[1][i : i + 2], 16) for i in (0, 2, 4))
    return f"rgb({red}, {green}, {blue})"


def test_settings_command_turns_autocomplete_off() -> None:
    assert json.loads(settings_command().removeprefix(":config "))["autoComplete"] is False


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("monday/12", "'monday/12'"),
        ([[3, -1], []], "[[3, -1], []]"),
        ("'\n}&#;$x`\\", r"'\u0027\u000a\u007d\u0026\u0023\u003b\u0024x\u0060\u005c'"),
        ("é😀", r"'\u00e9\ud83d\ude00'"),
    ],
)
def test_literals_are_cypher_with_escapes(value: object, text: str) -> None:
    assert literal(value) == text
