"""Routers between peers: what a message's way over physical links is, and how much they carry.

A transit-stub topology (Zegura, Calvert, Bhattacharjee, INFOCOM 1996) has domains of transit
routers, linked among each other, and domains of stub routers, each behind a transit router. Peers
are at stub routers. Messages take the fastest way.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from random import Random

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

Link = tuple[int, int]
"""Two routers, or a router and a peer as number -1 − peer; the smaller number first."""
_Lengths = dict[Link, int]
"""µs of each link between routers."""


class RouterNetwork:
    """Routers, the links between them, and the router of each peer."""

    def __init__(self, lengths: _Lengths, router_of: Sequence[int], access_us: int) -> None:
        self.lengths, self.router_of, self.access_us = lengths, router_of, access_us
        ends = np.array([*lengths]).T
        routers = int(ends.max()) + 1
        graph = csr_array((np.fromiter(lengths.values(), float), ends), (routers, routers))
        self.sources = sorted(set(router_of))
        """The routers that have peers."""
        delays, self._before = dijkstra(
            graph, directed=False, indices=self.sources, return_predecessors=True
        )
        self._row_of = {router: row for row, router in enumerate(self.sources)}
        # Python's arrays: one item takes several times as long from numpy's.
        rows: list[array[int]] = [array("q", row) for row in np.rint(delays).astype(int).tolist()]
        self._delays = [rows[self._row_of[router]] for router in router_of]

    def delay(self, sender: int, receiver: int) -> int:
        """µs that a message takes, the links of both peers to their routers included."""
        return self._delays[sender][self.router_of[receiver]] + 2 * self.access_us

    def path(self, sender: int, receiver: int) -> list[Link]:
        """The links that a message takes."""
        at, source = self.router_of[receiver], self.router_of[sender]
        before = self._before[self._row_of[source]]
        links = [(-1 - receiver, at), (-1 - sender, source)]
        while at != source:
            links.append((min(at, int(before[at])), max(at, int(before[at]))))
            at = int(before[at])
        return links

    def stress(self, pairs: Iterable[tuple[int, int]]) -> Counter[Link]:
        """The copies on each link of those that went from sender to receiver."""
        return Counter(link for pair in pairs for link in self.path(*pair))


def draw_transit_stub(
    domains: Sequence[int], lengths_us: Sequence[int], share: float, random: Random
) -> tuple[_Lengths, list[int]]:
    """Draw the links of a topology; return them, and the stub routers.

    `domains` has the numbers of transit domains, of routers in each, of stub domains at each of
    these, and of routers in each stub domain; `lengths_us` those of links between transit
    routers, from stub domains to them, and within stub domains; `share` is that of the pairs in a
    domain that are linked beside those that make it connected.
    """
    transit_domains, transit_routers, stub_domains, stub_routers = domains
    between, uplink, inside = lengths_us
    lengths, stubs = _Lengths(), list[int]()
    transit = [
        range(number * transit_routers, (number + 1) * transit_routers)
        for number in range(transit_domains)
    ]
    for routers in transit:
        lengths |= dict.fromkeys(_connect(routers, share, random), between)
    for one, other in _connect(range(transit_domains), share, random):
        ends = random.choice(transit[one]), random.choice(transit[other])
        lengths[ends] = between
    first = transit_domains * transit_routers
    for router in range(first):
        for _ in range(stub_domains):
            routers = range(first, first + stub_routers)
            lengths |= dict.fromkeys(_connect(routers, share, random), inside)
            lengths[router, random.choice(routers)] = uplink
            stubs += routers
            first += stub_routers
    return lengths, stubs


def _connect(members: Sequence[int], share: float, random: Random) -> list[Link]:
    """The links of a random connected graph: a tree, and a share of the other pairs."""
    tree = {(random.choice(members[:place]), members[place]) for place in range(1, len(members))}
    pairs = combinations(members, 2)
    return [pair for pair in pairs if pair in tree or random.random() < share]
