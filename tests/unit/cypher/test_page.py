"""The page of the queries says what their headers say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vizpub import cypher

PAGE = (Path(__file__).parents[3] / "docs" / "queries.md").read_text("utf-8")
OURS = ("run", "levels", "ranges")


def _in_words(meaning: str) -> str:
    return re.sub(r"\$(\w+)", r"`\1`", meaning)


def rows(section: str, heading: str) -> list[tuple[str, str]]:
    """(first cell, last cell) of the table under a heading cell."""
    table = re.search(rf"^\| {heading} \|.*\n\| ---.*\n((?:\|.*\n)*)", section, re.M)
    lines = table[1].splitlines() if table else []
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    return [(c[0].strip().strip("`"), c[-1].strip().replace("\\|", "|")) for c in cells]


@pytest.mark.parametrize("name", cypher.names("queries"))
def test_queries_page_section_equals_the_query_header(name: str) -> None:
    query = cypher.statement("queries", name)
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    assert query.purpose in section
    assert rows(section, "parameter") == [
        (p.name, _in_words(p.meaning) + (f"; {p.default} if left out" if p.default else ""))
        for p in query.parameters
        if p.type not in OURS
    ]
    assert rows(section, "column") == [(c.name, _in_words(c.meaning)) for c in query.columns]
    needs = " and ".join(f"`{table}`" for table in query.needs)
    assert needs == "".join(re.findall(r"^Needs (.+)\.$", section, re.M))
    assert re.search(rf"^vizpub query (?:gossipsub |trees |channels )?{name}(?: |$)", section, re.M)


def test_queries_page_has_exactly_the_existing_queries() -> None:
    assert sorted(re.findall(r"^## (.+)$", PAGE, re.M)) == cypher.names("queries")
