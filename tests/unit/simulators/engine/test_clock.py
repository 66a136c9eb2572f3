"""The world in virtual time."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from scipy import stats

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import COPY_BYTES, Copy, Publication

PERIOD = 1_000_000
LATENCY = 10_000


def world(size: int = 5, seed: int = 1, **options: Any) -> Simulation:
    made = Simulation(size, seed, lambda sender, to: LATENCY, **options)
    for peer in range(size):
        made.come_up(peer)
    return made


class Arrivals:
    """Keeps what arrives and what fails, with the time."""

    def __init__(self, net: Simulation, *, watched: bool = False) -> None:
        self.net = net
        self.arrived: list[tuple[int, int, int, Any]] = []
        self.failed: list[tuple[int, int, int, Any]] = []
        self.kind = net.kind("note", self.on_note, failed=self.on_failed if watched else None)

    def on_note(self, peer: int, sender: int, payload: Any) -> None:
        self.arrived.append((self.net.now, peer, sender, payload))

    def on_failed(self, peer: int, to: int, payload: Any) -> None:
        self.failed.append((self.net.now, peer, to, payload))


class TestMessages:
    def test_message_arrives_after_the_latency(self) -> None:
        net = world()
        notes = Arrivals(net)
        net.at(500, lambda: net.send(notes.kind, 0, 3, "hello", 20))
        net.run(500 + LATENCY)
        assert notes.arrived == []
        net.run(PERIOD)
        assert notes.arrived == [(500 + LATENCY, 3, 0, "hello")]
        assert net.now == PERIOD

    def test_messages_of_one_time_arrive_in_the_order_sent(self) -> None:
        net = world()
        notes = Arrivals(net)
        for number in range(20):
            net.send(notes.kind, number % 5, 4 - number % 5, number, 1)
        net.run(PERIOD)
        assert [payload for *_, payload in notes.arrived] == list(range(20))

    def test_messages_are_counted_at_sender_and_receiver(self) -> None:
        net = world()
        notes = Arrivals(net)
        net.send(notes.kind, 0, 1, None, 20)
        net.send(notes.kind, 0, 2, None, 30)
        net.run(PERIOD)
        assert (notes.kind.sent, notes.kind.bytes, notes.kind.received) == (2, 50, 2)
        sender, receiver = net.control.take(0), net.control.take(2)
        assert (sender.messages_sent, sender.bytes_sent, sender.messages_received) == (2, 50, 0)
        assert (receiver.messages_received, receiver.bytes_received) == (1, 30)
        assert net.control.take(0).messages_sent == 0, "counting begins anew"
        assert net.publication.take(0).messages_sent == 0

    def test_message_to_a_down_peer_fails_after_timeout(self) -> None:
        net = world(timeout_us=70_000)
        notes = Arrivals(net, watched=True)
        net.go_down(3)
        net.send(notes.kind, 0, 3, "hello", 20)
        net.run(PERIOD)
        assert notes.failed == [(LATENCY + 70_000, 0, 3, "hello")]
        assert (notes.arrived, notes.kind.lost) == ([], 1)

    def test_sender_that_went_down_is_told_no_failure(self) -> None:
        net = world()
        notes = Arrivals(net, watched=True)
        net.go_down(3)
        net.send(notes.kind, 0, 3, "hello", 20)
        net.run(LATENCY * 2)
        net.go_down(0)
        net.come_up(0)
        net.run(PERIOD * 5)
        assert notes.failed == []

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_messages_are_lost_at_the_given_rate(self, seed: int) -> None:
        net, count, loss = world(seed=seed, loss=0.1), 5000, 0.1
        notes = Arrivals(net, watched=True)
        for _ in range(count):
            net.send(notes.kind, 0, 1, None, 1)
        net.run(PERIOD)
        assert len(notes.arrived) + len(notes.failed) == count
        assert stats.binomtest(len(notes.failed), count, loss).pvalue > 1e-3

    def test_messages_queue_at_a_sender_with_limited_upload(self) -> None:
        net = world(upload=[1000.0] * 5)
        notes = Arrivals(net)
        for number in range(3):
            net.send(notes.kind, 0, 1, number, 500)
        net.send(notes.kind, 2, 1, "other", 500)
        net.run(10 * PERIOD)
        assert [(time, payload) for time, _, _, payload in notes.arrived] == [
            (500_000 + LATENCY, 0),
            (500_000 + LATENCY, "other"),
            (1_000_000 + LATENCY, 1),
            (1_500_000 + LATENCY, 2),
        ]

    @pytest.mark.parametrize("loss", [0.0, 1.0])
    def test_restarted_sender_is_told_only_failures_after_its_restart(self, loss: float) -> None:
        """Be it lost on its way or sent to somebody who is down on arrival."""
        net = world(loss=loss)
        notes = Arrivals(net, watched=True)
        net.go_down(1)
        net.send(notes.kind, 0, 1, "before", 10)
        net.go_down(0)
        net.come_up(0)
        net.send(notes.kind, 0, 1, "after", 10)
        net.run(10 * PERIOD)
        assert [payload for *_, payload in notes.failed] == ["after"]

    def test_restarted_sender_does_not_wait_for_its_earlier_upload(self) -> None:
        net = world(upload=[1000.0] * 5)
        notes = Arrivals(net)
        net.send(notes.kind, 0, 1, "before", 50_000)
        net.go_down(0)
        net.run(PERIOD)
        net.come_up(0)
        net.send(notes.kind, 0, 1, "after", 500)
        net.run(100 * PERIOD)
        times = {payload: time for time, _, _, payload in notes.arrived}
        assert times["after"] == PERIOD + 500_000 + LATENCY


class TestPublications:
    def test_copies_travel_a_hop_and_reach_the_observer(self) -> None:
        net = world()
        told: list[tuple[Any, ...]] = []

        class Listening:
            def on_sent(self, *what: Any) -> None:
                told.append(("sent", net.now, *what))

            def on_received(self, *what: Any) -> None:
                told.append(("received", net.now, *what))

        net.observer = Listening()
        arrived: list[Copy] = []
        kind = net.kind("copy", lambda peer, sender, copy: arrived.append(copy), publication=True)
        first = Publication(0, 7, 1, 100)
        net.forward(kind, 1, (2, 3), Copy(first, 0))
        net.run(PERIOD)
        assert told == [
            ("sent", 0, 1, Copy(first, 0), (2, 3)),
            ("received", LATENCY, 2, 1, Copy(first, 1)),
            ("received", LATENCY, 3, 1, Copy(first, 1)),
        ]
        assert arrived == [Copy(first, 1)] * 2
        assert net.publication.take(1).bytes_sent == 2 * (100 + COPY_BYTES)
        assert net.control.take(1).messages_sent == 0


class TestTime:
    def test_peer_ticks_once_a_period_at_its_own_phase(self) -> None:
        net = world(size=200)
        ticks: dict[int, list[int]] = {peer: [] for peer in range(200)}
        net.every(PERIOD, lambda peer: ticks[peer].append(net.now))
        net.run(10 * PERIOD)
        phases = [times[0] for times in ticks.values()]
        assert all(
            times == [phase + i * PERIOD for i in range(10)]
            for phase, times in zip(phases, ticks.values(), strict=True)
        )
        assert stats.kstest(phases, "uniform", (0, PERIOD)).pvalue > 1e-3

    def test_peer_does_not_tick_while_down(self) -> None:
        net = world(size=3)
        ticks: Counter[int] = Counter()
        net.every(PERIOD, lambda peer: ticks.update([peer]))
        net.run(2 * PERIOD)
        net.go_down(1)
        net.run(7 * PERIOD)
        net.come_up(1)
        net.run(10 * PERIOD)
        assert ticks == {0: 10, 1: 5, 2: 10}

    def test_timer_of_an_earlier_life_is_void(self) -> None:
        net = world()
        fired: list[tuple[int, str]] = []
        net.after(1000, 0, lambda peer, word: fired.append((net.now, word)), "early")
        net.after(5000, 0, lambda peer, word: fired.append((net.now, word)), "late")
        net.run(2000)
        net.go_down(0)
        net.come_up(0)
        net.run(PERIOD)
        assert fired == [(1000, "early")]

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_timers_end_in_the_order_of_their_times_and_then_of_their_planning(
        self, seed: int
    ) -> None:
        """Few lengths and times, so many end together; some timers plan others; messages too."""
        print(f"seed {seed}")
        random, net = Random(seed), world()
        planned: list[tuple[int, int]] = []
        ended: list[tuple[int, int]] = []

        def plan() -> None:
            number, delay = (
                len(planned),
                random.choice([0, 10, LATENCY - 20, LATENCY, LATENCY + 20]),
            )
            planned.append((net.now + delay, number))
            if delay == LATENCY:
                net.send(note, 1, 2, number, 1)
            else:
                net.after(delay, 1, end, number)

        def end(peer: int, number: int) -> None:
            ended.append((net.now, number))
            for _ in range(random.choice([0, 1, 1]) if len(planned) < 2_000 else 0):
                plan()

        note = net.kind("note", lambda peer, sender, number: end(peer, number))
        for at in range(0, 200, 10):
            for _ in range(random.randrange(30)):
                net.at(at, plan)
        net.run(PERIOD)
        assert len(ended) == len(planned) > 500
        assert ended == sorted(planned)
        assert net._lines == {}


class TestContacts:
    def test_contact_is_uniform_over_other_peers_that_are_up(self) -> None:
        net = world(size=10)
        net.go_down(4)
        found = Counter(net.contact(9) for _ in range(8000))
        assert set(found) == {0, 1, 2, 3, 5, 6, 7, 8}
        assert stats.chisquare(list(found.values())).pvalue > 1e-3
        assert set(net.present) == set(range(10)) - {4}

    def test_contact_of_the_only_peer_is_none(self) -> None:
        net = Simulation(3, 1, lambda sender, to: LATENCY)
        assert net.contact(0) is None
        net.come_up(0)
        assert net.contact(0) is None
        assert net.contact(1) == 0


class TestConnections:
    @staticmethod
    def watching(net: Simulation, peer: int, other: int) -> list[tuple[int, int, int]]:
        told: list[tuple[int, int, int]] = []
        net.watch(peer, other, lambda at, gone: told.append((net.now, at, gone)))
        return told

    def test_broken_connection_is_told_once_after_a_latency(self) -> None:
        net = world()
        told = self.watching(net, 1, 2)
        net.at(500, lambda: net.go_down(2))
        net.run(PERIOD)
        net.come_up(2)
        net.go_down(2)
        net.run(2 * PERIOD)
        assert told == [(500 + LATENCY, 1, 2)]

    def test_connection_to_a_down_peer_is_refused_after_a_round_trip(self) -> None:
        net = world()
        net.go_down(2)
        told = self.watching(net, 1, 2)
        net.run(PERIOD)
        assert told == [(2 * LATENCY, 1, 2)]

    def test_connection_that_was_given_up_is_not_told(self) -> None:
        net = world()
        told = self.watching(net, 1, 2)
        net.unwatch(1, 2)
        net.unwatch(1, 3)
        net.go_down(2)
        net.run(PERIOD)
        assert told == []

    def test_restarted_peer_holds_no_connection(self) -> None:
        net = world()
        told = self.watching(net, 1, 2)
        net.go_down(1)
        net.come_up(1)
        net.go_down(2)
        net.run(PERIOD)
        assert told == []
