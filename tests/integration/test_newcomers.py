"""Three tasks of newcomers, done by what the commands before print, in a narrow terminal.

Nothing that is typed is longer than twelve characters, and no task takes more than eight commands.
"""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from subprocess import CompletedProcess
from xml.etree import ElementTree

import pytest
from scipy import stats

from tests.support.ingested import ROOT, TRACES, workspace_of
from tests.support.newcomers import COLUMNS, Newcomer, called
from vizpub.model.naming import place_of
from vizpub.questions.deliveries import NOBODY
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.spark

Vizpub = Callable[..., CompletedProcess[str]]
README = ROOT / "README.md"


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def with_a_trace(gossipsub: StoredRun, monkeypatch: pytest.MonkeyPatch) -> Newcomer:
    """Who has ingested it, with one command."""
    monkeypatch.setenv("VIZPUB_WORKSPACE", str(workspace_of(gossipsub)))
    newcomer = Newcomer(called)
    newcomer.commands = 1
    return newcomer


def traced() -> dict[str, dict[str, set[str]]]:
    """kind of event → message → peers, read from the files of the trace, one per peer."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in TRACES["gossipsub"]:
        with gzip.open(path) as lines:
            for event in map(json.loads, lines):
                for kind in event.keys() & {"publishMessage", "deliverMessage", "rejectMessage"}:
                    message = base64.b64decode(event[kind]["messageID"]).hex()
                    found[kind][message].add(path.name.split(".")[0])
    return found


def test_worst_message_of_a_trace_who_missed_it_and_why_are_found(with_a_trace: Newcomer) -> None:
    events = traced()
    delivered = events["deliverMessage"]
    peers = [path.name.split(".")[0] for path in TRACES["gossipsub"]]
    messages = sorted(events["publishMessage"])

    printed = with_a_trace.types("metrics gossipsub messages --sort hit_ratio --limit 5")
    head, _, worst, *_ = printed.splitlines()
    assert {"message", "eligible", "delivered", "hit_ratio"} <= set(head.split())
    short = worst.split()[0]
    message = messages[place_of("message", short, messages)]
    assert delivered[message] <= events["publishMessage"][message]  # to its publisher alone

    printed = with_a_trace.types(f"message gossipsub {short} --missed")
    why = dict(re.findall(r"^(12D3\S+) +\d+ +\d+  (.+)$", printed, re.MULTILINE))
    found = {peers[place_of("peer", peer, peers)]: text for peer, text in why.items()}
    assert len(found) == int(worst.split()[head.split().index("eligible")])
    refused = {peer for peer, text in found.items() if text.startswith("refused it: validation")}
    assert refused == events["rejectMessage"][message] & found.keys()
    assert refused
    assert set(found.values()) > {NOBODY}

    printed = with_a_trace.types(f"sql gossipsub 'FROM rejections' --limit {len(refused)}")
    assert "validation" in printed


def test_reasons_of_a_trace_are_those_of_its_messages_and_events(gossipsub: StoredRun) -> None:
    events, run = traced(), Run(gossipsub)
    published = run.table("publications").to_pylist()
    assert all(row["publication_known"] for row in published)
    missed = {row["name"]: run.missed(row["name"]).to_pylist() for row in published}
    counts = Counter(row["why"] for rows in missed.values() for row in rows)
    rows = run.missed().to_pylist()
    assert {row["why"]: row["missed"] for row in rows} == counts

    refused = {(name, row["peer"]) for name, of in missed.items() for row in of} & {
        (name, peer) for name, peers in events["rejectMessage"].items() for peer in peers
    }
    texts = {why: count for why, count in counts.items() if why.startswith("refused it: ")}
    assert sum(texts.values()) == len(refused) > 0
    nobody = [
        name for name in missed
        if events["deliverMessage"][name] <= events["publishMessage"][name] and missed[name]
    ]  # fmt: skip
    assert {row["why"]: row["messages"] for row in rows}[NOBODY] == len(nobody)


@pytest.mark.long
def test_two_protocols_become_a_sentence_with_a_confidence_interval(
    vizpub_here: Vizpub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VIZPUB_WORKSPACE", "ws")
    newcomer = Newcomer(vizpub_here)
    size = "--peers 20 --intervals 8 --runs 3 --publications every:4 --no-load"
    newcomer.types(f"lab simulate poldercast {size} --ingest rings")
    newcomer.types(f"lab simulate scribe {size} --ingest trees")
    printed = newcomer.types("compare 'rings*' 'trees*' --metrics hops_mean")
    sentence = " ".join(printed[printed.index("hops_mean: ") :].split())
    found = re.search(
        r"poldercast - scribe is (\S+) hops, between (\S+) and (\S+) with 95 % confidence "
        r"\(3 pairs of runs\)\.",
        sentence,
    )
    assert found, sentence

    def mean_hops(run: str) -> float:
        """Over all first receptions."""
        first = Run.open(tmp_path / "ws", run).table("receptions").to_pylist()
        return fmean(row["hop"] for row in first if row["first"])

    apart = [mean_hops(f"rings-{seed}") - mean_hops(f"trees-{seed}") for seed in (1, 2, 3)]
    low, high = stats.t.interval(0.95, 2, fmean(apart), stats.sem(apart))
    expected = [fmean(apart), low, high]
    rounded = (high - low) / 40  # half of the second digit of the half-width
    assert list(map(float, found.groups())) == pytest.approx(expected, abs=rounded)


def test_run_becomes_a_figure_and_a_gephi_file_for_a_paper(
    with_a_trace: Newcomer, gossipsub: StoredRun
) -> None:
    printed = with_a_trace.types("plot gossipsub network_size hit_ratio -o size.pdf")
    assert "size.pdf" in printed
    assert Path("size.pdf").read_bytes().startswith(b"%PDF")
    with Path("size.csv").open() as file:
        plotted = {int(row["interval"]): int(row["network_size"]) for row in csv.DictReader(file)}
    present = gossipsub.read("presence").to_pylist()
    assert plotted == {
        interval: sum(p["valid_from"] < end <= p["valid_to"] for p in present)
        for interval, end in ((i, (i + 1) * 1_000_000) for i in range(110))
    }
    with_a_trace.types("plot gossipsub --kind overlay --topic alerts --at 50 -o alerts.pdf")
    assert Path("alerts.pdf").read_bytes().startswith(b"%PDF")

    printed = with_a_trace.types("export gexf gossipsub -o all.gexf")
    graph = ElementTree.parse("all.gexf").getroot()
    nodes, edges = (
        [item.attrib for item in graph.iter() if item.tag.endswith(f"}}{kind}")]
        for kind in ("node", "edge")
    )
    links = gossipsub.read("links").to_pylist()
    assert len(nodes) == len(TRACES["gossipsub"])
    assert len(edges) == len({(link["src"], link["dst"]) for link in links})
    assert f"{len(nodes)} nodes and {len(edges)} edges" in printed


def test_output_in_the_readme_is_that_of_the_shipped_trace(with_a_trace: Newcomer) -> None:
    del with_a_trace
    text = README.read_text("utf-8")
    shown = re.findall(r"^\$ vizpub (.+)\n((?:(?!```).+\n)+)", text, re.MULTILINE)
    assert len(shown) == 3
    for line, printed in shown:
        assert called(*shlex.split(line)).stdout == printed
