"""Recovery of what a peer missed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.overlays import LATENCY_US, Overlay, Receptions
from vizpub.model.errors import UseError
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Publication
from vizpub.simulators.protocols.hyparview.parameters import HyParViewParameters
from vizpub.simulators.protocols.hyparview.system import HyParView

PEERS, LATE = 30, 29
MISSED = range(1, 9)
"""Published while the late peer is down: even ones on topic 0, odd ones on 1, one a second."""


class Marked:
    """Observes the receptions of the late peer as (message, is resent), and all marked copies."""

    def __init__(self) -> None:
        self.received_late: list[tuple[int, bool]] = []
        self.sent_marked = self.received_marked = 0

    def on_sent(self, peer: int, copy: Copy, targets: Sequence[int]) -> None:
        """See Observer.sent."""
        self.sent_marked += copy.resent * len(targets)

    def on_received(self, peer: int, sender: int, copy: Copy) -> None:
        """See Observer.received."""
        self.received_marked += copy.resent
        if peer == LATE:
            self.received_late.append((copy.publication.message, copy.resent))


def recovered(recovery: str, topics: Sequence[int] = (0, 1), broadcast: str = "flood") -> Marked:
    """A run in which a peer is away while others publish, and comes back."""
    net = Simulation(PEERS, 1, lambda sender, to: LATENCY_US)
    parameters = HyParViewParameters(broadcast=broadcast, recovery=recovery)
    overlay = Overlay(net, HyParView(net, parameters))
    overlay.join_all(10_000)
    overlay.wait(2)
    overlay.kill(LATE)
    for message in MISSED:
        overlay.system.publish(3, Publication(message, message % 2, 3, 100))
        overlay.wait(1)
    seen = net.observer = Marked()
    net.come_up(LATE)
    overlay.system.join(LATE, topics)
    overlay.wait(1)
    overlay.system.publish(5, Publication(9, 1, 5, 100))
    overlay.wait(3)
    return seen


@pytest.mark.parametrize("broadcast", ["flood", "plumtree"])
@pytest.mark.parametrize(
    ("recovery", "expected"),
    [("none", []), ("last:2", [5, 6, 7, 8]), ("since:3500ms", [6, 7, 8]), ("since:1h", [*MISSED])],
)
def test_returning_peer_gets_what_it_missed_within_the_bound(
    recovery: str, expected: list[int], broadcast: str
) -> None:
    seen = recovered(recovery, broadcast=broadcast)
    resent = [message for message, mark in seen.received_late if mark]
    assert resent == expected
    later = {message for message, mark in seen.received_late if not mark}
    assert later == {9}
    assert seen.sent_marked == seen.received_marked == len(expected)


def test_topics_that_a_peer_does_not_want_are_not_sent_again() -> None:
    seen = recovered("last:10", topics=[1])
    assert [message for message, mark in seen.received_late if mark] == [1, 3, 5, 7]


def test_late_subscription_is_recovered_too() -> None:
    net = Simulation(PEERS, 1, lambda sender, to: LATENCY_US)
    overlay = Overlay(net, HyParView(net, HyParViewParameters(recovery="last:2")))
    overlay.join_all(10_000)
    overlay.wait(2)
    for message in MISSED:
        overlay.system.publish(3, Publication(message, message % 2, 3, 100))
    overlay.wait(1)
    seen = net.observer = Marked()
    overlay.system.subscribe(LATE, 0)
    overlay.wait(1)
    assert seen.received_late == [(6, True), (8, True)]


def test_copies_of_a_neighbour_that_waits_itself_are_completed_by_another() -> None:
    """All peers but the publisher's neighbours come back at once, knowing nothing."""
    net = Simulation(PEERS, 2, lambda sender, to: LATENCY_US)
    overlay = Overlay(net, HyParView(net, HyParViewParameters(recovery="last:10")))
    overlay.join_all(10_000)
    overlay.wait(2)
    for peer in range(5, PEERS):
        overlay.kill(peer)
    overlay.wait(2)
    overlay.system.publish(1, Publication(0, 0, 1, 100))
    overlay.wait(1)
    for peer in range(5, PEERS):
        net.come_up(peer)
        overlay.system.join(peer, [0])
    overlay.wait(10)
    assert {peer for peer, *_ in overlay.seen.of[0]} | {1} == {*range(PEERS)}


def test_recovery_survives_lost_messages() -> None:
    """Question or answer may be lost; copies that are lost are not asked for."""
    net = Simulation(PEERS, 3, lambda sender, to: LATENCY_US)
    overlay = Overlay(net, HyParView(net, HyParViewParameters(recovery="last:10")))
    overlay.join_all(10_000)
    overlay.wait(2)
    overlay.system.publish(1, Publication(0, 0, 1, 100))
    overlay.wait(1)
    late = range(10, PEERS)
    for peer in late:
        overlay.kill(peer)
    overlay.wait(3)
    net.observer = seen = Receptions()
    (answers,) = [kind for kind in net.kinds if kind.name == "recovered"]
    net._loss = 0.2
    for peer in late:
        overlay.join(peer)
        overlay.system.subscribe(peer, 0)
        overlay.wait(1)
    net._loss = 0.0
    overlay.wait(30)
    assert answers.lost > 0
    got = {peer for peer, *_ in seen.of[0]}
    assert len(got) >= len(late) / 2
    assert overlay.system.recovery is not None
    assert not any(overlay.system.recovery._wanted)  # who waits answers others incompletely


def test_peers_that_start_together_stop_asking() -> None:
    net = Simulation(PEERS, 1, lambda sender, to: LATENCY_US)
    overlay = Overlay(net, HyParView(net, HyParViewParameters(recovery="last:10")))
    for peer in range(PEERS):
        net.come_up(peer)
        overlay.system.join(peer, [0])
    overlay.wait(10)
    (asking,) = [kind for kind in net.kinds if kind.name == "recover"]
    asked = asking.sent
    assert asked <= 4 * PEERS
    overlay.wait(10)
    assert asking.sent == asked


def test_unknown_bound_is_refused() -> None:
    with pytest.raises(UseError, match="since"):
        HyParViewParameters(recovery="10")
