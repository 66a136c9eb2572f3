"""The collector's own figures, in the text format of Prometheus.

No label has a peer or a message: their number is not bounded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vizpub.collector.intake import Intake
from vizpub.collector.progress import CollectionProgress

_OVERLAY = {
    "network_size": "vizpub_overlay_peers",
    "links": "vizpub_overlay_links",
    "weak_components": "vizpub_overlay_components",
    "clustering_mean": "vizpub_overlay_clustering_ratio",
    "hit_ratio": "vizpub_hit_ratio",
}
"""The names of metrics of the last interval, by column."""
_MESSAGES = "gossipsub_topic_msg_"
"""The names in the draft of libp2p's gossipsub metrics (libp2p/specs, 695) and in rust-libp2p, but
summed over all peers and topics. Their gauges are of one peer's mesh, and have no counterpart
here. Control messages have the names of the draft, too: `gossipsub_rpc_sent_total`."""


def page(
    intake: Intake,
    progress: CollectionProgress,
    targets: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the text of `GET /metrics`. `targets`: the reporters that are asked for reports."""
    topic = progress.topic()
    return "".join(
        f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n{name} {value:.15g}\n"
        for name, kind, meaning, value in _figures(intake, progress, targets)
    ) + "".join([*_control_samples(progress), *(_topic_samples(topic) if topic else ())])


def _control_samples(progress: CollectionProgress) -> Iterator[str]:
    """Yield a sample for each kind of control message that was counted; all are of gossipsub."""
    for way, counts in progress.control.items():
        name = f"gossipsub_rpc_{way}_total"
        if counts:
            yield f"# HELP {name} Control messages {way}, by kind.\n# TYPE {name} counter\n"
        for kind, count in sorted(counts.items()):
            yield f'{name}{{message_type="{kind}"}} {count}\n'


def _topic_samples(topic: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sample for each partition; their number is the topic's, and small."""
    name = "vizpub_kafka_up"
    yield f"# HELP {name} Whether the topic can be read.\n# TYPE {name} gauge\n"
    yield f"{name} {int(topic['up'] or 0)}\n"
    for name, kind, meaning, member in (
        ("vizpub_kafka_lag_messages", "gauge", "Messages not taken yet.", "lag"),
        ("vizpub_kafka_lost_messages_total", "counter", "Removed before they were read.", "lost"),
    ):
        yield f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
        for one in topic["partitions"]:
            # Names of topics have no characters that would have to be escaped.
            labels = f'topic="{topic["topic"]}",partition="{one["partition"]}"'
            yield f"{name}{{{labels}}} {one[member]}\n"


def _figures(
    intake: Intake, progress: CollectionProgress, targets: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, str, float]]:
    """Yield name, kind, meaning and value of each figure without labels."""
    counts, closing = intake.counts, intake.closing
    yield "vizpub_posts_total", "counter", "Requests with reports.", progress.posts
    yield "vizpub_reports_total", "counter", "Reports in the log.", counts["reports"]
    yield "vizpub_late_reports_total", "counter", "Reports of closed intervals.", counts["late"]
    yield "vizpub_refused_lines_total", "counter", "Lines not taken.", counts["refused"]
    yield "vizpub_log_failures_total", "counter", "Failed syncs of the log.", intake.log.failures
    yield "vizpub_log_bytes", "gauge", "Bytes in no run yet.", progress.backlog
    yield "vizpub_log_capacity_bytes", "gauge", "Bytes the log may have.", intake.limits.log
    yield "vizpub_queue_bytes", "gauge", "Bytes that wait for a sync.", intake.log.queued_bytes
    yield "vizpub_batches_total", "counter", "Batches in the run.", progress.batches
    for name, left in zip(("intervals", "rows", "bytes"), progress.left or (), strict=False):
        yield f"vizpub_left_{name}", "gauge", f"Old {name} that have left the run.", left
    yield "vizpub_append_seconds", "gauge", "Time of the last append.", progress.seconds
    yield "vizpub_lag_seconds", "gauge", "Wait of the oldest closed interval.", progress.lag
    yield (
        "vizpub_waited_seconds",
        "gauge",
        "Wait of the oldest report of an open interval.",
        closing.waiting_time(time.monotonic()),
    )
    yield "vizpub_spark_up", "gauge", "Whether Spark answers.", progress.has_spark
    for name, value in (("closed", closing.closed), ("in_run", progress.done)):
        if value is not None:
            yield f"vizpub_{name}_interval", "gauge", f"The last interval {name}.", value
    for counted, name, meaning in (
        ("publications", "published", "Messages published."),
        ("receptions", "recv_counts_unfiltered", "Messages received."),
        ("first receptions", "recv_counts", "Messages received, duplicates left out."),
    ):
        if counted in progress.counted:
            yield f"{_MESSAGES}{name}_total", "counter", meaning, progress.counted[counted]
    for row in list(progress.rows)[-1:]:
        for column, name in _OVERLAY.items():
            if row.get(column) is not None:
                yield name, "gauge", f"Of the last interval: {column}.", row[column]
    if targets:
        up = sum(bool(target["up"]) for target in targets)
        slowest = max(target["seconds"] or 0 for target in targets)
        yield "vizpub_targets", "gauge", "Reporters that are asked.", len(targets)
        yield "vizpub_targets_up", "gauge", "Of these, those that answered last.", up
        yield "vizpub_target_seconds", "gauge", "Time of the slowest last answer.", slowest
