"""The metrics tables: what each number means. A test compares docs/metrics.md with it."""

from __future__ import annotations

from vizpub.model.columns import (
    INTERVAL,
    PEER,
    TOPIC,
    TRAFFIC_COLUMNS,
    TRAFFIC_OF_PEER,
    Column,
    Table,
    known,
    maybe,
    of_graph,
)

_HITS = (
    maybe("publications", "int64", "messages published in the interval"),
    maybe("hit_ratio", "double", "delivered / eligible over these messages", "share"),
    maybe("hit_ratio_mean", "double", "mean of their hit ratios (eligible > 0)", "share"),
)

COUNTS = (*TRAFFIC_COLUMNS, "publications", "receptions", "duplicates")
"""Columns of peers, topics and the overlay that can be added up over intervals."""

METRICS_PEERS = Table(
    "metrics/peers",
    "peer and interval: peers present at its end, or with traffic or receptions in it",
    (
        PEER,
        INTERVAL,
        maybe("present", "bool", "at the interval's last tick; null where presence is unknown"),
        of_graph("in_degree", "int32", "distinct links in", "directed", "0 without links"),
        of_graph("out_degree", "int32", "distinct links out", "directed", "0 without links"),
        of_graph(
            "degree", "int32", "distinct peers linked either way", "undirected", "0 without links"
        ),
        of_graph("clustering", "double", "local clustering", "undirected", "0 where degree < 2"),
        of_graph(
            "betweenness",
            "double",
            "shortest paths through the peer, over ordered pairs (Brandes)",
            "directed",
            "0 where no path passes",
        ),
        of_graph(
            "betweenness_normalized",
            "double",
            "betweenness / ((n-1)(n-2))",
            "directed",
            "null where n < 3",
        ),
        of_graph(
            "betweenness_error",
            "double",
            "standard error of betweenness where it was sampled",
            "directed",
            "0 where exact",
        ),
        of_graph(
            "mean_distance",
            "double",
            "mean hops to the peers it reaches (the thesis' closeness)",
            "directed",
            "null where it reaches none",
        ),
        of_graph(
            "mean_distance_error",
            "double",
            "standard error of mean_distance where distances were sampled, in hops",
            "directed",
            "0 where exact; null where it reaches none",
        ),
        of_graph(
            "closeness",
            "double",
            "(r/(n-1))·(r/Σd) over outgoing distances (Wasserman and Faust)",
            "directed",
            "0 where it reaches none",
        ),
        of_graph(
            "eccentricity",
            "int32",
            "largest finite distance from the peer in hops",
            "directed",
            "null where it reaches none",
        ),
        of_graph(
            "reachable_peers",
            "int32",
            "peers it reaches, without itself",
            "directed",
            "0 without links",
        ),
        of_graph(
            "component", "int32", "smallest peer of its weak component", "undirected", "itself"
        ),
        of_graph(
            "strong_component",
            "int32",
            "smallest peer of its strong component",
            "directed",
            "itself",
        ),
        of_graph(
            "pagerank",
            "double",
            "PageRank with damping 0.85; 1 over all peers present",
            "directed",
            "1/n without links",
        ),
        maybe("subscriptions", "int32", "topics it subscribes to"),
        *TRAFFIC_OF_PEER,
        maybe("receptions", "int64", "arrivals of messages in the interval"),
        maybe("duplicates", "int64", "arrivals that were not the first"),
    ),
    ("interval", "peer"),
)


def _traffic_means(kind: str, unit: str) -> tuple[Column, ...]:
    return tuple(
        maybe(f"control_{kind}_{way}_mean", "double", f"control {kind} {way} per peer", unit)
        for way in ("sent", "received")
    )


METRICS_OVERLAY = Table(
    "metrics/overlay",
    "interval",
    (
        INTERVAL,
        of_graph("network_size", "int32", "peers present, n", "directed", "0"),
        of_graph("links", "int32", "distinct links between them, m", "directed", "0"),
        maybe("dangling_links", "int32", "links to or from peers that were not present"),
        of_graph("density", "double", "m/(n(n-1))", "directed", "null where n < 2"),
        of_graph(
            "in_degree_mean", "double", "mean in-degree = m/n", "directed", "null where n = 0"
        ),
        of_graph("in_degree_max", "int32", "largest in-degree", "directed", "null where n = 0"),
        of_graph(
            "out_degree_mean", "double", "mean out-degree = m/n", "directed", "null where n = 0"
        ),
        of_graph("out_degree_max", "int32", "largest out-degree", "directed", "null where n = 0"),
        of_graph("degree_mean", "double", "mean degree", "undirected", "null where n = 0"),
        of_graph("degree_max", "int32", "largest degree", "undirected", "null where n = 0"),
        of_graph(
            "clustering_mean",
            "double",
            "mean local clustering over all peers",
            "undirected",
            "peers of degree < 2 count 0",
        ),
        of_graph("betweenness_mean", "double", "mean betweenness", "directed", "null where n = 0"),
        of_graph(
            "betweenness_max", "double", "largest betweenness", "directed", "null where n = 0"
        ),
        of_graph(
            "mean_distance_mean",
            "double",
            "mean over peers of their mean distance in hops",
            "directed",
            "peers that reach none are left out",
        ),
        of_graph(
            "closeness_mean",
            "double",
            "mean closeness",
            "directed",
            "peers that reach none count 0",
        ),
        of_graph(
            "eccentricity_mean",
            "double",
            "mean eccentricity in hops",
            "directed",
            "peers that reach none are left out",
        ),
        of_graph(
            "diameter", "int32", "largest finite distance in hops", "directed", "null where m = 0"
        ),
        of_graph(
            "average_path_length",
            "double",
            "mean hops over the ordered pairs that are connected",
            "directed",
            "null where m = 0 or n < 2",
        ),
        of_graph(
            "average_path_length_error",
            "double",
            "standard error of average_path_length where distances were sampled, in hops",
            "directed",
            "0 where exact; null where m = 0 or n < 2",
        ),
        of_graph(
            "reachable_pairs_share",
            "double",
            "ordered pairs that are connected / n(n-1)",
            "directed",
            "null where n < 2",
        ),
        of_graph("weak_components", "int32", "weak components", "undirected", "0 where n = 0"),
        of_graph("strong_components", "int32", "strong components", "directed", "0 where n = 0"),
        of_graph(
            "largest_weak_component_share",
            "double",
            "peers in the largest weak component / n",
            "undirected",
            "null where n = 0",
        ),
        *_traffic_means("messages", "messages"),
        *_traffic_means("kilobytes", "kB of 1,000 B"),
        maybe("unknown_reports", "int64", "peers present whose traffic is unknown"),
        *_HITS,
        maybe("receptions", "int64", "arrivals in the interval"),
        maybe("duplicates", "int64", "arrivals that were not the first"),
        maybe("rejected_publications", "int64", "refused messages, which hit ratios leave out"),
        maybe(
            "hit_ratio_in_interval",
            "double",
            "hit_ratio that counts only arrivals in the interval of publication",
            "share",
        ),
        of_graph(
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
        TOPIC,
        INTERVAL,
        maybe("subscribers", "int32", "peers present that subscribe to it"),
        of_graph(
            "topic_links", "int32", "links whose two ends both subscribe", "directed", "0 without"
        ),
        of_graph(
            "components",
            "int32",
            "components of the subscribers' subgraph (1 = topic-connected)",
            "undirected",
            "0 without subscribers",
        ),
        of_graph(
            "topic_diameter",
            "int32",
            "largest finite distance in the subscribers' subgraph in hops",
            "undirected",
            "null where subscribers < 2 or no link",
        ),
        of_graph(
            "topic_average_path_length",
            "double",
            "mean hops over the connected pairs of the subscribers' subgraph",
            "undirected",
            "null where subscribers < 2 or no link",
        ),
        *_HITS,
        maybe("duplicates", "int64", "arrivals in the interval that were not the first"),
        maybe("relay_receptions", "int64", "arrivals at peers that do not subscribe"),
    ),
    ("interval", "topic"),
)


def _delays() -> tuple[Column, ...]:
    words = {"mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
    return tuple(
        maybe(
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
        known("message", "int64", "dense index of the message"),
        maybe(
            "eligible",
            "int64",
            "peers present and subscribed at publication, without the publisher",
        ),
        maybe("delivered", "int64", "eligible peers that received it at any later time"),
        maybe(
            "delivered_in_interval",
            "int64",
            "eligible peers that received it in the interval of publication",
        ),
        maybe("hit_ratio", "double", "delivered / eligible; null where eligible = 0", "share"),
        maybe("receptions", "int64", "arrivals"),
        maybe("first_receptions", "int64", "peers at which it arrived"),
        maybe("duplicates", "int64", "arrivals that were not the first"),
        maybe("relay_receptions", "int64", "arrivals at peers that did not subscribe"),
        maybe("rejections", "int64", "arrivals that were refused"),
        maybe(
            "late_deliveries",
            "int64",
            "first receptions at peers that subscribed when it arrived, but not at publication",
        ),
        maybe("hops_mean", "double", "mean hop of first receptions", "hops"),
        maybe("hops_max", "int32", "largest hop of first receptions", "hops"),
        *_delays(),
        maybe("redundancy", "double", "receptions / first receptions - 1"),
        maybe(
            "causality_violations",
            "int64",
            "receptions before the publication, or before that of the previous hop",
        ),
    ),
    ("message",),
)

METRICS_PERCOLATION = Table(
    "metrics/percolation",
    "interval; made by `vizpub metrics RUN percolation`",
    (
        INTERVAL,
        maybe(
            "gamma", "double", "probability that a neighbour that does not subscribe gets a copy"
        ),
        maybe("sigma", "double", "mean over messages of the topic's subscribers / n"),
        of_graph(
            "percolation_threshold",
            "double",
            "probability of passing a message on from which it can percolate: 1 / the largest "
            "eigenvalue of the matrix of walks that do not turn back",
            "directed",
            "null where every walk ends",
        ),
        maybe("gossip_events", "int64", "messages whose topic and present publisher are known"),
        maybe("predicted_percolation", "double", "probability that a message percolates"),
        maybe("predicted_receivers", "double", "mean peers that get a message, with its publisher"),
        maybe("measured_receivers", "double", "mean peers that got a message, with its publisher"),
        maybe(
            "predicted_subscribers",
            "double",
            "mean probability that a subscriber gets a message of any peer, itself included",
            "share",
        ),
        maybe("measured_subscribers", "double", "present subscribers that got a message", "share"),
        maybe(
            "copies_offered",
            "int64",
            "pairs of a peer with a message and a neighbour that neither subscribes nor sent it "
            "first",
        ),
        maybe("copies_passed", "int64", "pairs of these along which a copy was sent"),
    ),
    ("interval",),
)
METRICS = (
    METRICS_OVERLAY,
    METRICS_PEERS,
    METRICS_TOPICS,
    METRICS_MESSAGES,
    METRICS_PERCOLATION,
)
OF_MESSAGES = frozenset(
    {column.name for column in (*_HITS, *METRICS_MESSAGES)}
    | {"hit_ratio_in_interval", "rejected_publications"}
)
"""Columns that say how messages spread: an append may change those of recent intervals."""
