"""The algorithms by name, and the overlays that they construct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vizpub.model.errors import UnknownName, UseError
from vizpub.simulators.designs.stars import RULES, Centres, Interests, Stars, refine_stars

ALGORITHMS = ("gm", *sorted(RULES), "cd-max-ref")
_REFINED = "cd-max-ref"
_ITS_RULE = "cd-max"


@dataclass(frozen=True)
class Design:
    """An algorithm; `refined` adds the pass of CD-MAX-Ref to any star overlay."""

    algorithm: str
    refined: bool = False

    def __post_init__(self) -> None:
        """Raises: UnknownName, UseError."""
        if self.algorithm not in ALGORITHMS:
            raise UnknownName("algorithm", self.algorithm, ALGORITHMS)
        if self.refined and not self.is_star:
            raise UseError(
                "gm builds no stars, so there are no centres to move: leave out --refine"
            )

    @property
    def is_star(self) -> bool:
        """True if every topic has a centre."""
        return self.algorithm != "gm"

    @property
    def refines(self) -> bool:
        """True if centres are moved afterwards."""
        return self.refined or self.algorithm == _REFINED

    def stars(self, interests: Interests) -> Stars:
        """The star overlay."""
        rule = RULES[_ITS_RULE if self.algorithm == _REFINED else self.algorithm]
        stars = Stars(interests, rule(interests))
        if self.refines:
            refine_stars(stars)
        return stars


@dataclass(frozen=True)
class ConstructedOverlay:
    """A constructed overlay."""

    neighbours: Sequence[Sequence[int]]
    """Of each node, ascending; both ends have an edge."""
    centres: Centres
    """Of the topics with two or more subscribers; empty for GM."""


def construct(design: Design, interests: Interests) -> ConstructedOverlay:
    """Construct an overlay. Raises: UseError if the algorithm takes no such size."""
    if design.is_star:
        stars = design.stars(interests)
        return ConstructedOverlay(stars.neighbours, stars.centres)
    from vizpub.simulators.designs.merging import greedy_merge

    return ConstructedOverlay(greedy_merge(interests), {})
