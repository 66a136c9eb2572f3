"""An interval's metrics from what GraphFrames found of its peers, and from kernels.

Arrow in, numpy out; runs in a task. Kernels are compiled where they are imported first, so no
earlier than they are called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.options import Measures

if TYPE_CHECKING:
    from analytics.blocks import BlockMetrics, Columns

LINK, TOPIC = 0, 1
FOUND = (
    "in_degree", "out_degree", "degree", "clustering", "component", "strong_component", "pagerank",
)  # fmt: skip
"""Columns of metrics/peers that GraphFrames finds; pagerank is yet to be divided by its sum."""

_OF_PATHS = (
    "distance_sum", "reachable_peers", "eccentricity", "mean_distance_error",
    "betweenness", "betweenness_error",
)  # fmt: skip
_OF_TOPIC_PATHS = ("components", "topic_diameter", "distance_sum", "pairs")


def assembled(
    peers: pa.Table, others: pa.Table, measures: Measures, *, paths: bool
) -> BlockMetrics:
    """The metrics of one interval, as `analytics.blocks.measure_block` gives them.

    `peers`: interval, peer, topics (a list) and `FOUND`, ascending by peer, at least one row.
    `others`: rows (kind, a, b), of kind `LINK` a link's peers, of kind `TOPIC` a topic and the
    number of links within it. Without `paths` the links are not looked at, and what follows
    from them is NaN.
    """
    measured = _by_kernels(peers, others, measures) if paths else _without_paths(peers)
    ranks = peers["pagerank"].to_numpy()
    measured.peers.update({name: peers[name].to_numpy() for name in FOUND})
    measured.peers["pagerank"] = ranks / ranks.sum()
    if not measures.topics:
        return measured._replace(topics={name: x[:0] for name, x in measured.topics.items()})
    measured.topics["topic_links"] = _links_of(measured.topics["topic"], others)
    return measured


def _by_kernels(peers: pa.Table, others: pa.Table, measures: Measures) -> BlockMetrics:
    from analytics.blocks import Links, Presence, Subscriptions, measure_block

    interval = peers["interval"][0].as_py()
    links = others.filter(pc.equal(others["kind"], LINK))

    def lived(*columns: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        start = np.full(len(columns[0]), interval)
        return (*columns, start, start + 1)

    return measure_block(
        Links(*lived(links["a"].to_numpy(), links["b"].to_numpy())),
        Presence(*lived(peers["peer"].to_numpy())),
        Subscriptions(*lived(*_subscriptions(peers))),
        interval,
        interval,
        measures,
    )


def _without_paths(peers: pa.Table) -> BlockMetrics:
    from analytics.blocks import BlockMetrics

    interval = peers["interval"].to_numpy()
    topics, subscribers = np.unique(_subscriptions(peers)[1], return_counts=True)
    of_peers: Columns = {
        "interval": interval,
        "peer": peers["peer"].to_numpy(),
        **{name: np.full(len(interval), np.nan) for name in _OF_PATHS},
        "subscriptions": pc.list_value_length(peers["topics"]).to_numpy(),
    }
    of_topics: Columns = {
        "interval": np.full(len(topics), interval[0]),
        "topic": topics,
        "subscribers": subscribers,
        **{name: np.full(len(topics), np.nan) for name in _OF_TOPIC_PATHS},
    }
    of_interval = {"interval": interval[:1], "average_path_length_error": np.array([np.nan])}
    return BlockMetrics(of_peers, of_topics, of_interval)


def _subscriptions(peers: pa.Table) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Peer and topic of each subscription."""
    topics = peers["topics"].combine_chunks()
    subscriber = pc.list_parent_indices(topics).to_numpy()
    return peers["peer"].to_numpy()[subscriber], topics.flatten().to_numpy()


def _links_of(topics: npt.NDArray[Any], others: pa.Table) -> npt.NDArray[np.int64]:
    """How many links lie within each of the topics, which ascend; 0 where none is told."""
    told = others.filter(pc.equal(others["kind"], TOPIC))
    links = np.zeros(len(topics), np.int64)
    links[np.searchsorted(topics, told["a"].to_numpy())] = told["b"].to_numpy()
    return links
