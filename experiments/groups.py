"""Groups of runs, and parts of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, floor
from typing import Annotated, Any

from msgspec import Meta, Struct

from vizpub.model.clock import Clock

Share = tuple[Annotated[float, Meta(ge=0, le=1)], Annotated[float, Meta(ge=0, le=1)]]
"""Begin and end of a part of a run, as shares of its length, valid at every scale."""
WHOLE: Share = (0.0, 1.0)
OVER = " / "


class ExperimentSystem(Struct, frozen=True, forbid_unknown_fields=True):
    """A system with its parameters."""

    name: str
    system: str
    """Its name for `vizpub lab simulate`."""
    layers: tuple[str, ...] | None = None
    """Layers whose links the metrics count; all if none is named."""
    parameters: dict[str, Any] = {}


class ExperimentSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters that differ from the world."""

    name: str = ""
    x: float | None = None
    """Its place on the axis of figures over the settings."""
    parameters: dict[str, Any] = {}
    systems: tuple[str, ...] = ()
    """Names of the systems to run in it; empty = all."""


@dataclass(frozen=True)
class ExperimentGroup:
    """A system in a setting; its runs differ in the seed only."""

    system: ExperimentSystem
    setting: ExperimentSetting

    @property
    def name(self) -> str:
        """'PolderCast', or 'PolderCast, Facebook' if settings have names."""
        return ", ".join(filter(None, (self.system.name, self.setting.name)))

    @property
    def slug(self) -> str:
        """The name for use in file names."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def groups_of(term: str) -> list[str]:
    """The group, or the two groups of 'PolderCast / Scribe': the first divided by the second."""
    return term.split(OVER, 1)


def check_share(share: Share) -> None:
    """Raises: ValueError if a part of a run ends before it begins."""
    if share[0] > share[1]:
        raise ValueError(f"{share[0]:g} to {share[1]:g} ends before it begins")


def interval_range(clock: Clock, share: Share) -> tuple[int, int]:
    """First and last interval of a part of a run; at least one interval."""
    begin, end = (round(part * clock.intervals, 9) for part in share)  # .55 × 100 is above 55
    first = min(floor(begin), clock.intervals - 1)
    last = max(ceil(end) - 1, first)
    return clock.first + first, clock.first + last
