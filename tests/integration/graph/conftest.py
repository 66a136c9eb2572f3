"""Random histories as Arrow tables, and a driver of a real Neo4j to load them into."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryFile
from typing import IO, Any

import neo4j
import pytest
from typer.testing import CliRunner, Result

from tests.support.tables import Batches
from vizpub import cypher
from vizpub.cli.main import app
from vizpub.graphstore.ask.free_text import open_stream
from vizpub.graphstore.ask.queries import Answer, Limits, ask
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.runs import run_properties
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.machine.jvm.artifacts import jars
from vizpub.machine.jvm.java import find_java
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import ArtifactsMissing, JavaMissing
from vizpub.model.run import CAPABILITIES, RunFacts

Row = dict[str, Any]
CHECK = Path(__file__).parents[2] / "gephi" / "Check.java"
Imported = tuple[list[tuple[str, str]], dict[int, tuple[int, int]], dict[tuple[str, str], str]]
"""Issues (level, message), nodes and edges of each interval, types of columns."""
Gephi = Callable[..., Imported]


def free_text(
    driver: neo4j.Driver,
    database: str,
    text: str,
    given: Mapping[str, object],
    limits: Limits | None = None,
) -> Answer:
    """The answer of a user's own statement. Raises: as `open_stream`."""
    with open_stream(driver, database, text, given, limits or Limits()) as stream:
        rows = list(stream.rows)
    return Answer(stream.columns, rows, stream.more)


@dataclass(frozen=True)
class History:
    """A run as rows of its tables."""

    facts: RunFacts
    rows: dict[str, list[Row]] = field(default_factory=dict)
    batch: int = 1_000
    """Rows of an Arrow batch: most, so that a load has few transactions."""

    @property
    def tables(self) -> Batches:
        return Batches(self.rows, self.batch)

    def named(self, name: str) -> History:
        """The same history as a run of another name."""
        return replace(self, facts=replace(self.facts, name=name))

    def peer(self, id: int) -> str:
        name: str = self.rows["peers"][id]["name"]
        return name

    def topic(self, id: int) -> str:
        name: str = self.rows["topics"][id]["name"]
        return name

    def alive(self, name: str, at: int) -> list[Row]:
        """The rows of a table of spans that are alive at a tick."""
        return [row for row in self.rows[name] if row["valid_from"] <= at < row["valid_to"]]


def random_history(
    seed: int,
    *,
    name: str = "",
    peers: int = 12,
    intervals: int = 9,
    ticks: int = 1,
    messages: int = 20,
) -> History:
    """Peers that come and go, links in layers and for topics, subscriptions, messages.

    Spans of one thing are disjoint; links and subscriptions lie inside their ends' periods.
    """
    random_ = random.Random(seed)
    clock = Clock(ticks, None if seed % 2 else 1_000, 0, intervals - 1)
    end = intervals * ticks
    rows: dict[str, list[Row]] = {
        "peers": [{"peer": i, "name": f"peer {i}", "is_reporter": i % 5 > 0} for i in range(peers)],
        "topics": [{"topic": i, "name": f"topic {i}"} for i in range(4)],
    }
    rows["presence"] = [
        {"peer": peer, "valid_from": valid_from, "valid_to": valid_to}
        for peer in range(peers)
        for valid_from, valid_to in _spans(random_, 0, OPEN, end, density=0.8)
    ]
    periods: dict[int, list[Row]] = {peer: [] for peer in range(peers)}
    for row in rows["presence"]:
        periods[row["peer"]].append(row)
    rows["links"] = [
        {
            "src": src,
            "dst": dst,
            "layer": layer,
            "topic": topic,
            "valid_from": valid_from,
            "valid_to": valid_to,
        }
        for src in range(peers)
        for dst in range(peers)
        for layer, topic in (("overlay", None), ("mesh", 0), ("mesh", 1), ("tree", 2))
        if src != dst and random_.random() < 1.8 / peers
        for low, high in _common(periods[src], periods[dst])
        for valid_from, valid_to in _spans(random_, low, high, end, density=0.6)
    ]
    rows["subscriptions"] = [
        {"peer": period["peer"], "topic": topic, "valid_from": valid_from, "valid_to": valid_to}
        for period in rows["presence"]
        for topic in range(4)
        if random_.random() < 0.5
        for valid_from, valid_to in _spans(
            random_, period["valid_from"], period["valid_to"], end, density=0.7
        )
    ]
    published = [_publication(random_, m, rows, clock) for m in range(messages)]
    rows["publications"] = published
    rows["receptions"] = [r for p in published for r in _receptions(random_, p, rows, clock)]
    eligible = {p["message"]: _eligible(p, rows) for p in published}
    rows["missed"] = list(_missed(eligible, rows))
    rows["roles"] = list(_roles(random_, rows, seed))
    rows["attributes"] = list(_attributes(random.Random(seed), peers, end))
    rows["metrics/messages"] = [
        {"message": m, "receptions": m, "first_receptions": 1, "duplicates": 0, "rejections": 0,
         "eligible": None if peers is None else len(peers),
         "hit_ratio": m / 7 if m % 3 else None}
        for m, peers in eligible.items()
    ]  # fmt: skip
    rows["metrics/overlay"] = [
        {"interval": i, "network_size": i, "density": i / 3} for i in range(intervals)
    ]
    parameters = {"fanout": 6, "words": ["a", None, 0.5]}
    facts = RunFacts(name or f"random-{seed}", "synthetic", clock, "none", parameters, seed)
    known = tuple(sorted({*rows, *CAPABILITIES}))
    return History(replace(facts, known=known), rows)


def _roles(random_: random.Random, rows: dict[str, list[Row]], seed: int) -> Iterator[Row]:
    """Of some peers, as long as they are present."""
    main = "rendezvous" if seed % 4 == 3 else "forwarder"  # else the roots of the trees are
    for period in rows["presence"]:
        bounds = {name: period[name] for name in ("valid_from", "valid_to")}
        for role, topic in (("seed", None), (main, 2), (main, 3)):
            if random_.random() < 0.2:
                yield {"peer": period["peer"], "role": role, "topic": topic, **bounds}


def _attributes(random_: random.Random, peers: int, end: int) -> Iterator[Row]:
    """Of most peers, also before and after they are present."""
    values = ["prysm", "teku", "é 🜁", "1", "-2.5", "1234.56"]
    for peer in range(0, peers, 2):
        for key in ("client", "it's"):
            for valid_from, valid_to in _spans(random_, 0, OPEN, end, density=0.8):
                value = random_.choice(values)
                number = float(value) if value[-1].isdigit() else None
                of = {"peer": peer, "key": key, "value": value, "number": number}
                yield {**of, "valid_from": valid_from, "valid_to": valid_to}


def _spans(
    random_: random.Random, low: int, high: int, end: int, density: float
) -> Iterator[tuple[int, int]]:
    """Disjoint spans in [low, high) that never touch; some of what reaches the end is open."""
    at, stop = low, min(high, end)
    while at < stop:
        length = random_.randint(1, max(1, (stop - low) // 2))
        if random_.random() < density:
            until = min(at + length, stop)
            stays_open = until == end and high == OPEN and random_.random() < 0.7
            yield at, OPEN if stays_open else until
            at = until + 1
        else:
            at += length


def _common(some: list[Row], others: list[Row]) -> Iterator[tuple[int, int]]:
    for x in some:
        for y in others:
            low, high = max(x["valid_from"], y["valid_from"]), min(x["valid_to"], y["valid_to"])
            if low < high:
                yield low, high


def _publication(random_: random.Random, id: int, rows: dict[str, list[Row]], clock: Clock) -> Row:
    tick = random_.randrange(0, clock.intervals * clock.ticks_per_interval)
    return {
        "message": id,
        "name": f"m{id}",
        "topic": random_.choice([0, 1, 2, 3]) if id % 9 else None,
        "publisher": random_.randrange(len(rows["peers"])) if id % 7 else None,
        "interval": clock.interval_of(tick),
        "time_us": tick * 1_000 if id % 4 else None,
        "tick": tick,
        "publication_known": bool(id % 7),
        "bytes": 100 + id if id % 5 else None,
    }


def _receptions(
    random_: random.Random, publication: Row, rows: dict[str, list[Row]], clock: Clock
) -> Iterator[Row]:
    seen: set[int] = set()
    peers = len(rows["peers"])
    for _ in range(random_.randrange(0, 2 * peers)):
        peer = random_.randrange(peers)
        previous = random_.randrange(peers) if random_.random() < 0.7 else None
        if previous == peer:
            continue
        yield {
            "message": publication["message"],
            "peer": peer,
            "previous_hop": previous,
            "time_us": publication["tick"] * 1_000 + random_.randrange(5_000),
            "interval": publication["interval"],
            "tick": publication["tick"],
            "first": peer not in seen,
            "hop": None if previous is None else random_.randrange(1, 5),
            "subscribed": random_.choice([True, False, None]),
        }
        seen.add(peer)


def _eligible(publication: Row, rows: dict[str, list[Row]]) -> set[int] | None:
    """Who should get it; null where nobody told of the publication, or of its topic."""
    topic, tick = publication["topic"], publication["tick"]
    if topic is None or not publication["publication_known"]:
        return None
    taken = (
        r
        for r in rows["subscriptions"]
        if r["topic"] == topic and r["valid_from"] <= tick < r["valid_to"]
    )
    return {r["peer"] for r in taken} - {publication["publisher"]}


def _missed(eligible: Mapping[int, set[int] | None], rows: dict[str, list[Row]]) -> Iterator[Row]:
    reached = {(r["message"], r["peer"]) for r in rows["receptions"]}
    for message, peers in eligible.items():
        for peer in sorted(peers or ()):
            if (message, peer) not in reached:
                yield {"message": message, "peer": peer}


def layers_of_channels(query: str) -> dict[str, object]:
    """A layer that random runs have, for queries whose own layers are of broadcast channels."""
    asked = cypher.statement("queries", query).parameters
    return {p.name: ["mesh"] for p in asked if p.default in ("listens", "carries")}


@dataclass(frozen=True)
class Graph:
    """A driver and what it speaks to."""

    driver: neo4j.Driver
    database: str

    def load(self, history: History, partition_intervals: int | None = None) -> History:
        load_run(
            self.driver,
            self.database,
            history.facts,
            history.tables,
            partition_intervals=partition_intervals,
        )
        return history

    def ask(self, text: str, **parameters: Any) -> list[list[Any]]:
        with self.driver.session(database=self.database) as session:
            return [record.values() for record in session.run(text, parameters)]

    def plan_anew(self) -> None:
        """Forget plans, and take samples of what is there.

        Else plans follow what other tests have loaded and removed before. Who judges a plan, or
        what a plan reads, calls this when its runs are there.
        """
        self.ask("CALL db.prepareForReplanning(60)")

    def remove(self, name: str) -> None:
        if run_properties(self.driver, self.database, name):
            remove_run(self.driver, self.database, name)


HISTORIES = [
    random_history(2, ticks=5),
    random_history(3, peers=16, intervals=6),
]
"""One in units of time, whose trees' roots nobody tells; one without, whose rendezvous are told."""
LONG_HISTORIES = [
    random_history(1),
    random_history(4, peers=3, intervals=40),
    random_history(3, name="wide-3", peers=25, intervals=6),
]
"""They rarely tell more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask the first history for chosen layers and the second for all; the other two ways are long:
    the choice is the same in all.
    """
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            values = item.callspec.params
            if "layers" in values:
                other = HISTORIES[1 if values["layers"] else 0]
                if values.get("history") is other:
                    item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def graph(neo4j_server: Connection) -> Iterator[Graph]:
    driver = connect(neo4j_server)
    yield Graph(driver, neo4j_server.database)
    driver.close()


@pytest.fixture(scope="session")
def once(graph: Graph) -> Iterator[Callable[[History], History]]:
    """Loads a history that tests only read, when the first test asks for it."""
    there: dict[str, History] = {}

    def load(history: History) -> History:
        name = history.facts.name
        if name not in there:
            graph.remove(name)
            there[name] = graph.load(history)
        return history

    yield load
    for name in there:
        graph.remove(name)


@pytest.fixture(
    params=[*HISTORIES, *(pytest.param(h, marks=pytest.mark.long) for h in LONG_HISTORIES)],
    ids=lambda h: h.facts.name,
)
def history(once: Callable[[History], History], request: pytest.FixtureRequest) -> History:
    """Each of the histories."""
    history: History = request.param
    print("seed", history.facts.seed)
    assert any(row["valid_to"] == OPEN for row in history.rows["links"])
    return once(history)


@pytest.fixture
def answer(graph: Graph, history: History) -> Callable[[str, dict[str, object]], list[list[Any]]]:
    """The rows that a shipped query answers with."""

    def answer(name: str, given: dict[str, object]) -> list[list[Any]]:
        return ask(graph.driver, graph.database, name, given, run=history.facts.name).rows

    return answer


@pytest.fixture
def loaded(graph: Graph) -> Iterator[Callable[[History], History]]:
    """Loads histories for a test, and removes them after it."""
    names = []

    def load(history: History) -> History:
        names.append(history.facts.name)
        graph.remove(history.facts.name)
        return graph.load(history)

    yield load
    for name in names:
        graph.remove(name)


def emptied(home: Path) -> LocalServer:
    """The server of a home, running, with nothing in it."""
    server = LocalServer(home, "test")
    with connect(server.start()) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
    return server


@pytest.fixture
def server(home: Path) -> LocalServer:
    """One that a test may stop and kill, with nothing in it."""
    return emptied(home)


@dataclass(frozen=True)
class Calls:
    """Calls of vizpub in a workspace, in this process, against the Neo4j of the tests."""

    workspace: Path
    connection: Connection

    @property
    def environment(self) -> dict[str, str]:
        there = self.connection
        return {
            "VIZPUB_WORKSPACE": str(self.workspace),
            "NEO4J_URI": there.uri,
            "NEO4J_USERNAME": there.username,
            "NEO4J_PASSWORD": there.password,
            "NEO4J_DATABASE": there.database,
        }

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(app, words, env=self.environment)

    def json(self, *words: str) -> Any:
        """What a call answers that must succeed."""
        done = self(*words, "--format", "json")
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def gephi() -> Iterator[Gephi]:
    """Imports a file: (issues, counts per interval, columns). Skips without a Java compiler.

    `COLUMN=REGEX` before the intervals filters the edges that are counted.

    One Gephi imports all files: most of its time it starts.
    """
    try:
        java = find_java().executable
        (toolkit,) = jars("gephi")
    except (JavaMissing, ArtifactsMissing) as missing:
        pytest.skip(f"no Gephi: {missing}")
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True)
    if "jdk.compiler" not in modules.stdout:
        pytest.skip(f"{java} has no compiler (a Java runtime, not a JDK)")
    command = [str(java), "-Djava.awt.headless=true", "-Xmx512m", "-XX:TieredStopAtLevel=1"]
    command += ["-XX:+UseSerialGC", "-cp", str(toolkit), str(CHECK)]
    with (
        TemporaryFile("w+") as said,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=said, text=True) as judge,
    ):
        yield lambda path, intervals=(): _imported(judge, said, path, intervals)


def _imported(
    judge: subprocess.Popen[str], said: IO[str], path: Path, intervals: Iterable[int | str]
) -> Imported:
    assert judge.stdin
    assert judge.stdout
    judge.stdin.write("\t".join([str(path), *map(str, intervals)]) + "\n")
    judge.stdin.flush()
    rows: list[list[str]] = []
    while ["end"] not in rows:
        if not (line := judge.stdout.readline()):
            said.seek(0)
            pytest.fail(said.read())
        rows.append(line.removesuffix("\n").split("\t"))
    assert ["dynamic", "true"] in rows
    issues = [(row[1], row[2]) for row in rows if row[0] == "issue"]
    counts = {int(row[1]): (int(row[2]), int(row[3])) for row in rows if row[0] == "interval"}
    columns = {(row[0], row[1]): row[2] for row in rows if row[0].endswith("column")}
    return issues, counts, columns
