"""Who is up when: sessions of peers, given before a run starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple, Protocol


class Session(NamedTuple):
    """A stay of a peer: it is up at t where start_us ≤ t < end_us."""

    peer: int
    start_us: int
    end_us: int | None
    """None: to the end of the run and beyond."""
    crash: bool
    """It ends without notice."""


@dataclass(frozen=True)
class Setting:
    """How large and how long a run is."""

    peers: int
    duration_us: int
    interval_us: int


class Churn(Protocol):
    """A model of when peers are up."""

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """The sessions of one run in the order in which they start; those of a peer do not
        touch or overlap, and start before the run ends.
        """


@dataclass(frozen=True)
class NoChurn:
    """All peers are up for the whole run."""

    example: ClassVar[str] = "none"

    def sessions(self, setting: Setting, random: Random) -> list[Session]:
        """One session of each peer, from 0."""
        return [Session(peer, 0, None, False) for peer in range(setting.peers)]


CHURNS: Mapping[str, type[Churn]] = {"none": NoChurn}
