"""A simulation from its plan to its reports, of the system that the guide writes."""

from __future__ import annotations

import gzip
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.support.few import few
from tests.support.words import naming
from vizpub.model.errors import InputError, UseError
from vizpub.reports.files import Line, ReportReader
from vizpub.reports.records import Report, RunEnd, RunHeader
from vizpub.simulators.engine.folder import NO_SIMULATION, OTHER_FILE, Folder
from vizpub.simulators.engine.plan import Plan, make_plan
from vizpub.simulators.engine.simulation import RunningSimulation, simulate

Plans = Callable[..., Plan]
PUBLISHING = "poisson:0.05,first=4"


def records(folder: Folder) -> Iterator[Any]:
    for path in sorted(folder.reports.iterdir()):
        for line in ReportReader(path):
            assert not line.problems
            yield line.record


def reports(folder: Folder) -> list[Report]:
    return [record for record in records(folder) if isinstance(record, Report)]


def files(folder: Folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.reports.iterdir())}


class TestReports:
    def test_reports_keep_the_contract(self, flooding: Plans, tmp_path: Path) -> None:
        plan = flooding(publications=PUBLISHING, churn="exponential:5s,down=5s", seed=3)
        result = simulate(plan, Folder(tmp_path))
        first, *rest, last = records(Folder(tmp_path))
        assert isinstance(first, RunHeader)
        assert (first.protocol, first.seed, first.interval_us) == ("flood", 3, 1_000_000)
        assert first.parameters["degree"] == 4
        assert last == RunEnd(last_interval=11, run="flood-3")
        assert all(isinstance(record, Report) for record in rest)
        assert any(record.left for record in rest), "nobody went down within an interval"
        assert result.published > 0

    def test_peer_that_is_up_reports_every_interval(self, flooding: Plans, tmp_path: Path) -> None:
        simulate(flooding(), Folder(tmp_path))
        assert sorted((int(r.peer), r.interval) for r in reports(Folder(tmp_path))) == [
            (peer, interval) for peer in range(40) for interval in range(12)
        ]

    def test_reported_traffic_equals_the_counts_and_sent_copies_arrive(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        """Sums over peers and intervals are the counts by kind; each copy sent is received."""
        plan = flooding(publications=PUBLISHING + ",last=10")
        result = simulate(plan, Folder(tmp_path))
        told = reports(Folder(tmp_path))
        for traffic in ("control", "publication"):
            kinds = [kind for kind in result.messages if kind.traffic == traffic]
            counted = [getattr(report, traffic) for report in told]
            assert sum(kind.sent for kind in kinds) == sum(c.messages_sent for c in counted)
            assert sum(kind.bytes for kind in kinds) == sum(c.bytes_sent for c in counted)
            assert sum(kind.received for kind in kinds) == sum(c.messages_received for c in counted)
        kinds = [entry for report in told for entry in report.control_kinds]
        assert {
            (
                kind.kind,
                sum(entry.messages_sent for entry in kinds if entry.kind == kind.kind),
                sum(entry.messages_received for entry in kinds if entry.kind == kind.kind),
                sum(entry.bytes_sent for entry in kinds if entry.kind == kind.kind),
            )
            for kind in kinds
        } == {
            (k.kind, k.sent, k.received, k.bytes) for k in result.messages if k.traffic == "control"
        }
        sent = sorted((r.peer, to, s.message) for r in told for s in r.sent for to in s.to)
        received = sorted((c.from_peer, r.peer, c.message) for r in told for c in r.received)
        assert sent == received
        assert len(sent) == sum(k.sent for k in result.messages if k.traffic == "publication")

    def test_flood_takes_shortest_paths(self, flooding: Plans, tmp_path: Path) -> None:
        """With one latency for all, first arrivals travel as far as a breadth-first search."""
        late = "poisson:0.05,first=25,last=28"
        simulate(flooding(intervals=30, publications=late), Folder(tmp_path))
        told = reports(Folder(tmp_path))
        before, graph = (
            nx.DiGraph((r.peer, n.peer) for r in told if r.interval == at for n in r.neighbors)
            for at in (24, 29)
        )
        assert before.edges == graph.edges, "the overlay still changes"
        hops: dict[str, dict[str, int]] = defaultdict(dict)
        publisher = {}
        for copy, peer in ((c, r.peer) for r in told for c in r.received or ()):
            hops[copy.message].setdefault(peer, copy.hops)
            publisher[copy.message] = copy.publisher
        assert len(hops) > 20
        for message, reached in hops.items():
            away = nx.single_source_shortest_path_length(graph, publisher[message])
            # The publisher gets its message back and does not count.
            assert {**reached, publisher[message]: 0} == away

    def test_arrivals_tell_whether_the_peer_subscribed_then(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        """In the interval in which it goes down, too."""
        plan = flooding(publications=PUBLISHING, churn="exponential:5s,down=5s", seed=3)
        simulate(plan, Folder(tmp_path))
        wanted = RunningSimulation(plan).subscriptions
        left: set[bool | None] = set()
        for report in reports(Folder(tmp_path)):
            for copy in report.received or ():
                assert copy.topic is not None
                topics = wanted.of(int(report.peer))
                assert copy.subscribed is (int(copy.topic) in topics)
                left |= {copy.subscribed} if report.left else set()
        assert left == {True, False}

    @pytest.mark.parametrize(
        ("content", "absent"),
        [
            ("complete", set()),
            ("structure", {"sent", "received"}),
            ("dissemination", {"neighbors", "roles"}),
        ],
    )
    def test_reports_have_only_the_requested_content(
        self, flooding: Plans, tmp_path: Path, content: str, absent: set[str]
    ) -> None:
        plan = flooding(reports=content, publications=PUBLISHING)
        simulate(plan, Folder(tmp_path))
        fields = {"neighbors", "roles", "sent", "received", "topics", "control", "publication"}
        fields.add("control_kinds")
        for report in reports(Folder(tmp_path)):
            assert {name for name in fields if getattr(report, name) is None} == absent


class TestInterest:
    """Subscriptions that change during a run."""

    SYSTEMS = ("cyclon", "pastry", "poldercast", "scribe")

    @pytest.mark.parametrize("system", SYSTEMS)
    def test_scripted_changes_reach_the_system_and_the_reports(
        self, system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "topics.csv").write_text("0,a\n1,a\n2,b\n3,c\n", "utf-8")
        (tmp_path / "interest.csv").write_text(
            # Peer 3 is down then, and peer 2 subscribes already.
            "4,0,subscribe,b\n4.5s,2,subscribe,b\n6,1,unsubscribe,a\n7,3,subscribe,a\n",
            "utf-8",
        )
        plan = make_plan(
            system,
            {
                "peers": 4,
                "intervals": 9,
                "workload": f"file:{tmp_path}/topics.csv",
                "interest": f"script:{tmp_path}/interest.csv",
            },
        )
        running = RunningSimulation(plan)
        told: list[tuple[str, int, int, int]] = []
        for name in ("subscribe", "unsubscribe"):
            made = getattr(running.system, name)
            note = partial(_noted, told, name, running, made)
            monkeypatch.setattr(running.system, name, note)
        topics: dict[str, list[tuple[str, ...] | None]] = defaultdict(list)
        for interval in range(9):
            if interval == 7:
                running.network.go_down(3)
                running.system.go_down(3)
            (tmp_path / "r.ndjson").write_text("".join(running.run_interval(interval)), "utf-8")
            for line in ReportReader(tmp_path / "r.ndjson"):
                assert isinstance(line.record, Report)
                topics[line.record.peer].append(line.record.topics)
        assert told == [("subscribe", 4_000_000, 0, 1), ("unsubscribe", 6_000_000, 1, 0)]
        assert (running.changed, running.unchanged) == (2, 2)
        assert topics == {
            "0": [("a",)] * 4 + [("a", "b")] * 5,
            "1": [("a",)] * 6 + [()] * 3,
            "2": [("b",)] * 9,
            "3": [("c",)] * 7,
        }

    @pytest.mark.parametrize("system", few(["poldercast", "scribe"], ["scribe"]))
    def test_publications_follow_changing_interest(self, system: str, tmp_path: Path) -> None:
        """By the reports alone: who subscribed for 15 intervals gets what is published; who has
        not since then gets none of it in PolderCast, and in Scribe only to pass it on.
        """
        settled = 15
        plan = make_plan(
            system,
            {
                "peers": 40,
                "intervals": 68,
                "workload": "uniform:topics=12,subscriptions=4",
                "interest": "exponential:30s,pause=5s",
                "publications": "each:4,first=30,last=60",
            },
        )
        result = simulate(plan, Folder(tmp_path))
        assert result.changed > 200
        states: dict[str, list[set[str]]] = defaultdict(list)
        published, reached = {}, defaultdict(set)
        for report in reports(Folder(tmp_path)):
            states[report.peer].append({*(report.topics or ())})
            for copy in report.sent or ():
                if not copy.hops:
                    published[copy.message] = report.peer, report.interval, copy.topic
            for copy in report.received or ():
                if copy.subscribed:
                    reached[copy.message].add(report.peer)
        wanting = missed = strangers = unwanted = 0
        for message, (publisher, at, topic) in published.items():
            for peer, history in states.items():
                recent = [topic in state for state in history[at - settled : at + 4]]
                if peer != publisher and all(recent):
                    wanting += 1
                    missed += peer not in reached[message]
                elif not any(recent):
                    strangers += 1
                    unwanted += peer in reached[message]
        assert min(wanting, strangers) > 500
        assert missed <= wanting * (0.01 if system == "poldercast" else 0)
        assert unwanted == 0

    def test_changes_of_one_seed_are_the_same_in_all_systems(self) -> None:
        world = {
            "peers": 30,
            "intervals": 30,
            "interest": "exponential:20s,pause=5s",
            "churn": "exponential:15s,down=5s",
        }
        seen = []
        for system in self.SYSTEMS:
            running = RunningSimulation(make_plan(system, world, seed=4))
            for interval in range(30):
                list(running.run_interval(interval))
            subscriptions = [running.subscriptions.of(peer) for peer in range(30)]
            seen.append((running.changed, running.unchanged, subscriptions))
        assert all(one == seen[0] for one in seen)
        assert min(seen[0][:2]) > 50

    def test_interest_that_stays_is_not_named_in_the_run(self, flooding: Plans) -> None:
        """So reports are, byte for byte, those of a run from before there were changes."""
        assert "interest" not in flooding().describe()
        changing = flooding(interest="exponential:5s")
        assert changing.describe()["interest"] == "exponential:5s"


def _noted(
    told: list[tuple[str, int, int, int]],
    name: str,
    running: RunningSimulation,
    made: Callable[[int, int], None],
    peer: int,
    topic: int,
) -> None:
    told.append((name, running.network.now, peer, topic))
    made(peer, topic)


class TestPublishers:
    """Who publishes."""

    def published(self, folder: Folder) -> list[tuple[Report, Any]]:
        told = reports(folder)
        return [(report, copy) for report in told for copy in report.sent or () if not copy.hops]

    def test_publisher_is_a_subscriber_or_anyone(self, flooding: Plans, tmp_path: Path) -> None:
        workload = "uniform:topics=8,subscriptions=2"
        for who, models in (("subscriber", ("poisson:0.5", "each:3")), ("anyone", ("every:1",))):
            for model in models:
                folder = Folder(tmp_path / model)
                chosen = f"{model},from={who}"
                simulate(flooding(workload=workload, publications=chosen), folder)
                subscribing = [
                    copy.topic in report.topics for report, copy in self.published(folder)
                ]
                assert len(subscribing) > 40
                # Of anyone, a fourth subscribes.
                share = sum(subscribing) / len(subscribing)
                assert share == 1 if who == "subscriber" else abs(share - 0.25) < 0.15

    def test_peers_publish_their_number_each(self, flooding: Plans, tmp_path: Path) -> None:
        result = simulate(flooding(publications="each:5,from=anyone"), Folder(tmp_path))
        published = [report.peer for report, _ in self.published(Folder(tmp_path))]
        # A few publish in their first half interval, before they have joined.
        assert result.published == len(published) == 200 - result.unpublished
        assert result.unpublished < 10
        assert max(map(published.count, published)) == 5

    def test_publication_on_several_topics_is_a_message_on_each(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        told = "script:at=6,topic=3+5+7,from=anyone"
        workload = "uniform:topics=8,subscriptions=2"
        result = simulate(flooding(publications=told, workload=workload), Folder(tmp_path))
        published = self.published(Folder(tmp_path))
        assert result.published == 3
        assert [copy.topic for _, copy in published] == ["3", "5", "7"]
        assert len({report.peer for report, _ in published}) == 1
        arrived = [
            (copy.message, report.peer)
            for report in reports(Folder(tmp_path))
            for copy in report.received or ()
        ]
        assert {message for message, _ in arrived} == {"0", "1", "2"}


class TestGauges:
    """Numbers of the system's own in its reports."""

    def gauged(
        self, plan: Plan, folder: Folder, gauge: Callable[[RunningSimulation, int], None]
    ) -> list[Report]:
        """Reports of a run in which every peer gauges something twice in each second interval."""
        running = RunningSimulation(plan)
        lines = []
        for interval in range(plan.world.intervals):
            if interval % 2:
                for peer in range(plan.world.peers):
                    gauge(running, peer)
                    gauge(running, peer)
            lines += running.run_interval(interval)
        path = folder.path / "gauged.ndjson"
        path.write_text("".join(lines), "utf-8")
        return [record for record in map(_report, ReportReader(path)) if record]

    def test_values_of_an_interval_add_up_and_the_next_begins_without(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        def gauge(running: RunningSimulation, peer: int) -> None:
            running.network.gauge(peer, "lookups", 1)
            running.network.gauge(peer, "wait", peer / 4)

        told = self.gauged(flooding(intervals=4, peers=5), Folder(tmp_path), gauge)
        assert {(int(r.peer), r.interval): r.gauges for r in told if r.interval} == {
            (peer, at): {"lookups": 2, "wait": peer / 2} if at % 2 else None
            for peer in range(5)
            for at in (1, 2, 3)
        }

    def test_peer_that_left_reports_what_it_counted_and_one_that_is_down_nothing(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        plan = flooding(peers=30, intervals=12, churn="exponential:3s,down=3s", seed=5)
        up: list[tuple[int, int]] = []

        def gauge(running: RunningSimulation, peer: int) -> None:
            if running.network.up[peer]:
                up.append((peer, running.network.now // 1_000_000))
            running.network.gauge(peer, "lookups", 1)

        told = self.gauged(plan, Folder(tmp_path), gauge)
        counted = {(int(r.peer), r.interval) for r in told if r.gauges}
        assert counted == set(up)
        assert any(r.left for r in told if r.gauges)

    def test_state_of_a_peer_is_reported_as_the_system_says(
        self, flooding: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan = flooding(intervals=2, peers=4)
        running = RunningSimulation(plan)
        monkeypatch.setattr(running.system, "gauges", lambda peer: [("queue", peer)])
        (tmp_path / "r.ndjson").write_text("".join(running.run_interval(0)), "utf-8")
        told = [record for record in map(_report, ReportReader(tmp_path / "r.ndjson")) if record]
        assert {r.peer: r.gauges for r in told} == {str(peer): {"queue": peer} for peer in range(4)}

    @pytest.mark.parametrize(
        ("name", "value", "problem"),
        [
            ("queue", float("nan"), "'gauges.queue' is not finite"),
            ("queue length", 1.0, "a name that is not 1 to 64 letters"),
        ],
    )
    def test_number_that_no_report_holds_ends_the_run(
        self, flooding: Plans, name: str, value: float, problem: str
    ) -> None:
        running = RunningSimulation(flooding(intervals=3, peers=4))
        list(running.run_interval(0))
        running.network.gauge(2, name, value)
        with pytest.raises(InputError, match=f"peer 2 .*{problem}"):
            list(running.run_interval(1))


def _report(line: Line) -> Report | None:
    return line.record if isinstance(line.record, Report) else None


class TestSeeds:
    def test_report_files_of_one_seed_are_identical(self, flooding: Plans, tmp_path: Path) -> None:
        world = {"publications": PUBLISHING, "churn": "exponential:5s,down=5s", "loss": 0.05}
        for name, seed in (("a", 7), ("b", 7), ("c", 8)):
            simulate(flooding(seed=seed, **world), Folder(tmp_path / name))
        assert files(Folder(tmp_path / "a")) == files(Folder(tmp_path / "b"))
        assert files(Folder(tmp_path / "a")) != files(Folder(tmp_path / "c"))

    def test_world_of_one_seed_is_independent_of_system_parameters(self, flooding: Plans) -> None:
        """Who is up, who subscribes and what is published do not hang on the system."""
        world = {"publications": PUBLISHING, "churn": "exponential:5s,down=5s"}
        seen = []
        for degree in (2, 6):
            running = RunningSimulation(flooding(degree=degree, **world))
            ups = [[*running.network.present] for i in range(12) if [*running.run_interval(i)]]
            seen.append((ups, running.published, [running.subscriptions.of(p) for p in range(40)]))
        assert seen[0] == seen[1]


class TestFolder:
    def test_report_files_hold_blocks_of_50_intervals(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        simulate(flooding(peers=3, intervals=101), Folder(tmp_path))
        assert list(files(Folder(tmp_path))) == [
            f"reports-{first:06}.ndjson.gz" for first in (0, 50, 100)
        ]

    def test_finished_simulation_is_found_and_not_repeated(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        folder = Folder(tmp_path)
        result = simulate(flooding(), folder)
        before = folder.reports.stat().st_mtime_ns
        assert simulate(flooding(), folder) == result
        assert folder.reports.stat().st_mtime_ns == before

    def test_killed_replacement_is_not_taken_for_complete(
        self, flooding: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Wherever it is killed: the reports are those of the new simulation, or of none."""
        folder, plan = Folder(tmp_path), flooding()
        simulate(plan, folder)
        remove = shutil.rmtree

        def remove_some(path: Path) -> None:
            next(path.iterdir()).unlink()
            raise KeyboardInterrupt

        for killed in (remove_some, remove):
            monkeypatch.setattr(shutil, "rmtree", killed)
            with suppress(KeyboardInterrupt):
                folder.begin(plan)
            assert folder.result(plan) is None
        assert not folder.reports.exists()

    def test_other_simulation_in_the_folder_is_kept_unless_replaced(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        simulate(flooding(intervals=60), Folder(tmp_path))
        with pytest.raises(UseError, match=naming("intervals 60, not 20", "--replace")):
            simulate(flooding(intervals=20), Folder(tmp_path))
        simulate(flooding(intervals=20), Folder(tmp_path), replace=True)
        assert max(report.interval for report in reports(Folder(tmp_path))) == 19

    def test_user_files_in_the_folder_are_kept(self, flooding: Plans, tmp_path: Path) -> None:
        (tmp_path / "thesis.tex").write_text("years of work", "utf-8")
        with pytest.raises(UseError, match=naming(tmp_path, NO_SIMULATION)):
            simulate(flooding(), Folder(tmp_path), replace=True)
        assert (tmp_path / "thesis.tex").exists()

    def test_failed_start_leaves_the_folder_empty(self, flooding: Plans, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=naming("nowhere.csv")):
            simulate(flooding(workload="file:nowhere.csv"), Folder(tmp_path))
        assert not [*tmp_path.iterdir()]

    @pytest.mark.parametrize("text", ["{}", "[1]", "years of work"])
    def test_foreign_simulation_json_is_kept_and_refused(
        self, flooding: Plans, tmp_path: Path, text: str
    ) -> None:
        (tmp_path / "simulation.json").write_text(text, "utf-8")
        with pytest.raises(UseError, match=naming(tmp_path / "simulation.json", OTHER_FILE)):
            simulate(flooding(), Folder(tmp_path), replace=True)
        assert (tmp_path / "simulation.json").read_text("utf-8") == text

    def test_interrupted_run_keeps_its_full_intervals(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        def interrupt(step: str, done: int, total: int, note: str = "") -> None:
            if done == 55:
                raise KeyboardInterrupt

        folder, plan = Folder(tmp_path), flooding(intervals=90, peers=5)
        with pytest.raises(KeyboardInterrupt):
            simulate(plan, folder, interrupt)
        found = [*records(folder)]
        assert {r.interval for r in found if isinstance(r, Report)} == set(range(55))
        assert not any(isinstance(record, RunEnd) for record in found)
        assert not [*folder.reports.glob(".*")]
        assert simulate(plan, folder).intervals == 90, "the same call begins anew"
        assert {r.interval for r in reports(folder)} == set(range(90))

    def test_report_files_can_be_decompressed_to_their_end(
        self, flooding: Plans, tmp_path: Path
    ) -> None:
        """Of files that are there, each can be read to its end."""
        simulate(flooding(intervals=60, peers=5), Folder(tmp_path))
        for content in files(Folder(tmp_path)).values():
            gzip.decompress(content)
