"""What is left out of what is reported is unknown to whoever asks, never another answer.

A run of reports that tell everything is asked all there is to ask; then the same reports with
a part left out. Each cell of an answer is what the whole run answers, or null, or it is not there;
or the question is refused in words.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pyarrow as pa
import pytest

from tests.integration.graph.conftest import Calls, Graph, layers_of_channels
from tests.support import reported
from tests.support.ingested import ROOT, Store, copied, workspace_of
from tests.support.reported import MESSAGES, PEERS, TOPICS, first_ones, without, written
from tests.support.words import naming
from vizpub import cypher
from vizpub.graphstore.ask.parameters import user_parameters
from vizpub.graphstore.ask.queries import ask, query_names
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.model.errors import UseError
from vizpub.model.metrics import METRICS
from vizpub.questions import frequent
from vizpub.questions.deliveries import PUBLICATION_UNKNOWN, reasons_of_message
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun

pytestmark = [pytest.mark.neo4j, pytest.mark.spark]

Cells = tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """Rows, or words of a refusal."""

    columns: tuple[str, ...] = ()
    rows: list[Cells] = field(default_factory=list)
    refused: str = ""


Answers = dict[str, Answer]


@dataclass(frozen=True)
class Asked:
    """A run that is loaded, and everything that can be asked of it."""

    graph: Graph
    calls: Calls
    run: StoredRun
    place: Path
    peers: tuple[str, ...] = PEERS
    topics: tuple[str, ...] = TOPICS
    messages: tuple[str, ...] = MESSAGES
    at: tuple[int, int, int] = (1, 2, 4)
    """First, some and last time that is asked for."""

    def everything(self) -> Answers:
        """All answers."""
        return {**self.queries(), **self.exports(), **self.figures(), **self.metrics()}

    def queries(self) -> Answers:
        found = {}
        for name in query_names():
            if name != "runs":
                for values in self._values(name):
                    told = " ".join([name, *map(str, values.values())])
                    found[told] = self._query(name, values)
        return found

    def _query(self, name: str, values: dict[str, Any]) -> Answer:
        try:
            found = ask(self.graph.driver, self.graph.database, name, values, run=self.run.name)
        except UseError as error:
            return Answer(refused=str(error))
        return Answer(found.columns, [tuple(map(_plain, row)) for row in found.rows])

    def _values(self, name: str) -> Iterator[dict[str, Any]]:
        first, some, last = self.at
        at = {"at": some, "before": first, "after": last, "from": first, "to": last}
        peer = {"peer": self.peers[0], "from": self.peers[0], "to": self.peers[1]}
        each: dict[str, Any] = {}
        for p in user_parameters(cypher.statement("queries", name)):
            if p.name == "mode":
                each[p.name] = ["all"]
            elif p.type == "tick" and not p.optional:
                each[p.name] = [at[p.name]]
            elif p.type == "peer":
                each[p.name] = [peer[p.name]]
            elif p.type in ("topic", "message"):
                each[p.name] = getattr(self, f"{p.type}s")
            elif p.name == "k":
                each[p.name] = [1_000]
        for values in product(*each.values()):
            yield layers_of_channels(name) | dict(zip(each, values, strict=True))

    def exports(self) -> Answers:
        parts = [
            ("overlay",),
            ("parallel", "--parallel"),
            *(("topic", "--topic", topic) for topic in self.topics),
            *(("message", "--message", message) for message in self.messages),
        ]
        return {
            " ".join(["gexf", *part]): self._called(
                _of_gexf, "export", "gexf", self.run.name, *part[1:]
            )
            for part in parts
        }

    def figures(self) -> Answers:
        figures = [
            ("--kind", "overlay", "--at", str(self.at[1])),
            ("--kind", "overlay", "--at", str(self.at[1]), "--topic", self.topics[0]),
            ("--kind", "coverage"),
            (self.messages[-1], "--kind", "tree"),
            ("receptions", "control_messages_sent_mean", "links"),
            ("hops_max", "duplicates", "--kind", "ecdf"),
            ("degree", "--kind", "density"),
        ]
        return {" ".join(["plot", *words]): self._plotted(words) for words in figures}

    def _plotted(self, words: tuple[str, ...]) -> Answer:
        file = self.place / "figure.svg"
        done = self._called(lambda _: Answer(), "plot", self.run.name, *words, "-o", str(file))
        if done.refused:
            return done
        with file.with_suffix(".csv").open(newline="") as out:
            columns, *rows = csv.reader(out)
        return Answer(tuple(columns), [tuple(cell or None for cell in row) for row in rows])

    def metrics(self) -> Answers:
        tables = [table.name.removeprefix("metrics/") for table in METRICS]
        return {
            f"metrics {name}": self._called(
                _of_json, "metrics", self.run.name, name, "--format", "json"
            )
            for name in tables
        }

    def _called(self, answer: Callable[[str], Answer], *words: str) -> Answer:
        done = self.calls(*words)
        if done.exit_code == 2:
            return Answer(refused=done.stderr)
        assert done.exit_code == 0, (words, done.exception, done.stderr)
        return answer(done.stdout)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _of_json(text: str) -> Answer:
    rows = json.loads(text)
    columns = tuple(rows[0]) if rows else ()
    return Answer(columns, [tuple(row[name] for name in columns) for row in rows])


def _of_gexf(text: str) -> Answer:
    """A row for each node and edge, and for each value of it in each of its times; what is valid to
    the end of the axis has no end.
    """
    root = ElementTree.fromstring(text)
    axis = max((s.get("end") or "" for s in root.findall(".//{*}spell")), default="")
    rows: list[Cells] = []
    for kind, ends in (("node", ("label", "id", "kind")), ("edge", ("source", "target", "kind"))):
        for one in root.findall(f".//{{*}}{kind}"):
            name = (kind, *(one.get(end) for end in ends))
            periods = [(s.get("start"), s.get("end")) for s in one.findall(".//{*}spell")]
            rows += [(*name, None, s, None if e == axis else e, None) for s, e in periods]
            rows += [(*name, *value) for value in _values_of(one)]
    return Answer(("what", "of", "to", "kind", "attribute", "start", "end", "value"), rows)


def _values_of(one: ElementTree.Element) -> Iterator[Cells]:
    """(attribute, start, end, value), a row for each role. The role that colours a peer is one of
    them; `peer` is who has none that is told.
    """
    told = [
        (value.get("for"), value.get("start"), value.get("end"), value.get("value") or "")
        for value in one.findall(".//{*}attvalue")
    ]
    has_roles = any(name == "roles" for name, *_ in told)
    for name, start, end, value in told:
        if name == "roles":
            yield from (("roles", start, end, role) for role in value.strip("|").split("|") if role)
        elif name != "role":
            yield name, start, end, value
        elif not has_roles:
            yield name, start, end, None if value == "peer" else value


PARTS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "neighbors": without("neighbors"),
    "sent-roles": without("sent", "roles"),
    "topics": without("topics"),
    "roles": without("roles"),
    "sent": without("sent"),
    "received": without("received"),
    "messages": without("sent", "received"),
    "control": without("control"),
    "control-messages": without("control.messages"),
    "control-bytes": without("control.bytes"),
    "publication": without("publication"),
    "publication-messages": without("publication.messages"),
    "publication-bytes": without("publication.bytes"),
    "duplicates": without("duplicates"),
    "events-uncounted": without("received", "duplicates", "publication"),
    "from": without("received.from"),
    "hops": without("received.hops"),
    "from-hops": without("received.from", "received.hops"),
    "received-times": without("received.time_us"),
    "sent-times": without("sent.time_us"),
    "times": without("sent.time_us", "received.time_us"),
    "subscribed": without("received.subscribed"),
    "subscribed-topics": without("received.subscribed", "topics"),
    "publisher": without("sent.publisher", "received.publisher"),
    "bytes": without("sent.bytes", "received.bytes"),
    "to": without("sent.to"),
    "first-ones": first_ones,
}
"""What is left out, by the name of the run."""


@pytest.fixture(scope="module")
def asked(
    stored: Store, graph: Graph, neo4j_server: Connection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Asked]]:
    """Loads, once each, and is ready to ask; what is loaded is removed in the end."""
    place, loaded = tmp_path_factory.mktemp("known"), dict[str, StoredRun]()

    def load(run: StoredRun, **there: Any) -> Asked:
        if run.name not in loaded:
            graph.remove(run.name)
            # What is made when it is asked for is stored, and others share the run.
            loaded[run.name] = copied(run, tmp_path_factory.mktemp("asked"))
            load_run(graph.driver, graph.database, run.facts, loaded[run.name])
        run = loaded[run.name]
        return Asked(graph, Calls(workspace_of(run), neo4j_server), run, place, **there)

    yield load
    for name in loaded:
        graph.remove(name)


@pytest.fixture(scope="module")
def told(stored: Store, asked: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Everything that a run of reports answers."""
    place = tmp_path_factory.mktemp("reports")

    def everything(name: str, records: list[Any]) -> Answers:
        run = stored(name, written(records, place / f"{name}.ndjson"))
        answers: Answers = asked(run).everything()
        return answers

    return everything


@pytest.fixture(scope="module")
def whole(told: Any) -> Answers:
    """What the run that knows everything answers."""
    answers: Answers = told("known-all", reported.reports())
    return answers


@pytest.mark.long
def test_run_that_knows_all_refuses_nothing(whole: Answers) -> None:
    assert {name: one.refused for name, one in whole.items() if one.refused} == {}
    assert {name.split()[0] for name, one in whole.items() if one.rows} == {
        name.split()[0] for name in whole
    }


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
def test_part_that_is_left_out_changes_no_answer_into_another(
    whole: Answers, told: Any, part: str
) -> None:
    found = told(f"known-{part}", PARTS[part](reported.reports()))
    assert found.keys() == whole.keys()
    wrong = {name: w for name, one in found.items() if (w := _wrong(name, whole[name], one))}
    for name, rows in wrong.items():
        print(name)
        for row in rows:
            print("   ", *row)
    assert not wrong


UNKNOWN = ("has no data on", "give --gamma", "give --sigma")
"""In words of refusals that name what is unknown."""


def _wrong(name: str, whole: Answer, part: Answer) -> list[Cells]:
    """Rows that the whole run does not answer, and those of it that have no counterpart."""
    if part.refused:
        return [] if any(told in part.refused for told in UNKNOWN) else [("refused", part.refused)]
    rows, known = _by_columns(whole, part.columns), part.rows
    pairs = nx.Graph()
    pairs.add_nodes_from(("is", i) for i in range(len(known)))
    pairs.add_edges_from(
        (("is", i), ("was", k))
        for i, row in enumerate(known)
        for k, other in enumerate(rows)
        if all(a is None or a == b for a, b in zip(row, other, strict=True))
    )
    top = [("is", i) for i in range(len(known))]
    matched = nx.bipartite.hopcroft_karp_matching(pairs, top)
    wrong: list[Cells] = [
        ("other", row)
        for i, row in enumerate(known)
        if ("is", i) not in matched and not _is_open(row)
    ]
    if known and name.startswith(LISTS):
        return wrong
    return wrong + [("gone", row) for k, row in enumerate(rows) if ("was", k) not in matched]


def _by_columns(answer: Answer, columns: tuple[str, ...]) -> list[Cells]:
    places = [answer.columns.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in answer.rows]


def _is_open(row: Cells) -> bool:
    """It names somebody of whom all is unknown, down to whether the answer is about it."""
    return len(row) > 1 and not any(cell is not None for cell in row[1:])


LISTS = (
    *("history", "peer-history", "dissemination-tree", "gexf"),
    *("metrics topics", "metrics peers", "plot m"),
)
"""Answers that list all that is known: of a part that is unknown there are no rows."""


DELIVERIES = """msg,node,prev_node,t_us
m0,ann,ann,100
m0,bob,ann,1200
m0,cem,bob,2400
m0,bob,cem,3600
"""
SOURCES: dict[str, str | Path] = {
    "gossipsub-4": "",
    "old": "",
    "tiny": "",
    "demo": ROOT / "tests/data/vizpub",
    "deliveries": DELIVERIES,
}
"""A run of each source; empty = of tests.support.ingested.TRACES."""
COPIES = {"receptions", "duplicates", "redundancy", "copies", "sent"}
"""Columns that count more than first arrivals."""


@pytest.mark.parametrize(
    "name",
    [n if n == "deliveries" else pytest.param(n, marks=pytest.mark.long) for n in SOURCES],
)
def test_run_of_each_source_answers_or_refuses_in_words(
    stored: Store, asked: Any, tmp_path: Path, name: str
) -> None:
    """Anything but a refusal fails; what no table knows is no number."""
    paths, content = [], SOURCES[name]
    if content == DELIVERIES:
        paths = [tmp_path / "deliveries.csv"]
        paths[0].write_text(DELIVERIES)
    elif content:
        paths = [content]
    run = stored(name, *paths)
    there = {
        kind: tuple(run.read(table)["name"].to_pylist()[:2]) or ("none", "none")
        for kind, table in (("peers", "peers"), ("topics", "topics"), ("messages", "publications"))
    }
    clock = run.facts.clock
    answers = asked(run, **there, at=(clock.first, clock.first, clock.last)).everything()
    of_messages = run.read("metrics/messages", ["duplicates"])["duplicates"]
    unknown = of_messages.null_count == len(of_messages)
    counted = {
        (question, column)
        for question, one in answers.items()
        for place, column in enumerate(one.columns)
        if question.split()[0] in query_names() and column in COPIES
        if any(row[place] is not None for row in one.rows)
    }
    if unknown:
        assert counted == set()
        drawn = [row for question, one in answers.items() if question.startswith("gexf message")
                 for row in one.rows]  # fmt: skip
        assert not {row[4] for row in drawn} & COPIES
    else:
        assert counted


@pytest.mark.parametrize("name", ["gossipsub-4", pytest.param("demo", marks=pytest.mark.long)])
def test_answers_from_files_equal_those_of_neo4j(stored: Store, asked: Any, name: str) -> None:
    run = stored(name, *([] if name == "gossipsub-4" else [SOURCES[name]]))
    there, named = asked(run), Run(run)
    clock, layers = run.facts.clock, sorted(set(run.read("links")["layer"].to_pylist()))

    def from_neo4j(question: str, **values: object) -> list[list[Any]]:
        driver, database = there.graph.driver, there.graph.database
        return ask(driver, database, question, values, run=run.name).rows

    middle = (clock.first + clock.last) // 2
    for at in (clock.first, middle, clock.last):
        for some in (None, layers[:1]):
            moment = {"at": str(at), **({"layers": ",".join(some)} if some else {})}
            found = frequent.topics(named, at, some)
            assert listed(found) == from_neo4j("topics", **moment)
            for topic in named.topics:
                found = frequent.topic(named, topic, at, some)
                assert listed(found) == from_neo4j("topic-subgraph", topic=topic, **moment)
    peers = [named.peers[row["peer"]] for row in run.read("presence").to_pylist()
             if row["valid_from"] <= clock.sampling_tick(middle) < row["valid_to"]]  # fmt: skip
    for ends in zip(peers[::3], peers[1::3], strict=False):
        every = [list(row) for row in frequent.paths(named, ends, middle, every=True)]
        asked_of = {"at": str(middle), "from": ends[0], "to": ends[1]}
        assert every == from_neo4j("all-shortest-paths", **asked_of)
        assert [list(row) for row in frequent.paths(named, ends, middle)] in (
            [[path] for path in every] or [[]]
        )
    published = run.read("publications").to_pylist()
    for message, is_known in [(row["name"], row["publication_known"]) for row in published[:8]]:
        if is_known:
            missed = reasons_of_message(named, message)["peer"].to_pylist()
            assert [[peer] for peer in missed] == from_neo4j("missed-subscribers", message=message)
        else:
            with pytest.raises(UseError, match=naming(message, PUBLICATION_UNKNOWN)):
                reasons_of_message(named, message)
        found = frequent.dissemination(named, message)
        assert listed(found) == from_neo4j("dissemination-tree", message=message)


def listed(found: pa.Table) -> list[list[Any]]:
    return [list(row.values()) for row in found.to_pylist()]
