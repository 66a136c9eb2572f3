"""What a peer knows of the members of trees that are reached through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Receiver(NamedTuple):
    """How a member is reached."""

    previous_hop: int
    """The peer itself if it is the root."""
    next_hop: int
    """The peer itself if it is the member."""
    until_us: int
    """When the entry expires unless it is refreshed."""


class Receivers:
    """The lists of one peer, by topic."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[int, dict[int, Receiver]] = {}

    def get(self, topic: int, member: int) -> Receiver | None:
        """How a member is reached; null = not through the peer."""
        return self._of.get(topic, {}).get(member)

    def put(self, topic: int, member: int, receiver: Receiver) -> None:
        """Set how a member is reached."""
        self._of.setdefault(topic, {})[member] = receiver

    def drop(self, topic: int, member: int) -> None:
        """Remove a member, if it is reached through the peer."""
        members = self._of.get(topic, {})
        members.pop(member, None)
        if not members:
            self._of.pop(topic, None)

    def expire(self, now_us: int) -> None:
        """Remove members that were not refreshed in time."""
        for topic, members in list(self._of.items()):
            for member in [one for one, r in members.items() if r.until_us <= now_us]:
                self.drop(topic, member)

    def members(self, topic: int) -> list[int]:
        """The members of a topic that are reached through the peer."""
        return [*self._of.get(topic, ())]

    def through(self, next_hop: int) -> list[tuple[int, int, Receiver]]:
        """(topic, member, how it is reached) of all that are reached by that next hop."""
        return [
            (topic, member, receiver)
            for topic, members in self._of.items()
            for member, receiver in members.items()
            if receiver.next_hop == next_hop
        ]

    def next_hops(self) -> Iterator[tuple[int, dict[int, None]]]:
        """Of each topic, ascending, the distinct next hops."""
        for topic in sorted(self._of):
            yield topic, self.next_hops_of(topic)

    def next_hops_of(self, topic: int) -> dict[int, None]:
        """The distinct next hops of a topic."""
        return dict.fromkeys(one.next_hop for one in self._of.get(topic, {}).values())
