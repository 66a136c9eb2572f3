"""The metrics tables, with the meaning of each number. A test compares docs/metrics.md with it."""

from __future__ import annotations

from vizpub.model.columns import (
    INTERVAL,
    PEER,
    TOPIC,
    TRAFFIC_COLUMNS,
    TRAFFIC_OF_PEER,
    Column,
    Table,
    always,
    maybe,
    of_digraph,
    of_graph,
)

_HITS = (
    maybe("publications", "int64", "messages published in the interval"),
    maybe("hit_ratio", "double", "delivered / eligible over these messages", "share"),
    maybe("hit_ratio_mean", "double", "mean of their hit ratios (eligible > 0)", "share"),
    maybe("hops_mean", "double", "mean hop of their first receptions", "hops"),
    maybe("hops_max", "int32", "largest hop of their first receptions", "hops"),
    maybe("duplicates_per_delivery", "double", "Σ duplicates / Σ delivered over these messages"),
    maybe("relay_share", "double", "Σ relay receptions / Σ receptions, if known of all", "share"),
)
"""Of messages by their publication, named as the same measures of a whole run."""

COUNTS = (*TRAFFIC_COLUMNS, "publications", "receptions", "duplicates")
"""Columns of peers, topics and the overlay that can be added up over intervals."""

METRICS_PEERS = Table(
    "metrics/peers",
    "peer and interval: peers present at its end, or with traffic or receptions in it",
    (
        PEER,
        INTERVAL,
        maybe("present", "bool", "at the interval's last tick; null where presence is unknown"),
        of_digraph("in_degree", "int32", "distinct links in", "0 without links"),
        of_digraph("out_degree", "int32", "distinct links out", "0 without links"),
        of_graph("degree", "int32", "distinct peers linked either way", "0 without links"),
        of_graph("clustering", "double", "local clustering", "0 where degree < 2"),
        of_digraph(
            "betweenness",
            "double",
            "shortest paths through the peer, over ordered pairs (Brandes)",
            "0 where no path passes",
        ),
        of_digraph(
            "betweenness_normalized", "double", "betweenness / ((n-1)(n-2))", "null where n < 3"
        ),
        of_digraph(
            "betweenness_error",
            "double",
            "standard error of betweenness where it was sampled",
            "0 where exact",
        ),
        of_digraph(
            "mean_distance",
            "double",
            "mean hops to the peers it reaches (closeness in the VizPub thesis)",
            "null where it reaches none",
        ),
        of_digraph(
            "mean_distance_error",
            "double",
            "standard error of mean_distance where distances were sampled, in hops",
            "0 where exact; null where it reaches none",
        ),
        of_digraph(
            "closeness",
            "double",
            "(r/(n-1))·(r/Σd) over outgoing distances (Wasserman and Faust)",
            "0 where it reaches none",
        ),
        of_digraph(
            "eccentricity",
            "int32",
            "largest finite distance from the peer in hops",
            "null where it reaches none",
        ),
        of_digraph(
            "reachable_peers", "int32", "peers it reaches, without itself", "0 without links"
        ),
        of_graph("component", "int32", "smallest peer of its weak component", "itself"),
        of_digraph("strong_component", "int32", "smallest peer of its strong component", "itself"),
        of_digraph(
            "pagerank",
            "double",
            "PageRank with damping 0.85; 1 over all peers present",
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
        maybe(
            f"control_{kind}_{direction}_mean",
            "double",
            f"control {kind} {direction} per peer",
            unit,
        )
        for direction in ("sent", "received")
    )


METRICS_OVERLAY = Table(
    "metrics/overlay",
    "interval",
    (
        INTERVAL,
        of_digraph("network_size", "int32", "peers present, n", "0"),
        of_digraph("links", "int32", "distinct links between them, m", "0"),
        maybe("dangling_links", "int32", "links to or from peers that were not present"),
        of_digraph("density", "double", "m/(n(n-1))", "null where n < 2"),
        of_digraph("in_degree_mean", "double", "mean in-degree = m/n", "null where n = 0"),
        of_digraph("in_degree_max", "int32", "largest in-degree", "null where n = 0"),
        of_digraph("out_degree_mean", "double", "mean out-degree = m/n", "null where n = 0"),
        of_digraph("out_degree_max", "int32", "largest out-degree", "null where n = 0"),
        of_graph("degree_mean", "double", "mean degree", "null where n = 0"),
        of_graph("degree_max", "int32", "largest degree", "null where n = 0"),
        of_graph(
            "clustering_mean",
            "double",
            "mean local clustering over all peers",
            "peers of degree < 2 count 0",
        ),
        of_digraph("betweenness_mean", "double", "mean betweenness", "null where n = 0"),
        of_digraph("betweenness_max", "double", "largest betweenness", "null where n = 0"),
        of_digraph(
            "mean_distance_mean",
            "double",
            "mean over peers of their mean distance in hops",
            "peers that reach none are left out",
        ),
        of_digraph("closeness_mean", "double", "mean closeness", "peers that reach none count 0"),
        of_digraph(
            "eccentricity_mean",
            "double",
            "mean eccentricity in hops",
            "peers that reach none are left out",
        ),
        of_digraph("diameter", "int32", "largest finite distance in hops", "null where m = 0"),
        of_digraph(
            "average_path_length",
            "double",
            "mean hops over the ordered pairs that are connected",
            "null where m = 0 or n < 2",
        ),
        of_digraph(
            "average_path_length_error",
            "double",
            "standard error of average_path_length where distances were sampled, in hops",
            "0 where exact; null where m = 0 or n < 2",
        ),
        of_digraph(
            "reachable_pairs_share",
            "double",
            "ordered pairs that are connected / n(n-1)",
            "null where n < 2",
        ),
        of_graph("weak_components", "int32", "weak components", "0 where n = 0"),
        of_digraph("strong_components", "int32", "strong components", "0 where n = 0"),
        of_graph(
            "largest_weak_component_share",
            "double",
            "peers in the largest weak component / n",
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
        of_digraph("topic_links", "int32", "links whose two ends both subscribe", "0 without"),
        of_graph(
            "components",
            "int32",
            "components of the subscribers' subgraph (1 = topic-connected)",
            "0 without subscribers",
        ),
        of_graph(
            "topic_diameter",
            "int32",
            "largest finite distance in the subscribers' subgraph in hops",
            "null where subscribers < 2 or no link",
        ),
        of_graph(
            "topic_average_path_length",
            "double",
            "mean hops over the connected pairs of the subscribers' subgraph",
            "null where subscribers < 2 or no link",
        ),
        of_graph(
            "topic_average_path_length_error",
            "double",
            "standard error of topic_average_path_length where it was sampled, in hops",
            "0 where exact; null where subscribers < 2 or no link",
        ),
        *_HITS,
        maybe("duplicates", "int64", "arrivals in the interval that were not the first"),
        maybe("relay_receptions", "int64", "arrivals at peers that do not subscribe"),
    ),
    ("interval", "topic"),
)


_DELAYS = {
    "mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile",
    "max": "largest",
}  # fmt: skip
METRICS_MESSAGES = Table(
    "metrics/messages",
    "message",
    (
        always("message", "int64", "dense index of the message"),
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
        maybe("hops_known", "int64", "first receptions whose hop is known, null where none is"),
        *(
            maybe(f"delay_us_{name}", "double", f"{words} delay of first receptions", "µs")
            for name, words in _DELAYS.items()
        ),
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
        of_digraph(
            "percolation_threshold",
            "double",
            "probability of passing a message on from which it can percolate: 1 / the largest "
            "eigenvalue of the matrix of walks that do not turn back",
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
DELIVERY_METRICS = ("delay_us", "hop")
"""Numbers of each delivery, which questions compute."""
OF_MESSAGES = frozenset(
    {column.name for column in (*_HITS, *METRICS_MESSAGES)}
    | {"hit_ratio_in_interval", "rejected_publications"}
)
"""Columns about the spread of messages: an append may change those of recent intervals."""
