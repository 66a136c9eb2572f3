"""Each rule by the smallest file that breaks it."""

import pytest

from tests.support.words import naming
from vizpub.graphstore.gexf.check import NO_GEXF, NO_XML, check_gexf
from vizpub.model.errors import InputError

ATTRIBUTES = """
<attributes class="node" mode="dynamic">
<attribute id="n" title="n" type="integer"/></attributes>
<attributes class="edge" mode="dynamic">
<attribute id="w" title="weight" type="double"/></attributes>
"""
NODES = '<node id="a"/><node id="b" start="2" end="8.999"/>'
EDGE = '<edge source="a" target="b" start="2" end="3.999"/>'


def gexf(nodes=NODES, edges=EDGE, graph='mode="dynamic"', version="1.3") -> str:
    return f"""<gexf xmlns="http://gexf.net/1.3" version="{version}"><graph {graph}>
    {ATTRIBUTES}<nodes>{nodes}</nodes><edges>{edges}</edges></graph></gexf>"""


def rules(path, text: str) -> list[str]:
    path.write_text(text, "utf-8")
    return [finding.rule for finding in check_gexf(path)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.gexf"


def node(inside: str, attributes: str = "") -> str:
    return NODES + f'<node id="c" {attributes}>{inside}</node>'


def edge(attributes: str, inside: str = "") -> str:
    return f'<edge source="a" target="b" start="2" end="3.999" {attributes}>{inside}</edge>'


def value(attributes: str) -> str:
    return f"<attvalues><attvalue {attributes}/></attvalues>"


def spells(*bounds: tuple[float, float]) -> str:
    periods = "".join(f'<spell start="{start}" end="{end}"/>' for start, end in bounds)
    return f"<spells>{periods}</spells>"


def test_valid_files_have_no_finding(path):
    assert rules(path, gexf()) == []
    assert rules(path, gexf(node(spells((0, 1), (1, 2), (4, 4.999))))) == []
    assert rules(path, gexf(edges=edge('kind="x"') + edge('kind="y"'))) == []
    assert rules(path, gexf(graph='timeformat="dateTime"')) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (gexf(version="1.2"), "version"),
        (gexf(graph='timeformat="integer"'), "time-format"),
        (gexf(graph='timerepresentation="timestamp"'), "time-kind"),
        (gexf(node("", 'timestamp="3"')), "time-kind"),
        (gexf(node("", 'start="3" endopen="4"')), "open-end"),
        (gexf(node("", 'start="soon"')), "bad-time"),
        (gexf(node("", 'start="4" end="3"')), "bad-time"),
        (gexf(node(spells((0, 4), (3, 5)))), "overlap"),
        (gexf(node(spells((3, 5), (0, 9)))), "overlap"),
        (
            gexf(
                node(
                    '<attvalues><attvalue for="n" value="1" start="0" end="2"/>'
                    '<attvalue for="n" value="2" start="1" end="3"/></attvalues>'
                )
            ),
            "value-overlap",
        ),
        (gexf(node(value('for="m" value="1"'))), "undeclared"),
        (gexf(node(value('for="w" value="1"'))), "undeclared"),
        (gexf(node(value('for="n" value=""'))), "empty-value"),
        (gexf(NODES + '<node id="a"/>'), "duplicate-node"),
        (gexf(node("", 'pid="a"')), "hierarchy"),
        (gexf(node('<nodes><node id="d"/></nodes>')), "hierarchy"),
        ('<gexf version="1.3"><graph><node id="1"/></graph></gexf>', "hierarchy"),
        (gexf(edges=edge('type="mutual"')), "mutual"),
        (gexf(edges='<edge source="a" target="x"/>'), "unknown-end"),
        (gexf(edges=edge('weight="0.0"')), "zero-weight"),
        (gexf(edges=edge("", value('for="w" value="0" start="0" end="1"'))), "zero-weight"),
        (gexf(edges=EDGE + EDGE), "duplicate-edge"),
        (gexf(edges=edge('kind="x"') + EDGE), "mixed-kinds"),
        (gexf(edges='<edge source="a" target="b" start="1" end="3"/>'), "edge-outside-node"),
        (gexf(edges='<edge source="b" target="a"/>'), "edge-outside-node"),
    ],
)
def test_file_that_breaks_one_rule_has_that_finding(path, text, rule):
    assert rules(path, text) == [rule]


def test_finding_names_the_element_and_its_bounds(path):
    path.write_text(gexf(edges='<edge source="a" target="b" kind="k" start="1" end="3"/>'), "utf-8")
    (finding,) = check_gexf(path)
    assert str(finding) == "edge a → b (k): valid [1, 3], node b not [edge-outside-node]"


def test_malformed_xml_is_refused(path):
    path.write_text("<gexf><graph>", "utf-8")
    with pytest.raises(InputError, match=naming(path, NO_XML)):
        list(check_gexf(path))


def test_xml_that_is_no_gexf_is_refused(path):
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>', "utf-8")
    with pytest.raises(InputError, match=naming(path, NO_GEXF, "<svg>")):
        list(check_gexf(path))


def test_missing_file_is_refused(path):
    with pytest.raises(InputError, match=naming(path, "No such file")):
        list(check_gexf(path))
