"""Answers of a run about a time or a message: rows, and their peers.

They come from the tables; the queries overlay, topic-subgraph and dissemination-tree
give the same from Neo4j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.errors import UseError
from vizpub.questions.frames import Frame
from vizpub.questions.snapshots import alive, links_at, spread

if TYPE_CHECKING:
    import networkx as nx

    from vizpub.questions.names import NamedRun

_ENDS = ("src_name", "dst_name")


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

        Raises: UseError where networkx is not installed.
        """
        networkx = _networkx()
        graph: nx.DiGraph[str] = (networkx.MultiDiGraph if multi else networkx.DiGraph)(
            title=self.title
        )
        names = zip(
            self.peers["peer_name"].to_pylist(), self.peers["peer"].to_pylist(), strict=True
        )
        graph.add_nodes_from((name, {"peer": peer}) for name, peer in names)
        columns = (self[name].to_pylist() for name in (*_ENDS, "layer", "topic_name"))
        for src, dst, layer, topic in zip(*columns, strict=True):
            if multi:
                graph.add_edge(src, dst, layer=layer, topic=topic)
            else:
                _join(graph, (src, dst), layer, topic)
        return graph


def _join(graph: nx.DiGraph[str], ends: tuple[str, str], layer: str, topic: str | None) -> None:
    """Add a link to the edge between two peers."""
    if not graph.has_edge(*ends):
        graph.add_edge(*ends, layers=[], topics=[])
    edge = graph.edges[ends]
    for kind, value in (("layers", layer), ("topics", topic)):
        if value is not None:
            edge[kind] = sorted({*edge[kind], value})


def _networkx() -> ModuleType:
    try:
        import networkx
    except ModuleNotFoundError:
        raise UseError("networkx is not installed; install it with: pip install networkx") from None
    return networkx


@dataclass(frozen=True, repr=False, eq=False)
class Tree(Frame):
    """The way of a message: a row for each copy that arrived, by hop and time.

    hop  time_us  previous_hop  previous_hop_name  peer  peer_name  first  subscribed
    1    130000   0             alice              1     bob        true   true
    """

    peers: Frame
    """The peers it reached and those it missed, with the roles of
    vizpub.questions.snapshots.spread."""


def overlay(run: NamedRun, at: int | str, layers: Sequence[str] | None) -> OverlaySnapshot:
    """Return the overlay at a time: the peers that are present, and their links.

    Raises: as Run.overlay.
    """
    run.facts.check_known("presence", "links")
    tick = run.clock.parse_at(str(at), run.facts.epoch)
    peers = run.stored.read("presence", where=alive(tick))
    links = links_at(run, tick, run.checked_layers(layers))
    return _snapshot(run, f"overlay in {run.clock.describe(tick)}", peers, links)


def topic(run: NamedRun, name: str, at: int | str, layers: Sequence[str] | None) -> OverlaySnapshot:
    """Return a topic's part of the overlay at a time: its subscribers and the links between them.

    Raises: as Run.topic.
    """
    run.facts.check_known("subscriptions", "links")
    tick, index = run.clock.parse_at(str(at), run.facts.epoch), run.topic_index(name)
    of_it = alive(tick) & (pc.field("topic") == index)
    peers = run.stored.read("subscriptions", ["peer", "valid_from", "valid_to"], of_it).sort_by(
        "peer"
    )
    inside = pc.field("src").isin(peers["peer"]) & pc.field("dst").isin(peers["peer"])
    links = links_at(run, tick, run.checked_layers(layers)).filter(inside)
    return _snapshot(run, f"topic {name} in {run.clock.describe(tick)}", peers, links)


def _snapshot(run: NamedRun, title: str, peers: pa.Table, links: pa.Table) -> OverlaySnapshot:
    title = f"{run.facts.name}, {title}"
    beside = Frame(f"{title}, peers", run.with_names(peers))
    return OverlaySnapshot(title, run.with_names(links), beside)


def tree(run: NamedRun, message: str) -> Tree:
    """Return how a message spread. Raises: as Run.tree."""
    peers, copies = spread(run, message)
    title = f"{run.facts.name}, message {message}"
    return Tree(title, copies, Frame(f"{title}, peers", peers))
