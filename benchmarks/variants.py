"""The metrics that are measured of each interval, by their names in the results."""

from __future__ import annotations

from vizpub.analytics.options import ALWAYS_EXACT, Measures

VARIANTS = {
    "structure": Measures(betweenness=False, topics=False),
    "topics": Measures(betweenness=False),
    "betweenness": Measures(topics=False, max_edge_visits=ALWAYS_EXACT),
    "all": Measures(max_edge_visits=ALWAYS_EXACT),
}
SAMPLED = Measures(max_edge_visits=1e8)
TIMES = {"structure": 3, "topics": 3, "betweenness": 1, "all": 1}
"""How often each is measured: quick ones more often, because other processes use the machine too.
"""
