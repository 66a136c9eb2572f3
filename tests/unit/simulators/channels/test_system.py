"""The system that reports, the compiled pipeline, and plain lists: the same counts."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.channels import printed_layout
from vizpub.model.errors import UseError
from vizpub.simulators.channels.covers import RULES, cover
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.running import ChannelMeasurement, run
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import RunningSimulation

SECOND = 1_000_000
CLIENTS, CHANNELS = 20, 6
SMALL: dict[str, Any] = {
    "channels": CHANNELS, "peers": 1 + CHANNELS + CLIENTS, "intervals": 8, "listen": 2,
    "sources": 3, "items": 8, "profile": "zipf:6", "pages": "zipf:0.5",
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "calm": {"gap": "100ms"},
    "busy": {"gap": "4ms"},
    "fifo": {"gap": "4ms", "scheduler": "fifo", "assignment": "random"},
    "longest wait": {"gap": "4ms", "scheduler": "lwf", "assignment": "pc"},
    "drop": {"gap": "3ms", "scheduler": "drop", "drop_above": 5},
    "buffer": {"gap": "3ms", "buffer": 4, "mapping": "random"},
    "coalesce": {"gap": "3ms", "coalesce": True, "mapping": "c"},
    "coalesce, longest wait": {"gap": "3ms", "coalesce": True, "scheduler": "lwf"},
    "least loaded": {"gap": "6ms", "mapping": "cd", "assignment": "rr"},
    "perfect": {"gap": "6ms", "mapping": "perfect-c"},
    "sizes": {"gap": "6ms", "page_bytes": 100, "page_bytes_high": 2000, "mapping": "cd"},
    "start-up": {"gap": "6ms", "startup_profile": "uniform:6"},
    "quiet end": {"gap": "4ms", "last_update": 4},
}


class Told:
    """Counts of the reports of a run, and of its gauges."""

    def __init__(self, chosen: dict[str, Any], seed: int) -> None:
        running = RunningSimulation(make_plan("channels", chosen, seed))
        self.layout: ChannelLayout = running.system.layout  # type: ignore[attr-defined]
        self.reports = [
            json.loads(line) for i in range(chosen["intervals"]) for line in running.run_interval(i)
        ]
        self.published = running.published
        self.gauges: Counter[str] = Counter()
        self.heard: dict[tuple[int, str], int] = {}
        self.counts: Counter[str] = Counter()
        self.sent: Counter[int] = Counter()
        self.updated: dict[str, int] = {}
        for report in self.reports:
            self._count(report)

    def _count(self, report: dict[str, Any]) -> None:
        peer = int(report["peer"])
        for name, value in report["gauges"].items():
            self.gauges[name] += value
        for sent in report["sent"]:
            if peer == 0:
                self.updated[sent["message"]] = sent["time_us"]
                self.counts["passed"] += bool(sent["to"])
            else:
                self.sent[peer - 1] += 1
        for got in report["received"] if peer > CHANNELS else ():
            self.counts["receptions"] += 1
            known = (peer, got["message"])
            if not got["subscribed"]:
                self.counts["unwanted"] += 1
            elif known in self.heard:
                self.counts["duplicates"] += 1
            else:
                self.heard[known] = got["time_us"] - self.updated[got["message"]]

    def of_clients(self) -> tuple[list[int], list[int]]:
        """First receptions of wanted updates, and the sum of their staleness."""
        clients = range(1 + CHANNELS, 1 + CHANNELS + CLIENTS)
        of = {client: [s for (peer, _), s in self.heard.items() if peer == client]
              for client in clients}  # fmt: skip
        return [len(of[c]) for c in clients], [sum(of[c]) for c in clients]


@cache
def told_of(name: str) -> tuple[Told, int]:
    """A case, and its seed."""
    seed = 11 + len(name)
    return Told({**SMALL, **CASES[name]}, seed), seed


def compiled(told: Told, intervals: int, *, apart: bool = False) -> ChannelMeasurement:
    last = told.layout.parameters.last_update
    end = intervals * SECOND if last is None else (last + 1) * SECOND
    updates = told.layout.updates((SECOND, end))
    return run(told.layout, updates, intervals * SECOND, SECOND, apart=apart)


@pytest.mark.parametrize("name", CASES)
def test_reports_have_the_counts_of_the_compiled_pipeline(name: str) -> None:
    told, seed = told_of(name)
    found = compiled(told, SMALL["intervals"])
    heard, stale = told.of_clients()
    assert told.published == found.totals["updates"] > 0, seed
    for count in ("passed", "receptions", "unwanted", "duplicates"):
        assert told.counts[count] == found.totals[count], (count, seed)
    assert [told.sent[c] for c in range(CHANNELS)] == found.counts.sent.tolist(), seed
    assert heard == found.counts.heard.tolist(), seed
    assert stale == found.counts.stale.tolist(), seed
    counts = found.counts
    for gauge, expected in (
        ("sent", counts.sent), ("offered", counts.offered), ("lost", counts.lost),
        ("superseded", counts.superseded), ("heard", counts.heard), ("staleness_us", counts.stale),
    ):  # fmt: skip
        assert told.gauges[gauge] == expected.sum(), (gauge, seed)


class PlainChannels:
    """The channels with plain lists: waiting copies are (page, arrival, number, update)."""

    def __init__(self, layout: ChannelLayout) -> None:
        self.layout, self.parameters = layout, layout.parameters
        self.wanted = layout.wants.sum(axis=0).tolist()
        self.waiting: list[list[list[int]]] = [[] for _ in range(CHANNELS)]
        self.sending: list[tuple[int, int, int] | None] = [None] * CHANNELS
        self.counts = {name: [0] * CHANNELS for name in ("offered", "sent", "superseded", "lost")}
        self.heard: list[dict[int, int]] = [{} for _ in range(CLIENTS)]
        self.times: list[int] = []
        self.draws, self.number = layout.draws(), 0

    def run(self, times: list[int], pages: list[int], end: int) -> None:
        for now, page in zip(times, pages, strict=True):
            self.finish_until(now)
            self.times.append(now)
            for channel in self.map_page(page) if self.wanted[page] else ():
                self.offer(channel, page, now, len(self.times) - 1)
        self.finish_until(end - 1)

    def finish_until(self, now: int) -> None:
        while due := [(s[0], c) for c, s in enumerate(self.sending) if s and s[0] <= now]:
            self.finish(*min(due))

    def map_page(self, page: int) -> list[int]:
        layout = self.layout
        if layout.static_mapping is not None:
            return np.flatnonzero(layout.static_mapping[page]).tolist()
        chosen = np.empty(CHANNELS, np.int64)
        busy = [len(w) + bool(s) for w, s in zip(self.waiting, self.sending, strict=True)]
        clients, rule = np.flatnonzero(layout.wants[:, page]), RULES[self.parameters.mapping]
        count = cover(
            rule, clients, layout.channels_of, layout.reach[page], np.array(busy), self.draws,
            chosen,
        )  # fmt: skip
        return chosen[:count].tolist()

    def offer(self, channel: int, page: int, now: int, update: int) -> None:
        parameters, waiting = self.parameters, self.waiting[channel]
        self.counts["offered"][channel] += 1
        same = [copy for copy in waiting if copy[0] == page]
        if self.sending[channel] is None:
            self.transmit(channel, page, now, update)
        elif parameters.coalesce and same:
            same[0][3] = update
            self.counts["superseded"][channel] += 1
        elif parameters.buffer and len(waiting) >= parameters.buffer:
            self.counts["lost"][channel] += 1
        else:
            waiting.append([page, now, self.number, update])
            self.number += 1
            if parameters.scheduler == "drop" and len(waiting) > parameters.drop_above:
                waiting.remove(min(waiting, key=lambda copy: (self.wanted[copy[0]], copy[2])))
                self.counts["lost"][channel] += 1

    def transmit(self, channel: int, page: int, now: int, update: int) -> None:
        self.sending[channel] = (now + int(self.layout.transmission[page]), page, update)

    def finish(self, now: int, channel: int) -> None:
        transmitted = self.sending[channel]
        assert transmitted is not None
        _, page, update = transmitted
        self.counts["sent"][channel] += 1
        for client in np.flatnonzero(self.layout.listens[:, channel]).tolist():
            if self.layout.wants[client, page]:
                self.heard[client].setdefault(update, now - self.times[update])
        self.sending[channel] = None
        if waiting := self.waiting[channel]:
            following = max(waiting, key=lambda copy: self.worth(copy, waiting, now))
            waiting.remove(following)
            self.transmit(channel, following[0], now, following[3])

    def worth(self, copy: list[int], waiting: list[list[int]], now: int) -> tuple[int, int, int]:
        page, arrived, number, _ = copy
        if self.parameters.scheduler == "fifo":
            return 0, 0, -number
        same = [now - other[1] for other in waiting if other[0] == page]
        wait = sum(same) if self.parameters.scheduler == "lwf" else now - arrived
        return self.wanted[page] * wait, self.wanted[page], -number


@pytest.mark.parametrize("name", CASES)
def test_queues_are_those_of_plain_lists(name: str) -> None:
    told, seed = told_of(name)
    counted = compiled(told, SMALL["intervals"])
    last = told.layout.parameters.last_update
    end = SMALL["intervals"] * SECOND
    updates = told.layout.updates((SECOND, end if last is None else (last + 1) * SECOND))
    plain = PlainChannels(told.layout)
    plain.run(updates.times.tolist(), updates.pages.tolist(), end)
    for count, by_channel in plain.counts.items():
        assert by_channel == getattr(counted.counts, count).tolist(), (count, seed)
    assert [len(heard) for heard in plain.heard] == counted.counts.heard.tolist(), seed
    assert [sum(heard.values()) for heard in plain.heard] == counted.counts.stale.tolist(), seed
    backlog = sum(map(len, plain.waiting)) + sum(s is not None for s in plain.sending)
    assert backlog == counted.backlog, seed


@pytest.mark.parametrize("name", ["busy", "buffer", "coalesce", "sizes"])
def test_quantiles_of_a_client_are_those_of_its_reports(name: str) -> None:
    told, seed = told_of(name)
    found = compiled(told, SMALL["intervals"], apart=True)
    of: dict[int, list[int]] = {client: [] for client in range(CLIENTS)}
    for (peer, _), stale in told.heard.items():
        of[peer - 1 - CHANNELS].append(stale)
    for share in (0.5, 0.99):
        exact = [
            float(np.quantile(of[client], share, method="inverted_cdf")) if of[client] else None
            for client in range(CLIENTS)
        ]
        assert len(set(exact)) > CLIENTS / 3, seed
        assert found.client_quantiles(share) == pytest.approx(exact, rel=0.016), (share, seed)
    together = compiled(told, SMALL["intervals"])
    assert found.quantile(0.5) == together.quantile(0.5), seed
    for one, other in zip(found.counts[:-1], together.counts[:-1], strict=True):
        assert (one == other).all(), seed


def test_cases_lose_replace_and_repeat_copies() -> None:
    """Otherwise equal counts would say little."""
    seen: Counter[str] = Counter()
    for name in ("drop", "buffer", "coalesce", "busy"):
        told, _ = told_of(name)
        seen.update({f"{name} {key}": value for key, value in told.gauges.items()})
        seen[f"{name} duplicates"] += told.counts["duplicates"]
    assert min(seen["drop lost"], seen["buffer lost"], seen["coalesce superseded"]) > 100
    assert seen["buffer duplicates"] > 100
    assert seen["busy queue"] > 100


def test_peers_are_the_server_then_channels_then_clients() -> None:
    told = Told({**SMALL, **CASES["calm"]}, 2)
    last = [report for report in told.reports if report["interval"] == SMALL["intervals"] - 1]
    roles = {int(r["peer"]): [role["role"] for role in r["roles"]] for r in last}
    assert roles[0] == ["server"]
    assert all(roles[peer] == ["channel"] for peer in range(1, 1 + CHANNELS))
    for report in last:
        peer = int(report["peer"])
        links = report["neighbors"]
        topics = sorted(map(int, report["topics"]))
        if peer > CHANNELS:
            client = peer - 1 - CHANNELS
            assert {link["layer"] for link in links} == {"listens"}
            expected = (told.layout.channels_of[client] + 1).tolist()
            assert [int(link["peer"]) for link in links] == expected
            assert topics == np.flatnonzero(told.layout.wants[client]).tolist()
        else:
            assert not topics
    carried = {(int(link["topic"]), int(link["peer"]) - 1) for link in last[0]["neighbors"]}
    assert told.layout.static_mapping is not None
    assert carried == set(map(tuple, np.argwhere(told.layout.static_mapping).tolist()))
    assert {link["layer"] for link in last[0]["neighbors"]} == {"carries"}


def test_server_of_a_mapping_on_the_fly_feeds_all_channels() -> None:
    told = Told({**SMALL, **CASES["calm"], "mapping": "c"}, 2)
    layers = {link["layer"] for r in told.reports for link in r["neighbors"]}
    assert layers == {"listens", "feeds"}
    fed = [link["peer"] for r in told.reports if r["peer"] == "0" for link in r["neighbors"]]
    assert {*fed} == {str(1 + channel) for channel in range(CHANNELS)}


def test_latency_delays_each_hop() -> None:
    told = Told({**SMALL, "gap": "500ms", "latency": "constant:3ms"}, 2)
    least = int(told.layout.transmission.min())
    assert min(told.heard.values()) == least + 2 * 3_000


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"peers": 8, "channels": 7}, "--peers 9"),
        ({"publications": "every:1"}, "--publications"),
        ({"workload": "uniform"}, "--workload"),
        ({"churn": "exponential:20s,down=10s"}, "--churn"),
        ({"upload": 1000}, "--upload"),
        ({"mapping": "best"}, "mapping is random"),
        ({"listen": 9}, "9 of 8"),
        ({"page_bytes_high": 100}, "less than"),
        ({"pages": "gauss"}, "gauss"),
        ({"profile": "uniform:pages=0"}, "pages"),
    ],
)
def test_impossible_channels_are_refused(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(UseError, match=message):
        make_plan("channels", chosen)


def test_parameters_of_a_world_that_does_not_count_are_not_described() -> None:
    plan = make_plan("channels", {})
    assert plan.world.latency == "none"
    assert not plan.describe().keys() & {"workload", "publications", "interest", "churn"}
    assert plan.list_changes(plan.describe()) == []


def test_readings_of_missing_pages_are_in_the_header() -> None:
    chosen = {"mapping": "perfect-c", "scheduler": "lwf", "assignment": "rr"}
    told = RunningSimulation(make_plan("channels", chosen)).system.header_facts()["our_reading"]
    assert [text.partition(":")[0] for text in told] == [
        "assignment rr", "mapping perfect-c", "scheduler lwf",
    ]  # fmt: skip
    assert RunningSimulation(make_plan("channels", {"mapping": "c"})).system.header_facts() == {
        "our_reading": []
    }


def test_printed_list_runs_with_reports(tmp_path: Path) -> None:
    """Its files and names of pages, from options to reports."""
    given = printed_layout(tmp_path).parameters
    chosen = {
        name: getattr(given, name) for name in ("pages", "mapping", "profile", "channels", "listen")
    }
    running = RunningSimulation(
        make_plan("channels", {**chosen, "peers": 19, "intervals": 3, "gap": "10ms"})
    )
    told = [json.loads(line) for i in range(3) for line in running.run_interval(i)]
    topics = {topic for report in told for topic in report["topics"]}
    assert topics == set(map(str, range(8)))
    sent = {one["topic"] for report in told if report["peer"] == "0" for one in report["sent"]}
    assert "rest" in sent
