"""Files of VizPub: which they are, and what they are split into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vizpub.ingest.inputs.reader import CUT_OFF
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.vizpub.files import HOST, MERGED, recognise, split_nodes

DEMO = Path(__file__).parents[4] / "data/vizpub/reports/processed/protocol.demo"
FILES = sorted(DEMO.glob("*.json"))
HEAD = b'{"protocolId":2,"protocolName":"protocol.rings","intervalCount":7,"nodes":{"44":{"id":"44"'


def whole(**fields: object) -> bytes:
    return json.dumps({"protocolName": "p", "intervalCount": 3, "nodes": {}, **fields}).encode()


@pytest.mark.parametrize(
    ("path", "head", "encoding"),
    [
        ("/r/protocol.rings/00000007_localhost_protocol.rings.json", HEAD, HOST),
        ("/elsewhere/copy.json", HEAD, HOST),
        ("/elsewhere/copy.json", b"\xef\xbb\xbf\n " + HEAD.replace(b":", b": "), HOST),
        ("/r/protocol.rings/00000007protocol.rings.json", HEAD, MERGED),
        ("/elsewhere/00000007protocol.rings.json.gz", HEAD, MERGED),
        ("/elsewhere/00000007protocol.json", HEAD, HOST),
        ("s3://b/00000007protocol.rings.json.gz?region=eu&endpoint_override=a/b", HEAD, MERGED),
        # What lies where VizPub puts its files is one, whatever is in it.
        ("/r/protocol.rings/00000007_a_protocol.rings.json", b"{", HOST),
        ("/r/protocol.rings/00000007/00000007_a_protocol.rings.json.gz", b"no", HOST),
        ("/r/3mspastry/000000013mspastry.json", b"no", MERGED),
        ("/r/protocol.rings/00000007_a_protocol.other.json", b"no", None),
        ("s3://r/00000007p%3Dq.json?region=eu", HEAD.replace(b"protocol.rings", b"p=q"), MERGED),
        ("/r/protocol.rings/7_a_protocol.rings.json", b"no", None),
        ("/elsewhere/copy.json", b'{"protocolName": "p"}', None),
        ("/elsewhere/copy.json", b'[{"protocolName": "p", "intervalCount": 1, "nodes": {}}]', None),
        ("/elsewhere/copy.json", b"", None),
    ],
)
def test_file_encoding_is_recognised_by_path_or_head(
    path: str, head: bytes, encoding: str | None
) -> None:
    assert recognise(path, head) == encoding


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_vizpub_files_are_recognised_by_no_other_source(path: Path) -> None:
    answers = {source.name: source.recognises("/x.json", path.read_bytes()) for source in SOURCES}
    assert {name for name, encoding in answers.items() if encoding} == {"vizpub"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_file_is_split_into_run_interval_and_nodes(path: Path) -> None:
    found, told = split_nodes(path.read_bytes()), json.loads(path.read_bytes())
    assert found.fault is None
    assert (found.run, found.interval) == (told["protocolName"], told["intervalCount"])
    assert {key: json.loads(bytes(node)) for key, node in found.nodes.items()} == told["nodes"]
    assert found.unknown == ()


def test_indented_file_is_split_into_the_same_nodes() -> None:
    (path, *_) = FILES
    spread = json.dumps(json.loads(path.read_bytes()), indent=2).encode()
    found, as_written = split_nodes(b"\xef\xbb\xbf" + spread), split_nodes(path.read_bytes())
    assert [*found.nodes] == [*as_written.nodes]


def test_unknown_fields_are_named() -> None:
    assert split_nodes(whole(colour=1, edges={}, nodes={"1": {}})).unknown == ("colour",)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "not JSON"),
        (whole()[:-1], "not JSON"),
        (whole() + whole(), "not JSON"),
        (whole(edges={"a": 1}).replace(b"1}", b"01}"), "not JSON"),
        (b'{"nodes": ' + b"[" * 100_000, "nested too deep"),
        (whole(nodes={"a": {"id": "ä"}}).replace(b"\\u00e4", b"\xff")[:-1], "not UTF-8"),
        (b'{"\xff": 1}', "not UTF-8"),
        (b"[]", "not an object"),
        (b"{}", "no 'protocolName'; no 'intervalCount'; no 'nodes'"),
        (whole(nodes=None), "no 'nodes'"),
        (whole()[:-1] + b',"nodes":{}}', "a key appears twice"),
        (whole(nodes={"a": {}, "b": {}}).replace(b'"b"', b'"a"'), "a key appears twice"),
        (whole(nodes=[]), "'nodes' is not an object"),
        (whole(publications=7), "'publications' is not an object"),
        (whole(protocolName=7), "'protocolName' is not a string"),
        (whole(protocolName=""), "'protocolName' is empty"),
        (whole(intervalCount=-1), "'intervalCount' is negative"),
        (whole(intervalCount="1"), "'intervalCount' is not an integer"),
        (whole(intervalCount=1.0), "'intervalCount' is not an integer"),
        (whole(intervalCount=10**30), "'intervalCount' is too large"),
        (whole(intervalCount=2**31 - 1), "'intervalCount' is too large"),
    ],
)
def test_faulty_file_gives_its_fault_and_no_nodes(content: bytes, fault: str) -> None:
    found = split_nodes(content)
    assert (found.fault, found.nodes) == (fault, {})
    assert found.text == content[:4096]


def test_damaged_file_has_a_fault_only_when_cut_off() -> None:
    assert split_nodes(whole()[:-1], "truncated gzip").fault == CUT_OFF
    assert split_nodes(whole(), "truncated gzip").fault is None
