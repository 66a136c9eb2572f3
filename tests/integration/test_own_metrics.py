"""Own metrics through a whole ingest, and everywhere that reads a run's metrics.

What the examples of docs/metrics.md must give is computed by networkx from the reports.
"""

from __future__ import annotations

import ast
import csv
import inspect
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from types import ModuleType
from typing import Any

import networkx as nx
import pytest

from tests.support.faults import LARGE
from tests.support.ingested import ROOT
from tests.support.own import examples
from tests.support.words import tells
from vizpub.analytics import intervals, steps, structure
from vizpub.analytics.comparison.metrics import RUN_METRICS
from vizpub.analytics.messages import message_fold
from vizpub.cli.commands.everyday.ingest import ALREADY
from vizpub.graphstore.gexf import overlay
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.verify.verify import verify_run
from vizpub.ingest import growth
from vizpub.ingest.spark import scale
from vizpub.model.own import LEVELS, is_taken
from vizpub.questions.run import Run

pytestmark = pytest.mark.spark

Vizpub = Callable[..., CompletedProcess[str]]
Record = dict[str, Any]
PEERS, INTERVALS = [f"p{n}" for n in range(8)], range(2, 7)
COPIES = '''
import vizpub


@vizpub.metric(level="message", unit="copies")
def copies(message):
    """Arrivals that were not the first"""
    return message.arrivals["first"].to_pylist().count(False)


@vizpub.metric(level="topic")
def names(interval):
    """Subscribers, as peers"""
    taken = interval.subscriptions.to_pylist()
    return {t: sum(row["topic"] == t for row in taken) for t in interval.topics.to_pylist()}


@vizpub.metric(level="peer")
def broken(interval):
    """Right but for the fourth interval"""
    return {peer: 1 for peer in interval.peers.to_pylist() if interval.number < 5}
'''


def reports(seed: int = 3) -> list[list[Record]]:
    """The records of each interval: links of two layers, topics, a message with two copies."""
    rng = random.Random(seed)
    told = []
    for interval in INTERVALS:
        here = []
        for peer in PEERS:
            others = [other for other in PEERS if other != peer]
            near = [(n, layer) for layer in ("mesh", "far") for n in rng.sample(others, 2)]
            record: Record = {"format": "vizpub.report/1", "peer": peer, "interval": interval}
            record["neighbors"] = [{"peer": n, "layer": layer} for n, layer in near]
            record["topics"] = rng.sample(["news", "sport"], rng.randint(0, 2))
            message = {"message": f"m{interval}", "topic": "news"}
            record["sent"] = [{**message, "hops": 0, "to": ["p1"]}] if peer == "p0" else []
            copies = rng.randint(1, 3) if peer == "p1" else 0
            record["received"] = [{**message, "from": f"p{n}"} for n in [0, 2, 3][:copies]]
            here.append(record)
        told.append(here)
    return told


def written(folder: Path, name: str, records: list[list[Record]]) -> Path:
    path = folder / f"{name}.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for some in records for record in some))
    return path


@dataclass
class Lab:
    """A workspace with a run `own`, measured by own metrics."""

    folder: Path
    vizpub: Vizpub
    names: list[str]

    def call(self, *words: str) -> CompletedProcess[str]:
        return self.vizpub("--workspace", str(self.folder / "ws"), *words)

    def done(self, *words: str) -> str:
        found = self.call(*words)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def ingest(self, run: str, *words: str) -> CompletedProcess[str]:
        return self.call("ingest", *words, "--run", run, "--no-load", *self.options)

    @property
    def options(self) -> list[str]:
        return [word for name in self.names for word in ("--metric", name)]

    def rows(self, table: str) -> list[Record]:
        rows: list[Record] = json.loads(self.done("metrics", "own", table, "--format", "json"))
        return rows


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, vizpub_here: Vizpub) -> Lab:
    folder = tmp_path_factory.mktemp("own")
    more = folder / "own_of_messages.py"
    more.write_text(COPIES)
    names = [*examples(folder), f"{more}:copies", f"{more}:names"]
    found = Lab(folder, vizpub_here, names)
    done = found.ingest("own", str(written(folder, "all", reports())))
    assert done.returncode == 0, done.stderr
    return found


def expected() -> Iterator[tuple[int, dict[str, int], dict[str, float | None], float]]:
    """For each interval: the cores, the stability of each peer's mesh, and the assortativity."""
    before: dict[str, set[str]] = {}
    for interval, here in zip(INTERVALS, reports(), strict=True):
        graph = nx.Graph([(r["peer"], n["peer"]) for r in here for n in r["neighbors"]])
        now = {r["peer"]: {n["peer"] for n in r["neighbors"] if n["layer"] == "mesh"} for r in here}
        stable = {
            peer: len(before[peer] & now[peer]) / len(before[peer]) if before else None
            for peer in PEERS
        }
        before = now
        alike = nx.degree_assortativity_coefficient(graph)
        yield interval, nx.core_number(graph), stable, alike


def test_own_metrics_are_columns_like_ours(lab: Lab) -> None:
    peers = {(row["interval"], row["peer_name"]): row for row in lab.rows("peers")}
    overlay = {row["interval"]: row for row in lab.rows("overlay")}
    for interval, cores, stable, alike in expected():
        assert overlay[interval]["degree_assortativity"] == pytest.approx(alike)
        for peer in PEERS:
            row = peers[interval, peer]
            assert (row["core_number"], row["mesh_stability"]) == (cores[peer], stable[peer])
    topics = lab.rows("topics")
    assert topics
    assert all(row["names"] == row["subscribers"] for row in topics)
    messages = lab.rows("messages")
    assert sum(row["copies"] for row in messages) > 0
    assert all(row["copies"] == row["duplicates"] for row in messages)


def test_readers_of_metrics_have_the_own_ones(lab: Lab) -> None:
    cores = [core for _, found, *_ in expected() for core in found.values()]
    rows = json.loads(
        lab.done("compare", "own", "--metrics", "core_number,copies", "--format", "json")
    )
    assert {row["metric"] for row in rows} == {"core_number", "copies"}
    value = next(row["value"] for row in rows if row["metric"] == "core_number")
    assert value == pytest.approx(sum(cores) / len(cores))
    asked = "SELECT max(core_number) AS most FROM metrics.peers"
    assert json.loads(lab.done("sql", "own", asked, "--format", "json")) == [{"most": max(cores)}]
    figure = lab.folder / "own.png"
    lab.done("plot", "own", "mesh_stability", "--kind", "ecdf", "-o", str(figure))
    assert figure.stat().st_size
    with figure.with_suffix(".csv").open() as drawn:
        assert "mesh_stability" in next(csv.reader(drawn))
    worst = lab.done("metrics", "own", "peers", "--sort", "-core_number", "--limit", "1")
    assert str(max(cores)) in worst
    columns = lab.done("runs", "tables", "metrics/peers", "--run", "own", "--format", "json")
    last = json.loads(columns)[-1]
    assert (last["column"], last["type"]) == ("core_number", "double or null")
    assert last["meaning"].startswith("Largest k so that")


def used_in(*modules: ModuleType) -> list[str]:
    """All texts in the code of the modules that could name a column."""
    trees = (ast.parse(inspect.getsource(module)) for module in modules)
    texts = (n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant))
    queries = [path.read_text() for path in (ROOT / "analytics" / "sql").glob("*.sql")]
    assert queries
    words = {word for text in (*texts, *queries) for word in re.findall(r"[A-Za-z_]\w*", str(text))}
    return sorted({word.lower() for word in words})


NAMES_OF_ALL = """
def make(name, level):
    value = {"overlay": lambda interval: 1, "message": lambda message: 1}.get(
        level, lambda interval: [1] * len(interval.peers if level == "peer" else interval.topics)
    )
    return vizpub.metric(level, name=name)(value)
"""


@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(turn, marks=pytest.mark.long) for turn in (1, 2, 3))]
)
def test_own_metric_has_any_name_that_is_not_taken(lab: Lab, turn: int) -> None:
    whole = {metric.name for metric in RUN_METRICS}
    words = used_in(steps, structure, intervals, message_fold, growth, overlay)
    names = [word for word in words if not is_taken(word) and word not in whole]
    level = {name: (*LEVELS,)[(turn + n) % len(LEVELS)] for n, name in enumerate(names)}
    file = lab.folder / f"all_names_{turn}.py"
    made = "".join(f"f_{name} = make({name!r}, {level[name]!r})\n" for name in names)
    file.write_text(f"import vizpub\n{NAMES_OF_ALL}{made}")
    asked = [word for name in names for word in ("--metric", f"{file}:f_{name}")]
    run = f"names{turn}"
    done = lab.call("ingest", f"{lab.folder}/all.ndjson", "--run", run, "--no-load", *asked)
    assert done.returncode == 0, done.stderr
    assert len(names) > 100
    for name, table in LEVELS.items():
        mine = [own for own in names if level[own] == name]
        counted = ", ".join(f"count({own}) AS {own}" for own in mine)
        found = lab.done("sql", run, f"SELECT {counted} FROM {table.name.replace('/', '.')}",
                         "--format", "json")  # fmt: skip
        assert all(json.loads(found)[0][own] for own in mine)
    of_peers = [name for name in names if level[name] == "peer"]
    graph = lab.folder / f"{run}.gexf"
    lab.done("export", "gexf", run, "-o", str(graph), "--attributes", ",".join(of_peers))
    _, node = next(iter(nx.read_gexf(graph).nodes(data=True)))
    assert {*of_peers} <= {*node}


def test_gexf_has_an_own_metric_as_attribute(lab: Lab) -> None:
    file = lab.folder / "own.gexf"
    lab.done("export", "gexf", "own", "-o", str(file), "--attributes", "core_number")
    read = nx.read_gexf(file)
    for interval, cores, *_ in expected():
        for _, node in read.nodes(data=True):
            found = node["core_number"]
            now = [value for value, start, end in found if start <= interval + 0.5 <= end]
            assert now == [cores[node["name"]]]


def test_other_source_is_refused_as_other_options_are(lab: Lab) -> None:
    again = lab.call("ingest", str(lab.folder / "all.ndjson"), "--run", "own", "--no-load")
    assert again.returncode == 2
    tells(again.stderr, "--metric: degree_assortativity", "--run NAME", "--replace")
    same = lab.ingest("own", str(lab.folder / "all.ndjson"))
    tells(same.stderr, f"'own' {ALREADY}")


def test_wrong_peers_are_an_error_that_leaves_no_run(lab: Lab) -> None:
    file, metric = str(lab.folder / "all.ndjson"), f"{lab.folder}/own_of_messages.py:broken"
    done = lab.call("ingest", file, "--run", "bad", "--no-load", "--metric", metric)
    assert done.returncode == 2
    tells(done.stderr, "'broken'", "interval 5", "peers 0, 1, 2, 3, 4 and 3 more", "None")
    assert "bad" not in lab.done("runs", "list")


@pytest.mark.long
def test_appended_run_has_the_own_metrics_of_one_ingest(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "SMALL_INPUT", LARGE)
    whole = Run.open(lab.folder / "ws", "own")
    for number, part in enumerate((reports()[:3], reports()[3:])):
        file = str(written(lab.folder, f"part{number}", part))
        done = lab.ingest("parts", file, *(["--append"] if number else []))
        assert done.returncode == 0, done.stderr
    appended = Run.open(lab.folder / "ws", "parts")
    for table in ("overlay", "peers", "topics", "messages"):
        assert appended.metrics(table).to_arrow().equals(whole.metrics(table).to_arrow())
    third = str(written(lab.folder, "part2", [[{**reports()[-1][0], "interval": 7}]]))
    without = lab.call("ingest", third, "--run", "parts", "--no-load", "--append")
    assert without.returncode == 2
    tells(without.stderr, "'parts'", "degree_assortativity", "--metric FILE.py:NAME", "--replace")
    assert lab.call("runs", "settle", "parts", "--no-load").returncode == 2
    left = Run.open(lab.folder / "ws", "parts").metrics("peers").to_arrow()
    assert left.equals(whole.metrics("peers").to_arrow())


@pytest.mark.neo4j
@pytest.mark.long
def test_neo4j_has_own_metrics_of_intervals_and_messages(
    lab: Lab, neo4j_server: Connection
) -> None:
    run = Run.open(lab.folder / "ws", "own")
    database = neo4j_server.database
    with connect(neo4j_server) as driver:
        try:
            load_run(driver, database, run.facts, run.stored)
            assert verify_run(driver, database, run.facts, run.stored) == []
            asked = (
                "MATCH (i:Interval {run: 'own'}) RETURN i.i, i.degree_assortativity ORDER BY i.i"
            )
            found = driver.execute_query(asked, database_=database).records
            assert dict(map(tuple, found)) == pytest.approx(
                {interval: alike for interval, *_, alike in expected()}
            )
            asked = "MATCH (m:Message {run: 'own'}) RETURN m.copies, m.duplicates"
            found = driver.execute_query(asked, database_=database).records
            assert len(found) == len(INTERVALS)
            assert all(copies == duplicates for copies, duplicates in found)
        finally:
            remove_run(driver, database, "own")
