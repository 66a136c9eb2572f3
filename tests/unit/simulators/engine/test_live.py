"""Simulations that report to a real collector, at the pace of the clock, and obey it."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.support.collecting import Options, Served, collector_in, serving
from vizpub.model.errors import UseError
from vizpub.reports.client import Reporter
from vizpub.reports.endpoint import NO_COLLECTOR, NO_URL
from vizpub.reports.files import ReportReader
from vizpub.reports.records import Report
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.live import Live
from vizpub.simulators.engine.plan import Plan, make_plan
from vizpub.simulators.engine.simulation import RunningSimulation, simulate

ENDLESS = 1_000_000
"""Intervals: more than a test waits for."""
SMALL = {"peers": 8, "intervals": 10, "publications": "every:2"}


def posted(served: Served) -> list[Any]:
    return [json.loads(line) for line in served.lines()]


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


class Enough(Exception):
    """Ends a simulation that would go on for long."""


@contextmanager
def simulating(plan: Plan, folder: Folder, url: str) -> Iterator[None]:
    """While the block runs, however long it takes; so nobody waits for the rest of it, either."""
    live, over = Live(url, speed=50), threading.Event()

    def go_on(step: str, done: int, total: int, note: str = "") -> None:
        if over.is_set():
            raise Enough

    def work() -> None:
        with suppress(Enough):
            simulate(plan, folder, go_on, live=live)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(120)
        live._reporter.close(0)
    assert not thread.is_alive()


def test_reports_equal_those_in_the_files(tmp_path: Path) -> None:
    """More intervals at once than a collector takes ahead of the median peer."""
    folder, chosen = (
        Folder(tmp_path / "s"),
        {**SMALL, "intervals": 60, "churn": "exponential:9s,down=4s"},
    )
    with serving(collector_in(tmp_path)) as served:
        simulate(make_plan("cyclon", chosen), folder, live=Live(served.url, speed=1e6))
        found = [Report.from_json(one) for one in posted(served)]
        intake = served.web.intake
        assert (intake.ending.last, intake.header.protocol) == (59, "cyclon")
    records = [
        line.record
        for path in sorted(folder.reports.iterdir())
        for line in ReportReader(path)
        if isinstance(line.record, Report)
    ]
    assert found == records


def test_other_interval_or_no_collector_is_an_error(tmp_path: Path) -> None:
    plan = make_plan("cyclon", {**SMALL, "interval": "2s"})
    with serving(collector_in(tmp_path)) as served, pytest.raises(UseError, match="--interval"):
        simulate(plan, Folder(tmp_path / "s"), live=Live(served.url))
    with pytest.raises(UseError, match=NO_COLLECTOR):
        simulate(plan, Folder(tmp_path / "s"), live=Live(served.url))
    with pytest.raises(UseError, match=NO_URL):
        Live("127.0.0.1:8600")
    assert not (tmp_path / "s").exists()


def test_peers_leave_and_join_when_they_are_told(tmp_path: Path) -> None:
    plan, folder = make_plan("cyclon", {**SMALL, "intervals": ENDLESS}), Folder(tmp_path / "s")
    with (
        serving(collector_in(tmp_path, Options(commands=True))) as served,
        simulating(plan, folder, served.url),
    ):

        def told(peer: str, action: str) -> str:
            code, made = served.send("/commands", peer=peer, action=action)
            assert code == 201
            until(lambda: state(made["id"]) != "queued")
            return state(made["id"])

        def state(number: int) -> str:
            return str(served.ask("GET", f"/v1/runs/lab/commands/{number}")[1]["state"])

        def newest(peer: str) -> Any:
            return [one for one in posted(served) if one["peer"] == peer][-1]

        until(lambda: "3" in served.web.intake.closing.newest)  # which the log shows before
        assert told("3", "leave") == "obeyed"
        until(lambda: newest("3").get("left") is True)
        left_at = newest("3")["interval"]
        until(lambda: newest("4")["interval"] > left_at + 2)
        assert newest("3")["interval"] == left_at
        assert told("3", "join") == "obeyed"
        until(lambda: newest("3")["interval"] > left_at)
        assert not newest("3").get("left")
        with Reporter(served.url) as other:  # its peers are none of the simulation's
            other.report({"peer": "elsewhere", "interval": newest("4")["interval"]})
            assert other.flush(20)  # when it is answered, the collector knows the peer
        served.send("/commands", peer="elsewhere", action="leave", seconds=0.5)
        until(lambda: state(3) == "expired")


def test_overlay_closes_the_gap_where_a_hub_is_taken_away(tmp_path: Path) -> None:
    """By networkx, over what the peers report."""
    seed, chosen = 7, {"peers": 24, "intervals": ENDLESS}
    print("seed", seed)
    plan, folder = make_plan("hyparview", chosen, seed), Folder(tmp_path / "s")
    with (
        serving(collector_in(tmp_path, Options(commands=True))) as served,
        simulating(plan, folder, served.url),
    ):

        def overlay() -> nx.Graph:
            """By the newest report of each peer that is there."""
            newest = {one["peer"]: one for one in posted(served) if "peer" in one}
            there = [one for one in newest.values() if not one.get("left")]
            graph = nx.Graph([(one["peer"], of) for one in there for of in active(one)])
            graph.add_nodes_from(one["peer"] for one in there)
            return graph

        def is_whole(peers: int) -> bool:
            graph = overlay()
            return len(graph) == peers and nx.is_connected(graph)

        def tell(action: str) -> None:
            code, told = served.send("/commands", peer=hub, action=action)
            assert code == 201, told

        until(lambda: is_whole(24))
        graph = overlay()
        hub = max(graph, key=graph.degree)
        until(lambda: hub in served.web.intake.closing.newest)  # which the log shows before
        tell("leave")
        until(lambda: is_whole(23) and hub not in overlay())
        tell("join")
        until(lambda: is_whole(24))


def active(report: Any) -> list[str]:
    return [of["peer"] for of in report["neighbors"] if of["layer"] == "active"]


@pytest.mark.parametrize("system", ["poldercast", "scribe", "hyparview"])
def test_told_peers_are_there_or_not_whatever_was_planned(system: str) -> None:
    seed = 5
    print("seed", seed)
    rng, chosen = (
        random.Random(seed),
        {"peers": 20, "intervals": 30, "churn": "exponential:5s,down=3s"},
    )
    running, told = RunningSimulation(make_plan(system, chosen, seed)), dict[int, str]()
    for interval in range(30):
        lines = [json.loads(line) for line in running.run_interval(interval)]
        there = {int(one["peer"]) for one in lines if not one.get("left")}
        assert len(lines) == len({one["peer"] for one in lines})
        for peer, action in told.items():
            assert (peer in there) == (action == "join"), (interval, peer)
        peer, action = rng.randrange(20), rng.choice(["leave", "join"])
        for _ in range(2):  # obeying twice changes nothing
            assert running.obey(peer, action) is None
        told[peer] = action
    assert running.obey(0, "dance") == "a simulated peer cannot 'dance'"
    assert len(told) > 10
