"""What messages cost physical links: link stress and stretch, beside unicast and IP multicast.

After Chu, Rao, Zhang (SIGMETRICS 2000): the stress of a link is the number of copies of one message
on it; the stretch of a delivery, also called relative delay penalty, is its delay over that of the
fastest way from the publisher.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from vizpub.simulators.engine.costs import Costs
from vizpub.simulators.world.routers import Link, RouterNetwork

WAYS = ("overlay", "unicast", "multicast")
_COPY_S, _COPY_BYTES = 1.4e-5, 30
"""Of a copy in the overlay, measured with 200 to 4,000 peers; a ratio of delays is kept of each."""


_Load = tuple[int, int, int, int]


class Spread(NamedTuple):
    """How a message went."""

    publisher: int
    copies: Sequence[tuple[int, int]]
    """Sender and receiver of each copy."""
    delays_us: Mapping[int, int]
    """Of each peer that the message was for, and reached."""


class WayCost(NamedTuple):
    """Means over messages of what one way of sending them costs."""

    way: str
    links: float
    """Links that carry a copy."""
    copies: float
    """Copies on all links."""
    peer_link_max: float
    """Copies on the busiest link between a peer and its router."""
    router_link_max: float
    """Copies on the busiest link between routers."""
    stretch: float
    """All delays over all those of the fastest ways."""
    stretch_median: float


def compare_ways(routers: RouterNetwork, spreads: Iterable[Spread]) -> list[WayCost]:
    """The costs of the ways that messages took, of unicast from their publishers to the same peers,
    and of multicast by the fastest ways, with one copy on each link. Messages that reached nobody
    do not count.
    """
    loads: dict[str, list[_Load]] = {way: [] for way in WAYS}
    delay, fastest, ratios = 0, 0, list[float]()
    for spread in spreads:
        if not spread.delays_us:
            continue
        direct = {to: routers.delay(spread.publisher, to) for to in spread.delays_us}
        ratios += [spread.delays_us[to] / direct[to] for to in direct]
        delay += sum(spread.delays_us.values())
        fastest += sum(direct.values())
        unicast = routers.stress((spread.publisher, to) for to in direct)
        loads["overlay"].append(_load(routers.stress(spread.copies)))
        loads["unicast"].append(_load(unicast))
        loads["multicast"].append(_load(Counter({*unicast})))
    if not ratios:
        return []
    stretch = {"overlay": (delay / fastest, median(ratios))}
    costs = []
    for way in WAYS:
        links, copies, of_peers, of_routers = map(fmean, zip(*loads[way], strict=True))
        costs.append(
            WayCost(way, links, copies, of_peers, of_routers, *stretch.get(way, (1.0, 1.0)))
        )
    return costs


def stress_costs(copies: float) -> Costs:
    """Estimate the costs of comparing messages with so many copies in all."""
    return Costs(copies * _COPY_S, round(copies * _COPY_BYTES))


def _load(stress: Counter[Link]) -> _Load:
    """The links, copies, and busiest links of a message: see WayCost."""
    of_peers = max(stress[link] for link in stress if link[0] < 0)
    of_routers = max((stress[link] for link in stress if link[0] >= 0), default=0)
    return len(stress), stress.total(), of_peers, of_routers
