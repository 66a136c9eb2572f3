"""Constructed overlays in a simulated world, from their reports alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support.designs import check_overlay, example_3
from vizpub.cli.main import app
from vizpub.model.errors import UseError
from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report
from vizpub.simulators.designs.algorithms import ALGORITHMS, Design, construct
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.designs.system import system_of
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import RunningSimulation, simulate


def reports_of(folder: Path, algorithm: str, **chosen: Any) -> dict[int, list[Report]]:
    given = {"workload": "uniform:topics=12,subscriptions=3", "peers": 30, **chosen}
    simulate(make_plan(system_of(algorithm), given, seed=4), Folder(folder))
    return reported(folder)


def reported(folder: Path) -> dict[int, list[Report]]:
    found = defaultdict(list)
    for path in sorted((folder / "reports").iterdir()):
        for line in ReportReader(path):
            if isinstance(line.record, Report):
                found[line.record.interval].append(line.record)
    return found


def neighbours(reports: list[Report]) -> list[list[int]]:
    by_peer = {int(one.peer): [int(to.peer) for to in one.neighbors or ()] for one in reports}
    return [by_peer[peer] for peer in range(len(by_peer))]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_reports_hold_every_edge_at_both_ends(algorithm: str, tmp_path: Path) -> None:
    (reports,) = reports_of(tmp_path, algorithm, intervals=1).values()
    interests = Interests([[int(t) for t in one.topics or ()] for one in reports], 12)
    check_overlay(neighbours(reports), interests, stars=algorithm != "gm")
    assert neighbours(reports) == construct(Design(algorithm), interests).neighbours


def test_header_says_whether_the_algorithm_refines(tmp_path: Path) -> None:
    for algorithm in ("cd-max", "cd-max-ref"):
        plan = make_plan(system_of(algorithm), {"peers": 9, "intervals": 1}, seed=1)
        assert plan.describe()["refine"] == (algorithm == "cd-max-ref")
    refused = make_plan(system_of("cd-max-ref"), {"peers": 9, "refine": False}, seed=1)
    with pytest.raises(UseError, match="--no-refine"):
        simulate(refused, Folder(tmp_path))


@pytest.mark.parametrize(
    ("algorithm", "upkeep"),
    [("gm", "rebuild"), ("cd-max-ref", "rebuild"), ("cd-max-ref", "incremental")],
)
def test_intervals_have_the_overlay_of_the_peers_that_are_up(
    algorithm: str, upkeep: str, tmp_path: Path
) -> None:
    churn = "exponential:4s,down=4s"
    found = reports_of(tmp_path, algorithm, intervals=6, churn=churn, upkeep=upkeep)
    sizes = set()
    for reports in found.values():
        present = [one for one in reports if not one.left]
        place = {one.peer: number for number, one in enumerate(present)}
        interests = Interests([[int(t) for t in one.topics or ()] for one in present], 12)
        known = [[place[to.peer] for to in one.neighbors or ()] for one in present]
        check_overlay(known, interests, stars=algorithm != "gm")
        sizes.add(len(present))
    assert len(sizes) > 1


@pytest.mark.parametrize("algorithm", ["cd-max", "gm"])
def test_publication_reaches_every_other_subscriber(algorithm: str, tmp_path: Path) -> None:
    found = reports_of(tmp_path, algorithm, intervals=8, publications="every:2,first=2")
    subscribers, got, sent = defaultdict(set), defaultdict(list), {}
    for reports in found.values():
        for one in reports:
            for topic in one.topics or ():
                subscribers[topic].add(one.peer)
            for publication in one.sent or ():
                sent[publication.message] = (publication.topic, publication.publisher)
            for arrival in one.received or ():
                got[arrival.message].append((one.peer, arrival.hops))
    assert len(sent) > 20
    for message, (topic, publisher) in sent.items():
        arrivals = [peer for peer, _ in got[message]]
        assert set(arrivals) == subscribers[topic] - {publisher}
        if algorithm == "cd-max":
            assert len(arrivals) == len(set(arrivals))
            assert all(hops <= 2 for _, hops in got[message])


@pytest.mark.parametrize("algorithm", ["cd-max", "cd-oda-ii", "gm"])
def test_publication_of_an_outsider_reaches_all_subscribers(algorithm: str, tmp_path: Path) -> None:
    """Also that of a topic with one subscriber, which has no edge for it."""
    (tmp_path / "who.csv").write_text("0,pair\n2,pair\n1,alone\n4,more\n")
    (tmp_path / "what.csv").write_text("1,alone,3\n2,pair,3\n3,pair,1\n")
    found = reports_of(
        tmp_path / "out",
        algorithm,
        peers=5,
        intervals=6,
        workload=f"file:{tmp_path}/who.csv",
        publications=f"script:file={tmp_path}/what.csv,from=anyone",
    )
    reports = [report for of_interval in found.values() for report in of_interval]
    links = {(one.peer, to.peer) for one in reports for to in one.neighbors or ()}
    copies = [(one.peer, copy) for one in reports for copy in one.received or ()]
    got = {of: sorted(peer for peer, copy in copies if copy.message == of)
           for of in {copy.message for _, copy in copies}}  # fmt: skip
    assert sorted(got.values()) == [["0", "2"], ["0", "2"], ["1"]]
    assert {(copy.from_peer, peer) for peer, copy in copies} <= links


def test_centres_are_near_where_delays_are_known(tmp_path: Path) -> None:
    """By the delays of the file; peers are at its sites in an order that the seed draws."""
    places = np.random.default_rng(3).random((30, 2)) * 100
    away = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)).round(3)
    np.savetxt(tmp_path / "rtt", away, fmt="%.3f")
    latency = f"matrix:{tmp_path}/rtt,unit=ms"
    plan = make_plan(system_of("cd-max"), {"peers": 30, "latency": latency}, seed=4)
    delay = RunningSimulation(plan).network.delay
    found = {}
    for near in (False, True):
        chosen = {"latency": latency, "near": near, "intervals": 1}
        (reports,) = reports_of(tmp_path / str(near), "cd-max", **chosen).values()
        interests = Interests([[int(t) for t in one.topics or ()] for one in reports], 12)
        check_overlay(neighbours(reports), interests, stars=True)
        centres = {int(r.topic or ""): int(one.peer) for one in reports for r in one.roles or ()}
        total = sum(delay(u, v) or 0 for t, u in centres.items() for v in interests.subscribers[t])
        found[near] = (total, max(map(len, neighbours(reports))))
    assert found[True][0] < 0.9 * found[False][0]
    assert found[True][1] <= found[False][1]


def test_command_takes_a_file_of_subscriptions(tmp_path: Path) -> None:
    pairs = [f"{node},t{topic}" for node, own in enumerate(example_3().of) for topic in own]
    (tmp_path / "example.csv").write_text("\n".join(pairs), "utf-8")
    line = f"--peers 8 --workload file:{tmp_path}/example.csv --out {tmp_path}/out"
    result = CliRunner().invoke(app, ["lab", "construct", "cd-max", *line.split()])
    assert result.exit_code == 0, result.output
    assert "8 peers, 1 interval, 0 publications" in result.output
    (reports,) = reported(tmp_path / "out").values()
    assert [len(known) for known in neighbours(reports)] == [3, 6, 4, 3, 3, 3, 5, 5]
    centres = {one.peer for one in reports if one.roles}
    assert centres == {"7", "1", "2", "6"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("cd-mx", "did you mean cd-max"),
        ("gm --refine", "leave out --refine"),
        ("gm --upkeep incremental", "use --upkeep rebuild"),
        ("gm --near", "--near works for newly constructed stars only"),
        ("cd-max --near --upkeep incremental", "--near works for newly constructed stars only"),
        ("cd-max --near --latency uniform:1ms,high=2ms", "use --latency matrix:FILE"),
        ("gm --at 3", "--at needs --run"),
        ("cd-max --parquet --live http://127.0.0.1:1", "leave out --live"),
        ("cd-max --parquet --no-load", "need --ingest NAME"),
        ("cd-max --parquet --speed 2", "--speed needs --live"),
        ("cd-max --speed 2", "--speed needs --live"),
    ],
)
def test_arguments_are_refused_with_the_reason(line: str, told: str, tmp_path: Path) -> None:
    call = ["--workspace", str(tmp_path), "lab", "construct", *line.split()]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2, result.output
    assert told in result.output
