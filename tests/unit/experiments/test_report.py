from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from vizpub.experiments.claims import Claim
from vizpub.experiments.definition import Experiment, ExperimentContent
from vizpub.experiments.report import Findings, evaluate_runs, write_message, write_report
from vizpub.experiments.results import ExperimentResults, Replica
from vizpub.experiments.runs import ExperimentFolder, PlannedRun
from vizpub.graphstore.gexf.check import check_gexf
from vizpub.questions.run import Run

CONTENT = {
    "title": "T",
    "about": "A",
    "source": "S",
    "world": {},
    "systems": [{"name": name, "system": "cyclon"} for name in "ab"],
    "seeds": [1],
    "metrics": ["links", "publisher_copies", "messages/hops_mean"],
    "notes": ["a | b"],
}


def claim(**given: Any) -> dict[str, Any]:
    return {"kind": "value", "what": "W", "source": "S", "metric": "links", **given}


@pytest.fixture
def found(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Findings:
    """The run `monday` of conftest.py in the place of every run."""
    run = Run.open(workspace, "monday")
    monkeypatch.setattr(PlannedRun, "replica", lambda one: Replica(one.group.name, 1, run))
    claims = [
        claim(of="a", value=2.75, relative=0),
        claim(of="a / b", above=1, why="They are the same."),
        claim(of="a", value=9, relative=0, only="full"),
        {**claim(), "kind": "order", "order": ["a", "b"]},
    ]
    expected = [claim(of="b", value=2.75, relative=0)]
    content = msgspec.convert(
        {**CONTENT, "published": claims, "expected": expected}, ExperimentContent
    )
    experiment = Experiment("e", "small", content)
    place = ExperimentFolder(tmp_path / "out")
    runs = [PlannedRun(g, experiment.plan(g, 1), place) for g in experiment.groups]
    return evaluate_runs(experiment, runs)


def test_claims_are_judged_and_counted_in_the_summary(found: Findings) -> None:
    assert [one.outcome for one in found.judged] == ["met", "not met", "shown", "not met", "met"]
    assert [one.expected for one in found.judged] == [False] * 4 + [True]
    told = "1 of 3 published claims met, 1 shown; 1 of 1 own expectation met"
    assert found.summary == told


def test_report_lists_claims_reasons_and_metrics(found: Findings, tmp_path: Path) -> None:
    text = write_report(found, tmp_path / "out").read_text("utf-8")
    assert "| 1 | W | S | 2.75 exactly | 2.75 | met |" in text
    assert "| 3 | W | S | 9 exactly | 2.75 | shown (judged at scale full) |" in text
    published, _, expected = text.partition("## Results and our own expectations")
    assert "| 1 | W | S | 2.75 exactly | 2.75 | met |" in published
    assert "| 1 | W | S | 2.75 exactly | 2.75 | met |" in expected
    assert "- 2: They are the same." in text
    assert "- 4: published is a < b, ours 2.75 = 2.75" in text
    assert "| publisher_copies (copies) | whole run | 2 | 2 |" in text
    assert "| messages/hops_mean (hops) | mean of messages | 1.333 | 1.333 |" in text


def test_report_says_which_claims_cannot_be_told(found: Findings, tmp_path: Path) -> None:
    judged = [replace(one, outcome="cannot be told") for one in found.judged[:2]]
    again = replace(found, judged=judged)
    assert again.summary == "0 of 2 published claims met, 2 cannot be told"
    text = write_report(again, tmp_path / "out").read_text("utf-8")
    assert "Cannot be told: 1, 2." in text


def test_claims_without_runs_of_a_group_are_not_known(found: Findings) -> None:
    results = ExperimentResults(
        [replica for replica in found.results.replicas if replica.group == "b"]
    )
    claims: tuple[Claim, ...] = found.experiment.content.published
    outcomes = [claim.judge(results).outcome for claim in claims]
    assert outcomes == ["unknown"] * 4


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
