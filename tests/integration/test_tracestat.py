"""Counts of a recorded gossipsub trace, against what libp2p's own tracestat counted in it."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.ingested import SMALL
from vizpub.cli.main import app
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
SPELLED = {
    "Publish": "published",
    "Deliver": "delivered_and_own",
    "Duplicate": "duplicates",
    "Reject": "rejected",
    "SendRPC": "rpcs_sent",
    "DropRPC": "rpcs_dropped",
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    with gzip.open(SMALL / "tracestat.json.gz") as file:
        return dict(json.load(file))


def asked(run: StoredRun, *words: str) -> dict[str, Any]:
    workspace = str(Path(run.directory).parents[1])
    call = ["--workspace", workspace, "runs", "summary", run.name, *words, "--format", "json"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.fixture(scope="module")
def told(gossipsub: StoredRun) -> dict[str, Any]:
    return asked(gossipsub)


def of_tracestat(counts: dict[str, int]) -> dict[str, int]:
    return {SPELLED[name]: value for name, value in counts.items()}


def test_totals_equal_those_of_tracestat(told: dict[str, Any], recorded: dict[str, Any]) -> None:
    wanted = of_tracestat(recorded["Events"]["Totals"])
    assert {name: told[name] for name in wanted} == wanted
    assert told["peers"] == len(recorded["Events"]["PerPeer"])
    assert told["delivered"] == wanted["delivered_and_own"] - wanted["published"]
    assert (
        told["rpcs_received"]
        == json.loads((SMALL / "facts.json").read_text())["events"]["RECV_RPC"]
    )


def test_control_by_kind_equals_the_facts(told: dict[str, Any]) -> None:
    facts = json.loads((SMALL / "facts.json").read_text())["rpc_meta"]
    for rpc, way in (("sendRPC", "sent"), ("recvRPC", "received"), ("dropRPC", "dropped")):
        for kind in ("ihave", "iwant", "idontwant", "graft", "prune"):
            assert told[f"control_{kind}_{way}"] == facts.get(f"{rpc}.{kind}", 0)
        subscriptions = told[f"control_subscribe_{way}"] + told[f"control_unsubscribe_{way}"]
        assert subscriptions == facts[f"{rpc}.subscription"]


def test_counts_of_each_peer_equal_those_of_tracestat(
    told: dict[str, Any], recorded: dict[str, Any]
) -> None:
    found = {
        row["peer"]: {name: row[name] for name in SPELLED.values()} for row in told["per_peer"]
    }
    wanted = recorded["Events"]["PerPeer"]
    assert found == {peer: of_tracestat(counts) for peer, counts in wanted.items()}


def test_delays_equal_those_of_tracestat(told: dict[str, Any], recorded: dict[str, Any]) -> None:
    """tracestat lists a publisher's own delivery of each message, after 0 ms."""
    found = {row["ms"]: row["delivered_and_own"] for row in told["delays"]}
    assert found == {row["Millis"]: row["Count"] for row in recorded["Delays"]["CDF"]}
    each = {row["message"]: sorted([0, *row["delays_ms"]]) for row in told["per_message"]}
    wanted = recorded["Delays"]["PerMessage"]
    assert each == {message: sorted(delays) for message, delays in wanted.items()}


def test_counts_of_each_topic_equal_those_of_tracestat(gossipsub: StoredRun) -> None:
    blocks = (SMALL / "tracestat_topics.txt").read_text().split("### -topic ")[1:]
    assert len(blocks) == 3
    names = {"Peers": "peers", "Published": "published", "Delivered": "delivered_and_own"}
    names |= {"Duplicate": "duplicates", "Rejected": "rejected"}
    for block in blocks:
        topic, _, text = block.partition("\n")
        found = asked(gossipsub, "--topic", topic)
        lines = dict(line.split(": ") for line in text.splitlines() if ": " in line)
        wanted = {names[key.split()[0]]: int(value) for key, value in lines.items()
                  if key.split()[0] in names}  # fmt: skip
        assert {name: found[name] for name in names.values()} == wanted, topic
        assert found["rpcs_sent"] is None


def of_the_page(number: int) -> str:
    return str(re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[number])


def test_totals_of_peers_on_the_page_equal_those_of_tracestat(
    gossipsub: StoredRun, told: dict[str, Any]
) -> None:
    found = {row["peer_name"]: row for row in Run(gossipsub).sql(of_the_page(0)).to_pylist()}
    assert found.keys() == {row["peer"] for row in told["per_peer"]}
    for row in told["per_peer"]:
        assert found[row["peer"]]["duplicates"] == row["duplicates"]
        arrivals = row["delivered"] + row["duplicates"]
        assert found[row["peer"]]["receptions"] == arrivals


def test_mesh_degree_on_the_page_equals_a_count_of_links(gossipsub: StoredRun) -> None:
    run = Run(gossipsub)
    found = run.sql(of_the_page(1)).to_pylist()
    assert len({row["interval"] for row in found}) > 100
    for interval in (3, 40, 109):
        overlay = run.overlay(interval, layers=["mesh"]).to_pylist()
        links = Counter(row["topic_name"] for row in overlay)
        degrees = {
            row["topic_name"]: row["mesh_degree"] * row["subscribers"]
            for row in found
            if row["interval"] == interval
        }
        assert degrees.keys() >= links.keys()
        assert degrees == pytest.approx({topic: links[topic] for topic in degrees})
        assert sum(links.values()) > 0
