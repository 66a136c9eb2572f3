"""The writer's files, read by other readers: expat, networkx and the format's own schema."""

import io
import math
import os
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vizpub.graphstore.gexf.writer import Attribute, Edge, Head, Node, write_gexf

GEXF = "{http://gexf.net/1.3}"
ATTRIBUTES = (
    Attribute("name", "string"),
    Attribute("degree", "integer", dynamic=True),
    Attribute("load", "double", dynamic=True),
    Attribute("bytes", "long"),
    Attribute("hub", "boolean"),
)
NODES = (
    Node(
        0,
        "zero",
        [(0, 4), (6, 6)],
        (1.5, -2.0),
        "#D55E00",
        runs=[("degree", 0, 3, 2), ("degree", 4, 6, 3), ("load", 0, 6, 0.1)],
        values=[("name", "a"), ("bytes", 2**40), ("hub", True)],
    ),
    Node(1, "one", [(0, 9)], (0.0, 0.0), "#0072B2", values=[("hub", False)]),
)
EDGES = (Edge(0, 1, [(1, 2), (4, 4)]), Edge(1, 0, [(6, 6)], label="7", colour="#BDC3C7"))


HEAD = Head("test", ATTRIBUTES)


def written(head=HEAD, nodes=NODES, edges=EDGES) -> str:
    out = io.StringIO()
    write_gexf(out, head, nodes, edges)
    return out.getvalue()


def legal_in_xml(character: str) -> bool:
    """The production Char of XML 1.0, section 2.2."""
    code = ord(character)
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


@pytest.fixture
def schema():
    etree = pytest.importorskip("lxml.etree")
    if "VIZPUB_DATA" not in os.environ:
        pytest.skip("VIZPUB_DATA does not name the folder of the outside data")
    path = Path(os.environ["VIZPUB_DATA"], "gexf-1.3", "gexf.rng")
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    relax_ng = etree.RelaxNG(etree.parse(path))

    def check(text: str) -> None:
        relax_ng.assertValid(etree.fromstring(text.encode()))

    return check


def test_written_gexf_is_read_back_by_networkx():
    graph = nx.read_gexf(io.BytesIO(written().encode()))
    assert set(graph.edges) == {("0", "1"), ("1", "0")}
    assert graph.nodes["0"]["label"] == "zero"
    assert [(float(a), float(b)) for a, b in graph.nodes["0"]["spells"]] == [(0, 4.999), (6, 6.999)]
    assert graph.nodes["0"]["name"] == "a"
    assert graph.nodes["0"]["bytes"] == 2**40
    assert graph.nodes["0"]["hub"] is True
    assert graph.nodes["1"]["hub"] is False
    assert graph.nodes["0"]["degree"] == [(2, 0, 3.999), (3, 4, 6.999)]
    assert graph.nodes["0"]["load"] == [(0.1, 0, 6.999)]
    assert graph.nodes["0"]["viz"]["color"] == {"r": 0xD5, "g": 0x5E, "b": 0, "a": 1}
    assert graph.nodes["0"]["viz"]["position"] == {"x": 1.5, "y": -2.0, "z": 0.0}
    assert [float(s[0]) for s in graph.edges["0", "1"]["spells"]] == [1, 4]
    assert graph.edges["1", "0"]["label"] == "7"


def test_schema_accepts_the_written_gexf(schema):
    schema(written())
    schema(written(Head(""), (), ()))
    schema(
        written(
            Head("kinds", ATTRIBUTES),
            NODES[1:],
            [Edge(1, 1, [(0, 1)], kind="mesh:3", colour="#333333")],
        )
    )


def test_schema_refuses_an_invalid_gexf(schema):
    from lxml.etree import DocumentInvalid

    with pytest.raises(DocumentInvalid):
        schema(written().replace("interval", "moment"))


@given(st.text())
@example("".join(map(chr, range(0x80))))
@example('"><node id="7"/><!-- & ]]> \ud800\ufffe\uffff')
@example("\r\n\t trailing ")
def test_hostile_names_are_read_back_without_illegal_characters(name):
    text = written(
        Head(name, (Attribute("name", "string"),)),
        [Node(0, name, [(0, 0)], (0, 0), "#000000", values=[("name", name)])],
        [Edge(0, 0, [(0, 0)], kind=name, label=name)],
    )
    root = ElementTree.fromstring(text.encode())
    node, edge = root.find(f".//{GEXF}node"), root.find(f".//{GEXF}edge")
    value = root.find(f".//{GEXF}attvalue")
    description = root.find(f".//{GEXF}description")
    found = [node.get("label"), value.get("value"), edge.get("kind"), edge.get("label")]
    found.append(description.text or "")
    for read in found:
        assert len(read) == len(name)
        for before, after in zip(name, read, strict=True):
            if legal_in_xml(before):
                assert after == before
            else:
                assert after == "\N{REPLACEMENT CHARACTER}" or "SYMBOL FOR" in unicodedata.name(
                    after
                )


def test_special_numbers_are_written_as_in_xml_schema():
    head = Head("", (Attribute("x", "double"),))
    for number, text in (
        (math.inf, "INF"),
        (-math.inf, "-INF"),
        (math.nan, "NaN"),
        (1e300, "1e+300"),
    ):
        node = Node(0, "", [(0, 0)], (0, 0), "#000000", values=[("x", number)])
        assert f'value="{text}"' in written(head, [node], [])


def test_dynamic_attributes_are_declared_before_static_ones():
    root = ElementTree.fromstring(written())
    blocks = [(b.get("class"), b.get("mode")) for b in root.iter(f"{GEXF}attributes")]
    assert blocks == [("node", "dynamic"), ("node", "static")]


def test_elements_are_written_as_they_arrive():
    out = io.StringIO()
    seen = []

    def edges():
        for i in range(1_000):
            seen.append(out.tell())
            yield Edge(0, 0, [(i, i)])

    result = write_gexf(out, Head(""), (), edges())
    assert (result.nodes, result.edges) == (0, 1_000)
    assert len(set(seen)) == 1_000
