"""The peers to which links lead over time, by components of the graph at every change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx

Row = dict[str, Any]


def reachable(links: Iterable[Row], published: Row, end: int) -> set[int]:
    """The peers that are in one component with one of them at some moment, again and again, from
    the publication of a message up to a tick.
    """
    usable = [row for row in links if row["topic"] in (None, published["topic"])]
    has, since = {published["publisher"]}, published["tick"]
    changes = {row["valid_from"] for row in usable if since < row["valid_from"] <= end}
    for at in sorted({since, *changes}):
        graph = nx.Graph(
            (row["src"], row["dst"]) for row in usable if row["valid_from"] <= at < row["valid_to"]
        )
        for component in nx.connected_components(graph):
            if component & has:
                has |= component
    return has
