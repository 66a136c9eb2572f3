"""How published values and figures name what they are about: groups and parts of a run."""

from __future__ import annotations

from math import ceil, floor
from typing import Annotated

from msgspec import Meta

from model.clock import Clock

Share = tuple[Annotated[float, Meta(ge=0, le=1)], Annotated[float, Meta(ge=0, le=1)]]
"""From where to where in the run, as shares of its length: so it holds at every scale."""
WHOLE: Share = (0.0, 1.0)
_OVER = " / "


def groups_of(term: str) -> list[str]:
    """The group, or the two groups of 'PolderCast / Scribe': the first divided by the second."""
    return term.split(_OVER, 1)


def intervals(clock: Clock, share: Share) -> tuple[int, int]:
    """First and last interval of a part of a run; one at least."""
    first = min(floor(share[0] * clock.intervals), clock.intervals - 1)
    last = max(ceil(share[1] * clock.intervals) - 1, first)
    return clock.first + first, clock.first + last
