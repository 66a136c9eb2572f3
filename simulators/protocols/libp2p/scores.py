"""Scores of gossipsub v1.1: what each peer thinks of others, by what they sent it.

P1 to P4 of the specification, by topic. P5 to P7 are left out: they are an application's, of
addresses, and of attacks. Counters decay all the time rather than once a second; a peer keeps its
scores until it goes down.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vizpub.simulators.engine.network import Network
from vizpub.simulators.engine.parameters import us
from vizpub.simulators.protocols.libp2p.parameters import TopicScores

_LEFT = 0.01
"""Share of a counter that is left after its memory."""


class _Counter:
    """A number that decays."""

    __slots__ = ("_at_us", "_value")

    def __init__(self) -> None:
        self._value, self._at_us = 0.0, 0

    def value(self, now_us: int, memory_us: int) -> float:
        """The value at a time; less than a hundredth is 0."""
        value = self._value and self._value * _LEFT ** ((now_us - self._at_us) / memory_us)
        return value if value >= _LEFT else 0.0

    def add(self, amount: float, cap: float, now_us: int, memory_us: int) -> None:
        """Add to it, up to a cap."""
        self._value = min(self.value(now_us, memory_us) + amount, cap)
        self._at_us = now_us


class _Record:
    """What a peer counts of another one in a topic."""

    __slots__ = ("failures", "first", "invalid", "mesh", "since_us")

    def __init__(self) -> None:
        self.since_us: int | None = None
        """Since when it is in the mesh; null = it is not."""
        self.first, self.mesh, self.failures, self.invalid = (_Counter() for _ in range(4))


class _Memories(NamedTuple):
    first: int
    mesh: int
    failures: int
    invalid: int


class PeerScores:
    """The scores that all peers keep; without a model all are 0."""

    def __init__(self, net: Network, model: TopicScores | None) -> None:
        self._net, self._model = net, model
        self._records: list[dict[int, dict[int, _Record]]] = [{} for _ in range(net.size)]
        """By peer, other peer and topic."""
        self._penalised: list[set[int]] = [set() for _ in range(net.size)]
        """Others whose score may be below 0."""
        self._arrived: list[dict[int, int]] = [{} for _ in range(net.size)]
        """Messages whose first copy came within the window of P3, and when."""
        if model:
            self._memories = _Memories(
                us(model.first_memory),
                us(model.mesh_memory),
                us(model.failure_memory),
                us(model.invalid_memory),
            )
            self._quantum_us, self._window_us = us(model.time_quantum), us(model.mesh_window)
            self._activation_us = us(model.mesh_activation)

    def clear(self, peer: int) -> None:
        """The peer knows nothing of others."""
        self._records[peer], self._penalised[peer], self._arrived[peer] = {}, set(), {}

    def of(self, peer: int, other: int) -> float:
        """The score that a peer gives another one."""
        if not (model := self._model):
            return 0.0
        records = self._records[peer].get(other, {}).values()
        return model.topic_weight * sum(self._score(record, model) for record in records)

    def accepts(self, peer: int, other: int, threshold: float = 0.0) -> bool:
        """Return True if the score is not below the threshold, which is at most 0."""
        return other not in self._penalised[peer] or self.of(peer, other) >= threshold

    def median(self, peer: int, others: Iterable[int]) -> float:
        """The median score of some peers, the higher of two."""
        scores = sorted(self.of(peer, other) for other in others)
        return scores[len(scores) // 2]

    def _score(self, record: _Record, model: TopicScores) -> float:
        now, memories = self._net.now, self._memories
        since = now if record.since_us is None else record.since_us
        return (
            model.time_weight * min((now - since) / self._quantum_us, model.time_cap)
            + model.first_weight * record.first.value(now, memories.first)
            + model.mesh_weight * self._lacking(record, model)
            + model.failure_weight * record.failures.value(now, memories.failures)
            + model.invalid_weight * record.invalid.value(now, memories.invalid) ** 2
        )

    def _lacking(self, record: _Record, model: TopicScores) -> float:
        """P3: the square of the copies that lack."""
        now = self._net.now
        if record.since_us is None or now - record.since_us <= self._activation_us:
            return 0.0
        copies = record.mesh.value(now, self._memories.mesh)
        return max(0.0, model.mesh_threshold - copies) ** 2

    # Events.

    def _record(self, peer: int, other: int, topic: int) -> _Record:
        return self._records[peer].setdefault(other, {}).setdefault(topic, _Record())

    def grafted(self, peer: int, other: int, topic: int) -> None:
        """The other is in the peer's mesh from now on."""
        if self._model:
            self._record(peer, other, topic).since_us = self._net.now
            if self._model.mesh_weight:
                self._penalised[peer].add(other)

    def pruned(self, peer: int, other: int, topic: int) -> None:
        """The other is no longer in the peer's mesh."""
        if model := self._model:
            record = self._record(peer, other, topic)
            if model.mesh_weight:
                lacks = self._lacking(record, model)
                now, memory = self._net.now, self._memories.failures
                record.failures.add(lacks, float("inf"), now, memory)
            record.since_us = None

    def delivered(self, peer: int, other: int, topic: int, message: int, is_first: bool) -> None:
        """The other sent a valid message, the first copy of it or a later one."""
        if not (model := self._model):
            return
        now, memories, record = self._net.now, self._memories, self._record(peer, other, topic)
        if is_first:
            record.first.add(1, model.first_cap, now, memories.first)
        if not model.mesh_weight:
            return
        arrived = self._arrived[peer]
        while arrived and (oldest := next(iter(arrived.items())))[1] < now - self._window_us:
            del arrived[oldest[0]]
        if is_first:
            arrived[message] = now
        if record.since_us is not None and message in arrived:
            record.mesh.add(1, model.mesh_cap, now, memories.mesh)

    def invalid(self, peer: int, other: int, topic: int) -> None:
        """The other sent an invalid message."""
        if self._model:
            memory = self._memories.invalid
            self._record(peer, other, topic).invalid.add(1, float("inf"), self._net.now, memory)
            self._penalised[peer].add(other)
