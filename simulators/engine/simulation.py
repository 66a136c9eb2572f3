"""Runs a simulation: from its plan to its reports."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from vizpub.model.errors import FULL, DiskFull, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.wording import amount
from vizpub.reports.records import RunHeader
from vizpub.simulators.engine.clock import Simulation, stream
from vizpub.simulators.engine.folder import Folder, MessageCounts, Result
from vizpub.simulators.engine.live import Live
from vizpub.simulators.engine.network import Publication, System
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.engine.plan import Plan
from vizpub.simulators.engine.reporter import Naming, ReportFiles, ReportLines
from vizpub.simulators.engine.systems import system_named
from vizpub.simulators.world.churn import Session
from vizpub.simulators.world.interest import Changes, InterestChange
from vizpub.simulators.world.publications import PlannedPublication


class RunningSimulation:
    """A system in its world, with its planned events."""

    def __init__(self, plan: Plan) -> None:
        world, setting = plan.world, plan.world.setting
        latency, own_workload = world.get_latency(), plan.own_workload
        workload = own_workload or world.get_workload()
        self.subscriptions = workload.subscriptions(setting.peers, stream(plan.seed, "workload"))
        self.network = Simulation(
            setting.peers,
            plan.seed,
            latency.delays(setting.peers, stream(plan.seed, "latency")),
            loss=world.loss,
            timeout_us=us(world.timeout),
            upload=[float(world.upload)] * setting.peers if world.upload else None,
        )
        self.network.has_fixed_delays = latency.is_fixed
        self.network.topic_names = self.subscriptions.names or ()
        self.network.supertopics = self.subscriptions.supertopics
        make: Any = system_named(plan.system).make
        self.system: System = make(self.network, plan.parameters, self.subscriptions.topics)
        topics = map(self.network.topic_name, range(self.subscriptions.topics))
        naming = Naming.of(setting.peers, topics)
        layers = world.chosen_layers(plan.layers)
        self.lines = ReportLines(world.reports, layers, naming, self.network, self.subscriptions)
        self.network.observer = self.lines
        self.published = self.unpublished = 0
        """Publications made, and those without a publisher that was up."""
        self.changed = self.unchanged = 0
        """Changes of interest made, and those of peers that were down or had made them already."""
        self._commanded: set[int] = set()
        """Peers that were told to leave or join: their planned sessions are over."""
        self._publishers = stream(plan.seed, "publishers")
        self._arrivals = stream(plan.seed, "arrivals")
        self._interval_us = setting.interval_us
        # Of each kind of planned event only the next one waits in the network's heap.
        self._sessions = iter(world.get_churn().sessions(setting, stream(plan.seed, "churn")))
        self._await_session()
        self._changes = world.get_interest().changes(
            self.subscriptions, setting, stream(plan.seed, "interest")
        )
        self._await_change(None)
        self._planned: Iterator[PlannedPublication] = (
            own_workload or world.get_publications()
        ).plan_publications(self.subscriptions, setting, stream(plan.seed, "publications"))
        self._await_publication()

    def run_interval(self, interval: int) -> Iterator[str]:
        """Simulate the next interval; yields the lines of its reports."""
        self.network.run((interval + 1) * self._interval_us)
        return self.lines.take(interval, self.system)

    def obey(self, peer: int, action: str) -> str | None:
        """Let a peer leave or join now, and no more as planned. Returns why not.

        A peer that was told before may be told the same again: nothing changes then.
        """
        if action not in ("leave", "join"):
            return f"a simulated peer cannot '{action}'"
        self._commanded.add(peer)
        if action == "join" and not self.network.up[peer]:
            self._come(peer)
        elif action == "leave" and self.network.up[peer]:
            self._go(peer, crash=False)
        return None

    def status(self) -> str:
        """The current state as text."""
        sent = sum(kind.sent for kind in self.network.kinds)
        return f"{amount(len(self.network.present), 'peer')} up, {amount(sent, 'message')}"

    def result(self, seconds: float, intervals: int) -> Result:
        """The result so far."""
        kinds = self.network.kinds
        return Result(
            intervals=intervals,
            peers=sum(map(bool, self.network.sessions)),
            published=self.published,
            unpublished=self.unpublished,
            changed=self.changed,
            unchanged=self.unchanged,
            seconds=round(seconds, 3),
            described=self.system.header_facts(),
            messages=tuple(
                MessageCounts(
                    kind.name,
                    "publication" if kind.is_publication else "control",
                    kind.sent,
                    kind.bytes,
                    kind.received,
                    kind.lost,
                )
                for kind in kinds
            ),
        )

    def _await_session(self) -> None:
        if session := next(self._sessions, None):
            start_us = max(session.start_us, self.network.now)
            self.network.at(start_us, partial(self._begin, session))

    def _begin(self, session: Session) -> None:
        self._await_session()
        if session.start_us:
            self._join(session)
            return
        # Peers that are up from the start join one by one, all before the first reports.
        latest = self._interval_us if session.end_us is None else session.end_us
        wait_us = self._arrivals.randrange(max(1, min(self._interval_us, latest) // 2))
        self.network.at(wait_us, partial(self._join, session))

    def _join(self, session: Session) -> None:
        if session.peer in self._commanded:
            return
        if session.end_us is not None:
            self.network.at(session.end_us, partial(self._end, session))
        self._come(session.peer)

    def _come(self, peer: int) -> None:
        self.network.come_up(peer)
        self.system.join(peer, self.subscriptions.of(peer))

    def _end(self, session: Session) -> None:
        if session.peer not in self._commanded:
            self._go(session.peer, crash=session.crash)

    def _go(self, peer: int, *, crash: bool) -> None:
        if not crash:
            self.system.leave(peer)
        self.network.go_down(peer)
        self.system.go_down(peer)
        self.lines.on_down(peer)

    def _await_change(self, was_made: bool | None) -> None:
        """Plan the next change of interest; `was_made` is the fate of the one before it."""
        while (change := _next_of(self._changes, was_made)) and change.time_us <= self.network.now:
            was_made = self._change(change)
        if change:
            self.network.at(change.time_us, partial(self._change_then, change))

    def _change_then(self, change: InterestChange) -> None:
        self._await_change(self._change(change))

    def _change(self, change: InterestChange) -> bool:
        """Make a change; return False if the peer is down, or has made it already."""
        peer, topic, of = change.peer, change.topic, self.subscriptions
        if not self.network.up[peer] or change.subscribes == of.choices.has(peer, topic):
            self.unchanged += 1
            return False
        self.changed += 1
        if change.subscribes:
            for one in of.add(peer, topic):
                self.system.subscribe(peer, one)
        else:
            for one in of.remove(peer, topic):
                self.system.unsubscribe(peer, one)
        return True

    def _await_publication(self) -> None:
        if planned := next(self._planned, None):
            self.network.at(planned.time_us, partial(self._publish, planned))

    def _publish(self, planned: PlannedPublication) -> None:
        self._await_publication()
        publisher = self._publisher(planned)
        topic = None if publisher is None else self._topic(planned, publisher)
        if publisher is None or topic is None:
            self.unpublished += 1
            return
        for one in (topic, *planned.also):
            publication = Publication(self.published, one, publisher, planned.size)
            self.published += 1
            self.system.publish(publisher, publication)

    def _publisher(self, planned: PlannedPublication) -> int | None:
        up = self.network.up
        if planned.publisher is not None:
            return planned.publisher if up[planned.publisher] else None
        if planned.from_ == "anyone" or planned.topic is None:
            able: Sequence[int] = self.network.present
        else:
            subscribers = self.subscriptions.subscribers(planned.topic)
            able = [peer for peer in sorted(subscribers) if up[peer]]
        return self._publishers.choice(able) if able else None

    def _topic(self, planned: PlannedPublication, publisher: int) -> int | None:
        """The topic of the publication; null if its publisher has none to publish on."""
        if planned.topic is not None:
            return planned.topic
        if planned.from_ == "subscriber":
            topics = self.subscriptions.of(publisher)
        else:
            subscribers = self.subscriptions.subscribers
            topics = [topic for topic in range(self.subscriptions.topics) if subscribers(topic)]
        return self._publishers.choice(topics) if topics else None


def _next_of(changes: Changes, was_made: bool | None) -> InterestChange | None:
    """The next change, null after the last; `was_made` is the fate of the one before it."""
    try:
        return changes.send(was_made)
    except StopIteration:
        return None


def simulate(
    plan: Plan,
    folder: Folder,
    progress: Progress = silent,
    *,
    replace: bool = False,
    live: Live | None = None,
) -> Result:
    """Simulate, and write the reports to `folder.reports`; with `live`, report to a collector, too.

    After an interruption (by an exception, which is passed on) the finished intervals are kept, and
    the same call starts from the beginning. A finished simulation is reused.

    Raises: UseError if the folder holds something else and `replace` is false, or cannot be
    written; DiskFull.
    """
    try:
        return _simulate(plan, folder, progress, replace, live)
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(str(folder.path)) from error
        raise UseError(f"cannot write to {folder.path}: {error.strerror or error}") from error


def _simulate(
    plan: Plan, folder: Folder, progress: Progress, replace: bool, live: Live | None
) -> Result:
    if earlier := folder.result(plan, replace=replace):
        if live:
            raise UseError(f"{folder.path} is finished, and would report nothing: give --replace")
        return earlier
    start = time.perf_counter()
    # A simulation that cannot start leaves no files, so that it can be corrected and repeated.
    running, intervals = RunningSimulation(plan), plan.world.intervals
    header = _header(plan, running.system)
    if live:
        live.begin(header)
    folder.begin(plan)
    with ReportFiles(folder.reports, header) as files:
        for interval in range(intervals):
            lines: Iterable[str] = running.run_interval(interval)
            files.add(live.interval(interval, lines) if live else lines)
            if live:
                live.obey(plan.world.setting.peers, running.obey)
            progress("simulating", interval + 1, intervals, running.status())
        files.finish()
    if live:
        live.end(intervals - 1)
    result = running.result(time.perf_counter() - start, intervals)
    folder.complete(plan, result)
    return result


def simulate_quietly(task: tuple[Plan, Folder, bool]) -> Result:
    """Simulate (plan, folder, replace) without progress, as one of many tasks."""
    plan, folder, replace = task
    return simulate(plan, folder, replace=replace)


def _header(plan: Plan, system: System) -> RunHeader:
    described = system.header_facts()
    # It follows from parameters and seed, so comparisons must not part seeds by it.
    names = {"described": list(described)} if described else {}
    return RunHeader(
        run=plan.name,
        protocol=plan.protocol,
        parameters={**plan.describe(), **described, **names},
        seed=plan.seed,
        interval_us=us(plan.world.interval),
    )
