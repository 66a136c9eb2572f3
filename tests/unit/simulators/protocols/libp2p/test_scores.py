"""Scores of gossipsub: the specification's formulas, and what they do to peers that do wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.simulated import Simulated
from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.protocols.libp2p.gossipsub import Gossipsub
from vizpub.simulators.protocols.libp2p.parameters import TopicScores
from vizpub.simulators.protocols.libp2p.scores import PeerScores

SECOND = 1_000_000


def scores(**chosen: Any) -> tuple[Simulation, PeerScores]:
    net = Simulation(2, 1, lambda sender, to: 0)
    return net, PeerScores(net, TopicScores(**chosen))


def test_time_in_the_mesh_and_first_copies_count_up_to_their_caps() -> None:
    net, kept = scores(time_weight=2, time_cap=30, first_weight=5, first_cap=3)
    kept.grafted(0, 1, topic=7)
    net.run(20 * SECOND)
    assert kept.of(0, 1) == pytest.approx(0.1 * 2 * 20)
    net.run(50 * SECOND)
    for message in range(4):
        kept.delivered(0, 1, 7, message, is_first=True)
    kept.delivered(0, 1, 7, 0, is_first=False)
    assert kept.of(0, 1) == pytest.approx(0.1 * (2 * 30 + 5 * 3))
    net.run(50 * SECOND + 1800 * SECOND)  # half of the memory: a tenth is left
    assert kept.of(0, 1) == pytest.approx(0.1 * (2 * 30 + 5 * 0.3))
    net.run(50 * SECOND + 3601 * SECOND + 900 * SECOND)
    assert kept.of(0, 1) == pytest.approx(0.1 * 2 * 30)


def test_mesh_neighbour_that_sends_too_little_is_penalised_and_that_is_remembered() -> None:
    net, kept = scores(
        mesh_weight=-10, mesh_threshold=2, time_weight=0, first_weight=0, failure_weight=-1
    )
    kept.grafted(0, 1, topic=7)
    kept.delivered(0, 1, 7, 0, is_first=True)
    net.run(60 * SECOND)
    assert kept.of(0, 1) == 0  # not active yet
    net.run(61 * SECOND)
    lacking = 2 - 0.01 ** (61 / 60) * 0  # the copy's counter is below a hundredth by now
    assert kept.of(0, 1) == pytest.approx(0.1 * -10 * lacking**2)
    assert not kept.accepts(0, 1)
    kept.pruned(0, 1, 7)
    assert kept.of(0, 1) == pytest.approx(0.1 * -1 * lacking**2)


def test_later_copy_counts_for_the_mesh_within_its_window_only() -> None:
    net, kept = scores(mesh_weight=-10, mesh_threshold=3, time_weight=0, first_weight=0)
    kept.grafted(0, 1, topic=7)
    net.run(70 * SECOND)
    kept.delivered(0, 1, 7, 0, is_first=True)
    net.run(70 * SECOND + 9_000)
    kept.delivered(0, 1, 7, 0, is_first=False)
    assert kept.of(0, 1) == pytest.approx(0.1 * -10 * (3 - 2) ** 2, rel=0.02)
    net.run(70 * SECOND + 20_000)
    kept.delivered(0, 1, 7, 0, is_first=False)
    assert kept.of(0, 1) == pytest.approx(0.1 * -10 * (3 - 2) ** 2, rel=0.02)


def test_invalid_messages_count_squared() -> None:
    _, kept = scores()
    for _ in range(3):
        kept.invalid(0, 1, 7)
    assert kept.of(0, 1) == pytest.approx(0.1 * -1000 * 9)
    assert kept.accepts(0, 1, threshold=-1000)
    assert not kept.accepts(0, 1, threshold=-500)


ONE_TOPIC: dict[str, Any] = {"peers": 24, "workload": "uniform:topics=1,subscriptions=1"}


def test_peers_that_send_nothing_leave_the_meshes_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quarter only receives; P3 ends their links once it is active, after 10 s in the mesh."""
    forward = Simulation.forward

    def keep(self: Any, kind: Any, peer: int, *of: Any) -> None:
        if peer % 4:
            forward(self, kind, peer, *of)

    monkeypatch.setattr(Simulation, "forward", keep)
    kept = []
    for penalty in ("0", "-576"):
        scores = f"topics:mesh_weight={penalty},mesh_activation=10s,mesh_threshold=0.2"
        run = Simulated(
            "gossipsub", **ONE_TOPIC, intervals=40, publications="poisson:2", scores=scores
        )
        before = run.graph("mesh", "0", interval=28).edges
        long = [link for link in run.graph("mesh", "0").edges if link in before]
        kept.append(sum(int(to) % 4 == 0 for at, to in long if int(at) % 4) / len(long))
    assert kept[0] > 0.15
    assert kept[1] == 0


def test_peer_that_sends_invalid_messages_is_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gossipsub, "is_valid", lambda self, peer, of: of.publisher != 0)
    run = Simulated(
        "gossipsub", **ONE_TOPIC, intervals=12, publications="each:3,first=5,last=9", topic_peers=23
    )
    mesh = run.graph("mesh", "0")
    assert mesh.out_degree("0") == 0 < min(d for peer, d in mesh.out_degree if peer != "0")
    assert {copy["hops"] for copy in run.received() if copy["publisher"] == "0"} == {1}


@pytest.mark.parametrize("model", ["none", "topics"])
def test_mesh_of_low_scores_gets_better_peers_once_a_minute(model: str) -> None:
    """Up to two for each peer, and none without scores."""
    chosen = {**ONE_TOPIC, "intervals": 22, "publications": "every:2,first=10"}
    run = Simulated("gossipsub", **chosen, scores=model, opportunistic_period="20s")
    late = sum(
        counted["messages_sent"]
        for reports in run.reports[15:]
        for report in reports
        for counted in report["control_kinds"]
        if counted["kind"] == "graft"
    )
    assert 5 < late <= 2 * 24 if model == "topics" else late == 0
