"""What peers remember of publications."""

from __future__ import annotations

from vizpub.simulators.engine.clock import Simulation
from vizpub.simulators.engine.network import Copy, Publication
from vizpub.simulators.protocols.broadcast.held import FirstCopies


def copy(message: int, hops: int = 1) -> Copy:
    return Copy(Publication(message, 0, 0, 10), hops)


def test_copy_is_new_once_to_each_peer_and_again_to_a_restarted_one() -> None:
    held = FirstCopies(Simulation(3, 1, lambda sender, to: 1), 1000)
    assert held.add(1, copy(0, hops=4))
    assert not held.add(1, copy(0, hops=2))
    assert held.copy(1, 0) == copy(0, hops=4)
    assert not held.has(2, 0)
    held.clear(1)
    assert held.copy(1, 0) is None
    assert held.add(1, copy(0, hops=2))


def test_old_publication_is_forgotten_but_never_new_again() -> None:
    net = Simulation(2, 1, lambda sender, to: 1)
    held = FirstCopies(net, 1000)
    held.add(0, copy(0))
    net.run(1001)
    held.add(0, copy(1))
    assert held.copy(0, 0) is None
    assert held.has(1, 0)
    assert not held.add(1, copy(0))
    assert held.add(1, copy(1))
