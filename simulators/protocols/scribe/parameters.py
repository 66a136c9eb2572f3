"""Scribe's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from vizpub.simulators.engine.parameters import MOST, Duration, Positive
from vizpub.simulators.protocols.chord.parameters import ChordParameters
from vizpub.simulators.protocols.pastry.parameters import PastryParameters


@dataclass(frozen=True)
class TreeParameters:
    """Parameters of Scribe's trees.

    An interval of 1 s stands for about 30 s of a real overlay (see PastryParameters). Peers have
    about ten parents in twenty trees, and most messages are heartbeats: one every third interval
    keeps the traffic near one message per link and minute.
    """

    heartbeat: Annotated[
        Duration, Meta(description="A parent sends its children a heartbeat once per period.")
    ] = "3s"
    missed: Annotated[
        Positive, Meta(description="Missed heartbeats until a child joins again.")
    ] = 1
    cache_root: Annotated[
        bool,
        Meta(description="Publishers in the tree send directly to the root if they know it."),
    ] = False


@dataclass(frozen=True)
class ScribeParameters(TreeParameters, PastryParameters):
    """Parameters of Scribe, and of Pastry below it."""


@dataclass(frozen=True)
class ScribeChordParameters(TreeParameters, ChordParameters):
    """Parameters of Scribe, and of Chord below it."""

    both_ways: Annotated[
        bool,
        Meta(
            description="A publication floods the tree from where it meets it, not from the root."
        ),
    ] = False


@dataclass(frozen=True)
class PopularityParameters(ScribeChordParameters):
    """Parameters of the choice between broadcast and tree, and of Scribe and Chord below it."""

    threshold: Annotated[
        Positive, Meta(description="Subscribers from which on a topic's owner answers: broadcast.")
    ] = 50
    answer_period: Annotated[
        Duration, Meta(description="Time for which a publisher keeps an owner's answer.")
    ] = "10s"
    broadcasts: Annotated[
        Literal["hyparview", "chord"],
        Meta(
            description="What broadcasts flood: HyParView's active views, or Chord's links "
            "(successor, predecessor and random fingers)."
        ),
    ] = "hyparview"
    degree: Annotated[
        int,
        Meta(
            ge=2,
            le=MOST,
            description="Neighbours of a peer for broadcasts, the active view's size.",
        ),
    ] = 5
