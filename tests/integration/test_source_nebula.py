"""A file of neighbours as Nebula writes it, against the graph that it was written from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import networkx as nx
import pytest

from tests.support.fuzz import bent, mixture
from tests.support.staged import Staged, Taken, staged
from tests.support.words import naming
from vizpub.ingest.inputs.files import InputFile, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.sources.nebula import NEIGHBORS, NO_TABLE, TWO_CRAWLS, Nebula, number_crawls
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import InputError

SOURCE = Nebula()
AGENTS, PROTOCOLS = ("kubo/0.36.0/x", "go-ipfs", ""), ["/b/2", "/a/1"]
NONE, SOME = "0" * 16, "0" * 15 + "1"


def line(peer: str, neighbours: list[str] | None, errors: str = NONE) -> str:
    """As Go's encoder writes a `JSONNeighbors`."""
    return json.dumps({"PeerID": peer, "NeighborIDs": neighbours, "ErrorBits": errors})


def visit(peer: str, agent: str, protocols: list[str] | None, error: str) -> str:
    """As Go's encoder writes a `JSONVisit`."""
    facts = {"Maddrs": None, "ConnectDuration": "1.2s", "CrawlErrorStr": "", "Properties": None}
    visit = {"PeerID": peer, "Protocols": protocols or None, "AgentVersion": agent}
    return json.dumps({**visit, "ConnectErrorStr": error, **facts})


def stage(path: Path) -> Staged:
    files = [InputFile(str(path), NEIGHBORS, path.stat().st_size, "")]
    return staged(SOURCE, files, SourceOptions(max_line=20_000))


def test_crawl_becomes_links_and_peers(tmp_path: Path) -> None:
    graph = nx.gnp_random_graph(60, 0.1, seed=4, directed=True)
    told = [peer for peer in graph if peer % 5]  # the others did not answer
    text = [
        line(f"p{p}", [f"p{q}" for q in graph[p]] or None, SOME if p < 9 else NONE) for p in told
    ]
    (tmp_path / "x_neighbors.ndjson").write_text("\n".join(text) + "\n")
    visits = [
        visit(f"p{p}", AGENTS[p % 3], PROTOCOLS[: p % 3], "" if p % 5 else "io") for p in graph
    ]
    (tmp_path / "x_visits.ndjson").write_text("\n".join(visits) + "\n")
    (tmp_path / "x_crawl.json").write_text('{\n  "id": 0,\n  "state": "succeeded"\n}\n')
    found = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    assert found.source == "nebula"
    assert [Path(path).name for path, _ in found.skipped] == ["x_crawl.json"]
    options = SourceOptions()
    taken = Taken(SOURCE, staged(SOURCE, found.files, options), options)
    expected = {(f"p{p}", f"p{q}", "overlay", None, 0, OPEN) for p in told for q in graph[p]}
    assert taken.rows("links") == expected
    attributes = {
        (f"p{p}", key, value, 0)
        for p in graph
        for key, value in {
            "agent": AGENTS[p % 3],
            "client": ["kubo", "go-ipfs", ""][p % 3],
            "protocols": ["", "/b/2", "/a/1 /b/2"][p % 3],
            "dialable": "true" if p % 5 else "false",
        }.items()
        if value
    }
    assert taken.rows("attributes") == attributes
    assert taken.rows("peers") == {(f"p{peer}",) for peer in told}
    seen = {f"p{peer}" for peer in told} | {link[1] for link in expected}
    assert taken.rows("presence") == {(peer, 0, OPEN) for peer in seen}
    assert taken.rows("names", "name") == {(peer,) for peer in seen}
    assert taken.told.clock == Clock(1, None, 0, 0)
    ((_, partial),) = taken.told.notes.items()
    assert partial == sum(peer < 9 for peer in told)
    assert not taken.staged.quarantine


def test_crawls_become_intervals(tmp_path: Path) -> None:
    crawls = [nx.gnp_random_graph(12, 0.2, seed=seed, directed=True) for seed in range(4)]
    expected, present, attributes = set(), set(), set()
    for number, graph in enumerate(crawls):
        folder = tmp_path / f"day{3 - number}"  # the time counts, not the folder
        folder.mkdir()
        begin = f"{folder}/2026-08-2{number}T12:00"
        told = [peer for peer in graph if (peer + number) % 3]
        tables = [line(f"p{p}", [f"p{q}" for q in graph[p]]) for p in told]
        Path(f"{begin}_neighbors.ndjson").write_text("\n".join(tables))
        if number == 2:
            continue
        agent = f"kubo/0.{number // 2}.0"
        visits = [visit("p1", agent, ["/a"], ""), visit("lone", "", [], "" if number else "io")]
        Path(f"{begin}_visits.ndjson").write_text("\n".join(visits))
        expected |= {(number, f"p{p}", f"p{q}") for p in told for q in graph[p]}
        present |= {(number, f"p{peer}") for peer in told}
        present |= {(number, f"p{q}") for p in told for q in graph[p]} | {(number, "p1")}
        present |= {(number, "lone")} if number else set()
    told = [peer for peer in crawls[2] if (peer + 2) % 3]
    expected |= {(2, f"p{p}", f"p{q}") for p in told for q in crawls[2][p]}
    present |= {(2, f"p{p}") for p in told} | {(2, f"p{q}") for p in told for q in crawls[2][p]}
    attributes = {
        ("p1", "agent", "kubo/0.0.0", 0), ("p1", "agent", "kubo/0.1.0", 3),
        ("p1", "client", "kubo", 0), ("p1", "protocols", "/a", 0), ("p1", "dialable", "true", 0),
        ("lone", "dialable", "false", 0), ("lone", "dialable", "true", 1),
    }  # fmt: skip
    found = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    options = SourceOptions()
    taken = Taken(SOURCE, staged(SOURCE, found.files, options), options)
    assert taken.told.clock == Clock(1, None, 0, 3)
    assert set(of_crawls(taken, "links", "src", "dst")) == expected
    assert set(of_crawls(taken, "presence", "peer")) == present
    assert taken.rows("attributes") == attributes
    assert taken.rows("peers") == {(f"p{peer}",) for peer in range(12)}


def test_crawls_of_equal_content_are_no_copies(tmp_path: Path) -> None:
    for name in ("1T12:00_neighbors", "2T12:00_neighbors", "2T12:00_neighbors (1)"):
        (tmp_path / f"2026-08-2{name}.ndjson").write_text(line("a", ["b"]))
    found = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    assert number_crawls(found.files) == [0, 1]
    assert len(found.skipped) == 1


def of_crawls(taken: Taken, table: str, *names: str) -> Iterator[tuple[object, ...]]:
    """The number of each crawl with the names in rows of periods."""
    for row in taken.records(table):
        end = 4 if row["valid_to"] == OPEN else row["valid_to"]
        assert end == row["valid_from"] + 1
        yield row["valid_from"], *(row[name] for name in names)


def test_visits_alone_give_presence_and_attributes(tmp_path: Path) -> None:
    visits = [visit("a", "kubo/1", ["/a"], ""), visit("b", "", [], "io")]
    (tmp_path / "x_visits.ndjson").write_text("\n".join(visits))
    found = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    taken = Taken(SOURCE, staged(SOURCE, found.files, SourceOptions()), SourceOptions())
    assert taken.rows("presence") == {("a", 0, OPEN)}
    assert taken.seen.links is None
    assert "links" in taken.told.unknown


def test_bad_lines_of_a_crawl_are_quarantined(tmp_path: Path) -> None:
    bad = [
        ("[]", "not one JSON object"),
        ("{", "not one JSON object"),
        (line("a", ["b"])[:-1] + ', "PeerID": "c"}', "a key appears twice"),
        ('{"PeerID": "a", "ErrorBits": "0"}', "missing key: NeighborIDs"),
        ('{"PeerID": "a", "AgentVersion": 3}', "'AgentVersion' is not a string"),
        ('{"PeerID": "", "AgentVersion": "x"}', "'PeerID' is empty"),
        (visit("a", "kubo", ["\n"], ""), "Protocols is not a list of names"),
        (line("a", ["b"], "x"), "ErrorBits is not a text of bits"),
        ('{"PeerID": "a", "NeighborIDs": "b", "ErrorBits": "0"}', "NeighborIDs is not a list"),
    ]
    path = tmp_path / "a.ndjson"
    path.write_text(
        "\n".join([line("a", ["b", "b"]), *(text for text, _ in bad), line("a", ["c"])])
    )
    found = stage(path)
    assert [row[1:3] for row in found.quarantine] == [(n, why) for n, (_, why) in enumerate(bad, 2)]
    assert [(row["src"], row["dst"]) for row in found.tables["links"].to_pylist()] == [
        ("a", "b"),
        ("a", "c"),
    ]
    assert found.tables["presence"].num_rows == 1


def test_two_crawls_and_empty_ones_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(line(name, ["b"]))
    found = take_inventory(None, find_files([str(tmp_path)]), SOURCES)
    with pytest.raises(InputError, match=naming(tmp_path / "a", tmp_path / "b", TWO_CRAWLS)):
        SOURCE.splits(found.files)
    with pytest.raises(InputError, match=NO_TABLE):
        SOURCE.describe({"peers": 0, "partial": 0, "visits": 0}, SourceOptions())


def test_crawl_in_a_store_has_its_time() -> None:
    names = [f"s3://b/2026-08-21T1{hour}%3A00_neighbors.ndjson?region=a" for hour in (2, 0, 1)]
    assert number_crawls([InputFile(name, NEIGHBORS, 0, "") for name in names]) == [2, 0, 1]


def test_spoilt_lines_are_taken_or_refused(tmp_path: Path) -> None:
    rng = Random(17)

    def value(number: int) -> dict[str, object]:
        return {"PeerID": f"p{number}", "NeighborIDs": ["q", f"r{number}"], "ErrorBits": NONE}

    def sound(number: int) -> bytes:
        return json.dumps(value(number)).encode()

    content = b"\n".join(mixture(rng, 1_500, sound, lambda n: bent(rng, value(n))))
    path = tmp_path / "a.ndjson"
    path.write_bytes(content)
    found = stage(path)
    refused = {number for _, number, _, _ in found.quarantine}
    taken = {row.line: row for row in found.rows}
    records = {n: text for n, text in enumerate(content.split(b"\n"), 1) if text.strip()}
    assert refused | taken.keys() == records.keys()
    assert not refused & taken.keys()
    assert 150 < len(refused) < 900
    for number, row in taken.items():
        read = json.loads(records[number].removeprefix(b"\xef\xbb\xbf"))
        assert row.peer == read["PeerID"]
        assert json.loads(row.record) == [read["NeighborIDs"] or [], "1" in read["ErrorBits"]]
