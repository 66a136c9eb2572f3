"""GEXF out of a real Neo4j: networkx reads back what the run's tables say."""

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

from tests.integration.graph.conftest import Calls, Graph, History, random_history
from tests.support.few import few
from tests.support.words import naming, unknown
from vizpub.cli.commands.everyday.export import REMOVED
from vizpub.graphstore.gexf.check import check_gexf
from vizpub.graphstore.gexf.export import (
    DEFAULT_ATTRIBUTES,
    OverlayExport,
    export_message,
    export_overlay,
    export_topic,
    gexf_output,
    metric_attributes,
)
from vizpub.graphstore.gexf.graph_rows import GraphRows
from vizpub.graphstore.gexf.spans import run_lengths
from vizpub.graphstore.gexf.table_rows import TableRows
from vizpub.graphstore.load.remove import remove_run
from vizpub.graphstore.runs import open_run
from vizpub.graphstore.server.address import Connection
from vizpub.model.clock import Clock
from vizpub.model.errors import OutOfRange, UnknownName, UseError
from vizpub.model.run import RunFacts
from vizpub.model.tables import table

pytestmark = pytest.mark.neo4j

Loaded = tuple[History, GraphRows]


@pytest.fixture(
    params=[pytest.param((1, 1), marks=pytest.mark.long), (2, 1), (3, 7)],
    ids="seed{0[0]}-ticks{0[1]}".format,
)
def exported_run(
    request: pytest.FixtureRequest, graph: Graph, once: Callable[[History], History]
) -> Loaded:
    seed, ticks = request.param
    history = once(random_history(seed, name=f"gexf-{seed}", ticks=ticks))
    return history, GraphRows(open_run(graph.driver, graph.database, history.facts.name))


def read_back(tmp_path, export: Callable[[io.TextIOBase], object]) -> nx.MultiDiGraph:
    path = tmp_path / "export.gexf"
    with gexf_output(path) as out:
        export(out)
    assert list(check_gexf(path)) == []
    return nx.MultiDiGraph(nx.read_gexf(path))


def at(interval: int, elements) -> list[tuple[int, ...]]:
    return sorted(
        tuple(map(int, key))
        for *key, data in elements
        if any(start <= interval + 0.5 <= end for start, end in data["spells"])
    )


def links_at(history: History, interval: int, layers=None) -> list[tuple[int, int]]:
    rows = history.alive("links", history.facts.clock.sampling_tick(interval))
    return [(r["src"], r["dst"]) for r in rows if layers is None or r["layer"] in layers]


def peers_at(history: History, interval: int) -> list[tuple[int]]:
    rows = history.alive("presence", history.facts.clock.sampling_tick(interval))
    return sorted((row["peer"],) for row in rows)


def rendezvous(history: History, topic: int | None = None) -> set[int]:
    """Who says so, of the run or a topic; of trees whose roots do not say, the roots."""
    told = [r for r in history.rows["roles"] if r["role"] == "rendezvous"]
    tree = [r for r in history.rows["links"] if r["layer"] == "tree"]
    roots = {r["dst"] for r in tree} - {r["src"] for r in tree}
    if topic is None:
        return {r["peer"] for r in told} or roots
    own = {r["peer"] for r in told if r["topic"] == topic}
    # Trees are of topic 2 alone.
    return own | (roots & {r["peer"] for r in told} if told else roots)


def test_overlay_export_equals_the_tables_at_each_interval(exported_run: Loaded, tmp_path):
    history, run = exported_run
    told = []
    options = OverlayExport(progress=lambda *step: told.append(step))
    graph = read_back(tmp_path, lambda out: export_overlay(run, options, None, out))
    for i in range(history.facts.clock.intervals):
        assert at(i, graph.nodes(data=True)) == peers_at(history, i)
        assert at(i, graph.edges(data=True)) == sorted(set(links_at(history, i)))
    for peer, data in graph.nodes(data=True):
        assert data["name"] == history.peer(int(peer))
        published = any(p["publisher"] == int(peer) for p in history.rows["publications"])
        assert ("|publisher|" in data["roles"]) == published
        assert ("|rendezvous|" in data["roles"]) == (int(peer) in rendezvous(history))
        assert (data["role"] == "rendezvous") == (int(peer) in rendezvous(history))
    assert told == sorted(told)
    assert told[-1] == ("links", 12, 12)


def test_overlay_export_keeps_to_window_layers_and_parallel_edges(exported_run: Loaded, tmp_path):
    history, run = exported_run
    options = OverlayExport(first=2, last=5, layers=["mesh"], parallel=True)
    graph = read_back(tmp_path, lambda out: export_overlay(run, options, None, out))
    for i in range(history.facts.clock.intervals):
        inside = 2 <= i <= 5
        assert at(i, graph.nodes(data=True)) == (peers_at(history, i) if inside else [])
        links = sorted(links_at(history, i, ["mesh"]))
        assert at(i, graph.edges(data=True)) == (links if inside else [])


def test_topic_export_holds_its_subscribers_and_their_links(exported_run: Loaded, tmp_path):
    history, run = exported_run
    graph = read_back(
        tmp_path, lambda out: export_topic(run, "topic 2", OverlayExport(), None, out)
    )
    publishers = {p["publisher"] for p in history.rows["publications"] if p["topic"] == 2}
    for i in range(history.facts.clock.intervals):
        tick = history.facts.clock.sampling_tick(i)
        subscribers = {s["peer"] for s in history.alive("subscriptions", tick) if s["topic"] == 2}
        assert at(i, graph.nodes(data=True)) == sorted((peer,) for peer in subscribers)
        links = {link for link in links_at(history, i) if set(link) <= subscribers}
        assert at(i, graph.edges(data=True)) == sorted(links)
    for peer, data in graph.nodes(data=True):
        assert ("|publisher|" in data["roles"]) == (int(peer) in publishers)
        assert (data["role"] == "rendezvous") == (int(peer) in rendezvous(history, 2))


def test_message_export_equals_its_receptions(exported_run: Loaded, tmp_path):
    history, run = exported_run
    for message in history.rows["publications"][::2]:
        graph = read_back(tmp_path, lambda out, m=message: export_message(run, m["name"], out))
        arrivals = [r for r in history.rows["receptions"] if r["message"] == message["message"]]
        received = {r["peer"] for r in arrivals}
        passed_on = {r["previous_hop"] for r in arrivals} - {None}
        missed = {r["peer"] for r in history.rows["missed"] if r["message"] == message["message"]}
        publisher = {message["publisher"]} - {None}
        assert set(map(int, graph)) == received | passed_on | missed | publisher
        assert {(int(a), int(b)) for a, b in graph.edges()} == {
            (r["previous_hop"], r["peer"]) for r in arrivals if r["previous_hop"] is not None
        }
        roles = dict(graph.nodes(data="role"))
        told = {int(peer) for peer, role in roles.items() if role == "missed"}
        assert told == missed - publisher
        copies = [data["receptions"] for *_, data in graph.edges(data=True)]
        assert sum(copies) == sum(r["previous_hop"] is not None for r in arrivals)


@dataclass(frozen=True)
class InTables:
    """A history as a run store would give it, its rows in another order than Neo4j's."""

    history: History

    @property
    def facts(self) -> RunFacts:
        return self.history.facts

    def read(self, name: str, columns: Any = None, where: Any = None) -> pa.Table:
        rows = pa.Table.from_pylist(self.history.rows.get(name, []), table(name).arrow)
        rows = rows.sort_by([(key, "ascending") for key in table(name).key])
        return (rows if where is None else rows.filter(where)).select(
            list(columns or table(name).names)
        )


def test_export_from_the_tables_equals_that_from_neo4j(exported_run: Loaded) -> None:
    history, run = exported_run
    narrow = OverlayExport(first=2, last=5, layers=["mesh", "tree"])
    many = OverlayExport(parallel=True)
    exports = {
        "whole": partial(export_overlay, options=OverlayExport(), values=None),
        "window": partial(export_overlay, options=narrow, values=None),
        "parallel": partial(export_overlay, options=many, values=None),
        **{
            topic["name"]: partial(
                export_topic, topic=topic["name"], options=OverlayExport(), values=None
            )
            for topic in history.rows["topics"]
        },
        **{
            row["name"]: partial(export_message, message=row["name"])
            for row in history.rows["publications"][::2]
        },
    }
    for name, export in exports.items():
        export(run, out=(graph := io.StringIO()))
        export(TableRows(InTables(history)), out=(tables := io.StringIO()))
        assert tables.getvalue() == graph.getvalue(), name
        assert name != "whole" or "<edge " in tables.getvalue()


def test_peer_metrics_become_values_of_the_nodes(exported_run: Loaded, tmp_path):
    _history, run = exported_run
    rows = [(p, i, (p + i) // 3) for i in range(9) for p in range(12)]
    names = ("peer", "interval", "degree")
    batch = pa.record_batch(
        {n: list(c) for n, c in zip(names, zip(*rows, strict=True), strict=True)}
    )
    values = run_lengths([batch], ["degree"])
    options = OverlayExport(attributes=["degree"])
    graph = read_back(tmp_path, lambda out: export_overlay(run, options, values, out))
    for peer, data in graph.nodes(data=True):
        for i in range(9):
            found = [v for v, start, end in data["degree"] if start <= i + 0.5 <= end]
            assert found == [(int(peer) + i) // 3]


def test_impossible_export_options_are_refused_by_name(exported_run: Loaded):
    _, run = exported_run
    out = io.StringIO()
    for options, error in (
        (OverlayExport(first=3, last=2), UseError),
        (OverlayExport(last=99), OutOfRange),
        (OverlayExport(layers=["overlai"]), UnknownName),
    ):
        with pytest.raises(error):
            export_overlay(run, options, None, out)
    with pytest.raises(UnknownName, match=unknown("attribute", "degre", "degree")):
        export_overlay(run, OverlayExport(attributes=["degre"]), [], out)
    with pytest.raises(UnknownName, match=naming("'topic 9'", "topic")):
        export_topic(run, "topic 9", OverlayExport(), None, out)
    with pytest.raises(UnknownName, match=unknown("message", "m99")):
        export_message(run, "m99", out)
    assert out.getvalue() == ""


def test_interrupted_output_leaves_the_old_file(tmp_path):
    path = tmp_path / "overlay.gexf"
    path.write_text("before", "utf-8")

    def interrupted():
        with gexf_output(path) as out:
            out.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text("utf-8") == "before"
    with gexf_output(path) as out:
        out.write("\u00e4fter")
    assert path.read_text("utf-8") == "\u00e4fter"
    assert list(tmp_path.iterdir()) == [path]


def test_unwritable_output_path_is_refused(tmp_path):
    for path in (tmp_path / "no" / "overlay.gexf", tmp_path):
        with pytest.raises(UseError, match=naming(path)), gexf_output(path) as out:
            out.write("x")
    assert list(tmp_path.iterdir()) == []


def test_standard_output_is_utf_8_and_stays_open(capfdbinary):
    with gexf_output(None) as out:
        out.write("\u00e4\n")
    print("after", flush=True)
    assert capfdbinary.readouterr().out == b"\xc3\xa4\nafter\n"


def test_default_attributes_are_metric_attributes():
    facts = RunFacts("any", "reports", Clock(1, None, 0, 1))
    assert set(DEFAULT_ATTRIBUTES) <= set(metric_attributes(facts))


class HalfRemoved(Exception):
    """What stops a removal."""


@pytest.mark.parametrize("half", [False, True], ids=["removed", "half removed"])
@pytest.mark.parametrize(
    "while_reading", few(["presence", "subscriptions", "links"], ["subscriptions"])
)
def test_export_of_a_run_that_is_removed_meanwhile_says_so(
    graph: Graph,
    loaded: Callable[[History], History],
    neo4j_server: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    while_reading: str,
    half: bool,
) -> None:
    """After the first of those rows has been read. No file is left that looks whole."""
    loaded(random_history(5, name="going"))
    really = getattr(GraphRows, while_reading)

    def stop(*_: object) -> None:
        if half:
            raise HalfRemoved

    def reading(*given: Any, **more: Any) -> Iterator[Any]:
        rows = iter(really(*given, **more))
        yield next(rows)
        with suppress(HalfRemoved):
            remove_run(graph.driver, graph.database, "going", stop)
        yield from rows

    monkeypatch.setattr(GraphRows, while_reading, reading)
    file = tmp_path / "going.gexf"
    done = Calls(tmp_path, neo4j_server)("export", "gexf", "going", "-o", str(file))
    *_, told = done.stderr.splitlines()
    assert told.startswith(f"error: run 'going' {REMOVED}")
    assert done.exit_code == 1
    assert [*tmp_path.iterdir()] == []
