"""Simulates a system, and keeps what its peers report."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import networkx as nx

from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import RunningSimulation


class Simulated:
    """A system after all intervals of its plan, and the reports of each interval."""

    def __init__(self, system: str, seed: int = 1, **chosen: Any) -> None:
        plan = make_plan(system, chosen, seed)
        self.running = RunningSimulation(plan)
        self.system: Any = self.running.system
        self.reports = [
            [json.loads(line) for line in self.running.run_interval(interval)]
            for interval in range(plan.world.intervals)
        ]

    def graph(self, layer: str, topic: str | None = None, interval: int = -1) -> nx.DiGraph:
        """The links of a layer at the end of an interval; all present peers are nodes of those
        without a topic, and its subscribers of those with one.
        """
        graph = nx.DiGraph()
        for report in self.reports[interval]:
            if topic is None or topic in report.get("topics", ()):
                graph.add_node(report["peer"])
            for link in report.get("neighbors", ()):
                if (link["layer"], link.get("topic")) == (layer, topic):
                    graph.add_edge(report["peer"], link["peer"])
        return graph

    def received(self) -> Iterator[dict[str, Any]]:
        """All receptions, with the `peer` and the `interval`."""
        for interval, reports in enumerate(self.reports):
            for report in reports:
                for copy in report["received"]:
                    yield {**copy, "peer": report["peer"], "interval": interval}

    def first_copies(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The first reception of each message at each peer."""
        first: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for copy in self.received():
            held = first[copy["message"]].setdefault(copy["peer"], copy)
            if copy["time_us"] < held["time_us"]:
                first[copy["message"]][copy["peer"]] = copy
        return first

    def sent(self, kind: str) -> int:
        """Control messages of a kind."""
        return sum(
            counted["messages_sent"]
            for reports in self.reports
            for report in reports
            for counted in report["control_kinds"]
            if counted["kind"] == kind
        )


def hit_ratio(run: Simulated) -> float:
    """The share of subscribers at the end of the interval of a publication that it reaches."""
    first, wanted, reached = run.first_copies(), 0, 0
    for reports in run.reports:
        for report in reports:
            for copy in report.get("sent", ()):
                if copy["hops"] == 0:
                    topic = copy["topic"]
                    there = {one["peer"] for one in reports if topic in one.get("topics", ())}
                    there.discard(report["peer"])
                    wanted += len(there)
                    reached += len(there & first[copy["message"]].keys())
    return reached / wanted


def relays_per_delivery(run: Simulated) -> float:
    """Receptions at peers that do not subscribe, over first receptions at those that do."""
    relayed = sum(not copy["subscribed"] for copy in run.received())
    firsts = [copy for copies in run.first_copies().values() for copy in copies.values()]
    return relayed / sum(copy["subscribed"] for copy in firsts)
