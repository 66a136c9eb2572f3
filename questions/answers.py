"""Answers of a run about a time or a message: frames of rows, and of their peers.

The queries overlay, topic-subgraph and dissemination-tree give the same from Neo4j.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vizpub.machine.modules import needing_extra
from vizpub.questions.frames import Frame

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, repr=False, eq=False)
class OverlaySnapshot(Frame):
    """An overlay, or a topic's part of one, at a time: a row for each link, layer and topic.

    src  src_name  dst  dst_name  layer  topic  topic_name  valid_from  valid_to
    0    alice     1    bob       mesh   0      news        0   9223372036854775807
    """

    peers: Frame
    """The peers, with or without links: `peer`, `peer_name`, `valid_from`, `valid_to`."""

    def to_networkx(self, *, multi: bool = False) -> nx.DiGraph[str]:
        """The peers by name, with `peer`, the dense index; from peer to peer one edge with its
        `layers` and `topics`, or, if `multi`, one for each link, with `layer` and `topic`.

        Raises: UseError without the extra `networkx`.
        """
        with needing_extra("networkx", "to_networkx()"):
            import networkx
        graph: nx.DiGraph[str] = (networkx.MultiDiGraph if multi else networkx.DiGraph)(
            title=self.title
        )
        names = zip(
            self.peers["peer_name"].to_pylist(), self.peers["peer"].to_pylist(), strict=True
        )
        graph.add_nodes_from((name, {"peer": peer}) for name, peer in names)
        if multi:
            for src, dst, layer, topic in self._links():
                graph.add_edge(src, dst, layer=layer, topic=topic)
        else:
            graph.add_edges_from((*ends, traits) for ends, traits in self.pairs().items())
        return graph

    def pairs(self) -> dict[tuple[str, str], dict[str, list[str]]]:
        """The pairs of peers with a link, each with the `layers` and `topics` of its links."""
        pairs: dict[tuple[str, str], dict[str, set[str]]] = {}
        for src, dst, layer, topic in self._links():
            traits = pairs.setdefault((src, dst), {"layers": set(), "topics": set()})
            traits["layers"].add(layer)
            if topic is not None:
                traits["topics"].add(topic)
        return {
            ends: {kind: sorted(values) for kind, values in traits.items()}
            for ends, traits in pairs.items()
        }

    def _links(self) -> Iterator[tuple[str, str, str, str | None]]:
        columns = ("src_name", "dst_name", "layer", "topic_name")
        return zip(*(self[name].to_pylist() for name in columns), strict=True)


@dataclass(frozen=True, repr=False, eq=False)
class Tree(Frame):
    """The way of a message: a row for each copy that arrived, by hop and time.

    hop  time_us  previous_hop  previous_hop_name  peer  peer_name  first  subscribed
    1    130000   0             alice              1     bob        true   true
    """

    peers: Frame
    """The peers it reached and those it missed, with the roles of
    vizpub.questions.snapshots.spread."""
