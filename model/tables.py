"""Every table of a run: its columns, their types, units and meaning.

This is the one place a column is named. The run store writes these schemas, the loader
and the queries rely on them, `vizpub tables` prints them and a test holds the docs to them.

Types are int32, int64, double, string and bool only. Times ending in `_us` are
microseconds since the run's epoch; `vf` and `vt` are ticks (see model.clock). A null is
*unknown*; a 0 was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from model.errors import UnknownName

Type = Literal["int32", "int64", "double", "string", "bool"]

_ARROW: dict[str, pa.DataType] = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}


@dataclass(frozen=True)
class Column:
    """One column. `graph` and `degenerate` are for metrics of a graph only."""

    name: str
    type: Type
    meaning: str
    unit: str = ""
    nullable: bool = False
    graph: Literal["", "directed", "undirected"] = ""
    """Which way the links are read."""
    degenerate: str = ""
    """The value where the graph is broken, tiny or without links."""


@dataclass(frozen=True)
class Table:
    """One table of the run store. `key` names the columns that make a row unique."""

    name: str
    row: str
    """What one row stands for."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Column names, in order."""
        return [column.name for column in self.columns]

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema its Parquet files have."""
        return pa.schema(
            [pa.field(c.name, _ARROW[c.type], nullable=c.nullable) for c in self.columns]
        )

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)


def _known(name: str, type: Type, meaning: str, unit: str = "") -> Column:
    return Column(name, type, meaning, unit)


def _maybe(name: str, type: Type, meaning: str, unit: str = "") -> Column:
    return Column(name, type, meaning, unit, nullable=True)


def _graph(
    name: str, type: Type, meaning: str, way: Literal["directed", "undirected"], degenerate: str
) -> Column:
    unit = "hops" if "hops" in meaning else ""
    return Column(name, type, meaning, unit, True, way, degenerate)


_PEER = _known("peer", "int32", "dense index of the peer")
_TOPIC = _known("topic", "int32", "dense index of the topic")
_INTERVAL = _known("interval", "int32", "reporting interval")
_SPAN = (
    _known("vf", "int64", "valid from, inclusive", "ticks"),
    _known("vt", "int64", "valid to, exclusive; 9223372036854775807 = open", "ticks"),
)
_LINK = (
    _known("src", "int32", "peer that holds the link"),
    _known("dst", "int32", "peer it leads to"),
    _known("layer", "string", "part of the protocol it belongs to; 'overlay' if not said"),
    _maybe("topic", "int32", "topic it serves, null = none"),
    *_SPAN,
)
_TRAFFIC = tuple(
    _maybe(
        f"{kind}_{what}_{way}",
        "int64",
        f"{kind} {'messages' if what == 'messages' else 'traffic'} {way} in the interval",
        what,
    )
    for kind in ("control", "publication")
    for what in ("messages", "bytes")
    for way in ("sent", "received")
)
TRAFFIC_COLUMNS = tuple(column.name for column in _TRAFFIC)

PEERS = Table(
    "peers",
    "peer",
    (
        _PEER,
        _known("key", "string", "its name in the source"),
        _known("reports", "bool", "it reported itself; false = only named by others"),
    ),
    ("peer",),
)
TOPICS = Table(
    "topics", "topic", (_TOPIC, _known("key", "string", "its name in the source")), ("topic",)
)
PRESENCE = Table("presence", "maximal stay of a peer", (_PEER, *_SPAN), ("peer", "vf"))
LINKS = Table(
    "links",
    "maximal life of a directed link, clipped to the presence of both ends",
    _LINK,
    ("src", "dst", "layer", "topic", "vf"),
)
DANGLING_LINKS = Table(
    "dangling_links",
    "part of a link's life in which one of its ends was not present",
    _LINK,
    ("src", "dst", "layer", "topic", "vf"),
)
SUBSCRIPTIONS = Table(
    "subscriptions",
    "maximal life of a subscription, clipped to the presence of the peer",
    (_PEER, _TOPIC, *_SPAN),
    ("peer", "topic", "vf"),
)
ROLES = Table(
    "roles",
    "maximal life of a role of a peer",
    (
        _PEER,
        _known("role", "string", "the role's name, as 'rendezvous'"),
        _maybe("topic", "int32", "topic it is played for, null = none"),
        *_SPAN,
    ),
    ("peer", "role", "topic", "vf"),
)
TRAFFIC = Table(
    "traffic",
    "peer and interval",
    (
        _PEER,
        _INTERVAL,
        *_TRAFFIC,
        _maybe("dropped", "int64", "sends given up because a queue was full", "messages"),
        _maybe("duplicates", "int64", "receptions that were not the first, as the peer counted"),
    ),
    ("peer", "interval"),
)
PUBLICATIONS = Table(
    "publications",
    "message",
    (
        _known("message", "int64", "dense index of the message"),
        _known("key", "string", "its id in the source"),
        _maybe("topic", "int32", "topic it was published to"),
        _maybe("publisher", "int32", "peer that published it"),
        _known("interval", "int32", "interval of the publication (or of the first reception)"),
        _maybe("time_us", "int64", "time of the publication", "µs"),
        _known("tick", "int64", "tick of the publication (or of the first reception)", "ticks"),
        _known("publication_known", "bool", "the publisher reported it"),
    ),
    ("message",),
)
_ARRIVAL = (
    _known("message", "int64", "dense index of the message"),
    _known("peer", "int32", "peer that received it"),
    _maybe("previous_hop", "int32", "peer it came from, null = unknown"),
    _maybe("time_us", "int64", "time of the arrival", "µs"),
    _INTERVAL,
)
RECEPTIONS = Table(
    "receptions",
    "one arrival of a message at a peer",
    (
        *_ARRIVAL,
        _known("tick", "int64", "tick of the arrival", "ticks"),
        _known("first", "bool", "the first arrival at this peer; the others are duplicates"),
        _maybe("hop", "int32", "links travelled from the publisher, null = unknown", "hops"),
        _maybe("interested", "bool", "the peer subscribed to the topic then"),
    ),
    ("message", "peer", "previous_hop", "tick"),
)
REJECTIONS = Table(
    "rejections",
    "one arrival that the peer refused",
    (*_ARRIVAL, _maybe("reason", "string", "why, in the source's words")),
    ("message", "peer", "previous_hop", "time_us"),
)
QUARANTINE = Table(
    "quarantine",
    "record of the input that was refused",
    (
        _known("file", "string", "file it stands in"),
        _known("line", "int64", "line, from 1 (ordinal of the record in a binary file)"),
        _known("reason", "string", "why it was refused"),
        _maybe("text", "string", "the record, at most 1,024 characters"),
    ),
    ("file", "line", "reason"),
)

_HITS = (
    _maybe("publications", "int64", "messages published in the interval"),
    _maybe("hit_ratio", "double", "delivered / eligible over those messages", "share"),
    _maybe("hit_ratio_mean", "double", "mean of their hit ratios (eligible > 0)", "share"),
)

METRICS_PEERS = Table(
    "metrics/peers",
    "peer and interval: peers present at its end, or with traffic or receptions in it",
    (
        _PEER,
        _INTERVAL,
        _maybe("present", "bool", "at the sampling tick; null where presence is unknown"),
        _graph("in_degree", "int32", "distinct links in", "directed", "0 without links"),
        _graph("out_degree", "int32", "distinct links out", "directed", "0 without links"),
        _graph(
            "degree", "int32", "distinct peers linked either way", "undirected", "0 without links"
        ),
        _graph("clustering", "double", "local clustering", "undirected", "0 where degree < 2"),
        _graph(
            "betweenness",
            "double",
            "shortest paths through the peer, over ordered pairs (Brandes)",
            "directed",
            "0 where no path passes",
        ),
        _graph(
            "betweenness_normalized",
            "double",
            "betweenness / ((n-1)(n-2))",
            "directed",
            "null where n < 3",
        ),
        _graph(
            "betweenness_error",
            "double",
            "standard error of betweenness where it was sampled",
            "directed",
            "0 where exact",
        ),
        _graph(
            "mean_distance",
            "double",
            "mean hops to the peers it reaches (the thesis' closeness)",
            "directed",
            "null where it reaches none",
        ),
        _graph(
            "closeness",
            "double",
            "(r/(n-1))·(r/Σd) over outgoing distances (Wasserman and Faust)",
            "directed",
            "0 where it reaches none",
        ),
        _graph(
            "eccentricity",
            "int32",
            "largest finite distance from the peer in hops",
            "directed",
            "null where it reaches none",
        ),
        _graph(
            "reach", "int32", "peers it reaches, itself left out", "directed", "0 without links"
        ),
        _graph("component", "int32", "smallest peer of its weak component", "undirected", "itself"),
        _graph(
            "strong_component",
            "int32",
            "smallest peer of its strong component",
            "directed",
            "itself",
        ),
        _maybe("subscriptions", "int32", "topics it subscribes to"),
        *_TRAFFIC,
        _maybe("receptions", "int64", "arrivals of messages in the interval"),
        _maybe("duplicates", "int64", "arrivals that were not the first"),
    ),
    ("interval", "peer"),
)


def _traffic_means(kind: str, unit: str) -> tuple[Column, ...]:
    return tuple(
        _maybe(f"control_{kind}_{way}_mean", "double", f"control {kind} {way} per peer", unit)
        for way in ("sent", "received")
    )


METRICS_OVERLAY = Table(
    "metrics/overlay",
    "interval",
    (
        _INTERVAL,
        _graph("network_size", "int32", "peers present, n", "directed", "0"),
        _graph("links", "int32", "distinct links between them, m", "directed", "0"),
        _maybe("dangling_links", "int32", "links to or from peers that were not present"),
        _graph("density", "double", "m/(n(n-1))", "directed", "null where n < 2"),
        _graph("in_degree_mean", "double", "mean in-degree = m/n", "directed", "null where n = 0"),
        _graph("in_degree_max", "int32", "largest in-degree", "directed", "null where n = 0"),
        _graph(
            "out_degree_mean", "double", "mean out-degree = m/n", "directed", "null where n = 0"
        ),
        _graph("out_degree_max", "int32", "largest out-degree", "directed", "null where n = 0"),
        _graph("degree_mean", "double", "mean degree", "undirected", "null where n = 0"),
        _graph("degree_max", "int32", "largest degree", "undirected", "null where n = 0"),
        _graph(
            "clustering_mean",
            "double",
            "mean local clustering over all peers",
            "undirected",
            "peers of degree < 2 count 0",
        ),
        _graph("betweenness_mean", "double", "mean betweenness", "directed", "null where n = 0"),
        _graph("betweenness_max", "double", "largest betweenness", "directed", "null where n = 0"),
        _graph(
            "mean_distance_mean",
            "double",
            "mean over peers of their mean distance in hops",
            "directed",
            "peers that reach none are left out",
        ),
        _graph(
            "closeness_mean",
            "double",
            "mean closeness",
            "directed",
            "peers that reach none count 0",
        ),
        _graph(
            "eccentricity_mean",
            "double",
            "mean eccentricity in hops",
            "directed",
            "peers that reach none are left out",
        ),
        _graph(
            "diameter", "int32", "largest finite distance in hops", "directed", "null where m = 0"
        ),
        _graph(
            "path_length",
            "double",
            "mean hops over the ordered pairs that are connected",
            "directed",
            "null where m = 0 or n < 2",
        ),
        _graph(
            "reachable_pairs_share",
            "double",
            "ordered pairs that are connected / n(n-1)",
            "directed",
            "null where n < 2",
        ),
        _graph("weak_components", "int32", "weak components", "undirected", "0 where n = 0"),
        _graph("strong_components", "int32", "strong components", "directed", "0 where n = 0"),
        _graph(
            "largest_weak_component_share",
            "double",
            "peers in the largest weak component / n",
            "undirected",
            "null where n = 0",
        ),
        *_traffic_means("messages", "messages"),
        *_traffic_means("kilobytes", "kB of 1,000 B"),
        _maybe("unknown_reports", "int64", "peers present whose traffic is not known"),
        *_HITS,
        _maybe("receptions", "int64", "arrivals in the interval"),
        _maybe("duplicates", "int64", "arrivals that were not the first"),
        _maybe("rejected_publications", "int64", "messages left out of the hit ratios: refused"),
        _maybe(
            "hit_ratio_in_interval",
            "double",
            "as hit_ratio, counting only arrivals in the interval of publication",
            "share",
        ),
        _graph(
            "topic_diameter_mean",
            "double",
            "mean over topics of topic_diameter in hops",
            "undirected",
            "topics without one are left out",
        ),
    ),
    ("interval",),
)
METRICS_TOPICS = Table(
    "metrics/topics",
    "topic and interval: topics with subscribers at its end, or with publications or receptions",
    (
        _TOPIC,
        _INTERVAL,
        _maybe("subscribers", "int32", "peers present that subscribe to it"),
        _graph(
            "topic_links", "int32", "links whose two ends both subscribe", "directed", "0 without"
        ),
        _graph(
            "components",
            "int32",
            "components of the subscribers' subgraph (1 = topic-connected)",
            "undirected",
            "0 without subscribers",
        ),
        _graph(
            "topic_diameter",
            "int32",
            "largest finite distance inside it in hops",
            "undirected",
            "null where subscribers < 2 or no link",
        ),
        _graph(
            "topic_path_length",
            "double",
            "mean hops over its connected pairs",
            "undirected",
            "null where subscribers < 2 or no link",
        ),
        *_HITS,
        _maybe("duplicates", "int64", "arrivals in the interval that were not the first"),
        _maybe("relay_receptions", "int64", "arrivals at peers that do not subscribe"),
    ),
    ("interval", "topic"),
)


def _delays() -> tuple[Column, ...]:
    words = {"mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
    return tuple(
        _maybe(
            f"delay_us_{name}",
            "double",
            f"{words.get(name, 'largest')} delay of first receptions",
            "µs",
        )
        for name in ("mean", "p50", "p95", "p99", "max")
    )


METRICS_MESSAGES = Table(
    "metrics/messages",
    "message",
    (
        _known("message", "int64", "dense index of the message"),
        _maybe("eligible", "int64", "peers present and subscribed at publication, publisher out"),
        _maybe("delivered", "int64", "eligible peers that received it at any later time"),
        _maybe("delivered_in_interval", "int64", "those it reached in the interval of publication"),
        _maybe("hit_ratio", "double", "delivered / eligible; null where eligible = 0", "share"),
        _known("receptions", "int64", "arrivals"),
        _known("first_receptions", "int64", "peers it arrived at"),
        _known("duplicates", "int64", "arrivals that were not the first"),
        _maybe("relay_receptions", "int64", "arrivals at peers that did not subscribe"),
        _known("rejections", "int64", "arrivals that were refused"),
        _maybe(
            "late_deliveries",
            "int64",
            "first receptions at peers that subscribed when it arrived but were not eligible",
        ),
        _maybe("hops_mean", "double", "mean hop of first receptions", "hops"),
        _maybe("hops_max", "int32", "largest hop of first receptions", "hops"),
        *_delays(),
        _maybe("redundancy", "double", "receptions / first receptions - 1"),
        _maybe(
            "causality_violations",
            "int64",
            "receptions before the publication or before the previous hop's own",
        ),
    ),
    ("message",),
)

TABLES: tuple[Table, ...] = (
    PEERS,
    TOPICS,
    PRESENCE,
    LINKS,
    DANGLING_LINKS,
    SUBSCRIPTIONS,
    ROLES,
    TRAFFIC,
    PUBLICATIONS,
    RECEPTIONS,
    REJECTIONS,
    METRICS_OVERLAY,
    METRICS_PEERS,
    METRICS_TOPICS,
    METRICS_MESSAGES,
    QUARANTINE,
)
METRICS: tuple[Table, ...] = (METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS, METRICS_MESSAGES)


def table(name: str) -> Table:
    """The table of that name. Raises: UnknownName."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise UnknownName("table", name, [t.name for t in TABLES], "vizpub tables")
