"""Peers that come, go and die by the protocol, against the ids of those who are up; and the errors
of the report's pseudo-code, each of which one of these checks finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.rings import STILL, Truth, World, wrong
from vizpub.simulators.protocols.chord.joining import ChordJoining
from vizpub.simulators.protocols.chord.lookups import LookupAnswer
from vizpub.simulators.protocols.chord.node import ChordNode, NextHop
from vizpub.simulators.protocols.chord.placing import place
from vizpub.simulators.protocols.routing import NOBODY


@pytest.mark.parametrize(
    ("size", "bits", "latency_us", "seconds"),
    [
        (1, 160, 10_000, 2),
        (2, 160, 10_000, 4),
        (20, 12, 10_000, 12),
        (150, 256, 10_000, 20),
        (100, 160, 100_000, 30),
        pytest.param(1_000, 160, 10_000, 30, marks=pytest.mark.long),
    ],
)
def test_peers_that_join_at_once_form_one_ring_with_right_fingers(
    size: int, bits: int, latency_us: int, seconds: int
) -> None:
    world = World(size, bits=bits, latency_us=latency_us)
    world.come_up(range(size))
    world.run(seconds)
    assert all(node.is_ready for node in world.overlay.nodes)
    assert world.faults() == []


def test_placed_state_is_that_of_a_ring_and_does_not_change() -> None:
    world = World(120).placed()
    assert world.faults() == []
    versions = [node.version for node in world.overlay.nodes]
    world.run(15)
    assert world.faults() == []
    assert [node.version for node in world.overlay.nodes] == versions


@pytest.mark.parametrize("carry_fingers", [False, True])
def test_ring_and_fingers_are_mended_after_half_of_the_peers_crash(carry_fingers: bool) -> None:
    world = World(120, successors=16, carry_fingers=carry_fingers).placed()
    world.crash(world.random.sample(range(120), 60))
    assert len(world.faults()) > 100
    world.run(10)
    assert [fault for fault in world.faults(fingers=False) if not fault.startswith("list")] == []
    world.run(20)
    assert world.faults() == []


def test_neighbours_of_leavers_are_each_others_at_once() -> None:
    """Two messages later; leavers that are next to each other wait for stabilization."""
    world = World(60).placed()
    order = Truth(world.overlay, world.net.present).order
    world.leave(order[::7])
    world.run(0.1)
    lists = [fault for fault in world.faults(fingers=False) if fault.startswith("list")]
    assert world.faults(fingers=False) == lists
    world.run(15)
    assert world.faults() == []


@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_ring_is_right_after_random_churn(seed: int) -> None:
    """Peers crash, leave and return for 40 s; lost messages too."""
    world = World(80, seed, loss=0.01 * (seed - 1))
    world.come_up(range(80))
    world.run(10)
    for _ in range(20):
        up = list(world.net.present)
        down = sorted({*range(80)} - {*up})
        world.crash(world.random.sample(up, 3))
        world.leave(world.random.sample(list(world.net.present), 2))
        world.come_up(world.random.sample(down, min(4, len(down))))
        world.run(2)
    world.run(40)
    kinds = () if seed == 1 else ("finger", "list")  # where messages are lost they come and go
    assert [fault for fault in world.faults() if not fault.startswith(kinds or "none")] == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_peers_that_return_soon_cost_no_more_messages_at_a_low_latency(seed: int) -> None:
    """Two who disagree on whether a third is up talk once in a period, not as fast as they can."""
    sent = []
    for latency_us in (1_000, 50_000):
        world = World(60, seed, latency_us=latency_us).placed()
        for _ in range(10):
            gone = world.random.sample(list(world.net.present), 3)
            world.crash(gone)
            world.run(4)
            world.come_up(gone)
            world.run(2)
        kinds = {kind.name: kind.sent for kind in world.net.kinds}
        assert kinds["notify"] <= kinds["stabilize"], seed
        sent.append(sum(kinds[name] for name in ("stabilize", "predecessor", "notify", "check")))
    assert sent[0] < 1.2 * sent[1], f"seed {seed}"


def test_keys_of_a_doubted_predecessor_are_answered_for() -> None:
    """And those of one that seems to be up are sent back to it, not round the ring."""
    world = World(30).placed()
    order, ids = Truth(world.overlay, range(30)).order, world.overlay.ring.ids
    for at, peer in enumerate(order):
        node, before, second = world.overlay.nodes[peer], order[at - 1], order[at - 2]
        assert node.next_hop(ids[before]) == (before, True)
        node.doubt(before)
        assert node.owns(ids[before])
        assert not node.owns(ids[second])
        node.remove(before)
        assert (node.predecessor, node.owns(ids[before])) == (second, True)


def test_separate_rings_merge_into_one() -> None:
    world = World(40)
    for peer in range(40):
        world.net.come_up(peer)
    place(world.overlay, range(20, 40))
    others = [world.overlay.nodes[peer] for peer in range(20, 40)]
    place(world.overlay, range(20))
    world.overlay.keeping.nodes[20:] = others
    assert world.faults(fingers=False)
    world.run(60)
    assert world.faults() == []


def test_ring_regrows_from_the_only_peer_left() -> None:
    world = World(12).placed()
    world.crash(range(1, 12))
    world.run(10)
    assert world.overlay.nodes[0].successors == []
    world.come_up([5, 6])
    world.run(10)
    assert world.faults() == []


def test_run_is_the_same_for_the_same_seed() -> None:
    runs = []
    for _ in range(2):
        world = World(40, loss=0.02)
        world.come_up(range(40))
        world.run(5)
        world.crash(range(5))
        world.run(5)
        runs.append([(kind.name, kind.sent, kind.bytes) for kind in world.net.kinds])
    assert runs[0] == runs[1]


# The errors of the report's pseudo-code (its figures 2.2.3), and the checks that find them.


def check_fingers_are_found_again() -> None:
    world = World(40).placed()
    for node in world.overlay.nodes:
        node.fingers.clear()
        node.reset_routes()
    world.run(12)
    assert world.faults() == []


def check_successor_is_one_link_away() -> None:
    world = World(40, successors=3).placed()
    for peer in range(40):
        after = world.overlay.nodes[peer].successors[0]
        found, _ = world.answers([(peer, world.overlay.ring.ids[after])], 1)[0]
        assert found[:2] == (after, 1)


def check_doubted_peers_keep_their_keys() -> None:
    world = World(40, successors=3, **STILL).placed()
    node = world.overlay.nodes[0]
    for other in node.known_peers():
        node.doubt(other)
    assert not wrong(world.look_up(40, 5))
    assert not wrong(world.answers([(0, key) for key in range(0, 2**160, 2**155)], 5))


def check_joiner_is_told_its_successor() -> None:
    world = World(60, **STILL)
    for peer in range(60):
        world.net.come_up(peer)
    place(world.overlay, range(59))
    world.overlay.join(59)
    for _ in range(1_000):
        if world.overlay.nodes[59].is_placed:
            break
        world.run(0.001)
    after = Truth(world.overlay, range(59)).owner(world.overlay.ring.ids[59])
    assert world.overlay.nodes[59].successors[:1] == [after]


def check_first_peer_forms_a_ring() -> None:
    world = World(2)
    world.come_up([0])
    world.run(1)
    assert world.overlay.is_ready(0)
    assert not wrong(world.look_up(5, 1))


def check_lost_predecessor_takes_no_keys_along() -> None:
    world = World(40, **STILL).placed()
    for node in world.overlay.nodes:
        node.second = NOBODY  # otherwise that one takes its place
        node.remove(node.predecessor)
    assert not wrong(world.look_up(100, 5))
    own, _ = world.answers([(7, world.overlay.ring.ids[7])], 1)[0]
    assert own[:2] == (7, 0)


def check_crashed_successors_are_replaced() -> None:
    world = World(40, successors=1).placed()
    world.crash(Truth(world.overlay, range(40)).order[::3])
    world.run(10)
    assert world.faults(fingers=False) == []


def check_last_peer_is_alone_after_the_other_crashed() -> None:
    world = World(2).placed()
    world.crash([1])
    world.overlay.keeping.lose(0, 1)
    assert world.faults() == []
    assert not wrong(world.look_up(5, 1))


Patch = Callable[[pytest.MonkeyPatch], None]


def replaced(owner: type, name: str, new: Any) -> Patch:
    return lambda patching: patching.setattr(owner, name, new)


step, remove, enter = ChordNode.next_hop, ChordNode.remove, ChordJoining.enter


def step_that_leaves_out_the_end(self: ChordNode, key: int, avoid: Any = ()) -> NextHop:
    """(own, successor) in place of (own, successor]."""
    at_its_id = [peer for peer in self.successors if self.ring.ids[peer] == key]
    return step(self, key, (*avoid, *at_its_id))


def place_by_the_sender(self: ChordJoining, peer: int, found: LookupAnswer) -> None:
    """The reply comes from the predecessor, and its sender is taken."""
    node = self.keeping.nodes[peer]
    sender = found.place.predecessor if found.place else found.owner
    node.adopt_successors([sender], self.net.now)


def enter_without_contact_waits(self: ChordJoining, peer: int, attempt: int = 1) -> None:
    if self.net.contact(peer) is not None:
        enter(self, peer, attempt)


def owns_nothing_without_predecessor(self: ChordNode, key: int) -> bool:
    if self.predecessor == NOBODY:
        return False
    return (self._own - key) & self._mask < (self._own - self.bound) & self._mask


def owns_everything_without_predecessor(self: ChordNode, key: int) -> bool:
    return self.predecessor == NOBODY or owns_nothing_without_predecessor(self, key)


def remove_without_list(self: ChordNode, peer: int) -> None:
    if self.successor == peer:
        self.successors = self.successors[:1]
    else:
        remove(self, peer)


def remove_predecessor_only(self: ChordNode, peer: int) -> None:
    if self.predecessor == peer:
        self.predecessor = NOBODY
    else:
        remove(self, peer)


ERRORS: dict[str, tuple[Patch, Callable[[], None]]] = {
    "1 finger number in place of its start": (
        replaced(ChordNode, "start", lambda self, finger: finger),
        check_fingers_are_found_again,
    ),
    "1 stored in another table": (
        replaced(ChordNode, "set_finger", lambda self, finger, peer: finger),
        check_fingers_are_found_again,
    ),
    "1 guard tests the number": (
        replaced(ChordNode, "needed_fingers", lambda self: range(0)),
        check_fingers_are_found_again,
    ),
    "2 open interval": (
        replaced(ChordNode, "next_hop", step_that_leaves_out_the_end),
        check_successor_is_one_link_away,
    ),
    "3 closest preceding is the peer itself": (
        replaced(ChordNode, "_last_resort", lambda self: NextHop(self.peer, False)),
        check_doubted_peers_keep_their_keys,
    ),
    "4 sender of the reply as successor": (
        replaced(ChordJoining, "_take_place", place_by_the_sender),
        check_joiner_is_told_its_successor,
    ),
    "4 first peer without contact": (
        replaced(ChordJoining, "enter", enter_without_contact_waits),
        check_first_peer_forms_a_ring,
    ),
    "6 nothing is owned without predecessor": (
        replaced(ChordNode, "owns", owns_nothing_without_predecessor),
        check_lost_predecessor_takes_no_keys_along,
    ),
    "6 everything is owned without predecessor": (
        replaced(ChordNode, "owns", owns_everything_without_predecessor),
        check_lost_predecessor_takes_no_keys_along,
    ),
    "7 no other successor": (
        replaced(ChordNode, "remove", remove_without_list),
        check_crashed_successors_are_replaced,
    ),
    "7 predecessor or successor": (
        replaced(ChordNode, "remove", remove_predecessor_only),
        check_last_peer_is_alone_after_the_other_crashed,
    ),
}
"""Number in the list of corrections → the error, and the check."""


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in ERRORS.values()))
def test_check_passes_without_the_printed_errors(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("name", ERRORS)
def test_printed_error_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, check = ERRORS[name]
    make(monkeypatch)
    with pytest.raises(AssertionError):
        check()
