"""Names that are made to do harm, from the input to every answer, export and figure.

They come back as they were, or are refused with a reason. Nothing that asks ever writes.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from tests.integration.graph.conftest import Graph
from tests.support.few import few
from tests.support.hostile import OF_NO_RUN, REFUSED, TAKEN, reports
from tests.support.ingested import Store, copied
from vizpub import cypher
from vizpub.cli.main import app
from vizpub.graphstore.ask.queries import ask, query_names
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import UseError
from vizpub.model.run import NO_NAME_OF_A_RUN
from vizpub.questions.run import Run
from vizpub.runstore.writer import writing

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

RUN = "hostile-" + "x" * 92
"""As long as the name of a run may be."""
FILE = "input '\"`$(x) \u202e[a]{b}*?\n\\.ndjson"
PLACE = "work ' \" `$(x) space"
GEXF = "{http://gexf.net/1.3}"
GIVEN = {"at": 0, "from": 0, "to": 1, "before": 0, "after": 1, "mode": "all"}
WRITING = sessions.writing
WORDS = {
    "links", "subscriptions", "presence", "links to", "publishes", "subscribes", "plays", "present",
    "rendezvous",
}  # fmt: skip
"""What answers say in words of their own."""
NAMED = ("peer", "topic", "message")
SILENT = {
    "top-relays", "degree-change", "overlay-diff", "duplicates-of-message", "duplicates-of-topic",
    "missed-messages", "missed-subscribers", "relays", "clients-of-channel",
}  # fmt: skip
"""Questions that have nothing to tell of this run."""


def some_of(names: Iterable[str], step: int) -> list[Any]:
    """All of them; those between the steps are long."""
    return [
        name if not place % step else pytest.param(name, marks=pytest.mark.long)
        for place, name in enumerate(names)
    ]


@dataclass(frozen=True)
class Hostile:
    """The run, in its workspace and in Neo4j, and calls of vizpub there."""

    workspace: Path
    graph: Graph

    @property
    def run(self) -> Run:
        return Run.open(self.workspace, RUN)

    def ask(self, query: str, **given: Any) -> list[list[Any]]:
        return ask(self.graph.driver, self.graph.database, query, given, run=RUN).rows

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(app, ["--workspace", str(self.workspace), *words])

    def done(self, *words: str) -> str:
        result = self(*words)
        assert (result.exit_code, result.exception) == (0, None), result.output[-2000:]
        return result.stdout


@pytest.fixture(scope="module")
def vizpub(
    tmp_path_factory: pytest.TempPathFactory,
    stored: Store,
    neo4j_server: Connection,
) -> Iterator[Hostile]:
    """One ingest of all names, and one load."""
    workspace = tmp_path_factory.mktemp(PLACE)
    (workspace / FILE).write_text("".join(json.dumps(r) + "\n" for r in reports()), "utf-8")
    made = stored.below(PLACE)(RUN, workspace)
    run = copied(made, workspace)
    with connect(neo4j_server) as driver, pytest.MonkeyPatch.context() as patch:
        load_run(driver, neo4j_server.database, run.facts, run)
        patch.setattr(sessions, "writing", nobody_writes)
        patch.setenv("NEO4J_URI", neo4j_server.uri)
        patch.setenv("NEO4J_USERNAME", neo4j_server.username)
        patch.setenv("NEO4J_PASSWORD", neo4j_server.password)
        patch.setenv("NEO4J_DATABASE", neo4j_server.database)
        yield Hostile(workspace, graph := Graph(driver, neo4j_server.database))
        patch.setattr(sessions, "writing", WRITING)
        graph.remove(RUN)


def nobody_writes(*_: object) -> NoReturn:
    """What takes the place of sessions that write, for all but loading and removing."""
    pytest.fail("a session that writes was opened for a question")


def texts(value: object) -> Iterator[str]:
    """All text in an answer, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(texts, value.values()))
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(texts, value))


def after(name: str) -> str:
    return TAKEN[(TAKEN.index(name) + 1) % len(TAKEN)]


def test_tables_hold_hostile_names_unchanged(vizpub: Hostile) -> None:
    run = vizpub.run
    assert set(run.peers) == set(run.topics) == set(TAKEN)
    assert set(run.table("publications")["name"].to_pylist()) == set(TAKEN)
    assert set(run.table("links")["layer"].to_pylist()) == set(TAKEN)
    assert (run.facts.protocol, run.facts.parameters) == (TAKEN[0], {TAKEN[1]: TAKEN[2]})


def test_impossible_peer_names_are_quarantined_with_their_reason(vizpub: Hostile) -> None:
    refused = vizpub.run.table("quarantine").to_pylist()
    assert [row["reason"] for row in refused] == [f"'peer' {why}" for why in REFUSED.values()]
    for row, name in zip(refused, REFUSED, strict=True):
        assert f'"peer": {json.dumps(name)}, ' in row["text"]
    assert {Path(row["file"]).name for row in refused} == {FILE}


def test_neo4j_holds_hostile_names_unchanged(vizpub: Hostile) -> None:
    graph, stored = vizpub.graph, vizpub.run.stored
    assert verify_run(graph.driver, graph.database, stored.facts, stored) == []
    for label in ("Peer", "Topic", "Message"):
        found = graph.ask(f"MATCH (n:{label}) WHERE n.key STARTS WITH $of RETURN n.name", of=RUN)
        assert sorted(name for (name,) in found) == sorted(TAKEN)


def test_hostile_peer_is_found_and_no_other_one(vizpub: Hostile) -> None:
    for name in TAKEN:
        ((path,),) = [row[1:] for row in vizpub.ask("shortest-path", at=0, **{
            "from": name, "to": after(name)})]  # fmt: skip
        assert path == [name, after(name)]


@pytest.mark.parametrize("query", few(query_names(), query_names()[::4]))
def test_query_takes_hostile_names_and_invents_none(vizpub: Hostile, query: str) -> None:
    asked = cypher.statement("queries", query).parameters
    turn, answered = 6 * query_names().index(query), set[str]()
    for name in islice(cycle(TAKEN), turn, turn + 6):
        given: dict[str, Any] = {
            p.name: GIVEN[p.name]
            for p in asked
            if p.name in GIVEN and not (p.type == "tick" and p.optional)
        }
        given |= {p.name: name for p in asked if p.type in NAMED}
        given |= {p.name: [name, after(name)] for p in asked if p.type == "layers"}
        found = set(texts(vizpub.ask(query, **given)))
        if query != "runs":
            assert found <= {*TAKEN, *WORDS}
            answered |= found
    assert query == "runs" or (query in SILENT) == answered.isdisjoint(TAKEN)


@pytest.mark.parametrize(
    "name", [*REFUSED, *some_of((f"{name}\u0301" for name in TAKEN), 8), "\udcff"]
)
def test_unknown_topic_name_is_refused_without_control_characters(
    vizpub: Hostile, name: str
) -> None:
    result = vizpub("query", RUN, "topic-subgraph", "-p", "at=0", "-p", f"topic={name}")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert unsafe(result.output) == set()
    assert len(result.stderr) < 1_000


def unsafe(text: str) -> set[str]:
    """Characters that a terminal obeys."""
    found = set(text) - {"\n"}
    return {c for c in found if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


@pytest.mark.parametrize("name", some_of(TAKEN, 4))
def test_commands_take_hostile_names(vizpub: Hostile, name: str) -> None:
    drawn = vizpub.done("message", RUN, "--", name)
    assert unsafe(drawn) == set()
    links = json.loads(vizpub.done("topic", RUN, "--at", "0", "-f", "json", "--", name))
    assert {(link["src"], link["dst"]) for link in links if link["dst"]} == {(name, after(name))}
    assert vizpub.done("path", RUN, "-f", "csv", "--at", "0", "--", name, after(name))


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_machine_readable_output_holds_hostile_names_unchanged(
    vizpub: Hostile, form: str, tmp_path: Path
) -> None:
    file = tmp_path / f"overlay.{form}"
    vizpub.done("query", RUN, "overlay", "-p", "at=0", "-o", str(file))
    text = file.read_text("utf-8")
    rows: list[dict[str, Any]]
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    elif form == "json":
        rows = json.loads(text)
    else:
        rows = [json.loads(line) for line in text.split("\n") if line]
    assert {(row["src"], row["dst"]) for row in rows} == {(n, after(n)) for n in TAKEN}


@pytest.mark.parametrize("form", ["md", "table"])
def test_tables_for_people_hold_no_control_characters(vizpub: Hostile, form: str) -> None:
    assert unsafe(vizpub.done("query", RUN, "overlay", "-p", "at=0", "-f", form)) == set()
    assert unsafe(vizpub.done("sql", RUN, "FROM quarantine", "-f", form)) == set()


def test_csv_export_holds_hostile_names_unchanged(vizpub: Hostile, tmp_path: Path) -> None:
    vizpub.done("export", "csv", RUN, "-o", str(tmp_path))
    for table in ("peers", "topics", "publications"):
        with (tmp_path / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            assert {row["name"] for row in csv.DictReader(file)} == set(TAKEN)


def test_gexf_holds_hostile_names_as_xml_allows(vizpub: Hostile, tmp_path: Path) -> None:
    whole = tmp_path / "whole.gexf"
    vizpub.done("export", "gexf", RUN, "-o", str(whole))
    held = {name: name.translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}) for name in TAKEN}
    assert names_in(whole) == set(held.values())
    for place, name in enumerate(TAKEN[::4]):
        spread, part = tmp_path / f"message-{place}.gexf", tmp_path / f"topic-{place}.gexf"
        vizpub.done("export", "gexf", RUN, f"--message={name}", "-o", str(spread))
        vizpub.done("export", "gexf", RUN, f"--topic={name}", "-o", str(part))
        assert names_in(spread) == names_in(part) == {held[name], held[after(name)]}
    vizpub.done("export", "check", *map(str, tmp_path.glob("*.gexf")))


def names_in(file: Path) -> set[str | None]:
    values = ElementTree.parse(file).iterfind(f".//{GEXF}node//{GEXF}attvalue[@for='name']")
    return {value.get("value") for value in values}


@pytest.mark.parametrize(
    "form", ["svg", *(pytest.param(form, marks=pytest.mark.long) for form in ("png", "pdf"))]
)
def test_figures_of_hostile_names_are_drawn(vizpub: Hostile, form: str, tmp_path: Path) -> None:
    file, worst = str(tmp_path / f"figure.{form}"), TAKEN[-1]
    for place in range(0, len(TAKEN), 9):
        some = (f"--peer={name}" for name in TAKEN[place : place + 9])
        vizpub.done("plot", RUN, "degree", *some, "-o", file)
    vizpub.done("plot", RUN, "--kind=tree", "-o", file, worst)
    vizpub.done("plot", RUN, "--kind=overlay", "--at=0", f"--topic={worst}", "-o", file)


@pytest.mark.parametrize("name", few(OF_NO_RUN, OF_NO_RUN[::4]))
def test_impossible_run_name_is_refused(vizpub: Hostile, name: str) -> None:
    elsewhere = vizpub.workspace / "x"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "run.json").write_text("{}")
    for words in (("runs", "show"), ("runs", "remove", "--yes"), ("neo4j", "load")):
        result = vizpub(*words, "--", name)
        assert result.exit_code == 2, result.output
        assert result.stderr.startswith("error: ")
        assert unsafe(result.stderr) == set()
    with pytest.raises(UseError, match=NO_NAME_OF_A_RUN), writing(vizpub.workspace, name):
        pass
    assert (elsewhere / "run.json").exists()
    assert [path.name for path in (vizpub.workspace / "runs").iterdir()] == [RUN]


def test_run_of_hostile_names_is_listed_shown_and_removed(
    vizpub: Hostile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (listed,) = json.loads(vizpub.done("runs", "list", "-f", "json"))
    assert (listed["run"], listed["neo4j"], listed["protocol"]) == (RUN, "complete", TAKEN[0])
    assert unsafe(vizpub.done("runs", "show", RUN)) == set()
    monkeypatch.setattr(sessions, "writing", WRITING)
    place = vizpub.workspace / "runs" / RUN
    kept = shutil.copytree(place, tmp_path / RUN)
    vizpub.done("runs", "remove", RUN, "--yes")
    assert list((vizpub.workspace / "runs").iterdir()) == []
    assert vizpub.graph.ask("MATCH (n) WHERE n.key STARTS WITH $run RETURN n", run=RUN) == []
    shutil.move(kept, place)  # for the tests that come after it
    vizpub.done("neo4j", "load", RUN)
