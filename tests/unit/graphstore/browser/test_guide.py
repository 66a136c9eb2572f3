from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser
from pathlib import Path

from vizpub.graphstore.browser.guide import Entry, Guide, guide_page
from vizpub.model.clock import Clock
from vizpub.model.run import RunFacts

HOSTILE = """</pre><script>alert(1)</script>" onload='x' $run ${run} & é"""


class Page(HTMLParser):
    """The elements of a page, and the text in `pre`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open = tag
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.open = ""

    def handle_data(self, data: str) -> None:
        self.texts[self.open] = self.texts.get(self.open, "") + data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(protocol: str = "none") -> Page:
    facts = RunFacts("monday", "synthetic", Clock(5, 1000, 0, 9), protocol)
    links = dict.fromkeys(("browser", "style", "settings"), "http://127.0.0.1:1/browser/?a=b&c=d")
    commands = dict.fromkeys(("settings", "parameters"), ":config {}")
    entries = [
        Entry(HOSTILE, HOSTILE, "http://127.0.0.1:1/?arg=x", draws) for draws in (True, False)
    ]
    password = f"in {Path('/somewhere')}/password"
    guide = Guide(
        facts, 4, Path("/somewhere"), password, "bolt://h:1", "neo4j", links, commands, entries
    )
    return Page(guide_page(guide))


def test_hostile_names_stay_text_in_the_guide() -> None:
    found = page(HOSTILE)
    assert len(found.all("script")) == 1
    assert not any(name.startswith("on") for _, attrs in found.elements for name in attrs)
    assert found.texts["pre"].count(HOSTILE) == 2
    assert found.texts["h3"].count(HOSTILE) == 2


def test_guide_page_loads_no_external_resource() -> None:
    found = page()
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in found.elements}
    assert not any("src" in attrs for _, attrs in found.elements)
    assert "url(" not in found.texts["style"].replace("url(#tip)", "")


def test_policy_of_the_guide_allows_only_its_own_script() -> None:
    found = page()
    digest = base64.b64encode(hashlib.sha256(found.texts["script"].encode()).digest()).decode()
    policy = next(m["content"] for m in found.all("meta") if "http-equiv" in m)
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_links_open_in_one_tab() -> None:
    links = [a for a in page().all("a") if a["href"]]
    assert len(links) == 5
    assert {a["target"] for a in links} == {"neo4j-browser"}
