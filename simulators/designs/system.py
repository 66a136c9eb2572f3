"""Constructed overlays as systems: in the world of any other, with its reports.

Whoever constructs the overlay knows all subscriptions and who is up, at no cost in messages. An
overlay is constructed again when it is next looked at after a peer or a subscription came or went,
or once, and is repaired from then on (`vizpub.simulators.designs.upkeep`). Both ends of an edge
report it, in layer `overlay`. With stars a publication goes to the centre of its topic and from
there to every other subscriber; otherwise peers pass it on to all neighbours that subscribe, and
drop what they had. A publisher that does not subscribe has no edge for the topic: it sends to the
centre, or where there is none and no neighbour subscribes, to the first subscriber, and reports
this link in layer `center`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from vizpub.model.errors import UseError
from vizpub.simulators.designs.algorithms import ConstructedOverlay, Design, construct
from vizpub.simulators.designs.nearer import move_nearer
from vizpub.simulators.designs.stars import Interests
from vizpub.simulators.designs.upkeep import Upkeep
from vizpub.simulators.engine.network import Copy, Links, Network, Publication, System
from vizpub.simulators.engine.parameters import Positive
from vizpub.simulators.engine.plan import SimulatedWorld


@dataclass(frozen=True)
class DesignParameters:
    """How the overlay is constructed."""

    refine: Annotated[
        bool, Meta(description="Then move centres to lower the maximum degree, as CD-MAX-Ref.")
    ] = False
    near: Annotated[
        bool,
        Meta(
            description="Then move centres to where their subscribers are near, unless the maximum "
            "degree would rise."
        ),
    ] = False
    upkeep: Annotated[
        Literal["rebuild", "incremental"],
        Meta(
            description="After a change, construct a new overlay (rebuild), or repair it where "
            "peers and subscriptions came and went (incremental)."
        ),
    ] = "rebuild"


@dataclass(frozen=True)
class RefinedParameters(DesignParameters):
    """Those of an algorithm that refines without being asked to."""

    refine: Annotated[bool, Meta(description="Move centres to lower the maximum degree.")] = True


@dataclass(frozen=True)
class OneInterval(SimulatedWorld):
    """The world of an overlay; without churn one interval says all."""

    intervals: Annotated[Positive, Meta(description="Reporting intervals.")] = 1


class Constructed(System):
    """An overlay that is constructed from all subscriptions."""

    algorithm: ClassVar[str]
    layers: ClassVar[Sequence[str]] = ("overlay", "center")

    def __init__(self, net: Network, parameters: DesignParameters, topics: int) -> None:
        self._net, self._topics = net, topics
        self._design = Design(self.algorithm, parameters.refine)
        self._repairs = parameters.upkeep == "incremental"
        if self._repairs and not self._design.is_star:
            raise UseError("gm builds no stars that could be repaired: use --upkeep rebuild")
        self._delays = self._known_delays() if parameters.near else None
        self._kept: Upkeep | None = None
        self._interests: list[set[int]] = [set() for _ in range(net.size)]
        """Of the peers that are up."""
        self._built: ConstructedOverlay | None = None
        self._seen: list[set[int]] = [set() for _ in range(net.size)]
        self._published: list[set[int]] = [set() for _ in range(net.size)]
        """The topics on which each peer has published since it came up."""
        self._copies = net.kind("publication", self.on_copy, publication=True)

    def join(self, peer: int, topics: Sequence[int]) -> None:
        """See System.join."""
        self._seen[peer].clear()
        self._published[peer].clear()
        self._change(peer, set(topics))

    def go_down(self, peer: int) -> None:
        """See System.go_down."""
        self._change(peer, set())

    def subscribe(self, peer: int, topic: int) -> None:
        """See System.subscribe."""
        self._change(peer, self._interests[peer] | {topic})

    def unsubscribe(self, peer: int, topic: int) -> None:
        """See System.unsubscribe."""
        self._change(peer, self._interests[peer] - {topic})

    def _change(self, peer: int, topics: set[int]) -> None:
        self._interests[peer] = topics
        self._built = None
        if self._kept is not None:
            self._kept.change(peer, topics)

    @property
    def overlay(self) -> ConstructedOverlay:
        """The overlay of the peers that are up and of their subscriptions."""
        if self._built is None:
            self._built = self._repair() if self._repairs else self._construct()
        return self._built

    def _construct(self) -> ConstructedOverlay:
        if self._delays is None:
            return construct(self._design, self._now())
        stars = self._design.stars(self._now())
        move_nearer(stars, self._delays)
        return ConstructedOverlay(stars.neighbours, stars.centres)

    def _known_delays(self) -> np.ndarray:
        """Between any two peers, in µs. Raises: UseError."""
        if self._repairs or not self._design.is_star:
            raise UseError("--near works for newly constructed stars only, not with gm or --upkeep")
        peers = range(self._net.size)
        delays = [[self._net.delay(one, other) for other in peers] for one in peers]
        if any(None in row for row in delays):
            raise UseError("--near needs delays that do not change: use --latency matrix:FILE")
        return np.array(delays, dtype=float)

    def _repair(self) -> ConstructedOverlay:
        if self._kept is None:
            self._kept = Upkeep(self._design, self._now())
        return self._kept.overlay

    def _now(self) -> Interests:
        return Interests(self._interests, self._topics)

    def publish(self, peer: int, publication: Publication) -> None:
        """See System.publish."""
        self._seen[peer].add(publication.message)
        self._published[peer].add(publication.topic)
        self._pass_on(peer, peer, Copy(publication, 0))

    def on_copy(self, peer: int, sender: int, copy: Copy) -> None:
        """A copy of a publication arrived."""
        if copy.publication.message not in self._seen[peer]:
            self._seen[peer].add(copy.publication.message)
            self._pass_on(peer, sender, copy)

    def _pass_on(self, peer: int, sender: int, copy: Copy) -> None:
        topic, overlay = copy.publication.topic, self.overlay
        centre = overlay.centres.get(topic)
        near = [other for other in overlay.neighbours[peer] if topic in self._interests[other]]
        if centre is not None and peer != centre:
            near = [centre] if peer == sender else []
        elif peer == sender and (entry := self._entry(peer, topic)) is not None:
            near = [entry]
        to = [other for other in near if other not in (sender, copy.publication.publisher)]
        if to or peer == sender:
            self._net.forward(self._copies, peer, to, copy)

    def _entry(self, peer: int, topic: int) -> int | None:
        """Return the peer, linked to this one by no edge, to which it sends what it publishes."""
        if topic in self._interests[peer]:
            return None
        if (centre := self.overlay.centres.get(topic)) is not None:
            return centre
        neighbours = self.overlay.neighbours[peer]
        if any(topic in self._interests[other] for other in neighbours):
            return None
        subscribers = (other for other, topics in enumerate(self._interests) if topic in topics)
        return next(subscribers, None)

    def links(self, peer: int) -> Iterable[Links]:
        """See System.links."""
        yield Links("overlay", None, self.overlay.neighbours[peer])
        for topic in sorted(self._published[peer]):
            if (entry := self._entry(peer, topic)) is not None:
                yield Links("center", topic, (entry,))

    def roles(self, peer: int) -> Iterable[tuple[str, int | None]]:
        """See System.roles."""
        centres = self.overlay.centres
        return [
            ("center", topic)
            for topic in sorted(self._interests[peer])
            if centres.get(topic) == peer
        ]


class Gm(Constructed):
    """Greedy merge: few edges, any diameter (Chockler et al. 2007)."""

    algorithm = "gm"
    growth = 2


class CdOda(Constructed):
    """Stars; the next centre reaches the most others (Onus and Richa 2009)."""

    algorithm = "cd-oda"


class CdOdaI(Constructed):
    """Stars; the next centre counts the most subscribers of its topics (our reading)."""

    algorithm = "cd-oda-i"


class CdOdaII(Constructed):
    """Stars; the next centre is the densest (Onus and Richa 2011)."""

    algorithm = "cd-oda-ii"


class TwoDOda(Constructed):
    """Stars; the next centre is the densest subscriber of the largest topic (our reading)."""

    algorithm = "2d-oda"


class CdMax(Constructed):
    """Stars; the next centre reaches the fewest others (CD-MAX, 2021)."""

    algorithm = "cd-max"


class CdMaxRef(Constructed):
    """CD-MAX, whose centres are then moved to lower the maximum degree (CD-MAX-Ref, 2021)."""

    algorithm = "cd-max-ref"

    def __init__(self, net: Network, parameters: RefinedParameters, topics: int) -> None:
        if not parameters.refine:
            raise UseError("cd-max-ref refines: use cd-max instead of --no-refine")
        super().__init__(net, parameters, topics)


CLASSES: dict[str, type[Constructed]] = {
    system.algorithm: system for system in (Gm, CdOda, CdOdaI, CdOdaII, TwoDOda, CdMax, CdMaxRef)
}


def system_of(algorithm: str) -> str:
    """The name of its system, as `vizpub lab simulate` takes it."""
    return f"{__name__}:{CLASSES[algorithm].__name__}"
