"""What `vizpub query` says without asking Neo4j."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.words import unknown
from vizpub import cypher
from vizpub.cli.commands.everyday.query import COMMANDS
from vizpub.cli.main import app

ROOT = Path(__file__).parents[5]
Call = Callable[..., Result]


@pytest.fixture
def call(workspace: Path) -> Call:
    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(workspace), "query", *words])

    return run


def records(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_queries_are_listed_alone_and_for_a_run(call: Call) -> None:
    listed = records(call("-f", "csv"))
    names = {row["query"] for row in listed}
    assert names | COMMANDS.keys() == {*cypher.names("queries")}
    assert names & COMMANDS.keys() == set()
    assert records(call("monday", "-f", "csv")) == listed
    (paths,) = (row for row in listed if row["query"] == "k-shortest-paths")
    assert paths["parameters"].startswith("at from to")


def test_query_of_a_command_has_its_line_on_the_page() -> None:
    page = (ROOT / "docs" / "queries.md").read_text("utf-8")
    for query, command in COMMANDS.items():
        section = page.split(f"\n## {query}\n")[1].split("\n## ")[0]
        assert f"`vizpub {command}" in section


def test_query_alone_is_explained(call: Call) -> None:
    rows = [tuple(row.values()) for row in records(call("topic-subgraph", "-f", "csv"))]
    assert ("at", "time", "the time") in rows
    assert [row[0] for row in rows if row[1] == "answer"] == ["src", "dst", "layers", "topics"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("overlay monday", "vizpub query monday overlay"),
        ("monday overlya", unknown("query", "overlya", "overlay")),
        ("overlya", unknown("run or query", "overlya", "overlay")),
        ("monday overlay 1 mesh 3", "not 3: at layers"),
        ("monday overlay 1 -p at=2", "parameter at"),
        ("monday overlay --at 1 -p at=2", "parameter at"),
        ("monday overlay mesh rings --at 1", "not 2: layers"),
        ("monday dissemination-tree m0 --at 1", "no parameter at"),
        ("monday dissemination-tree m0 --layers mesh", "no parameter layers"),
        ("monday overlay 1 -p layers=mesh --layers rings", "parameter layers"),
        ("monday overlay 1 mesh --layers rings", "parameter layers"),
        ("monday missing.cypher 1", "missing.cypher"),
    ],
)
def test_mistake_is_told_in_words(call: Call, words: str, said: str) -> None:
    result = call(*words.split())
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize("name", ["missing.cypher", "latin.txt"])
def test_file_of_cypher_that_cannot_be_read_is_named(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.txt").write_bytes(b"RETURN '\xe9'")
    result = CliRunner().invoke(app, ["--workspace", str(workspace), "cypher", name])
    assert result.exit_code == 2, result.output
    assert f"{name} cannot be read" in result.stderr
