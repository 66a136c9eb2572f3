from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from experiments.message_gexf import write_message
from graphstore.gexf.check import check_gexf
from runstore.run import Run

GEXF = "{http://gexf.net/1.3}"


def test_message_gexf_is_written_without_neo4j(workspace: Path, tmp_path: Path) -> None:
    """Message m0 of `monday`: from alice to bob and dave, from dave to carol, carol to bob."""
    path = tmp_path / "m0.gexf"
    write_message(Run.open(workspace, "monday"), "m0", path)
    root = ElementTree.parse(path).getroot()
    nodes = {node.get("label") for node in root.iter(f"{GEXF}node")}
    edges = {(e.get("source"), e.get("target"), e.get("label")) for e in root.iter(f"{GEXF}edge")}
    assert nodes == {"alice", "bob", "carol", "dave"}
    assert edges == {("0", "1", "1"), ("0", "3", "1"), ("3", "2", "2"), ("2", "1", "3")}
    assert list(check_gexf(path)) == []
