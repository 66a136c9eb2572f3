"""What a broadcast knows of the overlay it runs on: the neighbours of each peer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from vizpub.simulators.engine.network import Links, Network

PEER_BYTES = 14
"""Bytes of a peer that is named in a message: id (8), address and port (6)."""


class Membership(ABC):
    """The neighbours of all peers, for broadcasts."""

    layers: ClassVar[Sequence[str]] = ("overlay",)
    """The layers of its links."""
    is_symmetric: ClassVar[bool] = True
    """Whether a neighbour has the peer as its neighbour too."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.on_neighbour: list[Callable[[int, int], None]] = []
        """Called with (peer, other) when a peer has a new neighbour, if the membership notices."""

    @abstractmethod
    def join(self, peer: int) -> None:
        """The peer is up from now on, with an empty state."""

    def leave(self, peer: int) -> None:  # noqa: B027
        """The peer is about to go down with notice."""

    def go_down(self, peer: int) -> None:  # noqa: B027
        """The peer is down."""

    @abstractmethod
    def neighbours(self, peer: int) -> Sequence[int]:
        """The peers to which a peer sends now, each once; not to be changed."""

    def on_failure(self, peer: int, other: int) -> None:  # noqa: B027
        """A neighbour did not acknowledge what it was sent."""

    def stranger(self, peer: int, sender: int) -> None:  # noqa: B027
        """A peer that is no neighbour behaves like one."""

    @abstractmethod
    def links(self, peer: int) -> Iterable[Links]:
        """See System.links."""
