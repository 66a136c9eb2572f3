"""What is measured of each interval, by the names the results have."""

from __future__ import annotations

from analytics.options import Measures

_ALWAYS_EXACT = float("inf")

VARIANTS = {
    "structure": Measures(betweenness=False, topics=False),
    "topics": Measures(betweenness=False),
    "betweenness": Measures(topics=False, max_edge_visits=_ALWAYS_EXACT),
    "all": Measures(max_edge_visits=_ALWAYS_EXACT),
}
TIMES = {"structure": 3, "topics": 3, "betweenness": 1, "all": 1}
"""How often each is measured: what is quick, more often, since a machine has other things to do."""
